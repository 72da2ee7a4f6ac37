"""Run the long suites one after the other, in parts with a time limit, and show what came of them in docs/trust.md.

    make nightly ARGS='--resume --suite slow proof'
    make weekly ARGS=--resume

A part is some files of a suite. What has run is in tests/nightly.json or tests/weekly.json, which is committed with
docs/trust.md.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any
from xml.etree import ElementTree

import matrix

ROOT = Path(__file__).resolve().parents[1]
PAGE, END = "docs/trust.md", "<!-- end -->"
# seconds: what a part is planned for; and the limits of its three steps, each with GRACE, together 100 minutes
PLANNED = 60 * 60
LISTING, FIRST, AGAIN, GRACE = 3 * 60, 79 * 60, 15 * 60, 60
IN_TWO = ["-n", "2", "--dist", "loadfile", "--no-loadscope-reorder"]
# The scale of `make weekly`. A file runs in one process, and has to end within FIRST.
SCALE = {
    # of a random history: test_merge_property.py merges about 400 times, up to 45,000 rows. That leaves 11 s for each.
    "HEALING_TABLES_KEYS": "10000",
    # of test_property.py, beside the 26 of each run: 10 s for each
    "HEALING_TABLES_SEEDS": "400",
    # of a test: test_kill_hive.py has three, 30 s for each kill; test_kill.py runs dbt twice for each stop, 90 s
    "HEALING_TABLES_KILLS": "50",
    # of a writer in each of two tables: eight writers make 800 merges into Delta, four make 400 into ORC. At 1 to 3 s
    # for each, one after the other, these take 20 to 60 minutes.
    "HEALING_TABLES_ROUNDS": "50",
    # calls of each public macro, of test_hostile_names.py: 0.1 s for each
    "HEALING_TABLES_NAMES": "330",
}


@dataclass(frozen=True)
class Suite:
    """Test files, by paths from the root of the repository, and how pytest runs them."""

    name: str  # the first word chooses it in the command
    files: list[str]
    options: list[str]
    environment: str = ".venv"  # or a file of tests/environments
    settings: Callable[[Path], dict[str, str]] = lambda python: {}  # from the interpreter to environment variables
    new: int = 600  # seconds that a file is planned for whose time is not known


@dataclass(frozen=True)
class Schedule:
    """Suites that run together. Their results are in a file and a table of their own."""

    name: str  # as in `make nightly`
    suites: list[Suite]
    settings: dict[str, str] = field(default_factory=dict)  # environment variables of a new run

    @property
    def state(self) -> str:
        return state_of(self.name)

    @property
    def begin(self) -> str:
        return marker_of(self.name)


@dataclass
class Part:
    """What came of some files of a suite: tests by their ids, skipped ones as numbers by reason."""

    suite: str
    files: list[str]
    passed: int = 0
    broken: list[str] = field(default_factory=list)
    flaky: list[str] = field(default_factory=list)
    not_ended: list[str] = field(default_factory=list)
    skipped: dict[str, int] = field(default_factory=dict)
    minutes: float = 0


@dataclass
class State:
    """tests/nightly.json or tests/weekly.json."""

    commit: str = ""  # the first one of the run; later ones differ from it by documents only
    settings: dict[str, str] = field(default_factory=dict)  # environment variables of all parts of the run
    date: str = ""  # UTC day on which the last part ended
    planned: dict[str, int] = field(default_factory=dict)  # number of files by suite
    seconds: dict[str, dict[str, float]] = field(default_factory=dict)  # by suite and file, also of earlier runs
    parts: list[Part] = field(default_factory=list)  # those that have run


@dataclass
class Result:
    outcome: str  # passed, failed or skipped
    reason: str
    seconds: float  # with fixtures


def files_of(*paths: str) -> list[str]:
    """The test files of files and folders."""
    found = [sorted((ROOT / path).glob("test_*.py")) if (ROOT / path).is_dir() else [ROOT / path] for path in paths]
    return [str(file.relative_to(ROOT)) for files in found for file in files]


def on_iceberg(python: Path) -> dict[str, str]:
    return {"HEALING_TABLES_FORMAT": "iceberg"}


def nightly_suites() -> list[Suite]:
    if "ON_ICEBERG" not in os.environ:  # the Makefile has the list
        raise SystemExit("wanted ON_ICEBERG, the files of `make iceberg`: run `make nightly`")
    every, core, of_iceberg = ["-m", ""], files_of(*matrix.CORE), files_of(*os.environ["ON_ICEBERG"].split())
    return [
        Suite("slow", core, ["-m", "slow"]),
        Suite("proof", files_of("tests/proof"), every),
        Suite("platforms", files_of("tests/platforms"), every),
        Suite("iceberg", of_iceberg, every, "iceberg", on_iceberg),
        *[
            Suite(f"matrix {name}", files_of(*matrix.tests_of(name)), [], name, matrix.settings_of, new=60)
            for name in matrix.environments()
        ],
    ]


def weekly_suites() -> list[Suite]:
    every, merge_property = ["-m", ""], "tests/iceberg/test_merge_property_iceberg.py"
    histories = ["tests/proof/test_merge_property.py", "tests/proof/test_merge_random_feeds.py"]
    histories += ["tests/spark/test_property.py", "tests/spark/test_as_of_property.py"]
    kills = [file for file in files_of("tests/proof") if "/test_kill" in file]
    # PLANNED: until its time is known, a file has one of the two processes of its part to itself
    return [
        Suite("histories", histories, every, new=PLANNED),
        Suite("histories on iceberg", [merge_property], every, "iceberg", on_iceberg, PLANNED),
        Suite("kills", kills, every, new=PLANNED),
        Suite("kills on iceberg", ["tests/iceberg/test_merge_processes.py"], every, "iceberg", on_iceberg, PLANNED),
        Suite("writers", ["tests/proof/test_concurrency.py"], every, new=PLANNED),
        Suite("names", ["tests/spark/test_hostile_names.py"], every, new=20 * 60),
    ]


def nightly() -> Schedule:
    return Schedule("nightly", nightly_suites())


def weekly() -> Schedule:
    """Each ISO week has other histories: its year and number are their seed, such as 202649."""
    week = datetime.datetime.now(datetime.timezone.utc).strftime("%G%V")
    return Schedule("weekly", weekly_suites(), {**SCALE, "HEALING_TABLES_SEED": week})


SCHEDULES: dict[str, Callable[[], Schedule]] = {"nightly": nightly, "weekly": weekly}
NO_RESULTS = [f":!tests/{name}.json" for name in (*SCHEDULES, "mutants")]  # for git: without the results of any


def parts_of(suite: Suite, files: list[str], known: dict[str, float]) -> list[list[str]]:
    """The files in order, in parts that take up to PLANNED in two processes, or have one file; the longest first."""
    parts: list[list[str]] = []
    seconds = {file: known.get(file, suite.new) for file in files}
    for file in files:
        together = [seconds[each] for each in [*(parts[-1] if parts else []), file]]
        if not parts or max(sum(together) / 2, *together) > PLANNED:
            parts.append([])
        parts[-1].append(file)
    return [sorted(part, key=lambda file: -seconds[file]) for part in parts]


def run(
    command: list[str],
    settings: dict[str, str],
    limit: float,
    output: IO[str] | None = None,
    folder: Path | None = None,
) -> int:
    """Run a process in a group of its own, and end that group after ``limit`` seconds. Returns: the exit code.

    The interrupt comes first: after it, pytest writes the results that it has.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)  # what a shell starts with & ignores it, with its children
    process = subprocess.Popen(
        command, cwd=folder or ROOT, env=os.environ | settings, stdout=output, start_new_session=True
    )
    try:
        process.wait(limit)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(GRACE)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    return process.wait()


