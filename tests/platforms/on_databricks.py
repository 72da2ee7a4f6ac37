"""dbt-databricks without Databricks: its real adapter and macros, over a connection to a Spark session in this process.

    python on_databricks.py HOME

What a SQL warehouse would do that Spark does not is imitated: SET is refused, and system.information_schema.tables
lists the tables. The catalog is spark_catalog, so names have three parts. Writes HOME/answer.json as on_server.py does,
with `statements`, all that were sent.
"""

from __future__ import annotations

import json
import re
import sys
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import databricks.sql  # type: ignore[import-not-found,unused-ignore]
import yaml
from databricks.sql.exc import ServerOperationError  # type: ignore[import-not-found,unused-ignore]
from on_server import Runs, run_merges, run_people, write_project
from pyspark.sql import SparkSession
from sessions import ROOT, session_settings

STATEMENTS: list[str] = []
TABLES = re.compile(r"`system`[.]`information_schema`[.]`tables`", re.IGNORECASE)
# tags, filters, masks and constraints: there are none
OTHERS = re.compile(r"`?(?:spark_catalog|system)`?[.]`?information_schema`?[.]`?\w+`?", re.IGNORECASE)
NAMES = """table_catalog table_schema table_name catalog_name schema_name column_name filter_name mask_name tag_name
    tag_value target_columns using_columns constraint_catalog constraint_schema constraint_name constraint_type
    unique_constraint_catalog unique_constraint_schema unique_constraint_name ordinal_position is_nullable
    position_in_unique_constraint check_clause full_data_type data_type"""
NOTHING = f"(select {', '.join(f'cast(null as string) as {name}' for name in NAMES.split())} where false)"


class Cursor:
    """One of databricks.sql, as far as dbt-databricks uses it."""

    query_id = "0"

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.description: list[tuple[str, str]] = []
        self.rows: list[tuple[Any, ...]] = []

    def execute(self, statement: str, parameters: object = None) -> Cursor:
        STATEMENTS.append(statement)
        spark = self.connection.spark
        code = re.sub(r"/[*].*?[*]/", "", statement, flags=re.DOTALL).strip()
        if re.match(r"(?i)set\b", code):
            raise ServerOperationError("[CONFIG_NOT_AVAILABLE] Configuration is not available")
        try:
            statement = OTHERS.sub(NOTHING, TABLES.sub(lambda _: self.listed_tables(), statement))
            frame = spark.sql(statement)
            self.description = [(field.name, field.dataType.simpleString()) for field in frame.schema]
            self.rows = [tuple(row) for row in frame.collect()]
        except Exception as error:
            # Spark has no JSON of a Delta table; the adapter knows how to do without, by another name of the error
            told = str(error).replace("NOT_SUPPORTED_COMMAND_FOR_V2_TABLE", "UNSUPPORTED_FEATURE")
            raise ServerOperationError(f"{told}\n{statement}") from error
        return self

    def listed_tables(self) -> str:
        """What Unity Catalog knows of the tables."""
        catalog, rows = self.connection.spark.catalog, []
        for database in catalog.listDatabases():
            for table in catalog.listTables(database.name):
                kind, data_format = ("VIEW", "") if table.tableType == "VIEW" else ("MANAGED", "DELTA")
                rows.append(f"('spark_catalog', '{database.name}', '{table.name}', '{kind}', '{data_format}', 'me')")
        names = "table_catalog, table_schema, table_name, table_type, data_source_format, table_owner"
        return f"(select * from values {', '.join(rows or [str(('',) * 6)])} as tables ({names}))"

    def schemas(self, catalog: str, schema: str | None = None) -> Cursor:
        found = self.execute(f"show schemas in {catalog}" + (f" like '{schema}'" if schema else ""))
        self.description = [("TABLE_SCHEM", "string"), ("TABLE_CATALOG", "string")]
        self.rows = [(row[0], catalog) for row in found.rows]
        return self

    def fetchall(self) -> list[tuple[Any, ...]]:
        rows, self.rows = self.rows, []
        return rows

    def fetchmany(self, size: int) -> list[tuple[Any, ...]]:
        rows, self.rows = self.rows[:size], self.rows[size:]
        return rows

    def fetchone(self) -> tuple[Any, ...] | None:
        return next(iter(self.fetchmany(1)), None)

    def close(self) -> None:
        pass

    cancel = close


class Connection(AbstractContextManager["Connection"]):
    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark

    def cursor(self) -> Cursor:
        return Cursor(self)

    def get_session_id_hex(self) -> str:
        return "0"

    def close(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


PROFILE = {
    "target": "dev",
    "outputs": {
        "dev": {
            "type": "databricks",
            "host": "warehouse.invalid",
            "http_path": "/sql/1.0/warehouses/0",
            "token": "none",
            "catalog": "spark_catalog",
            "schema": "people",
            "threads": 1,
        }
    },
}


def merge_in_python_model(runs: Runs, spark: SparkSession, home: Path) -> list[list[str]]:
    """The model of docs/databricks.md: compiled by dbt-databricks, its code run here. Returns: the dimension."""
    page = (ROOT / "docs" / "databricks.md").read_text()
    project = home / "people"
    (project / "models" / "merged_player.py").write_text(page.split("```python\n")[1].split("```")[0])
    batch = "select 1 as player_id, 'a@b' as email, 'gold' as tier, timestamp '2024-01-01' as updated_at"
    (project / "models" / "stg_players.sql").write_text(f"{{{{ config(materialized='table') }}}} {batch}")
    runs.run("batch of the Python model", project, "run", "--select", "stg_players")
    runs.run("Python model", project, "compile", "--select", "merged_player")
    (compiled,) = (home / "target_people" / "compiled").rglob("merged_player.py")
    # the list of merges has a dimension of this name
    for table in spark.catalog.listTables("people"):
        if table.name.startswith("dim_player"):
            spark.sql(f"drop table people.{table.name}")
    code: dict[str, Any] = {}
    exec(compiled.read_text(), code)  # noqa: S102
    code["model"](code["dbtObj"](spark.table), spark)
    columns = ["player_id", "email", "tier", "valid_from", "is_current"]
    return [[str(value) for value in row] for row in spark.table("people.dim_player").select(columns).collect()]


def main(home: Path) -> None:
    builder = SparkSession.builder.master("local[2]").config(map=session_settings(home))
    spark = builder.enableHiveSupport().getOrCreate()
    databricks.sql.connect = lambda **_: Connection(spark)
    (home / "profiles.yml").write_text(yaml.safe_dump({"people": PROFILE}))
    runs = Runs(home)
    project = write_project(home)
    rows = run_people(runs, project) | run_merges(home, runs.run, runs.rows)
    arguments = json.dumps({"dimension": "spark_catalog.people.dim_person", "key_columns": "id"})
    runs.run("three parts", project, "run-operation", "healing_tables.diagnose", "--args", arguments)
    merged = merge_in_python_model(runs, spark, home)
    answer = {"runs": runs.found, "rows": rows, "statements": STATEMENTS, "merged_in_python": merged}
    (home / "answer.json").write_text(json.dumps(answer))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
