"""What was known of a dimension beside what its table was: time travel is the witness."""

from __future__ import annotations

from collections import Counter

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr
from rendered import SparkProject
from sessions import FORMAT

from healing_tables.sql.identifiers import quoted
from healing_tables.sql.row_text import row_text
from healing_tables.sql.types import types_of


def rendered(spark: SparkSession, name: str, call: str) -> DataFrame:
    """What a macro gives. Args: name: schema.table; call: with DIM for its relation."""
    schema, table = name.split(".")
    call = call.replace("DIM", f"relation('{table}')")
    return spark.sql(SparkProject(spark, schema, "asked").render(f"{{{{ healing_tables.{call} }}}}"))


def known_versions(spark: SparkSession, name: str, arguments: str = "") -> DataFrame:
    return rendered(spark, name, f"known_versions(DIM{', ' * bool(arguments)}{arguments})")


def versions_by_publish(spark: SparkSession, name: str, audit: str) -> dict[int, tuple[str, int]]:
    """The moment of each publish as text in UTC, and the version of the table at that moment."""
    if FORMAT == "iceberg":
        commits = spark.sql(f"select snapshot_id as version, made_current_at as at from {name}.history")
    else:
        commits = spark.sql(f"describe history {name}").selectExpr("version", "timestamp as at")
    times = spark.table(audit).where("publish_no is not null").groupBy("publish_no").agg({"published_at": "max"})
    found = times.toDF("publish_no", "published_at").join(commits, expr("at <= published_at"))
    moment = "cast(to_utc_timestamp(published_at, current_timezone()) as string) as text"
    rows = found.selectExpr("publish_no", moment, "at", "version").orderBy("publish_no", "at").collect()
    return {row.publish_no: (row.text, row.version) for row in rows}


def check_known_at(spark: SparkSession, name: str, arguments: str = "", audit: str | None = None) -> int:
    """After each publish, the rows that were known are those of the table. The number of publishes."""
    publishes = versions_by_publish(spark, name, audit or f"{name}_audit")
    known = known_versions(spark, name, arguments).cache()
    for number, (moment, version) in publishes.items():
        then = known.where(f"known_from <= timestamp '{moment}Z' and timestamp '{moment}Z' < known_to")
        assert differing(then, spark.sql(f"select * from {name} version as of {version}")) == {}, (number, version)
    known.unpersist()
    return len(publishes)


def differing(known: DataFrame, table: DataFrame) -> dict[str, int]:
    """The texts of rows whose number in one is not that in the other. A column that a table does not have is NULL."""
    types = types_of(table.schema)
    others = [name for name in known.columns if name not in [*types, "known_from", "known_to"]]
    columns = [f"cast({quoted(name)} as {kind}) as {quoted(name)}" for name, kind in types.items()]
    found = Counter[str]()
    for rows, sign in ((table.selectExpr(*columns), 1), (known.selectExpr(*columns, *map(quoted, others)), -1)):
        whole = rows.selectExpr("struct(*) as row").selectExpr(f"{row_text('row', types)} as text", "row.*")
        for row in whole.collect():
            assert sign > 0 or not any(row[name] is not None for name in others), row
            found[row.text] += sign
    return {text: number for text, number in found.items() if number}
