"""The dimensions in PostgreSQL, in S3, and as dbt rebuilds them: the same rows? Ends with an error if not.

PostgreSQL and S3 are those of the environment, Spark and dbt's tables those of SPARK_CONF_DIR.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

import psycopg
from pyspark.sql import DataFrame, SparkSession
from split import SIDES

from healing_tables import FilesTarget

Row = tuple[str | None, ...]
PLACES = ("PostgreSQL", "S3", "dbt")
MOMENTS = ("start_date", "end_date")
SHOWN = ("first_name", "last_name", "address", *MOMENTS, "is_active")
BRIAN = [
    ("Brian", "Howell", "573", "1900-01-01 00:00:00", "2022-10-18 12:00:00", "N"),
    ("Brian", "Howell", "574", "2022-10-18 12:00:00", "9999-12-31 23:59:59", "Y"),
]


def columns(side: str) -> list[str]:
    return [f"{side}_id", *SHOWN, "id", "job", "pseudonym", "phone", "trades", "total"]


def in_postgres(side: str) -> list[Row]:
    shown = [
        f"to_char({name} at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS.US')" if name in MOMENTS else f"{name}::text"
        for name in columns(side)
    ]
    with psycopg.connect() as connection:
        found = connection.execute(f"select {', '.join(shown)} from retail.dim_{side}").fetchall()
    return in_order(found)


def in_frame(frame: DataFrame, side: str) -> list[Row]:
    shown = [
        f"date_format({name}, 'yyyy-MM-dd HH:mm:ss.SSSSSS')" if name in MOMENTS else f"cast({name} as string)"
        for name in columns(side)
    ]
    return in_order([tuple(row) for row in frame.selectExpr(*shown).collect()])


def in_order(rows: Sequence[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: tuple(value or "" for value in row))


def all_rows(spark: SparkSession, side: str) -> dict[str, list[Row]]:
    """Of a dimension: place to rows, as text."""
    files = FilesTarget(f"s3a://retail/dimensions/dim_{side}").read(spark)
    assert files is not None, f"dim_{side} in S3 does not exist"
    found = [in_postgres(side), in_frame(files, side), in_frame(spark.table(f"retail.dim_{side}"), side)]
    return dict(zip(PLACES, found, strict=True))


def differences(found: Mapping[str, list[Row]]) -> list[str]:
    """A line for each row that is not in all places."""
    every = set().union(*found.values())
    lines = []
    for row in in_order(list(every)):
        counts = [rows.count(row) for rows in found.values()]
        if set(counts) != {1}:
            where = ", ".join(f"{place}: {count}" for place, count in zip(found, counts, strict=True))
            lines.append(f"  {where}  {row}")
    return lines


def brian(found: Mapping[str, list[Row]]) -> list[Row]:
    """His rows in PostgreSQL, without the key and the fractions of seconds, which are zero."""
    rows = [row[1 : len(SHOWN) + 1] for row in found["PostgreSQL"] if row[0] == "0"]
    return [tuple(value.removesuffix(".000000") if value else value for value in row) for row in rows]


def main() -> int:
    spark = SparkSession.builder.enableHiveSupport().getOrCreate()
    differ: list[str] = []
    for side in SIDES:
        found = all_rows(spark, side)
        lines = differences(found)
        differ += lines
        keys = {row[0] for row in found["PostgreSQL"]}
        counts = ", ".join(f"{len(rows)} in {place}" for place, rows in found.items())
        same = "the same in all places" if not lines else "not the same:"
        print("\n".join([f"dim_{side}: {len(keys)} keys; rows: {counts}; {same}", *lines]))
        if side == "buyer":
            shown = brian(found)
    print("\nBrian Howell")
    for row in [SHOWN, *shown]:
        print(
            "  "
            + "  ".join(str(value).ljust(19 if name in MOMENTS else 10) for name, value in zip(SHOWN, row)).rstrip()
        )
    if shown != BRIAN:
        print(f"  wanted: {BRIAN}")
    return 1 if differ or shown != BRIAN else 0


if __name__ == "__main__":
    sys.exit(main())