def id_of(classname: str, name: str, files: list[str]) -> str:
    """The id of a test from the two attributes in JUnit's format; a file that cannot be imported is its own id."""
    for file in files:
        module = file.removesuffix(".py").replace("/", ".")
        if (classname, name) == ("", module):
            return file
        if f"{classname}.".startswith(f"{module}."):
            return "::".join([file, *classname.removeprefix(module).split(".")[1:], name])
    return f"{classname}::{name}"


def results_of(junit: Path, files: list[str]) -> dict[str, Result]:
    """By id; empty if there is no such file, or only a piece of it."""
    results: dict[str, Result] = {}
    try:
        # one that was interrupted has no name
        cases = [case for case in ElementTree.parse(junit).getroot().iter("testcase") if case.get("name")]
    except (FileNotFoundError, ElementTree.ParseError):
        return results
    for case in cases:
        children = {child.tag: child for child in case}
        result = Result("passed", "", float(case.get("time", 0)))
        if children.keys() & {"failure", "error"}:
            result.outcome = "failed"
        elif "skipped" in children:
            result.outcome, result.reason = "skipped", children["skipped"].get("message", "")
        test = id_of(case.get("classname", ""), case.get("name", ""), files)
        if test not in results or result.outcome == "failed":  # twice: failed, and failed in its fixtures
            results[test] = result
    return results


