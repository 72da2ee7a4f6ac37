"""The tables from which keys are erased: a dimension and those beside it. One commit changes all of them."""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession

from healing_tables.definition.spec import DimensionSpec
from healing_tables.merge.keys_to_erase import ERASED_COLUMNS, Event, KeysToErase
from healing_tables.sql.identifiers import find, quoted
from healing_tables.sql.types import types_of
from healing_tables.sql.values import JSON
from healing_tables.targets.conflicts import StalePlan
from healing_tables.targets.files import FilesSnapshot, FilesTarget
from healing_tables.targets.files_commits import DATA, StoredTable
from healing_tables.targets.key_map import COLUMNS as KEY_MAP_COLUMNS
from healing_tables.targets.paths import absolute
from healing_tables.targets.postgres import PostgresTarget, copy_texts, name_of, spelled

if TYPE_CHECKING:
    from psycopg import Connection

# A condition on the rows of a table with these columns; None if it has no keys
Condition = Callable[[list[str]], str | None]
WHAT = "table of erased keys"
KEYS, TEXT = "healing_tables_keys", "healing_tables_text"


class Places(ABC):
    """These tables of one dimension."""

    @abstractmethod
    def count(self, spark: SparkSession, keys: KeysToErase) -> dict[str, int]:
        """The name of each table to the number of its rows of the keys."""

    @abstractmethod
    def remove(self, spark: SparkSession, keys: KeysToErase, events: Sequence[Event]) -> dict[str, int]:
        """Remove these rows and add the events, in one commit. Returns: as `count`.

        Raises: StalePlan if another writer has committed.
        """

    @abstractmethod
    def add_events(self, spark: SparkSession, events: Sequence[Event]) -> None: ...

    @abstractmethod
    def search(self, spark: SparkSession, condition: Condition) -> dict[str, int]:
        """The name of each table to the number of its rows, also of older states that are there, that fulfil it."""


@dataclass(frozen=True)
class PostgresPlaces(Places):
    """In PostgreSQL."""

    target: PostgresTarget
    spec: DimensionSpec

    @property
    def register(self) -> PostgresTarget:
        return self.target.beside("__erased")

    def tables(self) -> list[PostgresTarget]:
        """Those that a merge may have written, the dimension first."""
        audit = (self.spec.audit or {}).get("table")
        named = {"_history": self.spec.history, "_audit": audit, "__set_aside": None}
        beside = [
            self.target.beside(suffix) if name is None else self.target.named(name) for suffix, name in named.items()
        ]
        return [self.target, *beside]

    def count(self, spark: SparkSession, keys: KeysToErase) -> dict[str, int]:
        return self.change(keys, "select count(*) from {} t where {}", [])

    def remove(self, spark: SparkSession, keys: KeysToErase, events: Sequence[Event]) -> dict[str, int]:
        return self.change(
            keys, "with gone as (delete from {} t where {} returning 1) select count(*) from gone", events
        )

    def change(self, keys: KeysToErase, statement: str, events: Sequence[Event]) -> dict[str, int]:
        """Run a statement for each table: ``{}`` is its name, and a condition on ``t``. Returns: its numbers."""
        found = {}
        with self.target.connect() as connection:
            listed = ", ".join(map(quoted, keys.types))
            copy_texts(connection, keys.rows.selectExpr("*", f"to_json(struct({listed}), {JSON}) as {TEXT}"), KEYS)
            self.insert(connection, events)
            for table in self.tables():
                condition = self.condition(connection, table, keys.types)
                if condition is not None:
                    row = connection.execute(statement.format(table.sql_name, condition)).fetchone()
                    found[table.name] = int(row[0]) if row else 0
        return found

    @staticmethod
    def condition(connection: Connection[Any], table: PostgresTarget, types: Mapping[str, str]) -> str | None:
        columns = table.columns(connection) or []
        names = [column.name for column in columns]
        same = [f"t.key = s.{TEXT}"]
        if not {"key", "old_values", "new_values"} <= set(names):
            if any(find(name, names) is None for name in types):
                return None
            found = [(spelled(columns, name), name_of(name)) for name in types]
            same = [f"t.{name_of(column.name)} = {column.store(f's.{name}')}" for column, name in found]
        return f"exists (select 1 from {KEYS} s where {' and '.join(same)})"

    def add_events(self, spark: SparkSession, events: Sequence[Event]) -> None:
        with self.target.connect() as connection:
            self.insert(connection, events)

    def insert(self, connection: Connection[Any], events: Sequence[Event]) -> None:
        if not events:
            return
        if self.register.columns(connection) is None:
            self.register.create_in(connection, ERASED_COLUMNS)
        names, marks = ", ".join(ERASED_COLUMNS), ", ".join(["%s"] * len(ERASED_COLUMNS))
        with connection.cursor() as cursor:
            cursor.executemany(f"insert into {self.register.sql_name} ({names}) values ({marks})", events)

    def search(self, spark: SparkSession, condition: Condition) -> dict[str, int]:
        found = {}
        for table in self.tables():
            rows = table.read(spark)
            where = None if rows is None else condition(rows.columns)
            if rows is not None and where is not None:
                found[table.name] = rows.where(where).count()
        return found


