"""dbt v2 parses the package with its examples, and a project that has installed it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from sessions import ROOT, install_package

PARSER = Path(sys.executable).parent / "dbt-core-experimental-parser"
# v2 has no `method: session`
PROFILE = """
%s:
  target: dev
  outputs:
    dev: {type: spark, method: thrift, host: 127.0.0.1, port: 10000, user: dbt, schema: warehouse, threads: 2}
"""
MERGED = "{{ config(materialized='healing_merge', unique_key='id') }}\nselect 1 as id, 'Ann' as name\n"


def parsed(project: Path, home: Path) -> str:
    places = {"--project-dir": project, "--profiles-dir": home, "--target-path": home / "target"}
    command = [str(PARSER), "parse", *[str(part) for place in places.items() for part in place]]
    environment = {**os.environ, "DBT_ALLOW_EXPERIMENTAL_ADAPTERS": "true"}
    run = subprocess.run(command, cwd=home, env=environment, capture_output=True, text=True, check=False)
    return run.stdout + run.stderr


def test_the_package(tmp_path: Path) -> None:
    (tmp_path / "profiles.yml").write_text(PROFILE % "healing_tables")
    assert "Finished 'parse' successfully" in (said := parsed(ROOT, tmp_path)), said


@pytest.mark.parametrize("sql", [MERGED, MERGED.replace("healing_merge", "healing_table")], ids=["merge", "table"])
def test_a_project(tmp_path: Path, sql: str) -> None:
    (tmp_path / "profiles.yml").write_text(PROFILE % "shop")
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "dim.sql").write_text(sql)
    (tmp_path / "dbt_project.yml").write_text("name: shop\nversion: 1.0.0\nprofile: shop\nmodel-paths: [models]\n")
    install_package(tmp_path)
    assert "Finished 'parse' successfully" in (said := parsed(tmp_path, tmp_path)), said