def run_part(suite: Suite, files: list[str], settings: dict[str, str], junit: Path) -> tuple[Part, dict[str, float]]:
    """Run the files, and their failing tests once more, alone in one process. Returns: also the seconds by file."""
    started = time.monotonic()
    try:
        python = matrix.python_of(suite.environment)
    except subprocess.CalledProcessError as error:
        if error.returncode == matrix.NOT_INSTALLED:
            return Part(
                suite.name, files, skipped={f"this machine lacks the Python of {suite.environment}": len(files)}
            ), {}
        return Part(suite.name, files, not_ended=files), {}
    pytest, settings = [str(python), "-m", "pytest", *suite.options], settings | suite.settings(python)
    listed, second = junit.with_suffix(".txt"), junit.with_suffix(".again.xml")
    for file in (junit, second):
        file.unlink(missing_ok=True)
    more = ["--continue-on-collection-errors"]  # the other files run
    with listed.open("w") as output:
        code = run([*pytest, "--collect-only", "--verbosity=-1", *more, *files], settings, LISTING, output)
    tests = [line for line in listed.read_text().splitlines() if line.startswith(tuple(f"{file}::" for file in files))]
    if not tests and code != 5:  # 5: pytest found none
        tests = files
    run([*pytest, *IN_TWO, *more, f"--junitxml={junit}", *files], settings, FIRST)
    results = results_of(junit, files)
    failed = [test for test, result in results.items() if result.outcome == "failed"]
    if failed:
        run([*pytest, *more, f"--junitxml={second}", *failed], settings, AGAIN)
    passed = {test for test, result in results_of(second, files).items() if result.outcome == "passed"}
    seconds = {file: sum(result.seconds for test, result in results.items() if test.startswith(file)) for file in files}
    part = Part(
        suite.name,
        files,
        passed=sum(result.outcome == "passed" for result in results.values()),
        broken=[test for test in failed if test not in passed],
        flaky=[test for test in failed if test in passed],
        not_ended=[test for test in tests if test not in results],
        skipped=dict(Counter(result.reason for result in results.values() if result.outcome == "skipped")),
        minutes=round((time.monotonic() - started) / 60, 1),
    )
    return part, seconds


def load(schedule: Schedule) -> State:
    if not (ROOT / schedule.state).exists():
        return State()
    stored = json.loads((ROOT / schedule.state).read_text())
    return State(**stored | {"parts": [Part(**part) for part in stored["parts"]]})


def add(schedule: Schedule, state: State, part: Part, seconds: dict[str, float]) -> None:
    """Add a part, and write the state and the table in the page."""
    known = state.seconds.setdefault(part.suite, {})
    for file, measured in seconds.items():
        is_whole = not any(test.startswith(file) for test in part.not_ended)
        if is_whole or measured > known.get(file, 0):  # otherwise only a lower bound
            known[file] = round(measured, 1)
    state.parts.append(part)
    state.date = str(datetime.datetime.now(datetime.timezone.utc).date())
    write(schedule.name, asdict(state), report(state))


def state_of(name: str) -> str:
    return f"tests/{name}.json"


def marker_of(name: str) -> str:
    """The line in the page after which the table of `make <name>` begins; END is the line after it."""
    return f"<!-- make {name} writes this: begin -->"


def write(name: str, state: dict[str, Any], table: str) -> None:
    """Write the state of `make <name>`, and its table in the page."""
    before, begin, rest = (ROOT / PAGE).read_text().partition(marker_of(name))
    page = f"{before}{begin}\n{table}{END}{rest.partition(END)[2]}"
    for file, text in ((state_of(name), json.dumps(state, indent=1) + "\n"), (PAGE, page)):
        written = ROOT / "target" / name / Path(file).name
        written.write_text(text)
        written.replace(ROOT / file)  # at once, or not at all


