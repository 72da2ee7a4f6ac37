"""The two tables of a look-up: their columns by name, and what facts get from the dimension."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from healing_tables.definition.options import did_you_mean
from healing_tables.errors import Mistake
from healing_tables.sql.identifiers import find, quoted
from healing_tables.sql.instants import TIMESTAMP, as_micros
from healing_tables.sql.literals import constant
from healing_tables.sql.types import MOMENTS


@dataclass(frozen=True)
class Side:
    """One of the two tables: its name in messages, and its columns with their types."""

    name: str
    types: Mapping[str, str]

    def column(self, name: object, where: str, mistakes: list[Mistake]) -> str | None:
        found = find(name, self.types) if isinstance(name, str) else None
        if found is None:
            wanted = f"a column of the {self.name}, which has {', '.join(self.types)}"
            remedy = did_you_mean(name, self.types) or "correct the name"
            mistakes.append(Mistake(where, wanted, repr(name), remedy))
        return found

    def moment(self, name: object, where: str, mistakes: list[Mistake]) -> tuple[str, str]:
        """A column with moments, as microseconds, and its type."""
        column = self.column(name, where, mistakes)
        kind = self.types[column] if column is not None else TIMESTAMP
        if kind not in MOMENTS:
            mistakes.append(Mistake(where, "a date or a timestamp", kind, "cast it"))
        return as_micros(quoted(column or ""), kind), kind


@dataclass(frozen=True)
class LookupColumn:
    """A column of the dimension that facts get: its name there, itself, its type, the unknown member as SQL."""

    name: str
    column: str
    type: str
    unknown: str


def lookup_columns(
    fact: Side, version: Side, given: Any, unknown: Any, mistakes: list[Mistake]
) -> tuple[LookupColumn, ...]:
    names = [given] if isinstance(given, str) else given or ()
    pairs = dict(names) if isinstance(names, Mapping) else None
    listed = list(pairs.items()) if pairs is not None else [(name, name) for name in names]
    if not listed:
        wanted = "at least one column of the dimension"
        mistakes.append(Mistake("columns", wanted, "none", "name the columns that the facts get"))
    taken = {name.lower() for name in fact.types}
    found: list[LookupColumn] = []
    for name, column_name in listed:
        column = version.column(column_name, "columns", mistakes)
        if str(name).lower() in taken:
            wanted, got = "a name that the result does not have yet", "a name that is taken"
            remedy = f"give it another name: columns={{'{name}_then': '{column_name}'}}"
            mistakes.append(Mistake(f"columns.{name}", wanted, got, remedy))
        taken.add(str(name).lower())
        if column is None:
            continue
        is_map = isinstance(unknown, Mapping)
        value = unknown.get(name) if is_map else unknown
        where = f"unknown.{name}" if is_map else f"unknown for {name}"
        kind = version.types[column]
        found.append(LookupColumn(name, column, kind, constant(value, kind, where, mistakes)))
    if isinstance(unknown, Mapping):
        wanted = f"one of {', '.join(str(name) for name, _ in listed)}"
        mistakes += [
            Mistake(f"unknown.{name}", wanted, "another name", "correct or remove it")
            for name in unknown
            if name not in [name for name, _ in listed]
        ]
    return tuple(found)
