"""A table that someone else has made stands at the model's name: its rows are never lost."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.adapters.spark import session as dbt_session
from lab import Lab

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("interpreted")]
COLUMNS = [["id", "int"], ["changed_at", "date"], ["name", "string"]]
ROWS = [[1, "2024-01-01", "Ann"], [2, "2024-01-01", "Bea"], [3, "2024-02-01", "Cid"]]
# rows and format of what is there
FOREIGN = {
    "delta_few": (3, "delta"),
    "delta_many": (100, "delta"),
    "parquet_few": (3, "parquet"),
    "parquet_many": (100, "parquet"),
}
ALLOW = ["--vars", "{allow_replace: true}"]


def dim(lab: Lab, name: str, **config: Any) -> None:
    source = "{'relation': source('raw', 'crm'), 'changed_at': 'changed_at'}"
    lab.model(
        name,
        f"{{{{ healing_tables.dimension({{'crm': {source}}}) }}}}",
        materialized="healing_table",
        unique_key="id",
        **config,
    )


def foreign(lab: Lab, name: str, rows: int, kind: str) -> None:
    lab.spark.sql(
        f"create table {lab.schema}.{name} using {kind} as select cast(id as int) as id, 'old' as name, "
        "date '2020-01-01' as effective_from, cast(null as date) as effective_to "
        f"from range(1, {rows + 1})"
    )


def tables(lab: Lab, name: str) -> list[str]:
    """Tables whose names begin like this one, and are not it."""
    found = lab.spark.sql(f"show tables in {lab.schema} like '{name}__*'").collect()
    return sorted(row["tableName"] for row in found)


def count(lab: Lab, name: str) -> int:
    lab.spark.catalog.refreshTable(f"{lab.schema}.{name}")
    return lab.spark.table(f"{lab.schema}.{name}").count()


@pytest.fixture(scope="module")
def built(lab: Lab, interpreted: None) -> Lab:
    """A run, a full refresh, and a run that may replace what is there."""
    lab.write(
        "models/sources.yml",
        f"version: 2\nsources: [{{name: raw, schema: {lab.schema}, tables: [{{name: crm}}]}}]",
    )
    lab.table("crm", COLUMNS, ROWS)
    for name, (rows, kind) in FOREIGN.items():
        dim(lab, name, file_format=kind)
        foreign(lab, name, rows, kind)
    for what, args in {"run": [], "refresh": ["--full-refresh"], "allowed": ALLOW}.items():
        lab.dbt("run", *args)
        for name in FOREIGN:
            lab.results[f"{name} {what}"] = lab.results[name]
            lab.notes[f"{name} {what}"] = [str(count(lab, name))]
        lab.notes[what] = list(lab.log)
    return lab


@pytest.mark.parametrize("what", ["run", "refresh"])
@pytest.mark.parametrize("name", FOREIGN)
def test_it_is_refused_with_and_without_a_full_refresh(built: Lab, name: str, what: str) -> None:
    status, message = built.results[f"{name} {what}"]
    assert status == "error", message
    for part in [
        "the target is unchanged",
        "wanted: ",
        "valid_from",
        "effective_from, effective_to",
        "column_names",
        "--vars '{allow_replace: true}'",
    ]:
        assert part in message, message
    assert "candidate" not in message, "nothing was written"
    assert built.notes[f"{name} {what}"] == [str(FOREIGN[name][0])]


@pytest.mark.parametrize("name", FOREIGN)
def test_a_run_that_may_replace_it_keeps_it(built: Lab, name: str) -> None:
    assert built.results[f"{name} allowed"][0] == "success", built.results[f"{name} allowed"]
    assert [row[1] for row in built.rows(name, "id", "name")] == ["Ann", "Bea", "Cid"]
    (kept,) = tables(built, name)
    assert kept.startswith(f"{name}__before_")
    assert count(built, kept) == FOREIGN[name][0]
    assert set(built.rows(kept, "name")) == {("old",)}
    assert any(kept in text and "kept" in text for text in built.notes["allowed"])
    row = built.spark.sql(
        f"select status, reason from {built.schema}.healing_log where dimension = '{name}' "
        "order by finished_at desc limit 1"
    ).collect()[0]
    assert row["status"] == "published" and kept in row["reason"]


def test_a_table_of_the_name_of_the_log_is_left_alone(built: Lab) -> None:
    built.spark.sql(f"create database if not exists {built.schema}_ops")
    built.spark.sql(f"create table {built.schema}_ops.healing_log using delta as select 1 as id")
    dim(built, "logged", meta={"healing_tables": {"log_schema": f"{built.schema}_ops"}})
    status, message = built.dbt("run", "--select", "logged")["logged"]
    assert status == "error", message
    assert "a table with the columns id" in message and "log_schema" in message, message
    assert built.spark.table(f"{built.schema}_ops.healing_log").columns == ["id"]


def test_an_empty_table_is_replaced(built: Lab) -> None:
    built.spark.sql(f"create table {built.schema}.vacant (id int, since date) using delta")
    dim(built, "vacant", on_schema_change="sync_all_columns")
    assert built.dbt("run", "--select", "vacant")["vacant"][0] == "success", built.results["vacant"]
    assert len(built.rows("vacant")) == 3


def test_a_table_whose_format_changes_is_there_until_the_new_one_is(
    built: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The build dies before each of its statements in turn: the rows stay, under one name or another."""
    dim(built, "moved", file_format="parquet")
    built.dbt("run", "--select", "moved")
    copy, moved = f"{built.schema}.copied", f"{built.schema}.moved"
    built.spark.sql(f"create table {copy} using parquet as select * from {moved}")
    dim(built, "moved", file_format="delta")
    execute = dbt_session.Cursor.execute
    dropped = f"drop table if exists {moved}__before_"
    for stop in ["_new using delta", "rename to", f"rename to {moved} ", dropped]:
        for name in ["moved", *tables(built, "moved")]:
            built.spark.sql(f"drop table if exists {built.schema}.{name}")
        built.spark.sql(f"create table {moved} using parquet as select * from {copy}")

        def dies(self: Any, sql: str, *parameters: Any, stop: str = stop) -> None:
            if stop in " ".join(sql.split()) + " ":
                raise SystemError("killed")
            execute(self, sql, *parameters)

        with monkeypatch.context() as patch:
            patch.setattr(dbt_session.Cursor, "execute", dies)
            assert built.dbt("run", "--select", "moved")["moved"][0] == "error", stop
        whole = [
            name
            for name in ["moved", *tables(built, "moved")]
            if "__candidate_" not in name
            and built.spark.catalog.tableExists(f"{built.schema}.{name}")
            and len(built.rows(name, "id")) == 3
        ]
        assert whole, f"stopped before {stop}: no table has the rows"
        if "moved " in stop:
            (kept,) = [name for name in whole if "__before_" in name]
            assert built.dbt("run", "--select", "moved")["moved"][0] == "success"
            assert any("is kept as" in text and kept in text for text in built.log)
            assert len(built.rows("moved")) == 3


