"""healing_merge as SQL, where the library cannot run: the same rows, tables and errors as the library's."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

import pytest
from cases import merge_cases, spec_of
from lab import Lab
from tables import plain_rows
from ways import merge_by_sql, merge_model, refused, same_tables, without_library

from healing_tables import DimensionSpec, merge

BIG = 2**40
COLUMNS = [["id", "int"], ["name", "string"], ["tier", "string"], ["seen", "timestamp"]]
OPTIONS: dict[str, Any] = {"attributes": {"name": 2, "tier": 1}, "changed_at": "seen"}


@pytest.mark.parametrize("case", merge_cases("M01"))
def test_case(lab: Lab, case: dict[str, Any]) -> None:
    spec = spec_of(case)
    assert isinstance(spec.attributes, dict)
    types = {name: item.scd_type for name, item in spec.attributes.items()}
    name = f"dim_{case['id'].lower()}"
    tables = {"dim": name, "current": name, "history": f"{name}_history"}
    for part, table in case["input"].items():
        if part != "batches":
            rows = lab.frame(table["columns"], table["rows"])
            rows.write.format("delta").saveAsTable(f"{lab.schema}.{tables[part]}")
    for batch in case["input"]["batches"]:
        merge_model(
            lab,
            name,
            lab.frame(batch["rows"]["columns"], batch["rows"]["rows"]),
            key_columns=list(spec.keys),
            attributes=types,
            valid_to_current=str(spec.valid_to_current),
            at=batch["at"],
            full_batch=batch.get("full_snapshot", False),
        )
        merge_by_sql(lab, name)
    for part, table in case["expect"].items():
        columns = [column for column, _ in table["columns"]]
        stored = lab.spark.table(f"{lab.schema}.{tables[part]}")
        own = ["history_id", "change_reason"] if part == "history" else []
        assert sorted(stored.columns) == sorted(columns + own)
        assert plain_rows(stored, columns) == plain_rows(lab.frame(table["columns"], table["rows"]))


def test_a_refusal_names_all_mistakes_and_leaves_nothing(lab: Lab) -> None:
    first = lab.frame(COLUMNS, [[1, "A", "x", "2024-01-01"], [2, "B", "x", "2024-01-01"]])
    merge_model(lab, "dim_refused", first, **OPTIONS)
    merge_by_sql(lab, "dim_refused")
    tables = {row.tableName for row in lab.spark.sql(f"show tables in {lab.schema}").collect()}
    # in the batch, and beside a row of the log
    tied = [[1, "C", "x", "2024-01-02"], [1, "D", "x", "2024-01-02"], [2, "C", "x", "2024-01-01"]]
    merge_model(lab, "dim_refused", lab.frame(COLUMNS, tied), **OPTIONS)
    message = refused(lab, "dim_refused")
    for part in (
        "two different rows for one key and moment",
        "2 keys: id = 1 at 2024-01-02 00:00:00; id = 2 at 2024-01-01 00:00:00",
        "reduce the batch, set tie_break_by, or on_tie: greatest",
    ):
        assert part in message, message
    hashed = [f"key {hashlib.md5(key).hexdigest()} at 2024-01-0" for key in (b"id = 1", b"id = 2")]
    reason = lab.newest("dim_refused")["reason"]  # the log names no key
    assert [part in reason for part in (*hashed, "2 keys: key ", "id = ")] == [True, True, True, False], reason
    wrong = lab.frame([["id", "bigint"], ["name", "array<string>"], ["seen", "string"]], [[1, ["A"], "2024-01-02"]])
    merge_model(lab, "dim_refused", wrong, **OPTIONS)
    message = refused(lab, "dim_refused")
    for part in (
        "the type bigint in the batch",
        "the type array<string> in the batch",
        "a date or a timestamp",
        "attributes: tier",
    ):
        assert part in message, message
    assert {row.tableName for row in lab.spark.sql(f"show tables in {lab.schema}").collect()} == tables
    assert lab.spark.table(f"{lab.schema}.dim_refused_changes").count() == 2
    assert lab.spark.table(f"{lab.schema}.dim_refused").count() == 2
    log = lab.spark.table(f"{lab.schema}.healing_log").where("dimension = 'dim_refused'")
    assert log.where("status = 'refused'").count() == 2


def test_an_option_that_needs_the_library(lab: Lab) -> None:
    merge_model(lab, "dim_options", lab.frame(COLUMNS, []), change_log=False, **OPTIONS)
    message = refused(lab, "dim_options")
    for part in ("change_log: false", "the method session for this option", "method thrift"):
        assert part in message, message


def test_a_guard_leaves_no_row_of_the_batch_in_the_log(lab: Lab) -> None:
    rows = [[key, "A", "x", "2024-01-01"] for key in range(30)]
    options = {**OPTIONS, "full_batch": True, "at": "2024-01-02"}
    merge_model(lab, "dim_guarded", lab.frame(COLUMNS, rows), **options)
    merge_by_sql(lab, "dim_guarded")
    before = lab.spark.table(f"{lab.schema}.dim_guarded_changes").count()
    merge_model(lab, "dim_guarded", lab.frame(COLUMNS, rows[:5]), **{**options, "at": "2024-01-03"})
    message = refused(lab, "dim_guarded")
    assert "at most 0.5 of the current keys to end" in message
    assert "25 of 30" in message
    merge_model(lab, "dim_guarded", lab.frame(COLUMNS, []), **{**options, "at": "2024-01-03"})
    assert "a batch without rows, which would end every key" in refused(lab, "dim_guarded")
    assert lab.spark.table(f"{lab.schema}.dim_guarded_changes").count() == before
    assert lab.spark.table(f"{lab.schema}.dim_guarded").where("is_current").count() == 30


def test_rows_set_aside_are_those_of_the_library(lab: Lab) -> None:
    """With the library in between, which adds none of them again."""
    columns = [*COLUMNS, ["reason", "string"], ["tags", "array<string>"], ["odd name", "decimal(5,2)"]]
    rows: list[list[Any]] = [
        [1, "A", "x", "2024-01-01", "r", ["t"], "1.50"],
        [None, "B", "x", "2024-01-01", None, None, None],
        [None, "B", "x", "2024-01-01", None, None, None],
        [2, "C", None, None, "r", ["t", None], "2.00"],
        [3, "D", "x", "9999-12-31", None, [], "0.00"],
    ]
    name = f"{lab.schema}.dim_aside"
    merge_model(lab, "dim_aside", lab.frame(columns, rows), **OPTIONS)
    assert merge_by_sql(lab, "dim_aside")["rows_set_aside"] == 4
    assert any("4 rows of the batch set aside, see" in text for text in lab.log)
    by_sql = lab.spark.table(f"{name}__set_aside").collect()
    assert sorted(row["set_aside_reason"] for row in by_sql) == [
        "NULL in key column id",
        "NULL moment in seen",
        "moment at or after the end of time in seen",
    ]
    spec = DimensionSpec(key_columns="id", change_log=f"{name}_changes", **OPTIONS)
    assert merge(lab.frame(columns, rows), name, spec).set_aside == 4
    assert lab.spark.table(f"{name}__set_aside").count() == 3
    twin = f"{lab.schema}.dim_twin"
    merge(lab.frame(columns, rows), twin, DimensionSpec(key_columns="id", **OPTIONS))
    by_library = lab.spark.table(f"{twin}__set_aside")
    assert by_library.dtypes == lab.spark.table(f"{name}__set_aside").dtypes
    shown = [column for column in by_library.columns if column not in ("set_aside_at", "set_aside_batch_id")]
    assert plain_rows(by_library, shown) == plain_rows(lab.spark.table(f"{name}__set_aside"), shown)


@pytest.mark.slow
def test_a_version_that_the_log_lacks_is_not_removed(lab: Lab) -> None:
    rows = [[1, "A", "x", "2024-01-01"], [1, "B", "x", "2024-01-02"], [2, "A", "x", "2024-01-01"]]
    merge_model(lab, "dim_unlogged", lab.frame(COLUMNS, rows), **OPTIONS)
    merge_by_sql(lab, "dim_unlogged")
    lab.spark.sql(f"delete from {lab.schema}.dim_unlogged_changes where name = 'B'")
    merge_model(lab, "dim_unlogged", lab.frame(COLUMNS, [[1, "C", "x", "2024-01-03"]]), **OPTIONS)
    message = refused(lab, "dim_unlogged")
    assert "a stored version that is not in the change log" in message
    assert "id = 1" in message
    assert lab.spark.table(f"{lab.schema}.dim_unlogged_changes").count() == 2
    # as the error says: a new log begins with the stored rows
    lab.spark.sql(f"drop table {lab.schema}.dim_unlogged_changes")
    merge_by_sql(lab, "dim_unlogged")
    shown = ["id", "name", "valid_from"]
    assert plain_rows(lab.spark.table(f"{lab.schema}.dim_unlogged"), shown) == [
        (1, "A", "2024-01-01 00:00:00"),
        (1, "B", "2024-01-02 00:00:00"),
        (1, "C", "2024-01-03 00:00:00"),
        (2, "A", "2024-01-01 00:00:00"),
    ]


def test_a_new_column_and_one_that_is_missing(lab: Lab) -> None:
    """As the library: the new one is added to all rows, the missing one becomes NULL."""
    options = {**OPTIONS, "attributes": {"*": 2}}
    rows = [[1, "A", "x", "2024-01-01"], [2, "B", "x", "2024-01-01"]]
    wider = [*COLUMNS[:2], ["mail", "string"], COLUMNS[3]]
    later = [[1, "A", "a@b", "2024-01-02"], [3, "C", None, "2024-01-02"]]
    name = f"{lab.schema}.dim_columns"
    merge_model(lab, "dim_columns", lab.frame(COLUMNS, rows), **options)
    merge_by_sql(lab, "dim_columns")
    merge_model(lab, "dim_columns", lab.frame(wider, later), **options)
    message = refused(lab, "dim_columns")
    for part in ("mail", "set on_schema_change: append_new_columns", "tier", "set missing_columns: keep, or null"):
        assert part in message, message
    more = {**options, "missing_columns": "null"}
    merge_model(lab, "dim_columns", None, config={"on_schema_change": "append_new_columns"}, **more)
    merge_by_sql(lab, "dim_columns")
    shown = ["id", "name", "tier", "mail", "valid_from", "is_current"]
    assert lab.spark.table(name).columns[-1] == "mail"
    assert plain_rows(lab.spark.table(name), shown) == [
        (1, "A", "x", None, "2024-01-01 00:00:00", False),
        (1, "A", None, "a@b", "2024-01-02 00:00:00", True),
        (2, "B", "x", None, "2024-01-01 00:00:00", True),
        (3, "C", None, None, "2024-01-02 00:00:00", True),
    ]


def test_a_late_deletion_at_the_first_moment_of_a_key(lab: Lab) -> None:
    """Type 4: the key was never there, so its rows leave the history, too."""
    columns = [*COLUMNS, ["op", "string"]]
    options = {"attributes": {"name": 4}, "changed_at": "seen", "deleted_when": "op = 'D'", "on_tie": "greatest"}
    batches: list[list[list[Any]]] = [
        [[1, "A", "x", "2024-01-05", "U"], [1, None, None, "2024-01-09", "D"], [2, "B", "x", "2024-01-05", "U"]],
        [[1, None, None, "2024-01-05", "D"]],
    ]
    for rows in batches:
        merge_model(lab, "dim_never", lab.frame(columns, rows), max_removed_keys_ratio=1, **options)
        merge_by_sql(lab, "dim_never")
    assert [row.id for row in lab.spark.table(f"{lab.schema}.dim_never").collect()] == [2]
    assert lab.spark.table(f"{lab.schema}.dim_never_history").isEmpty()


@pytest.mark.slow
@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("types", [{"points": 6, "rate": 3, "price": 2}, {"points": 4, "rate": 1, "price": 4}])
def test_types_are_widened(lab: Lab, types: dict[str, int]) -> None:
    """As in the library: in all tables, once the batch has passed its checks; also with a new column."""
    name = f"dim_wider_{types['points']}"
    ddl = "id {0}, points {0}, rate {1}, price {2}, seen timestamp".format
    narrow, wide = ddl("int", "float", "decimal(9,2)"), ddl("bigint", "double", "decimal(12,2)")
    options: dict[str, Any] = {"attributes": types, "changed_at": "seen", "audit": {"actor": "night"}}
    spec = DimensionSpec(key_columns="id", change_log=f"{lab.schema}.{name}_twin_changes", **options)
    sync = {"on_schema_change": "sync_all_columns"}

    def batch(rows: list[tuple[Any, ...]], kinds: str) -> Any:
        values = ", ".join(f"({key}, {n}, {rate}, {price}, '{at}')" for key, n, rate, price, at in rows)
        casts = ", ".join(f"cast({part.split()[0]} as {part.split()[1]})" for part in kinds.split(", "))
        names = [part.split()[0] for part in kinds.split(", ")]
        return lab.spark.sql(f"select {casts} from values {values} as v ({', '.join(names)})").toDF(*names)

    def both(given: Any, **config: Any) -> None:
        merge_model(lab, name, given, config=config, **options)
        merge_by_sql(lab, name)
        merge(given, f"{lab.schema}.{name}_twin", replace(spec, **config))

    both(batch([(1, 1, 0.5, 1.25, "2024-01-01"), (2, 1, 0.1, 1.25, "2024-01-01")], narrow))
    before = lab.spark.table(f"{lab.schema}.{name}").dtypes
    big = batch([(1, BIG, 0.1, 1.25, "2024-01-05"), (BIG, 7, 0.5, 1.25, "2024-01-05")], wide)
    merge_model(lab, name, big, **options)
    assert refused(lab, name).count("set on_schema_change: sync_all_columns, which widens the stored column") == 4
    tied = batch([(1, 1, 0, 0, "2024-01-05"), (1, BIG, 0, 0, "2024-01-05")], wide)
    merge_model(lab, name, tied, config=sync, **options)
    assert "two different rows" in refused(lab, name)
    assert lab.spark.table(f"{lab.schema}.{name}").dtypes == before
    both(big, **sync)
    both(batch([(1, BIG + 1, 0.2, 1.12, "2024-01-03")], wide), **sync)  # late
    both(batch([(2, 3, 0.5, 1.5, "2024-01-06")], narrow))  # narrower again
    same_tables(lab, name)
    kinds = dict(lab.spark.table(f"{lab.schema}.{name}_changes").dtypes)
    assert (kinds["id"], kinds["points"], kinds["rate"], kinds["price"]) == (
        "bigint",
        "bigint",
        "double",
        "decimal(12,2)",
    )
    options["attributes"] = {**types, "mail": types["price"]}
    spec = replace(spec, attributes=options["attributes"])
    both(batch([(2, 4, 0.5, 1.5, "2024-01-07")], wide.replace("12,2", "14,2")).selectExpr("*", "'a@b' as mail"), **sync)
    # as SQL, the new column is in the hash of each row; in the library, of those that it writes
    table = lab.spark.table(f"{lab.schema}.{name}").drop("row_hash")
    twin = lab.spark.table(f"{lab.schema}.{name}_twin").drop("row_hash")
    assert table.dtypes == twin.dtypes and table.exceptAll(twin).isEmpty() and twin.exceptAll(table).isEmpty()


@pytest.mark.slow
@pytest.mark.parametrize("has_seeds", [False, True])
def test_a_column_that_a_batch_lacks_keeps_its_values(lab: Lab, has_seeds: bool) -> None:
    """As in the library: the value of the key's row before it in the log, also of a late row."""
    name = f"dim_kept_{has_seeds}".lower()
    options: dict[str, Any] = {"attributes": {"name": 2, "tier": 2}, "changed_at": "seen"}
    options["deleted_when"] = "name = 'gone'"
    full = [[1, "A", "x", "2024-01-01"], [1, "B", "y", "2024-01-05"], [2, "A", "x", "2024-01-01"]]
    short = [COLUMNS[0], COLUMNS[1], COLUMNS[3]]
    # late, later, twice, after an end, of a new key, that end a key, without a place
    less = [[1, "C", "2024-01-03"], [1, "D", "2024-01-07"], [1, "E", "2024-01-08"], [2, "gone", "2024-01-02"]]
    less += [[3, "A", "2024-01-02"], [None, "A", "2024-01-02"]]
    back = [[2, "F", "2024-01-09"], [1, "B", "2024-01-05"]]
    if has_seeds:
        spec = DimensionSpec(key_columns="id", change_log=False, **options)
        merge(lab.frame(COLUMNS, full), f"{lab.schema}.{name}", spec)
    merge_model(lab, name, lab.frame(COLUMNS, full), **options)
    merge_by_sql(lab, name)
    by_library = f"{lab.schema}.{name}_by_library"
    spec = DimensionSpec(key_columns="id", change_log=not has_seeds and f"{by_library}_changes", **options)
    merge(lab.frame(COLUMNS, full), by_library, spec)
    spec = DimensionSpec(key_columns="id", missing_columns="keep", change_log=f"{by_library}_changes", **options)
    for rows in (less, back):
        merge_model(lab, name, lab.frame(short, rows), missing_columns="keep", **options)
        merge_by_sql(lab, name)
        assert "lacks tier, which the table has: their stored values stay" in "\n".join(lab.log)
        merge(lab.frame(short, rows), by_library, spec)
    shown = ["id", "name", "tier", "valid_from", "valid_to"]
    found = plain_rows(lab.spark.table(f"{lab.schema}.{name}"), shown)
    assert found == plain_rows(lab.spark.table(by_library), shown)
    assert [row[2] for row in found] == ["x", "y", "x", "y", "y", "x", "x", None]
    logs = [
        plain_rows(lab.spark.table(f"{table}_changes"), ["id", "name", "tier", "changed_at", "is_deleted"])
        for table in (f"{lab.schema}.{name}", by_library)
    ]
    assert logs[0] == logs[1]


