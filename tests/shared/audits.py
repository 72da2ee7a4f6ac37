"""A dimension that is built with an audit, and what that lacks, or has too much, beside its rows."""

from __future__ import annotations

from collections import Counter
from typing import Any

from lab import Lab
from pyspark.sql import SparkSession
from sessions import FORMAT

from healing_tables.sql.row_text import row_text
from healing_tables.sql.types import types_of

KEYS = 24  # the guards are off below 20
COLUMNS = "id int, name string, city string, gone boolean, changed_at date, loaded_at timestamp"
AUDIT: dict[str, Any] = {"actor": "night", "reason": "the nightly load"}
CALL = """{{{{ healing_tables.dimension({{'crm': {{'relation': source('raw', 'crm'), 'changed_at': 'changed_at',
    'deleted_when': 'gone', 'loaded_at': 'loaded_at'}}}}, attributes={}) }}}}"""


def write(lab: Lab, name: str, *attributes: str, audit: Any = AUDIT, schema: str = "fail", **options: Any) -> None:
    lab.model(
        name,
        CALL.format(list(attributes or ["name"])),
        materialized="healing_table",
        unique_key="id",
        on_schema_change=schema,
        meta={"healing_tables": {"audit": audit, **options}},
    )


def tell(lab: Lab, day: int, keys: str, name: str, *, gone: bool = False) -> None:
    """A row for each of these keys, as the arguments of range()."""
    lab.spark.sql(
        f"insert into {lab.schema}.crm select cast(id as int), '{name}', 'Oslo', {str(gone).lower()}, "
        f"date '2024-01-{day:02}', timestamp '2024-02-{day:02} 12:00:00Z' from range({keys})"
    )


def publishes(lab: Lab, name: str) -> list[dict[str, Any]]:
    """The rows of an audit by publish: of which build, by whom, and how many of each change type and reason."""
    found: dict[int, dict[str, Any]] = {}
    moments = []
    for row in lab.spark.table(f"{lab.schema}.{name}_audit").orderBy("publish_no", "row_id").collect():
        publish = found.setdefault(
            row.publish_no, {"by": row.actor, "build": row.batch_id, "why": row.reason, "rows": Counter()}
        )
        publish["rows"][f"{row.change_type} {row.change_reason}"] += 1
        moments.append(row.published_at)
    assert moments == sorted(moments)
    assert list(found) == list(range(1, len(found) + 1))
    return list(found.values())


def begin(lab: Lab) -> None:
    """A new source, with one row for each key."""
    lab.write(
        "models/sources.yml",
        f"sources: [{{name: raw, schema: {lab.schema}, tables: [{{name: crm}}, {{name: shop}}]}}]\n",
    )
    lab.spark.sql(f"drop table if exists {lab.schema}.crm")
    lab.spark.sql(f"create table {lab.schema}.crm ({COLUMNS}) using {FORMAT}")
    tell(lab, 1, f"1, {KEYS + 1}", "Ada")


def beside_audit(spark: SparkSession, name: str) -> dict[str, int]:
    """Compare the rows of a dimension with those that its audit has added, minus those that it has removed.

    Returns: each row, as text, that the two have a different number of times, with the difference; empty if they agree.
    """
    stored = spark.table(name)
    texts = stored.selectExpr("struct(*) as row").selectExpr(f"{row_text('row', types_of(stored.schema))} as text")
    found = Counter[str](row.text for row in texts.collect())
    for row in spark.table(f"{name}_audit").collect():
        found[row.new_values or ""] -= 1
        found[row.old_values or ""] += 1
    del found[""]
    return {text: number for text, number in found.items() if number}
