"""What was known of a dimension, from its audit: in SQL and in Python."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from known import check_known_at, known_versions, rendered
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, expr
from rendered import SparkProject
from rendering import CompilerError
from tables import Tables, plain_rows

import healing_tables
from healing_tables import ArgumentError, DimensionSpec, as_of, merge

pytestmark = pytest.mark.usefixtures("interpreted")
SCHEMA = "known_at"
DIM = f"{SCHEMA}.dim"
NOW = "id int, name string, price decimal(13,3), added map<string,date>, valid_from date, valid_to date"
AUDIT = "publish_no bigint, published_at timestamp, key string, old_values string, new_values string"
# How the texts of the audit name the columns: the price was an int, then a column was dropped, then one was added
FIRST = "`id` int, `name` varchar(9), `price` int, `valid_from` date, `valid_to` date"
THEN = "`id` int, `name` string, `price` decimal(13,3), `Old One` double, `valid_from` date, `valid_to` date"
LAST = "`id` int, `name` string, `price` decimal(13,3), `added` map<string,date>, `valid_from` date, `valid_to` date"
ENDS = '"valid_from":"2024-01-01","valid_to":null'
OSLO = f'{{"id":7,"name":"Oslo","price":5,{ENDS},"@types":"{FIRST}"}}'
ROME = f'{{"id":7,"name":"Rome","price":5.125,"Old One":"NaN",{ENDS},"@types":"{THEN}"}}'
KYIV_ITEMS = '"added":[{"key":"a","value":"2024-02-29"}]'
KYIV = f'{{"id":7,"name":"\\"@types\\":\\"","price":null,{KYIV_ITEMS},{ENDS},"@types":"{LAST}"}}'
GONE = f'{{"id":8,"name":"Gone","price":1,{ENDS},"@types":"{FIRST}"}}'
PUBLISHES = [
    (None, "2024-01-01 00:00:00", '{"id":7}', None, '{"id":7,"name":"of before"}'),
    (1, "2024-03-01 00:00:00", '{"id":8}', GONE, None),
    (2, "2024-03-02 00:00:00", '{"id":7}', None, OSLO),
    (5, "2024-03-05 00:00:00", '{"id":7}', OSLO, ROME),
    (6, "2024-03-04 00:00:00", '{"id":8}', None, GONE),  # a clock that is behind
    (7, "2024-03-07 00:00:00.000001", '{"id":8}', GONE, None),
    (8, "2024-03-08 00:00:00", '{"id":7}', ROME, KYIV),
]
# id, name, price, added, Old One, known_from, known_to: by the rules
SINCE, OPEN = "2024-03-01 00:00:00", "9999-12-31 00:00:00"
VERSIONS = {
    (7, "Oslo", "5.000", None, None, "2024-03-02 00:00:00", "2024-03-05 00:00:00"),
    (7, "Rome", "5.125", None, "NaN", "2024-03-05 00:00:00", "2024-03-08 00:00:00"),
    (7, '"@types":"', None, '{"a":"2024-02-29"}', None, "2024-03-08 00:00:00", OPEN),
    (8, "Gone", "1.000", None, None, "2024-03-05 00:00:00", "2024-03-07 00:00:00.000001"),
    (9, "Never moved", "2.000", None, None, SINCE, OPEN),
}
SHOWN = ("id", "name", "cast(price as string)", "to_json(added)", "cast(`Old One` as string)")
TIMES = tuple(f"cast(to_utc_timestamp({name}, current_timezone()) as string)" for name in ("known_from", "known_to"))


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> Tables:
    return Tables(spark, schema=SCHEMA)


@pytest.fixture
def dim(tables: Tables) -> str:
    """A dimension and its audit, as they are after the publishes above."""
    rows = [(7, '"@types":"'), (9, "Never moved")]
    values = ", ".join(f"({id}, '{name}')" for id, name in rows)
    tables.spark.sql(f"drop table if exists {DIM}")
    tables.spark.sql(f"create table {DIM} ({NOW}) using delta")
    tables.spark.sql(
        f"insert into {DIM} select id, name, if(id = 9, 2, null), null, date '2024-01-01', null "
        f"from values {values} as rows(id, name)"
    )
    audit = tables.spark.createDataFrame(PUBLISHES, AUDIT.replace("timestamp", "string"))
    audit = audit.withColumn("published_at", expr("cast(concat(published_at, 'Z') as timestamp)"))
    audit.write.mode("overwrite").option("overwriteSchema", "true").format("delta").saveAsTable(f"{DIM}_audit")
    return DIM


def in_sql(dim: str, spark: SparkSession, **options: Any) -> DataFrame:
    arguments = ", ".join(f"{name}={'none' if value is None else repr(value)}" for name, value in options.items())
    return known_versions(spark, dim, arguments)


def in_python(dim: str, spark: SparkSession, **options: Any) -> DataFrame:
    return healing_tables.known_versions(spark.table(dim), spark.table(f"{dim}_audit"), **options)


@pytest.mark.parametrize("ask", [in_sql, in_python])
def test_every_version(dim: str, tables: Tables, ask: Callable[..., DataFrame]) -> None:
    """Also those of columns with other types, or that are gone, of rows from before the audit, and of rows without."""
    found = ask(dim, tables.spark)
    assert found.columns == [*tables.spark.table(dim).columns, "Old One", "known_from", "known_to"]
    assert {tuple(row) for row in found.selectExpr(*SHOWN, *TIMES).collect()} == VERSIONS
    assert dict(found.dtypes)["price"] == "decimal(13,3)"


@pytest.mark.parametrize("ask", [in_sql, in_python])
def test_an_open_end_of_null(dim: str, tables: Tables, ask: Callable[..., DataFrame]) -> None:
    found = ask(dim, tables.spark, valid_to_current=None)
    assert found.where("known_to is null").count() == 2


@pytest.mark.parametrize("ask", [in_sql, in_python])
def test_before_the_first_publish(dim: str, tables: Tables, ask: Callable[..., DataFrame]) -> None:
    """Nothing was published since the audit was turned on: the rows of the table are known now."""
    tables.spark.sql(f"delete from {dim}_audit where publish_no is not null")
    rows = ask(dim, tables.spark).where("known_from <= now() and known_to > now()")
    assert {row.id for row in rows.collect()} == {7, 9}


@pytest.mark.parametrize(
    ("known_at", "names"),
    [
        ("2024-03-01", {"Never moved"}),
        ("2024-03-02", {"Never moved", "Oslo"}),
        ("2024-03-06 12:00", {"Never moved", "Rome", "Gone"}),
        ("2024-03-07", {"Never moved", "Rome", "Gone"}),
        ("2024-03-07 00:00:00.000001", {"Never moved", "Rome"}),
        ("2024-03-08T01:00:00+01:00", {"Never moved", '"@types":"'}),
    ],
)
def test_known_at(dim: str, tables: Tables, known_at: str, names: set[str]) -> None:
    spark = tables.spark
    found = rendered(spark, dim, f"versions_at(DIM, '2024-02-01', known_at='{known_at}')")
    assert {row.name for row in found.collect()} == names
    facts = spark.sql("select id as fact, id, date '2024-02-01' as at from values 7, 8, 9 as ids(id)")
    facts.write.mode("overwrite").format("delta").saveAsTable(f"{SCHEMA}.facts")
    arguments = ("id", "at", {"name": "name"}, "nobody")
    options = f"known_at='{known_at}', versions_per_key='few'"
    call = f"as_of(relation('facts'), DIM, 'id', 'at', {{'name': 'name'}}, 'nobody', {options})"
    by_sql = rendered(spark, dim, call)
    by_python = as_of(facts, spark.table(dim), *arguments, known_at=known_at, audit=spark.table(f"{dim}_audit"))
    assert plain_rows(by_sql) == plain_rows(by_python)
    assert {row.name for row in by_sql.collect()} == names | ({"nobody"} if len(names) < 3 else set())


@pytest.mark.parametrize(
    ("call", "parts"),
    [
        ("versions_at(DIM, '2024-02-01', known_at='2024-02-29 23:59')", ["known_at", "2024-03-01 00:00:00"]),
        ("versions_at(DIM, '2024-02-01', known_at='soon')", ["known_at", "got:    soon"]),
        ("versions_at(DIM, '2024-02-01', audit='x.y')", ["audit", "known_at beside it"]),
        ("versions_at('rows', '2024-02-01', known_at='2024-04-01')", ["relation", "which has an audit"]),
        ("known_versions(DIM, valid_from='began')", ["valid_from", "began", "valid_from=none"]),
        ("known_versions(DIM, audit='known_at.nowhere')", ["audit", "which does not exist"]),
        ("known_versions(DIM, audit='known_at.dim')", ["audit", "an earlier version"]),
        ("known_versions(DIM, valid_to_current='never')", ["valid_to_current", "never"]),
    ],
)
def test_refused(dim: str, tables: Tables, call: str, parts: list[str]) -> None:
    with pytest.raises(CompilerError) as error:
        rendered(tables.spark, dim, call)
    for part in parts:
        assert part in str(error.value), str(error.value)


def test_empty(dim: str, tables: Tables) -> None:
    """Under --empty, dbt limits the table; its audit counts as little."""
    project = SparkProject(tables.spark, SCHEMA, "asked")
    project.context["flags"].EMPTY = True
    rows = tables.spark.sql(project.render("{{ healing_tables.known_versions(relation('dim')) }}")).collect()
    assert {row.name for row in rows} == {row.name for row in tables.spark.table(dim).collect()}


def test_refused_in_python(dim: str, tables: Tables) -> None:
    table, audit = tables.spark.table(dim), tables.spark.table(f"{dim}_audit")
    facts = tables.spark.sql("select 7 as fact, 7 as id, date '2024-02-01' as at")
    with pytest.raises(ArgumentError, match="published_at|when a row was published") as error:
        healing_tables.known_versions(table.withColumn("known_to", table.id), table, valid_from="began")
    assert len(error.value.mistakes) == 3
    for given in ({"known_at": "2024-02-29", "audit": audit}, {"known_at": "soon", "audit": audit}, {"audit": audit}):
        with pytest.raises(ArgumentError, match="known_at"):
            as_of(facts, table, "id", "at", "name", **given)
    with pytest.raises(ArgumentError, match="audit"):
        as_of(facts, table, "id", "at", "name", known_at="2024-03-09")


def test_one_row_per_key(tables: Tables) -> None:
    """Types 0 and 1 alone: a row is its key."""
    spec = DimensionSpec(key_columns="id", attributes={"name": 1}, audit={})
    name = f"{SCHEMA}.plain"
    for day, names in enumerate(("AB", "AC", "DC"), start=1):
        rows = [(number, letter) for number, letter in enumerate(names)]
        merge(tables.spark.createDataFrame(rows, "id int, name string"), name, spec, at=f"2024-01-0{day}")
    assert check_known_at(tables.spark, name, "valid_from=none") == 3


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_random_merges(tables: Tables, seed: int) -> None:
    """After each of them, the rows that were known are those of the table: late changes, deletions, new columns."""
    choose, name = random.Random(seed), f"{SCHEMA}.merged_{seed}"
    spec = DimensionSpec(
        key_columns=["id", "place"],
        attributes={"*": 2, "name": 1},
        changed_at="at",
        deleted_when="gone",
        on_schema_change="append_new_columns",
        audit={},
    )
    for number in range(8):
        # no two batches have the same days, and most of them are late
        keys = {
            (choose.randint(1, 4), choose.choice("xy"), f"2024-01-{choose.randrange(3) * 8 + number + 1:02}")
            for _ in range(6)
        }
        rows = [
            (*key, choose.choice(["A", "B", None]), choose.choice([1.5, float("nan"), None]), choose.random() < 0.2)
            for key in sorted(keys)
        ]
        batch = tables.spark.createDataFrame(
            rows, "id int, place string, at string, name string, price double, gone boolean"
        ).withColumn("at", col("at").cast("date"))
        if number > 3:
            batch = batch.withColumn("items", expr("array(named_struct('a', id))"))
        merge(batch, name, spec)
    assert check_known_at(tables.spark, name) >= 6
