"""A dimension that heals from one change log, for the tests that stop its builds or let them race."""

from __future__ import annotations

from typing import Any

from lab import Lab
from sessions import FORMAT

WRITES = {
    "delta": ("MERGE", "CREATE OR REPLACE TABLE AS SELECT", "CREATE TABLE AS SELECT"),
    "iceberg": ("append", "overwrite", "delete"),
}
MODEL = (
    "{{ healing_tables.dimension(key_columns=['id'], sources={'crm': {'relation': "
    "api.Relation.create(schema=target.schema, "
    "identifier='changes'), 'changed_at': 'at', 'loaded_at': 'loaded_at', 'deleted_when': 'gone'}}) }}"
)


def healed_dimension(lab: Lab, **config: Any) -> None:
    """The models dim_healed and anew (the same select, nothing healed), and their source without rows."""
    lab.spark.sql(
        f"create table {lab.schema}.changes (id int, name string, gone boolean, at timestamp, loaded_at timestamp) "
        f"using {FORMAT}"
    )
    lab.model(
        "dim_healed",
        MODEL,
        materialized="healing_table",
        unique_key="id",
        meta={"healing_tables": {"mode": "heal", **config}},
    )
    lab.model("anew", MODEL, materialized="table", file_format=FORMAT)


def arrive(lab: Lab, step: int) -> None:
    """A key comes, one changes, one may go."""
    day = f"timestamp '2024-01-01 00:00:00Z' + interval '{step}' day"
    rows = [(step, f"new {step}", "false"), (step // 2, f"changed {step}", "false")]
    rows += [(step // 3, "gone", "true")] if step % 3 == 2 else []
    values = ", ".join(
        f"({key}, '{name}', {gone}, {day} + interval '{second}' second, {day})"
        for second, (key, name, gone) in enumerate(rows)
    )
    lab.spark.sql(f"insert into {lab.schema}.changes values {values}")


def check_log(lab: Lab) -> set[str]:
    """Each row of the log that says so stands for one commit; the newest is that of the newest rows. Their modes."""
    history = lab.commits("dim_healed")
    written = [version for version, operation in history if operation in WRITES[FORMAT]]
    rows = lab.spark.sql(
        f"select mode, status, version_after from {lab.schema}.healing_log where dimension = 'dim_healed' order by "
        "finished_at"
    ).collect()
    versions = [row["version_after"] for row in rows if row["status"] == "published"]
    assert len(set(versions)) == len(versions) and set(versions) <= set(written), (versions, history)
    assert [row for row in rows if row["status"] != "refused"][-1]["version_after"] == written[-1]
    return {row["mode"] for row in rows}
