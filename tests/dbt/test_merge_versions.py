"""Options for versions in merges with a change log, by both ways: deleted_rows, and valid_from_first by a column.
Random histories: see tests/proof/test_merge_random_feeds.py."""

from __future__ import annotations

from typing import Any

import pytest
from lab import Lab
from merge_feed import OPEN, WAYS, Feed, day
from tables import plain_rows

from healing_tables import DimensionSpec, merge

COLUMNS = [["id", "int"], ["seen", "timestamp"], ["op", "string"], ["name", "string"], ["born", "timestamp"]]
PLAIN: dict[str, Any] = {"changed_at": "seen", "deleted_when": "op = 'd'"}
STARTS = {**PLAIN, "valid_from_first": {"batch": "Born"}}
SHOWN = ["id", "name", "valid_from", "valid_to"]
REASONS = {"change_reason": "change_reason", "ended_by_delete": "ended_by_delete"}
DELETED: dict[str, Any] = {**PLAIN, "attributes": ["name"], "deleted_rows": True, "column_names": REASONS}
MARKED = ["id", "name", "is_deleted", "is_current", "ended_by_delete", "change_reason", "valid_from", "valid_to"]


@pytest.mark.parametrize("way", WAYS)
def test_first_starts(lab: Lab, way: str) -> None:
    feed = Feed(lab, "started", way, COLUMNS, SHOWN)
    feed.merge(
        [
            [1, day(5), "u", "A", day(3)],
            [1, day(7), "u", "B", None],
            [2, day(5), "u", "C", None],
            [3, day(5), "u", "D", day(9)],
            [4, day(4), "d", None, day(1)],  # a row that says only that
            [4, day(6), "u", "E", None],
        ],
        STARTS,
    )
    assert feed.rows() == [
        (1, "A", day(3), day(7)),
        (1, "B", day(7), OPEN),
        (2, "C", day(5), OPEN),
        (3, "D", day(5), OPEN),
        (4, "E", day(1), OPEN),
    ]
    # a row that comes again with an earlier start, another one with a later start, and a late one
    news = [[1, day(7), "u", "B", day(2)], [3, day(5), "u", "D", day(10)], [2, day(4), "u", "X", day(1)]]
    for _ in range(2):
        feed.merge(news, STARTS)
        assert feed.rows() == [
            (1, "A", day(2), day(7)),
            (1, "B", day(7), OPEN),
            (2, "X", day(1), day(5)),
            (2, "C", day(5), OPEN),
            (3, "D", day(5), OPEN),
            (4, "E", day(1), OPEN),
        ]
        assert len(feed.logged("id")) == 8
    # Nothing is lost if the dimension is computed from its log
    lab.spark.sql(f"drop table {feed.table}")
    feed.merge([[5, day(5), "u", "F", day(2)]], STARTS)
    assert feed.rows()[0] == (1, "A", day(2), day(7)) and feed.rows()[-1] == (5, "F", day(2), OPEN)


@pytest.mark.parametrize("way", WAYS)
def test_first_starts_over_stored_versions(lab: Lab, way: str) -> None:
    """The log begins with them; and dates as moments, before 1970."""
    columns = [["id", "int"], ["seen", "date"], ["op", "string"], ["name", "string"], ["born", "timestamp"]]
    feed = Feed(lab, "started_late", way, columns, SHOWN)
    stored = [[1, "1969-01-05", "u", "A", None], [2, "1969-01-05", "u", "B", None]]
    spec = DimensionSpec(key_columns="id", change_log=False, attributes=["name"], **PLAIN)
    merge(lab.frame(columns, stored), feed.table, spec)
    feed.merge([[1, "1969-01-05", "u", "A", "1968-06-07 12:30:00"]], STARTS)
    feed.merge([[1, "1969-01-05", "u", "A", "1968-06-06 23:59:59.999999"]], STARTS)
    shown = [tuple(map(str, row)) for row in feed.rows()]
    assert shown == [("1", "A", "1968-06-06", "9999-12-31"), ("2", "B", "1969-01-05", "9999-12-31")]


@pytest.mark.parametrize("way", WAYS)
def test_deleted_rows(lab: Lab, way: str) -> None:
    feed = Feed(lab, "marked", way, COLUMNS, MARKED)
    feed.merge(
        [
            [1, day(1), "u", "A", None],
            [1, day(3), "d", None, None],
            [2, day(1), "u", "B", None],
            [2, day(4), "d", None, None],
            [3, day(1), "d", None, None],  # it has never existed
            [3, day(2), "u", "C", None],
        ],
        DELETED,
    )
    feed.merge([[1, day(5), "u", "A", None], [2, day(2), "u", "Z", None], [1, day(4), "d", None, None]], DELETED)
    wanted = [
        (1, "A", False, False, True, "new", day(1), day(3)),
        (1, "A", True, False, False, "deleted", day(3), day(5)),
        (1, "A", False, True, False, "returned", day(5), OPEN),
        (2, "B", False, False, False, "new", day(1), day(2)),
        (2, "Z", False, False, True, "changed", day(2), day(4)),
        (2, "Z", True, True, False, "deleted", day(4), OPEN),
        (3, "C", False, True, False, "new", day(2), OPEN),
    ]
    assert feed.rows() == wanted
    # a full batch ends a key as a deletion does, and a log can begin with such rows
    feed.merge([[1, day(5), "u", "A", None]], {**DELETED, "full_batch": True, "max_removed_keys_ratio": 1}, at=day(8))
    wanted[6:] = [
        (3, "C", False, False, True, "new", day(2), day(8)),
        (3, "C", True, True, False, "deleted", day(8), OPEN),
    ]
    assert feed.rows() == wanted
    lab.spark.sql(f"drop table {feed.table}_changes")
    feed.merge([[3, day(9), "u", "D", None]], DELETED)
    wanted[7:] = [
        (3, "C", True, False, False, "deleted", day(8), day(9)),
        (3, "D", False, True, False, "returned", day(9), OPEN),
    ]
    assert feed.rows() == wanted