@pytest.mark.slow
def test_a_full_refresh_comes_from_the_log(lab: Lab) -> None:
    rows = [[1, "A", "x", "2024-01-01"], [1, "B", "x", "2024-01-02"]]
    merge_model(lab, "dim_again", lab.frame(COLUMNS, rows), **OPTIONS)
    merge_by_sql(lab, "dim_again")
    before = plain_rows(lab.spark.table(f"{lab.schema}.dim_again"))
    lab.spark.sql(f"update {lab.schema}.dim_again set name = 'damaged' where name = 'A'")
    merge_model(lab, "dim_again", lab.frame(COLUMNS, rows[:1]), **OPTIONS)
    merge_by_sql(lab, "dim_again", "--full-refresh")
    assert plain_rows(lab.spark.table(f"{lab.schema}.dim_again")) == before
    lab.spark.sql(f"delete from {lab.schema}.dim_again_changes")
    with without_library():
        status, message = lab.dbt("run", "--select", "dim_again", "--full-refresh")["dim_again"]
    assert status == "error" and "allow_full_refresh: true" in message
    assert plain_rows(lab.spark.table(f"{lab.schema}.dim_again")) == before
    merge_model(lab, "dim_again", None, allow_full_refresh=True, **OPTIONS)
    merge_by_sql(lab, "dim_again", "--full-refresh")
    assert lab.spark.table(f"{lab.schema}.dim_again").count() == 1


