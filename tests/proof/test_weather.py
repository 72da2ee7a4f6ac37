"""Bad weather in the middle of a build: a source that goes or changes, a catalog that does not answer, a full disk, a
clock that is set back.

It begins before the first statement of a run, before the second, and so on. Afterwards there is the old or the new
table, whole; an error, if the run had one, names its cause; and the next run succeeds.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from dbt.adapters.spark import session as dbt_session
from dbt_common.exceptions import DbtRuntimeError
from lab import Lab
from pyspark.errors import AnalysisException
from sessions import FORMAT, ROOT

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("interpreted")]
ROWS = 60_000  # whose random texts are larger than LIMIT
LIMIT = 2_000_000  # bytes; the files of the metastore are smaller
EVERY = 3  # the weather begins before each third statement
KINDS = {"delta": ["delta", "parquet"], "iceberg": ["iceberg"]}[FORMAT]
AWAY = "the metastore does not answer"
HOUR = 3600
# What the clocks of this process and of its JVM add; empty in a run whose clocks are right
CLOCK = os.environ.get("FAKETIME_TIMESTAMP_FILE", "")
CALL = """{{ healing_tables.dimension(sources={'crm': {
    'relation': api.Relation.create(schema=target.schema, identifier='crm_%s'), 'changed_at': 'changed_at'}},
    attributes=['name', 'text']) }}"""


def fill(lab: Lab, kind: str, generation: int) -> None:
    lab.spark.sql(
        f"create or replace table {lab.schema}.crm_{kind} using {FORMAT} as select id, "
        f"timestamp '2024-01-01 00:00:00Z' as changed_at, 'generation {generation}' as name, "
        f"sha2(concat(id, '{generation}'), 512) as text from range({ROWS + generation})"
    )


def held(lab: Lab, kind: str) -> list[tuple[Any, ...]]:
    lab.spark.catalog.refreshTable(f"{lab.schema}.dim_{kind}")
    rows = lab.spark.sql(f"select name, count(*) from {lab.schema}.dim_{kind} group by name").collect()
    return [tuple(row) for row in rows]


def whole(generation: int) -> list[tuple[Any, ...]]:
    return [(f"generation {generation}", ROWS + generation)]


@contextmanager
def before_each_statement(act: Callable[[int], None]) -> Iterator[None]:
    """Args: act: gets the number of the statement."""
    execute, counted = dbt_session.Cursor.execute, [0]

    def counting(cursor: Any, sql: str, *parameters: Any) -> None:
        counted[0] += 1
        act(counted[0])
        execute(cursor, sql, *parameters)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dbt_session.Cursor, "execute", counting)
        yield


def limit_files(lab: Lab, size: int) -> None:
    """No process of the session can write a larger file, as on a full disk."""
    jvm = lab.spark._jvm
    assert jvm is not None
    pid = jvm.java.lang.ProcessHandle.current().pid()
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def drop(lab: Lab, kind: str) -> None:
    lab.spark.sql(f"drop table if exists {lab.schema}.crm_{kind}")


def change(lab: Lab, kind: str) -> None:
    """The source loses a column that the dimension has."""
    lab.spark.sql(
        f"create or replace table {lab.schema}.crm_{kind} using {FORMAT} as select id, name, "
        f"timestamp '2024-01-01 00:00:00Z' as changed_at from {lab.schema}.crm_{kind}"
    )


def fill_disk(lab: Lab, _: str) -> None:
    limit_files(lab, LIMIT)


def set_clock(seconds: int) -> None:
    if CLOCK:
        Path(CLOCK).write_text(f"{seconds:+}")


def clock_of_spark(lab: Lab) -> int:
    return int(lab.spark.sql("select unix_timestamp()").collect()[0][0])


def set_clock_back(lab: Lab, _: str) -> None:
    """By an hour. What is on disk shall be as the clock of before would have written it."""
    right = time.time() - HOUR
    for file in Path(str(lab.spark.conf.get("spark.sql.warehouse.dir")).removeprefix("file:")).rglob("*"):
        written = file.stat().st_mtime
        if written <= right:
            os.utime(file, (written + HOUR, written + HOUR))
    before = clock_of_spark(lab)
    set_clock(0)
    assert before - clock_of_spark(lab) > HOUR - 60


# The handler of a failed write in Delta 4.4.0 can fail itself, which hides the cause; dbt's log has it above
HIDDEN = '"condition" is null'
# What it does, and a part of the error of a run that fails
WEATHER: dict[str, tuple[Callable[[Lab, str], None], tuple[str, ...]]] = {
    "source dropped": (drop, ("crm_",)),
    "source changed": (change, ("text", "crm_", "column")),
    "disk full": (fill_disk, ("File too large", "TASK_WRITE_FAILED", HIDDEN)),
}
if CLOCK:  # Iceberg writes nothing until it is later than its newest commit
    causes = ("Expected sorted snapshot log entries", "Invalid update timestamp")
    WEATHER = {"clock set back": (set_clock_back, causes if FORMAT == "iceberg" else ())}


@pytest.fixture(scope="module")
def statements(lab: Lab) -> dict[str, int]:
    """Builds the dimensions; how many statements a rebuild of each has."""
    found = {}
    for kind in KINDS:
        fill(lab, kind, 0)
        lab.model(f"dim_{kind}", CALL % kind, materialized="healing_table", unique_key="id", file_format=kind)
        lab.dbt("run", "--select", f"dim_{kind}")
        fill(lab, kind, 1)
        with before_each_statement(lambda number: found.update({kind: number})):  # noqa: B023
            lab.dbt("run", "--select", f"dim_{kind}")
        assert lab.succeeded and held(lab, kind) == whole(1)
    return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weather", WEATHER)
def test_old_or_new(lab: Lab, statements: dict[str, int], kind: str, weather: str) -> None:
    act, causes = WEATHER[weather]
    generation, failed = 100 * (1 + list(WEATHER).index(weather)), 0
    fill(lab, kind, generation)
    lab.dbt("run", "--select", f"dim_{kind}")
    for place in range(1, statements[kind] + 1, EVERY):
        generation += 1
        set_clock(HOUR)
        fill(lab, kind, generation)
        with before_each_statement(lambda number: act(lab, kind) if number == place else None):  # noqa: B023
            status, message = lab.dbt("run", "--select", f"dim_{kind}")[f"dim_{kind}"]
        limit_files(lab, resource.RLIM_INFINITY)
        if FORMAT == "iceberg":
            set_clock(HOUR)
        assert held(lab, kind) in (
            [whole(generation)] if status == "success" else [whole(generation - 1), whole(generation)]
        )
        if status != "success":
            failed += 1
            assert any(cause in message for cause in causes), (place, message)
        fill(lab, kind, generation)
        lab.dbt("run", "--select", f"dim_{kind}")
        assert lab.succeeded and held(lab, kind) == whole(generation), place
    assert bool(failed) == bool(causes), "no run failed: shows nothing"


def test_with_another_clock(tmp_path: Path) -> None:
    """The test above, in processes whose clocks can be set. Those of their system stay as they are."""
    subprocess.run([ROOT / "tests" / "environments" / "setup.sh", "clock"], check=True)
    (library,) = (ROOT / ".environments" / "clock").glob("lib/*/site-packages/libfaketime/vendor/*/src/*.so.1")
    (tmp_path / "clock").write_text("+0")
    settings = {"LD_PRELOAD": str(library), "FAKETIME_TIMESTAMP_FILE": str(tmp_path / "clock")}
    # each look reads the file; times of files and the clocks that only measure stay as they are
    settings |= {"FAKETIME_NO_CACHE": "1", "NO_FAKE_STAT": "1", "DONT_FAKE_MONOTONIC": "1"}
    settings["FAKETIME_FORCE_MONOTONIC_FIX"] = "0"  # otherwise the JVM waits for nothing, and so without end
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-m", "", "-k", "test_old_or_new and clock", __file__],
        cwd=ROOT,
        env=os.environ | settings,
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0 and f"{len(KINDS)} passed" in done.stdout, done.stdout[-5000:] + done.stderr[-2000:]


@pytest.mark.parametrize("kind", KINDS)
def test_the_catalog_is_away(lab: Lab, statements: dict[str, int], kind: str) -> None:
    """Three statements in a row fail, those that follow do not."""
    generation = 1000
    for place in range(1, statements[kind] + 1, EVERY):
        generation += 1
        fill(lab, kind, generation)

        def fail(number: int) -> None:
            if place <= number < place + 3:  # noqa: B023
                raise AnalysisException(AWAY)

        name, results = f"dim_{kind}", {}
        with before_each_statement(fail), suppress(DbtRuntimeError):  # of dbt itself, before the model
            results = lab.dbt("run", "--select", name)
        assert name not in results or results[name][0] == "success" or AWAY in results[name][1], (place, results)
        lab.dbt("run", "--select", name)
        assert lab.succeeded and held(lab, kind) == whole(generation), place
