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
    def __init__(
        self,
        log: list[int],
        snapshots: dict[int, tuple[int | None, str]],
        branches: dict[str, int] | None = None,
        properties: dict[str, str] | None = None,
    ) -> None:
        super().__init__({})
        self.properties = properties or {}
        self.rows = [
            {
                "kind": "log",
                "at": place,
                "snapshot_id": version,
                "parent_id": snapshots.get(version, (None,))[0],
                "operation": "",
                "added_rows": None,
            }
            for place, version in enumerate(log)
        ]
        self.rows += [
            {"kind": "ref", "at": None, "snapshot_id": head, "parent_id": 0, "operation": name, "added_rows": None}
            for name, head in (branches or {}).items()
        ]
        self.rows += [
            {
                "kind": "snapshot",
                "at": 0,
                "snapshot_id": version,
                "parent_id": parent,
                "operation": operation,
                "added_rows": "3",
            }
            for version, (parent, operation) in snapshots.items()
        ]

    def answer(self, query: str) -> Any:
        rows: Any = self.rows if ".history" in query else []
        if query.startswith("show tblproperties"):
            rows = list(self.properties.items())
        return type("Result", (), {"rows": rows})()


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


def test_branches_and_tags_are_parameters_of_commits() -> None:
    properties = {
        "healing_tables.build.after.none": "made",
        "healing_tables.build.20": "merged",
        "healing_tables.build.55": "killed before it was published",
        "healing_tables.spec": "{}",
    }
    table = Table(LOG, SNAPSHOTS, {"main": 20, "healing_merge_1_30_abc": 90}, properties)
    found = table.macros._iceberg_newest_commits(table.relation("dim"))
    shown = {commit["version"]: commit["parameters"].split() for commit in found}
    assert shown == {20: ["main", "merged"], 90: ["healing_merge_1_30_abc"], 30: [], 70: ["made"]}
    assert [commit["written_rows"] for commit in found] == [3, 3, 3, 3]


@pytest.mark.parametrize(
    ("log", "after", "tagged"),
    [
        ([70, 30, 40], "30", 40),
        ([70, 30, 40], "none", 70),
        ([70, 30, 40], "70", None),  # another one was published in between: it has a parent
        ([70, 40], "30", None),  # what was there before has expired
        ([40], "none", 40),
    ],
)
def test_the_tag_of_a_statement_that_makes_the_table(log: list[int], after: str, tagged: int | None) -> None:
    table = Table(
        log, SNAPSHOTS | {40: (None, "overwrite")}, properties={f"healing_tables.build.after.{after}": "made"}
    )
    found = table.macros._iceberg_newest_commits(table.relation("dim"))
    assert [commit["version"] for commit in found if "made" in commit["parameters"]] == ([tagged] if tagged else [])
