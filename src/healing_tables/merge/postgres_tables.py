"""A dimension in PostgreSQL: read at one moment, written in one transaction with its history, audit and numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession

from healing_tables.definition.layout import Layout
from healing_tables.definition.spec import DimensionSpec
from healing_tables.definition.stored_layout import is_wider, wider_columns
from healing_tables.errors import ArgumentError, TargetError
from healing_tables.merge.change import Change, Reading, Written
from healing_tables.merge.postgres_ends import spec_of_table
from healing_tables.merge.tables import AUDIT, HISTORY, SET_ASIDE, DimensionTables
from healing_tables.plan.batch import key_names
from healing_tables.plan.set_aside import ROW_ID
from healing_tables.plan.stored_rows import with_wider_types
from healing_tables.sql.identifiers import find
from healing_tables.sql.identifiers import quoted as spark_name
from healing_tables.sql.instants import EPOCH, MICROSECOND, open_from
from healing_tables.targets.conflicts import StalePlan
from healing_tables.targets.key_map import numbered, version_of
from healing_tables.targets.postgres import PostgresTarget, Stamp, copy_texts, name_of, spelled
from healing_tables.targets.postgres_types import Column, postgres_type
from healing_tables.targets.table import DimensionTable, Snapshot, micro_batch_of

if TYPE_CHECKING:
    from psycopg import Connection

KEYS, PLAN = "healing_tables_keys", "healing_tables_plan"
ACTION, START = "healing_tables_action", "healing_tables_start"


@dataclass(frozen=True)
class PostgresReading(Reading):
    """Attributes: stamp: of the rows, see `PostgresTarget.stamp`."""

    is_full: bool
    stamp: Stamp


@dataclass(frozen=True)
class PostgresTables(DimensionTables[PostgresTarget]):
    """A dimension in PostgreSQL."""

    target: PostgresTarget

    def __post_init__(self) -> None:
        if isinstance(self.spec.change_log, str):
            raise ArgumentError.one(
                "the spec",
                "change_log",
                "a dimension in Delta, parquet or ORC: one in PostgreSQL has no change log",
                self.spec.change_log,
                "leave it out and merge in the order of the moments",
            )

    @classmethod
    def keeps_log(cls, layout: Layout, spec: DimensionSpec) -> bool:
        return False

    @staticmethod
    def as_rows_show(
        table: DimensionTable[PostgresTarget], snapshot: Snapshot, layout: Layout, spec: DimensionSpec
    ) -> tuple[DimensionSpec, bool]:
        assert isinstance(table, PostgresTarget)
        with table.connect() as connection:
            return spec_of_table(connection, table, layout, spec)

    @property
    def micro_batches(self) -> PostgresTarget:
        return self.target.beside("__micro_batches")

    def last_micro_batch(self, snapshot: Snapshot, mark: str) -> int | None:
        with self.target.connect() as connection:
            if self.micro_batches.columns(connection) is None:
                return None
            query = f"select number from {self.micro_batches.sql_name} where stream = {text_of(mark)}"
            row = connection.execute(query).fetchone()
        return None if row is None else int(row[0])

    def read(self, spark: SparkSession, snapshot: Snapshot | None, events: DataFrame, is_full: bool) -> Reading:
        """The rows of the dimension and of its history, at one moment."""
        if snapshot is None:
            return super().read(spark, snapshot, events, is_full)
        past = None
        with self.target.connect() as connection:
            connection.execute("set transaction isolation level repeatable read")
            if not is_full:
                self.copy_keys(connection, events)
            rows, stamp = self.target.load(spark, connection, self.touched(connection, is_full=is_full))
            if self.layout.has_history:
                past, _ = self.history.load(spark, connection, self.touched(connection, self.history, is_full=is_full))
        rows = with_wider_types(rows.localCheckpoint(), self.layout)
        return PostgresReading(rows, None if past is None else self.history_rows(past), is_full, stamp)

    def current_keys(self, snapshot: Snapshot) -> int:
        with self.target.connect() as connection:
            found = self.target.stamp(connection, self.is_alive(self.target.columns(connection) or []))
        return found[0]

    def is_alive(self, columns: Sequence[Column]) -> str:
        """Whether nothing has ended a version, as SQL; see plan/stored_rows.py."""
        names = self.layout.names
        if "valid_to" in names:
            end = EPOCH + open_from(self.spec.valid_to_current, self.layout.moment_type) * MICROSECOND
            column = spelled(columns, names["valid_to"])
            return f"coalesce(t.{name_of(column.name)} >= {text_of(end.isoformat())}::{column.type}, true)"
        if "is_current" in names:
            column = spelled(columns, names["is_current"])
            value = text_of(str(self.spec.current_values[0]))
            return f"t.{name_of(column.name)} is not distinct from {value}::{column.type}"
        return "true"

    def publish(self, change: Change, written: Written) -> None:
        spark = change.plan.sparkSession
        counts = change.counts
        has_rows = bool(counts) or change.set_aside is not None
        has_columns = bool(self.layout.new_columns) or bool(self.layout.widened)
        if not has_rows and not has_columns and change.snapshot is not None:
            return
        xid = ""
        try:
            with self.target.connect() as connection:
                row = connection.execute("select pg_current_xact_id()::text").fetchone()
                xid = str(row[0]) if row else ""
                self.write(connection, spark, change)
        except TargetError as error:
            if not xid or not self.has_committed(xid, error):
                raise
        if counts:
            written.version = int(xid)
        written.rows.update(counts)

    def has_committed(self, xid: str, error: TargetError) -> bool:
        """Whether a transaction has committed despite an error: the connection may have broken after the commit.

        Raises: TargetError if this cannot be determined.
        """
        import psycopg

        if not isinstance(error.__cause__, psycopg.OperationalError):
            return False
        try:
            with self.target.connect() as connection:
                row = connection.execute("select pg_xact_status(%s::xid8)", [xid]).fetchone()
        except TargetError:
            row = None
        if row is None or row[0] == "in progress":
            text = "the connection was lost, and it is not known whether the transaction has committed: "
            text += f"pg_xact_status('{xid}')"
            raise TargetError(text, error.mistakes, written=None) from error
        return bool(row[0] == "committed")

    def write(self, connection: Connection[Any], spark: SparkSession, change: Change) -> None:
        """All of a change, in the transaction of the connection. Raises: StalePlan"""
        plan, counts, target, reading = change.plan, change.counts, self.target, change.reading
        wanted = self.layout.columns(self.spec)
        if change.snapshot is None:
            start = [self.layout.names["valid_from"]] if "valid_from" in self.layout.names else []
            target.create_in(connection, wanted, [*(key.name for key in self.layout.keys), *start])
            if self.layout.is_sequence:
                sequence = f"alter column {name_of(self.layout.surrogate or '')}"
                connection.execute(
                    f"alter table {target.sql_name} {sequence} set not null, "
                    f"{sequence} add generated by default as identity"
                )
        target.widen(connection, self.layout.new_columns)
        columns = target.columns(connection) or []
        if self.layout.is_sequence and counts.get("insert"):
            plan = self.with_numbers(connection, columns, plan)
        beside = self.side_table_rows(plan, change.events, change.batch_id) if counts else {}
        if change.set_aside is not None:
            beside[SET_ASIDE] = change.set_aside
        self.copy_plan(connection, plan, wanted)
        if isinstance(reading, PostgresReading) and not reading.is_full:
            self.copy_keys(connection, change.events)
        for number, rows in enumerate(beside.values()):
            copy_texts(connection, rows, f"healing_tables_side_{number}")
        if isinstance(reading, PostgresReading):
            # readers are not blocked, unless types are changed; other writers wait until this transaction ends
            mode = "access exclusive" if self.layout.widened else "share row exclusive"
            connection.execute(f"lock table {target.sql_name} in {mode} mode")
            if target.stamp(connection, self.touched(connection, is_full=reading.is_full)) != reading.stamp:
                raise StalePlan
            # after the stamps were compared: PostgreSQL writes the rows again
            self.widen_types(connection)
            columns = target.columns(connection) or []
            if change.open_rows == (0, 0) and not reading.is_full:
                # there was no open row: another writer may have begun with another open end
                _, has_open_rows = spec_of_table(connection, target, self.layout, self.spec)
                if has_open_rows:
                    raise StalePlan
        self.apply(connection, columns, wanted, counts)
        for number, name in enumerate(beside):
            side = {HISTORY: self.history, AUDIT: self.audit, SET_ASIDE: self.set_aside}[name]
            if name == AUDIT:
                next_number = f"select coalesce(max(publish_no), 0) + 1 from {side.sql_name}"
                connection.execute(
                    f"update healing_tables_side_{number} set publish_no = ({next_number}), "
                    "published_at = clock_timestamp()"
                )
            self.append(connection, side, f"healing_tables_side_{number}")
        self.note_micro_batch(connection, change.merge_id)

    def widen_types(self, connection: Connection[Any]) -> None:
        """Change the types of columns of the dimension and of its history."""
        if not self.layout.widened:
            return
        self.target.change_types_in(connection, self.layout.widened)
        if self.layout.has_history:
            present = {column.name: column.spark for column in self.history.columns(connection) or []}
            wanted = self.layout.history_columns(self.spec)
            self.history.change_types_in(connection, wider_columns(wanted, present))

    def copy_keys(self, connection: Connection[Any], events: DataFrame) -> None:
        copy_texts(connection, events.select(*key_names(self.layout)).distinct(), KEYS)

    def touched(self, connection: Connection[Any], table: PostgresTarget | None = None, *, is_full: bool) -> str:
        """A condition on ``t``: its key is in the batch; a full batch has all."""
        if is_full:
            return "true"
        columns = (table or self.target).columns(connection) or []
        same = self.same_key(columns, KEYS, key_names(self.layout))
        return f"exists (select 1 from {KEYS} s where {same})"

    def same_key(self, columns: Sequence[Column], table: str, names: Sequence[str]) -> str:
        """Whether ``t`` and ``s`` have the same key. Args: names: of the keys in ``s``, as texts."""
        parts = []
        for key, name in zip(self.layout.keys, names, strict=True):
            column = spelled(columns, key.name)
            if is_wider(key.type, column.spark):  # the type of the column is to be changed
                column = replace(column, type=postgres_type(key.type))
            parts.append(f"t.{name_of(column.name)} = {column.store(f's.{name_of(name)}')}")
        return " and ".join(parts)

    @property
    def start(self) -> str | None:
        """The column that distinguishes the versions of a key."""
        has_versions = self.layout.is_versioned and not self.layout.has_history
        return self.layout.names.get("valid_from") if has_versions else None

    def copy_plan(self, connection: Connection[Any], plan: DataFrame, wanted: Mapping[str, str]) -> None:
        rows = plan.where("action in ('insert', 'close', 'update', 'remove')")
        values = [
            f"if(action = 'remove', stored.{spark_name(name)}, new.{spark_name(name)}) as {spark_name(name)}"
            for name in wanted
        ]
        start = f"stored.{spark_name(self.start)}" if self.start else "cast(null as string)"
        copy_texts(connection, rows.selectExpr(*values, f"action as {ACTION}", f"{start} as {START}"), PLAN)

    def apply(
        self,
        connection: Connection[Any],
        columns: Sequence[Column],
        wanted: Mapping[str, str],
        counts: Mapping[str, int],
    ) -> None:
        table = self.target.sql_name
        same = self.same_key(columns, PLAN, [key.name for key in self.layout.keys])
        if self.start:
            column = spelled(columns, self.start)
            stored = column.store(f"s.{START}")
            same += f" and t.{name_of(column.name)} is not distinct from {stored}"
        names = [name_of(spelled(columns, name).name) for name in wanted]
        values = [spelled(columns, name).store(f"s.{name_of(name)}") for name in wanted]
        assignments = ", ".join(f"{name} = {value}" for name, value in zip(names, values, strict=True))
        done = 0
        if "remove" in counts:
            done += connection.execute(
                f"delete from {table} t using {PLAN} s where s.{ACTION} = 'remove' and {same}"
            ).rowcount
        if {"close", "update"} & set(counts):
            done += connection.execute(
                f"update {table} t set {assignments} from {PLAN} s where s.{ACTION} in ('close', 'update') and {same}"
            ).rowcount
        if "insert" in counts:
            done += connection.execute(
                f"insert into {table} ({', '.join(names)}) select {', '.join(values)} from {PLAN} s "
                f"where s.{ACTION} = 'insert'"
            ).rowcount
        if done != sum(number for action, number in counts.items() if action not in ("archive", "absent")):
            raise StalePlan("rows of the plan are not in the table")

    def append(self, connection: Connection[Any], side: PostgresTarget, rows: str) -> None:
        """Insert rows, stored as texts in a temporary table, into a table beside the dimension.

        Of rows that are set aside, those that it has are left out.
        """
        columns = side.columns(connection) or []
        found = connection.execute(
            "select attname from pg_attribute where attrelid = %s::regclass and attnum > 0 order by attnum", [rows]
        ).fetchall()
        given = [name for (name,) in found if find(name, [column.name for column in columns])]
        names = ", ".join(name_of(spelled(columns, name).name) for name in given)
        values = ", ".join(spelled(columns, name).store(f"s.{name_of(name)}") for name in given)
        is_new = f"not exists (select 1 from {side.sql_name} t where t.{ROW_ID} = s.{ROW_ID})"
        where = f" where {is_new}" if ROW_ID in given else ""
        connection.execute(f"insert into {side.sql_name} ({names}) select {values} from {rows} s{where}")

    def with_numbers(self, connection: Connection[Any], columns: Sequence[Column], plan: DataFrame) -> DataFrame:
        """The plan with a number for each new row, from the sequence of the column: none is assigned twice."""
        column = spelled(columns, self.layout.surrogate or "")
        table = self.target.sql_name
        if not column.is_identity:
            remedy = f"alter table {table} alter column {name_of(column.name)} add generated by default as identity"
            raise self.target.error("a surrogate key with a sequence", f"{column.name} without one", remedy)
        key, start = version_of(self.layout, self.spec, "new.")
        new = plan.where("action = 'insert'").selectExpr(f"{key} as key", f"{start} as valid_from").distinct()
        number = new.count()
        sequence = f"pg_get_serial_sequence({text_of(table)}, {text_of(column.name)})"
        # one merge at a time: a number that another one takes in between would break the consecutive range
        connection.execute("select pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"numbers of {table}"])
        connection.execute(
            f"select setval({sequence}, m) from (select max({name_of(column.name)}) as m from {table}) as largest "
            f"where m > coalesce(pg_sequence_last_value({sequence}::regclass), 0)"
        )
        taken = connection.execute(
            f"select array_agg(n order by n) from (select nextval({sequence}) as n from generate_series(1, {number})) x"
        ).fetchone()
        assert taken is not None
        first, last = taken[0][0], taken[0][-1]
        if last - first + 1 != number:
            raise StalePlan("another writer has used numbers of the sequence")
        numbers = new.selectExpr(
            "key", "valid_from", f"{first - 1}L + row_number() over (order by key, valid_from) as surrogate_key"
        )
        return numbered(plan, numbers.localCheckpoint(), self.layout, self.spec).localCheckpoint()

    def note_micro_batch(self, connection: Connection[Any], merge_id: str) -> None:
        """Store the number of a micro-batch, in the transaction that writes its rows."""
        found = micro_batch_of(merge_id)
        if found is None:
            return
        connection.execute(
            f"create table if not exists {self.micro_batches.sql_name} (stream text primary key, number bigint)"
        )
        connection.execute(
            f"insert into {self.micro_batches.sql_name} as t values ({text_of(found[0])}, {found[1]}) "
            "on conflict (stream) do update set number = greatest(t.number, excluded.number)"
        )


def text_of(value: str) -> str:
    """A constant in the SQL of PostgreSQL."""
    return "'" + value.replace("'", "''") + "'"
