"""Types whose values Spark compares in another way than by value, and types that it does not show whole: text with a
collation, text of a fixed length, structs of more than 25 fields."""

from __future__ import annotations

import pytest
from lab import Lab
from sessions import FORMAT, SPARK

FIELDS = ", ".join(f"f{number}: int" for number in range(29))
VALUES = ", ".join(f"'f{number}', {number}" for number in range(29))
HAS_COLLATIONS = SPARK >= (4, 0)
TIE = ", 'tie_break_by': ['seq']"
LCASE = "collate UTF8_LCASE" if HAS_COLLATIONS else ""


def source(name: str, more: str = "") -> str:
    return f"{{'relation': source('raw', '{name}'), 'changed_at': 'at'{more}}}"


def dimension(sources: str, more: str = "") -> str:
    return f"{{{{ healing_tables.dimension({sources}{more}) }}}}"


def made(lab: Lab, name: str, columns: str, *rows: str) -> None:
    lab.spark.sql(f"create table {lab.schema}.{name} ({columns}) using parquet")
    lab.spark.sql(f"insert into {lab.schema}.{name} values {', '.join(rows)}")


@pytest.fixture(scope="module")
def built(lab: Lab) -> Lab:
    made(
        lab,
        "collated",
        f"code string {LCASE}, at date, place struct<`the city`: string {LCASE}, n: int>, tags array<string {LCASE}>",
        "('a', date '2024-01-01', named_struct('the city', 'Oslo', 'n', 1), array('x'))",
        "('a', date '2024-02-01', named_struct('the city', 'OSLO', 'n', 1), array('x'))",
        "('a', date '2024-03-01', named_struct('the city', 'OSLO', 'n', 1), array('X'))",
        "('A', date '2024-01-01', named_struct('the city', 'Rome', 'n', 1), null)",
    )
    made(
        lab,
        "tied",
        f"code string, at date, place struct<city: string {LCASE}>",
        "('a', date '2024-01-01', named_struct('city', 'Oslo'))",
        "('a', date '2024-01-01', named_struct('city', 'OSLO'))",
    )
    made(lab, "padded", "code char(3), at date, name char(5), deep struct<c: char(4)>",
         "('AB', date '2024-01-01', 'Ann', named_struct('c', 'x'))")  # fmt: skip
    made(
        lab, "mapped", "id int, at date, name string, seq map<string, int>", "(1, date '2024-01-01', 'a', map('a', 1))"
    )
    made(lab, "unpadded", "code string, at date, note string", "('AB', date '2024-02-01', 'seen')")
    # decision 51: a Delta table shows a char column as string, a view over it does not
    lab.spark.sql(f"create table {lab.schema}.delta_padded (code char(3), at date, name char(5)) using {FORMAT}")
    lab.spark.sql(f"insert into {lab.schema}.delta_padded values ('AB', date '2024-01-01', 'Ann')")
    lab.spark.sql(f"create view {lab.schema}.padded_view as select * from {lab.schema}.delta_padded")
    wide = f"struct<{FIELDS}, d: double, `the list`: array<struct<x: double>>>"
    rows = [
        f"(1, date '2024-01-0{day}', named_struct({VALUES}, 'd', cast('{d}' as double), 'the list', array(named_struct("
        f"'x', {x}d))))"
        for day, d, x in ((1, "0.0", 1.5), (2, "-0.0", 1.5), (3, "-0.0", 2.5))
    ]
    made(lab, "wide", f"id int, at date, thing {wide}", *rows)
    made(lab, "hidden_map", f"id int, at date, thing struct<{FIELDS}, m: map<string, int>>",
         f"(1, date '2024-01-01', named_struct({VALUES}, 'm', map('a', 1)))")  # fmt: skip
    made(lab, "hidden_text", f"id int, at date, thing struct<{FIELDS}, d: string>",
         f"(1, date '2024-01-01', named_struct({VALUES}, 'd', 'a'))")  # fmt: skip
    names = ["collated", "tied", "padded", "unpadded", "wide", "hidden_map", "hidden_text", "mapped", "padded_view"]
    tables = ", ".join(f"{{name: {name}}}" for name in names)
    lab.write("models/sources.yml", f"sources: [{{name: raw, schema: {lab.schema}, tables: [{tables}]}}]\n")

    def table(name: str, sources: str, key: str = "id", more: str = "", **config: str) -> None:
        lab.model(name, dimension(sources, more), materialized="healing_table", unique_key=key, **config)

    table("dim_collated", f"{{'s': {source('collated')}}}", "code")
    table("dim_collated_files", f"{{'s': {source('collated')}}}", "code", file_format="parquet")
    table("dim_tied", f"{{'s': {source('tied')}}}", "code")
    table("dim_padded", f"{{'one': {source('padded')}, 'two': {source('unpadded')}}}", "code")
    table("dim_padded_view", f"{{'one': {source('padded_view')}, 'two': {source('unpadded')}}}", "code")
    table("dim_wide", f"{{'s': {source('wide')}}}")
    for kind in ("parquet", "orc"):
        table(f"dim_wide_{kind}", f"{{'s': {source('wide')}}}", file_format=kind)
    table("dim_of_wide_keys", f"{{'s': {source('wide')}}}", "thing", ", attributes=['id']")
    table("dim_hidden_map", f"{{'s': {source('hidden_map')}}}")
    table("dim_tie_by_map", f"{{'s': {source('mapped', TIE)}}}", more=", attributes=['name']")
    both = "{'thing': {'from': ['one', 'two']}}"
    two = f"{{'one': {source('wide')}, 'two': {source('hidden_text')}}}"
    table("dim_hidden_types", two, more=f", attributes={both}")
    for name in ("collated", "wide", "padded"):
        sql = f"select * from {{{{ source('raw', '{name}') }}}} where at = date '2024-01-01'"
        lab.model(f"captured_{name}", sql, materialized="capture", unique_key="id" if name == "wide" else "code")
    lab.dbt("run")
    return lab


