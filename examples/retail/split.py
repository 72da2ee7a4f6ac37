"""Transactions joined with users, split into buyers and sellers: one row per user and side, as of a load.

user_trx: trx_id, buyer_id, seller_id, ...      buyer:  buyer_id, name, address, job, ..., trades, total
user:     user_id, name, address, job, ...  ->  seller: seller_id, name, address, job, ..., trades, total
"""

from __future__ import annotations

import argparse
import datetime as dt
import sys

import pyarrow as pa
import pyarrow.compute as pc
from s3 import BUCKET, first_load, folder_of, read, write

SIDES = ("buyer", "seller")
START_OF_TIME = dt.datetime(1900, 1, 1, tzinfo=dt.timezone.utc)


class BothSidesError(ValueError):
    """Users who buy and sell."""


def split(users: pa.Table, trades: pa.Table, valid_from: dt.datetime) -> dict[str, pa.Table]:
    """The batches of both sides.

    Args:
        users: user_id, first_name, last_name, pseudonym, address, job, phone.
        trades: trx_id, buyer_id, seller_id, currency_id, amount, price; rows may repeat.
        valid_from: the moment of the batches, in their column ``loaded_at``.
    Raises: BothSidesError, with the name of each user who buys and sells.
    """
    # what the stream delivered twice counts once
    trades = trades.group_by(trades.column_names).aggregate([])
    check_sides(users, trades)
    return {side: one_side(side, users, trades, valid_from) for side in SIDES}


def check_sides(users: pa.Table, trades: pa.Table) -> None:
    """Raises: BothSidesError."""
    both = pc.and_(
        pc.is_in(users["user_id"], trades["buyer_id"].combine_chunks()),
        pc.is_in(users["user_id"], trades["seller_id"].combine_chunks()),
    )
    found = users.filter(both).sort_by("user_id").to_pylist()
    if found:
        names = ", ".join(f"{user['first_name']} {user['last_name']} ({user['user_id']})" for user in found)
        raise BothSidesError(
            f"user_trx: wanted users who only buy or only sell; got {len(found)} who do both: {names}. "
            "Nothing was written. Correct their transactions, then run the split again."
        )


def one_side(side: str, users: pa.Table, trades: pa.Table, valid_from: dt.datetime) -> pa.Table:
    key = f"{side}_id"
    value = pc.multiply(trades["amount"], trades["price"])
    totals = (
        pa.table({key: trades[key], "value": pc.round(value, 2).cast(pa.decimal128(36, 2))})
        .group_by(key)
        .aggregate([("value", "sum"), ("value", "count")])
        .rename_columns({"value_sum": "total", "value_count": "trades"})
    )
    joined = users.rename_columns({"user_id": key}).join(totals, key, join_type="inner")
    joined = joined.append_column("loaded_at", pa.array([valid_from] * len(joined), pa.timestamp("us", "UTC")))
    names = [*users.rename_columns({"user_id": key}).column_names, "trades", "total", "loaded_at"]
    return (
        joined.select(names)
        .set_column(names.index("total"), "total", joined["total"].cast(pa.decimal128(20, 2)))
        .sort_by(key)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--load", required=True, type=dt.datetime.fromisoformat, help="the moment of the load")
    load = parser.parse_args().load
    raw = f"{BUCKET}/raw/{folder_of(load)}"
    # users in the first load get a history from 1900 on; all others begin at the load in which they first appear
    valid_from = START_OF_TIME if load == first_load() else load
    try:
        batches = split(read(f"{raw}/user.parquet"), read(f"{raw}/user_trx.parquet"), valid_from)
    except BothSidesError as error:
        sys.exit(str(error))
    for side, batch in batches.items():
        write(batch, f"{BUCKET}/batches/{side}.parquet")
        print(f"{side}: {len(batch)} rows, valid from {valid_from:%Y-%m-%d %H:%M}")


if __name__ == "__main__":
    main()
