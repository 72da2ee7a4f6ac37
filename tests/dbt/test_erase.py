"""erase: no table has a row of the key any more, and nothing that runs later brings it back."""

from __future__ import annotations

from typing import Any

import pytest
from audits import AUDIT, CALL, KEYS, begin, tell
from damage import operation
from dying_dbt import WRITES, dies_before
from lab import Lab
from sessions import FORMAT, with_settings
from tables import plain_rows
from ways import merge_by_sql, merge_model

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("interpreted", "secret")]

KEY, NAME = 700007, "Wilhelmina"  # nobody else has them


@pytest.fixture
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEALING_TABLES_SECRET", "a secret of these tests, long enough")


@pytest.fixture(autouse=True)
def crm(lab: Lab, secret: None) -> None:
    for row in lab.spark.sql(f"show tables in {lab.schema}").collect():
        lab.spark.sql(f"drop table if exists {lab.schema}.{row.tableName}")
    for model in (lab.home / "models").glob("*.sql"):
        model.unlink()
    begin(lab)
    tell(lab, 1, f"{KEY}, {KEY + 1}", NAME)


def dimension(lab: Lab, **options: Any) -> None:
    config = {"file_format": options.pop("file_format", FORMAT)}
    options = {"audit": AUDIT, "mode": "heal", "surrogate_key": {"name": "dim_sk", "strategy": "sequence"}, **options}
    options = {name: value for name, value in options.items() if value is not None}
    call = CALL.format(["name", "city"])
    lab.model("dim", call, materialized="healing_table", unique_key="id", meta={"healing_tables": options}, **config)


def holders(lab: Lab) -> set[str]:
    """The tables with a row that has the key or the name in any column. The sources are the user's."""
    found = set()
    # a temporary view of another test belongs to no schema
    for table in {
        row.tableName for row in lab.spark.sql(f"show tables in {lab.schema}").where("namespace <> ''").collect()
    }:
        if table not in ("crm", "shop") and not table.endswith("_batch"):
            rows = lab.spark.table(f"{lab.schema}.{table}").selectExpr("to_json(struct(*)) as text")
            if rows.where(f"text like '%{KEY}%' or text like '%{NAME}%'").count():
                found.add(table)
    return found


def erase(lab: Lab, name: str = "dim", **arguments: Any) -> str:
    text = "\n".join(operation(lab, "erase", dimension=name, keys=[KEY], **arguments))
    assert lab.succeeded, text
    return text


def build(lab: Lab) -> dict[str, Any]:
    """The row of the log."""
    assert lab.dbt("run", "--select", "dim")["dim"][0] == "success", lab.results
    return lab.newest("dim")


def prove(lab: Lab) -> None:
    text = operation(lab, "erased", dimension="dim")
    assert any("no current row has an erased key" in line for line in text), "\n".join(text)[-2000:]


def in_all_files(lab: Lab) -> dict[str, str]:
    """The table to the number of its rows of erased keys in all of its files, as `erased` prints it."""
    lines = [line.split("|") for line in operation(lab, "erased", dimension="dim") if line.count("|") == 4]
    return {cells[0].split(".")[-1].strip(): cells[3].strip() for cells in lines}


def forget_versions(lab: Lab, name: str) -> None:
    if FORMAT == "iceberg":
        lab.spark.sql(f"call system.expire_snapshots('{lab.schema}.{name}', older_than => now(), retain_last => 1)")
    else:
        with with_settings(lab.spark, {"spark.databricks.delta.retentionDurationCheck.enabled": "false"}):
            lab.spark.sql(f"vacuum {lab.schema}.{name} retain 0 hours")


def logged(lab: Lab, name: str) -> int:
    return lab.spark.table(f"{lab.schema}.healing_log").where(f"dimension = '{name}'").count()


