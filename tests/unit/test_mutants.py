"""`make mutants`: how code is broken, which tests run, and what is noted; on small texts and a small project."""

from __future__ import annotations

import json
import re
import site
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import matrix
import mutants
import nightly_tests
import pytest
from mutants import (
    GOLDEN,
    HALVES,
    LIMIT,
    NAME,
    OF_TEXT,
    STAGES,
    Code,
    Mutant,
    Run,
    State,
    Uses,
    difference,
    digest,
    draw,
    executing_tests,
    joined,
    load,
    load_uses,
    macro_at,
    main,
    measure_again,
    report,
    statement_at,
    take_over,
    uses_of,
)
from mutations import Mutation, macro_mutations, parses_as_jinja, parses_as_python, python_mutations
from nightly_tests import END, PAGE, Result, Suite, marker_of
from rendering import Project
from sessions import ROOT

MACROS = next(half for half in HALVES if half.name == "macros")


def broken_lines(source: str, mutations: Callable[[str], Iterator[Mutation]]) -> list[str]:
    """What becomes of the lines that a mutation changes."""
    return [difference(source, mutation.broken())[1] for mutation in mutations(source)]


# --- The ways to break a line -----------------------------------------------------------------------


@pytest.fixture
def environment() -> None:
    """The packages of tests/environments/mutants.txt, beside those of this process."""
    for folder in (ROOT / ".environments" / NAME).glob("lib/*/site-packages"):
        if folder.parent.name == f"python{sys.version_info.major}.{sys.version_info.minor}":
            site.addsitedir(str(folder))
    pytest.importorskip("cosmic_ray", reason="tests/environments/setup.sh mutants installs it")


@pytest.mark.parametrize(
    ("source", "broken"),
    [
        ("a <= b", ["a < b"]),
        ("a is None", ["a is not None"]),
        ("c = a and not b", ["c = a and  b", "c = a or not b"]),
        ("c = a | b", ["c = a & b"]),
        ("for a in b: continue", ["for a in b: break", "for a in []: continue"]),
        ("c = a[0]", ["c = a[ 1]", "c = a[ -1]"]),
        ("if a:\n    b = True", ["if not a:", "    b = False"]),
    ],
)
def test_python(environment: None, source: str, broken: list[str]) -> None:
    found = broken_lines(source, python_mutations)
    assert [line.strip() for line in found] == [line.strip() for line in broken]


def test_python_for_people_is_left_alone(environment: None) -> None:
    source = '''
"""1 < 2"""  # 3 > 4
from typing import TYPE_CHECKING

if TYPE_CHECKING or A:
    pass
if TYPE_CHECKING:
    B = 1

@dataclass(frozen=True)
class C:
    field: int | None

def f(a: "x" | 1) -> int | None:
    log.warning("ü", 1)
    c = [Mistake("üüüü"), 1]
    mistakes.append(Mistake("a", 1 + 1))
    raise BatchError(f"{1 + 2}")
'''
    lines = {source.splitlines()[mutation.line - 1].strip() for mutation in python_mutations(source)}
    assert lines == {"if TYPE_CHECKING or A:", 'c = [Mistake("üüüü"), 1]'}


