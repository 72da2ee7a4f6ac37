"""The example in examples/retail: its generator, and the split into buyers and sellers."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import asdict, replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
import services
from copy_to_s3 import USER, USER_TRX
from generate_days import BRIAN, LOADS, Day, Trade, User, days
from s3 import folder_of
from split import BothSidesError, split

DAYS = list(days())
NOON = dt.datetime(2024, 1, 1, 12, tzinfo=dt.timezone.utc)
ANN = User(1, NOON, "Ann", "Lee", "ann1", "10", None, None)
TRADE = Trade(1, 2, 1, "BTC", Decimal("0.5"), Decimal("19500.01"), NOON)


def as_split(users: Iterable[User], trades: Iterable[Trade]) -> dict[str, list[dict[str, Any]]]:
    """The rows of both batches."""
    # a row of users has more than the copy has
    user_rows = [{name: value for name, value in asdict(user).items() if name in USER.names} for user in users]
    user_table = pa.Table.from_pylist(user_rows, schema=USER)
    trade_table = pa.Table.from_pylist([asdict(trade) for trade in trades], schema=USER_TRX)
    return {side: batch.to_pylist() for side, batch in split(user_table, trade_table, NOON).items()}


def all_users() -> list[User]:
    return [user for day in DAYS for user in day.users]


def all_trades() -> list[Trade]:
    return [trade for day in DAYS for trade in day.trades]


def test_the_days_are_the_same_on_every_run() -> None:
    assert list(days()) == DAYS
    assert list(days(seed=26)) != DAYS


def test_rows_arrive_between_the_load_before_and_theirs() -> None:
    assert [day.load for day in DAYS] == LOADS
    for day in DAYS:
        moments = [*(user.changed_at for user in day.users), *(trade.traded_at for trade in day.trades)]
        assert day.load - dt.timedelta(days=1) < min(moments) < max(moments) < day.load


def test_nobody_buys_and_sells() -> None:
    assert not {trade.buyer_id for trade in all_trades()} & {trade.seller_id for trade in all_trades()}


def test_brian_howell_moves_before_the_second_load() -> None:
    rows = [(day.load.day, user.address) for day in DAYS for user in day.users if user.user_id == BRIAN]
    assert rows == [(17, "573"), (18, "574")]
    assert BRIAN in {trade.buyer_id for trade in DAYS[0].trades}


def test_the_days_have_what_a_dimension_has_to_cope_with() -> None:
    def changes(day: Day, before: dict[int, User]) -> Iterable[tuple[User, User]]:
        for user in day.users:
            if user.user_id in before:
                yield before[user.user_id], user
            before[user.user_id] = user

    known: dict[int, User] = {}
    pairs = [pair for day in DAYS for pair in changes(day, known)]
    assert any(old.address is None and new.address is not None for old, new in pairs)
    assert any(old.address is not None and new.address is None for old, new in pairs)
    assert any(old.job is not None and new.job is None for old, new in pairs)
    assert any(replace(old, changed_at=new.changed_at) == new for old, new in pairs), "a user who is the same again"
    assert any(len(day.trades) > len(set(day.trades)) for day in DAYS), "a transaction that repeats"
    first_traders = {user for trade in DAYS[0].trades for user in (trade.buyer_id, trade.seller_id)}
    assert {user.user_id for user in DAYS[0].users} - first_traders, "a user whose first transaction is later"


def test_each_side_has_its_users_once_with_their_totals() -> None:
    bob = replace(ANN, user_id=2, first_name="Bob", address=None)
    idle = replace(ANN, user_id=3)
    other = replace(TRADE, trx_id=2, amount=Decimal(2), price=Decimal("1.10"))
    found = as_split([ANN, bob, idle], [TRADE, other, TRADE])
    (buyer,) = found["buyer"]
    assert (buyer["buyer_id"], buyer["first_name"], buyer["address"]) == (2, "Bob", None)
    # half of 19500.01 is 9750.005, rounded to even
    assert (buyer["trades"], buyer["total"]) == (2, Decimal("9752.20"))
    (seller,) = found["seller"]
    assert (seller["seller_id"], seller["first_name"], seller["total"]) == (1, "Ann", buyer["total"])
    assert seller["loaded_at"] == NOON


def test_users_on_both_sides_are_an_error_that_names_them() -> None:
    bob, cid = replace(ANN, user_id=2, first_name="Bob"), replace(ANN, user_id=3, first_name="Cid")
    trades = [TRADE, replace(TRADE, trx_id=2, buyer_id=1, seller_id=2), replace(TRADE, trx_id=3, buyer_id=3)]
    with pytest.raises(BothSidesError, match=r"got 2 who do both: Ann Lee \(1\), Bob Lee \(2\)\.") as caught:
        as_split([ANN, bob, cid], trades)
    assert "Cid" not in str(caught.value)


def test_the_generated_days_can_be_split() -> None:
    newest = {user.user_id: user for user in all_users()}
    found = as_split(newest.values(), all_trades())
    assert {row["buyer_id"] for row in found["buyer"]} == {trade.buyer_id for trade in all_trades()}
    assert sum(row["trades"] for row in found["seller"]) == len(set(all_trades()))


def test_without_postgres_and_root_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "find_postgres", lambda: None)
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(services.MissingProgramError, match="sudo apt-get install postgresql"):
        services.postgres_programs()


def test_a_load_needs_a_time_zone() -> None:
    assert folder_of(LOADS[0].astimezone(dt.timezone(dt.timedelta(hours=9)))) == "20221017T1200"
    with pytest.raises(ValueError, match=r"2022-10-17 12:00:00; write 2022-10-17T12:00:00\+00:00"):
        folder_of(LOADS[0].replace(tzinfo=None))
