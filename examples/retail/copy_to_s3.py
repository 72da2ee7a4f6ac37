"""The nightly copy of user and user_trx from PostgreSQL to S3, both as of one moment. Airbyte would have this place.

The connection to PostgreSQL comes from libpq's variables: PGHOST, PGPORT, PGDATABASE, PGUSER, PGPASSWORD.
"""

from __future__ import annotations

import argparse
import datetime as dt

import psycopg
import pyarrow as pa
from psycopg import sql
from s3 import BUCKET, folder_of, store, write

USER = pa.schema(
    [
        ("user_id", pa.int64()),
        *[(name, pa.string()) for name in ("first_name", "last_name", "pseudonym", "address", "job", "phone")],
    ]
)
USER_TRX = pa.schema(
    [
        ("trx_id", pa.int64()),
        ("buyer_id", pa.int64()),
        ("seller_id", pa.int64()),
        ("currency_id", pa.string()),
        ("amount", pa.decimal128(16, 8)),
        ("price", pa.decimal128(14, 2)),
        ("traded_at", pa.timestamp("us", "UTC")),
    ]
)
TABLES = {"user": USER, "user_trx": USER_TRX}


def copy(load: dt.datetime) -> dict[str, int]:
    """The number of rows of each table. Args: load: the moment of the load, of which the folder has the name."""
    store().create_dir(BUCKET)
    copied = {}
    with psycopg.connect() as connection:
        # one moment for both tables, so that each transaction finds its users
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.read_only = True
        for name, schema in TABLES.items():
            rows = read_table(connection, name, schema)
            write(rows, f"{BUCKET}/raw/{folder_of(load)}/{name}.parquet")
            copied[name] = len(rows)
    return copied


def read_table(connection: psycopg.Connection, name: str, schema: pa.Schema) -> pa.Table:
    columns = sql.SQL(", ").join(map(sql.Identifier, schema.names))
    rows = connection.execute(sql.SQL("select {} from retail.{}").format(columns, sql.Identifier(name))).fetchall()
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema=schema)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--load", required=True, type=dt.datetime.fromisoformat, help="the moment of the load")
    for name, rows in copy(parser.parse_args().load).items():
        print(f"{name}: {rows} rows copied")


if __name__ == "__main__":
    main()