@pytest.mark.slow
def test_a_constraint_of_the_table_leaves_no_row_in_the_log(lab: Lab) -> None:
    """Delta refuses NULL, too. A later merge without such rows goes on."""
    name = f"{lab.schema}.dim_checked"
    merge_model(lab, "dim_checked", lab.frame(COLUMNS, [[1, "A", "x", "2024-01-01"]]), **OPTIONS)
    merge_by_sql(lab, "dim_checked")
    lab.spark.sql(f"alter table {name} add constraint some_tiers check (tier in ('x', 'y,]=') and id > 0)")
    rows = [[1, "B", None, "2024-01-02"], [2, "B", "z", "2024-01-02"], [3, "B", "y,]=", "2024-01-02"]]
    merge_model(lab, "dim_checked", lab.frame(COLUMNS, rows), **OPTIONS)
    message = refused(lab, "dim_checked")
    for part in ("some_tiers", "rows that satisfy this constraint of the table: tier in", "3 rows in violation"):
        assert part in message, message
    assert lab.spark.table(f"{name}_changes").count() == 1
    merge_model(lab, "dim_checked", lab.frame(COLUMNS, rows[2:]), **OPTIONS)
    merge_by_sql(lab, "dim_checked")
    assert lab.rows("dim_checked", "id", "tier") == [(1, "x"), (3, "y,]=")]