def test_a_built_dimension(lab: Lab) -> None:
    dimension(lab)
    build(lab)
    tell(lab, 2, f"{KEY}, {KEY + 1}", f"{NAME} II")
    build(lab)
    others = plain_rows(lab.spark.table(f"{lab.schema}.dim").where(f"id <> {KEY}"))
    numbers = {row.dim_sk for row in lab.spark.table(f"{lab.schema}.dim").collect()}
    lab.spark.sql(
        f"create or replace table {lab.schema}.orders using {FORMAT} as select id, dim_sk, name as buyer "
        f"from {lab.schema}.dim"
    )
    assert holders(lab) == {"dim", "dim_audit", "dim__keys", "orders"}
    facts = [
        {"table": f"{lab.schema}.orders", "surrogate_key": "dim_sk", "unknown": {"id": -1, "dim_sk": -1, "buyer": "?"}}
    ]

    text = erase(lab, facts=facts)
    assert "1 key: to erase 9 rows in 4 tables" in text and "nothing was written; run: true does it" in text, text
    assert f"source crm ({lab.schema}.crm) has 2 rows of these keys: builds leave them out" in text, text
    assert holders(lab) == {"dim", "dim_audit", "dim__keys", "orders"}

    text = erase(lab, facts=facts, run=True)
    assert holders(lab) == set(), text
    assert plain_rows(lab.spark.table(f"{lab.schema}.dim")) == others
    orders = lab.spark.table(f"{lab.schema}.orders")
    assert [tuple(row) for row in orders.where("id = -1").collect()] == [(-1, -1, "?")] * 2
    assert orders.count() == len(others) + 2
    row = lab.newest("dim")
    assert (row["mode"], row["rows_removed"], row["keys_affected"]) == ("erase", 9, 1)
    assert int(in_all_files(lab)["dim"]) >= 2
    forget_versions(lab, "dim")
    assert in_all_files(lab)["dim"] == "0"
    [event] = lab.spark.table(f"{lab.schema}.dim__erased").collect()
    assert event.key_hash in row["reason"]

    # the source still has the key, and gets another row of it
    tell(lab, 3, f"{KEY}, {KEY + 1}", f"{NAME} III")
    tell(lab, 3, "2, 3", "Bea")
    row = build(lab)
    assert row["mode"] == "rebuild"
    assert any("3 rows of source crm left out: their keys were erased" in line for line in lab.log), lab.log
    tell(lab, 4, f"{KEY}, {KEY + 1}", f"{NAME} IV")
    tell(lab, 4, "100, 101", "New")
    assert build(lab)["mode"] == "heal"
    assert any("1 row of source crm left out" in line for line in lab.log), lab.log
    assert holders(lab) == set()
    [new] = lab.spark.table(f"{lab.schema}.dim").where("id = 100").collect()
    assert new.dim_sk > max(numbers)  # a number is never given again
    prove(lab)
    assert "to erase 0 rows in 0 tables" in erase(lab)

    # later rows come in again
    text = "\n".join(operation(lab, "readmit", dimension="dim", keys=[KEY], after="2024-01-03"))
    assert lab.succeeded, text
    build(lab)
    assert [row.name for row in lab.spark.table(f"{lab.schema}.dim").where(f"id = {KEY}").collect()] == [f"{NAME} IV"]
    prove(lab)
    erase(lab, run=True)
    build(lab)
    assert holders(lab) == set()


@pytest.mark.skipif(FORMAT == "iceberg", reason="a catalog of Iceberg has no Hive tables")
def test_facts_that_hive_has_written(lab: Lab) -> None:
    """They are rewritten from a copy, which keeps what a text file cannot hold."""
    dimension(lab, file_format="parquet", mode=None, audit=None, surrogate_key=None)
    build(lab)
    orders = f"{lab.schema}.orders"
    lab.spark.sql(
        f"create table {orders} stored as rcfile as select id, 'a\nb' as note, map('x', id) as m from {lab.schema}.dim"
    )
    others = lab.spark.table(orders).where(f"id <> {KEY}").orderBy("id").collect()
    erase(lab, facts=[orders], run=True)
    assert len(others) > 0 and lab.spark.table(orders).orderBy("id").collect() == others


@pytest.mark.parametrize("way", ["sql", "library"])
def test_a_merged_dimension(lab: Lab, way: str, caplog: pytest.LogCaptureFixture) -> None:
    spark = lab.spark

    def batch(day: int, name: str) -> None:
        rows = spark.sql(
            f"select * from values ({KEY}, '{name}', 'x', timestamp '2024-01-0{day} 00:00:00Z'), "
            f"(1, '{day}', 'y', timestamp '2024-01-0{day} 00:00:00Z'), "
            f"({KEY}, '{NAME} nowhere', 'x', cast(null as timestamp)) as b(id, name, note, changed_at)"
        )
        merge_model(lab, "dim", rows, changed_at="changed_at", audit=AUDIT, change_log="dim_changes",
                    surrogate_key="sequence", attributes={"name": 2, "note": 1})  # fmt: skip
        if way == "sql":
            merge_by_sql(lab, "dim")
        else:
            assert lab.dbt("run", "--select", "dim")["dim"][0] == "success", lab.results

    batch(1, NAME)
    batch(3, f"{NAME} II")
    tables = {"dim", "dim_audit", "dim_changes", "dim__set_aside", "dim__keys"}
    assert holders(lab) - tables == set() and "dim_changes" in holders(lab) and "dim__set_aside" in holders(lab)
    text = erase(lab, run=True)
    assert holders(lab) == set(), text
    before = plain_rows(spark.table(f"{lab.schema}.dim").select("id", "name", "note"))
    batch(3, f"{NAME} late")
    batch(4, f"{NAME} III")
    assert "2 rows of the select left out" in "\n".join(lab.log) or "2 rows of the batch left out" in caplog.text
    assert holders(lab) == set()
    assert len(plain_rows(spark.table(f"{lab.schema}.dim"))) == len(before) + 1
    prove(lab)
    operation(lab, "readmit", dimension="dim", keys=[KEY], after="2024-01-04")
    batch(5, f"{NAME} IV")
    assert [row.name for row in spark.table(f"{lab.schema}.dim").where(f"id = {KEY}").collect()] == [f"{NAME} IV"]