@pytest.mark.parametrize(
    ("source", "broken"),
    [
        # in SQL
        ("a <=> b", ["a = b"]),
        ("a = b", ["a != b"]),
        ("a != b", ["a = b"]),
        ("a < b", ["a <= b"]),
        ("x -> a >= b", ["x -> a > b"]),
        ("a is null, b is not null", ["a is null, b is null", "a is not null, b is not null"]),
        ("a and b\nor c", ["a or b", "and c"]),
        ("where not a", ["where a"]),
        ("when not matched then", ["when matched then"]),
        ("min(a), lag_time(b)", ["max(a), lag_time(b)"]),
        ("lag(a) over (order by b desc)", ["lead(a) over (order by b desc)", "lag(a) over (order by b)"]),
        ("last_value(a) ignore nulls", ["first_value(a) ignore nulls", "last_value(a)"]),
        ("union all", ["union"]),
        ("left join b", ["join b"]),
        ("left anti join b", ["left semi join b"]),
        ("coalesce(a.b, c)", ["a.b"]),
        ("coalesce(if(a, b), 'c')", []),
        ("decimal(38, 0), a1", ["decimal(39, 0), a1", "decimal(38, 1), a1"]),
        ("create table if not exists a", []),
        ("map<string,bigint>", []),
        # comments, literals and names
        ("a -- b = c", []),
        ("/* a = b\n */ concat('a = ', `or 1`)", []),
        ("'{{ a }} = 1'", []),
        # in Jinja
        ("{# a = b #}", []),
        ("{% if a -%} b {% endif %}", ["{% if not (a) -%} b {% endif %}"]),
        ("{{ a[0] == b }}", ["{{ a[1] == b }}", "{{ a[0] != b }}"]),
        ("{{ a is none }}", ["{{ a is not none }}"]),
        ("{{ a is not none }}", ["{{ a is none }}"]),
        (
            "{{ a | selectattr('b') | first }}",
            ["{{ a | rejectattr('b') | first }}", "{{ a | selectattr('b') | last }}"],
        ),
        ("{{ loop.first or true }}", ["{{ loop.first and true }}", "{{ loop.first or false }}"]),
        # SQL in a text of Jinja
        ("{{ a ~ ' is not null' }}", ["{{ a ~ ' is null' }}"]),
        ("{{ a | join(' and ') }}", ["{{ a | join(' or ') }}"]),
        ("{{ 'and that is all, or 1' }}", []),
        ("{{ a == '(not given)' }}", ["{{ a != '(not given)' }}"]),
        ("{{ 'did not count what is not NULL' }}", []),
        # messages
        ("{% do healing_tables._mistake(mistakes, a == b, '1 = 2') %}", []),
        ("{% do exceptions.warn('a = b' if a == b) %}{{ log(a == b) }}", []),
    ],
)
def test_macros(source: str, broken: list[str]) -> None:
    assert sorted(broken_lines(source, macro_mutations)) == sorted(broken)


def test_what_parses() -> None:
    assert parses_as_python("a = 1") and not parses_as_python("a = ")
    assert parses_as_jinja("{% macro a() %}{% endmacro %}") and not parses_as_jinja("{{ not }}")


# --- Places -----------------------------------------------------------------------------------------


def macro(name: str, *lines: str) -> str:
    return "\n".join([f"{{% macro {name}(a, b) %}}", *lines, "{% endmacro %}\n"])


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with two macros, tests of their text, and a page; mutants.py works in it, with this interpreter."""
    files = {
        "macros/one.sql": macro("_one", "a < b", "a = b", "order by a desc"),
        "macros/two.sql": macro("_two", "min(a)"),
        "src/healing_tables/__init__.py": "",
        "tests/unit/test_text.py": TESTS,
        PAGE: f"# Page\n\n{marker_of(NAME)}\n{END}\n\nMore.\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / ".venv").symlink_to(sys.prefix)
    (tmp_path / ".gitignore").write_text(".venv\ntarget\n__pycache__\n")
    for command in (["init"], ["add", "."]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True, capture_output=True)
    monkeypatch.setattr(mutants, "ROOT", tmp_path)
    monkeypatch.setattr(nightly_tests, "ROOT", tmp_path)
    monkeypatch.setattr(mutants, "HALVES", [MACROS])
    monkeypatch.setattr(matrix, "python_of", lambda name: Path(sys.executable))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    return tmp_path


TESTS = """
from pathlib import Path
def text(name): return Path(f"macros/{name}.sql").read_text()
def test_compares(): assert "a < b" in text("one")
def test_min(): assert "min" in text("two")
"""


def test_difference() -> None:
    assert difference("a\n  b\nc\n", "a\n  d\nc\n") == ("b", "d")
    assert difference("f(\n  a,\n  b)\n", "f([])\n") == ("f(\n  a,\n  b)", "f([])")
    assert difference("a\na\n", "a\n") == ("a", "")


def test_draw(home: Path) -> None:
    """The drawn places depend on the seed; a change to a line, or to another file, leaves the others as they are."""
    drawn = [mutant for mutant, _ in draw(MACROS, 9, 1)]
    assert sorted(mutant.was for mutant in drawn) == ["a < b", "a = b", "min(a)", "order by a desc"]
    assert [mutant for mutant, _ in draw(MACROS, 2, 1)] == drawn[:2]
    orders = {tuple(mutant.was for mutant, _ in draw(MACROS, 9, seed)) for seed in range(5)}
    assert len(orders) > 1
    (home / "macros" / "one.sql").write_text(macro("_one", "b > a", "a < b", "a = b", "order by a desc"))
    again = [mutant for mutant, _ in draw(MACROS, 9, 1) if mutant.was != "b > a"]
    assert [mutant.key for mutant in again] == [mutant.key for mutant in drawn]
    [compared] = [mutant for mutant in again if mutant.was == "a < b"]
    assert (compared.line, compared.becomes) == (3, "a <= b")


def test_a_place_has_to_parse_and_to_fit(home: Path) -> None:
    half = Code("macros", "macros/two.sql", macro_mutations, lambda text: "max" not in text)
    assert draw(half, 9, 1) == []
    (home / "macros" / "two.sql").write_text(macro("_two", "a < b".rjust(120)))
    assert draw(replace(half, parses=parses_as_jinja), 9, 1) == []


# --- Which tests execute a place --------------------------------------------------------------------

SOURCE = """
X = 1
def f(a):
    if (
        a
    ):
        return [
            1,
        ]
    try: pass
    except OSError: return 2
