"""healing_merge as SQL into Hive tables, in parquet and ORC: one commit names the folders of all tables."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from dbt.adapters.spark import session as dbt_session
from lab import Lab
from tables import plain_rows
from ways import merge_by_sql, merge_model, refused, same_tables, without_library

from healing_tables import DimensionSpec, HiveTarget, merge

COLUMNS = [["id", "int"], ["name", "string"], ["tier", "string"], ["seen", "timestamp"], ["why", "string"]]
OPTIONS: dict[str, Any] = {"attributes": {"name": 2, "tier": 1}, "changed_at": "seen"}
PARQUET = {"file_format": "parquet"}
FIRST: list[list[Any]] = [[1, "A", "x", "2024-01-01", None], [2, "A", "x", "2024-01-01", "moved"]]


def commits(lab: Lab, name: str) -> list[str]:
    return sorted(row[0] for row in lab.spark.sql(f"show partitions {lab.schema}.{name}__commits").collect())


@pytest.mark.parametrize(
    ("file_format", "options", "config"),
    [
        ("parquet", {}, {}),
        pytest.param("orc", {"key_buckets": 3}, {}, marks=pytest.mark.slow),
        pytest.param("parquet", {}, {"partition_by": ["is_current"]}, marks=pytest.mark.slow),
    ],
)
def test_all_tables_are_those_of_the_library(
    lab: Lab, file_format: str, options: dict[str, Any], config: dict[str, Any]
) -> None:
    """Numbers as keys, causes, audit, rows set aside, a late row, an end, a row again, a new column."""
    name = f"dim_{file_format}_{'_'.join([*options, *config])}".strip("_")
    given = {**OPTIONS, "audit": {"actor": "night"}, "deleted_when": "name = 'gone'", "change_reason": "why"}
    given["surrogate_key"] = {"name": "sk", "strategy": "sequence"}
    spec = DimensionSpec(key_columns="id", change_log=f"{lab.schema}.{name}_twin_changes", **given)
    twin = HiveTarget(f"{lab.schema}.{name}_twin", file_format, **options, **config)

    def both(batch: Any, hidden: tuple[str, ...] = (), **more: Any) -> None:
        merge_model(lab, name, batch, config={"file_format": file_format, **config, **more}, **options, **given)
        merge_by_sql(lab, name)
        merge(batch, twin, replace(spec, **more))
        # in the JSON of the audit, the library has a partition column in its place, and not at the end
        same_tables(lab, name, *hidden, *(["_audit"] if config else []))

    both(lab.frame(COLUMNS, [*FIRST, [None, "B", "x", "2024-01-01", None]]))
    late = [
        [1, "C", "y", "2024-01-05", "moved"],
        [1, "B", "x", "2024-01-03", None],
        [2, "gone", None, "2024-01-04", None],
    ]
    both(lab.frame(COLUMNS, late))
    both(lab.frame(COLUMNS, [*late[:1], [3, "A", "x", "2024-01-02", None], [None, "B", "x", "2024-01-01", None]]))
    both(lab.frame(COLUMNS, late[:1]))  # nothing new
    given["attributes"] = {**OPTIONS["attributes"], "mail": 2}
    spec = replace(spec, attributes=given["attributes"])
    wider = lab.frame([*COLUMNS, ["mail", "string"]], [[1, "D", "y", "2024-01-06", None, "a@b"]])
    # as SQL, the new column is in the hash of each row; in the library, of those that it writes
    both(wider, ("row_hash", "_audit"), on_schema_change="append_new_columns")
    assert lab.rows(name, "id", "name", "mail", "sk")[-1] == (3, "A", None, 5)


@pytest.mark.slow
def test_a_refusal_leaves_nothing(lab: Lab) -> None:
    merge_model(lab, "dim_refused", lab.frame(COLUMNS, FIRST), config=PARQUET, **OPTIONS)
    merge_by_sql(lab, "dim_refused")
    before = commits(lab, "dim_refused")
    tied: list[list[Any]] = [
        [1, "B", "x", "2024-01-02", None],
        [1, "C", "x", "2024-01-02", None],
        [None, "C", "x", "2024-01-02", None],
    ]
    merge_model(lab, "dim_refused", lab.frame(COLUMNS, tied), config=PARQUET, **OPTIONS)
    assert "two different rows for one key and moment" in refused(lab, "dim_refused")
    merge_model(lab, "dim_refused", lab.frame(COLUMNS, tied[2:]), config=PARQUET, full_batch=True, **OPTIONS)
    assert "which would end every key" in refused(lab, "dim_refused")
    assert commits(lab, "dim_refused") == before
    assert lab.spark.table(f"{lab.schema}.dim_refused_changes").count() == 2
    assert not lab.spark.catalog.tableExists(f"{lab.schema}.dim_refused__set_aside")


def test_what_needs_the_library_or_another_table(lab: Lab) -> None:
    merge_model(
        lab, "dim_history", lab.frame(COLUMNS, FIRST), config=PARQUET, attributes={"name": 4}, changed_at="seen"
    )
    message = refused(lab, "dim_history")
    assert "an attribute of type 4 in parquet" in message and "the method session for this option" in message
    merge(lab.frame(COLUMNS, FIRST).drop("why"), f"{lab.schema}.dim_delta", DimensionSpec(key_columns="id", **OPTIONS))
    lab.spark.sql(f"create table {lab.schema}.dim_managed using parquet as select * from {lab.schema}.dim_delta")
    merge_model(lab, "dim_managed", lab.frame(COLUMNS, FIRST), config=PARQUET, **OPTIONS)
    message = refused(lab, "dim_managed")
    assert "a managed table, whose files belong to the metastore" in message, message
    assert "healing_tables.convert_table" in message


@pytest.mark.slow
def test_a_log_begins_with_the_stored_rows(lab: Lab) -> None:
    name = f"{lab.schema}.dim_begun"
    target, spec = HiveTarget(name, "parquet"), DimensionSpec(key_columns="id", change_log=False, **OPTIONS)
    merge(lab.frame(COLUMNS, FIRST).drop("why"), target, spec)
    late = lab.frame(COLUMNS, [[1, "B", "x", "2024-01-05", None], [1, "C", "x", "2024-01-03", None]]).drop("why")
    merge_model(lab, "dim_begun", late, config=PARQUET, **OPTIONS)
    merge_by_sql(lab, "dim_begun")
    shown = ["id", "valid_from", "name"]
    assert [row[2] for row in plain_rows(lab.spark.table(name), shown)] == ["A", "C", "B", "A"]
    assert lab.spark.table(f"{name}_changes").where("merge_id = 'seed' and is_seed").count() == 2
    # the dimension notes it
    with pytest.raises(Exception, match="the change log of this dimension"):
        merge(late, target, replace(spec, change_log=f"{name}_other"))
    merge_model(lab, "dim_begun", late, config=PARQUET, change_log="dim_begun_other", **OPTIONS)
    assert "the change log of this dimension" in refused(lab, "dim_begun")


@pytest.mark.slow
def test_a_full_refresh_comes_from_the_log(lab: Lab) -> None:
    name = f"{lab.schema}.dim_again"
    merge_model(lab, "dim_again", lab.frame(COLUMNS, FIRST), config=PARQUET, **OPTIONS)
    merge_by_sql(lab, "dim_again")
    before = plain_rows(lab.spark.table(name))
    lab.spark.sql(f"insert into {name} select * from {name} where id = 1")
    merge_by_sql(lab, "dim_again", "--full-refresh")
    assert plain_rows(lab.spark.table(name)) == before
    # of other types it is refused, and a dropped table comes back
    merge_model(lab, "dim_again", None, config=PARQUET, valid_to_current=None, **{**OPTIONS, "attributes": {"name": 2}})
    with without_library():
        status, message = lab.dbt("run", "--select", "dim_again", "--full-refresh")["dim_again"]
    assert status == "error" and "drop the table; the next merge makes it again" in message, message
    assert plain_rows(lab.spark.table(name)) == before
    lab.spark.sql(f"drop table {name}")
    merge_by_sql(lab, "dim_again")
    assert lab.rows("dim_again", "id", "name") == [(1, "A"), (2, "A")]
    assert "tier" not in lab.spark.table(name).columns


class Stopped(Exception):
    """The process died here."""


@pytest.mark.slow
@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("buckets", [None, 3])
def test_killed_after_each_statement(lab: Lab, buckets: int | None) -> None:
    """The next merge, of either way, ends with the right tables."""
    name = f"dim_killed_{buckets}"
    options: dict[str, Any] = {**OPTIONS, "audit": {}, "surrogate_key": {"name": "sk", "strategy": "sequence"}}
    more = {} if buckets is None else {"key_buckets": buckets}
    target = HiveTarget(f"{lab.schema}.{name}", "parquet", buckets)
    spec = DimensionSpec(key_columns="id", change_log=f"{lab.schema}.{name}_changes", **options)
    run, statement = dbt_session.Cursor.execute, 0
    count = 0

    def execute(cursor: Any, sql: str, *parameters: Any) -> None:
        nonlocal count
        run(cursor, sql, *parameters)
        if re.search(r"\b(insert overwrite|alter table|create table if not exists) ", sql):
            count += 1
            if count == statement:
                raise Stopped

    day, is_over = 1, False
    while not is_over and statement < 60:
        statement, count, day = statement + 1, 0, day + 1
        rows = [[key, f"A{day}", "x", f"2024-01-01 00:{day:02}:00", None] for key in (1, 2)]
        if statement == 1:
            rows.append([3, "A", "x", "2024-01-01", None])
        merge_model(lab, name, lab.frame(COLUMNS, rows).drop("why"), config=PARQUET, **more, **options)
        with without_library(), pytest.MonkeyPatch.context() as patch:
            patch.setattr(dbt_session.Cursor, "execute", execute)
            is_over = lab.dbt("run", "--select", name)[name][0] == "success"
        if day % 2:
            merge(lab.frame(COLUMNS, rows).drop("why"), target, spec)
        else:
            merge_by_sql(lab, name)
        table = lab.spark.table(f"{lab.schema}.{name}")
        lab.spark.sql(f"refresh table {lab.schema}.{name}")
        found = [(row.id, row.name, row.is_current) for row in table.where("id = 1").orderBy("valid_from").collect()]
        assert found == [(1, f"A{past}", past == day) for past in range(2, day + 1)], statement
        logged = lab.spark.table(f"{lab.schema}.{name}_changes").groupBy("id", "changed_at").count()
        assert logged.where("count > 1").isEmpty() and logged.count() == 2 * (day - 1) + 1
        audit = lab.spark.table(f"{lab.schema}.{name}_audit").where("change_type = 'insert'")
        assert audit.count() == 2 * (day - 1) + 1, statement
        numbers = [row.sk for row in table.collect()]
        assert len(set(numbers)) == len(numbers)
    assert is_over and statement > 10
    assert all(any(f"version={n}/step=finished" in step for step in commits(lab, name)) for n in range(1, day))


@pytest.mark.slow
def test_another_writer(lab: Lab) -> None:
    """Rows that are added while a merge runs, before and after its commit, and a merge that commits first."""
    name = f"{lab.schema}.dim_raced"
    merge_model(lab, "dim_raced", lab.frame(COLUMNS, FIRST), config=PARQUET, **OPTIONS)
    merge_by_sql(lab, "dim_raced")
    run, done = dbt_session.Cursor.execute, []
    spec = DimensionSpec(key_columns="id", change_log=f"{name}_changes", **OPTIONS)

    def between(pattern: str, day: int, what: Any) -> dict[str, Any]:
        def execute(cursor: Any, sql: str, *parameters: Any) -> None:
            if re.search(pattern, sql) and pattern not in done:
                done.append(pattern)
                what()
            run(cursor, sql, *parameters)

        batch = lab.frame(COLUMNS, [[1, f"D{day}", "x", f"2024-02-{day:02}", None]])
        merge_model(lab, "dim_raced", batch, config=PARQUET, **OPTIONS)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(dbt_session.Cursor, "execute", execute)
            row = merge_by_sql(lab, "dim_raced")
        assert pattern in done
        return row

    def insert(key: int) -> Any:
        return lambda: lab.spark.sql(
            f"insert into {name} select {key} as id, * except (id) from {name} where id = 2 and is_current"
        )

    between(r"/commit' using", 1, insert(7))
    between(r"set location", 2, insert(8))
    other = lab.frame(COLUMNS, [[1, "E", "x", "2024-02-03", None]]).drop("why")
    between(r"'committed'\) location", 4, lambda: merge(other, HiveTarget(name, "parquet"), spec))
    lab.spark.sql(f"refresh table {name}")
    assert [row[1] for row in lab.rows("dim_raced", "id", "name") if row[0] == 1] == ["A", "D1", "D2", "D4", "E"]
    assert {row[0] for row in lab.rows("dim_raced", "id")} == {1, 2, 7, 8}
    reasons = [row.reason for row in lab.spark.table(f"{lab.schema}.healing_log").where("status = 'retried'").collect()]
    assert len(reasons) == 3 and sum("files have changed" in reason for reason in reasons) == 2, reasons


@pytest.mark.slow
def test_folders_of_old_states_are_emptied(lab: Lab) -> None:
    """An hour after they were replaced, but for those of the last two states."""
    name = f"{lab.schema}.dim_old"
    locations = []
    for day in range(1, 6):
        batch = lab.frame(COLUMNS, [[1, f"A{day}", "x", f"2024-01-{day:02}", None]])
        merge_model(lab, "dim_old", batch, config=PARQUET, **OPTIONS)
        if day == 5:
            for version in range(1, 5):
                partition = f"partition (version = {version}, step = 'committed')"
                details = lab.spark.sql(f"describe table extended {name}__commits {partition}").collect()
                folder = next(row[1] for row in details if row[0] == "Location" and "/commit" in row[1])
                rows = lab.spark.read.parquet(folder).selectExpr(
                    "* except (committed_at)", "committed_at - interval 2 hours as committed_at"
                )
                lab.spark.createDataFrame(rows.collect(), rows.schema).write.parquet(folder, mode="overwrite")
        merge_by_sql(lab, "dim_old")
        details = lab.spark.sql(f"describe table extended {name}").collect()
        locations.append(next(row[1] for row in details if row[0] == "Location"))
    assert [lab.spark.read.parquet(place).count() for place in locations] == [0, 0, 0, 4, 5]
    assert commits(lab, "dim_old") == [f"version={n}/step={step}" for n in (4, 5) for step in ("committed", "finished")]
