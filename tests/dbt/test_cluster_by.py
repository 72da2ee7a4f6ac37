"""cluster_by: tables whose files hold neighbouring keys, and heals that open only the files of their keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from lab import Lab
from sessions import FORMAT, with_settings
from tables import plain_rows

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("interpreted")]
KEYS = 4000
CALL = """{{ healing_tables.dimension({'crm': {'relation': source('raw', 'crm'), 'changed_at': 'changed_at',
    'loaded_at': 'loaded_at'}}, attributes=['name']) }}"""


def dim(lab: Lab, name: str, *, config: dict[str, Any] | None = None, **options: Any) -> None:
    lab.model(
        name,
        CALL,
        materialized="healing_table",
        unique_key="id",
        file_format=FORMAT,
        meta={"healing_tables": {"mode": "heal"} | options},
        **(config or {}),
    )


def load(lab: Lab, day: int, keys: str) -> None:
    lab.spark.sql(
        f"insert into {lab.schema}.crm select cast(id as int), concat('name ', id, ' of {day}'), "
        f"timestamp '2024-01-{day:02} 00:00:00Z', timestamp '2024-01-{day:02} 00:00:00Z' from range({keys})"
    )


def heal(lab: Lab, name: str) -> None:
    """Build it; what is stored is what a rebuild would store."""
    assert lab.dbt("run", "--select", name)[name][0] == "success"
    assert any(": heal from" in line for line in lab.log)


@pytest.fixture(scope="module")
def built(lab: Lab) -> Lab:
    lab.spark.sql(
        f"create table {lab.schema}.crm (id int, name string, changed_at timestamp, loaded_at timestamp) using {FORMAT}"
    )
    lab.write("models/sources.yml", f"sources: [{{name: raw, schema: {lab.schema}, tables: [{{name: crm}}]}}]\n")
    dim(lab, "by_option", cluster_by="id")
    dim(lab, "by_databricks", config={"liquid_clustered_by": ["name", "id"]})
    dim(lab, "plain")
    state = "select id, name, id > 0 as is_old from {{ source('raw', 'crm') }}"
    lab.model("state", state, materialized="capture", unique_key="id", file_format=FORMAT)
    lab.model("flags", state, materialized="capture", unique_key=["id", "is_old"], file_format=FORMAT)
    options = {"healing_tables": {"cluster_by": ["name"]}}
    lab.model("named", state, materialized="capture", unique_key="id", file_format=FORMAT, meta=options)
    load(lab, 1, f"1, {KEYS + 1}")
    with with_settings(lab.spark, {"spark.sql.adaptive.coalescePartitions.enabled": "false"}):
        lab.dbt("run")
    assert {status for status, _ in lab.results.values()} == {"success"}, lab.results
    return lab


def order(lab: Lab, table: str) -> list[str]:
    """The columns by which its files are to lie."""
    if FORMAT == "delta":
        return list(lab.spark.sql(f"describe detail {lab.schema}.{table}").collect()[0]["clusteringColumns"])
    shown = dict(tuple(row) for row in lab.spark.sql(f"show tblproperties {lab.schema}.{table}").collect())
    return [term.split()[0] for term in shown.get("sort-order", "").split(", ") if term]


def test_new_tables_have_the_order(built: Lab) -> None:
    assert order(built, "by_option") == ["id"]
    assert order(built, "by_databricks") == ["name", "id"]
    assert order(built, "plain") == []
    assert order(built, "named") == ["name"]


def test_a_captured_log_lies_by_its_key(built: Lab) -> None:
    """On Delta: to read an Iceberg table in order costs every run, and Delta has no statistics of a boolean."""
    assert order(built, "state") == (["id"] if FORMAT == "delta" else [])
    assert order(built, "flags") == []


@pytest.mark.skipif(FORMAT != "delta", reason="removes files of a Delta table")
def test_a_heal_opens_only_the_files_of_its_keys(built: Lab) -> None:
    """The others are not there while it runs. Delta notes the least and the greatest key of each file."""
    with with_settings(built.spark, {"spark.databricks.delta.optimize.maxFileSize": "40000"}):
        built.dbt("run-operation", "healing_tables.maintain", "--args", "{dimension: by_option}")
    table = built.spark.table(f"{built.schema}.by_option")
    files = table.groupBy("_metadata.file_path").agg({"id": "min"}).orderBy("min(id)").collect()
    assert len(files) > 2
    load(built, 2, "1, 3")
    others = [Path(row[0].removeprefix("file:")) for row in files[1:]]
    for file in others:
        file.rename(file.with_suffix(".away"))
    try:
        heal(built, "by_option")
    finally:
        for file in others:
            file.with_suffix(".away").rename(file)
    assert built.rows("by_option") == plain_rows(built.select("by_option"))
    newest = built.spark.sql(f"describe history {built.schema}.by_option limit 1").collect()[0]
    assert newest["operation"] == "MERGE"
    assert newest["operationMetrics"]["numTargetRowsInserted"] == "2"


@pytest.mark.skipif(FORMAT != "iceberg", reason="the order of an Iceberg table")
def test_maintain_sorts_by_the_order_of_the_table(built: Lab) -> None:
    sorts = []
    for name in ("by_databricks", "plain"):
        built.dbt("run-operation", "healing_tables.maintain", "--args", f"{{dimension: {name}}}")
        sorts += [line for line in built.log if ": rewrite_data_files, " in line]
    assert "strategy => 'sort', options" in sorts[0]
    assert "strategy => 'sort', sort_order => '`id` asc nulls first', options" in sorts[1]


def test_a_heal_of_a_table_without_the_order_does_not_list_its_keys(built: Lab) -> None:
    """The list would be new code for Spark in each heal."""
    load(built, 3, "5, 6")
    heal(built, "plain")
    assert not any("merge into" in sql and "t.`id` in (" in sql for _, sql in built.statements)


def test_a_column_that_is_not_there_is_refused(built: Lab) -> None:
    dim(built, "misspelt", cluster_by=["nam"])
    message = built.dbt("run", "--select", "misspelt")["misspelt"][1]
    assert "cluster_by" in message
    assert "did you mean name?" in message
    assert not built.spark.catalog.tableExists(f"{built.schema}.misspelt")