"""


@pytest.mark.parametrize(
    ("line", "lines"), [(2, [2]), (3, [3]), (5, [4, 5, 6]), (8, [7, 8, 9]), (10, [10]), (11, [11])]
)
def test_statement_at(line: int, lines: list[int]) -> None:
    assert list(statement_at(SOURCE, line)) == lines


@pytest.mark.parametrize(
    ("line", "name", "is_it"),
    [(1, "_a", True), (2, "_a", True), (1, "_ab", False), (3, "test_b", True), (3, "b", False)]
    + [(4, "materialization_c_spark", True), (4, "c", True), (4, "_a", False)],
)
def test_macro_at(line: int, name: str, is_it: bool) -> None:
    source = "{%- macro _a() %}\n1\n{% endmacro %}{% test b(model) %}{% endtest %}\n"
    source += "{% materialization c, adapter='spark' %}{% endmaterialization %}"
    assert (re.fullmatch(macro_at(source, line), name) is not None) == is_it


def mutant(file: str = "src/a.py", line: int = 2, **values: Any) -> Mutant:
    half = "macros" if file.endswith(".sql") else "library"
    return Mutant(half, file, line, "1", "2", "0" * 12, **values)


USES = Uses(
    tests=["tests/dbt/test_long.py::a", "tests/dbt/test_long.py::b", "tests/spark/test_short.py::c", f"{GOLDEN[0]}[d]"],
    seconds=[5.0, 5.0, 8.0, 0.1],
    contents={"src/a.py": "0" * 12},
    lines={"src/a.py": {"2": [], "3": [0], "4": [0, 1, 2, 3]}},
    macros={"_a": [0, 3], "_b": [1, 2]},
)


@pytest.mark.parametrize(
    ("line", "tests"),
    [
        (1, [2, 0, 1, 3]),  # it runs on import: by its file, golden ones last
        (2, [2, 0, 1, 3]),
        (3, [0]),
        (4, [2, 0, 1, 3]),  # 8 and 10 seconds
        (9, []),  # no test executes it
    ],
)
def test_the_tests_of_a_line(line: int, tests: list[int]) -> None:
    source = "X = 1\ndef f():\n    a = 1\n    b = 1\n\n\n\n\n    c = 1\n"
    assert executing_tests(mutant(line=line), source, USES) == [USES.tests[number] for number in tests]


def test_the_tests_of_a_macro() -> None:
    found = executing_tests(mutant("macros/a.sql"), macro("_a", "1"), USES)
    assert found == [USES.tests[0], USES.tests[3]]


def test_the_tests_of_a_file_that_has_changed_since() -> None:
    changed = replace(mutant(line=3), content="1" * 12)
    assert len(executing_tests(changed, "def f():\n\n    return 1\n", USES)) == 4


def test_what_is_measured_again() -> None:
    new = Uses(
        tests=["tests/dbt/test_long.py::new", "tests/dbt/test_long.py::a"],
        seconds=[1.0, 2.0],
        contents={"src/a.py": "changed", "src/b.py": "new"},
        lines={"src/a.py": {"3": [1]}, "src/b.py": {"1": [0]}},
        macros={"_a": [1], "_c": [0]},
    )
    assert joined(USES, new) == Uses(
        tests=[*USES.tests[2:], *new.tests],
        seconds=[8.0, 0.1, 1.0, 2.0],
        contents={},  # what is known of the lines of a.py is of another text
        lines={"src/a.py": {"2": [], "3": [3], "4": [0, 1]}, "src/b.py": {"1": [2]}},
        macros={"_a": [1, 3], "_b": [0], "_c": [2]},
    )


def test_what_a_fixture_executes_counts_for_its_file(home: Path) -> None:
    (home / "src" / "a.py").touch()
    results = {
        "a.py::x": Result("passed", "", 1.5),
        "a.py::y": Result("passed", "", 2),
        "b.py::z": Result("failed", "", 1),
    }
    results |= {"tests/proof/c.py::w": Result("passed", "", 3)}
    one: dict[str, Any] = {"lines": {"src/a.py": {"1": [], "2": ["a.py"], "3": ["a.py::y"]}}, "macros": {}}
    two: dict[str, Any] = {
        "lines": {"src/a.py": {"3": ["b.py::z", "tests/proof/c.py::w"]}},
        "macros": {"_a": ["a.py::x"]},
    }
    assert uses_of([one, two], results) == Uses(
        tests=["a.py::x", "a.py::y", "tests/proof/c.py::w"],
        seconds=[1.5, 2, 3],
        contents={"src/a.py": digest("")},
        lines={"src/a.py": {"1": [], "2": [0, 1], "3": [1, 2]}},
        macros={"_a": [0]},
    )


def test_what_is_recorded(environment: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import mutant_uses
    import rendering
    from dbt.clients.jinja import MacroGenerator

    from healing_tables.sql import identifiers

    Project({}).macros._quoted("a")  # compiles the macros
    for kind, name in ((rendering.Package, "__getattr__"), (MacroGenerator, "call_macro")):
        monkeypatch.setattr(kind, name, getattr(kind, name))  # restored after the test
    recorder = mutant_uses.Recorder()
    recorder.begin()
    try:
        recorder.use("a.py::x")
        Project({}).macros._quoted("a")
        identifiers.quoted("a")
    finally:
        recorder.write(tmp_path / "uses.json")
    written = json.loads((tmp_path / "uses.json").read_text())
    assert written["macros"] == {"_quoted": ["a.py::x"]}
    executed = written["lines"]["src/healing_tables/sql/identifiers.py"]
    assert str(identifiers.quoted.__code__.co_firstlineno + 2) in executed
    assert set(map(tuple, executed.values())) == {("a.py::x",)}


# --- Results ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("noticed_by", "verdict", "outcome"),
    [
        ({}, "", "not noticed"),
        ({"unit": "a.py::b"}, "", "unit"),
        ({"unit": f"{GOLDEN[1]}[x]"}, "", "golden"),
        ({"unit": "", "spark": "a.py::b"}, "", "spark"),
        ({"unit": "", "spark": LIMIT}, "", "not noticed"),
        ({"unit": "", "spark": LIMIT}, "loops because x", "spark"),
        ({"unit": "", "spark": "", "slow": ""}, "", "not noticed"),
        ({"unit": "", "spark": "", "slow": "", "proof": "a.py::b"}, "", "nightly"),
        ({"unit": ""}, "equivalent because x", "equivalent"),
    ],
)
def test_outcome(noticed_by: dict[str, str], verdict: str, outcome: str) -> None:
    assert mutant(noticed_by=noticed_by, verdict=verdict).outcome == outcome


def test_results_are_those_of_a_file(home: Path) -> None:
    """They are dropped when it changes; a verdict belongs to the place."""
    drawn = [each for each, _ in draw(MACROS, 9, 1)]
    state = State(1, [replace(each, noticed_by={"unit": each.was}, verdict=f"equivalent {each.was}") for each in drawn])
    (home / "macros" / "one.sql").write_text(macro("_one", "a < b", "a = b", "order by a desc", ""))
    again = [each for each, _ in draw(MACROS, 9, 1)]
    take_over(state, again)
    assert [each.key for each in state.mutants] == [each.key for each in drawn]
    for each in state.mutants:
        assert each.verdict == f"equivalent {each.was}"
        assert each.noticed_by == ({"unit": "min(a)"} if each.file == "macros/two.sql" else {})
    take_over(state, again[:1])
    assert state.mutants == again[:1]


def test_report() -> None:
    noticed = [{"unit": "a.py::b"}, {"unit": GOLDEN[0]}, {"unit": "", "spark": "x"}, {"unit": "", "spark": ""}, {}]
    found = [mutant(noticed_by=each) for each in noticed]
    found += [
        mutant("macros/a.sql", noticed_by=noticed[3], verdict="equivalent because b"),
        mutant(noticed_by={"unit": ""}),
    ]
    assert report(State(1, found)).splitlines()[2:] == [
        "| library | 5 | 1 | 1 | 1 | 0 | 2 | 0 |",
        "| macros | 1 | 0 | 0 | 0 | 0 | 0 | 1 |",
        "| all | 6 | 1 | 1 | 1 | 0 | 2 | 1 |",
        "",
        "Of those not noticed, 1 have not yet run with all tests of `make test`.",
        "",
        "Not noticed:",
        "",
        "- src/a.py, line 2: ``1`` as ``2``",
        "",
        "Equivalent:",
        "",
        "- macros/a.sql, line 2: ``1`` as ``2``: equivalent because b",
    ]


def test_the_page_shows_the_last_run() -> None:
    text = (ROOT / PAGE).read_text()
    assert text.count(marker_of(NAME)) == 1
    assert text.partition(f"{marker_of(NAME)}\n")[2].partition(END)[0] == report(load(mutants.SEED))


def test_tests_of_text_exist() -> None:
    for test in [*OF_TEXT, *GOLDEN]:
        file, _, name = test.partition("::")
        assert f"def {name}" in (ROOT / file).read_text()


# --- Suites ---------------------------------------------------------------------------------------

UNIT = Run("unit", Path(sys.executable), {}, ["tests/unit/test_text.py"], 60)


def test_suites(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ON_ICEBERG", "tests/iceberg")
    assert {stage: [suite.name for suite in mutants.suites_of(stage)] for stage in STAGES} == STAGES


def test_the_suites_of_a_mutant(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that it has not run yet, up to the one that notices it; on the broken text."""
    ran: list[tuple[str, str]] = []

    def first_failure(folder: Path, run: Run) -> str:
        ran.append((run.suite, (folder / "macros" / "two.sql").read_text()))
        return "x" if run.suite == "slow" else ""

    monkeypatch.setattr(mutants, "first_failure", first_failure)
    runs = [replace(UNIT, suite=suite) for suite in ("unit", "spark", "slow", "proof")]
    found = mutants.run_mutant(mutant("macros/two.sql", noticed_by={"unit": ""}), "broken", runs, home)
    assert ran == [("spark", "broken"), ("slow", "broken")]
    assert found == {"unit": "", "spark": "", "slow": "x"}


