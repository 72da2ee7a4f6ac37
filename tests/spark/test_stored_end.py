"""Tables of others with another open end and other flags: a merge takes over what it finds, or refuses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from interleaved import before_the_merge, other_writer
from postgres_server import PASSWORD, Server
from pyspark.sql import DataFrame
from tables import Tables, plain_rows

from healing_tables import DimensionSpec, FilesTarget, HiveTarget, IcebergTarget, PostgresTarget, TargetError, merge
from healing_tables.merge.dry_run import dry_run
from healing_tables.plan.plan import plan

pytestmark = pytest.mark.usefixtures("interpreted")
COLUMNS = "id int, name string, valid_from timestamp, valid_to timestamp, is_current {flag}"
START, CLOSED, AT = "2024-01-01 00:00:00", "2024-02-01 00:00:00", "2024-03-01 00:00:00"
DEFAULT, FAR = "9999-12-31 00:00:00", "2999-12-31 00:00:00"
SPEC = DimensionSpec(key_columns="id", attributes={"name": 2})


class Dimension:
    """A table that something else has made, of one kind of target."""

    def __init__(self, tables: Tables, target: Any, server: Server | None = None, **options: str) -> None:
        """Args: options: of the writer of the table."""
        self.tables, self.target, self.server, self.options = tables, target, server, options

    def make(self, *rows: tuple[Any, ...], flag: str = "boolean", columns: str = COLUMNS) -> None:
        """Args: rows: in the order of the columns, moments as text."""
        spark, ddl = self.tables.spark, columns.format(flag=flag)
        if self.server is not None:
            ddl = ddl.replace("timestamp", "timestamptz").replace("string", "text")
            values = [f"({', '.join(map(text_of, row))})" for row in rows]
            self.server.run(f"create table {self.target.name} ({ddl})")
            if values:
                self.server.run(f"insert into {self.target.name} values {', '.join(values)}")
            return
        frame = spark.createDataFrame(list(rows), ddl.replace("timestamp", "string")).selectExpr(
            *(f"cast({part.split()[0]} as {part.split()[1]})" for part in ddl.split(", "))
        )
        if isinstance(self.target, FilesTarget):
            frame.write.parquet(self.target.path)
        else:
            kinds: dict[type, str] = {HiveTarget: "parquet", IcebergTarget: "iceberg"}
            kind = kinds.get(type(self.target), "delta")
            frame.write.format(kind).options(**self.options).saveAsTable(self.name)

    @property
    def name(self) -> str:
        return self.target if isinstance(self.target, str) else self.target.name

    def rows(self) -> list[tuple[Any, ...]]:
        """id, name, valid_to, is_current; ends as text, None for NULL."""
        shown = (
            self.target.read(self.tables.spark)
            if not isinstance(self.target, str)
            else self.tables.spark.table(self.name)
        )
        return sorted(
            (tuple(row) for row in shown.selectExpr("id", "name", "string(valid_to)", "is_current").collect()), key=repr
        )

    def batch(self, *rows: tuple[int, str]) -> DataFrame:
        return self.tables.spark.createDataFrame(list(rows), "id int, name string")


def text_of(value: Any) -> str:
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else f"'{value}'"


SLOW = [pytest.param(kind, marks=pytest.mark.slow) for kind in ("parquet", "files")]


@pytest.fixture(params=["delta", pytest.param("postgres", marks=pytest.mark.slow), *SLOW])
def dim(tables: Tables, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Dimension]:
    name = "".join(letter if letter.isalnum() else "_" for letter in request.node.name.removeprefix("test_"))
    if request.param == "postgres":
        server: Server = request.getfixturevalue("postgres")
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PGPASSWORD", PASSWORD)
            yield Dimension(tables, PostgresTarget(f"public.{name[-50:].lower()}", server.url), server)
        return
    full = f"{tables.schema}.{name}"
    if request.param == "parquet":
        yield Dimension(tables, HiveTarget(full, "parquet"), path=f"{tmp_path}/dim")
    else:
        yield Dimension(tables, full if request.param == "delta" else FilesTarget(f"{tmp_path}/dim"))


@pytest.fixture
def delta(tables: Tables, request: pytest.FixtureRequest) -> Dimension:
    return Dimension(tables, f"{tables.schema}.{request.node.name.removeprefix('test_')}")


def stored(end: str | None, yes: Any = True, no: Any = False) -> list[tuple[Any, ...]]:
    """Key 1 with two versions, key 2 with one, key 3 that has ended."""
    return [
        (1, "a", START, CLOSED, no),
        (1, "b", CLOSED, end, yes),
        (2, "a", START, end, yes),
        (3, "a", START, CLOSED, no),
    ]


def merged(end: str | None, yes: Any = True, no: Any = False) -> list[tuple[Any, ...]]:
    """After a full batch at AT, with key 1 changed, key 2 missing and key 4 new."""
    rows = [
        (1, "a", CLOSED, no),
        (1, "b", AT, no),
        (1, "c", end, yes),
        (2, "a", AT, no),
        (3, "a", CLOSED, no),
        (4, "x", end, yes),
    ]
    return sorted(rows, key=repr)


@pytest.mark.parametrize("dim", ["delta", "postgres", *SLOW], indirect=True)
@pytest.mark.parametrize("end", [FAR, pytest.param(None, id="NULL")])
def test_a_table_is_taken_over(dim: Dimension, end: str | None) -> None:
    dim.make(*stored(end))
    merge(dim.batch((1, "c"), (4, "x")), dim.target, SPEC, at=AT, full_batch=True)
    assert dim.rows() == merged(end)
    again = merge(dim.batch((1, "c"), (4, "x")), dim.target, SPEC, at="2024-03-02", full_batch=True)
    assert again.commit_version is None


def test_flags_are_taken_over(dim: Dimension) -> None:
    dim.make(*stored(DEFAULT, "Y", "N"), flag="string")
    merge(dim.batch((1, "c"), (4, "x")), dim.target, SPEC, at=AT, full_batch=True)
    assert dim.rows() == merged(DEFAULT, "Y", "N")


REFUSED: dict[str, tuple[list[tuple[Any, ...]], str, dict[str, Any], list[str]]] = {
    "another end is named": (
        stored(FAR),
        "boolean",
        {"valid_to_current": DEFAULT},
        ["valid_to_current (valid_to)", "9999-12-31 00:00:00", "2999-12-31 00:00:00 UTC in 2 rows"],
    ),
    "NULL is named": (
        stored(DEFAULT),
        "boolean",
        {"valid_to_current": None},
        ["NULL", "9999-12-31 00:00:00 UTC in 2 rows"],
    ),
    "two ends": (
        [*stored(None), (5, "a", START, DEFAULT, True)],
        "boolean",
        {},
        ["valid_to_current (valid_to)", "NULL in 2 rows, 9999-12-31 00:00:00 UTC in 1 row"],
    ),
    "two flags": (
        [*stored(DEFAULT, "Y", "N"), (5, "a", START, DEFAULT, "A")],
        "string",
        {},
        ["current_values (is_current)", "'Y' in 2 rows, 'A' in 1 row"],
    ),
    "another flag is named": (
        stored(DEFAULT, "A", "N"),
        "string",
        {"current_values": ["Y", "N"]},
        ["current_values (is_current)", "'Y', 'N'", "'A' in 2 rows"],
    ),
}


@pytest.mark.parametrize(("rows", "flag", "options", "told"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused(
    dim: Dimension, rows: list[tuple[Any, ...]], flag: str, options: dict[str, Any], told: list[str]
) -> None:
    dim.make(*rows, flag=flag)
    before = dim.rows()
    spec = DimensionSpec(key_columns="id", attributes={"name": 2}, **options)
    with pytest.raises(TargetError, match="nothing was written") as refused:
        merge(dim.batch((9, "new")), dim.target, spec, at=AT)
    assert [text for text in told if text not in str(refused.value)] == []
    assert dim.rows() == before


def test_tables_in_which_no_row_shows_it(dim: Dimension) -> None:
    """What the definition names holds, also beside keys that have ended, or that end in the future."""
    dim.make((3, "a", START, CLOSED, False), (5, "a", START, "2090-01-01 00:00:00", False))
    spec = DimensionSpec(key_columns="id", attributes={"name": 2}, valid_to_current=None)
    merge(dim.batch((3, "b")), dim.target, spec, at=AT)
    assert dim.rows() == [
        (3, "a", CLOSED, False),
        (3, "b", None, True),
        (5, "a", "2090-01-01 00:00:00", False),
    ]


def test_plans_and_dry_runs(delta: Dimension) -> None:
    delta.make(*stored(FAR))
    table = delta.tables.spark.table(delta.name)
    changes = plan(delta.batch((1, "c")), table, SPEC, AT, full_batch=True)
    assert plain_rows(changes, ["action", "reason"]) == [
        ("close", "changed"),
        ("close", "deleted"),
        ("insert", "changed"),
    ]
    assert "2 closed" in str(dry_run(delta.batch((1, "c")), delta.name, SPEC, at=AT, full_batch=True))
    named = DimensionSpec(key_columns="id", attributes={"name": 2}, valid_to_current=DEFAULT)
    for call in (
        lambda: plan(delta.batch((1, "c")), table, named, AT),
        lambda: dry_run(delta.batch((1, "c")), delta.name, named),
    ):
        with pytest.raises(TargetError, match="valid_to_current"):
            call()


def test_dates_and_timestamps_without_a_zone(delta: Dimension) -> None:
    """In a session far from UTC."""
    sql, set_ = delta.tables.spark.sql, delta.tables.spark.conf.set
    set_("spark.sql.session.timeZone", "America/New_York")
    try:
        for kind in ("date", "timestamp_ntz"):
            table = f"{delta.name}_{kind}"
            sql(
                f"create table {table} using delta as select 1 as id, 'a' as name, "
                f"cast('2024-01-01' as {kind}) as valid_from, cast('2999-12-31' as {kind}) as valid_to, "
                "true as is_current"
            )
            at = AT[:10] if kind == "date" else AT
            merge(delta.batch((1, "b"), (2, "x")), table, SPEC, at=at)
            ends = sql(f"select id, name, cast(cast(valid_to as date) as string) from {table}").collect()
            assert sorted(map(tuple, ends)) == [(1, "a", "2024-03-01"), (1, "b", "2999-12-31"), (2, "x", "2999-12-31")]
    finally:
        set_("spark.sql.session.timeZone", "UTC")


def test_one_row_per_key_and_columns_that_are_missing(delta: Dimension) -> None:
    """Dimensions of type 1 without a column for ends, or without a flag."""
    spark = delta.tables.spark
    spec = DimensionSpec(key_columns="id", attributes={"name": 1})
    table = f"{delta.name}_flags"
    spark.sql(
        f"create table {table} using delta as select 1 as id, 'a' as name, 'Y' as is_current union select 2, 'b', 'N'"
    )
    merge(delta.batch((3, "c")), table, spec, at=AT, full_batch=True)
    assert plain_rows(spark.table(table)) == [(1, "a", "N"), (2, "b", "N"), (3, "c", "Y")]
    table = f"{delta.name}_ends"
    spark.sql(
        f"create table {table} using delta as select 1 as id, 'a' as name, timestamp '{START}' as valid_from, "
        f"timestamp '{FAR}' as valid_to"
    )
    merge(delta.batch((3, "c")), table, spec, at=AT, full_batch=True)
    assert plain_rows(spark.table(table), ["id", "valid_to"]) == [(1, AT), (3, FAR)]


def test_a_change_log_keeps_the_open_end(delta: Dimension) -> None:
    delta.make(*stored(FAR, "Y", "N"), flag="string")
    spec = DimensionSpec(key_columns="id", attributes={"name": 2}, changed_at="at", change_log=f"{delta.name}_log")
    batch = delta.tables.spark.sql(
        f"select 1 as id, 'c' as name, timestamp '{AT}' as at union all select 4, 'x', timestamp '{AT}'"
    )
    merge(batch, delta.name, spec, at=AT, full_batch=True)
    assert delta.rows() == merged(FAR, "Y", "N")


@pytest.mark.parametrize("exists", [False, True])
def test_another_writer_begins_with_another_end(delta: Dimension, exists: bool) -> None:
    """Both have seen a table without open rows."""
    name = f"{delta.name.split('[')[0]}_{exists}"
    if exists:
        merge(delta.batch(), name, SPEC, at=START)
    other = DimensionSpec(key_columns="id", attributes={"name": 2}, valid_to_current=FAR)

    def act() -> None:
        merge(delta.batch((1, "a")), name, other, at=START)

    with other_writer(delta.tables.spark, act, before_the_merge(name)) as writer:
        result = merge(delta.batch((2, "a")), name, SPEC, at=AT)
    assert writer.has_acted
    assert result.attempts == 2
    assert plain_rows(delta.tables.spark.table(name), ["id", "valid_to"]) == [(1, FAR), (2, FAR)]
