"""Users and their trades, day by day: the same rows on every run.

Users with an even number only buy, users with an odd number only sell. Between two loads, some move, some change
their job, some change twice or change back, values go from and to NULL, new users register, and the stream delivers
some trades twice.
"""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal

LOADS = [dt.datetime(2022, 10, day, 12, tzinfo=dt.timezone.utc) for day in (17, 18, 19)]
DAY = dt.timedelta(days=1)
BRIAN = 0
FIRST_NAMES = ["Ada", "Bob", "Chen", "Dora", "Emil", "Fatima", "Goran", "Hana", "Ivo", "Jana"]
LAST_NAMES = ["Adams", "Baker", "Cole", "Dune", "Evans", "Fisher", "Grant", "Hill", "Irwin", "Jones"]
JOBS = ["teacher", "nurse", "carpenter", "engineer", "driver", "cook", None]
PRICES = {"BTC": 19_500, "ETH": 1_320, "ADA": 1, "LTC": 51}


@dataclass(frozen=True)
class User:
    """A user from ``changed_at`` on."""

    user_id: int
    changed_at: dt.datetime
    first_name: str
    last_name: str
    pseudonym: str
    address: str | None
    job: str | None
    phone: str | None


@dataclass(frozen=True)
class Trade:
    """``amount`` of a currency, at a price in dollars for each."""

    trx_id: int
    buyer_id: int
    seller_id: int
    currency_id: str
    amount: Decimal
    price: Decimal
    traded_at: dt.datetime


@dataclass(frozen=True)
class Day:
    """What the stream delivers until ``load``, in the order of time."""

    load: dt.datetime
    users: list[User]
    trades: list[Trade]


def days(users: int = 60, trades: int = 120, seed: int = 25) -> Iterator[Day]:
    """The days before the loads. Args: users: before the first load; trades: of each day, without those that repeat."""
    chance = random.Random(seed)
    known: dict[int, User] = {}
    for number, load in enumerate(LOADS):
        registered = registrations(chance, load, range(len(known), users + 6 * number))
        changed = [] if number == 0 else changes(chance, load, known, number)
        for user in sorted([*registered, *changed], key=lambda user: user.changed_at):
            known[user.user_id] = user
        # the last two users wait until the last day
        active = [user for user in known if number == len(LOADS) - 1 or user < users - 2 or user >= users]
        made = list(trades_of(chance, load, active, range(number * trades, (number + 1) * trades)))
        repeated = chance.sample(made, 5)
        yield Day(
            load,
            sorted([*registered, *changed], key=lambda user: user.changed_at),
            sorted([*made, *repeated], key=lambda trade: trade.traded_at),
        )


def registrations(chance: random.Random, load: dt.datetime, numbers: range) -> list[User]:
    found = []
    for number in numbers:
        first, last = chance.choice(FIRST_NAMES), chance.choice(LAST_NAMES)
        at = load - DAY + dt.timedelta(minutes=1 + chance.randrange(30))
        address = None if number % 13 == 5 else str(chance.randrange(100, 999))
        phone = f"555-{chance.randrange(10_000):04}"
        user = User(number, at, first, last, f"{first.lower()}{number}", address, chance.choice(JOBS), phone)
        if number == BRIAN:
            user = replace(user, first_name="Brian", last_name="Howell", pseudonym="brian0", address="573")
        found.append(user)
    return found


def changes(chance: random.Random, load: dt.datetime, known: dict[int, User], number: int) -> list[User]:
    """Of users who registered before: one kind of change for each, some users have none."""
    found = []
    for user in known.values():
        at = load - DAY + dt.timedelta(minutes=60 + chance.randrange(600))
        later = at + dt.timedelta(hours=1)
        moved = replace(user, changed_at=at, address=str(chance.randrange(1000, 2000)))
        if user.user_id == BRIAN:
            if number == 1:
                found.append(replace(user, changed_at=at, address="574"))
            continue
        kind = chance.randrange(12)
        if kind == 0:
            found.append(moved)
        elif kind == 1:  # to NULL, or from NULL
            found.append(replace(moved, address=None) if user.address is not None else moved)
        elif kind == 2:  # twice in a day: a load sees the second
            found += [moved, replace(moved, changed_at=later, job="pilot")]
        elif kind == 3:  # and back again: a load sees nothing
            found += [moved, replace(user, changed_at=later)]
        elif kind == 4:
            found.append(replace(user, changed_at=at, job=None if user.job is not None else "baker"))
        elif kind == 5:  # no new version
            found.append(replace(user, changed_at=at, phone=f"555-{chance.randrange(10_000):04}"))
        elif kind == 6:  # the same again
            found.append(replace(user, changed_at=at))
    return found


def trades_of(chance: random.Random, load: dt.datetime, active: list[int], numbers: range) -> Iterator[Trade]:
    buyers = [user for user in active if user % 2 == 0]
    sellers = [user for user in active if user % 2 == 1]
    for number in numbers:
        currency = chance.choice(list(PRICES))
        # each user of the first round trades, so that Brian Howell does
        place = number - numbers.start
        buyer = buyers[place] if place < len(buyers) else chance.choice(buyers)
        seller = sellers[place] if place < len(sellers) else chance.choice(sellers)
        amount = Decimal(chance.randrange(1, 10**9)).scaleb(-8)
        price = (PRICES[currency] * Decimal(chance.randrange(90, 110)) / 100).quantize(Decimal("0.01"))
        at = load - DAY + dt.timedelta(hours=12, seconds=chance.randrange(11 * 3600))
        yield Trade(number, buyer, seller, currency, amount, price, at)
