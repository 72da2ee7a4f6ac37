"""Tables that a merge cannot write to, side tables that have gone another way, and sessions with other settings."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest
from sessions import with_settings
from tables import Tables, plain_rows

from healing_tables import ArgumentError, BatchError, DeltaTarget, DimensionSpec, IcebergTarget, TargetError, merge

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("interpreted")]
SPEC = DimensionSpec(key_columns="id", attributes={"name": 2})
TYPE_4 = DimensionSpec(key_columns="id", attributes={"name": 4})
HISTORY = ("id", "name", "valid_from", "valid_to")
ROW = "select 1 as id, 'a' as name"


@pytest.fixture
def dim(tables: Tables, request: pytest.FixtureRequest) -> str:
    return f"{tables.schema}.{request.node.name.split('[')[0].removeprefix('test_')}"


def names(tables: Tables, dim: str, *letters: str) -> None:
    """A batch a day, from the first on."""
    for day, letter in enumerate(letters, start=1):
        merge(tables.spark.sql(f"select 1 as id, '{letter}' as name"), dim, TYPE_4, at=f"2024-01-0{day}")


@pytest.mark.parametrize("name", ["", "  ", None, 7, "warehouse/dim", "./dim"])
def test_names_that_are_none(name: Any) -> None:
    with pytest.raises(ArgumentError, match="target\n.*'schema.table'"):
        DeltaTarget(name)


def test_paths_and_names(tables: Tables, dim: str, tmp_path: Path) -> None:
    path = str(tmp_path / "dim")
    assert DeltaTarget(f"file:{path}").sql_name == f"delta.`file:{path}`"
    assert DeltaTarget("db.`a/b`").sql_name == "db.`a/b`"
    merge(tables.spark.sql(ROW), f"file:{path}", SPEC)
    assert tables.spark.read.format("delta").load(path).count() == 1
    merge(tables.spark.sql(ROW), DeltaTarget(dim, partition_by="name"), SPEC)
    assert tables.spark.sql(f"describe detail {dim}").collect()[0]["partitionColumns"] == ["name"]


def test_tables_that_do_not_take_it(tables: Tables, dim: str, tmp_path: Path) -> None:
    sql = tables.spark.sql
    with pytest.raises(TargetError, match="SCHEMA_NOT_FOUND"):
        merge(sql(ROW), "nowhere.dim", SPEC)
    with pytest.raises(ArgumentError, match="partition_by\n(.*\n)*.*colour"):
        merge(sql(ROW), DeltaTarget(dim, partition_by=["colour"]), SPEC)
    parquet = str(tmp_path / "parquet")
    sql(ROW).write.parquet(parquet)
    with pytest.raises(TargetError, match="Delta"):
        merge(sql(ROW), parquet, SPEC)

    merge(sql(ROW), dim, SPEC, at="2024-01-01")
    rows = plain_rows(tables.spark.table(dim))
    sql(f"alter table {dim} add constraint short check (length(name) < 5)")
    for change in ("long enough", "b"):
        if change == "b":
            sql(f"alter table {dim} set tblproperties ('delta.appendOnly' = 'true')")
        with pytest.raises(TargetError, match="accepts the rows of the merge") as error:
            merge(sql(f"select 1 as id, '{change}' as name"), dim, SPEC, at="2024-01-02")
        assert ("short" in str(error.value)) == (change != "b")
        assert ("append" in str(error.value)) == (change == "b")
    assert plain_rows(tables.spark.table(dim)) == rows


def test_iceberg_in_a_session_without_it(tables: Tables, dim: str) -> None:
    rows = tables.spark.sql(ROW)
    with pytest.raises(TargetError, match=r"a Spark session with Iceberg(.*\n)*.*IcebergSparkSessionExtensions"):
        merge(rows, IcebergTarget(dim), SPEC)
    merge(rows, dim, SPEC)
    with pytest.raises(TargetError, match="an Iceberg table, or none yet"):
        merge(rows, IcebergTarget(dim), SPEC)


def test_a_name_twice_in_the_batch(tables: Tables, dim: str) -> None:
    with pytest.raises(BatchError, match="NAME\n.*each column of the batch once"):
        merge(tables.spark.sql("select 1 as id, 'a' as name, 'b' as NAME"), dim, SPEC)


def test_two_tables_that_are_one(tables: Tables, dim: str) -> None:
    changes = tables.spark.sql(f"{ROW}, date '2024-01-01' as at")
    for options in (
        {"audit": {"table": f"`{tables.schema}`.{dim.split('.')[1].upper()}"}},
        {"change_log": dim},
        {"change_log": f"spark_catalog.{dim}"},
        {"change_log": f"{dim}_log", "audit": {"table": f"`spark_catalog`.{dim}_log"}},
        {"change_log": f"{dim}_log", "audit": {"table": f"{dim}_log"}},
    ):
        spec = DimensionSpec(key_columns="id", attributes={"name": 2}, changed_at="at", **options)
        with pytest.raises(ArgumentError, match="a table of its own"):
            merge(changes, dim, spec)
    assert tables.spark.sql(f"show tables in {tables.schema} like '{dim.split('.')[1]}*'").isEmpty()


@pytest.mark.parametrize("name", ["s.dim--x", "s.dim /* x */", "s.dim-x", "s..dim", "s.dim`x"])
def test_a_name_that_needs_quotes(name: str) -> None:
    """Behind two hyphens Spark reads a comment: `s.dim` would be written."""
    with pytest.raises(ArgumentError, match="in backticks"):
        DeltaTarget(name)
    assert DeltaTarget("s.`dim--x`").sql_name == "s.`dim--x`"


def test_a_name_in_which_spark_would_replace_a_setting(tables: Tables, dim: str) -> None:
    with pytest.raises(ArgumentError, match=r"a name without \$\{"):
        rows = tables.spark.createDataFrame([(1, "a")], "id int, `${x}` string")
        merge(rows, dim, DimensionSpec(key_columns="id", attributes={"${x}": 2}))
    target = DeltaTarget(dim, comment="who is ${x}", properties={"keeper": "${y}"})
    merge(tables.spark.sql(ROW), target, SPEC)
    about = {row[0]: row[1] for row in tables.spark.sql(f"describe extended {dim}").collect()}
    assert about["Comment"] == "who is ${x}"
    assert "keeper=${y}" in about["Table Properties"]


def test_the_audit_has_the_integer_key_whatever_the_columns_are_called(tables: Tables, dim: str) -> None:
    spec = DimensionSpec(
        key_columns="id",
        attributes={"name": 2},
        surrogate_key={"name": "sk", "strategy": "sequence"},
        column_names={"valid_from": "it's from"},
        audit={},
    )
    merge(tables.spark.sql(ROW), dim, spec)
    assert [row["new_surrogate_key"] for row in tables.spark.table(f"{dim}_audit").collect()] == ["1"]


def test_a_dimension_that_was_restored_or_dropped_without_its_history(tables: Tables, dim: str) -> None:
    names(tables, dim, "a", "b")
    tables.spark.sql(f"restore table {dim} to version as of 1")
    with pytest.raises(TargetError, match="history continues.*\n.*\n.*id = 1\n.*RESTORE") as error:
        merge(tables.spark.sql("select 1 as id, 'd' as name"), dim, TYPE_4, at="2024-01-04")
    assert len(error.value.mistakes) == 1
    # at version 1 nothing had been replaced yet
    tables.spark.sql(f"restore table {dim}_history to version as of 0")
    merge(tables.spark.sql("select 1 as id, 'd' as name"), dim, TYPE_4, at="2024-01-04")
    assert plain_rows(tables.spark.table(f"{dim}_history"), HISTORY) == [
        (1, "a", dt.date(2024, 1, 1), dt.date(2024, 1, 4))
    ]
    history = plain_rows(tables.spark.table(f"{dim}_history"))
    tables.spark.sql(f"drop table {dim}")
    with pytest.raises(TargetError, match=f"{dim}_history\n.*\n.*an earlier table of this name"):
        names(tables, dim, "b")
    assert not tables.spark.catalog.tableExists(dim)
    assert plain_rows(tables.spark.table(f"{dim}_history")) == history
    tables.spark.sql(f"drop table {dim}_history")
    names(tables, dim, "b")
    assert plain_rows(tables.spark.table(dim), ["id", "name"]) == [(1, "b")]


def test_type_4_after_an_audit(tables: Tables, dim: str) -> None:
    first = DimensionSpec(
        key_columns="id",
        attributes={"name": 1},
        audit={},
        column_names=dict.fromkeys(("valid_from", "valid_to", "is_current", "version")),
    )
    merge(tables.spark.sql(ROW), dim, first, at="2024-01-01")
    tables.spark.sql(f"alter table {dim} add columns (last_updated date)")
    tables.spark.sql(f"update {dim} set last_updated = date '2024-01-01'")
    merge(tables.spark.sql("select 1 as id, 'b' as name"), dim, TYPE_4, at="2024-01-02")
    assert plain_rows(tables.spark.table(f"{dim}_history"), HISTORY) == [
        (1, "a", dt.date(2024, 1, 1), dt.date(2024, 1, 2))
    ]


def test_side_tables_do_not_fall_to_pieces(tables: Tables, dim: str) -> None:
    spec = DimensionSpec(key_columns="id", attributes={"name": 4}, audit={})
    with with_settings(tables.spark, {"spark.databricks.delta.autoCompact.minNumFiles": "3"}):
        for day in range(1, 6):
            row = tables.spark.sql(f"select 1 as id, 'day {day}' as name")
            merge(row, dim, spec, at=f"2024-01-0{day}")
    for table, rows in ((f"{dim}_history", 4), (f"{dim}_audit", 5)):
        history = tables.spark.sql(f"describe history {table}").where("operation = 'OPTIMIZE'")
        assert not history.isEmpty(), table
        assert tables.spark.sql(f"describe detail {table}").collect()[0]["numFiles"] <= 3
        assert tables.spark.table(table).count() == rows


def test_side_tables_lie_as_they_are_read(tables: Tables, dim: str) -> None:
    """By key, but the audit, which is read by its moments; where Delta has no statistics of the key, as they come."""
    for key, by_key in (("id", ["id"]), ("flag", [])):
        found: dict[str, list[str]] = {}
        for name, options in (
            (f"{dim}_{key}_4", {"attributes": {"name": 4}, "audit": {}}),
            (f"{dim}_{key}_2", {"attributes": {"name": 2}, "change_log": f"{dim}_{key}_2_log"}),
        ):
            spec = DimensionSpec(key_columns=key, changed_at="at", **options)
            for day in ("2024-01-01", "2024-01-02"):
                row = f"select 1 as id, true as flag, '{day}' as name, date '{day}' as at"
                merge(tables.spark.sql(row).select(key, "name", "at"), name, spec)
        for table in ("2", "2_log", "4", "4_history", "4_audit"):
            detail = tables.spark.sql(f"describe detail {dim}_{key}_{table}").collect()[0]
            found[table] = list(detail["clusteringColumns"])
        assert found == {"2": [], "2_log": by_key, "4": [], "4_history": by_key, "4_audit": ["changed_at"]}


SETTINGS = {
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.session.timeZone": "Asia/Tokyo",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "true",
    "spark.sql.ansi.enforceReservedKeywords": "true",
    "spark.sql.caseSensitive": "true",
}


def merged(tables: Tables, dim: str) -> list[Any]:
    """What two batches leave in two dimensions and beside them, with the types of all columns."""
    kinds: dict[str, dict[str, Any]] = {
        "four": {"attributes": {"*": 4}, "audit": {"actor": "me", "table": f"{dim}_four_audit"}},
        "logged": {
            "attributes": {"name": {"scd_type": 3, "changed_at": True}, "*": 2},
            "surrogate_key": {"name": "sk", "strategy": "hash"},
            "change_log": f"{dim}_log",
        },
    }
    found: list[Any] = []
    for kind, options in kinds.items():
        spec = DimensionSpec(key_columns="id", changed_at="at", valid_to_current="2999-12-31", **options)
        for day, name in ((1, "a"), (2, "b")):
            row = (
                f"select 1 as id, '{name}' as name, array('x', '{name}') as tags, "
                f"array(timestamp_micros({day})) as stamps, timestamp_micros(1700000000000000 + {day}) as at"
            )
            merge(tables.spark.sql(row), f"{dim}_{kind}", spec, batch_id="b")
    for table, leave in (
        ("four", []),
        ("four_history", []),
        ("four_audit", ["row_id", "dimension", "published_at"]),
        ("logged", []),
        ("log", ["merge_id", "logged_at"]),
    ):
        frame = tables.spark.table(f"{dim}_{table}").drop(*leave)
        found.append([table, frame.dtypes, plain_rows(frame)])
    return found


def test_settings_of_the_session(tables: Tables, dim: str) -> None:
    wanted = merged(tables, dim)
    assert ("valid_from", "timestamp") in wanted[1][1]
    with with_settings(tables.spark, SETTINGS):
        merged(tables, f"{dim}_other")
    for table, kinds, rows in wanted:
        frame = tables.spark.table(f"{dim}_other_{table}").select([name for name, _ in kinds])
        assert frame.dtypes == kinds, table
        assert plain_rows(frame) == rows, table


def test_values_are_no_sql(tables: Tables, dim: str) -> None:
    """Spark replaces ${...} in all SQL, and reads backslashes as the session says."""
    name, key = "${name}", "${a}\\'b"
    row = tables.spark.createDataFrame([(key, name)], "id string, name string")
    spec = DimensionSpec(
        key_columns="id",
        attributes={"name": 2},
        current_values=["${yes}", "no"],
        audit={"actor": "${me}", "reason": "it's"},
    )
    with with_settings(tables.spark, {"spark.sql.parser.escapedStringLiterals": "true"}):
        merge(row, dim, spec, at="2024-01-01")
    merge(row, dim, spec, at="2024-01-02")
    merge(row.selectExpr("id", "'b' as name"), dim, spec, at="2024-01-03")
    shown = plain_rows(tables.spark.table(dim), ["id", "name", "is_current", "version"])
    assert shown == [(key, name, "no", 1), (key, "b", "${yes}", 2)]
    told = plain_rows(tables.spark.table(f"{dim}_audit"), ["change_type", "actor", "reason"])
    assert told == [(kind, "${me}", "it's") for kind in ("close", "insert", "insert")]


def test_type_4_keys_that_come_and_go_in_one_batch(tables: Tables, dim: str) -> None:
    """Nothing of them reaches the dimension, and their rows are in the history."""
    spec = DimensionSpec(key_columns="id", attributes={"name": 4}, changed_at="at", deleted_when="name = 'gone'")
    row = "select {} as id, '{}' as name, date '2024-01-0{}' as at".format
    merge(tables.spark.sql(row(1, "a", 1)), dim, spec)
    for is_repeated in (False, True):
        both = tables.spark.sql(f"{row(7, 'b', 2)} union all {row(7, 'gone', 3)}")
        assert (merge(both, dim, spec).commit_version is None) == is_repeated
        assert plain_rows(tables.spark.table(f"{dim}_history"), HISTORY) == [
            (7, "b", dt.date(2024, 1, 2), dt.date(2024, 1, 3))
        ]
        assert tables.spark.table(f"{dim}__pending").isEmpty()
    assert plain_rows(tables.spark.table(dim), ["id", "name"]) == [(1, "a")]


def test_partitions_that_change_what_they_hold(tables: Tables, dim: str) -> None:
    """Delta stores '' in a partition column as NULL, and a timestamp as local time."""
    by_moment = DeltaTarget(dim, partition_by="Valid_From")
    with pytest.raises(ArgumentError, match="Valid_From, a timestamp(.*\n)*.*by a date or another"):
        merge(tables.spark.sql(ROW), by_moment, SPEC)
    assert not tables.spark.catalog.tableExists(dim)
    columns = "id int, name string, valid_from timestamp, valid_to timestamp"
    tables.spark.sql(f"create table {dim} ({columns}) using delta partitioned by (valid_from)")
    with pytest.raises(ArgumentError, match="valid_from, a timestamp"):
        merge(tables.spark.sql(ROW), dim, SPEC)
    by_name = DeltaTarget(f"{dim}_2", partition_by="NAME")
    rows = "select 1 as id, 'a' as name union all select 2, '' union all select 3, null"
    for _ in range(2):
        with pytest.raises(BatchError, match="partitioned by(.*\n)*.*got:    id = 2\n"):
            merge(tables.spark.sql(rows), by_name, SPEC, at="2024-01-01")
        merge(tables.spark.sql(rows).where("id <> 2"), by_name, SPEC, at="2024-01-01")
    assert plain_rows(tables.spark.table(f"{dim}_2"), ["id", "name"]) == [(1, "a"), (3, None)]


def test_a_history_of_someone_else(tables: Tables, dim: str) -> None:
    for columns in ("note string", "id string, valid_from date, valid_to date"):
        count = columns.count(",") + 1
        table = f"{dim}_notes_{count}"
        tables.spark.sql(f"create table {table} ({columns}) using delta")
        spec = DimensionSpec(key_columns="id", attributes={"name": 4}, history=table)
        with pytest.raises(TargetError, match="the history of a dim(.*\n)*.*choose another name"):
            merge(tables.spark.sql(ROW), dim, spec, at="2024-01-01")
        assert len(tables.spark.table(table).columns) == count
    assert not tables.spark.catalog.tableExists(dim)


def test_attributes_named_as_the_bounds_of_a_history(tables: Tables, dim: str) -> None:
    spec = DimensionSpec(key_columns="id", attributes={"*": 4})
    with pytest.raises(BatchError, match="Valid_From\n.*valid_from, valid_to, history_id"):
        merge(tables.spark.sql(f"{ROW}, 1 as Valid_From"), dim, spec)
    assert not tables.spark.catalog.tableExists(f"{dim}_history")


def test_side_tables_that_spell_columns_differently(tables: Tables, dim: str) -> None:
    columns = "ID int, NAME string, Valid_From date, VALID_TO date"
    tables.spark.sql(f"create table {dim}_history ({columns}) using delta")
    names(tables, dim, "a", "b")
    assert plain_rows(tables.spark.table(f"{dim}_history"), ["id", "name"]) == [(1, "a")]
    for day, seq in enumerate(("seq", "SEQ"), start=1):
        spec = DimensionSpec(key_columns="id", attributes=["name"], tie_break_by=seq, change_log=f"{dim}_log")
        merge(tables.spark.sql(f"{ROW}, 1 as {seq}"), f"{dim}_logged", spec, at=f"2024-01-0{day}")
    assert plain_rows(tables.spark.table(f"{dim}_logged"), ["id", "name"]) == [(1, "a")]


def test_columns_of_a_fixed_length(tables: Tables, dim: str) -> None:
    """Delta does not merge into them."""
    bounds = "valid_from date, valid_to date"
    for kind in ("char(5)", "varchar(5)"):
        table = f"{dim}_{kind[:4]}"
        tables.spark.sql(f"create table {table} (id int, name {kind}, {bounds}) using delta")
        if kind == "char(5)":
            with pytest.raises(TargetError, match="name\n.*\n.*char.5.\n.*string or varchar"):
                merge(tables.spark.sql(ROW), table, SPEC, at="2024-01-01")
        else:
            assert merge(tables.spark.sql(ROW), table, SPEC, at="2024-01-01").inserted == 1