def test_measure_files_again(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the stage; what is known of others stays."""
    suites = [Suite(name, [f"tests/{name}.py", f"tests/{name}_2.py"], []) for name in ("slow", "proof", "iceberg")]
    monkeypatch.setattr(mutants, "suites_of", lambda stage: suites)

    def measure(suite: Suite) -> tuple[Uses, list[str]]:
        tests = [f"{file}::x" for file in suite.files]
        return Uses(tests, [1.0] * len(tests), {}, {}, {"_a": list(range(len(tests)))}), [f"{suite.name} fails"]

    monkeypatch.setattr(mutants, "measure", measure)
    with pytest.raises(SystemExit, match=r"run `make mutants ARGS='--measure --stage nightly'` first"):
        measure_again("nightly", ["tests/slow.py"])
    (home / "target" / NAME).mkdir(parents=True)
    assert measure_again("nightly", []) == ["slow fails", "proof fails", "iceberg fails"]
    assert measure_again("nightly", ["tests/proof.py"]) == ["proof fails"]
    found = [load_uses(suite.name) for suite in suites]
    assert [uses.tests[0] for uses in found] == ["tests/slow.py::x", "tests/proof_2.py::x", "tests/iceberg.py::x"]
    assert [uses.macros for uses in found] == [{"_a": [0, 1]}] * 3


# --- The command ------------------------------------------------------------------------------------


@pytest.fixture
def measured(home: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is measured in the small project; the list is of the tests that fail without a mutant."""
    failed: list[str] = []
    tests = [f"tests/unit/test_text.py::test_{name}" for name in ("compares", "min")]
    uses = Uses(tests, [1.0, 1.0], {}, {}, {"_one": [0], "_two": [1]})
    monkeypatch.setattr(mutants, "measure", lambda suite: (uses, failed))
    return failed


def test_a_run(home: Path, measured: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--stage", "unit"]) == 0
    found = {each.was: each.noticed_by for each in load(1).mutants}
    assert found == {
        "a < b": {"unit": "tests/unit/test_text.py::test_compares"},
        "a = b": {"unit": ""},
        "order by a desc": {"unit": ""},
        "min(a)": {"unit": "tests/unit/test_text.py::test_min"},
    }
    assert (home / PAGE).read_text() == f"# Page\n\n{marker_of(NAME)}\n{report(load(1))}{END}\n\nMore.\n"
    for folder in (home, *(home / "target" / NAME).glob("copy_*")):  # nothing stays broken
        assert (folder / "macros" / "one.sql").read_text() == macro("_one", "a < b", "a = b", "order by a desc")
    capsys.readouterr()
    # what has run does not run again, unless it was not noticed, and that is asked for
    measured.append("tests/unit/test_text.py::test_min")
    assert main(["--stage", "unit"]) == 0
    assert main(["--stage", "unit", "--list", "--only", "macros/two.sql"]) == 0
    assert capsys.readouterr().out.endswith("- macros/two.sql, line 2: ``min(a)`` as ``max(a)`` [unit]\n")
    with pytest.raises(SystemExit, match=r"Without a mutant, the unit tests have to pass. .*::test_min$"):
        main(["--stage", "unit", "--again"])
    with pytest.raises(SystemExit, match="Which tests of `spark` execute a place is not known"):
        main([])


def test_a_time_limit_notices_nothing(home: Path) -> None:
    found = mutants.first_failure(home, replace(UNIT, limit=0))
    assert found == LIMIT


@pytest.mark.parametrize(("name", "found"), [("min", "tests/unit/test_text.py::test_min"), ("compares", "")])
def test_an_id_that_has_changed(home: Path, name: str, found: str) -> None:
    """Then the whole file runs."""
    (home / "macros" / "two.sql").write_text("" if found else macro("_two", "min(a)"))
    tests = [f"tests/unit/test_text.py::test_{name}", "tests/unit/test_text.py::test_x[1]"]
    assert mutants.first_failure(home, replace(UNIT, tests=tests)) == found


@pytest.mark.parametrize(("text", "found"), [("import nothing_there", "tests/conftest.py"), ("", "")])
def test_a_library_that_cannot_be_imported(home: Path, text: str, found: str) -> None:
    (home / "tests" / "conftest.py").write_text(text)
    assert mutants.first_failure(home, UNIT) == found


def test_a_verdict_by_hand(home: Path, measured: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutants, "first_failure", lambda *_: "")
    main(["--stage", "unit"])
    path = home / nightly_tests.state_of(NAME)
    path.write_text(path.read_text().replace('"verdict": ""', '"verdict": "equivalent because x"'))
    assert main(["--stage", "unit"]) == 0
    assert "| all | 4 | 0 | 0 | 0 | 0 | 0 | 4 |" in (home / PAGE).read_text()


@pytest.mark.parametrize(("minutes", "began"), [(0, 0), (0.005, 2)])
def test_the_time_is_over(
    home: Path, measured: list[str], monkeypatch: pytest.MonkeyPatch, minutes: float, began: int
) -> None:
    """What runs then ends."""

    def first_failure(folder: Path, *_: Any) -> str:
        time.sleep(0.4 if folder.name == "copy_1" else 0.8)
        return ""

    monkeypatch.setattr(mutants, "first_failure", first_failure)
    assert main(["--stage", "unit", "--minutes", str(minutes)]) == 0
    assert sum(each.noticed_by == {"unit": ""} for each in load(1).mutants) == began


def test_fewer_places(home: Path, measured: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The others keep their results."""
    monkeypatch.setattr(mutants, "first_failure", lambda *_: "")
    assert main(["--stage", "unit", "--count", "1"]) == 0
    assert main(["--stage", "unit", "--count", "3"]) == 0
    assert [bool(each.noticed_by) for each in load(1).mutants] == [True, True, True, False]


def test_another_library_is_refused(home: Path) -> None:
    (home / "src" / "healing_tables" / "__init__.py").unlink()
    with pytest.raises(SystemExit, match="would import the library from"):
        mutants.check_copy(home, UNIT)


def test_another_seed_is_another_run(home: Path) -> None:
    (home / nightly_tests.state_of(NAME)).write_text(json.dumps(asdict(State(1, [mutant()]))))
    assert load(1).mutants == [mutant()]
    assert load(2) == State(2)
