"""The key map of a dimension with integer surrogate keys (docs/decisions/0040-key-map.md).

``<dimension>__keys`` has every number that was ever assigned: a version, identified by its key and its start, gets its
number once. The macros in macros/build/_sequence.sql keep the same table.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from healing_tables.definition.layout import Layout
from healing_tables.definition.spec import DimensionSpec
from healing_tables.plan.stored_rows import row_period
from healing_tables.sql.hashing import hash_text
from healing_tables.sql.identifiers import find, quoted
from healing_tables.sql.instants import TIMESTAMP
from healing_tables.sql.values import normal
from healing_tables.targets.naming import as_view
from healing_tables.targets.retry import retrying
from healing_tables.targets.sql_table import SqlTable

COLUMNS = {"key": "string", "valid_from": TIMESTAMP, "surrogate_key": "bigint"}


@dataclass(frozen=True)
class KeyMap:
    """The key map of one dimension."""

    table: SqlTable
    layout: Layout
    spec: DimensionSpec

    def with_numbers(self, plan: DataFrame, stored: DataFrame | None) -> DataFrame:
        """The plan with the numbers of its new rows. Versions that have none yet get the next ones, in one commit.

        Args:
            plan: of plan.plan.
            stored: the dimension; the first merge copies the numbers that it has.
        """
        spark, surrogate = plan.sparkSession, quoted(self.layout.surrogate or "")
        self.prepare(spark, stored)
        key, start = version_of(self.layout, self.spec, "new.")
        new = plan.where("action = 'insert'").selectExpr(
            f"{key} as key", f"{start} as valid_from", "key as key_columns"
        )
        largest = 0
        if stored is not None:
            # a number that another writer has put there is reserved, too
            largest = stored.selectExpr(f"coalesce(max({surrogate}), 0)").collect()[0][0]
        with as_view(new.distinct()) as versions:

            def statement(table: str) -> str:
                return f"""
merge into {table} t
using (
    select v.key, v.valid_from,
        largest.surrogate_key + dense_rank() over (order by v.key_columns, v.valid_from) as surrogate_key
    from {versions} v
    left anti join {table} numbered on numbered.key = v.key and numbered.valid_from = v.valid_from
    cross join (
        select greatest(coalesce(max(surrogate_key), 0), {largest}L) as surrogate_key from {table}
    ) largest
) s
on t.key = s.key and t.valid_from = s.valid_from
when not matched then insert (key, valid_from, surrogate_key) values (s.key, s.valid_from, s.surrogate_key)"""

            retrying(self.table.name, lambda: self.table.change(spark, statement))
        numbers = self.table.rows(spark).join(
            f.broadcast(new.select("key", "valid_from")), ["key", "valid_from"], "left_semi"
        )
        return numbered(plan, numbers.localCheckpoint(), self.layout, self.spec)

    def prepare(self, spark: SparkSession, stored: DataFrame | None) -> None:
        """Create the table if it does not exist, in one commit with the numbers that the dimension has."""
        if stored is None or self.table.read(spark) is not None:
            self.table.ensure(spark, COLUMNS, COLUMNS, "key map")
        else:
            with as_view(stored_numbers(stored, self.layout, self.spec)) as view:
                query = (
                    f"select key, valid_from, max(surrogate_key) as surrogate_key from {view} "
                    "where surrogate_key is not null group by key, valid_from"
                )
                self.table.create(spark, COLUMNS, query=query)
        self.table.recover(spark)


def numbered(plan: DataFrame, numbers: DataFrame, layout: Layout, spec: DimensionSpec) -> DataFrame:
    """A plan whose new rows have their numbers. Args: numbers: in the columns of the key map."""
    key, start = version_of(layout, spec, "new.")
    numbers = numbers.selectExpr("key as map_key", "valid_from as map_from", "surrogate_key as map_number")
    is_same = f.expr(f"action = 'insert' and map_key = {key} and map_from = {start}")
    surrogate = quoted(layout.surrogate or "")
    row = f.when(f.expr("action = 'insert'"), f.col("new").withField(surrogate, f.col("map_number")))
    plan = plan.join(numbers, is_same, "left").withColumn("new", row.otherwise(f.col("new")))
    return plan.drop("map_key", "map_from", "map_number")


def stored_numbers(stored: DataFrame, layout: Layout, spec: DimensionSpec) -> DataFrame:
    """The numbers that a dimension has, in the columns of its key map."""
    names = layout.columns(spec)
    stored = stored.toDF(*(find(name, names) or name for name in stored.columns))
    key, start = version_of(layout, spec)
    number = f"cast({quoted(layout.surrogate or '')} as bigint)"
    return stored.selectExpr(f"{key} as key", f"{start} as valid_from", f"{number} as surrogate_key")


def version_of(layout: Layout, spec: DimensionSpec, row: str = "") -> tuple[str, str]:
    """What identifies a version, as SQL: key and start. Neither depends on the types of the columns.

    Args: row: a prefix of the dimension's columns, such as ``new.``
    """
    text = text_of_key([(row + quoted(key.name), key.type) for key in layout.keys])
    # a row without versions has one number, whatever its start
    has_versions = "valid_from" in layout.names and not layout.has_history
    start = row_period(layout, spec, row).start if has_versions else "0L"
    return text, f"timestamp_micros({start})"


def text_of_key(columns: Sequence[tuple[str, str]]) -> str:
    """The key of `version_of`. Args: columns: (expression, type)."""
    keys = [key_text(expression, kind) for expression, kind in columns]
    return keys[0] if len(keys) == 1 else f"concat_ws('|', {', '.join(keys)})"


def key_text(expression: str, kind: str) -> str:
    """The text of a key as in ``key_hash``, except that integers and decimals 1, 1.0 and 1.00 have the same text."""
    text = hash_text(normal(expression, kind), kind)
    scale = re.fullmatch(r"decimal\(\d+,(\d+)\)", kind)
    if scale and int(scale[1]) > 0:
        return f"regexp_replace({text}, '[.]?0+$', '')"
    return text