@dataclass(frozen=True)
class FilesPlaces(Places):
    """In files. A new commit has the tables without these rows; older states have them until they expire."""

    target: FilesTarget

    def tables(self, spark: SparkSession) -> Iterator[tuple[str, StoredTable, DataFrame]]:
        """The tables of the newest state: name in the commit, what it holds, and its rows."""
        for part, stored in self.base(spark).tables.items():
            yield part, stored, self.target.load(spark, stored)

    def base(self, spark: SparkSession) -> Any:
        snapshot = self.target.snapshot(spark)
        if not isinstance(snapshot, FilesSnapshot):
            raise StalePlan("the dimension was dropped")
        return snapshot.commit

    def count(self, spark: SparkSession, keys: KeysToErase) -> dict[str, int]:
        return self.search_in(self.tables(spark), keys.condition)

    def remove(self, spark: SparkSession, keys: KeysToErase, events: Sequence[Event]) -> dict[str, int]:
        base, found = self.base(spark), {}
        changed = {}
        for part, stored in base.tables.items():
            rows = self.target.load(spark, stored)
            condition = keys.condition(rows.columns)
            if condition is None:
                continue
            number = rows.where(condition).count()
            found[self.name_of(part)] = number
            if number:
                kept = rows.where(f"not {condition}")
                if set(rows.columns) == set(KEY_MAP_COLUMNS):
                    kept = kept.unionByName(reserved(rows, condition))
                folder = f"{DATA}/{folder_of(stored)}/{uuid.uuid4().hex}"
                changed[part] = self.target.write(kept, folder, stored.file_format)
        self.commit(spark, base, changed, events)
        return found

    def add_events(self, spark: SparkSession, events: Sequence[Event]) -> None:
        self.commit(spark, self.base(spark), {}, events)

    def commit(
        self, spark: SparkSession, base: Any, changed: Mapping[str, StoredTable], events: Sequence[Event]
    ) -> None:
        """Args: base: the newest commit; changed: its tables with other rows."""
        register, tables = self.target.beside("__erased"), {**base.tables, **changed}
        if events:
            register.ensure(spark, ERASED_COLUMNS, ERASED_COLUMNS, WHAT)
            ddl = ", ".join(f"{name} {kind}" for name, kind in ERASED_COLUMNS.items())
            folder = f"{DATA}/erased/{uuid.uuid4().hex}"
            new = self.target.write(spark.createDataFrame(list(events), ddl), folder, register.file_format)
            present = tables.get(register.part)
            tables[register.part] = new if present is None else replace(new, folders=(*present.folders, folder))
        if tables != base.tables:
            commit = replace(base, version=base.version + 1, merge_id=str(uuid.uuid4()), tables=tables)
            self.target.commits(spark).add(commit)

    def search(self, spark: SparkSession, condition: Condition) -> dict[str, int]:
        commits = self.target.commits(spark)
        states = [commit for version in commits.versions() if (commit := commits.read(version)) is not None]
        every: dict[str, StoredTable] = {}
        for state in states:
            for part, stored in state.tables.items():
                seen = every[part].folders if part in every else ()
                every[part] = replace(stored, folders=tuple(dict.fromkeys((*seen, *stored.folders))))
        return self.search_in(
            ((part, stored, self.target.load(spark, stored)) for part, stored in every.items()), condition
        )

    def search_in(self, tables: Iterator[tuple[str, StoredTable, DataFrame]], condition: Condition) -> dict[str, int]:
        found = {}
        for part, _, rows in tables:
            where = condition(rows.columns)
            if where is not None:
                found[self.name_of(part)] = rows.where(where).count()
        return found

    def name_of(self, part: str) -> str:
        return absolute(part, self.target.path)


def reserved(numbers: DataFrame, condition: str) -> DataFrame:
    """The largest number of a key map, without its version, if that is removed: it is not given again."""
    largest = numbers.selectExpr("max(surrogate_key) as number", f"max(if({condition}, surrogate_key, null)) as gone")
    empty = [f"cast(null as {kind}) as {name}" for name, kind in types_of(numbers.schema).items()]
    values = [text if not text.endswith(" surrogate_key") else "number as surrogate_key" for text in empty]
    return largest.where("gone = number").selectExpr(*values)


def folder_of(stored: StoredTable) -> str:
    """The kind of the folders of a table, in the folder of the data."""
    first = stored.folders[0] if stored.folders else ""
    return first.split("/")[1] if first.startswith(f"{DATA}/") else "rows"
