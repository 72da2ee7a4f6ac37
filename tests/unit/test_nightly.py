"""`make nightly` (scripts/nightly_tests.py) on a small project of its own, and `--tenth` of tests/conftest.py."""

from __future__ import annotations

import datetime as dt
import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import conftest
import matrix
import nightly_tests
import pytest
from nightly_tests import BEGIN, END, PAGE, Part, Result, State, Suite, id_of, main, parts_of, report, results_of
from sessions import ROOT

TESTS = {
    "test_ok.py": "class TestClass:\n    def test_passes(self): pass\n",
    "test_bad.py": "def test_fails(): assert False\n",
    "test_flaky.py": """
        from pathlib import Path
        def test_second_time():
            marker = Path("target/marker")
            is_second = marker.exists()
            marker.touch()
            assert is_second
    """,
    "test_out.py": """
        import pytest
        @pytest.mark.parametrize("value", ["a::b", "[ü]", ""])
        def test_skips(value): pytest.skip("no | server" if value else "no\\ndisk")
    """,
    "test_import.py": "import nothing_there\n",
    "test_hang.py": """
        import pytest, subprocess, time
        from pathlib import Path
        def test_before(): pass
        @pytest.mark.slow
        def test_hangs():
            child = subprocess.Popen(["sleep", "600"])
            Path("target/child").write_text(str(child.pid))
            time.sleep(600)
        @pytest.mark.slow
        def test_after(): pass
    """,
}


def git(home: Path, *arguments: str) -> None:
    own = ["git", "-c", "user.name=test", "-c", "user.email=test@localhost"]
    subprocess.run([*own, *arguments], cwd=home, check=True, capture_output=True)


