"""The tag of a commit: what it holds, how the history shows it, and when it does not count."""

from __future__ import annotations

from typing import Any

import pytest
from rendering import Project

MARKS: dict[str, dict[str, Any]] = {
    "crm": {"loaded_until": "2024-01-01 00:00:00.000000Z", "overlap": "3, -17"},
    'it\'s \\ "käse" / ~100 %, [a=b]': {"version": 7, "has_change_feed": True},
}


class Dimension(Project):
    def __init__(self) -> None:
        super().__init__({})

    def tag(self, base: int | None, row_count: int | None = 3) -> str:
        seen = {name: mark | {"last_overlap": "1, 2", "rows_without_time": 0} for name, mark in MARKS.items()}
        run = {"mode": "heal", "definition": "5f4dcc3b", "version_before": base, "marks": seen}
        return str(self.macros._commit_tag(run, row_count))

    def found(self, *commits: dict[str, Any], is_ordered: bool = True) -> Any:
        return self.macros._tagged_build(list(commits), is_ordered)


def commit(version: int, parameters: str = "{}", *, changes_rows: bool = True, written: int | None = None) -> Any:
    return {"version": version, "parameters": parameters, "changes_rows": changes_rows, "written_rows": written}


def merged(version: int, tag: str) -> Any:
    return commit(version, f"{{'predicate': '[\"((id#3 <=> key_1#9) AND (tag#4 = {tag}))\"]', 'matched': '[]'}}")


def created(version: int, tag: str, written: int | None = None) -> Any:
    return commit(version, f'{{\'properties\': \'{{"healing_tables.build":"{tag}","a":"b"}}\'}}', written=written)


OTHER = "{'predicate': '[\"(id#3 = 1)\"]'}"


def test_what_a_tag_holds() -> None:
    dimension = Dimension()
    tag = dimension.tag(4)
    assert set(tag) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._~/-")
    found = dimension.found(commit(6, changes_rows=False), merged(5, tag), commit(4, OTHER))
    assert found["last"] == {
        "mode": "heal",
        "spec": "5f4dcc3b",
        "table_id": "01234567-89ab-cdef-0123-456789abcdef",
        "version_after": 5,
        "marks": MARKS,
        "row_count": 3,
        "is_tagged": True,
    }
    assert (found["newest"], [other["version"] for other in found["others"]]) == (6, [6])


def test_the_rows_of_a_created_table_are_in_its_history() -> None:
    dimension = Dimension()
    assert dimension.found(created(0, dimension.tag(None, None), written=12))["last"]["row_count"] == 12


@pytest.mark.parametrize(
    ("base", "older", "is_valid"),
    [
        (4, [commit(4, OTHER)], True),
        (2, [commit(4, changes_rows=False), commit(3, changes_rows=False), commit(2)], True),
        (3, [commit(4, OTHER), commit(3)], False),  # another writer came before the merge
        (2, [commit(4, changes_rows=False)], False),  # what was between has expired
        (None, [commit(4, OTHER), commit(3)], False),
    ],
)
def test_commits_between_a_build_and_what_it_compared(base: int | None, older: list[Any], is_valid: bool) -> None:
    dimension = Dimension()
    assert (dimension.found(merged(5, dimension.tag(base)), *older) is not None) == is_valid


def test_the_newest_commit_that_changes_rows_decides() -> None:
    dimension = Dimension()
    assert dimension.found(commit(6, OTHER), merged(5, dimension.tag(4)), commit(4)) is None
    assert dimension.found(commit(0, OTHER)) is None
    assert dimension.found() is None


def test_a_tag_that_is_set_later_counts_for_all_rows_before_it() -> None:
    """A build that finds another writer's rows as they should be."""
    dimension = Dimension()
    tagged = created(7, dimension.tag(6)) | {"changes_rows": False}
    assert dimension.found(tagged, commit(6, OTHER))["last"]["version_after"] == 7


def test_a_tag_where_nothing_can_come_between() -> None:
    """Snapshots of Iceberg: ids without an order; the one that a build has read may have expired."""
    dimension = Dimension()
    found = dimension.found(commit(3, changes_rows=False), commit(90, dimension.tag(70)), is_ordered=False)
    assert (found["last"]["version_after"], found["newest"]) == (90, 3)
    assert [other["version"] for other in found["others"]] == [3]
    assert dimension.found(commit(3), commit(90, dimension.tag(70)), is_ordered=False) is None
