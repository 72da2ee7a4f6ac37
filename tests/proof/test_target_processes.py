"""Processes that merge into PostgreSQL and into files; see tests/shared/processes.py."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from lab import Lab
from postgres_server import Server
from processes import check_kills_while_readers_look, check_writers_at_once
from pyspark.sql import DataFrame, SparkSession
from tables import plain_rows

from healing_tables import FilesTarget, PostgresTarget

pytestmark = pytest.mark.usefixtures("interpreted")


@dataclass(frozen=True)
class InPostgres:
    """Numbers that a killed transaction has taken from the sequence are not given again."""

    server: Server
    keeps_numbers = False

    def target(self, name: str) -> PostgresTarget:
        return PostgresTarget(name, self.server.connection)

    def rows(self, target: PostgresTarget, spark: SparkSession, suffix: str = "") -> DataFrame:
        return (target.beside(suffix) if suffix else target).rows(spark)

    def state(self, target: PostgresTarget, spark: SparkSession) -> frozenset[Any]:
        return frozenset(self.server.ask(f"select t::text from {target.sql_name} t"))


@dataclass(frozen=True)
class InFiles:
    folder: Path
    keeps_numbers = True

    def target(self, name: str) -> FilesTarget:
        return FilesTarget(f"{self.folder}/{name}", keep_versions=2)

    def rows(self, target: FilesTarget, spark: SparkSession, suffix: str = "") -> DataFrame:
        found = FilesTarget(target.path + suffix).read(spark)
        assert found is not None
        return found

    def state(self, target: FilesTarget, spark: SparkSession) -> frozenset[Any]:
        return frozenset(plain_rows(self.rows(target, spark)))


@pytest.fixture(params=["postgres", "files"])
def place(request: pytest.FixtureRequest) -> Any:
    if request.param == "postgres":
        return InPostgres(request.getfixturevalue("postgres"))
    return InFiles(request.getfixturevalue("tmp_path"))


@pytest.mark.parametrize("kind", ["type2", "type4"])
def test_killed_while_readers_look(lab: Lab, connect_url: str, place: Any, kind: str) -> None:
    check_kills_while_readers_look(lab.spark, connect_url, place, kind)


def test_writers_at_once(lab: Lab, connect_url: str, place: Any) -> None:
    check_writers_at_once(lab.spark, connect_url, place)
