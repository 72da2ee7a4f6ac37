"""`make nightly` and `make weekly` on a small project of its own, and `--tenth` of tests/conftest.py.

Both are in scripts/nightly_tests.py.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import re
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import conftest
import matrix
import nightly_tests
import pytest
from nightly_tests import (
    END,
    PAGE,
    SCALE,
    Part,
    Result,
    Schedule,
    State,
    Suite,
    id_of,
    load,
    main,
    parts_of,
    report,
    results_of,
)
from random_feeds import random_feed
from random_histories import START, instant_of
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
    commit(tmp_path, PAGE, page("No run is recorded yet.\n", "No run is recorded yet.\n"))
    monkeypatch.setattr(nightly_tests, "ROOT", tmp_path)
    monkeypatch.setattr(matrix, "python_of", lambda name: Path(sys.executable))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    return tmp_path


def page(of_nights: str, of_weeks: str) -> str:
    tables = {"nightly": of_nights, "weekly": of_weeks}
    sections = [f"{Schedule(name, []).begin}\n{table}{END}\n\nMore.\n" for name, table in tables.items()]
    return "# Page\n\n" + "\n".join(sections)


def nightly(*suites: Suite) -> Schedule:
    return Schedule("nightly", list(suites))


def suite(name: str, *files: str, options: tuple[str, ...] = ()) -> Suite:
    return Suite(name, [f"tests/test_{file}.py" for file in files], list(options))


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, list[str]]]:
    """The parts that are run, none of which is: each passes."""
    parts: list[tuple[str, list[str]]] = []

    def run_part(suite: Suite, files: list[str], *_: Any) -> tuple[Part, dict[str, float]]:
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
    assert all((ROOT / file).exists() for names in matrix.WITHOUT_DELTA.values() for file in names)
    assert files["proof"] == folders["proof"]
    assert files["platforms"] == folders["platforms"]
    assert files["iceberg"] > folders["iceberg"] | {"tests/dbt/test_undo.py", "tests/proof/test_kill.py"}
    assert [len(parts_of(each, each.files, {})) for each in suites if each.name.startswith("matrix")] == [1] * 6


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
    schedule = nightly(
        suite("short", "ok", "bad", "flaky", "out", "import"), suite("hanging", "hang", options=("-m", ""))
    )
    assert main(["--suite", "short"], schedule) == 1
    monkeypatch.setattr(nightly_tests, "FIRST", 10)
    started = time.monotonic()
    assert main(["--resume"], schedule) == 1
    assert time.monotonic() - started < 120
    first, second = load(schedule).parts
    assert first == Part(
        suite="short",
        files=schedule.suites[0].files,
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
    table = report(load(schedule))
    assert (home / PAGE).read_text() == page(table, "No run is recorded yet.\n")
    assert "(UTC).\n\n| suite | passed |" in table
    assert "| short | 1 | 2 | 1 | 0 | 2: no \\| server; 1: no disk | " in table
    assert "\nBroken:\n\n- short: `tests/test_import.py`\n- short: `tests/test_bad.py::test_fails`\n\nFlaky:\n" in table
    assert "\nNot ended:\n\n- hanging: `tests/test_hang.py::test_hangs`\n" in table


@pytest.mark.parametrize("cause", ["usage", "environment", "python"])
def test_a_part_that_cannot_begin_has_not_ended(home: Path, monkeypatch: pytest.MonkeyPatch, cause: str) -> None:
    def python_of(name: str) -> Path:
        raise subprocess.CalledProcessError(3 if cause == "python" else 1, "setup.sh")

    if cause != "usage":
        monkeypatch.setattr(matrix, "python_of", python_of)
    schedule = nightly(suite("proof", "ok", options=("--no-such-option",)))
    assert main([], schedule) == int(cause != "python")
    [part] = load(schedule).parts
    assert part.not_ended == ([] if cause == "python" else ["tests/test_ok.py"])
    assert part.skipped == ({"this machine lacks the Python of .venv": 1} if cause == "python" else {})


def test_files_without_such_tests_are_planned_without_time(home: Path) -> None:
    schedule = nightly(suite("slow", "ok", options=("-m", "slow")))
    assert main([], schedule) == 0
    state = load(schedule)
    assert (state.parts[0].not_ended, state.seconds) == ([], {"slow": {"tests/test_ok.py": 0.0}})


def test_times_of_a_part_that_did_not_end(home: Path) -> None:
    """They are a lower bound."""
    (home / "target" / "nightly").mkdir(parents=True)
    state = State(seconds={"proof": {"a.py": 50.0, "b.py": 50.0, "c.py": 50.0}})
    part = Part("proof", ["a.py", "b.py", "c.py"], not_ended=["a.py::test_x", "b.py"])
    nightly_tests.add(nightly(), state, part, {"a.py": 20.0, "b.py": 80.04, "c.py": 20.0})
    assert state.seconds["proof"] == {"a.py": 50.0, "b.py": 80.0, "c.py": 20.0}


def do_nothing(home: Path) -> None:
    """The same commit."""


def commit_results(home: Path) -> None:
    commit(home, "tests/weekly.json", "{}")
    commit(home, "docs/more.svg", "More.")
    commit(home, "src/README.md", "More.")


def commit_code(home: Path) -> None:
    commit(home, "macros/more.sql", "select 1")


def lose_the_commit(home: Path) -> None:
    git(home, "commit", "--amend", "--message", "another")
    name = nightly().state
    state = json.loads((home / name).read_text())
    commit(home, name, json.dumps(state | {"commit": "0" * 40}))


@pytest.mark.parametrize("change", [do_nothing, commit_results, commit_code, lose_the_commit])
def test_resume(home: Path, ran: list[tuple[str, list[str]]], change: Callable[[Path], None]) -> None:
    """A part has run before; the times that it took are kept, and the plan after it is another one."""
    schedule = nightly(suite("slow", "ok", "bad"), suite("proof", "out"))
    assert main(["--suite", "slow"], schedule) == 0
    began = load(schedule)
    assert ran == [("slow", ["tests/test_ok.py", "tests/test_bad.py"])]
    assert list(began.planned.items()) == [("slow", 2), ("proof", 1)]
    assert "| proof, not run | 0 |" in report(began)
    assert "| all, 2 of 3 files | 1 |" in report(began)
    change(home)
    ran.clear()
    assert main(["--resume"], schedule) == 0
    goes_on = change in (do_nothing, commit_results)
    again = [] if goes_on else [("slow", ["tests/test_ok.py"]), ("slow", ["tests/test_bad.py"])]
    assert ran == [*again, ("proof", ["tests/test_out.py"])]
    assert (load(schedule).commit == began.commit) == goes_on
    assert "| all | " in report(load(schedule))
    ran.clear()
    assert main(["--resume"], schedule) == 0
    assert ran == []


def test_a_new_run_keeps_the_times_only(home: Path, ran: list[tuple[str, list[str]]]) -> None:
    schedule = nightly(suite("slow", "ok", "bad"))
    for _ in range(2):
        main([], schedule)
    assert [len(files) for _, files in ran] == [2, 1, 1]
    assert len(load(schedule).parts) == 2


def test_list_runs_nothing(home: Path, ran: list[tuple[str, list[str]]], capsys: pytest.CaptureFixture[str]) -> None:
    (home / "new.py").touch()
    assert main(["--list"], nightly(suite("slow", "ok", "bad"))) == 0
    assert "Part 1 of 1: slow, 2 files: tests/test_ok.py tests/test_bad.py" in capsys.readouterr().out
    assert ran == []
    assert not (home / nightly().state).exists()


def test_other_code_is_refused(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the start, and before each part."""
    schedule = nightly(suite("slow", "ok"), suite("proof", "bad"))
    (home / "tests" / "weekly.json").touch()  # the results of another run are no code
    (home / "new.py").touch()
    with pytest.raises(SystemExit, match=r"There are uncommitted changes.*:\n\?\? new.py\n$"):
        main([], schedule)
    (home / "new.py").unlink()

    def run_part(suite: Suite, files: list[str], *_: Any) -> tuple[Part, dict[str, float]]:
        commit_code(home)
        return Part(suite.name, files), {}

    monkeypatch.setattr(nightly_tests, "run_part", run_part)
    with pytest.raises(SystemExit, match="The code is no longer that of commit"):
        main([], schedule)
    assert [part.suite for part in load(schedule).parts] == ["slow"]


