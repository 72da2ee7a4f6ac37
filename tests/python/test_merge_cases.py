"""The cases of merges, each through the public API: a stored table, then batch after batch.

Each runs on a classic session; two, type 4 and types 0 to 3, on Spark Connect too: all of them with HEALING_TABLES_CONNECT=1,
since the rest is the same plan sent another way, and takes minutes.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from lab import Lab, plain_rows

from healing_tables import DimensionSpec, merge

CASES = json.loads((Path(__file__).parent / "cases" / "merge.json").read_text())

ON_CONNECT = ("M26", "M32")


def spec_of(case: dict[str, Any]) -> DimensionSpec:
    params, kind = case["params"], case["capability"].removeprefix("merge_")
    types = params.get("types")
    if types is None:
        types = dict.fromkeys(params["attrs"], int(kind.removeprefix("type")))
    types |= dict.fromkeys(params.get("type1_attrs", []), 1)
    return DimensionSpec(
        key_columns=params["key"],
        attributes=types,
        valid_to_current=params.get("end", "9999-12-31 23:59:59"),
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_case(either: Lab, case: dict[str, Any]) -> None:
    lab, spec = either, spec_of(case)
    is_wanted = case["id"] in ON_CONNECT or "HEALING_TABLES_CONNECT" in os.environ
    if lab.schema.startswith("connect_") and not is_wanted:
        pytest.skip("set HEALING_TABLES_CONNECT")
    name = f"{lab.schema}.dim_{case['id'].lower()}"
    tables = {"dim": name, "current": name, "history": f"{name}_history"}
    for part, table in case["input"].items():
        if part != "batches":
            frame = lab.frame(table["columns"], table["rows"])
            frame.write.format("delta").saveAsTable(tables[part])
    for batch in case["input"]["batches"]:
        rows = lab.frame(batch["rows"]["columns"], batch["rows"]["rows"])
        full_batch = batch.get("full_snapshot", False)
        merge(rows, name, spec, at=batch["at"], full_batch=full_batch)
    for part, table in case["expect"].items():
        columns = [column for column, _ in table["columns"]]
        stored = lab.spark.table(tables[part])
        assert sorted(stored.columns) == sorted(columns)
        assert plain_rows(stored, columns) == plain_rows(lab.frame(table["columns"], table["rows"]))
