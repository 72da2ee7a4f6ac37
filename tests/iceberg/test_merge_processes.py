"""Processes that merge into Iceberg: killed at any moment while readers look, and several at once."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from kill_batches import SPECS, job, merge_here
from processes import check_kills_while_readers_look, check_writers_at_once
from pyspark.sql import DataFrame, SparkSession
from tables import Tables, plain_rows

from healing_tables import IcebergTarget
from healing_tables.merge import outbox
from healing_tables.targets import iceberg

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("interpreted")]


@dataclass(frozen=True)
class InIceberg:
    schema: str
    keeps_numbers = True

    def target(self, name: str) -> IcebergTarget:
        return IcebergTarget(f"{self.schema}.{name}")

    def rows(self, target: IcebergTarget, spark: SparkSession, suffix: str = "") -> DataFrame:
        return (target.beside(suffix) if suffix else target).rows(spark)

    def state(self, target: IcebergTarget, spark: SparkSession) -> frozenset[object]:
        return frozenset(plain_rows(self.rows(target, spark)))


@pytest.fixture
def place(tables: Tables) -> InIceberg:
    return InIceberg(tables.schema)


@pytest.mark.parametrize("kind", ["type2", "type4"])
def test_killed_while_readers_look(
    tables: Tables, connect_url: str, place: InIceberg, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_kills_while_readers_look(tables.spark, connect_url, place, kind)
    # what killed merges have left is dropped once it is old
    dim = place.target(f"killed_{kind}")
    assert not any(branch.is_committed for branch in dim.unfinished(tables.spark))
    monkeypatch.setattr(iceberg, "ABANDONED", -1)
    monkeypatch.setattr(outbox, "ABANDONED", "interval -1 day")
    merge_here(tables.spark, job(dim, SPECS[kind], 999))  # after all others
    assert dim.unfinished(tables.spark) == []
    assert dim.beside("__pending").rows(tables.spark).isEmpty()


def test_writers_at_once(tables: Tables, connect_url: str, place: InIceberg) -> None:
    check_writers_at_once(tables.spark, connect_url, place)