@pytest.mark.parametrize("way", WAYS)
def test_deleted_rows_of_type_1(lab: Lab, way: str) -> None:
    """Without an attribute of type 2, a key has a version for each time in which it exists, or is deleted."""
    feed = Feed(lab, "flat_marked", way, COLUMNS, ["id", "name", "is_deleted", "valid_from", "valid_to"])
    options = {**DELETED, "attributes": {"name": 1}}
    feed.merge([[1, day(1), "u", "A", None], [1, day(3), "d", None, None]], options)
    feed.merge([[1, day(5), "u", "B", None], [1, day(7), "u", "C", None]], options)
    wanted = [(1, "C", False, day(1), day(3)), (1, "C", True, day(3), day(5)), (1, "C", False, day(5), OPEN)]
    assert feed.rows() == wanted
    lab.spark.sql(f"drop table {feed.table}_changes")
    feed.merge([[1, day(9), "d", None, None]], options)
    assert feed.rows() == [*wanted[:2], (1, "C", False, day(5), day(9)), (1, "C", True, day(9), OPEN)]


def test_audits_of_deleted_rows(lab: Lab) -> None:
    """Both ways say the same of each change."""
    said = {}
    for way in WAYS:
        feed = Feed(lab, "audited", way, COLUMNS, MARKED)
        options = {**DELETED, "audit": {"actor": "loader"}}
        feed.merge([[1, day(1), "u", "A", None], [2, day(1), "u", "B", None]], options)
        feed.merge([[1, day(3), "d", None, None], [2, day(3), "u", "C", None]], options)
        feed.merge([[1, day(5), "u", "A", None], [2, day(4), "d", None, None]], options)
        columns = ["publish_no", "key", "change_type", "change_reason", "changed_columns", "valid_from"]
        columns = [name for name in columns if name in lab.spark.table(f"{feed.table}_audit").columns]
        said[way] = sorted(plain_rows(lab.spark.table(f"{feed.table}_audit"), columns), key=repr)
    assert said["sql"] == said["library"] and len(said["sql"]) == 10


@pytest.mark.parametrize("way", WAYS)
def test_the_guard_counts_living_keys(lab: Lab, way: str) -> None:
    feed = Feed(lab, "guarded_marked", way, COLUMNS, MARKED)
    feed.merge([[key, day(1), "u", "A", None] for key in range(50)], DELETED)
    feed.merge([[key, day(2), "d", None, None] for key in range(20)], DELETED)
    message = feed.error([[key, day(3), "d", None, None] for key in range(20, 36)], DELETED)
    assert "16 of 30" in message
    feed.merge([[key, day(3), "d", None, None] for key in range(20, 35)], DELETED)
    assert sum(row[2] and row[3] for row in feed.rows()) == 35


@pytest.mark.parametrize("way", WAYS)
def test_what_cannot_be(lab: Lab, way: str) -> None:
    feed = Feed(lab, "impossible", way, COLUMNS, SHOWN)
    rows = [[1, day(1), "u", "A", None]]
    wrong = {**DELETED, "current_while_deleted": True, "attributes": {"name": 4}, "valid_from_first": {"batch": "born"}}
    message = " ".join(feed.error(rows, {**wrong, "column_names": {}}).split())
    assert "deleted_rows wanted: this option, or current_while_deleted" in message
    for option in ("deleted_rows", "valid_from_first.batch"):
        assert f"{option} wanted: attributes of types 0, 1, 2, 3 and 6" in message
    message = feed.error(rows, {**STARTS, "valid_from_first": {"batch": "op", "crm": "born"}})
    assert "valid_from_first.crm" in message
    message = " ".join(feed.error(rows, {**STARTS, "valid_from_first": {"batch": "op"}}).split())
    assert "valid_from_first.batch wanted: a date or a timestamp" in message
    message = feed.error(rows, {**STARTS, "valid_from_first": {"batch": "burn"}})
    assert "valid_from_first.batch: burn" in message
    feed.merge(rows, PLAIN)
    message = feed.error(rows, {**DELETED, "column_names": {}})
    assert "a column is_deleted in the stored table" in message


def test_without_a_log(lab: Lab) -> None:
    rows = lab.frame(COLUMNS, [[1, day(1), "u", "A", None]])
    spec = DimensionSpec(key_columns="id", change_log=False, deleted_rows=True, **STARTS)
    with pytest.raises(Exception, match="change log") as caught:
        merge(rows, f"{lab.schema}.unlogged", spec)
    for name in ("deleted_rows", "valid_from_first.batch"):
        assert f"{name}\n     wanted: a merge with a change log" in str(caught.value)
