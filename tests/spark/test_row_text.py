"""The text of a row gives back every value of every type, and names the types itself."""

from __future__ import annotations

import json
import re

import pytest
from pyspark.sql import SparkSession
from type_examples import IN_ROW_TEXT

from healing_tables.sql.instants import TIMESTAMP
from healing_tables.sql.row_text import TYPES, as_json, parsed_row, row_text
from healing_tables.sql.types import has_no_equality

pytestmark = pytest.mark.usefixtures("interpreted")


@pytest.mark.parametrize("kind", IN_ROW_TEXT)
def test_every_value_comes_back(spark: SparkSession, kind: str) -> None:
    in_library = re.sub(r"(?<=[:<,])timestamp(?=[,>])|^timestamp$", TIMESTAMP, kind)
    columns = {"it's": in_library, "n": "int"}
    given = ", ".join(f"cast({value} as {kind})" for value in IN_ROW_TEXT[kind])
    rows = spark.sql(f"select struct(v as `it's`, n as n) as r from (select posexplode(array({given})) as (n, v))")
    rows = rows.selectExpr("r", f"{row_text('r', columns)} as text")
    rows = rows.selectExpr("r", "text", f"{parsed_row('text', columns)} as read")
    value = as_json("read.`it's`", in_library, back=True)
    rows = rows.selectExpr("r", "text", f"named_struct('it\\'s', {value}, 'n', read.n) as found")
    value = "to_json(array({0}.`it's`))" if has_no_equality(kind) else "{0}.`it's`"
    same = f"({value.format('found')} <=> {value.format('r')}) and found.n = r.n as same"
    answer = rows.selectExpr(same, "text", "typeof(found.`it's`) = typeof(r.`it's`) as has_type").collect()
    assert [(row.same, row.has_type) for row in answer] == [(True, True)] * len(IN_ROW_TEXT[kind]), answer
    assert {json.loads(row.text)[TYPES] for row in answer} == {f"`it's` {in_library}, `n` int"}


def test_what_a_row_lacks(spark: SparkSession) -> None:
    """NULL is a member, a column that the row does not have is none; a row that is NULL has no text."""
    text = row_text("r", {"a": "int"})
    given = spark.sql("select struct(cast(null as int) as a) as r union all select null").selectExpr(f"{text} as text")
    read = given.selectExpr("text", f"{parsed_row('text', {'a': 'int', 'b': 'date'})} as row")
    kept, none = sorted(read.collect(), key=lambda row: row.text is None)
    assert json.loads(kept.text) == {"a": None, TYPES: "`a` int"}
    assert kept.row.asDict() == {"a": None, "b": None}
    assert (none.text, none.row) == (None, None)
