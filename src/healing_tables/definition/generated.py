"""The columns of a dimension other than keys and attributes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from healing_tables.definition.options import unknown_options
from healing_tables.errors import Mistake

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
STRATEGIES = ("hash", "dbt_utils", "sequence")  # of surrogate keys


def added_name(role: str, attribute: str) -> str:
    """The default name of a column that an attribute adds. Args: role: current, previous or changed_at."""
    return f"{attribute}_changed_at" if role == "changed_at" else f"{role}_{attribute}"


def added_roles(scd_type: int, changed_at: bool) -> list[str]:
    """The columns that an attribute adds: types 3 and 6 store earlier values, ``changed_at`` a moment."""
    roles = {3: ["previous"], 6: ["current", "previous"]}.get(scd_type, [])
    return [*roles, "changed_at"] if changed_at else roles


def unknown_names(given: Mapping[str, Any], attributes: Iterable[tuple[str, int, bool]]) -> list[Mistake]:
    """Names in ``column_names`` that are no columns. Args: attributes: name, SCD type, ``changed_at``."""
    known = [
        *GENERATED,
        *[
            added_name(role, name)
            for name, scd_type, changed_at in attributes
            for role in added_roles(scd_type, changed_at)
        ],
    ]
    return [
        Mistake(
            f"column_names.{name}",
            f"one of {', '.join(known)}",
            "an unknown column",
            "correct the name",
        )
        for name in given
        if name not in known
    ]


def check_columns(values: dict[str, Any], mistakes: list[Mistake]) -> None:
    """Names of the generated columns, and the two values of each flag."""
    given = values["column_names"] or {}
    if not isinstance(given, Mapping):
        mistakes.append(Mistake("column_names", "a map", repr(given), "write {'valid_from': 'effective_from'}"))
        given = {}
    attributes = values["attributes"]
    if "*" not in attributes:  # otherwise the batch says what there is
        mistakes += unknown_names(
            given, [(name, found.scd_type, found.changed_at) for name, found in attributes.items()]
        )
    for name, wanted in given.items():
        can_be_left_out = wanted is None and name in GENERATED
        if not can_be_left_out and not (isinstance(wanted, str) and wanted):
            choice = "a name or None" if name in GENERATED else "a name"
            mistakes.append(Mistake(f"column_names.{name}", choice, repr(wanted), "correct it"))
    values["column_names"] = dict(given)
    for option in ("current_values", "deleted_values"):
        flags = values[option]
        if (
            isinstance(flags, str)
            or not isinstance(flags, Sequence)
            or len(flags) != 2
            or flags[0] == flags[1]
            or len({type(flag) for flag in flags if flag is not None}) != 1
        ):
            wanted = "two values of one type that differ, such as ['Y', 'N']"
            mistakes.append(Mistake(option, wanted, repr(flags), "correct it"))
        else:
            values[option] = tuple(flags)


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
    if strategy not in STRATEGIES:
        wanted = f"{', '.join(STRATEGIES[:-1])} or {STRATEGIES[-1]}"
        mistakes.append(Mistake("surrogate_key.strategy", wanted, repr(strategy), "choose one of them"))
    values["surrogate_key"] = {"name": key["name"], "strategy": strategy}