@pytest.mark.parametrize("name", nightly_tests.SCHEDULES)
def test_the_page_shows_the_last_run(name: str) -> None:
    text, schedule = (ROOT / PAGE).read_text(), Schedule(name, [])
    assert text.count(schedule.begin) == 1 and text.count(END) == len(nightly_tests.SCHEDULES) + 1  # and of mutants
    assert text.partition(f"{schedule.begin}\n")[2].partition(END)[0] == report(load(schedule))


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


# --- make weekly ------------------------------------------------------------------------------------


def test_the_suites_of_a_week() -> None:
    """A file whose time is not known has a process to itself."""
    suites = nightly_tests.weekly_suites()
    assert all((ROOT / file).exists() for suite in suites for file in suite.files)
    parts = {suite.name: [len(part) for part in parts_of(suite, suite.files, {})] for suite in suites}
    assert parts == {
        "histories": [2, 2],
        "histories on iceberg": [1],
        "kills": [2, 2, 1],
        "kills on iceberg": [1],
        "writers": [1],
        "names": [1],
    }
    for suite in suites:
        settings = {"HEALING_TABLES_FORMAT": "iceberg"} if suite.environment == "iceberg" else {}
        assert suite.environment == ("iceberg" if "iceberg" in suite.files[0] else ".venv")
        assert (suite.options, suite.settings(Path("python"))) == (["-m", ""], settings)