def test_a_captured_log(lab: Lab) -> None:
    lab.model("seen", "select id, name, city from {{ source('raw', 'crm') }}", materialized="capture", unique_key="id")
    call = CALL.format(["name"]).replace("source('raw', 'crm')", "ref('seen')").replace("'gone'", "'is_deleted'")
    call = call.replace("'changed_at': 'changed_at'", "'changed_at': 'captured_at'").replace(
        ", 'loaded_at': 'loaded_at'", ""
    )
    lab.model("dim", call, materialized="healing_table", unique_key="id")
    lab.dbt("run")
    assert holders(lab) == {"seen", "dim"}
    text = erase(lab, run=True)
    assert holders(lab) == set(), text
    lab.dbt("run")
    assert lab.succeeded and holders(lab) == set()
    assert any("1 row of the select left out" in line for line in lab.log), lab.log
    operation(lab, "readmit", dimension="dim", keys=[KEY], after="2024-01-01")
    lab.dbt("run")
    assert holders(lab) == {"seen", "dim"}


@pytest.mark.skipif(FORMAT != "delta", reason="a catalog of Iceberg has no tables of files")
def test_files(lab: Lab) -> None:
    """Formats without DELETE: the table is rewritten, also one whose merges write folders."""
    dimension(lab, audit=None, surrogate_key=None, mode="rebuild", file_format="parquet")
    build(lab)
    rows = lab.spark.sql(f"select id, name, timestamp '2024-01-01 00:00:00Z' as changed_at from {lab.schema}.crm")
    merge_model(lab, "merged", rows, changed_at="changed_at", attributes={"name": 2}, config={"file_format": "parquet"})
    merge_by_sql(lab, "merged")
    others = {name: [row for row in lab.rows(name, "id", "name") if row[0] != KEY] for name in ("dim", "merged")}
    assert {"dim", "merged", "merged_changes"} <= holders(lab)
    for name, rows_of_others in others.items():
        erase(lab, name, run=True)
        assert lab.rows(name, "id", "name") == rows_of_others
    assert holders(lab) == set()
    build(lab)
    merge_by_sql(lab, "merged")
    assert holders(lab) == set()
    assert {name: lab.rows(name, "id", "name") for name in others} == others


def test_killed_anywhere(lab: Lab) -> None:
    """Between the kill and the next run of erase, a build runs."""
    dimension(lab)
    tell(lab, 2, f"1, {KEYS + 1}", "Bea")  # the guards count in closed versions
    build(lab)
    points = 0
    while True:
        tell(lab, 3 + points, f"{KEY}, {KEY + 1}", f"{NAME} {points}")
        operation(lab, "readmit", dimension="dim", keys=[KEY], after="2024-01-01") if points else None
        build(lab)
        assert "dim" in holders(lab)
        with dies_before(WRITES, points + 1):
            operation(lab, "erase", dimension="dim", keys=[KEY], run=True)
        if lab.succeeded:
            break
        if "dim__erased" in {row.tableName for row in lab.spark.sql(f"show tables in {lab.schema}").collect()}:
            build(lab)
        erase(lab, run=True)
        assert holders(lab) == set(), points
        points += 1
    assert points >= 4
    assert holders(lab) == set()


def test_refused(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    dimension(lab)
    build(lab)
    for arguments, part in (
        ({"keys": []}, "at least one key"),
        ({"keys": ["seven"]}, "a value of type int"),
        ({"keys": [{"no": 7}]}, "a value of each of id"),
        ({"keys": [7], "facts": ["nowhere"]}, "a table or view that exists"),
        ({"keys": [7], "facts": [{"table": "dim", "unknown": {"no": 1}}]}, "no"),
    ):
        text = "\n".join(operation(lab, "erase", dimension="dim", run=True, **arguments))
        assert not lab.succeeded and part in text, text
    monkeypatch.setenv("HEALING_TABLES_SECRET", "short")
    assert "at least 16 characters" in "\n".join(operation(lab, "erase", dimension="dim", keys=[KEY], run=True))
    assert "dim" in holders(lab)
    monkeypatch.setenv("HEALING_TABLES_SECRET", "a secret of these tests, long enough")
    erase(lab, run=True)
    number = logged(lab, "dim")
    for text in ("another secret that is long enough", ""):
        monkeypatch.setenv("HEALING_TABLES_SECRET", text)
        status, message = lab.dbt("run", "--select", "dim")["dim"]
        assert status == "error" and "HEALING_TABLES_SECRET" in message, message
    assert logged(lab, "dim") == number and holders(lab) == set()
    assert lab.spark.table(f"{lab.schema}.dim").count() == KEYS
