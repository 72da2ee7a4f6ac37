"""What the audit of a dimension lacks, or has too much, beside its rows."""

from __future__ import annotations

from collections import Counter

from pyspark.sql import SparkSession

from healing_tables.sql.row_text import row_text
from healing_tables.sql.types import types_of


def beside_audit(spark: SparkSession, name: str) -> dict[str, int]:
    """The texts of rows whose number in the dimension is not that of its audit, with the difference.

    That of the audit: the rows that it has added, without those that it has removed.
    """
    stored = spark.table(name)
    texts = stored.selectExpr("struct(*) as row").selectExpr(f"{row_text('row', types_of(stored.schema))} as text")
    found = Counter[str](row.text for row in texts.collect())
    for row in spark.table(f"{name}_audit").collect():
        found[row.new_values or ""] -= 1
        found[row.old_values or ""] += 1
    del found[""]
    return {text: number for text, number in found.items() if number}