@pytest.mark.parametrize(
    ("day", "week"),
    [
        (dt.datetime(2026, 11, 30), "202649"),
        (dt.datetime(2026, 12, 6, 23, 59), "202649"),
        (dt.datetime(2027, 1, 3), "202653"),
        (dt.datetime(2027, 1, 4), "202701"),
    ],
)
def test_each_week_has_another_seed(monkeypatch: pytest.MonkeyPatch, day: dt.datetime, week: str) -> None:
    now = Now(day.replace(tzinfo=dt.timezone.utc))
    monkeypatch.setattr(nightly_tests, "datetime", SimpleNamespace(timezone=dt.timezone, datetime=now))
    schedule = nightly_tests.weekly()
    assert (schedule.name, schedule.settings) == ("weekly", {**SCALE, "HEALING_TABLES_SEED": week})


def test_a_weekly_run(home: Path) -> None:
    """Its tests have its settings. A run that goes on in another week keeps its own."""
    code = "import os\ndef test_week(): assert os.environ['WEEK'] + os.environ['FORMAT'] in ('9x', '11x')\n"
    commit(home, "tests/test_week.py", code)
    suites = [replace(suite(name, "week"), settings=lambda python: {"FORMAT": "x"}) for name in ("one", "two")]
    weeks = [Schedule("weekly", suites, {"WEEK": week, "KEYS": "10"}) for week in ("9", "10", "11")]
    assert main(["--suite", "one"], weeks[0]) == 0
    assert main(["--resume"], weeks[1]) == 0
    state = load(weeks[1])
    assert [(part.suite, part.passed) for part in state.parts] == [("one", 1), ("two", 1)]
    assert "(UTC).\nWith `WEEK=9 KEYS=10`.\n\n| suite | passed |" in report(state)
    assert (home / PAGE).read_text() == page("No run is recorded yet.\n", report(state))
    assert {file.name for file in (home / "tests").glob("*.json")} == {"weekly.json"}
    assert main([], weeks[2]) == 0
    assert load(weeks[2]).settings == {"WEEK": "11", "KEYS": "10"}


