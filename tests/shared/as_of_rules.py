"""The rules of the look-up as data: facts, a dimension, the arguments, and what each fact gets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Rows = list[list[Any]]
FACTS = [["no", "int"], ["id", "int"], ["at", "timestamp"]]
DIMENSION = [
    ["id", "int"],
    ["city", "string"],
    ["valid_from", "timestamp"],
    ["valid_to", "timestamp"],
]
END = "9999-12-31 00:00:00"


@dataclass(frozen=True)
class Rule:
    """``expected``: per fact its first column, then what was brought."""

    title: str
    facts: Rows
    dimension: Rows
    expected: list[tuple[Any, ...]]
    fact_columns: list[list[str]] = field(default_factory=lambda: FACTS)
    columns: list[list[str]] = field(default_factory=lambda: DIMENSION)
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def arguments(self) -> dict[str, Any]:
        return {"key_columns": "id", "at": "at", "columns": ["city"], **self.options}

    @property
    def shown(self) -> list[str]:
        return [self.fact_columns[0][0], *self.arguments["columns"]]


def day(number: int, time: str = "00:00:00") -> str:
    return f"2024-01-{number:02} {time}"


RULES = [
    Rule(
        "a fact that matches nothing stays, and equal facts stay two",
        [
            [1, 7, day(1)],
            [1, 7, day(1)],
            [2, 7, day(10)],
            [3, None, day(2)],
            [4, 7, None],
            [5, 99, day(2)],
            [6, 7, "2023-12-31 23:59:59.999999"],
            [7, None, None],
            [8, 7, day(20)],
        ],
        [
            [7, "Oslo", day(1), day(10)],
            [7, "Rome", day(20), END],
            [None, "nobody", day(1), END],
            [7, "no start", None, END],
        ],
        [(1, "Oslo"), (1, "Oslo"), *((no, "nowhere") for no in range(2, 8)), (8, "Rome")],
        options={"unknown": {"city": "nowhere"}},
    ),
    Rule(
        "an open row matches every later moment, a row that has ended does not, whatever its flag",
        [[no, id, "9999-12-31 23:59:59.999999"] for no, id in enumerate((7, 8, 9, 10))],
        [
            [7, "null", day(1), None, True],
            [8, "last day", day(1), "9999-12-31 00:00:00", True],
            [9, "end of time", day(1), END, True],
            [10, "deleted", day(1), day(9), True],
        ],
        [(0, "null"), (1, "last day"), (2, "end of time"), (3, None)],
        columns=[*DIMENSION, ["is_current", "boolean"]],
    ),
    Rule(
        "another end of time is open too",
        [[1, 7, "3024-01-01 00:00:00"], [2, 8, "3024-01-01 00:00:00"]],
        [[7, "open", "2024-01-01", "2999-12-31"], [8, "closed", "2024-01-01", "2999-12-30"]],
        [(1, "open"), (2, None)],
        columns=[["id", "int"], ["city", "string"], ["valid_from", "date"], ["valid_to", "date"]],
        options={"valid_to_current": "2999-12-31 23:59:59"},
    ),
    Rule(
        "an open end that is not named is open too, from 2200 on",
        [[no, id, "9999-12-31 00:00:00"] for no, id in enumerate((7, 8, 9))],
        [
            [7, "open", day(1), "2999-12-31 00:00:00"],
            [8, "first", day(1), "2200-01-01 00:00:00"],
            [9, "planned", day(1), "2199-12-31 23:59:59"],
        ],
        [(0, "open"), (1, "first"), (2, None)],
    ),
    Rule(
        "keys of two columns with other names; a number next to a text compares as text",
        [
            [1, "no", 42, day(2)],
            [2, "se", 42, day(2)],
            [3, "no", 43, day(2)],
            [4, None, 42, day(2)],
        ],
        [["no", "42", "Oslo", day(1), END], ["no", "0043", "Bergen", day(1), END]],
        [(1, "Oslo"), (2, None), (3, None), (4, None)],
        fact_columns=[["no", "int"], ["land", "string"], ["buyer", "int"], ["at", "timestamp"]],
        columns=[["country", "string"], ["code", "string"], *DIMENSION[1:]],
        options={"key_columns": {"country": "land", "code": "buyer"}},
    ),
    Rule(
        "overlapping versions give one row: the one that began last, then the one that ends last, then the greatest",
        [[no, 7, day(no)] for no in (1, 2, 4, 6)] + [[8, 8, day(2)], [9, 9, day(2)]],
        [
            [7, "whole month", day(1), day(30)],
            [7, "short", day(3), day(4)],
            [7, "long", day(3), day(5)],
            [8, "a", day(1), END],
            [8, "b", day(1), None],
            [8, "b", day(1), None],
            [9, "empty", day(2), day(2)],
            [9, "backwards", day(2), day(1)],
        ],
        [(1, "whole month"), (2, "whole month"), (4, "long"), (6, None), (8, "b"), (9, None)],
    ),
    Rule(
        "names that the statement uses itself, and other odd ones",
        [[1, 7, "x", "y", "z", day(2)]],
        [["row", "until", 7, day(1), END]],
        [(1, "row", "until", "row")],
        fact_columns=[
            ["fact", "int"],
            ["key_1", "int"],
            ["version", "string"],
            ["spread", "string"],
            ["a`b", "string"],
            ["at", "timestamp"],
        ],
        columns=[["row", "string"], ["until `1", "string"], ["at", "int"], *DIMENSION[2:]],
        options={
            "key_columns": {"at": "key_1"},
            "columns": {"row": "row", "until": "until `1", "key_2": "row"},
        },
    ),
    Rule(
        "a date is its midnight in UTC, next to timestamps with and without a zone",
        [[1, 7, "2024-03-10"], [2, 7, "2024-03-11"], [3, 8, "2024-03-10"], [4, 8, "2024-03-09"]]
        + [[5, 9, "2024-03-10"], [6, 9, "2024-03-09"]],
        [
            [7, "one", "2024-03-01 00:00:00", "2024-03-10 00:00:00.000001"],
            [7, "two", "2024-03-10 00:00:00.000001", END],
            [8, "one", "2024-03-01 00:00:00", "2024-03-10 00:00:00"],
            [8, "two", "2024-03-10 00:00:00", END],
            [9, "ended", "2024-03-01 00:00:00", "2024-03-10 00:00:00"],
        ],
        [(1, "one"), (2, "two"), (3, "two"), (4, "one"), (5, None), (6, "ended")],
        fact_columns=[["no", "int"], ["id", "int"], ["at", "date"]],
        columns=[*DIMENSION[:2], ["valid_from", "timestamp"], ["valid_to", "timestamp_ntz"]],
    ),
    Rule(
        "maps and unknown members of every type",
        [[1, {"k": "v"}, 7, day(2)], [2, None, 7, None]],
        [[7, {"a": 1}, 5, "1.50", True, "2024-01-01", "x", day(1), END]],
        [(1, 5, "1.50", "true", "2024-01-01", "x"), (2, -1, "0.25", "false", "1900-01-01", "?")],
        fact_columns=[["no", "int"], ["tags", "map<string,string>"], *FACTS[1:]],
        columns=[
            ["id", "int"],
            ["map", "map<string,int>"],
            ["sk", "bigint"],
            ["rate", "decimal(10,2)"],
            ["flag", "boolean"],
            ["since", "date"],
            ["name", "string"],
            *DIMENSION[2:],
        ],
        options={
            "columns": ["sk", "rate", "flag", "since", "name", "map"],
            "unknown": {"sk": -1, "rate": 0.25, "flag": False, "since": "1900-01-01", "name": "?"},
        },
    ),
]
