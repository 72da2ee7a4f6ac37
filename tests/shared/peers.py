"""Scenarios from the suites of peers, with the rows that they expect."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from cases import load
from tables import Tables, plain_rows

from healing_tables import DimensionSpec

Scenario: TypeAlias = Mapping[str, Any]
SCENARIOS = load("peers")
# Different by design: rows that Spark refuses are set aside, so that the others of their batch count
OTHERWISE: dict[str, list[list[Any]]] = {
    "spark_36": [[1, "a", "2024-01-01 00:00:10", None], [2, "c", "2024-01-01 00:00:20", None]]
}
REFUSED = ("spark_36", "spark_37", "mack_05")
REBUILT = [one for one in SCENARIOS if one["kind"] != "merge" or "also_as_rebuild_of_all_rows" in one["options"]]
ORDERS = ("in order", "last batch first", "shuffled")
CALL = """{{ healing_tables.dimension(
    sources={'input': {'relation': %s, %s}}, key_columns=%r, attributes=%r, valid_from_first=%r
) }}"""


def expected(scenario: Scenario) -> list[list[Any]]:
    rows: list[list[Any]] = OTHERWISE.get(scenario["id"]) or scenario["expected"]
    if scenario["id"] == "sqlmesh_02":  # by design: valid_from_first is the start of each key, not of the first load
        rows = [[*row[:3], "1970-01-01 00:00:00", None] if row[0] == 5 else row for row in rows]
    return rows


def shown(rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Any order; the open end is NULL, as in the scenarios."""
    open_end = [(*row[:-1], None if str(row[-1]).startswith("9999") else row[-1]) for row in rows]
    return sorted(open_end, key=repr)


def columns_of(scenario: Scenario) -> list[list[str]]:
    types = dict(scenario["columns"]) | {"valid_from": "timestamp", "valid_to": "timestamp"}
    return [[name, types[name]] for name in scenario["expected_columns"]]


def sources(scenario: Scenario) -> str:
    options = {"snapshot_at" if scenario["kind"] == "snapshot" else "changed_at": scenario["changed_at"]}
    options |= {"deleted_when": scenario["deleted_when"]} if scenario["deleted_when"] else {}
    options |= {name: scenario["options"][name] for name in ("where", "on_tie") if name in scenario["options"]}
    return repr(options)[1:-1]


def call_of(scenario: Scenario, relation: str, options: str, key: Sequence[str] = ()) -> str:
    """The dimension of a scenario in one source. Args: options: more of the source; key: more columns of it."""
    call = CALL % (
        relation,
        f"{sources(scenario)}, {options}" if options else sources(scenario),
        [*key, *scenario["key"]],
        scenario["attributes"],
        scenario["options"].get("valid_from_first"),
    )
    return call.replace("valid_from_first=None", "valid_from_first=none")


def shapes() -> dict[str, list[Scenario]]:
    """Scenarios of merges with equal columns and options."""
    found: dict[str, list[Scenario]] = defaultdict(list)
    for scenario in SCENARIOS:
        if scenario["kind"] == "merge" and scenario["id"] not in REFUSED:
            found[json.dumps([scenario[name] for name in SHAPE])].append(scenario)
    return {same[0]["id"]: same for same in found.values()}


SHAPE = ("columns", "key", "changed_at", "deleted_when", "attributes", "options")
SHAPES = shapes()


def batches_in(order: str, same: Sequence[Scenario]) -> list[list[list[Any]]]:
    """The batches of all scenarios, each row with the number of its scenario; shuffled: as four batches."""
    batches = [
        [
            [number, *row]
            for number, one in enumerate(same)
            if place < len(one["batches"])
            for row in one["batches"][place]
        ]
        for place in range(max(len(one["batches"]) for one in same))
    ]
    if order == "last batch first":
        return batches[::-1]
    if order == "shuffled":
        rows = [row for batch in batches for row in batch]
        random.Random(1).shuffle(rows)
        return [rows[start::4] for start in range(4)]
    return batches


def spec_of(scenario: Scenario, change_log: str | bool) -> DimensionSpec:
    given = scenario["options"]
    options = {name: given[name] for name in ("on_tie", "ignore_nulls", "on_schema_change") if name in given}
    return DimensionSpec(
        key_columns=["scenario", *scenario["key"]],
        attributes=scenario["attributes"],
        changed_at=scenario["changed_at"],
        deleted_when=scenario["deleted_when"],
        max_removed_keys_ratio=1,
        change_log=change_log,
        **options,
    )


def check(tables: Tables, name: str, same: Sequence[Scenario]) -> None:
    columns = columns_of(same[0])
    wanted = [[number, *row] for number, one in enumerate(same) for row in expected(one)]
    found = plain_rows(tables.spark.table(name), ["scenario", *[column for column, _ in columns]])
    assert shown(found) == shown(plain_rows(tables.frame([["scenario", "int"], *columns], wanted)))