MERGED = {"attributes": {"name": 2}, "changed_at": "changed_at", "change_log": False, "allow_full_refresh": True}
REFRESHED = {
    "merged": ("healing_merge", MERGED, "valid_from"),
    "captured": ("capture", {"allow_full_refresh": True}, "captured_at, is_deleted"),
}


@pytest.mark.parametrize("name", REFRESHED)
def test_a_full_refresh_that_is_allowed_keeps_foreign_rows(built: Lab, name: str) -> None:
    materialized, options, wanted = REFRESHED[name]
    meta = {"healing_tables": options}
    sql = "select id, name, changed_at from {{ source('raw', 'crm') }}"
    built.model(name, sql, materialized=materialized, unique_key="id", meta=meta)
    foreign(built, name, 3, "delta")
    refresh = ["run", "--full-refresh", "--select", name]
    status, message = built.dbt(*refresh)[name]
    assert status == "error", message
    assert wanted in message and "allow_replace" in message, message
    assert len(built.rows(name, "effective_from")) == 3
    status, message = built.dbt(*refresh, *ALLOW)[name]
    assert status == "success", message
    (kept,) = tables(built, name)
    assert kept.startswith(f"{name}__before_") and len(built.rows(kept, "effective_from")) == 3
    assert any("is kept as" in text and kept in text for text in built.log), built.log
    # the model's own table goes
    assert built.dbt(*refresh)[name][0] == "success", built.results[name]
    assert tables(built, name) == [kept]


def test_a_full_refresh_whose_merge_fails_puts_the_table_back(built: Lab) -> None:
    meta = {"healing_tables": MERGED}
    sql = "select id, name, changed_at from {{ source('raw', 'crm') }}"
    built.model("back", sql, materialized="healing_merge", unique_key="id", meta=meta)
    assert built.dbt("run", "--select", "back")["back"][0] == "success", built.results["back"]
    rows = built.rows("back")
    # only the merge itself notices this one, when the table has another name already
    config: dict[str, Any] = {"unique_key": "id", "meta": meta, "partition_by": "nowhere"}
    built.model("back", sql, materialized="healing_merge", **config)
    status, message = built.dbt("run", "--full-refresh", "--select", "back")["back"]
    assert status == "error" and "nowhere" in message, message
    assert built.rows("back") == rows and tables(built, "back") == []
