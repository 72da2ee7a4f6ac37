"""dbt-glue without AWS: its real adapter and macros, over a client of AWS Glue that runs the code in this process.

    python on_glue.py HOME

The adapter sends Python code to an interactive session of Glue; here the code runs beside a Spark session, so a text of
SQL goes through the same Python literal. The Data Catalog is the catalog of that session. Writes HOME/answer.json as
on_server.py does, with `statements`, the code that was sent.
"""

from __future__ import annotations

import io
import json
import sys
import traceback
import types
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import boto3
import yaml
from dbt.adapters.glue.gluedbapi import connection  # type: ignore[import-not-found,unused-ignore]
from on_server import Runs, run_merges, run_people, write_project
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from sessions import session_settings

STATEMENTS: list[str] = []


class EntityNotFoundException(Exception):
    pass


class Glue:
    """A client of AWS Glue, as far as dbt-glue uses it."""

    exceptions = types.SimpleNamespace(EntityNotFoundException=EntityNotFoundException)

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self.names: dict[str, Any] = {"spark": spark}
        self.output: dict[str, Any] = {}

    def get_session(self, **_: object) -> dict[str, Any]:
        return {"Session": {"Id": "0", "Status": "READY"}}

    def run_statement(self, *, Code: str, **_: object) -> dict[str, int]:
        STATEMENTS.append(Code)
        printed = io.StringIO()
        try:
            with redirect_stdout(printed):
                exec(Code, self.names)  # noqa: S102
            self.output = {"Status": "ok", "Data": {"TextPlain": printed.getvalue()}}
        except Exception as error:  # noqa: BLE001  (whatever it is: Glue sends it to the client)
            told = {"ErrorName": type(error).__name__, "ErrorValue": str(error)}
            self.output = {"Status": "error", "Traceback": traceback.format_exc().splitlines(), **told}
        return {"Id": 0}

    def get_statement(self, **_: object) -> dict[str, Any]:
        return {"Statement": {"State": "AVAILABLE", "Output": self.output}}

    def get_table(self, *, DatabaseName: str, Name: str) -> dict[str, Any]:
        if not self.spark.catalog.tableExists(f"{DatabaseName}.{Name}"):
            raise EntityNotFoundException(Name)
        return {"Table": self.table(DatabaseName, Name)}

    def table(self, schema: str, name: str) -> dict[str, Any]:
        try:
            rows = self.spark.sql(f"describe table extended {schema}.{name}").collect()
        except AnalysisException:
            raise EntityNotFoundException(name) from None
        found = {row[0]: row[1] for row in rows}
        kind = "VIRTUAL_VIEW" if found["Type"] == "VIEW" else "EXTERNAL_TABLE"
        parameters = {"spark.sql.sources.provider": found.get("Provider", "")}
        return {"Name": name, "TableType": kind, "Parameters": parameters}

    def get_paginator(self, name: str) -> Glue.Paginator:
        return self.Paginator(self, name)

    class Paginator:
        def __init__(self, glue: Glue, name: str) -> None:
            self.glue, self.name = glue, name

        def paginate(self, DatabaseName: str = "", **_: object) -> list[dict[str, Any]]:
            catalog = self.glue.spark.catalog
            if self.name == "get_databases":
                return [{"DatabaseList": [{"Name": database.name} for database in catalog.listDatabases()]}]
            names = [table.name for table in catalog.listTables(DatabaseName) if not table.isTemporary]
            return [{"TableList": [self.glue.table(DatabaseName, name) for name in names]}]


PROFILE: dict[str, Any] = {
    "target": "dev",
    "outputs": {
        "dev": {
            "type": "glue",
            "role_arn": "arn:aws:iam::000000000000:role/none",
            "region": "eu-central-1",
            "workers": 2,
            "worker_type": "G.1X",
            "schema": "people",
            "datalake_formats": "delta",
            "threads": 1,
        }
    },
}


def main(home: Path) -> None:
    settings = session_settings(home) | {"spark.sql.scripting.enabled": "false"}  # Glue's Spark is 3.5, without scripts
    spark = SparkSession.builder.master("local[2]").config(map=settings).enableHiveSupport().getOrCreate()
    spark.sql("create database people")
    glue = Glue(spark)
    utils = types.ModuleType("awsglue.utils")
    setattr(utils, "getResolvedOptions", lambda *_: {})  # noqa: B010
    sys.modules |= {"awsglue": types.ModuleType("awsglue"), "awsglue.utils": utils}
    setattr(boto3.session.Session, "client", lambda *_, **__: glue)  # noqa: B010
    connection.get_session_waiter = lambda **_: None
    PROFILE["outputs"]["dev"]["location"] = str(home / "lake")
    (home / "profiles.yml").write_text(yaml.safe_dump({"people": PROFILE}))
    runs = Runs(home)
    project = write_project(home)
    rows = run_people(runs, project) | run_merges(home, runs.run, runs.rows)
    (home / "answer.json").write_text(json.dumps({"runs": runs.found, "rows": rows, "statements": STATEMENTS}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
