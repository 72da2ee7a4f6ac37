"""A build in a process of its own that kills itself, JVM and all, at a given moment. See test_kill.py.

    python killed.py HOME GENERATION [MODEL PATTERN SECONDS]

Generation 1 builds generation 0 first; -1 builds nothing. Prints one JSON line first: what the tables hold from
the processes before.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dbt.adapters.spark import session as dbt_session
from lab import Lab
from pyspark.sql import SparkSession
from sessions import FORMAT, session_settings

KEYS = 300
MODEL = (
    "{{ healing_tables.dimension(sources={'crm': {'relation': api.Relation.create(schema=target.schema, "
    "identifier='crm'), "
    "'changed_at': 'changed_at'%s}}, attributes=['name']) }}"
)
FORMATS = ("delta", "parquet") if FORMAT == "delta" else (FORMAT,)
TABLES = (*[f"dim_{name}" for name in FORMATS], "dim_healed")


def main(home: Path, generation: int, kill: list[str]) -> None:
    settings = session_settings(home) | {"spark.driver.memory": "1g"}
    spark = SparkSession.builder.master("local[2]").config(map=settings).enableHiveSupport().getOrCreate()
    print(json.dumps({name: held(spark, name) for name in TABLES}), flush=True)
    if generation < 0:
        return
    spark.sql("create database if not exists killed")
    project = home / "project"
    project.mkdir(exist_ok=True)
    lab = Lab(spark, project, schema="killed")
    dimensions(lab)
    lab.model(
        "dim_healed",
        MODEL % ", 'loaded_at': 'loaded_at'",
        materialized="healing_table",
        unique_key="id",
        meta={"healing_tables": {"mode": "heal"}},
    )
    if generation == 1:  # what is replaced; in this process, since each one costs half a minute
        build(lab, 0, TABLES)
    arm(*kill[1:])
    build(lab, generation, kill[:1])


def build(lab: Lab, generation: int, models: Sequence[str]) -> None:
    generate(lab, generation)
    found = lab.dbt("run", "--threads", "1", "--select", *models)
    assert {status for status, _ in found.values()} == {"success"}, found


def dimensions(lab: Lab) -> None:
    """One in each format, of the source that ``generate`` makes."""
    for file_format in FORMATS:
        lab.model(
            f"dim_{file_format}",
            MODEL % "",
            materialized="healing_table",
            unique_key="id",
            file_format=file_format,
        )


def generate(lab: Lab, generation: int) -> None:
    """KEYS rows and one more with each generation, all with its name."""
    lab.spark.sql(
        f"create or replace view {lab.schema}.crm as select id, timestamp '2024-01-01 00:00:00Z' as changed_at, "
        f"'generation {generation}' as name, timestamp '2024-01-01 00:00:00Z' + interval '{generation}' day as "
        "loaded_at "
        f"from range({KEYS + generation})"
    )


def held(spark: SparkSession, name: str) -> list[list[Any]]:
    """[[generation, rows]]: one entry if the table is whole, none if it is not there."""
    if not spark.catalog.tableExists(f"killed.{name}"):
        return []
    rows = spark.sql(f"select name, count(*) from killed.{name} group by name").collect()
    return sorted([int(row[0].split()[1]), row[1]] for row in rows)


def arm(pattern: str, seconds: str) -> None:
    """Die ``seconds`` into the first statement that matches."""
    run = dbt_session.Cursor.execute

    def execute(cursor: Any, sql: str, *parameters: Any) -> None:
        if re.search(pattern, sql):
            threading.Timer(float(seconds), die).start()
        run(cursor, sql, *parameters)

    setattr(dbt_session.Cursor, "execute", execute)  # noqa: B010


def die() -> None:
    os.killpg(os.getpgrp(), signal.SIGKILL)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
