"""Erase keys from a dimension in PostgreSQL or in files. Of tables in Spark, the operation `erase` of dbt does it.

All tables of the dimension change in one commit, which adds a keyed hash of each key to ``<dimension>__erased``: merges
leave these keys out (erased.py, docs/decisions/0058-erased-keys.md).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from healing_tables.definition.spec import DimensionSpec
from healing_tables.errors import ArgumentError, rows_text
from healing_tables.merge.erased import AFTER, HASH, erased_keys
from healing_tables.merge.erased_in_files import FilesPlaces
from healing_tables.merge.erased_in_postgres import PostgresPlaces
from healing_tables.merge.erased_places import Places
from healing_tables.merge.frames import active_session, spark_frame
from healing_tables.merge.keys_to_erase import Event, KeysToErase, condition_on, key_types
from healing_tables.sql.instants import EPOCH, MICROSECOND, micros
from healing_tables.targets.files import FilesTarget
from healing_tables.targets.postgres import PostgresTarget
from healing_tables.targets.retry import retrying

Target = FilesTarget | PostgresTarget


@dataclass(frozen=True)
class Erasure:
    """What an erasure removes.

    Attributes:
        rows: the name of each table to the number of its rows of these keys.
        hashes: the keyed hashes of the keys, sorted.
        is_done: False: nothing was written.
    """

    rows: Mapping[str, int]
    hashes: tuple[str, ...]
    is_done: bool

    def __str__(self) -> str:
        found = ", ".join(f"{rows_text(number)} in {name}" for name, number in self.rows.items() if number)
        return f"{'erased' if self.is_done else 'to erase'}: {found or 'no rows'}"


def erase(keys: Any, target: Target, spec: DimensionSpec, *, run: bool = False) -> Erasure:
    """Remove every row of some keys from a dimension, its history, audit, change log, key map and the rows set aside.

    No merge brings them back: a keyed hash of each key stays, made with the secret in the environment variable
    HEALING_TABLES_SECRET. Do not merge into the dimension at the same time.
    Args:
        keys: a DataFrame with the key columns; of Spark, or of another kind as for `merge`.
        spec: the definition that merges use.
        run: False: nothing is written.
    Raises: ArgumentError, TargetError, ConflictError.
    """
    places, found = places_of(target, spec), KeysToErase.of(spark_frame(keys), target, spec)
    spark, rows = found.rows.sparkSession, dict[str, int]()
    if not run:
        return Erasure(places.count(spark, found), found.hashes, False)

    def attempt() -> None:
        rows.update(places.remove(spark, found, found.events(target, "erase", None)))

    retrying(target.name, attempt)
    return Erasure(rows, found.hashes, True)


def readmit(keys: Any, target: Target, spec: DimensionSpec, after: dt.datetime | dt.date | str) -> int:
    """Let rows of erased keys in again whose moments are after another one.

    Args: keys, spec: as of `erase`; after: in UTC unless it has an offset.
    Returns: the number of keys whose state changes.
    Raises: as `erase`.
    """
    places, found = places_of(target, spec), KeysToErase.of(spark_frame(keys), target, spec)
    moment, events = EPOCH + micros(after) * MICROSECOND, list[Event]()

    def attempt() -> None:
        events[:] = found.events(target, "readmit", moment)
        places.add_events(found.rows.sparkSession, events)

    retrying(target.name, attempt)
    return len(events)


def erased(target: Target, spec: DimensionSpec) -> dict[str, int]:
    """The name of each table of a dimension to the number of its rows of erased keys, by their hashes.

    Of files, with the rows of older states that are still there. Keys that were readmitted do not count.
    Raises: as `erase`.
    """
    places, spark = places_of(target, spec), active_session("the session")
    found = erased_keys(target, spec.key_columns, spark)
    if found is None:
        return {}
    newest, secret = found
    hashes = [row[0] for row in newest.where(f"{AFTER} is null").select(HASH).collect()]
    types = key_types(target, spec, spark)
    return places.search(spark, lambda columns: condition_on(columns, types, secret, hashes))


def places_of(target: Target, spec: DimensionSpec) -> Places:
    """Raises: ArgumentError for a table in Spark."""
    if isinstance(target, PostgresTarget):
        return PostgresPlaces(target, spec)
    if isinstance(target, FilesTarget):
        return FilesPlaces(target)
    raise ArgumentError.one(
        "the call",
        "target",
        "a PostgresTarget or a FilesTarget",
        repr(target),
        "for a table in Spark, use the operation of dbt: dbt run-operation healing_tables.erase",
    )
