"""Step 0: a day's users and trades arrive in PostgreSQL, which has the newest state of each user, and in an archive.

PostgreSQL and S3 are those of the environment. The archive, a folder of S3 for each load, has every state.
"""

from __future__ import annotations

import argparse
import datetime as dt
from dataclasses import asdict, astuple

import psycopg
import pyarrow as pa
from copy_to_s3 import USER, USER_TRX
from generate_days import Day, User, days
from s3 import BUCKET, folder_of, store, write

TABLES = """
create schema if not exists retail;
create table if not exists retail."user" (
    user_id bigint primary key, changed_at timestamptz not null, first_name text not null, last_name text not null,
    pseudonym text not null, address text, job text, phone text
);
-- no primary key: the stream may deliver a transaction twice
create table if not exists retail.user_trx (
    trx_id bigint not null, buyer_id bigint not null references retail."user",
    seller_id bigint not null references retail."user", currency_id text not null,
    amount numeric(16, 8) not null, price numeric(14, 2) not null, traded_at timestamptz not null
);
"""
INSERT_TRADE = "insert into retail.user_trx values (%s, %s, %s, %s, %s, %s, %s)"
COLUMNS = list(User.__dataclass_fields__)
UPSERT_USER = f"""
insert into retail."user" ({", ".join(COLUMNS)}) values ({", ".join(["%s"] * len(COLUMNS))})
on conflict (user_id) do update set {", ".join(f"{name} = excluded.{name}" for name in COLUMNS[1:])}
"""
USER_STATE = USER.append(pa.field("changed_at", pa.timestamp("us", "UTC")))


def deliver(day: Day) -> None:
    """Makes the tables on the first day."""
    with psycopg.connect() as connection:
        connection.execute(TABLES)
        with connection.cursor() as cursor:
            cursor.executemany(UPSERT_USER, [astuple(user) for user in day.users])
            cursor.executemany(INSERT_TRADE, [astuple(trade) for trade in day.trades])


def archive(day: Day) -> None:
    store().create_dir(BUCKET)
    folder = f"{BUCKET}/stream/{folder_of(day.load)}"
    write(pa.Table.from_pylist([asdict(user) for user in day.users], schema=USER_STATE), f"{folder}/user.parquet")
    write(pa.Table.from_pylist([asdict(trade) for trade in day.trades], schema=USER_TRX), f"{folder}/user_trx.parquet")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--load", required=True, type=dt.datetime.fromisoformat, help="the day that ends with it")
    load = parser.parse_args().load
    for day in days():
        if day.load == load:
            deliver(day)
            archive(day)
            print(f"stream: {len(day.users)} states of users, {len(day.trades)} trades until {load:%Y-%m-%d %H:%M}")


if __name__ == "__main__":
    main()
