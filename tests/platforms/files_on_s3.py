"""A process whose JVM has the jars for S3, and which merges there. See test_files_on_s3.py.

    python files_on_s3.py HOME PORT BUCKET

Prints a line of JSON per observation.
"""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from s3_server import S3Server
from s3_session import s3_settings
from sessions import session_settings, without_codegen
from tables import plain_rows

from healing_tables import DimensionSpec, FilesTarget, merge

SPEC = DimensionSpec(key_columns="id", attributes={"name": 4, "city": 1}, audit={})


def say(name: str, value: Any) -> None:
    print(json.dumps([name, value]), flush=True)


def batch(spark: SparkSession, *rows: tuple[int, str | None]) -> DataFrame:
    return spark.createDataFrame([(*row, "Bern") for row in rows], "id int, name string, city string")


def observe(spark: SparkSession, server: S3Server) -> None:
    for file_format in ("parquet", "csv"):
        dim = FilesTarget(server.url(f"lake ü#%/{file_format}"), file_format, keep_versions=1)
        first = merge(batch(spark, (1, "A"), (2, None)), dim, SPEC, at="2024-01-01")
        second = merge(batch(spark, (1, "B"), (2, "")), dim.path, SPEC, at="2024-01-02")
        say(f"{file_format} commits", [first.commit_version, second.commit_version])
        for suffix in ("", "_history"):
            rows = FilesTarget(dim.path + suffix).read(spark)
            say(file_format + suffix, rows and plain_rows(rows, ["id", "name"]))
    delta = server.url("delta/dim")
    merge(batch(spark, (1, "A")), delta, SPEC, at="2024-01-01")
    merge(batch(spark, (1, "B")), delta, SPEC, at="2024-01-02")
    say("delta", plain_rows(spark.read.format("delta").load(delta), ["id", "name"]))
    race(spark, FilesTarget(server.url("raced")))


def race(spark: SparkSession, dim: FilesTarget) -> None:
    attempts = []

    def write(writer: int) -> None:
        for number in range(3):
            attempts.append(merge(batch(spark, (writer, f"v{number}")), dim, SPEC).attempts)

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    say("attempts", attempts)
    say("raced", plain_rows(dim.rows(spark), ["id", "name"]))
    history = FilesTarget(f"{dim.path}_history").read(spark)
    say("raced history", history and plain_rows(history, ["id", "name"]))


def main(home: Path, server: S3Server) -> None:
    settings = session_settings(home) | s3_settings(server)
    spark = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    with without_codegen(spark):
        observe(spark, server)


if __name__ == "__main__":
    main(Path(sys.argv[1]), S3Server(int(sys.argv[2]), sys.argv[3]))