@pytest.mark.slow
def test_what_dbt_does_with_any_model(lab: Lab) -> None:
    """Unit tests, comments, a deferred upstream model, a retry."""
    merge_model(lab, "dim_around", lab.frame(COLUMNS, [[1, "A", "x", "2024-01-01"]]))
    lab.model("stg_around", f"select * from {lab.schema}.dim_around_batch")
    config = {"unique_key": "id", "persist_docs": {"relation": True, "columns": True}}
    config["meta"] = {"healing_tables": OPTIONS}
    lab.model("dim_around", "select * from {{ ref('stg_around') }}", materialized="healing_merge", **config)
    lab.write(
        "models/around.yml",
        """
version: 2
models:
  - name: dim_around
    description: Who they are
    columns: [{name: name, description: What they are called}]
unit_tests:
  - name: a_batch
    model: dim_around
    given: [{input: ref('stg_around'), rows: [{id: 7, name: Ann, tier: x, seen: '2024-01-01'}]}]
    expect: {rows: [{id: 7, name: Ann}]}
""",
    )
    lab.writes_artifacts = True
    with without_library():
        assert lab.dbt("build", "--select", "stg_around", "dim_around").keys() == {
            "stg_around",
            "dim_around",
            "a_batch",
        }
        assert lab.succeeded, lab.results
        (lab.home / "target").rename(lab.home / "state")
        lab.spark.sql(f"drop view {lab.schema}.stg_around")
        tied = [[1, "B", "x", "2024-01-02"], [1, "C", "x", "2024-01-02"]]
        lab.frame(COLUMNS, tied).write.saveAsTable(f"{lab.schema}.dim_around_batch", format="parquet", mode="overwrite")
        lab.spark.sql(f"create view {lab.schema}.stg_around as select * from {lab.schema}.dim_around_batch")
        where = ["--select", "dim_around", "--defer", "--state", str(lab.home / "state")]
        assert lab.dbt("run", *where)["dim_around"][0] == "error"
        lab.frame(COLUMNS, tied[:1]).write.insertInto(f"{lab.schema}.dim_around_batch", overwrite=True)
        assert lab.dbt("retry")["dim_around"][0] == "success", lab.results
    lab.writes_artifacts = False
    details = {row[0]: row for row in lab.spark.sql(f"describe table extended {lab.schema}.dim_around").collect()}
    assert details["Comment"][1] == "Who they are" and details["name"][2] == "What they are called"
    assert lab.rows("dim_around", "name", "is_current") == [("A", False), ("B", True)]


