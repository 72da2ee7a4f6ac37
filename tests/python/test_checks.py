"""The five checks: the cases, planted faults with exact counts, and temporal_integrity against the single tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from lab import Lab, plain_rows

CASES = json.loads((Path(__file__).parent / "cases" / "checks.json").read_text())
TESTS = {
    "check_single_current": "single_current",
    "check_overlaps": "no_overlaps",
    "check_gaps": "no_gaps",
    "check_ordering": "valid_order",
    "check_consecutive_duplicates": "no_consecutive_duplicates",
}


def block_of(name: str, test: str, arguments: dict[str, Any]) -> str:
    block = {
        "name": name,
        "arguments": arguments,
        "config": {"store_failures": True, "alias": f"{name}_rows"},
    }
    return json.dumps({test: block})


@pytest.fixture(scope="module")
def tested(lab: Lab) -> Lab:
    blocks = []
    for case in CASES:
        name = f"dim_{case['id'].lower()}"
        lab.table(f"in_{name}", case["input"]["dim"]["columns"], case["input"]["dim"]["rows"])
        lab.model(name, f"select * from {lab.schema}.in_{name}")
        arguments: dict[str, Any] = {"key_columns": case["params"]["key"]}
        if case["capability"] == "check_consecutive_duplicates":
            arguments["tracked_columns"] = case["params"]["attrs"]
        blocks.append(
            f"  - name: {name}\n    data_tests: [{block_of(f't_{name}', TESTS[case['capability']], arguments).replace(TESTS[case['capability']], 'healing_tables.' + TESTS[case['capability']])}]"
        )
    lab.write("models/schema.yml", "version: 2\nmodels:\n" + "\n".join(blocks))
    lab.dbt("build")
    return lab


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_case(tested: Lab, case: dict[str, Any]) -> None:
    name = f"t_dim_{case['id'].lower()}"
    expected = case["expect"]["violations"]
    status, message = tested.results[name]
    assert status == ("fail" if expected["rows"] else "pass"), message
    columns = [column for column, _ in expected["columns"]]
    found = plain_rows(tested.spark.table(f"{tested.schema}_dbt_test__audit.{name}_rows"), columns)
    assert found == plain_rows(tested.frame(expected["columns"], expected["rows"]))
