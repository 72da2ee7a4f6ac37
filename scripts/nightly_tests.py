"""Run the long suites one after the other, in parts with a time limit, and show what came of them in docs/trust.md.

    make nightly ARGS='--resume --suite slow proof'

A part is some files of a suite. What has run is in tests/nightly.json, which is committed with docs/trust.md.
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
from typing import IO
from xml.etree import ElementTree

import matrix

ROOT = Path(__file__).resolve().parents[1]
STATE, PAGE = "tests/nightly.json", "docs/trust.md"
BEGIN, END = "<!-- make nightly writes this: begin -->", "<!-- end -->"
# seconds: what a part is planned for; and the limits of its three steps, each with GRACE, together 100 minutes
PLANNED = 60 * 60
LISTING, FIRST, AGAIN, GRACE = 3 * 60, 79 * 60, 15 * 60, 60
IN_TWO = ["-n", "2", "--dist", "loadfile", "--no-loadscope-reorder"]


@dataclass(frozen=True)
class Suite:
    """Test files, by paths from the root of the repository, and how pytest runs them."""

    name: str  # the first word chooses it in the command
    files: list[str]
    options: list[str]
    environment: str = ".venv"  # or a file of tests/environments
    settings: Callable[[Path], dict[str, str]] = lambda python: {}  # from the interpreter to environment variables
    new: int = 600  # seconds that a file is planned for whose time is not known


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
    """tests/nightly.json."""

    commit: str = ""  # the first one of the run; later ones differ from it by documents only
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


def nightly_suites() -> list[Suite]:
    if "ON_ICEBERG" not in os.environ:  # the Makefile has the list
        raise SystemExit("wanted ON_ICEBERG, the files of `make iceberg`: run `make nightly`")
    every, core, on_iceberg = ["-m", ""], files_of(*matrix.CORE), files_of(*os.environ["ON_ICEBERG"].split())
    return [
        Suite("slow", core, ["-m", "slow"]),
        Suite("proof", files_of("tests/proof"), every),
        Suite("platforms", files_of("tests/platforms"), every),
        Suite("iceberg", on_iceberg, every, "iceberg", lambda python: {"HEALING_TABLES_FORMAT": "iceberg"}),
        *[Suite(f"matrix {name}", core, [], name, matrix.settings_of, new=60) for name in matrix.environments()],
    ]


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


def run(command: list[str], settings: dict[str, str], limit: float, output: IO[str] | None = None) -> int:
    """Run a process in a group of its own, and end that group after ``limit`` seconds. Returns: the exit code.

    The interrupt comes first: after it, pytest writes the results that it has.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)  # what a shell starts with & ignores it, with its children
    process = subprocess.Popen(command, cwd=ROOT, env=os.environ | settings, stdout=output, start_new_session=True)
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


def run_part(suite: Suite, files: list[str], junit: Path) -> tuple[Part, dict[str, float]]:
    """Run the files, and their failing tests once more, alone in one process. Returns: also the seconds by file."""
    started = time.monotonic()
    try:
        python = matrix.python_of(suite.environment)
    except subprocess.CalledProcessError:
        return Part(suite.name, files, not_ended=files), {}
    pytest, settings = [str(python), "-m", "pytest", *suite.options], suite.settings(python)
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


def load() -> State:
    if not (ROOT / STATE).exists():
        return State()
    stored = json.loads((ROOT / STATE).read_text())
    return State(**stored | {"parts": [Part(**part) for part in stored["parts"]]})


def add(state: State, part: Part, seconds: dict[str, float]) -> None:
    """Add a part, and write the state and the table in the page."""
    known = state.seconds.setdefault(part.suite, {})
    for file, measured in seconds.items():
        is_whole = not any(test.startswith(file) for test in part.not_ended)
        if is_whole or measured > known.get(file, 0):  # otherwise only a lower bound
            known[file] = round(measured, 1)
    state.parts.append(part)
    state.date = str(datetime.datetime.now(datetime.timezone.utc).date())
    before, _, rest = (ROOT / PAGE).read_text().partition(BEGIN)
    page = f"{before}{BEGIN}\n{report(state)}{END}{rest.partition(END)[2]}"
    for name, text in ((STATE, json.dumps(asdict(state), indent=1) + "\n"), (PAGE, page)):
        written = ROOT / "target" / "nightly" / Path(name).name
        written.write_text(text)
        written.replace(ROOT / name)  # at once, or not at all


def report(state: State) -> str:
    """The table as Markdown, and the tests that did not pass at once."""
    if not state.parts:
        return "No run is recorded yet.\n"
    lines = [
        f"Commit `{state.commit[:12]}`. The last part ended on {state.date} (UTC).",
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
    return git("diff", "--quiet", commit, "HEAD", "--", ".", ":!docs", ":!*.md", f":!{STATE}").returncode == 0


def check_tree(commit: str) -> None:
    """Raises: SystemExit if the tests would not be those of the commit."""
    changed = git("status", "--porcelain", "--", ".", f":!{STATE}", f":!{PAGE}").stdout
    if changed:
        raise SystemExit(f"There are uncommitted changes; commit them first, since results name a commit:\n{changed}")
    if not has_code_of(commit):
        raise SystemExit(f"The code is no longer that of commit {commit}, with which this run began.")


def main(arguments: list[str], suites: list[Suite]) -> int:
    names = list(dict.fromkeys(suite.name.split()[0] for suite in suites))
    parser = argparse.ArgumentParser(prog="make nightly", description="See docs/trust.md.")
    parser.add_argument("--resume", action="store_true", help="go on with what the last run of this code lacks")
    parser.add_argument("--suite", nargs="+", choices=names, default=names, help="only these")
    parser.add_argument("--list", action="store_true", help="print the parts, and run nothing")
    given = parser.parse_args(arguments)
    state = load()
    if not given.resume or not has_code_of(state.commit):
        print("A new run begins.")
        state = State(commit=git("rev-parse", "HEAD").stdout.strip(), seconds=state.seconds)
    state.planned = {suite.name: len(suite.files) for suite in suites}
    plan = []
    for suite in suites:
        ran = {file for part in state.parts if part.suite == suite.name for file in part.files}
        left = [file for file in suite.files if file not in ran and suite.name.split()[0] in given.suite]
        plan += [(suite, files) for files in parts_of(suite, left, state.seconds.get(suite.name, {}))]
    (ROOT / "target" / "nightly").mkdir(parents=True, exist_ok=True)
    for number, (suite, files) in enumerate(plan, 1):
        print(f"\nPart {number} of {len(plan)}: {suite.name}, {len(files)} files: {' '.join(files)}", flush=True)
        if not given.list:
            check_tree(state.commit)
            junit = ROOT / "target" / "nightly" / f"{suite.name.replace(' ', '_')}_{len(state.parts)}.xml"
            add(state, *run_part(suite, files, junit))
    if not given.list:
        print(report(state))
    return int(not given.list and any(part.broken or part.not_ended for part in state.parts))


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # what runs is ended, too
    sys.exit(main(sys.argv[1:], nightly_suites()))
