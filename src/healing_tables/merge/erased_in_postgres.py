"""Keys are erased from a dimension in PostgreSQL, in one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession

from healing_tables.definition.spec import DimensionSpec
from healing_tables.merge.erased_places import Condition, Places
from healing_tables.merge.keys_to_erase import ERASED_COLUMNS, Event, KeysToErase, is_audit
from healing_tables.sql.identifiers import find, quoted
from healing_tables.sql.values import JSON
from healing_tables.targets.postgres import PostgresTarget, copy_texts, name_of, spelled

if TYPE_CHECKING:
    from psycopg import Connection

KEYS, TEXT = "healing_tables_keys", "healing_tables_text"


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
        if not is_audit(names):
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
