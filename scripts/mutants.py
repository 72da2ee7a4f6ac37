"""Break the library and the macros, one place at a time, and see which tests notice it.

    make mutants ARGS='--stage unit --minutes 60'

What came of it is in tests/mutants.json, which is committed with docs/trust.md. scripts/mutations.py has the ways to
break a line.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import multiprocessing
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from textwrap import dedent
from typing import Any

import matrix
import nightly_tests
from mutations import Mutation, macro_mutations, parses_as_jinja, parses_as_python, python_mutations
from nightly_tests import Result, Suite, results_of

ROOT = Path(__file__).resolve().parents[1]
NAME = "mutants"
COUNT, SEED, WIDTH = 300, 1, 120
LIMIT = "time limit"  # what ended the tests, in place of a test that failed
UNIT_LIMIT, MEASURE_LIMIT = 6 * 60, 5 * 60 * 60  # seconds
# The suites whose tests a mutant runs, in this order: the two of `make test`, and three of `make nightly`.
STAGES = {"unit": ["unit"], "spark": ["spark"], "nightly": ["slow", "proof", "iceberg"]}

# Tests of the text of the code, of documents and of scripts. That these notice a change says nothing about its effect.
OF_TEXT = [
    *(f"tests/unit/test_{name}.py" for name in ("code_host", "docs", "flows", "mutants", "nightly", "release")),
    *(f"tests/unit/test_{name}.py" for name in ("retail", "rooms", "s3_server", "stacks", "v2_parser")),
    *("tests/unit/test_macros.py::test_layout", "tests/unit/test_v2_forms.py::test_forms"),
]
GOLDEN = ("tests/unit/test_golden.py::test_golden", "tests/unit/test_golden.py::test_merge_statement")

COLUMNS = {  # of the table, by outcome
    "unit": "unit tests, by a rule",
    "golden": "golden files alone",
    "spark": "tests with Spark",
    "nightly": "`make nightly` only",
    "not noticed": "not noticed",
    "equivalent": "equivalent",
}


@dataclass(frozen=True)
class Code:
    """A half of the code."""

    name: str
    pattern: str  # of its files
    mutations: Callable[[str], Iterator[Mutation]]
    parses: Callable[[str], bool]


HALVES = [
    Code("library", "src/**/*.py", python_mutations, parses_as_python),
    Code("macros", "macros/**/*.sql", macro_mutations, parses_as_jinja),
]


@dataclass
class Mutant:
    """A place, how it is broken, and what came of it."""

    half: str
    file: str
    line: int
    was: str
    becomes: str
    content: str  # digest of the file as it is without the change: results are those of this content
    noticed_by: dict[str, str] = field(default_factory=dict)  # by suite: the first test that failed, "", or LIMIT
    verdict: str = ""  # by hand: "equivalent because ...", or "loops because ..." of one that reached the limit

    @property
    def key(self) -> tuple[str, str, str]:
        return self.file, self.was, self.becomes

    @property
    def outcome(self) -> str:
        """A key of COLUMNS: the stage that noticed it, or what else came of it."""
        if self.verdict.startswith("equivalent"):
            return "equivalent"
        unnoticed = ("",) if self.verdict.startswith("loops") else ("", LIMIT)
        for suite, test in self.noticed_by.items():
            if test not in unnoticed:
                stage = next(stage for stage, suites in STAGES.items() if suite in suites)
                return "golden" if test.startswith(GOLDEN) else stage
        return "not noticed"


@dataclass
class State:
    """tests/mutants.json."""

    seed: int
    mutants: list[Mutant] = field(default_factory=list)


@dataclass
class Uses:
    """Which tests of a suite execute what, and how long they take."""

    tests: list[str]  # those that passed, in the order in which they ran; elsewhere they are numbers, from 0
    seconds: list[float]
    contents: dict[str, str]  # digests of the files of the library
    lines: dict[str, dict[str, list[int]]]  # by file of the library and line
    macros: dict[str, list[int]]


# --- Places -----------------------------------------------------------------------------------------


def digest(*parts: object) -> str:
    return hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()[:12]


def draw(half: Code, count: int, seed: int) -> list[tuple[Mutant, str]]:
    """Up to ``count`` lines of the half, each broken in one way, with the broken text of the file.

    The order depends on the lines and the seed alone. So a change to the code leaves the other places as they are, and
    fewer places are the first of these.
    """
    ways: dict[tuple[str, str], list[Mutation]] = {}
    texts = {str(path.relative_to(ROOT)): path.read_text() for path in sorted(ROOT.glob(half.pattern))}
    for file, text in texts.items():
        lines = text.splitlines()
        for mutation in half.mutations(text):
            ways.setdefault((file, lines[mutation.line - 1].strip()), []).append(mutation)
    drawn: list[tuple[Mutant, str]] = []
    for file, line in sorted(ways, key=lambda place: digest(seed, *place)):
        if len(drawn) == count:
            break
        numbered = sorted(enumerate(ways[file, line]), key=lambda each: digest(seed, file, line, each[1].rule, each[0]))
        for _, mutation in numbered:
            broken, text = mutation.broken(), texts[file]
            was, becomes = difference(text, broken)
            fits = all(len(row) <= WIDTH for row in broken.splitlines())
            if was != becomes and fits and half.parses(broken):
                mutant = Mutant(half.name, file, mutation.line, was, becomes, digest(text))
                drawn.append((mutant, broken))
                break
    return drawn


def difference(before: str, after: str) -> tuple[str, str]:
    """The lines that differ, in both texts."""
    old, new = before.splitlines(), after.splitlines()
    start = len(os.path.commonprefix([old, new]))
    same = len(os.path.commonprefix([old[start:][::-1], new[start:][::-1]]))
    was, becomes = (dedent("\n".join(lines[start : len(lines) - same])) for lines in (old, new))
    return was, becomes


# --- Runs -------------------------------------------------------------------------------------------


def tracked_copy(folder: Path) -> Path:
    """A folder with the tracked files of the checkout as they are now. What else is there is removed."""
    shutil.rmtree(folder, ignore_errors=True)
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, text=True, stdout=subprocess.PIPE)
    for name in filter(None, listed.stdout.split("\0")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).exists():
            shutil.copy2(ROOT / name, folder / name)
    (folder / ".venv").symlink_to(ROOT / ".venv")
    return folder


@dataclass(frozen=True)
class Run:
    """Tests of a suite, for one mutant."""

    suite: str
    python: Path
    settings: dict[str, str]  # environment variables, without those of the folder
    tests: list[str]
    limit: float  # seconds

    def settings_in(self, folder: Path) -> dict[str, str]:
        return {"SPARK_LOCAL_IP": "127.0.0.1"} | self.settings | {"PYTHONPATH": str(folder / "src")}


@dataclass(frozen=True)
class Stage:
    """A suite, for all mutants."""

    suite: Suite
    uses: Uses
    limit: float

    def run(self, tests: list[str]) -> Run:
        python = matrix.python_of(self.suite.environment)
        return Run(self.suite.name, python, self.suite.settings(python), tests, self.limit)


def check_copy(folder: Path, run: Run) -> None:
    """Raises: SystemExit if the tests in the copy would test another library."""
    command = [str(run.python), "-c", "import healing_tables; print(healing_tables.__file__)"]
    settings = os.environ | run.settings_in(folder)
    asked = subprocess.run(command, cwd=folder, env=settings, check=True, text=True, stdout=subprocess.PIPE)
    if not Path(asked.stdout.strip()).is_relative_to(folder / "src"):
        raise SystemExit(f"The tests in {folder} would import the library from {asked.stdout.strip()}.")


def first_failure(folder: Path, run: Run) -> str:
    """Run the tests in a copy until one fails. Returns: its id, "" if all pass, LIMIT if they take longer."""
    if not run.tests:
        return ""
    junit, output = folder / "target" / "junit.xml", folder / "target" / "output.txt"
    junit.parent.mkdir(exist_ok=True)
    junit.unlink(missing_ok=True)
    command = [str(run.python), "-m", "pytest", "-x", "-m", "", "-p", "no:cacheprovider"]
    started = time.monotonic()
    with output.open("w") as written:
        code = nightly_tests.run(
            [*command, f"--junitxml={junit}", *run.tests], run.settings_in(folder), run.limit, written, folder
        )
    files = [str(path.relative_to(folder)) for path in sorted((folder / "tests").glob("*/test_*.py"))]
    results: dict[str, Result] = results_of(junit, files)
    failed = [test for test, result in results.items() if result.outcome == "failed"]
    if code == 0 or failed:
        return failed[0] if failed else ""
    if time.monotonic() - started >= run.limit:
        return LIMIT
    by_file = list(dict.fromkeys(test.partition("::")[0] for test in run.tests))
    if code == 4 and run.tests != by_file:  # perhaps an id is another one with the mutant
        return first_failure(folder, replace(run, tests=by_file))
    if code == -signal.SIGKILL:
        raise RuntimeError(f"The tests in {folder} were killed; has the machine enough memory for two at a time?")
    return "tests/conftest.py"  # the library cannot be imported


def run_mutant(mutant: Mutant, broken: str, runs: list[Run], folder: Path) -> dict[str, str]:
    """Run the suites up to the one that notices the mutant. Returns: what came of each."""
    path, noticed_by = folder / mutant.file, dict(mutant.noticed_by)
    text = path.read_text()
    try:
        write_source(path, broken)
        for run in runs:
            if run.suite not in noticed_by:
                noticed_by[run.suite] = first_failure(folder, run)
            if noticed_by[run.suite]:
                break
    finally:
        write_source(path, text)
    return noticed_by


def write_source(path: Path, text: str) -> None:
    """Python would not see a change of the same length within a second."""
    path.write_text(text)
    for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        compiled.unlink()


# --- Which tests execute a place --------------------------------------------------------------------


def executing_tests(mutant: Mutant, source: str, uses: Uses) -> list[str]:
    """Those of the quickest file first, and golden files last.

    For what runs on import, and if the file has changed since, these are the tests that execute anything of it.
    """
    if mutant.half == "macros":
        pattern = macro_at(source, mutant.line)
        found = [numbers for name, numbers in uses.macros.items() if re.fullmatch(pattern, name)]
    else:
        lines = uses.lines.get(mutant.file, {})
        found = [lines[str(line)] for line in statement_at(source, mutant.line) if str(line) in lines]
        if uses.contents.get(mutant.file) != mutant.content or is_run_on_import(source, mutant.line):
            found = list(lines.values())
    by_file: dict[tuple[bool, str], list[int]] = {}
    for number in sorted({number for numbers in found for number in numbers}):
        test = uses.tests[number]
        by_file.setdefault((test.startswith(GOLDEN), test.partition("::")[0]), []).append(number)
    order = sorted(by_file, key=lambda key: (key[0], sum(uses.seconds[number] for number in by_file[key])))
    return [uses.tests[number] for key in order for number in by_file[key]]


def statement_at(source: str, line: int) -> range:
    """The lines of the statement around a line; of one with a body, those before the body."""
    around = [node for node in ast.walk(ast.parse(source)) if isinstance(node, (ast.stmt, ast.excepthandler))]
    inner = max(
        (node for node in around if node.lineno <= line <= (node.end_lineno or 0)), key=lambda node: node.lineno
    )
    body: list[ast.stmt] = getattr(inner, "body", [])
    last = max(body[0].lineno - 1, inner.lineno) if body else inner.end_lineno or inner.lineno
    return range(inner.lineno, last + 1)


def is_run_on_import(source: str, line: int) -> bool:
    """Whether the line is in no function. The test during which it runs is any test that is the first to import it."""
    functions = [
        node for node in ast.walk(ast.parse(source)) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]
    return not any(function.body[0].lineno <= line <= (function.end_lineno or 0) for function in functions)


def macro_at(source: str, line: int) -> str:
    """A pattern for the name that dbt gives to the macro around a line."""
    above = "\n".join(source.splitlines()[:line])
    kind, name = re.findall(r"{%-? *(macro|test|materialization) +(\w+)", above)[-1]
    if kind == "materialization":
        return rf"(materialization_)?{name}(_[a-z]+)?"  # with the name of the adapter, or without both in plain Jinja
    return name if kind == "macro" else f"test_{name}"


def suites_of(stage: str) -> list[Suite]:
    if stage == "unit":
        return [Suite("unit", nightly_tests.files_of("tests/unit"), [f"--deselect={test}" for test in OF_TEXT])]
    if stage == "spark":
        return [Suite("spark", nightly_tests.files_of(*matrix.CORE), [])]
    return [suite for suite in nightly_tests.nightly_suites() if suite.name in STAGES[stage]]


def measure(suite: Suite) -> tuple[Uses, list[str]]:
    """Run the tests of a suite without a mutant, and note which execute what. Returns: also those that failed."""
    home = ROOT / "target" / NAME
    home.mkdir(parents=True, exist_ok=True)
    for old in home.glob("recorded_*.json"):
        old.unlink()
    python, junit = matrix.python_of(suite.environment), home / f"{suite.name}.xml"
    junit.unlink(missing_ok=True)
    packages = matrix.python_of(NAME).parents[1].glob("lib/*/site-packages")
    path = [*(ROOT / folder for folder in ("src", "scripts", "tests/shared")), *packages]
    settings = {"SPARK_LOCAL_IP": "127.0.0.1", "HEALING_TABLES_USES": str(home)} | suite.settings(python)
    settings["PYTHONPATH"] = os.pathsep.join(map(str, path))
    command = [str(python), "-m", "pytest", "-p", "mutant_uses", *suite.options, *nightly_tests.IN_TWO]
    nightly_tests.run([*command, f"--junitxml={junit}", *suite.files], settings, MEASURE_LIMIT)
    results = results_of(junit, suite.files)
    recorded = [json.loads(part.read_text()) for part in sorted(home.glob("recorded_*.json"))]
    uses = uses_of(recorded, results)
    print(f"{len(uses.tests)} tests execute {len(uses.lines)} files of the library and {len(uses.macros)} macros.")
    return uses, [test for test, result in results.items() if result.outcome == "failed"]


def uses_file(suite: str) -> Path:
    return ROOT / "target" / NAME / f"uses_{suite}.json"


def measure_again(stage: str, files: list[str]) -> list[str]:
    """Measure the suites of a stage, or these files of them. Returns: the tests that failed."""
    failed: list[str] = []
    for suite in suites_of(stage):
        chosen = [file for file in suite.files if file in files or not files]
        if chosen:
            uses, of_suite = measure(replace(suite, files=chosen))
            known = load_uses(suite.name) if files else uses
            uses_file(suite.name).write_text(json.dumps(asdict(joined(known, uses))))
            failed += of_suite
    return failed


def uses_of(recorded: list[dict[str, Any]], results: dict[str, Result]) -> Uses:
    """What mutant_uses.py has recorded in each process, and what came of the tests, as one.

    What a fixture executes counts for all tests of the file, since most fixtures are shared.
    """
    tests = [test for test, result in results.items() if result.outcome == "passed"]
    numbers = {test: [number] for number, test in enumerate(tests)}
    for number, test in enumerate(tests):
        numbers.setdefault(test.partition("::")[0], []).append(number)

    def merged(maps: list[dict[str, list[str]]]) -> dict[str, list[int]]:
        found: dict[str, set[int]] = {}
        for name, users in ((name, users) for each in maps for name, users in each.items()):
            found.setdefault(name, set()).update(number for user in users for number in numbers.get(user, []))
        return {name: sorted(users) for name, users in found.items()}

    files = sorted({file for part in recorded for file in part["lines"]})
    lines = {file: merged([part["lines"].get(file, {}) for part in recorded]) for file in files}
    return Uses(
        tests,
        [results[test].seconds for test in tests],
        {file: digest((ROOT / file).read_text()) for file in files},
        lines,
        merged([part["macros"] for part in recorded]),
    )


def joined(old: Uses, new: Uses) -> Uses:
    """Both; of a test file that is in both, the new one."""
    files = {test.partition("::")[0] for test in new.tests}
    kept = [number for number, test in enumerate(old.tests) if test.partition("::")[0] not in files]
    renumbered = {number: place for place, number in enumerate(kept)}

    def both(before: dict[str, list[int]], after: dict[str, list[int]]) -> dict[str, list[int]]:
        return {
            name: [renumbered[number] for number in before.get(name, []) if number in renumbered]
            + [number + len(kept) for number in after.get(name, [])]
            for name in {**before, **after}
        }

    return Uses(
        [old.tests[number] for number in kept] + new.tests,
        [old.seconds[number] for number in kept] + new.seconds,
        {file: content for file, content in old.contents.items() if new.contents.get(file, content) == content},
        {file: both(old.lines.get(file, {}), new.lines.get(file, {})) for file in {**old.lines, **new.lines}},
        both(old.macros, new.macros),
    )


# --- Results ----------------------------------------------------------------------------------------


def load(seed: int) -> State:
    path = ROOT / nightly_tests.state_of(NAME)
    if not path.exists():
        return State(seed)
    stored = json.loads(path.read_text())
    if stored["seed"] != seed:
        return State(seed)
    return State(seed, [Mutant(**mutant) for mutant in stored["mutants"]])


def load_uses(suite: str) -> Uses:
    if not uses_file(suite).exists():
        stage = next(stage for stage, suites in STAGES.items() if suite in suites)
        command = f"make mutants ARGS='--measure --stage {stage}'"
        raise SystemExit(f"Which tests of `{suite}` execute a place is not known: run `{command}` first.")
    return Uses(**json.loads(uses_file(suite).read_text()))


def take_over(state: State, drawn: list[Mutant]) -> None:
    """Put the drawn places into the state, with the results that they have in it.

    A result is dropped if its file has changed, a verdict only with its place.
    """
    known = {mutant.key: mutant for mutant in state.mutants}
    for mutant in drawn:
        old = known.get(mutant.key, mutant)
        mutant.verdict = old.verdict
        if old.content == mutant.content:
            mutant.noticed_by = old.noticed_by
    state.mutants = drawn


def report(state: State) -> str:
    """The table as Markdown, and the places that no test notices."""
    ran = [mutant for mutant in state.mutants if mutant.noticed_by or mutant.verdict]
    if not ran:
        return "No run is recorded yet.\n"
    lines = [f"| code | places | {' | '.join(COLUMNS.values())} |", "| --- " * (len(COLUMNS) + 2) + "|"]
    for name in [*(half.name for half in HALVES), "all"]:
        mutants = [mutant for mutant in ran if name in (mutant.half, "all")]
        counts = [sum(mutant.outcome == outcome for mutant in mutants) for outcome in COLUMNS]
        lines.append(f"| {' | '.join([name, str(len(mutants)), *map(str, counts)])} |")
    for suite, command in (("spark", "make test"), ("iceberg", "make nightly")):
        missing = sum(mutant.outcome == "not noticed" and suite not in mutant.noticed_by for mutant in ran)
        if missing:
            lines += ["", f"Of those not noticed, {missing} have not yet run with all tests of `{command}`."]
            break
    for title, outcome in (("Not noticed", "not noticed"), ("Equivalent", "equivalent")):
        listed = [mutant for mutant in ran if mutant.outcome == outcome and "spark" in mutant.noticed_by]
        lines += ["", f"{title}:", "", *map(shown, listed)] if listed else []
    return "\n".join(lines) + "\n"


def shown(mutant: Mutant) -> str:
    was, becomes = (" ".join(text.split()) for text in (mutant.was, mutant.becomes))
    reason = f": {mutant.verdict}" if mutant.verdict else f" ({LIMIT})" if LIMIT in mutant.noticed_by.values() else ""
    return f"- {mutant.file}, line {mutant.line}: ``{was}`` as ``{becomes}``{reason}"


# --- The command ------------------------------------------------------------------------------------


def run_all(
    todo: list[tuple[Mutant, str]], stages: list[Stage], deadline: float, finished: Callable[[Mutant], None]
) -> None:
    """Run the mutants, two at a time in two copies."""
    copies = [tracked_copy(ROOT / "target" / NAME / f"copy_{number}") for number in (1, 2)]
    for stage in stages:
        check_copy(copies[0], stage.run([]))
    left, running = list(todo), dict[Future[dict[str, str]], tuple[Mutant, Path]]()
    with ProcessPoolExecutor(len(copies), multiprocessing.get_context("fork")) as pool:
        try:
            while running or (left and time.monotonic() < deadline):
                while copies and left and time.monotonic() < deadline:
                    (mutant, broken), copy = left.pop(0), copies.pop()
                    text = (ROOT / mutant.file).read_text()
                    runs = [stage.run(executing_tests(mutant, text, stage.uses)) for stage in stages]
                    running[pool.submit(run_mutant, mutant, broken, runs, copy)] = mutant, copy
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    mutant, copy = running.pop(future)
                    copies.append(copy)
                    mutant.noticed_by = future.result()
                    finished(mutant)
        except KeyboardInterrupt:
            for child in multiprocessing.active_children():
                os.kill(child.pid or 0, signal.SIGINT)  # what runs is ended, too
            raise


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="make mutants", description="See docs/trust.md.")
    parser.add_argument("--count", type=int, default=COUNT, help="run these at most, half of them in the library")
    parser.add_argument("--seed", type=int, default=SEED, help="another one draws other places, and a new run begins")
    parser.add_argument("--stage", choices=STAGES, default="spark", help="the last tests that run; default: spark")
    parser.add_argument("--only", metavar="FILE", help="only the places in this file")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="start no further place after these")
    parser.add_argument("--limit", type=float, default=10, help="minutes for the tests with Spark of a place")
    parser.add_argument("--again", action="store_true", help="run those again that were not noticed")
    parser.add_argument(
        "--measure",
        nargs="*",
        metavar="TESTS",
        help="run the tests of the stage, or these files of new and changed ones, and note what they execute",
    )
    parser.add_argument("--list", action="store_true", help="print the places and their results, and run nothing")
    given = parser.parse_args(arguments)
    if given.measure is not None:
        failed = measure_again(given.stage, given.measure)
        print("\n".join(["These failed, and are not used:", *failed]) if failed else "")
        return int(bool(failed))
    drawn = [draw(half, max(given.count, COUNT) // len(HALVES), given.seed) for half in HALVES]
    state = load(given.seed)
    take_over(state, [mutant for of_half in drawn for mutant, _ in of_half])
    chosen = [each for of_half in drawn for each in of_half[: given.count // len(HALVES)]]
    chosen = [each for each in chosen if given.only in (None, each[0].file)]
    if given.list:
        for mutant, _ in chosen:
            print(f"{shown(mutant)} [{mutant.outcome if mutant.noticed_by else 'not run'}]")
        return 0
    unnoticed = [each for each in chosen if each[0].outcome == "not noticed" and not each[0].verdict]
    if given.again:
        for mutant, _ in unnoticed:
            mutant.noticed_by = {}
    names = list(STAGES)[: list(STAGES).index(given.stage) + 1]
    suites = [suite for name in names for suite in suites_of(name)]
    todo = [each for each in unnoticed if {suite.name for suite in suites} - each[0].noticed_by.keys()]
    deadline = time.monotonic() + given.minutes * 60

    def write_results() -> None:
        (ROOT / "target" / NAME).mkdir(parents=True, exist_ok=True)
        nightly_tests.write(NAME, asdict(state), report(state))

    def finished(mutant: Mutant) -> None:
        print(f"{shown(mutant)} [{mutant.outcome}]", flush=True)
        write_results()

    if todo:
        stages = [Stage(suite, load_uses(suite.name), given.limit * 60) for suite in suites[1:]]
        if any("unit" not in mutant.noticed_by for mutant, _ in todo):
            uses, failed = measure(suites[0])
            if failed:
                raise SystemExit(f"Without a mutant, the unit tests have to pass. These do not: {' '.join(failed)}")
            stages.insert(0, Stage(suites[0], uses, UNIT_LIMIT))
        run_all(todo, stages, deadline, finished)
    write_results()  # also what was changed by hand
    print(report(state))
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main(sys.argv[1:]))