def commit(home: Path, name: str, text: str) -> None:
    (home / name).parent.mkdir(parents=True, exist_ok=True)
    (home / name).write_text(text)
    git(home, "add", ".")
    git(home, "commit", "--message", name)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a page, and the tests of TESTS; nightly_tests works in it, with this interpreter."""
    for name, text in TESTS.items():
        lines = [line.removeprefix(" " * 8) for line in text.splitlines()]
        (tmp_path / "tests").mkdir(exist_ok=True)
        (tmp_path / "tests" / name).write_text("\n".join(lines) + "\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -q -m 'not slow'\nmarkers = slow\n")
    (tmp_path / ".gitignore").write_text("target\n__pycache__\n.pytest_cache\n")
    git(tmp_path, "init")
    commit(tmp_path, PAGE, f"# Page\n\n{BEGIN}\nNo run is recorded yet.\n{END}\n\nMore.\n")
    monkeypatch.setattr(nightly_tests, "ROOT", tmp_path)
    monkeypatch.setattr(matrix, "python_of", lambda name: Path(sys.executable))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    return tmp_path


def suite(name: str, *files: str, options: tuple[str, ...] = ()) -> Suite:
    return Suite(name, [f"tests/test_{file}.py" for file in files], list(options))


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, list[str]]]:
    """The parts that are run, none of which is: each passes."""
    parts: list[tuple[str, list[str]]] = []

    def run_part(suite: Suite, files: list[str], junit: Path) -> tuple[Part, dict[str, float]]:
        parts.append((suite.name, files))
        return Part(suite.name, files, passed=1), dict.fromkeys(files, 4000.0)

    monkeypatch.setattr(nightly_tests, "run_part", run_part)
    return parts


def test_the_suites_have_all_test_files(monkeypatch: pytest.MonkeyPatch) -> None:
    make = subprocess.run(["make", "-n", "nightly"], cwd=ROOT, check=True, text=True, capture_output=True).stdout
    value = make.partition('ON_ICEBERG="')[2].partition('"')[0]
    monkeypatch.setenv("ON_ICEBERG", value)
    suites = nightly_tests.nightly_suites()
    names = [suite.name for suite in suites]
    assert names == ["slow", "proof", "platforms", "iceberg", *(f"matrix {name}" for name in matrix.environments())]
    folders = {
        folder: {str(file.relative_to(ROOT)) for file in (ROOT / "tests" / folder).glob("test_*.py")}
        for folder in ("dbt", "spark", "proof", "platforms", "iceberg")
    }
    files = {suite.name.split()[0]: set(suite.files) for suite in suites}
    assert files["slow"] == files["matrix"] == folders["dbt"] | folders["spark"]
    assert files["proof"] == folders["proof"]
    assert files["platforms"] == folders["platforms"]
    assert files["iceberg"] > folders["iceberg"] | {"tests/dbt/test_undo.py", "tests/proof/test_kill.py"}
    assert [len(parts_of(each, each.files, {})) for each in suites if each.name.startswith("matrix")] == [1, 1, 1, 1]


def test_parts_by_number_without_known_times() -> None:
    files = [f"tests/test_{number}.py" for number in range(25)]
    parts = parts_of(Suite("slow", files, []), files, {})
    assert [len(part) for part in parts] == [12, 12, 1]
    assert [file for part in parts for file in part] == files


def test_parts_by_known_times() -> None:
    """Two processes share the files of a part, and one file is never in both."""
    known = {"a": 100.0, "b": 3500.0, "c": 3500.0, "d": 200.0, "long": 9000.0, "e": 1.0, "f": 2.0}
    parts = parts_of(Suite("slow", list(known), []), list(known), known)
    assert parts == [["b", "c", "a"], ["d"], ["long"], ["f", "e"]]


@pytest.mark.parametrize(
    ("classname", "name", "wanted"),
    [
        ("tests.test_a", "test_x[a::b.c]", "tests/test_a.py::test_x[a::b.c]"),
        ("tests.test_a_b.TestOuter.TestInner", "test_x", "tests/test_a_b.py::TestOuter::TestInner::test_x"),
        ("", "tests.test_a", "tests/test_a.py"),
        ("elsewhere", "test_x", "elsewhere::test_x"),
    ],
)
def test_ids(classname: str, name: str, wanted: str) -> None:
    assert id_of(classname, name, ["tests/test_a.py", "tests/test_a_b.py"]) == wanted


def test_results_of_junit(tmp_path: Path) -> None:
    (tmp_path / "junit.xml").write_text(
        """<testsuites><testsuite>
            <testcase classname="t" name="test_ok" time="1.5"/>
            <testcase classname="t" name="test_bad" time="1"><failure message="no"/></testcase>
            <testcase classname="t" name="test_bad" time="1"><error message="and then"/></testcase>
            <testcase classname="t" name="test_teardown" time="1"/>
            <testcase classname="t" name="test_teardown" time="1"><error message="after"/></testcase>
            <testcase classname="t" name="test_out" time="0"><skipped message="no server"/></testcase>
            <testcase time="0"/>
        </testsuite></testsuites>"""
    )
    assert results_of(tmp_path / "junit.xml", ["t.py"]) == {
        "t.py::test_ok": Result("passed", "", 1.5),
        "t.py::test_bad": Result("failed", "", 1),
        "t.py::test_teardown": Result("failed", "", 1),
        "t.py::test_out": Result("skipped", "no server", 0),
    }
    (tmp_path / "junit.xml").write_text("<testsuites><testsuite>")
    assert results_of(tmp_path / "junit.xml", ["t.py"]) == {}
    assert results_of(tmp_path / "none.xml", ["t.py"]) == {}


def test_a_run(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a test that fails, one that fails once, one that is skipped, one that hangs, a file without an import."""
    suites = [suite("short", "ok", "bad", "flaky", "out", "import"), suite("hanging", "hang", options=("-m", ""))]
    assert main(["--suite", "short"], suites) == 1
    monkeypatch.setattr(nightly_tests, "FIRST", 10)
    started = time.monotonic()
    assert main(["--resume"], suites) == 1
    assert time.monotonic() - started < 120
    first, second = nightly_tests.load().parts
    assert first == Part(
        suite="short",
        files=suites[0].files,
        passed=1,
        broken=["tests/test_import.py", "tests/test_bad.py::test_fails"],
        flaky=["tests/test_flaky.py::test_second_time"],
        skipped={"no | server": 2, "no\ndisk": 1},
        minutes=first.minutes,
    )
    ids = [f"tests/test_hang.py::{name}" for name in ("test_hangs", "test_after")]
    assert second == Part("hanging", ["tests/test_hang.py"], passed=1, not_ended=ids, minutes=second.minutes)
    child = Path("/proc") / (home / "target" / "child").read_text()  # it was ended with its group
    assert not child.exists() or "\nState:\tZ" in (child / "status").read_text()
    page = (home / PAGE).read_text()
    assert page == f"# Page\n\n{BEGIN}\n{report(nightly_tests.load())}{END}\n\nMore.\n"
    assert "| short | 1 | 2 | 1 | 0 | 2: no \\| server; 1: no disk | " in page
    assert "\nBroken:\n\n- short: `tests/test_import.py`\n- short: `tests/test_bad.py::test_fails`\n\nFlaky:\n" in page
    assert "\nNot ended:\n\n- hanging: `tests/test_hang.py::test_hangs`\n" in page