def report(state: State) -> str:
    """The table as Markdown, and the tests that did not pass at once."""
    if not state.parts:
        return "No run is recorded yet.\n"
    settings = " ".join(f"{name}={value}" for name, value in state.settings.items())
    lines = [
        f"Commit `{state.commit[:12]}`. The last part ended on {state.date} (UTC).",
        *([f"With `{settings}`."] if settings else []),
        "",
        "| suite | passed | broken | flaky | not ended | skipped, and why | minutes |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name in [*state.planned, "all"]:
        parts = [part for part in state.parts if name in (part.suite, "all")]
        ran, count = sum(len(part.files) for part in parts), state.planned.get(name, sum(state.planned.values()))
        cells = [name if ran == count else f"{name}, {ran} of {count} files" if ran else f"{name}, not run"]
        cells += [str(sum(part.passed for part in parts))]
        cells += [str(sum(len(getattr(part, kind)) for part in parts)) for kind in ("broken", "flaky", "not_ended")]
        skipped = sum((Counter(part.skipped) for part in parts), Counter[str]())
        why = [f"{count}: {' '.join(reason.split()) or 'no reason'}" for reason, count in skipped.items()]
        cells += ["; ".join(why).replace("|", "\\|"), f"{sum(part.minutes for part in parts):.0f}"]
        lines.append(f"| {' | '.join(cells)} |")
    for kind in ("broken", "flaky", "not_ended"):
        tests = [f"- {part.suite}: `{test}`" for part in state.parts for test in getattr(part, kind)]
        lines += ["", f"{kind.replace('_', ' ').capitalize()}:", "", *tests] if tests else []
    return "\n".join(lines) + "\n"


def git(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", *arguments], cwd=ROOT, text=True, capture_output=True, check=False)


def has_code_of(commit: str) -> bool:
    """Whether HEAD is the commit, or differs from it by documents only."""
    return git("diff", "--quiet", commit, "HEAD", "--", ".", ":!docs", ":!*.md", *NO_RESULTS).returncode == 0


def check_tree(commit: str) -> None:
    """Raises: SystemExit if the tests would not be those of the commit."""
    changed = git("status", "--porcelain", "--", ".", *NO_RESULTS, f":!{PAGE}").stdout
    if changed:
        raise SystemExit(f"There are uncommitted changes; commit them first, since results name a commit:\n{changed}")
    if not has_code_of(commit):
        raise SystemExit(f"The code is no longer that of commit {commit}, with which this run began.")


def main(arguments: list[str], schedule: Schedule) -> int:
    suites = schedule.suites
    names = list(dict.fromkeys(suite.name.split()[0] for suite in suites))
    parser = argparse.ArgumentParser(prog=f"make {schedule.name}", description="See docs/trust.md.")
    parser.add_argument("--resume", action="store_true", help="go on with what the last run of this code lacks")
    parser.add_argument("--suite", nargs="+", choices=names, default=names, help="only these")
    parser.add_argument("--list", action="store_true", help="print the parts, and run nothing")
    given = parser.parse_args(arguments)
    state = load(schedule)
    if not given.resume or not has_code_of(state.commit):
        print("A new run begins.")
        commit = git("rev-parse", "HEAD").stdout.strip()
        state = State(commit=commit, settings=schedule.settings, seconds=state.seconds)
    state.planned = {suite.name: len(suite.files) for suite in suites}
    plan = []
    for suite in suites:
        ran = {file for part in state.parts if part.suite == suite.name for file in part.files}
        left = [file for file in suite.files if file not in ran and suite.name.split()[0] in given.suite]
        plan += [(suite, files) for files in parts_of(suite, left, state.seconds.get(suite.name, {}))]
    target = ROOT / "target" / schedule.name
    target.mkdir(parents=True, exist_ok=True)
    for number, (suite, files) in enumerate(plan, 1):
        print(f"\nPart {number} of {len(plan)}: {suite.name}, {len(files)} files: {' '.join(files)}", flush=True)
        if not given.list:
            check_tree(state.commit)
            junit = target / f"{suite.name.replace(' ', '_')}_{len(state.parts)}.xml"
            add(schedule, state, *run_part(suite, files, state.settings, junit))
    if not given.list:
        print(report(state))
    return int(not given.list and any(part.broken or part.not_ended for part in state.parts))


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # what runs is ended, too
    name, *given = sys.argv[1:]
    sys.exit(main(given, SCHEDULES[name]()))
