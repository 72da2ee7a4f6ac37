"""The cases of merges, each through the public API: a stored table, then batch after batch.

Each runs on a classic session, and by `make slow` on Spark Connect, where it is the same plan sent another way.
"""

from __future__ import annotations

from typing import Any

import pytest
from cases import merge_cases, spec_of
from tables import Tables, plain_rows

from healing_tables import merge


@pytest.mark.parametrize("case", merge_cases("M01", "M32"))
def test_case(either: Tables, case: dict[str, Any]) -> None:
    spec = spec_of(case)
    name = f"{either.schema}.dim_{case['id'].lower()}"
    tables = {"dim": name, "current": name, "history": f"{name}_history"}
    for part, table in case["input"].items():
        if part != "batches":
            frame = either.frame(table["columns"], table["rows"])
            frame.write.format("delta").saveAsTable(tables[part])
    for batch in case["input"]["batches"]:
        rows = either.frame(batch["rows"]["columns"], batch["rows"]["rows"])
        full_batch = batch.get("full_snapshot", False)
        merge(rows, name, spec, at=batch["at"], full_batch=full_batch)
    for part, table in case["expect"].items():
        columns = [column for column, _ in table["columns"]]
        stored = either.spark.table(tables[part])
        own = ["history_id", "change_reason"] if part == "history" else []
        assert sorted(stored.columns) == sorted(columns + own)
        assert plain_rows(stored, columns) == plain_rows(either.frame(table["columns"], table["rows"]))
