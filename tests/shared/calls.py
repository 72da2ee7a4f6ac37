"""Calls of the public macros that have golden files: each kind of source, rule, tie and SCD type is in one of them."""

from __future__ import annotations

from typing import Any

RULES = ("first_non_null", "first_present", "most_recent_row", "most_recent_value")
COLUMNS = {"id": "int", "at": "timestamp", "until": "timestamp", "seq": "int", "gone": "boolean"}
VALUES = {f"c{number}": "string" for number in range(8)}
GENERATED = {
    "valid_from": "timestamp",
    "valid_to": "timestamp",
    "is_current": "boolean",
    "version": "int",
}
CATALOGUE: dict[str, dict[str, str]] = {
    **{f"db.{name}": COLUMNS | VALUES for name in ("log", "log_with_ties", "snapshots", "periods")},
    "db.calendar": {"at": "timestamp"},
    "db.simple": {"id": "int", "c0": "string", "c1": "string", **GENERATED},
    "db.effectivity": {
        "id": "int",
        "c0": "string",
        "changed_at": "timestamp",
        "is_deleted": "boolean",
    },
}


def everything(window: str = "") -> str:
    """`dimension` over a source of each kind. Args: window: options that all sources have besides."""
    sources = {
        "log": "'relation': relation('log'), 'changed_at': 'at', 'deleted_when': 'gone'",
        "ties": "'relation': relation('log_with_ties'), 'changed_at': 'at', 'tie_break_by': 'seq', 'on_tie': "
        "'greatest'",
        "snapshots": "'relation': relation('snapshots'), 'snapshot_at': 'at', 'calendar': relation('calendar')",
        "periods": "'relation': relation('periods'), 'valid_from': 'at', 'valid_to': 'until'",
    }
    attributes: dict[str, dict[str, Any]] = {
        f"c{number}": {
            "from": list(sources),
            "rule": RULES[number % 4],
            "scd_type": (2, 2, 2, 2, 0, 1, 3, 6)[number],
        }
        for number in range(8)
    }
    attributes["c6"]["changed_at"] = True
    optional = {name: name for name in ("ended_by_delete", "last_updated", "change_reason", "change_source")}
    listed = ", ".join(f"'{name}': {{{options}{window}}}" for name, options in sources.items())
    return (
        f"healing_tables.dimension(sources={{{listed}}}, key_columns='id', attributes={attributes!r}, "
        f"exists_in=['log', 'periods'], column_names={optional!r}, surrogate_key='sk', valid_from_first='1900-01-01')"
    )


def as_of(versions_per_key: str) -> str:
    return (
        "healing_tables.as_of(relation('log'), relation('periods'), 'id', 'at', {'then': 'c0'}, 'none', 'at', "
        f"'until', versions_per_key='{versions_per_key}')"
    )


CALLS = {
    "simple": "healing_tables.dimension(sources={'log': {'relation': relation('log'), 'changed_at': 'at'}}, "
    "key_columns='id', attributes=['c0', 'c1'])",
    "everything": everything(),
    "cut": everything(", 'since': '2024-01-01', 'until': '2024-06-01 12:00'"),
    "feed": "healing_tables.dimension(sources={'log': {'relation': relation('log'), 'changed_at': 'at', "
    "'deleted_when': 'gone', 'ignore_nulls': true, 'sequence_by': 'seq', 'truncated_when': \"c7 = 't'\"}}, "
    "key_columns='id', attributes={'c0': 2, 'c1': 0}, deleted_rows=true, valid_from_first={'log': 'until'})",
    "effectivity": "healing_tables.effectivity(relation('log'), 'id', 'at', ['c0'], 'seq', 'gone')",
    "unified_timeline": "healing_tables.unified_timeline({'a': relation('effectivity'), 'b': relation('effectivity')}, "
    "'id', {'c0': {'from': ['a', 'b']}})",
    "compress": "healing_tables.compress(relation('simple'), 'id', ['c0', 'c1'])",
    "as_of_many": as_of("many"),
    "as_of_few": as_of("few"),
    "changes_between": "healing_tables.changes_between(relation('periods'), 'id', '2024-01-01', '2024-02-01', 'c0', "
    "'at', 'until')",
}
