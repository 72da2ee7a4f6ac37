"""What has become of an Iceberg table since a snapshot, by its log and the parents of snapshots."""

from __future__ import annotations

from typing import Any

import pytest
from rendering import Project

# The entries of the log; snapshot to its parent and operation. The ids have no order
LOG = [70, 30, 90, 20]
SNAPSHOTS: dict[int, tuple[int | None, str]] = {
    70: (None, "append"),
    30: (70, "overwrite"),
    80: (30, "append"),  # published together with the next one
    90: (80, "replace"),
    20: (90, "replace"),
}
REPLACED = "another table, or an older snapshot"


class Table(Project):
    def __init__(self, log: list[int], snapshots: dict[int, tuple[int | None, str]]) -> None:
        super().__init__({})
        self.rows = [
            {"kind": "log", "at": place, "snapshot_id": version, "parent_id": None, "operation": ""}
            for place, version in enumerate(log)
        ] + [
            {"kind": "snapshot", "at": 0, "snapshot_id": version, "parent_id": parent, "operation": operation}
            for version, (parent, operation) in snapshots.items()
        ]

    def answer(self, query: str) -> Any:
        return type("Result", (), {"rows": self.rows if ".history" in query else []})()


def commits(log: list[int], since: int | None, **changed: tuple[int | None, str]) -> list[tuple[Any, ...]] | None:
    snapshots = SNAPSHOTS | {int(name.removeprefix("id_")): found for name, found in changed.items()}
    table = Table(log, snapshots)
    found = table.macros._iceberg_commits_since(table.relation("dim"), since)
    return found and [(commit["version"], commit["operation"], commit["changes_rows"]) for commit in found]


@pytest.mark.parametrize(
    ("since", "wanted"),
    [
        (20, []),
        (90, [(20, "replace", False)]),
        (30, [(20, "replace", False), (90, "replace, append", True)]),
        (70, [(20, "replace", False), (90, "replace, append", True), (30, "overwrite", True)]),
        (None, [(20, "replace", False), (90, "replace, append", True), (30, "overwrite", True), (70, "append", True)]),
        (80, None),  # nobody has ever seen it
        (1, None),
    ],
)
def test_since(since: int | None, wanted: list[Any] | None) -> None:
    assert commits(LOG, since) == wanted


def test_rolled_back() -> None:
    assert commits([70, 30, 70], 30) == [(70, REPLACED, True)]
    # back where it was: as if nothing had happened
    assert commits([70, 30, 70], 70) == []


def test_replaced() -> None:
    assert commits([70, 30, 40], 30, id_40=(None, "overwrite")) == [(40, REPLACED, True)]


def test_expired() -> None:
    """The log ends with what is kept; a parent that is gone hides what was done."""
    assert commits([90, 20], 30) is None
    assert commits([30, 90], 30, id_80=(None, "append")) == [(90, REPLACED, True)]
