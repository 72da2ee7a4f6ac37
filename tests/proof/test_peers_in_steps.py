"""The scenarios of test_peers.py as they arrive over time: healed in instalments, captured, streamed."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from lab import Lab
from peers import REBUILT, SHAPE, SHAPES, Scenario, batches_in, call_of, check, columns_of, expected, shown, spec_of
from sessions import FORMAT
from tables import Tables, plain_rows

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("interpreted")]
LOADED = ["loaded_at", "timestamp"]
SNAPSHOTS = [one for one in REBUILT if one["kind"] == "snapshot"]


def healed_together() -> dict[str, list[Scenario]]:
    """Scenarios in one dimension: those of changes, if they have one shape; a snapshot is complete, so it is alone."""
    found: dict[str, list[Scenario]] = defaultdict(list)
    for one in REBUILT:
        found[one["id"] if one["kind"] == "snapshot" else json.dumps([one[name] for name in SHAPE])].append(one)
    return {same[0]["id"]: same for same in found.values()}


HEALED = healed_together()


def instalments(scenario: Scenario) -> list[list[list[Any]]]:
    """Its batches; what is one batch as its snapshots, or as three parts."""
    rows = [row for batch in scenario["batches"] for row in batch]
    if scenario["kind"] == "snapshot":
        place = [name for name, _ in scenario["columns"]].index(scenario["changed_at"])
        return [[row for row in rows if row[place] == at] for at in sorted({row[place] for row in rows})]
    return list(scenario["batches"]) if scenario["kind"] == "merge" else [rows[start::3] for start in range(3)]


@pytest.fixture(scope="module")
def healed(lab: Lab) -> Lab:
    tables = ", ".join(f"{{name: in_{name}}}" for name in HEALED)
    lab.write("models/sources.yml", f"sources: [{{name: raw, schema: {lab.schema}, tables: [{tables}]}}]\n")
    for name, (one, *_) in HEALED.items():
        ddl = ", ".join(f"{column} {kind}" for column, kind in [["scenario", "int"], *one["columns"], LOADED])
        lab.spark.sql(f"create table {lab.schema}.in_{name} ({ddl}) using {FORMAT}")
        call = call_of(one, f"source('raw', 'in_{name}')", "'loaded_at': 'loaded_at'", ["scenario"])
        options = {"mode": "heal", "max_removed_keys_ratio": 1, "max_removed_versions_ratio": 1}
        key = ["scenario", *one["key"]]
        lab.model(name, call, materialized="healing_table", unique_key=key, meta={"healing_tables": options})
    loads = max(len(instalments(one)) for same in HEALED.values() for one in same)
    for load in range(loads):
        changed = []
        for name, same in HEALED.items():
            parts = [instalments(one) for one in same]
            rows = [
                [number, *row, f"2030-01-0{load + 1} 00:00:00"]
                for number, part in enumerate(parts)
                for row in (part[load] if load < len(part) else [])
            ]
            columns = [["scenario", "int"], *same[0]["columns"], LOADED]
            if rows:
                lab.frame(columns, rows).writeTo(f"{lab.schema}.in_{name}").append()
                changed.append(name)
        results = lab.dbt("run", "--select", *changed)
        assert lab.succeeded, results
        for name in changed:
            assert lab.newest(name)["mode"] == ("heal" if load else "rebuild"), lab.newest(name)
    return lab


@pytest.mark.parametrize("name", HEALED)
def test_healed(healed: Lab, name: str) -> None:
    check(healed, f"{healed.schema}.{name}", HEALED[name])


@pytest.fixture(scope="module")
def captured(lab: Lab) -> Lab:
    """Each snapshot is a state that a capture reads, at its moment."""
    for step in range(max(len(instalments(one)) for one in SNAPSHOTS)):
        changed = []
        for one in SNAPSHOTS:
            name, parts = f"log_{one['id']}", instalments(one)
            if step >= len(parts):
                continue
            columns = [column for column, _ in one["columns"]]
            place = columns.index(one["changed_at"])
            state = lab.frame(one["columns"], parts[step]).drop(one["changed_at"])
            lab.spark.sql(f"drop table if exists {lab.schema}.now_{one['id']}")
            state.write.saveAsTable(f"{lab.schema}.now_{one['id']}", format="parquet")
            options = {"at": parts[step][0][place], "max_removed_keys_ratio": 1}
            select = f"select * from {lab.schema}.now_{one['id']}"
            lab.model(name, select, materialized="capture", unique_key=one["key"], meta={"healing_tables": options})
            changed.append(name)
        results = lab.dbt("run", "--select", *changed)
        assert lab.succeeded, results
    for one in SNAPSHOTS:
        log = {**one, "kind": "rebuild", "changed_at": "captured_at", "deleted_when": "is_deleted"}
        lab.model(f"dim_{one['id']}", call_of(log, f"ref('log_{one['id']}')", ""), materialized="table")
    lab.dbt("run", "--select", *(f"dim_{one['id']}" for one in SNAPSHOTS))
    assert lab.succeeded, lab.log
    return lab


@pytest.mark.parametrize("scenario", SNAPSHOTS, ids=lambda one: one["id"])
def test_captured(captured: Lab, scenario: Scenario) -> None:
    rows = plain_rows(captured.spark.table(f"{captured.schema}.dim_{scenario['id']}"), scenario["expected_columns"])
    assert shown(rows) == shown(plain_rows(captured.frame(columns_of(scenario), expected(scenario))))


@pytest.mark.parametrize(
    "shape", [name for name, (one, *_) in SHAPES.items() if "first_batch_without" not in one["options"]]
)
def test_streamed(tables: Tables, tmp_path: Path, shape: str) -> None:
    same: Sequence[Scenario] = SHAPES[shape]
    name, columns = f"{tables.schema}.{shape}", [["scenario", "int"], *same[0]["columns"]]
    sink = spec_of(same[0], f"{name}_changes").sink(name)
    for number, rows in enumerate(batches_in("shuffled", same)):
        batch = tables.frame(columns, rows)
        batch.write.parquet(str(tmp_path / "batches" / str(number)))
        stream = tables.spark.readStream.schema(batch.schema).parquet(str(tmp_path / "batches" / "*"))
        writer = stream.writeStream.foreachBatch(sink).trigger(availableNow=True)
        writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination()
    check(tables, name, same)
