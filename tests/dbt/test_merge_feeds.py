"""Rules of change data capture in merges with a change log: by both ways, step by step. Random feeds: see
tests/proof/test_merge_random_feeds.py."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from lab import Lab
from merge_feed import OPEN, WAYS, Feed, day
from tables import plain_rows
from ways import merge_by_sql, merge_model

from healing_tables import DimensionSpec, HealingTablesError, merge

COLUMNS = [["id", "int"], ["seen", "timestamp"], ["op", "string"], ["name", "string"], ["doc", "string"], ["n", "int"]]
MARK = "(unchanged)"
PLAIN: dict[str, Any] = {"attributes": {"name": 2, "doc": 2}, "changed_at": "seen", "deleted_when": "op = 'd'"}
SHOWN = ["id", "name", "doc", "valid_from", "valid_to"]
PARTIAL = {**PLAIN, "ignore_nulls": ["name"], "unchanged_value": {"DOC": MARK}}


@pytest.mark.parametrize("way", WAYS)
def test_rows_of_before_the_option_are_complete(lab: Lab, way: str) -> None:
    feed = Feed(lab, "completed", way, COLUMNS, SHOWN)
    first = [[1, day(1), "u", "A", "x", 1], [1, day(3), "u", None, MARK, 2], [2, day(1), "u", "B", "x", 3]]
    feed.merge(first, PLAIN)
    # NULL and the mark are values; a row that comes again stays what it was
    feed.merge([*first, [1, day(5), "u", None, "z", 4], [2, day(4), "u", "C", MARK, 5]], PARTIAL)
    feed.merge(
        [[1, day(2), "u", None, "y", 6], [2, day(6), "d", None, None, 7], [2, day(7), "u", None, "w", 8]], PARTIAL
    )
    assert feed.rows() == [
        (1, "A", "x", day(1), day(2)),
        (1, "A", "y", day(2), day(3)),
        (1, None, MARK, day(3), day(5)),
        (1, None, "z", day(5), OPEN),
        (2, "B", "x", day(1), day(4)),
        (2, "C", "x", day(4), day(6)),
        (2, None, "w", day(7), OPEN),  # a deletion ends what is carried
    ]
    logged = feed.logged("id", "changed_at", "name", "doc", "is_partial")
    assert [row[:4] for row in logged if row[4] is not True] == [
        (1, day(1), "A", "x"),
        (1, day(3), None, MARK),
        (2, day(1), "B", "x"),
    ]
    assert (2, day(4), "C", MARK, True) in logged


@pytest.mark.parametrize("way", WAYS)
def test_a_partial_row_over_stored_versions(lab: Lab, way: str) -> None:
    """A log that begins with them: they are complete, and a row that comes again agrees with its version."""
    feed = Feed(lab, "seeded", way, COLUMNS, SHOWN)
    spec = DimensionSpec(key_columns="id", change_log=False, **PLAIN)
    stored = [[1, day(1), "u", "A", "x", 1], [1, day(3), "u", None, "y", 2]]
    merge(lab.frame(COLUMNS, stored), feed.table, spec)
    again = [[1, day(1), "u", None, "x", 1], [1, day(3), "u", None, MARK, 2], [1, day(5), "u", None, "z", 3]]
    feed.merge(again, PARTIAL)
    assert feed.rows() == [
        (1, "A", "x", day(1), day(3)),
        (1, None, "y", day(3), day(5)),
        (1, None, "z", day(5), OPEN),
    ]
    assert len(feed.logged("id")) == 3


@pytest.mark.parametrize("way", WAYS)
def test_a_sequence_over_stored_versions(lab: Lab, way: str, caplog: pytest.LogCaptureFixture) -> None:
    feed = Feed(lab, "sequenced", way, COLUMNS, SHOWN)
    sequenced = {**PLAIN, "sequence_by": "n"}
    spec = DimensionSpec(key_columns="id", change_log=False, **PLAIN)
    merge(lab.frame(COLUMNS, [[1, day(1), "u", "A", "x", 1], [1, day(3), "u", "B", "x", 2]]), feed.table, spec)
    with caplog.at_level(logging.WARNING):
        feed.merge([[1, day(9), "u", "C", "x", 10], [1, day(6), "u", "D", "x", 11]], sequenced)
    said = "\n".join(lab.log if way == "sql" else caplog.messages)
    assert "1 row of the batch moved to the moment of a row before in sequence_by, which is later" in said
    feed.merge([[1, day(5), "u", "E", "x", 9]], sequenced)
    assert feed.rows() == [
        (1, "A", "x", day(1), day(3)),
        (1, "B", "x", day(3), day(5)),
        (1, "E", "x", day(5), day(9)),
        (1, "D", "x", day(9), OPEN),
    ]
    message = feed.error([[1, day(7), "u", "F", "x", 9]], sequenced)
    assert "two different rows for one key and moment" in message
    assert len(feed.logged("id")) == 5


@pytest.mark.parametrize("way", WAYS)
def test_a_truncation(lab: Lab, way: str) -> None:
    feed = Feed(lab, "truncated", way, COLUMNS, SHOWN)
    options = {**PLAIN, "truncated_when": "op = 't'", "max_removed_keys_ratio": 1}
    feed.merge([[1, day(1), "u", "A", "x", 1], [2, day(1), "u", "B", "x", 2]], options)
    feed.merge([[None, day(5), "t", None, None, 3], [2, day(5), "u", "C", "x", 4]], options)
    # a late row finds a truncation in the log, and one that comes again is logged once
    feed.merge(
        [[3, day(2), "u", "L", "x", 5], [99, day(5), "t", "odd", None, 6], [1, day(7), "u", "N", "x", 7]], options
    )
    assert feed.rows() == [
        (1, "A", "x", day(1), day(5)),
        (1, "N", "x", day(7), OPEN),
        (2, "B", "x", day(1), day(5)),
        (2, "C", "x", day(5), OPEN),
        (3, "L", "x", day(2), day(5)),
    ]
    assert len([row for row in feed.logged("id") if row[0] is None]) == 1
    assert not lab.spark.catalog.tableExists(f"{feed.table}__set_aside")


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_a_truncation_is_guarded(lab: Lab, way: str) -> None:
    feed = Feed(lab, "guarded", way, COLUMNS, SHOWN)
    options = {**PLAIN, "truncated_when": "op = 't'"}
    feed.merge([[number, day(1), "u", "A", "x", number] for number in range(30)], options)
    before = feed.rows()
    assert "max_removed_keys_ratio" in feed.error([[None, day(5), "t", None, None, 99]], options)
    assert feed.rows() == before and len(feed.logged("id")) == 30


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_full_batches_of_partial_rows(lab: Lab, way: str) -> None:
    """An absence ends what is carried, too, whenever its batch comes."""
    feed = Feed(lab, "full", way, COLUMNS, SHOWN)
    options = {**PARTIAL, "deleted_when": None, "full_batch": True, "max_removed_keys_ratio": 1}
    feed.merge([[1, day(1), "u", "A", "x", 1], [2, day(1), "u", "B", "x", 2]], options, at=day(2))
    feed.merge([[1, day(5), "u", None, "z", 3], [2, day(5), "u", None, MARK, 4]], options, at=day(6))
    feed.merge([[2, day(3), "u", "C", MARK, 5]], options, at=day(4))
    assert feed.rows() == [
        (1, "A", "x", day(1), day(4)),
        (1, None, "z", day(5), OPEN),
        (2, "B", "x", day(1), day(3)),
        (2, "C", "x", day(3), OPEN),
    ]


@pytest.mark.parametrize("way", WAYS)
def test_mistakes_in_the_rules(lab: Lab, way: str) -> None:
    feed = Feed(lab, "wrong", way, COLUMNS, SHOWN)
    rows = [[1, day(1), "u", "A", "x", 1]]
    wrong = {"ignore_nulls": ["nam"], "unchanged_value": {"docs": 1}, "sequence_by": ["m"]}
    message = feed.error(rows, {**PLAIN, **wrong})
    for part in ("ignore_nulls: nam", "did you mean name?", "unchanged_value: docs", "sequence_by: m"):
        assert part in message, message
    message = feed.error(rows, {**PLAIN, "sequence_by": "n", "tie_break_by": "n", "full_batch": True})
    for part in ("remove tie_break_by", "a key that is missing has no place in a sequence"):
        assert part in message, message
    message = feed.error(rows, {**PLAIN, "truncated_when": "oops = 't'"})
    assert "oops" in message
    assert not lab.spark.catalog.tableExists(feed.table)


def test_rules_without_a_log(lab: Lab) -> None:
    rows = lab.frame(COLUMNS, [[1, day(1), "u", "A", "x", 1]])
    rules: dict[str, Any] = {"ignore_nulls": True, "unchanged_value": {"doc": "?"}, "sequence_by": "n"}
    spec = DimensionSpec(key_columns="id", change_log=False, truncated_when="op = 't'", **rules, **PLAIN)
    with pytest.raises(HealingTablesError) as caught:
        merge(rows, f"{lab.schema}.unlogged", spec)
    for name in (*rules, "truncated_when"):
        assert f"{name}\n     wanted: a merge with a change log" in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_causes_of_several_rows_of_a_moment(lab: Lab, way: str) -> None:
    """Two partial rows of one moment add up; the audit has the cause of one of them. A column that a batch lacks
    was not sent, or keeps its value."""
    feed = Feed(lab, "caused", way, COLUMNS, SHOWN)
    options = {**PARTIAL, "tie_break_by": "n", "change_reason": "op", "audit": {"actor": "loader"}}
    feed.merge([[1, day(1), "first", "A", "x", 1]], options)
    feed.merge([[1, day(3), "renamed", "B", MARK, 2], [1, day(3), "documented", None, "y", 3]], options)
    assert feed.rows() == [(1, "A", "x", day(1), day(3)), (1, "B", "y", day(3), OPEN)]
    audit = plain_rows(lab.spark.table(f"{feed.table}_audit"), ["change_type", "reason"])
    assert sorted(audit)[1:] == [("insert", "documented"), ("insert", "first")] and len(audit) == 3
    less = lab.frame(COLUMNS, [[1, day(5), "moved", "C", None, 4]]).drop("doc")
    if way == "sql":
        merge_model(lab, feed.model, less, **options, missing_columns="keep")
        merge_by_sql(lab, feed.model)
    else:
        given = {**options, "change_log": f"{feed.table}_changes", "missing_columns": "keep"}
        merge(less, feed.table, DimensionSpec(key_columns="id", **given))
    assert feed.rows()[2] == (1, "C", "y", day(5), OPEN)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("attributes", [["name"], ["name", "op"]], ids=["beside", "attribute"])
def test_full_batches_of_a_part(lab: Lab, way: str, attributes: list[str]) -> None:
    """A load per country, which is `op` here: absent keys end only there, whenever the batch comes."""
    feed = Feed(lab, f"parted_{len(attributes)}", way, COLUMNS, SHOWN)
    options = {"changed_at": "seen", "attributes": attributes, "full_batch": True, "max_removed_keys_ratio": 1}
    first = [[1, day(1), "NO", "A", "x", 1], [2, day(1), "NO", "B", "x", 1], [3, day(1), "SE", "C", "x", 1]]
    if "op" not in attributes:  # an attribute is in the log of the first batch, too
        options["within"] = "op"
    feed.merge(first, options, at=day(1))
    options["within"] = "OP"
    feed.merge([[2, day(5), "SE", "B", "x", 1], [3, day(5), "SE", "C", "x", 1]], options, at=day(5))
    feed.merge([[1, day(6), "NO", "A", "x", 1]], options, at=day(6))
    feed.merge([[4, day(7), None, "D", "x", 1]], options, at=day(7))
    # late: of the parts of that moment, key 3 was absent, and key 5 is absent from the next one
    feed.merge([[5, day(3), "SE", "E", "x", 1], [1, day(3), "NO", "L", "x", 1]], options, at=day(3))
    feed.merge([[5, day(3), "SE", "E", "x", 1], [1, day(3), "NO", "L", "x", 1]], options, at=day(3))
    shown = ["id", "name", "valid_from", "valid_to"]
    rows = plain_rows(lab.spark.table(feed.table), shown)
    assert sorted(rows, key=lambda row: (row[0], row[2])) == [
        (1, "A", day(1), day(3)),
        (1, "L", day(3), day(6)),
        (1, "A", day(6), OPEN),
        (2, "B", day(1), day(3)),
        (2, "B", day(5), OPEN),
        (3, "C", day(1), day(3)),
        (3, "C", day(5), OPEN),
        (4, "D", day(7), OPEN),
        (5, "E", day(3), day(5)),
    ]
    marks = [row for row in feed.logged("id", "changed_at", "within_values") if row[0] is None]
    assert len(marks) == (6 if "op" in attributes else 7), marks


def test_full_batches_of_a_part_without_a_log(lab: Lab) -> None:
    table = f"{lab.schema}.unlogged_parts"
    given: dict[str, Any] = {"key_columns": "id", "full_batch": True, "within": "op", "max_removed_keys_ratio": 1}
    spec = DimensionSpec(attributes=["name", "op"], **given)
    for number, rows in enumerate(
        (
            [[1, day(1), "NO", "A", "x", 1], [2, day(1), "NO", "B", "x", 1], [3, day(1), "SE", "C", "x", 1]],
            [[1, day(2), "NO", "A", "x", 1]],
            [[1, day(3), "SE", "A", "x", 1]],
        ),
        start=1,
    ):
        merge(lab.frame(COLUMNS, rows).select("id", "op", "name"), table, spec, at=day(number))
    shown = ["id", "op", "valid_from", "valid_to"]
    assert plain_rows(lab.spark.table(table), shown) == [
        (1, "NO", day(1), day(3)),
        (1, "SE", day(3), OPEN),
        (2, "NO", day(1), day(2)),
        (3, "SE", day(1), day(3)),
    ]
    with pytest.raises(HealingTablesError, match="keys or attributes, for a merge without a change log"):
        merge(
            lab.frame(COLUMNS, [[1, day(4), "SE", "A", "x", 1]]).select("id", "op", "name"),
            f"{lab.schema}.unlogged_names",
            DimensionSpec(attributes=["name"], **given),
            at=day(4),
        )
