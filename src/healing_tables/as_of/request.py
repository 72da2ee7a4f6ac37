"""What `as_of` was asked, checked: one description that both ways of looking up are written from."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from healing_tables.as_of.lookup_columns import LookupColumn, Side, lookup_columns
from healing_tables.definition.options import check_choice
from healing_tables.errors import ArgumentError, Mistake, counted
from healing_tables.sql import instants
from healing_tables.sql.identifiers import quoted
from healing_tables.sql.types import common_type
from healing_tables.sql.values import in_type

FOREVER = 2**63 - 1  # the end of an open row: after every moment


@dataclass(frozen=True)
class LookUp:
    """All as SQL, moments in microseconds.

    Attributes:
        fact_keys, version_keys: the key of either side in one type; has_key: whether a fact has it all.
        at: the moment of a fact. start, until: the period of a version; an open one ends after every moment.
        is_proper: whether a version has a key and holds a moment.
        same: the operator that compares keys.
    """

    fact_keys: tuple[str, ...]
    version_keys: tuple[str, ...]
    has_key: str
    at: str
    start: str
    until: str
    is_proper: str
    same: str
    columns: tuple[LookupColumn, ...]


def look_up(
    facts: Mapping[str, str],
    dimension: Mapping[str, str],
    *,
    key_columns: Mapping[str, str] | Sequence[str] | str,
    at: str,
    columns: Mapping[str, str] | Sequence[str] | str,
    unknown: object,
    valid_from: str,
    valid_to: str,
    valid_to_current: str | dt.datetime | dt.date | None,
    versions_per_key: str | None,
    null_keys: str = "set_aside",
) -> LookUp:
    """Args: facts, dimension: columns with their types. Raises: ArgumentError with everything that is wrong."""
    mistakes: list[Mistake] = []
    fact, version = Side("facts", facts), Side("dimension", dimension)
    if versions_per_key is not None:
        check_choice("versions_per_key", versions_per_key, ("many", "few"), mistakes)
    check_choice("null_keys", null_keys, ("set_aside", "keep"), mistakes)
    moment, _ = fact.moment(at, "at", mistakes)
    start, _ = version.moment(valid_from, "valid_from", mistakes)
    end, kind = version.moment(valid_to, "valid_to", mistakes)
    limit = end_of_time(valid_to_current, kind, mistakes)
    keys = key_pairs(fact, version, key_columns, mistakes)
    brought = lookup_columns(fact, version, columns, unknown, mistakes)
    if mistakes:
        raise ArgumentError(counted("as_of", mistakes), mistakes)
    until = f"if(coalesce({end} >= {limit}L, true), {FOREVER}L, {end})"
    keeps_nulls = null_keys == "keep" and len(keys) > 1
    together = " or " if keeps_nulls else " and "
    has_key = together.join(f"{quoted(column)} is not null" for _, _, _, column in keys)
    return LookUp(
        fact_keys=tuple(key for key, _, _, _ in keys),
        version_keys=tuple(key for _, key, _, _ in keys),
        has_key=together.join(f"{quoted(column)} is not null" for _, _, column, _ in keys),
        at=moment,
        start=start,
        until=until,
        is_proper=f"({has_key}) and {start} < {until}",
        same="<=>" if keeps_nulls else "=",
        columns=brought,
    )


def end_of_time(end: Any, kind: str, mistakes: list[Mistake]) -> int:
    """The moment from which on an end is open: the open end if it is before 9999-12-31, or else FAR."""
    try:
        limit = instants.open_from(end, kind)
    except (ValueError, AttributeError):
        wanted = "a moment such as '9999-12-31 00:00:00', or None"
        mistakes.append(Mistake("valid_to_current", wanted, repr(end), "write a date, or a date and a time"))
        limit = instants.open_from(None, kind)
    return instants.FAR if limit == instants.open_from(None, kind) else limit


def key_pairs(fact: Side, version: Side, given: Any, mistakes: list[Mistake]) -> list[tuple[str, str, str, str]]:
    """Key of the facts and of the versions as SQL, then their columns."""
    names = [given] if isinstance(given, str) else given or ()
    pairs = dict(names) if isinstance(names, Mapping) else {name: name for name in names}
    if not pairs:
        mistakes.append(Mistake("key_columns", "at least one column", "none", "name the key columns"))
    keys: list[tuple[str, str, str, str]] = []
    for version_name, fact_name in pairs.items():
        in_versions = version.column(version_name, "key_columns", mistakes)
        in_facts = fact.column(fact_name, "key_columns", mistakes)
        if in_versions is None or in_facts is None:
            continue
        types = fact.types[in_facts], version.types[in_versions]
        kind = common_type(*types)
        if kind is None:
            wanted = "one type in facts and dimension"
            got = ", ".join(types)
            mistakes.append(Mistake(f"key_columns.{in_versions}", wanted, got, "cast one of the two"))
            continue
        own, other = in_type(quoted(in_facts), types[0], kind), in_type(quoted(in_versions), types[1], kind)
        keys.append((own, other, in_facts, in_versions))
    return keys