@pytest.mark.parametrize("cause", ["usage", "environment"])
def test_a_part_that_cannot_begin_has_not_ended(home: Path, monkeypatch: pytest.MonkeyPatch, cause: str) -> None:
    def python_of(name: str) -> Path:
        raise subprocess.CalledProcessError(1, "setup.sh")

    if cause == "environment":
        monkeypatch.setattr(matrix, "python_of", python_of)
    assert main([], [suite("proof", "ok", options=("--no-such-option",))]) == 1
    assert nightly_tests.load().parts[0].not_ended == ["tests/test_ok.py"]


def test_files_without_such_tests_are_planned_without_time(home: Path) -> None:
    assert main([], [suite("slow", "ok", options=("-m", "slow"))]) == 0
    state = nightly_tests.load()
    assert (state.parts[0].not_ended, state.seconds) == ([], {"slow": {"tests/test_ok.py": 0.0}})


def test_times_of_a_part_that_did_not_end(home: Path) -> None:
    """They are a lower bound."""
    (home / "target" / "nightly").mkdir(parents=True)
    state = State(seconds={"proof": {"a.py": 50.0, "b.py": 50.0, "c.py": 50.0}})
    part = Part("proof", ["a.py", "b.py", "c.py"], not_ended=["a.py::test_x", "b.py"])
    nightly_tests.add(state, part, {"a.py": 20.0, "b.py": 80.04, "c.py": 20.0})
    assert state.seconds["proof"] == {"a.py": 50.0, "b.py": 80.0, "c.py": 20.0}


def do_nothing(home: Path) -> None:
    """The same commit."""


def commit_results(home: Path) -> None:
    commit(home, "docs/more.svg", "More.")
    commit(home, "src/README.md", "More.")


def commit_code(home: Path) -> None:
    commit(home, "macros/more.sql", "select 1")


def lose_the_commit(home: Path) -> None:
    git(home, "commit", "--amend", "--message", "another")
    state = json.loads((home / nightly_tests.STATE).read_text())
    commit(home, nightly_tests.STATE, json.dumps(state | {"commit": "0" * 40}))


@pytest.mark.parametrize("change", [do_nothing, commit_results, commit_code, lose_the_commit])
def test_resume(home: Path, ran: list[tuple[str, list[str]]], change: Callable[[Path], None]) -> None:
    """A part has run before; the times that it took are kept, and the plan after it is another one."""
    suites = [suite("slow", "ok", "bad"), suite("proof", "out")]
    assert main(["--suite", "slow"], suites) == 0
    began = nightly_tests.load()
    assert ran == [("slow", ["tests/test_ok.py", "tests/test_bad.py"])]
    assert list(began.planned.items()) == [("slow", 2), ("proof", 1)]
    assert "| proof, not run | 0 |" in report(began)
    assert "| all, 2 of 3 files | 1 |" in report(began)
    change(home)
    ran.clear()
    assert main(["--resume"], suites) == 0
    goes_on = change in (do_nothing, commit_results)
    again = [] if goes_on else [("slow", ["tests/test_ok.py"]), ("slow", ["tests/test_bad.py"])]
    assert ran == [*again, ("proof", ["tests/test_out.py"])]
    assert (nightly_tests.load().commit == began.commit) == goes_on
    assert "| all | " in report(nightly_tests.load())
    ran.clear()
    assert main(["--resume"], suites) == 0
    assert ran == []


