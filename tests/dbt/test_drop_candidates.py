"""drop_candidates: what refused builds have left goes, what may belong to a running build stays."""

from __future__ import annotations

import json
from typing import Any

import pytest
from damage import COLUMNS, HEALTHY, stored, tables
from lab import Lab

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("interpreted")]
YOUNG = "dim_seen__candidate_0123456789abcdef0123456789abcdef_changes"
EMPTY = "dim_seen__candidate_fedcba9876543210fedcba9876543210"
OF_SOMEBODY = "dim_seen__candidate_2024"
SEEN = """select id, name, date '2024-01-01' as valid_from, date '9999-12-31' as valid_to, true as is_current
from {{ ref('rows') }}"""


def drop(lab: Lab, **arguments: object) -> list[str]:
    lab.dbt("run-operation", "healing_tables.drop_candidates", "--args", json.dumps(arguments))
    assert lab.succeeded, lab.log
    return [line for line in lab.log if line.startswith("healing_tables.drop_candidates")]


@pytest.fixture(scope="module")
def refused(lab: Lab, interpreted: None) -> tuple[Lab, str, str]:
    """The message of a refused build, and the name of the candidate that it has left."""
    people = "select cast(id as int) as id, 'Ann' as name from range(20)"
    lab.model("rows", people)
    built: dict[str, Any] = {
        "materialized": "healing_table",
        "unique_key": "id",
        "meta": {"healing_tables": {"tracked_columns": "name"}},
    }
    lab.model("dim_seen", SEEN, **built)
    lab.model("dim_new", SEEN, **built)
    lab.model("dim_elsewhere", SEEN, **built, schema="elsewhere")
    assert lab.dbt("run", "--select", "rows", "dim_seen")["dim_seen"][0] == "success"
    before = tables(lab)
    lab.model("rows", f"{people} union all select 1, 'Eve'")
    status, message = lab.dbt("run", "--select", "rows", "dim_seen")["dim_seen"]
    assert status == "error"
    (candidate,) = set(tables(lab)) - set(before)
    stored(lab, YOUNG, COLUMNS, HEALTHY)
    stored(lab, EMPTY, COLUMNS, [])
    stored(lab, OF_SOMEBODY, COLUMNS, HEALTHY)
    return lab, message, candidate


def test_the_error_names_the_command(refused: tuple[Lab, str, str]) -> None:
    _, message, candidate = refused
    assert candidate in message
    assert "dbt run-operation healing_tables.drop_candidates drops the table." in message


def test_one_command_drops_those_of_all_models(refused: tuple[Lab, str, str]) -> None:
    lab, _, candidate = refused
    told = "\n".join(drop(lab))
    assert f"dim_seen: dropped {lab.schema}.{candidate}, 0.0 hours old" in told
    assert f"dim_seen: kept {lab.schema}.{YOUNG}, 0.0 hours old: its build may be running" in told
    assert f"dim_seen: kept {lab.schema}.{EMPTY}, without rows: its build may be running" in told
    assert "healing_tables.drop_candidates: dropped 1 candidate of 2 tables" in told
    left = tables(lab)
    assert candidate not in left
    assert {YOUNG, EMPTY, OF_SOMEBODY, "dim_seen"} <= set(left)


def test_an_age_of_zero_drops_all_of_one_dimension(refused: tuple[Lab, str, str]) -> None:
    lab, _, _ = refused
    told = drop(lab, dimension=f"{lab.schema}.dim_seen", build_hours=0)
    assert told[-1] == "healing_tables.drop_candidates: dropped 2 candidates of 1 table"
    left = tables(lab)
    assert not {YOUNG, EMPTY} & set(left)
    assert {OF_SOMEBODY, "dim_seen"} <= set(left)
