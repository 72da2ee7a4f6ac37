"""Batches whose text has a collation, or a fixed length: values compare by code point, without padding."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sessions import SPARK
from tables import Tables, plain_rows

from healing_tables import BatchError, DimensionSpec, FilesTarget, HiveTarget, merge
from healing_tables.as_of.as_of import as_of

pytestmark = pytest.mark.usefixtures("interpreted")
SPEC = DimensionSpec(key_columns="code", attributes=["place"])
needs_collations = pytest.mark.skipif(SPARK < (4, 0), reason="Spark 3.5 has no collations")


def batch(tables: Tables, code: str, city: str) -> Any:
    text = "collate UTF8_LCASE"
    return tables.spark.sql(
        f"select '{code}' {text} as code, named_struct('the city', '{city}' {text}, 'n', 1) as place"
    )


def target(kind: str, tables: Tables, folder: Path) -> Any:
    if kind == "files":
        return FilesTarget(str(folder / "dim"))
    name = f"{tables.schema}.{folder.name}"
    return HiveTarget(name, file_format="parquet") if kind == "hive" else name


@needs_collations
@pytest.mark.parametrize("kind", ["delta", "hive", "files"])
def test_a_collation_in_a_struct(tables: Tables, tmp_path: Path, kind: str) -> None:
    dim = target(kind, tables, tmp_path)
    merge(batch(tables, "a", "Oslo"), dim, SPEC, at="2024-01-01")
    result = merge(batch(tables, "a", "OSLO"), dim, SPEC, at="2024-02-01")
    assert (result.inserted, result.closed) == (1, 1)
    assert merge(batch(tables, "A", "OSLO"), dim, SPEC, at="2024-03-01").inserted == 1
    assert merge(batch(tables, "A", "OSLO"), dim, SPEC, at="2024-04-01").commit_version is None
    rows = dim.read(tables.spark) if kind == "files" else tables.spark.table(getattr(dim, "name", dim))
    assert dict(rows.dtypes)["place"] == "struct<the city:string,n:int>"
    found = rows.selectExpr("code", "place.`the city`", "cast(valid_from as date)").collect()
    assert sorted((row[0], row[1], str(row[2])) for row in found) == [
        ("A", "OSLO", "2024-03-01"),
        ("a", "OSLO", "2024-02-01"),
        ("a", "Oslo", "2024-01-01"),
    ]


@needs_collations
def test_a_stored_column_with_a_collation(tables: Tables, tmp_path: Path) -> None:
    """Of a table that another program made."""
    name, text = f"{tables.schema}.made_elsewhere", "string collate UTF8_LCASE"
    columns = f"code {text}, place struct<city: {text}>, valid_from timestamp, valid_to timestamp, is_current boolean"
    tables.spark.sql(f"create table {name} ({columns}) using parquet location '{tmp_path / 'rows'}'")
    tables.spark.sql(
        f"insert into {name} values ('a', named_struct('city', 'Oslo'), timestamp '2024-01-01 00:00:00Z', "
        "timestamp '9999-12-31 00:00:00Z', true)"
    )
    left_out = {"version": None, "key_hash": None, "row_hash": None}
    spec = DimensionSpec(key_columns="code", attributes=["place"], column_names=left_out)
    changed = tables.spark.sql("select 'a' as code, named_struct('city', 'OSLO') as place")
    result = merge(changed, HiveTarget(name, file_format="parquet"), spec, at="2024-02-01")
    assert (result.inserted, result.closed) == (1, 1)
    found = tables.spark.table(name).selectExpr("place.city", "is_current").collect()
    assert sorted(map(tuple, found)) == [("OSLO", True), ("Oslo", False)]


@needs_collations
def test_rows_that_differ_by_case_are_two(tables: Tables) -> None:
    both = batch(tables, "a", "Oslo").union(batch(tables, "a", "OSLO"))
    with pytest.raises(BatchError, match="two different rows for one key and moment"):
        merge(both, f"{tables.schema}.tied", SPEC, at="2024-01-01")


def test_padding_is_no_part_of_a_value(tables: Tables) -> None:
    tables.spark.sql(f"create table {tables.schema}.padded (code char(3), place char(5)) using parquet")
    tables.spark.sql(f"insert into {tables.schema}.padded values ('AB', 'Oslo')")
    dim = f"{tables.schema}.dim_padded"
    merge(tables.spark.table(f"{tables.schema}.padded"), dim, SPEC, at="2024-01-01")
    result = merge(tables.spark.sql("select 'AB' as code, 'Oslo' as place"), dim, SPEC, at="2024-02-01")
    assert result.commit_version is None
    hashed = tables.spark.sql("select sha2('AB', 256), sha2('Oslo', 256)").collect()[0]
    found = plain_rows(tables.spark.table(dim), ["code", "place", "key_hash", "row_hash"])
    assert found == [("AB", "Oslo", *hashed)]
    facts = tables.spark.table(f"{tables.schema}.padded").selectExpr("code", "timestamp '2024-03-01 00:00:00Z' as at")
    joined = as_of(facts, tables.spark.table(dim), key_columns="code", at="at", columns="place")
    assert [row["place"] for row in joined.collect()] == ["Oslo"]


def test_a_tie_breaker_without_an_order(tables: Tables) -> None:
    rows = tables.spark.sql("select 'a' as code, 1 as place, map('a', 1) as seq")
    spec = DimensionSpec(key_columns="code", attributes=["place"], tie_break_by="seq")
    with pytest.raises(BatchError, match="tie_break_by: seq\n(.*\n)*.*map<string,int>"):
        merge(rows, f"{tables.schema}.by_map", spec, at="2024-01-01")