def cities(lab: Lab, name: str) -> list[tuple[str, str]]:
    rows = lab.spark.table(f"{lab.schema}.{name}").selectExpr("code", "place.`the city` as city", "valid_from")
    return [(row[0], row[1]) for row in sorted(rows.collect(), key=lambda row: (row[2], row[0]))]


@pytest.mark.skipif(not HAS_COLLATIONS, reason="Spark 3.5 has no collations")
@pytest.mark.parametrize("name", ["dim_collated", "dim_collated_files"])
def test_text_compares_by_code_point_wherever_it_is(built: Lab, name: str) -> None:
    assert built.results[name][0] == "success", built.results[name]
    assert cities(built, name) == [("A", "Rome"), ("a", "Oslo"), ("a", "OSLO"), ("a", "OSLO")]
    types = dict(built.spark.table(f"{built.schema}.{name}").dtypes)
    assert [types[column] for column in ("code", "place", "tags")] == [
        "string",
        "struct<the city:string,n:int>",
        "array<string>",
    ]


@pytest.mark.skipif(not HAS_COLLATIONS, reason="Spark 3.5 has no collations")
def test_rows_that_differ_by_case_tie(built: Lab) -> None:
    status, message = built.results["dim_tied"]
    assert status == "error"
    assert "tie" in message


def test_a_capture_stores_plain_text(built: Lab) -> None:
    for name in ("captured_collated", "captured_padded", "captured_wide"):
        assert built.results[name][0] == "success", built.results[name]
    assert set(built.rows("captured_collated", "code")) == {("a",), ("A",)}
    # Spark shows a char(n) in a query as a string, so its padding stays
    row = built.spark.sql(f"select code, length(name), deep.c from {built.schema}.captured_padded").collect()[0]
    assert tuple(row) == ("AB ", 5, "x   ")


def test_padding_is_no_part_of_a_value(built: Lab) -> None:
    assert built.results["dim_padded"][0] == "success", built.results["dim_padded"]
    found = built.spark.table(f"{built.schema}.dim_padded").selectExpr("code", "name", "deep.c", "note", "key_hash")
    hashed = built.spark.sql("select sha2('AB', 256)").collect()[0][0]
    assert sorted(map(tuple, found.collect()), key=str) == [
        ("AB", "Ann", "x", "seen", hashed),
        ("AB", "Ann", "x", None, hashed),
    ]


def test_padding_of_a_delta_table_behind_a_view(built: Lab) -> None:
    assert built.results["dim_padded_view"][0] == "success", built.results["dim_padded_view"]
    rows = built.rows("dim_padded_view", "code", "name", "note")
    assert sorted(rows, key=str) == [("AB", "Ann", "seen"), ("AB", "Ann", None)]


@pytest.mark.parametrize("name", ["dim_wide", "dim_wide_parquet", "dim_wide_orc"])
def test_a_struct_of_many_fields(built: Lab, name: str) -> None:
    assert built.results[name][0] == "success", built.results[name]
    rows = built.spark.table(f"{built.schema}.{name}").selectExpr(
        "cast(valid_from as string)", "thing.d", "thing.f28", "thing.`the list`[0].x"
    )
    assert sorted(map(tuple, rows.collect())) == [("2024-01-01", 0.0, 28, 1.5), ("2024-01-03", 0.0, 28, 2.5)]
    assert str(rows.collect()[0][1]) == "0.0"


def test_a_key_of_many_fields_compares_by_value(built: Lab) -> None:
    """0.0 and -0.0 are one key; another number in the list is another one."""
    assert built.results["dim_of_wide_keys"][0] == "success", built.results["dim_of_wide_keys"]
    assert built.spark.table(f"{built.schema}.dim_of_wide_keys").count() == 2


def test_types_in_hidden_fields_count(built: Lab) -> None:
    status, message = built.results["dim_hidden_map"]
    assert status == "error"
    assert "a type with equality" in message
    assert "m:map<string,int>" in message
    status, message = built.results["dim_tie_by_map"]
    assert status == "error"
    assert "sources.s.tie_break_by: seq" in message
    assert "map<string,int>" in message
    status, message = built.results["dim_hidden_types"]
    assert status == "error"
    assert "one type over all sources" in message


def test_a_second_build_of_each_changes_nothing(built: Lab) -> None:
    names = ["dim_collated", "dim_padded", "dim_wide", "dim_wide_parquet", "captured_collated", "captured_wide"]
    results = built.dbt("run", "--select", *(names if HAS_COLLATIONS else names[1:4]))
    assert {status for status, _ in results.values()} == {"success"}, results
    for name in results:
        assert built.newest(name)["status"] == "unchanged", name


if FORMAT == "iceberg":
    pytestmark = pytest.mark.skip("formats are named in the models")