def test_a_new_run_keeps_the_times_only(home: Path, ran: list[tuple[str, list[str]]]) -> None:
    suites = [suite("slow", "ok", "bad")]
    for _ in range(2):
        main([], suites)
    assert [len(files) for _, files in ran] == [2, 1, 1]
    assert len(nightly_tests.load().parts) == 2


def test_list_runs_nothing(home: Path, ran: list[tuple[str, list[str]]], capsys: pytest.CaptureFixture[str]) -> None:
    (home / "new.py").touch()
    assert main(["--list"], [suite("slow", "ok", "bad")]) == 0
    assert "Part 1 of 1: slow, 2 files: tests/test_ok.py tests/test_bad.py" in capsys.readouterr().out
    assert ran == []
    assert not (home / nightly_tests.STATE).exists()


def test_other_code_is_refused(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the start, and before each part."""
    suites = [suite("slow", "ok"), suite("proof", "bad")]
    (home / "new.py").touch()
    with pytest.raises(SystemExit, match=r"There are uncommitted changes.*\n\?\? new.py"):
        main([], suites)
    (home / "new.py").unlink()

    def run_part(suite: Suite, files: list[str], junit: Path) -> tuple[Part, dict[str, float]]:
        commit_code(home)
        return Part(suite.name, files), {}

    monkeypatch.setattr(nightly_tests, "run_part", run_part)
    with pytest.raises(SystemExit, match="The code is no longer that of commit"):
        main([], suites)
    assert [part.suite for part in nightly_tests.load().parts] == ["slow"]


def test_the_page_shows_the_last_run() -> None:
    text = (ROOT / PAGE).read_text()
    assert text.count(BEGIN) == text.count(END) == 1
    assert text.partition(f"{BEGIN}\n")[2].partition(END)[0] == report(nightly_tests.load())


def test_each_test_is_in_one_tenth() -> None:
    """All tests of a file are in one tenth. The tests of the others are deselected, not skipped."""
    files = [str(file.relative_to(ROOT)) for folder in ("dbt", "spark") for file in (ROOT / "tests" / folder).glob("*")]
    tests = [f"{file}::test_{number}" for file in files for number in range(3)]
    chosen: list[str] = []
    for tenth in range(10):
        items: list[Any] = [SimpleNamespace(nodeid=test) for test in tests]
        deselected: list[Any] = []
        hook = SimpleNamespace(pytest_deselected=lambda items, into=deselected: into.extend(items))
        config: Any = SimpleNamespace(getoption=lambda name, value=tenth: value, hook=hook)
        conftest.pytest_collection_modifyitems(config, items)
        kept = [item.nodeid for item in items]
        assert kept and {test.partition("::")[0] for test in kept}.isdisjoint(
            item.nodeid.partition("::")[0] for item in deselected
        )
        assert sorted([*kept, *(item.nodeid for item in deselected)]) == sorted(tests)
        chosen += kept
    assert sorted(chosen) == sorted(tests)
    assert conftest.tenth_of("tests/dbt/test_undo.py::test_x") == 3  # the same in each process and on each machine


@dataclass
class Now:
    value: dt.datetime

    def now(self, zone: dt.timezone) -> dt.datetime:
        return self.value.astimezone(zone)


def test_today_is_another_tenth_each_day(monkeypatch: pytest.MonkeyPatch) -> None:
    days = []
    for day in range(10):
        now = dt.datetime(2026, 12, 27, 23, tzinfo=dt.timezone.utc) + dt.timedelta(days=day)
        with monkeypatch.context() as patched:
            patched.setattr("conftest.datetime", SimpleNamespace(timezone=dt.timezone, datetime=Now(now)))
            days.append(conftest.chosen_tenth("today"))
    assert sorted(days) == list(range(10))
    assert conftest.chosen_tenth("7") == 7