def test_the_tests_read_the_scale() -> None:
    code = """
        import kill_batches, random_feeds, random_histories as histories
        import test_concurrency, test_hostile_names, test_property
        rows, feed = histories.random_changes(1), random_feeds.random_feed(1, "sequence only")
        print(histories.SEED, len({row["id"] for row in rows}))
        print(max(row["id"] for row in feed), max(row["lsn"] for row in feed))
        print(len(test_property.FURTHER_SEEDS), kill_batches.KILLS, test_concurrency.BATCHES, test_hostile_names.COUNT)
    """
    path = os.pathsep.join([*(str(ROOT / "tests" / name) for name in ("shared", "proof", "spark")), str(ROOT / "src")])
    settings = {**SCALE, "HEALING_TABLES_SEED": "202649", "PYTHONPATH": path}
    command = [sys.executable, "-c", textwrap.dedent(code)]
    run = subprocess.run(command, env=os.environ | settings, check=True, text=True, stdout=subprocess.PIPE)
    assert run.stdout == "202649 10000\n1999 13332\n400 50 50 330\n"


def test_a_larger_feed_is_of_the_same_kind() -> None:
    """Its keys tie as often as those of a small one, within the same minutes, with as few truncations."""
    ties = []
    for scale in (1, 33):
        feed = random_feed(1, "partial", keys=60 * scale, rows=400 * scale)
        rows = {row["lsn"]: row for row in feed if row["op"] != "t"}.values()
        moments = {instant_of(row) for row in rows}
        assert (min(moments), len(moments)) == (START, 41)
        assert 0 < sum(row["op"] == "t" for row in feed) < 10
        ties.append(1 - len({(row["id"], row["at"]) for row in rows}) / len(rows))
    assert ties[0] == pytest.approx(ties[1], abs=0.02) and ties[0] > 0.05


def test_the_figures_are_those_of_the_scale() -> None:
    text = (ROOT / PAGE).read_text().partition("\n## Figures\n")[2].partition("\n## ")[0]
    given = set(re.findall(r"(HEALING_TABLES_\w+)=(\w+)", text))
    assert {each for each in given if each[0] != "HEALING_TABLES_SEED"} == set(SCALE.items())
    files = [file for suite in nightly_tests.weekly_suites() for file in suite.files]
    command = [sys.executable, "-m", "pytest", "-m", "", "--collect-only", "--verbosity=-1", *files]
    settings = os.environ | SCALE | {"PYTHONPATH": str(ROOT / "src")}
    run = subprocess.run(command, cwd=ROOT, env=settings, check=True, text=True, stdout=subprocess.PIPE)
    tests = [line.partition("[")[0].rpartition("/")[2] for line in run.stdout.splitlines() if "::" in line]

    def count(pattern: str) -> int:
        return sum(re.match(pattern, test) is not None for test in tests)

    keys, kills, rounds, names = (int(SCALE[f"HEALING_TABLES_{name}"]) for name in ("KEYS", "KILLS", "ROUNDS", "NAMES"))
    calls = count("test_hostile_names.py::test_a_name_stays_a_name")
    merged, into_iceberg = count(r"test_merge_property.py::(?!test_batches_)"), count("test_merge_property_iceberg.py")
    feeds, again = count("test_merge_random_feeds.py"), count(r"test_kill_(hive|merge).py::test_killed_")
    fixed = 5 + 2 + 4  # of test_kill.py, test_kill_jvm.py and test_kill_shards.py
    for figure in (
        f"{merged} tests of {keys:,} keys: {merged * keys:,} keys.",
        f"{into_iceberg} tests of {keys:,} keys: {into_iceberg * keys:,} keys |",
        f"{feeds} tests of {keys // 5:,} keys: {feeds * keys // 5:,} keys. Each feed has {400 * keys // 300:,} rows",
        f"| {count('test_property.py::test_(dimension_equals|further)')} histories,",
        f"| {count('test_as_of_property.py::test_the_look_up')} tests of 60 facts,",
        f"| {again * kills + fixed} killed processes, and up to {kills + 7} builds stopped",
        f"| {count('test_merge_processes.py::test_killed') * kills} killed processes |",
        f"| {calls} calls, each with {names} sets of names: {calls * names:,} |",
        f"| {8 * 2 * rounds} merges of 8 writers into Delta, {4 * 2 * rounds} merges of 4 writers into ORC |",
    ):
        assert figure in text
