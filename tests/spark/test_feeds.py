"""Readers of change data capture: the same rows in SQL and in Python, and the dimension that follows from them."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from reader_examples import EXAMPLES, ReaderExample
from rendered import Rendered

from healing_tables import readers
from healing_tables.errors import ArgumentError

NAMES = ("_changed_at", "_sequence", "_is_deleted", "_is_truncated")


def frame_of(spark: SparkSession, example: ReaderExample, name: str) -> DataFrame:
    frame = spark.createDataFrame(example.rows, example.ddl)
    frame.createOrReplaceGlobalTempView(name)
    return frame


def shown(frame: DataFrame) -> list[tuple[Any, ...]]:
    """Moments and sequences as texts."""
    columns = [name for name in frame.columns if name not in NAMES]
    texts = ["cast(_changed_at as string)", "cast(_sequence as string)", *(n for n in NAMES[2:] if n in frame.columns)]
    rows = frame.selectExpr(*(f"`{name}`" for name in columns), *texts).collect()
    return sorted((tuple(row) for row in rows), key=repr)


def expected(spark: SparkSession, example: ReaderExample) -> list[tuple[Any, ...]]:
    columns = spark.createDataFrame([], example.row_ddl).columns
    flags = ", ".join(f"flag_{number} boolean" for number in range(len(example.expected[0]) - len(columns) - 2))
    frame = spark.createDataFrame(example.expected, f"{example.row_ddl}, at string, sequence string, {flags}")
    return sorted((tuple(row) for row in frame.collect()), key=repr)


@pytest.mark.parametrize("name", EXAMPLES)
def test_both_ways_read_the_same(rendered: Rendered, name: str) -> None:
    example, view = EXAMPLES[name], "feed_" + name.replace(" ", "_").lower()
    frame = frame_of(rendered.spark, example, view)
    wanted = expected(rendered.spark, example)
    assert shown(getattr(readers, example.reader)(frame, **example.arguments)) == wanted
    arguments = "".join(f", {key}={value!r}" for key, value in example.arguments.items())
    rendered.model(view, f"{{{{ healing_tables.read_{example.reader}(view('{view}'){arguments}) }}}}")
    assert shown(rendered.made(view)) == wanted


def test_other_names(rendered: Rendered) -> None:
    frame = frame_of(rendered.spark, EXAMPLES["dms"], "feed_named")
    names = {"_changed_at": "at", "_is_deleted": "gone"}
    wanted = ["id", "city", "at", "_sequence", "gone"]
    assert readers.dms(frame, "ts", column_names=names).columns == wanted
    rendered.model("named", f"{{{{ healing_tables.read_dms(view('feed_named'), 'ts', column_names={names}) }}}}")
    assert rendered.made("named").columns == wanted


def test_a_cte_needs_the_columns_of_the_row(rendered: Rendered) -> None:
    frame_of(rendered.spark, EXAMPLES["dms"], "feed_cte")
    with_cte = "with feed as (select * from {{ view('feed_cte') }}) "
    rendered.model("of_cte", with_cte + "{{ healing_tables.read_dms('feed', 'ts', columns=['id', 'city']) }}")
    assert shown(rendered.made("of_cte")) == expected(rendered.spark, EXAMPLES["dms"])
    rendered.model("no_columns", with_cte + "{{ healing_tables.read_dms('feed', 'ts') }}")
    assert "the columns of the row" in rendered.errors["no_columns"]


def test_columns_that_are_missing(rendered: Rendered) -> None:
    frame = frame_of(rendered.spark, EXAMPLES["dms"], "feed_missing")
    with pytest.raises(ArgumentError, match="a column _fivetran_start"):
        readers.fivetran(frame)
    rendered.model("missing", "{{ healing_tables.read_fivetran(view('feed_missing')) }}")
    assert "_fivetran_start" in rendered.errors["missing"]
    with pytest.raises(ArgumentError, match="column_names"):
        readers.dms(frame, "ts", column_names={"changed_at": "at"})


def test_a_dimension_of_a_feed(rendered: Rendered) -> None:
    """A row of a full load comes before changes of its moment; a changed key ends, and another one begins."""
    frame_of(rendered.spark, EXAMPLES["dms with a changed key"], "feed_keys")
    rendered.model(
        "of_feed",
        "{{ healing_tables.read_dms(view('feed_keys'), 'ts', sequence='seq', key_columns='id') }}",
    )
    rendered.model(
        "dim_of_feed",
        "{{ healing_tables.dimension({'dms': {'relation': ref('of_feed'), 'changed_at': '_changed_at', "
        "'sequence_by': '_sequence', 'deleted_when': '_is_deleted'}}, 'id') }}",
    )
    rows = rendered.made("dim_of_feed").select("id", "city", "is_current").collect()
    found = {(row.id, row.city, row.is_current) for row in rows}
    assert found == {(1, "Oslo", False), (2, "Oslo", False), (2, "Rome", True)}
