"""A dimension with each kind of damage in a key of its own, and what is to be found in it."""

from __future__ import annotations

import json
from typing import Any

from lab import Lab
from sessions import FORMAT

OPEN = "9999-12-31"
# id, name, valid_from, valid_to, is_current, version
ROWS: list[list[Any]] = [
    [1, "a", "2024-01-01", "2024-03-01", False, 1],  # healthy
    [1, "b", "2024-03-01", OPEN, True, 2],
    [2, "a", "2024-01-01", OPEN, True, 1],  # several current rows
    [2, "b", "2024-03-01", OPEN, True, 2],
    [3, "a", "2024-01-01", "2024-03-01", False, 1],  # no current row
    [3, "b", "2024-03-01", OPEN, False, 2],
    [4, "a", "2024-01-01", "2024-04-01", False, 1],  # an overlap
    [4, "b", "2024-03-01", OPEN, True, 2],
    [5, "a", "2024-01-01", OPEN, True, 1],  # twice the same
    [5, "a", "2024-01-01", OPEN, True, 1],
    [6, "a", "2024-01-01", "2024-02-01", False, 1],  # a gap
    [6, "a", "2024-03-01", OPEN, True, 2],
    [7, "a", "2024-01-01", "2024-03-01", False, 1],  # ends before it starts
    [7, "b", "2024-02-01", "2024-01-15", False, 2],
    [7, "c", "2024-03-01", OPEN, True, 3],
    [8, "a", "2024-01-01", "2024-03-01", False, 1],  # empty
    [8, "b", "2024-03-01", "2024-03-01", False, 2],
    [8, "c", "2024-03-01", OPEN, True, 2],
    [9, "a", None, "2024-03-01", False, 1],  # no start
    [9, "b", "2024-03-01", OPEN, True, 2],
    [10, "a", "2024-01-01", "2024-03-01", True, 1],  # closed, yet flagged
    [10, "b", "2024-03-01", OPEN, True, 2],
    [11, "a", "2024-01-01", "2024-03-01", False, 5],  # wrong numbers
    [11, "b", "2024-03-01", OPEN, True, None],
    [12, "a", "2024-01-01", "2024-03-01", False, 1],  # says the same
    [12, "a", "2024-03-01", OPEN, True, 2],
    [13, "a", "2024-01-01", "2024-03-01", False, 1],  # two rows with one start
    [13, "b", "2024-01-01", OPEN, True, 1],
    [14, "a", "2024-01-01", None, True, 1],  # no end
    [16, "a", "2024-01-01", "2024-03-01", False, 1],  # ended: healthy
    [None, "a", "2024-01-01", OPEN, True, 1],  # no key
]
COLUMNS = [
    ["id", "int"],
    ["name", "string"],
    ["valid_from", "date"],
    ["valid_to", "date"],
    ["is_current", "boolean"],
    ["version", "int"],
]
# kind to what is told
FOUND = {
    "null_key": ("1 row", "id = NULL"),
    "bad_start": ("1 row", "id = 9"),
    "inverted": ("2 rows", "id = 7; id = 8"),
    "null_end": ("1 row", "id = 14"),
    "exact_duplicate": ("1 row", "id = 5"),
    "same_start": ("1 row", "id = 13"),
    "overlap": ("4 pairs", "id = 13; id = 2; id = 4; id = 5"),
    "several_current": ("3 keys", "id = 10; id = 2; id = 5"),
    "no_current": ("1 key", "id = 3"),
    "wrong_flag": ("2 rows", "id = 10; id = 3"),
    "wrong_version": ("4 rows", "id = 11; id = 7; id = 9"),
    "repeat": ("1 row", "id = 12"),
    "gap": ("1 gap", "id = 6"),
}
# What a repair leaves in the keys that are not healthy; 5, 6 and 8 lose rows, or nothing.
MENDED: list[list[Any]] = [
    [2, "a", "2024-01-01", "2024-03-01", False, 1],
    [2, "b", "2024-03-01", OPEN, True, 2],
    [3, "a", "2024-01-01", "2024-03-01", False, 1],
    [3, "b", "2024-03-01", OPEN, True, 2],
    [4, "a", "2024-01-01", "2024-03-01", False, 1],
    [4, "b", "2024-03-01", OPEN, True, 2],
    [5, "a", "2024-01-01", OPEN, True, 1],
    [6, "a", "2024-01-01", "2024-02-01", False, 1],
    [6, "a", "2024-03-01", OPEN, True, 2],
    [7, "a", "2024-01-01", "2024-03-01", False, 1],
    [7, "c", "2024-03-01", OPEN, True, 2],
    [8, "a", "2024-01-01", "2024-03-01", False, 1],
    [8, "c", "2024-03-01", OPEN, True, 2],
    [9, "b", "2024-03-01", OPEN, True, 1],
    [10, "a", "2024-01-01", "2024-03-01", False, 1],
    [10, "b", "2024-03-01", OPEN, True, 2],
    [11, "a", "2024-01-01", "2024-03-01", False, 1],
    [11, "b", "2024-03-01", OPEN, True, 2],
    [12, "a", "2024-01-01", OPEN, True, 1],
    [13, "b", "2024-01-01", OPEN, True, 1],
    [14, "a", "2024-01-01", OPEN, True, 1],
]
HEALTHY = [row for row in ROWS if row[0] in (1, 16)]
SET_ASIDE = {
    (7, "b"): "inverted",
    (8, "b"): "inverted",
    (9, "a"): "bad_start",
    (12, "a"): "repeat",
    (13, "a"): "same_start",
    (None, "a"): "null_key",
}


def stored(
    lab: Lab,
    name: str,
    columns: list[list[str]],
    rows: list[list[Any]],
    *,
    partitioned: str = "",
    files: int = 0,
) -> None:
    """A table with commits of these rows, made anew; ``files``: spread over so many, if each has a row."""
    frame = lab.frame(columns, rows)
    (frame.coalesce(1) if files else frame).createOrReplaceTempView("stored_rows")
    hint = f"/*+ repartition({files}) */" if files else ""
    lab.spark.sql(
        f"create or replace table {lab.schema}.`{name}` using {FORMAT} {partitioned} "
        f"tblproperties ('delta.columnMapping.mode' = 'name') as select {hint} * from stored_rows"
    )


def operation(lab: Lab, name: str, *more: str, **arguments: Any) -> list[str]:
    """Run an operation; what it said, an error included."""
    lab.dbt(
        "run-operation",
        f"healing_tables.{name}",
        "--args",
        json.dumps(arguments),
        *more,
    )
    return [line for text in lab.log for line in text.splitlines()]


def table_told(lines: list[str]) -> dict[str, tuple[str, str, str]]:
    """Kind to (found, keys, repair)."""
    cells = [
        [cell.strip() for cell in line.split(" | ")]
        for line in lines
        if line.startswith("  ") and " | " in line and line.strip(" |-")
    ]
    assert all(len(row) == 4 for row in cells), cells
    return {row[0]: (row[1], row[2], row[3]) for row in cells[1:]}


def commits(lab: Lab, name: str) -> list[str]:
    """Operations of a table with commits, oldest first."""
    return [operation for _, operation in lab.commits(name)]


def tables(lab: Lab) -> list[str]:
    rows = lab.spark.sql(f"show tables in {lab.schema}").collect()
    return sorted(row["tableName"] for row in rows if not row["isTemporary"])
