"""A table in PostgreSQL: its columns, its rows as a DataFrame, and the writing of rows.

psycopg connects to the server; the JVM needs no driver. Rows are transferred through this process as text
(postgres_types.py): the stored rows of the keys in a batch, and the rows that change.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession

from healing_tables.errors import TargetError
from healing_tables.sql.arrow import arrow_frame
from healing_tables.sql.identifiers import find
from healing_tables.sql.identifiers import quoted as spark_name
from healing_tables.sql.types import types_of
from healing_tables.targets.conflicts import StalePlan
from healing_tables.targets.naming import bad_name
from healing_tables.targets.postgres_types import Column, postgres_type, written
from healing_tables.targets.table import DimensionTable, SideTable, Snapshot

if TYPE_CHECKING:
    import pyarrow as pa
    from psycopg import Connection

PART = re.compile(r'"(?:[^"]|"")+"|\w+')
NAME = re.compile(rf"(?:{PART.pattern})(?:\.(?:{PART.pattern}))?")
ROWS_AT_ONCE = 50_000
# The number of some rows, and the sum of their hashes
Stamp = tuple[int, int]
# A hash that changes whenever the row is written
STAMP = "hashtextextended(t.ctid::text || ' ' || t.xmin::text, 0)"
SESSION = "set time zone 'UTC'; set datestyle = 'ISO'; set intervalstyle = 'iso_8601'; set extra_float_digits = 1"


@dataclass(frozen=True)
class PostgresTarget(DimensionTable["PostgresTarget"], SideTable):
    """A table in PostgreSQL, by name (``schema.table``; parts in double quotes keep their case).

    Args:
        connection: a URL (``postgresql://user@host:5432/database``), or a map with the names of libpq: host, port,
            dbname, user and so on. Other settings are read from the environment: PGPASSWORD, PGHOST, ~/.pgpass ...
    Raises: ArgumentError for a wrong name.
    """

    name: str
    connection: str | Mapping[str, Any] = field(default="", repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not NAME.fullmatch(self.name.strip()):
            raise bad_name(self.name, "a table of PostgreSQL such as 'schema.table' or '\"My Schema\".\"Table\"'")

    @property
    def parts(self) -> list[str]:
        found = PART.findall(self.name.strip())
        return [part[1:-1].replace('""', '"') if part[0] == '"' else part.lower() for part in found]

    @property
    def sql_name(self) -> str:
        return ".".join(map(name_of, self.parts))

    def named(self, name: str) -> PostgresTarget:
        """Another table, of this kind; in the schema of this one if its name has none."""
        other = replace(self, name=name)
        if len(other.parts) == 1 and len(self.parts) == 2:
            other = replace(self, name=f"{name_of(self.parts[0])}.{name}")
        return other

    def beside(self, suffix: str) -> PostgresTarget:
        """A table next to this one: the name with a suffix."""
        return replace(self, name=".".join(map(name_of, [*self.parts[:-1], self.parts[-1] + suffix])))

    def full_name(self, spark: SparkSession) -> str:
        """The name with its schema, without quotes."""
        if len(self.parts) == 2:
            return ".".join(self.parts)
        with self.connect() as connection:
            row = connection.execute("select current_schema()").fetchone()
        return f"{row[0] if row else 'public'}.{self.parts[0]}"

    @contextmanager
    def connect(self) -> Iterator[Connection[Any]]:
        """A connection, with one transaction that is committed at the end, or else rolled back.

        Raises: TargetError if the server cannot be reached or refuses a statement; StalePlan if another writer has
        committed first.
        """
        try:
            import psycopg
            from psycopg.conninfo import make_conninfo
        except ImportError as error:
            raise self.error("psycopg", "it is not installed", "pip install 'psycopg[binary]'") from error
        given = self.connection
        try:
            conninfo = make_conninfo(given) if isinstance(given, str) else make_conninfo("", **given)
            opened = psycopg.connect(conninfo, application_name="healing-tables")
        except psycopg.Error as error:
            remedy = "check the connection; secrets come from the environment: PGPASSWORD, or ~/.pgpass"
            raise self.error("a server of PostgreSQL", first_line(error), remedy) from error
        with self.named_errors(), opened as connection:
            connection.execute(SESSION)
            yield connection

    @contextmanager
    def named_errors(self) -> Iterator[None]:
        """Raises: StalePlan if another writer has committed first; TargetError if the server refuses a statement."""
        import psycopg
        from psycopg import errors

        faster = (
            errors.SerializationFailure,
            errors.DeadlockDetected,
            errors.LockNotAvailable,
            errors.DuplicateTable,
            errors.DuplicateColumn,
            errors.UndefinedTable,
        )
        try:
            yield
        except faster as error:
            raise StalePlan(first_line(error)) from error
        except psycopg.Error as error:
            if isinstance(error, errors.UniqueViolation) and "pg_type_typname" in str(error):
                raise StalePlan("another writer is creating the table") from error
            raise self.error(
                "a table that accepts the rows", first_line(error), "change the table or the batch"
            ) from error

    def error(self, wanted: str, got: str, remedy: str) -> TargetError:
        return TargetError.one("the target", self.name, wanted, got, remedy)

    def columns(self, connection: Connection[Any]) -> list[Column] | None:
        """In their order; None if there is no table. Raises: TargetError for a view, or another kind of relation."""
        kind = connection.execute(
            "select relkind::text from pg_class where oid = to_regclass(%s)", [self.sql_name]
        ).fetchone()
        if kind is None:
            return None
        if kind[0] not in ("r", "p"):
            raise self.error("a table", "a view, or another relation that is not a table", "name its table")
        rows = connection.execute(
            "select attname, format_type(atttypid, atttypmod), "
            "attidentity <> '' or pg_get_serial_sequence(%s, attname) is not null, "
            "attidentity = 'a' or attgenerated <> '' "
            "from pg_attribute where attrelid = to_regclass(%s) and attnum > 0 and not attisdropped order by attnum",
            [self.sql_name, self.sql_name],
        ).fetchall()
        return [Column(*row) for row in rows]

    def load(self, spark: SparkSession, connection: Connection[Any], where: str = "true") -> tuple[DataFrame, Stamp]:
        """Rows of the table, called ``t`` in the condition, and their stamp. Raises: StalePlan if it was dropped."""
        columns = self.columns(connection)
        if columns is None:
            raise StalePlan("the table was dropped")
        texts = [column.read(f"t.{name_of(column.name)}") for column in columns]
        query = f"select {', '.join([*texts, STAMP])} from {self.sql_name} t where {where}"
        batches, number, total = [], 0, 0
        for rows in fetched(connection, query):
            number, total = number + len(rows), total + sum(row[-1] for row in rows)
            batches.append(text_batch(rows, len(columns)))
        return frame(spark, columns, batches), (number, total)

    def stamp(self, connection: Connection[Any], where: str = "true") -> Stamp:
        """The stamp of these rows; `load` returns the same one."""
        found = connection.execute(
            f"select count(*), coalesce(sum({STAMP}), 0) from {self.sql_name} t where {where}"
        ).fetchone()
        assert found is not None
        return int(found[0]), int(found[1])

    def read(self, spark: SparkSession) -> DataFrame | None:
        with self.connect() as connection:
            return None if self.columns(connection) is None else self.load(spark, connection)[0]

    def rows(self, spark: SparkSession, version: int | None = None) -> DataFrame:
        with self.connect() as connection:
            return self.load(spark, connection)[0]

    def version(self, spark: SparkSession) -> int:
        """PostgreSQL counts no versions of a table."""
        return 0

    def snapshot(self, spark: SparkSession) -> Snapshot | None:
        """The columns of the table, without its rows: those that a merge needs are read later, at one moment."""
        with self.connect() as connection:
            columns = self.columns(connection)
            table_id = self.table_id(connection)
        if columns is None:
            return None
        return Snapshot(table_id, 0, frame(spark, columns, []), {}, (), computed=computed(columns))

    def table_id(self, connection: Connection[Any]) -> str:
        """The number that the server has given the table; empty if there is none."""
        row = connection.execute("select coalesce(to_regclass(%s)::oid::text, '')", [self.sql_name]).fetchone()
        return str(row[0]) if row else ""

    def is_still(self, spark: SparkSession, table_id: str) -> bool:
        with self.connect() as connection:
            return self.table_id(connection) == table_id

    def columns_of(self, spark: SparkSession) -> dict[str, str] | None:
        with self.connect() as connection:
            columns = self.columns(connection)
        return None if columns is None else {column.name: column.spark for column in columns}

    def create(
        self, spark: SparkSession, columns: Mapping[str, str], own_properties: Mapping[str, str] | None = None
    ) -> None:
        with self.connect() as connection:
            if self.columns(connection) is None:
                self.create_in(connection, columns)

    def create_in(self, connection: Connection[Any], columns: Mapping[str, str], key: Sequence[str] = ()) -> None:
        """Create the table, in the transaction of the connection. Args: columns: with the types of Spark; key: of an
        index."""
        listed = ", ".join(f"{name_of(name)} {postgres_type(kind)}" for name, kind in columns.items())
        connection.execute(f"create table {self.sql_name} ({listed})")
        if key:
            connection.execute(f"create index on {self.sql_name} ({', '.join(map(name_of, key))})")

    def add_columns(self, spark: SparkSession, columns: Sequence[tuple[str, str]]) -> None:
        """Args: columns: names and types of Spark."""
        with self.connect() as connection:
            self.widen(connection, columns)

    def widen(self, connection: Connection[Any], columns: Sequence[tuple[str, str]]) -> None:
        for name, kind in columns:
            connection.execute(f"alter table {self.sql_name} add column {name_of(name)} {postgres_type(kind)}")

    def computed_columns(self, spark: SparkSession) -> dict[str, bool]:
        with self.connect() as connection:
            return computed(self.columns(connection) or [])

    def can_widen(self, spark: SparkSession, stored: str, given: str) -> bool:
        return True

    def change_types(self, spark: SparkSession, columns: Sequence[tuple[str, str]]) -> None:
        """Args: columns: names and their new types of Spark."""
        with self.connect() as connection:
            self.change_types_in(connection, columns)

    def change_types_in(self, connection: Connection[Any], columns: Sequence[tuple[str, str]]) -> None:
        """The same, in the transaction of the connection."""
        present = self.columns(connection) or []
        for name, kind in columns:
            column = name_of(spelled(present, name).name)
            connection.execute(f"alter table {self.sql_name} alter column {column} type {postgres_type(kind)}")

    def table_property(self, spark: SparkSession, name: str) -> str | None:
        """PostgreSQL has none."""
        return None

    def set_property(self, spark: SparkSession, name: str, value: str) -> None:
        raise self.error("a table with properties", "a table in PostgreSQL", "leave change_log out")


def computed(columns: Sequence[Column]) -> dict[str, bool]:
    """See `Table.computed_columns`."""
    return {column.name: not column.is_always for column in columns if column.is_identity or column.is_always}


def name_of(name: str) -> str:
    """A name in the SQL of PostgreSQL."""
    return '"' + name.replace('"', '""') + '"'


def first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def fetched(connection: Connection[Any], query: str) -> Iterator[list[tuple[Any, ...]]]:
    """The rows of a query in chunks."""
    with connection.cursor(name="healing_tables") as cursor:
        cursor.execute(query)
        while rows := cursor.fetchmany(ROWS_AT_ONCE):
            yield rows


def text_batch(rows: Sequence[Sequence[str | None]], columns: int) -> pa.RecordBatch:
    """The first columns of rows, which are texts."""
    import pyarrow as pa

    values = [pa.array([row[position] for row in rows], pa.string()) for position in range(columns)]
    return pa.record_batch(values, schema=text_schema(columns))


def text_schema(columns: int) -> pa.Schema:
    import pyarrow as pa

    return pa.schema([(f"c{number}", pa.string()) for number in range(columns)])


def frame(spark: SparkSession, columns: Sequence[Column], batches: Sequence[pa.RecordBatch]) -> DataFrame:
    """Texts of `Column.read` as a DataFrame in the types of Spark."""
    import pyarrow as pa

    texts = arrow_frame(spark, pa.Table.from_batches(batches, schema=text_schema(len(columns))))
    return texts.selectExpr(
        *(f"{column.from_read(f'c{n}')} as {spark_name(column.name)}" for n, column in enumerate(columns))
    )


def copy_texts(connection: Connection[Any], rows: DataFrame, name: str) -> None:
    """Copy rows as texts to a temporary table, which is dropped at the commit. Args: name: of the table."""
    kinds = types_of(rows.schema)
    listed = ", ".join(f"{name_of(column)} text" for column in kinds)
    connection.execute(f"create temporary table {name} ({listed}) on commit drop")
    texts = rows.selectExpr(
        *(f"{written(spark_name(column), kind)} as {spark_name(column)}" for column, kind in kinds.items())
    )
    with connection.cursor() as cursor, cursor.copy(f"copy {name} from stdin") as copy:
        for row in texts.toLocalIterator(prefetchPartitions=True):
            copy.write_row(tuple(row))
    connection.execute(f"analyze {name}")


def spelled(columns: Sequence[Column], name: str) -> Column:
    """The stored column of that name, whatever its case."""
    found = find(name, [column.name for column in columns])
    return next(column for column in columns if column.name == found)
