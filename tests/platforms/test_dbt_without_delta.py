"""A session without Delta: one clear error for each materialization that needs it, and parquet, which does not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from lab import PROJECT
from sessions import install_package

SELECT = "select 1 as id, 'Ann' as name, date '2024-01-01' as changed_at"
DIMENSION = (
    "with rows as (%s) {{ healing_tables.dimension({'s': {'relation': api.Relation.create(identifier='rows', "
    "type='cte'), "
    "'changed_at': 'changed_at'}}, attributes={'name': {'from': ['s'], 'type': 'string'}}, "
    "column_types={'id': 'int', 'name': 'string', 'changed_at': 'date'}) }}"
)
PROFILE = """
lab:
  target: dev
  outputs:
    dev:
      type: spark
      method: session
      host: localhost
      schema: plain
      threads: 3
      server_side_parameters:
        spark.driver.host: 127.0.0.1
        spark.driver.bindAddress: 127.0.0.1
        spark.ui.enabled: "false"
        spark.sql.warehouse.dir: "%(home)s/tables"
        spark.hadoop.javax.jdo.option.ConnectionURL: "jdbc:derby:;databaseName=%(home)s/metastore;create=true"
        %(more)s
"""
EXTENSION = "spark.sql.extensions: io.delta.sql.DeltaSparkSessionExtension"
JARS = {
    "no jar": "spark.log.level: ERROR",
    "a jar": "spark.jars.packages: io.delta:delta-spark_4.2_2.13:4.4.0",
}


def dbt(project: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "dbt.cli.main", *args, "--profiles-dir", ".", "--no-use-colors"],
        cwd=project,
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("case", JARS)
def test_each_materialization_names_the_lines_of_the_profile(tmp_path: Path, case: str) -> None:
    (tmp_path / "models").mkdir()
    install_package(tmp_path)
    (tmp_path / "profiles.yml").write_text(PROFILE % {"home": tmp_path, "more": JARS[case]})
    (tmp_path / "dbt_project.yml").write_text(PROJECT)
    models = {
        "built": ("healing_table", DIMENSION % SELECT),
        "captured": ("capture", SELECT),
        "merged": ("healing_merge", SELECT),
    }
    for name, (materialized, sql) in models.items():
        config = f"{{{{ config(materialized='{materialized}', unique_key='id') }}}}"
        (tmp_path / "models" / f"{name}.sql").write_text(f"{config}\n{sql}\n")
    run = dbt(tmp_path, "run")
    assert run.returncode == 1, run.stdout + run.stderr
    results = json.loads((tmp_path / "target" / "run_results.json").read_text())["results"]
    assert len(results) == 3
    for result in results:
        message = result["message"]
        assert "has 1 mistake" in message, message
        assert EXTENSION in message and "spark_catalog: org.apache" in message, message
        own = message.split("What to change is above")[0]
        assert "io.delta:delta-spark" in own and "> in macro" not in own and len(own.splitlines()) < 12, message
    checked = dbt(tmp_path, "run-operation", "healing_tables.check_setup")
    assert checked.returncode == 1
    assert "| hive" in checked.stdout and EXTENSION in checked.stdout, checked.stdout + checked.stderr


def test_threads_that_write_to_the_log_at_once(tmp_path: Path) -> None:
    """In parquet or ORC, Spark would lose some of its rows, or fail: its inserts share a temporary folder."""
    (tmp_path / "models").mkdir()
    install_package(tmp_path)
    (tmp_path / "profiles.yml").write_text(PROFILE % {"home": tmp_path, "more": JARS["no jar"]})
    (tmp_path / "dbt_project.yml").write_text(PROJECT)
    for number in range(12):
        config = "{{ config(materialized='healing_table', unique_key='id', file_format='parquet') }}"
        (tmp_path / "models" / f"dim_{number}.sql").write_text(f"{config}\n{DIMENSION % SELECT}\n")
    for _ in range(3):
        run = dbt(tmp_path, "run")
        assert run.returncode == 0, run.stdout
    count = "select count(*) as logged, count(distinct relation) as tables from {{ target.schema }}.healing_log"
    shown = dbt(tmp_path, "show", "--inline", count, "--output", "json", "--quiet")
    assert json.loads(shown.stdout)["show"] == [{"logged": 36, "tables": 12}]
