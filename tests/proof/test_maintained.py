"""maintain on the tables that only grow: rebuilds, heals and merges give the same rows as without."""

from __future__ import annotations

from typing import Any

import pytest
from damage import operation
from lab import Lab
from sessions import FORMAT
from tables import plain_rows
from ways import TWINS, merge_by_sql, merge_model, same_tables

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("interpreted"),
    pytest.mark.skipif(FORMAT != "delta", reason="OPTIMIZE and VACUUM of Delta"),
]
COLUMNS = [["id", "int"], ["name", "string"], ["seen", "timestamp"]]
DAYS: list[list[list[Any]]] = [
    [[key, "a", "2024-01-01"] for key in range(8)] + [[None, "lost", "2024-01-01"]],
    [[key, "b", "2024-01-05"] for key in range(4)],
    [[1, "late", "2024-01-03"], [9, "new", "2024-01-06"], [2, "gone", "2024-01-07"]],
    [[1, "c", "2024-01-08"], [3, "later", "2024-01-02"]],
]
OPTIONS: dict[str, Any] = {
    "attributes": {"name": 2},
    "changed_at": "seen",
    "deleted_when": "name = 'gone'",
    "audit": {},
    "surrogate_key": {"name": "sk", "strategy": "sequence"},
}
NOW = {"retention_hours": 0, "allow_short_retention": True, "force": True}


def maintain(lab: Lab, name: str, **arguments: Any) -> str:
    lines = operation(lab, "maintain", dimension=name, **arguments, **NOW)
    assert lab.succeeded, lines
    return "\n".join(line for line in lines if "healing_tables.maintain" in line)


def test_merges_with_all_tables_beside_them(lab: Lab) -> None:
    for number, day in enumerate(DAYS):
        for twin in TWINS:
            merge_model(lab, f"dim_kept{twin}", lab.frame(COLUMNS, day), **OPTIONS)
            merge_by_sql(lab, f"dim_kept{twin}")
        text = maintain(lab, "dim_kept", beside=True)
        if number == 2:
            for beside in ("", "_changes", "_audit", "__keys"):
                assert f"optimize {lab.schema}.dim_kept{beside}" in text, text
        assert "dim_kept__set_aside" in text and "dim_kept_twin" not in text
    same_tables(lab, "dim_kept")
    assert lab.rows("dim_kept")[0] is not None and len(lab.rows("dim_kept_changes")) == sum(map(len, DAYS)) - 1
    # and what comes back from the log alone
    lab.spark.sql(f"drop table {lab.schema}.dim_kept")
    merge_model(lab, "dim_kept", lab.frame(COLUMNS, DAYS[0]), **OPTIONS)
    merge_by_sql(lab, "dim_kept")
    shown = ["id", "name", "valid_from", "valid_to"]
    tables = [plain_rows(lab.spark.table(f"{lab.schema}.dim_kept{twin}"), shown) for twin in TWINS]
    assert tables[0] == tables[1]


def test_heals_from_a_captured_log(lab: Lab) -> None:
    lab.model("captured", f"select * from {lab.schema}.state", materialized="capture", unique_key="id")
    call = (
        "{'log': {'relation': ref('captured'), 'changed_at': 'captured_at', 'loaded_at': 'captured_at', "
        "'deleted_when': 'is_deleted'}}, "
        "attributes=['name']"
    )
    settings = {"mode": "heal", "max_removed_keys_ratio": 1, "max_removed_versions_ratio": 1, "audit": {}}
    lab.model(
        "dim_captured",
        f"{{{{ healing_tables.dimension({call}) }}}}",
        materialized="healing_table",
        unique_key="id",
        meta={"healing_tables": settings},
    )
    modes = []
    for number in range(4):
        rows = [[key, f"{key % (number + 1)}"] for key in range(number, 9)]
        lab.table("state", [["id", "int"], ["name", "string"]], rows)
        lab.dbt("run", "--select", "captured")
        if number == 3:  # before the heal has read what is new
            maintain(lab, "captured")
        lab.dbt("run", "--select", "dim_captured")
        assert lab.succeeded, lab.results
        row = lab.newest("dim_captured")
        modes.append((row["mode"], row["reason"]))
        assert lab.rows("dim_captured") == plain_rows(lab.select("dim_captured"))
        maintain(lab, "captured")
        maintain(lab, "dim_captured", beside=True)
    assert [mode for mode, _ in modes[:3]] == ["rebuild", "heal", "heal"], modes