@pytest.mark.slow
def test_an_empty_run_ends_no_key(lab: Lab) -> None:
    rows = [[1, "A", "x", "2024-01-01"], [2, "B", "x", "2024-01-01"]]
    merge_model(lab, "dim_empty", lab.frame(COLUMNS, rows), full_batch=True, at="2024-01-02", **OPTIONS)
    merge_by_sql(lab, "dim_empty")
    merge_model(lab, "dim_empty", lab.frame(COLUMNS, []), full_batch=True, at="2024-01-03", **OPTIONS)
    assert merge_by_sql(lab, "dim_empty", "--empty")["status"] == "unchanged"
    assert lab.spark.table(f"{lab.schema}.dim_empty").where("is_current").count() == 2


@pytest.mark.slow
def test_a_table_of_another_format_is_refused(lab: Lab) -> None:
    lab.spark.sql(f"create table {lab.schema}.dim_orc using orc as select 1 as id, 'A' as name")
    merge_model(lab, "dim_orc", lab.frame(COLUMNS, [[1, "A", "x", "2024-01-01"]]), full_batch=True, **OPTIONS)
    assert "a table in delta, or none yet" in refused(lab, "dim_orc")


@pytest.mark.slow
def test_names_that_the_statements_use_themselves(lab: Lab) -> None:
    """With a log that begins with stored rows, and full batches."""
    names = ["state", "place", "taken", "is_logged", "at", "before", "key_1"]
    columns = [*([name, "string"] for name in names), ["seen", "timestamp"]]
    rows = [[f"{key} {name}" for name in names] + ["2024-01-01"] for key in "ab"]
    options: dict[str, Any] = {"key_columns": ["state", "at"], "attributes": {"*": 2, "place": 3}, "changed_at": "seen"}
    name = f"{lab.schema}.dim_names"
    merge(lab.frame(columns, rows), name, DimensionSpec(**options))
    more = {**options, "full_batch": True, "max_removed_keys_ratio": 1}
    merge_model(lab, "dim_names", lab.frame(columns, rows[:1]), at="2024-01-02", **more)
    merge_by_sql(lab, "dim_names")
    ended = lab.spark.table(name).where("not is_current").select("state", "place", "valid_to").collect()
    assert [(row.state, row.place, str(row.valid_to)) for row in ended] == [
        ("b state", "b place", "2024-01-02 00:00:00")
    ]


