"""diagnose: every kind of damage, in any table of versions."""

from __future__ import annotations

from typing import Any

import pytest
from damage import COLUMNS, FOUND, ROWS, operation, stored, table_told
from lab import Lab
from sessions import FORMAT

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("interpreted")]

DIM = """{{ healing_tables.dimension({'crm': {'relation': ref('stg_crm'), 'changed_at': 'at'}},
    attributes=['name'], column_types={'id': 'int', 'at': 'date', 'name': 'string'},
    column_names={'valid_from': 'since', 'valid_to': 'until', 'is_current': 'active'},
    valid_to_current=none, current_values=['Y', 'N']) }}"""

# Its source has two rows of key 1: both are current, from one moment on.
SNAPSHOT = f"""
snapshots:
  - name: seen
    relation: source('raw', 'crm')
    config: {{unique_key: id, strategy: check, check_cols: [name], file_format: {FORMAT}}}
"""


@pytest.fixture(scope="module")
def told(lab: Lab, interpreted: None) -> dict[str, list[str]]:
    """What the operation said, by the name of the look."""
    lab.write(
        "models/schema.yml",
        f"version: 2\nsources: [{{name: raw, schema: {lab.schema}, tables: [{{name: crm}}]}}]\n",
    )
    changes = [[1, "2024-01-01", "a"], [1, "2024-02-01", "b"], [2, "2024-01-01", "a"]]
    lab.table("crm", [["id", "int"], ["at", "date"], ["name", "string"]], changes)
    lab.model("stg_crm", "select * from {{ source('raw', 'crm') }}", materialized="ephemeral")
    lab.model("dim_called", DIM, materialized="healing_table", unique_key="id")
    lab.write("snapshots/seen.yml", SNAPSHOT)
    lab.dbt("build")
    lab.table("dim_bad", COLUMNS, ROWS)
    stored(lab, "dim_good", COLUMNS, [row for row in ROWS if row[0] in (1, 16)])
    bad: dict[str, Any] = {"dimension": f"{lab.schema}.dim_bad", "key_columns": "id"}
    tracked = {"tracked_columns": ["name"]}
    found = {
        "model": operation(lab, "diagnose", dimension="dim_called", fail=True),
        "snapshot": operation(lab, "diagnose", dimension="seen"),
        "bad": operation(lab, "diagnose", **bad, **tracked),
        "fail": operation(lab, "diagnose", **bad, **tracked, fail=True, ignore=["gap"]),
        "good": operation(lab, "diagnose", dimension=f"{lab.schema}.dim_good", key_columns=["id"], fail=True),
        "mistakes": operation(lab, "diagnose", dimension="dim_bad", valid_from="since", current_values=["Y", "N"]),
        "unknown": operation(lab, "diagnose", dimension="no.such_table"),
        **taken_over(lab),
    }
    lab.spark.sql(f"update {lab.schema}.dim_called set active = 'N' where id = 2")
    lab.spark.sql(f"update {lab.schema}.dim_called set id = 3 where id = 2")
    lab.spark.sql(f"update {lab.schema}.dim_called set name = 'c' where name = 'b'")
    called = "DIM_called" if FORMAT == "delta" else "dim_called"  # a catalog of folders tells cases apart
    found["model damaged"] = operation(lab, "diagnose", dimension=f"{lab.schema}.{called}")
    return found


def taken_over(lab: Lab) -> dict[str, list[str]]:
    """A healthy table of another program, and what says something else about its open end and its flags."""
    columns = [*COLUMNS[:4], ["is_current", "string"]]
    ends = {"2024-03-01": "2024-03-01", "9999-12-31": "2999-12-31"}
    rows = [[*row[:3], ends[row[3]], "Y" if row[4] else "N"] for row in ROWS if row[0] in (1, 6, 16) and row[3] in ends]
    stored(lab, "dim_other", columns, rows)
    stored(lab, "dim_two_ends", columns, [*rows, [20, "a", "2024-01-01", None, "Y"]])
    other = {"dimension": f"{lab.schema}.dim_other", "key_columns": "id"}
    found = {
        "other": operation(lab, "diagnose", **other),
        "other repaired": operation(lab, "repair", **other, dry_run=False),
        "another end": operation(lab, "diagnose", **other, valid_to_current="9999-12-31"),
        "another flag": operation(lab, "repair", **other, current_values=["A", "N"], dry_run=False),
        "two ends": operation(lab, "repair", **other | {"dimension": f"{lab.schema}.dim_two_ends"}, dry_run=False),
    }
    found["other rows"] = [f"{end} {flag}" for end, flag in lab.rows("dim_other", "valid_to", "is_current")]
    return found


