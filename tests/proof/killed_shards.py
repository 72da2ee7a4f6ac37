"""A sharded build in a process of its own, which may kill itself, JVM and all. See test_kill_shards.py.

    python killed_shards.py HOME NEWS [PATTERN NTH SECONDS]

NEWS: how many changes the source gets before the build. Dies SECONDS into the NTH statement that matches. Prints one
JSON line: the numbers of the parts that this process has computed, what it said of the parts of others, the log's row,
whether what is stored is what the select gives, and the tables beside it.
"""

from __future__ import annotations

import json
import re
import sys
import threading
from pathlib import Path
from typing import Any

from dbt.adapters.spark import session as dbt_session
from killed import die
from lab import Lab
from pyspark.sql import SparkSession
from sessions import FORMAT, session_settings
from tables import plain_rows

SHARDS, KEYS = 4, 20_000
MODEL = (
    "{{ healing_tables.dimension(sources={'crm': {'relation': api.Relation.create(schema=target.schema, "
    "identifier='crm'), 'changed_at': 'at'}}, attributes=['name'], key_columns=['id']) }}"
)


def main(home: Path, news: int, kill: list[str]) -> None:
    settings = session_settings(home) | {"spark.driver.memory": "1g"}
    spark = SparkSession.builder.master("local[2]").config(map=settings).enableHiveSupport().getOrCreate()
    spark.sql("create database if not exists killed")
    project = home / "project"
    project.mkdir(exist_ok=True)
    lab = Lab(spark, project, schema="killed")
    lab.model("dim", MODEL, materialized="healing_table", unique_key="id", meta={"healing_tables": {"shards": SHARDS}})
    if not spark.catalog.tableExists("killed.crm"):
        spark.sql(f"create table killed.crm using {FORMAT} as select id, 'first' as name, "
                  f"timestamp '2024-01-01 00:00:00Z' as at from range({KEYS})")  # fmt: skip
    if news:
        spark.sql(f"insert into killed.crm select id, 'news', timestamp '2024-02-01 00:00:00Z' from range({news})")
    if kill:
        arm(kill[0], int(kill[1]), float(kill[2]))
    results = lab.dbt("run", "--threads", "1")
    assert results["dim"][0] == "success", results
    row = lab.newest("dim")
    told = {
        "parts": [int(number) for number in re.findall(rf"part (\d+) of {SHARDS} \(", "\n".join(lab.log))],
        "others": [text for text in lab.log if "another run has left" in text],
        "row": {name: row[name] for name in ("publish", "rows_added", "rows_changed", "keys_affected")},
        "is_right": plain_rows(spark.table("killed.dim")) == plain_rows(lab.select("dim")),
        "beside": [table["tableName"] for table in spark.sql("show tables in killed").collect()],
    }
    print(json.dumps(told), flush=True)


def arm(pattern: str, nth: int, seconds: float) -> None:
    run, hits = dbt_session.Cursor.execute, []

    def execute(cursor: Any, sql: str, *parameters: Any) -> None:
        if re.search(pattern, sql):
            hits.append(sql)
            if len(hits) == nth:
                threading.Timer(seconds, die).start()
        run(cursor, sql, *parameters)

    setattr(dbt_session.Cursor, "execute", execute)  # noqa: B010


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