@pytest.mark.slow
@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_a_full_batch_of_days(lab: Lab, zone: str) -> None:
    columns = [["id", "int"], ["name", "string"]]
    name = f"dim_days_{zone[:3].lower()}"
    before = str(lab.spark.conf.get("spark.sql.session.timeZone"))
    lab.spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        for at, rows in (("2024-01-01", [[1, "A"], [2, "B"]]), ("2024-01-02", [[1, "C"]])):
            merge_model(lab, name, lab.frame(columns, rows), attributes={"name": 2}, full_batch=True, at=at)
            merge_by_sql(lab, name)
        shown = "id, name, cast(valid_from as string), cast(valid_to as string)"
        found = lab.spark.sql(f"select {shown} from {lab.schema}.{name} order by 1, 3").collect()
    finally:
        lab.spark.conf.set("spark.sql.session.timeZone", before)
    assert [tuple(row) for row in found] == [
        (1, "A", "2024-01-01", "2024-01-02"),
        (1, "C", "2024-01-02", "9999-12-31"),
        (2, "B", "2024-01-01", "2024-01-02"),
    ]


@pytest.mark.slow
def test_a_first_batch_that_is_refused_while_it_is_written(lab: Lab) -> None:
    """After its rows were logged: they are withdrawn. The next merge, of the library, finds a log and no dimension."""
    rows = [[1, "A", "", "2024-01-01"], [2, "B", "x", "2024-01-01"]]
    options: dict[str, Any] = {"config": {"partition_by": "tier"}, "attributes": {"*": 2}, "changed_at": "seen"}
    merge_model(lab, "dim_parts", lab.frame(COLUMNS, rows), **options)
    assert "a partition stores it as NULL" in refused(lab, "dim_parts")
    log = f"{lab.schema}.dim_parts_changes"
    assert lab.spark.table(log).count() == 0
    merge_model(lab, "dim_parts", lab.frame(COLUMNS, rows[1:]), **options)
    merge_by_sql(lab, "dim_parts")
    lab.spark.sql(f"drop table {lab.schema}.dim_parts")
    spec = DimensionSpec(key_columns="id", attributes={"*": 2}, changed_at="seen", change_log=log)
    merge(lab.frame(COLUMNS, [[3, "C", "x", "2024-01-01"]]), f"{lab.schema}.dim_parts", spec)
    assert plain_rows(lab.spark.table(f"{lab.schema}.dim_parts"), ["id"]) == [(2,), (3,)]