def test_the_open_end_and_the_flags_come_from_the_rows(told: dict[str, list[str]]) -> None:
    text = "\n".join(told["other"])
    assert "is_current (Y); open end 2999-12-31 00:00:00" in text
    assert "nothing found" in text
    assert "nothing to repair, nothing was written" in "\n".join(told["other repaired"])
    for name, parts in {
        "another end": ["valid_to_current", "2999-12-31 00:00:00 in 2 rows", "got:    9999-12-31 00:00:00"],
        "another flag": ["current_values", "Y in 2 rows", "got:    A, N"],
        "two ends": ["valid_to_current", "2999-12-31 00:00:00 in 2 rows", "NULL in 1 row"],
    }.items():
        said = "\n".join(told[name])
        assert [part for part in ["nothing was written", *parts] if part not in said] == [], name
    assert sorted(set(told["other rows"])) == ["2024-03-01 N", "2999-12-31 Y"]


def test_every_kind_is_told_with_its_number_and_keys(told: dict[str, list[str]]) -> None:
    found = table_told(told["bad"])
    assert {kind: row[:2] for kind, row in found.items()} == FOUND
    assert found["gap"][2].startswith("nothing")
    assert all(row[2] for row in found.values())
    assert not [line for line in told["bad"] if "Encountered an error" in line]


def test_a_run_fails_if_told_to(told: dict[str, list[str]]) -> None:
    text = "\n".join(told["fail"])
    assert "wanted: no findings, since fail is true" in text
    named = next(line for line in told["fail"] if line.strip().endswith("wrong_version, repeat"))
    assert ": null_key, bad_start" in named


def test_a_good_table_has_nothing(told: dict[str, list[str]]) -> None:
    assert table_told(["  a | b | c | d", *told["good"]]) == {}
    assert [line for line in told["good"] if line.endswith("nothing found")]
    assert not [line for line in told["good"] if "Encountered an error" in line]


def test_names_come_from_the_model_and_its_call(told: dict[str, list[str]]) -> None:
    text = "\n".join(told["model"])
    assert "2 keys, 3 rows; key id; valid_from since, valid_to until, is_current active (Y), version" in text
    assert "open end NULL; tracked name" in text
    assert "nothing found" in text
    found = table_told(told["model damaged"])
    assert {kind: row[:2] for kind, row in found.items()} == {
        "no_current": ("1 key", "id = 3"),
        "wrong_flag": ("1 row", "id = 3"),
        "wrong_key_hash": ("1 row", "id = 3"),
        "wrong_row_hash": ("1 row", "id = 1"),
    }


def test_a_snapshot_of_dbt_is_known(told: dict[str, list[str]]) -> None:
    assert {kind: row[:2] for kind, row in table_told(told["snapshot"]).items()} == {
        "same_start": ("1 row", "id = 1"),
        "overlap": ("1 pair", "id = 1"),
        "several_current": ("1 key", "id = 1"),
    }
    text = "\n".join(told["snapshot"])
    assert "valid_from dbt_valid_from, valid_to dbt_valid_to; open end NULL" in text


def test_mistakes_come_together(told: dict[str, list[str]]) -> None:
    text = "\n".join(told["mistakes"])
    assert "has 4 mistakes" in text
    for part in ("key_columns", "got:    since", "a value of type boolean"):
        assert part in text
    assert "a table or view that exists" in "\n".join(told["unknown"])
