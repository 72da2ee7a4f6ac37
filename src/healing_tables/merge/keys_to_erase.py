"""Keys that are to be erased from a dimension, as its tables have them."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession

from healing_tables.definition.spec import DimensionSpec
from healing_tables.errors import ArgumentError, Mistake, TargetError, counted
from healing_tables.merge.erased import Secret, erased_keys, keyed_hash, own_secret
from healing_tables.sql.hashing import sha256
from healing_tables.sql.identifiers import find, literal, quoted
from healing_tables.sql.instants import TIMESTAMP
from healing_tables.sql.values import JSON
from healing_tables.targets.key_map import COLUMNS as KEY_MAP_COLUMNS
from healing_tables.targets.key_map import text_of_key
from healing_tables.targets.table import DimensionTable

# <dimension>__erased: one row for each erase and readmit of a key, of which the newest counts
ERASED_COLUMNS = {
    "key_hash": "string",
    "key_columns": "string",
    "event": "string",
    "event_at": TIMESTAMP,
    "readmitted_after": TIMESTAMP,
    "secret_hash": "string",
}


class Event(NamedTuple):
    """A row of ERASED_COLUMNS."""

    key_hash: str
    key_columns: str
    event: str
    event_at: dt.datetime
    readmitted_after: dt.datetime | None
    secret_hash: str


@dataclass(frozen=True)
class KeysToErase:
    """Some keys of one dimension.

    Attributes:
        types: of the key columns, in the spelling of the dimension.
        rows: the keys, in these columns.
        hashes: keyed, sorted.
        names: as the key map has them.
    """

    types: Mapping[str, str]
    rows: DataFrame
    hashes: tuple[str, ...]
    names: tuple[str, ...]
    secret: Secret

    @classmethod
    def of(cls, given: DataFrame, table: DimensionTable[Any], spec: DimensionSpec) -> KeysToErase:
        """Args: given: with at least the key columns. Raises: ArgumentError, TargetError."""
        secret, types = own_secret(), key_types(table, spec, given.sparkSession, given.columns)
        columns = {name: quoted(find(name, given.columns) or name) for name in types}
        rows = given.selectExpr(
            *(f"try_cast({columns[name]} as {kind}) as {quoted(name)}" for name, kind in types.items())
        ).distinct()
        typed = [(quoted(name), kind) for name, kind in types.items()]
        found = rows.selectExpr(
            f"{' or '.join(f'{name} is null' for name, _ in typed)} as is_wrong",
            f"{keyed_hash(secret, sha256(typed))} as hash",
            f"{text_of_key(typed)} as name",
        ).collect()
        if not found or any(row.is_wrong for row in found):
            got = f"{sum(row.is_wrong for row in found)} without one" if found else "no keys"
            wanted = f"keys with a value for each of {', '.join(f'{name} ({kind})' for name, kind in types.items())}"
            raise ArgumentError.one("the call", "keys", wanted, got, "correct the keys")
        erased_keys(table, list(types), given.sparkSession)  # raises if these have another secret
        hashes, names = (tuple(sorted(row[name] for row in found)) for name in ("hash", "name"))
        return cls(types, rows, hashes, names, secret)

    def condition(self, columns: Iterable[str]) -> str | None:
        """Whether a row of a table with these columns has one of the keys, as SQL; None if it has no keys."""
        return condition_on(list(columns), self.types, self.secret, self.hashes, self.names)

    def events(self, table: DimensionTable[Any], event: str, after: dt.datetime | None) -> list[Event]:
        """The rows that `<dimension>__erased` lacks for this event. Args: after: of a readmit."""
        stored = table.beside("__erased").read(self.rows.sparkSession)
        rows = [] if stored is None else stored.orderBy("event_at").collect()
        newest = {row.key_hash: (row.event, row.readmitted_after) for row in rows}
        columns, now = json.dumps(list(self.types)), dt.datetime.now(dt.timezone.utc)
        return [
            Event(name, columns, event, now, after, self.secret.name)
            for name in self.hashes
            # a key that was never erased needs no readmit
            if (name in newest if event == "readmit" else newest.get(name, ("",))[0] != event)
        ]


def key_types(
    table: DimensionTable[Any], spec: DimensionSpec, spark: SparkSession, given: Sequence[str] = ()
) -> dict[str, str]:
    """The key columns of a dimension, in its spelling, with their types. Args: given: columns that must have them, too.

    Raises: ArgumentError, TargetError.
    """
    stored = table.columns_of(spark)
    if stored is None:
        raise TargetError.one("the target", table.name, "a dimension", "no table", "name the dimension")
    mistakes = [
        Mistake(what, f"the key column {key}", f"the columns {', '.join(columns)}", "correct the keys or the spec")
        for key in spec.key_columns
        for what, columns in (("keys", given), (table.name, list(stored)))
        if columns and find(key, columns) is None
    ]
    if mistakes:
        raise ArgumentError(counted("the call", mistakes), mistakes)
    names = [find(key, stored) or key for key in spec.key_columns]
    return {name: stored[name] for name in names}


def is_audit(columns: Iterable[str]) -> bool:
    return {"key", "old_values", "new_values"} <= set(columns)


def is_key_map(columns: Iterable[str]) -> bool:
    return set(columns) == set(KEY_MAP_COLUMNS)


def condition_on(
    columns: list[str], types: Mapping[str, str], secret: Secret, hashes: Iterable[str], names: Iterable[str] = ()
) -> str | None:
    """See `KeysToErase.condition`. Args: names: without them, the key map is searched for the hashes."""
    listed = ", ".join(map(literal, hashes)) or "null"
    if is_key_map(columns):
        same = f"key in ({', '.join(map(literal, names)) or 'null'})"
        return f"coalesce({same} or {keyed_hash(secret, 'sha2(key, 256)')} in ({listed}), false)"
    if is_audit(columns):
        ddl = ", ".join(f"{quoted(name)} {kind}" for name, kind in types.items())
        prefix = f"from_json(key, {literal(ddl)}, {JSON})."
        typed = [(prefix + quoted(name), kind) for name, kind in types.items()]
    else:
        found = {name: find(name, columns) for name in types}
        if None in found.values():
            return None
        typed = [(f"try_cast({quoted(found[name] or name)} as {kind})", kind) for name, kind in types.items()]
    return f"coalesce({keyed_hash(secret, sha256(typed))} in ({listed}), false)"