@pytest.mark.slow
@pytest.mark.parametrize("has_log", [False, True], ids=["no log", "a log without causes"])
@pytest.mark.parametrize("is_named", [True, False], ids=["named", "not named"])
def test_causes_that_are_stored_already(lab: Lab, is_named: bool, has_log: bool) -> None:
    """They stay, also those of versions before a late change, and if the model does not name them any more."""
    name = f"causes_{is_named}_{has_log}".lower()
    table = f"{lab.schema}.{name}"
    columns = [*COLUMNS, ["why", "string"], ["origin", "string"]]
    causes: dict[str, Any] = {"change_reason": "why", "change_source": "origin"}
    names: dict[str, Any] = {"column_names": {"change_reason": "because"}, "audit": {"source": "the default"}}
    days = [
        [[1, "A", "x", "2024-01-01", "opened", "crm"], [2, "B", "x", "2024-01-01", None, None]],
        [[1, "C", "y", "2024-01-05", "moved", "web"]],
        [[1, "L", "z", "2024-01-03", "late", "erp"], [2, "B2", "y", "2024-01-04", "renamed", None]],
    ]
    spec = DimensionSpec(key_columns="id", **OPTIONS, **causes, **names)
    for day in days[:2]:
        merge(lab.frame(columns, day), table, spec)
    if has_log:
        plain = DimensionSpec(key_columns="id", **OPTIONS, **names, change_log=f"{table}_changes")
        merge(lab.frame(columns, []).drop("why", "origin"), table, plain)
    last = lab.frame(columns, days[2])
    merge_model(
        lab, name, last if is_named else last.drop("why", "origin"), **OPTIONS, **names, **causes if is_named else {}
    )
    merge_by_sql(lab, name)
    rows = lab.spark.table(table).orderBy("id", "valid_from").select("name", "because", "change_source").collect()
    assert [tuple(row) for row in rows] == [
        ("A", "opened", "crm"),
        ("L", "late" if is_named else "changed", "erp" if is_named else "the default"),
        ("C", "moved", "web"),
        ("B", "new", "the default"),
        ("B2", "renamed" if is_named else "changed", "the default"),
    ]


