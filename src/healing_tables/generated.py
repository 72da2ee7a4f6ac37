"""The columns that a dimension has beside keys and attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from healing_tables.errors import Mistake
from healing_tables.options import unknown_options

# Generated columns in the order of the table; the value says whether one is there without being asked for.
GENERATED = {
    "valid_from": True,
    "valid_to": True,
    "is_current": True,
    "version": True,
    "compressed_row_count": False,
    "ended_by_delete": False,
    "last_updated": False,
    "change_reason": False,
    "change_source": False,
    "key_hash": True,
    "row_hash": True,
}


def check_columns(values: dict[str, Any], mistakes: list[Mistake]) -> None:
    """Names of the generated columns, and the two values of the flag."""
    given = values["column_names"] or {}
    if not isinstance(given, Mapping):
        mistakes.append(
            Mistake("column_names", "a map", repr(given), "write {'valid_from': 'effective_from'}")
        )
        given = {}
    for name, wanted in given.items():
        if name not in GENERATED:
            known = ", ".join(GENERATED)
            mistakes.append(
                Mistake(
                    f"column_names.{name}",
                    f"one of {known}",
                    "an unknown column",
                    "correct the name",
                )
            )
        elif wanted is not None and not (isinstance(wanted, str) and wanted):
            mistakes.append(
                Mistake(f"column_names.{name}", "a name or None", repr(wanted), "correct it")
            )
    values["column_names"] = dict(given)
    flags = values["current_values"]
    if (
        isinstance(flags, str)
        or not isinstance(flags, Sequence)
        or len(flags) != 2
        or flags[0] == flags[1]
    ):
        mistakes.append(
            Mistake(
                "current_values",
                "two values that differ, such as ['Y', 'N']",
                repr(flags),
                "correct it",
            )
        )
    else:
        values["current_values"] = tuple(flags)


def check_surrogate_key(values: dict[str, Any], mistakes: list[Mistake]) -> None:
    key = values["surrogate_key"]
    if key is None:
        return
    if isinstance(key, str):
        key = {"name": key}
    if not isinstance(key, Mapping) or not isinstance(key.get("name"), str) or not key.get("name"):
        mistakes.append(
            Mistake(
                "surrogate_key",
                "a map with a name",
                repr(key),
                "write {'name': 'customer_key', 'strategy': 'hash'}",
            )
        )
        return
    mistakes += unknown_options("surrogate_key.", key, ("name", "strategy"))
    strategy = key.get("strategy", "hash")
    if strategy not in ("hash", "sequence"):
        mistakes.append(
            Mistake(
                "surrogate_key.strategy", "hash or sequence", repr(strategy), "choose one of them"
            )
        )
    values["surrogate_key"] = {"name": key["name"], "strategy": strategy}