@pytest.mark.slow
def test_a_batch_again_over_stored_versions(lab: Lab) -> None:
    """Of types 0, 1 and 3, a stored version does not tell what a row at its start has said."""
    name = f"{lab.schema}.dim_resent"
    columns = [["id", "int"], ["name", "string"], ["born", "string"], ["mail", "string"], ["seen", "timestamp"]]
    options: dict[str, Any] = {"attributes": {"name": 2, "born": 0, "mail": 1}, "changed_at": "seen"}
    days = [
        [[1, "A", "x", "m1", "2024-01-01"], [2, "B", "x", "m1", "2024-01-01"]],
        [[1, "C", "y", "m2", "2024-01-05"], [2, "B", "z", "m1", "2024-01-05"]],
    ]
    spec = DimensionSpec(key_columns="id", **options)
    for day in days:
        merge(lab.frame(columns, day), name, spec)
    before = plain_rows(lab.spark.table(name))
    for day in reversed(days):
        merge_model(lab, "dim_resent", lab.frame(columns, day), **options)
        merge_by_sql(lab, "dim_resent")
        assert plain_rows(lab.spark.table(name)) == before
    merge_model(lab, "dim_resent", lab.frame(columns, [[1, "D", "x", "m1", "2024-01-01"]]), **options)
    assert "two different rows for one key and moment" in refused(lab, "dim_resent")


@pytest.mark.slow
def test_a_table_that_someone_else_has_made(lab: Lab) -> None:
    """Partitions and spellings that the model does not name stay as they are."""
    name = f"{lab.schema}.dim_made"
    lab.spark.sql(
        f"create table {name} (id int, name string, PREVIOUS_NAME string, current_name string, tier string, "
        "valid_from timestamp, valid_to timestamp, is_current boolean) using delta partitioned by (tier)"
    )
    lab.spark.sql(
        f"insert into {name} values (1, 'A', null, 'A', 'x', timestamp '2024-01-01', timestamp '9999-12-31', true)"
    )
    options = OPTIONS | {"attributes": {"name": 6, "tier": 2}}
    described = f"describe table {name}"
    details = lab.spark.sql(described).collect()
    merge_model(lab, "dim_made", lab.frame(COLUMNS, [[1, "B", "x", "2024-01-05"]]), **options)
    merge_by_sql(lab, "dim_made")
    assert lab.spark.sql(described).collect() == details
    rows = lab.spark.table(name).orderBy("valid_from").select("name", "PREVIOUS_NAME", "current_name").collect()
    assert [tuple(row) for row in rows] == [("A", None, "B"), ("B", "A", "B")]


@pytest.mark.slow
def test_a_new_column_over_a_version_that_the_log_lacks(lab: Lab) -> None:
    name = f"{lab.schema}.dim_lacks"
    merge_model(lab, "dim_lacks", lab.frame(COLUMNS, [[1, "A", "x", "2024-01-01"]]), **OPTIONS)
    merge_by_sql(lab, "dim_lacks")
    lab.spark.sql(f"insert into {name} select 2 as id, * except (id) from (select * from {name} limit 1)")
    wider = lab.frame([*COLUMNS, ["city", "string"]], [[1, "A", "x", "2024-01-02", "Rome"]])
    options = OPTIONS | {"attributes": {"name": 2, "tier": 1, "city": 2}}
    merge_model(lab, "dim_lacks", wider, **options, config={"on_schema_change": "append_new_columns"})
    assert "a stored version that is not in the change log" in refused(lab, "dim_lacks")
    assert lab.spark.table(name).count() == 2


@pytest.mark.slow
def test_a_dropped_dimension_has_the_types_of_its_log(lab: Lab) -> None:
    name = f"{lab.schema}.dim_types"
    wide = [["id", "bigint"], ["name", "string"], ["tier", "decimal(12,2)"], ["seen", "timestamp"]]
    merge_model(lab, "dim_types", lab.frame(wide, [[1, "A", "1.50", "2024-01-01"]]), **OPTIONS)
    merge_by_sql(lab, "dim_types")
    types = lab.spark.table(name).dtypes
    lab.spark.sql(f"drop table {name}")
    narrow = [["id", "int"], ["name", "string"], ["tier", "int"], ["seen", "timestamp"]]
    merge_model(lab, "dim_types", lab.frame(narrow, [[1, "B", 2, "2024-01-05"]]), **OPTIONS)
    merge_by_sql(lab, "dim_types")
    assert lab.spark.table(name).dtypes == types
    assert lab.spark.table(name).count() == 2
