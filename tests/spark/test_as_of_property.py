"""Random facts and versions: what they get is what a look-up in plain Python finds, in both languages and both ways.

Moments lie on, just before and just after boundaries; versions touch, leave gaps, overlap and repeat.
"""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from decimal import Decimal
from typing import Any

import pytest
from rendered import Rendered
from test_as_of import WAYS, model, table

from healing_tables import as_of

pytestmark = pytest.mark.slow

SEEDS = range(12)  # each kind of key, and more
ZONE = "spark.sql.session.timeZone"
UTC = dt.timezone.utc
MOMENTS = ("date", "timestamp", "timestamp_ntz")
# type in the facts, type in the dimension, and the keys of either
KEYS: tuple[tuple[str, str, list[Any], list[Any]], ...] = (
    ("int", "bigint", [1, 2, None], [1, 2, 3, None]),
    ("string", "string", ["a", "A", "a ", None], ["a", "A", "", None]),
    ("int", "string", [1, 42, None], ["1", "042", "42"]),
    ("int", "decimal(8,2)", [1, 2], [Decimal("1.00"), Decimal("2.50")]),
    ("double", "double", [0.0, -0.0, 1.5], [-0.0, 1.5, None]),
    ("date", "date", [dt.date(2024, 3, 10), None], [dt.date(2024, 3, 10)]),
)
STEPS = [dt.timedelta(0), dt.timedelta(microseconds=1), -dt.timedelta(microseconds=1)]
EDGES = [dt.datetime(2024, 3, 9, tzinfo=UTC) + dt.timedelta(hours=12 * n) for n in range(8)]
FAR = [dt.datetime(9999, 12, 31, tzinfo=UTC), dt.datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)]
Facts = list[tuple[int, Any, Any]]
Versions = list[tuple[Any, str, Any, Any]]


def as_kind(moment: dt.datetime | None, kind: str) -> Any:
    if moment is None or kind == "timestamp":
        return moment
    return moment.date() if kind == "date" else moment.replace(tzinfo=None)


def instant(value: dt.date) -> dt.datetime:
    if not isinstance(value, dt.datetime):
        value = dt.datetime(value.year, value.month, value.day)
    return value if value.tzinfo else value.replace(tzinfo=UTC)


def scenario(seed: int) -> tuple[list[str], Facts, list[str], Versions]:
    """Types and rows of facts (no, key, at) and of versions (key, name, valid_from, valid_to)."""
    choose = random.Random(seed)
    fact_key, version_key, fact_keys, version_keys = KEYS[seed % len(KEYS)]
    at, start, end = (choose.choice(MOMENTS) for _ in range(3))
    facts: Facts = [
        (
            number // 2 if choose.random() < 0.2 else number,
            choose.choice(fact_keys),
            as_kind(choose.choice([*(edge + choose.choice(STEPS) for edge in EDGES), *FAR, None]), at),
        )
        for number in range(60)
    ]
    versions: Versions = []
    for key in version_keys:
        bounds = sorted(choose.sample(EDGES, choose.randint(1, 6)))
        for first, last in zip(bounds, [*bounds[1:], choose.choice([*FAR, None, EDGES[-1]])]):
            if choose.random() < 0.25:
                continue  # a gap
            if choose.random() < 0.2:
                last = choose.choice(EDGES)  # an overlap, or a period that runs backwards
            row = (key, f"v{len(versions)}", as_kind(first, start), as_kind(last, end))
            versions += [row] * choose.choice([1, 1, 1, 2])
    return ["int", fact_key, at], facts, [version_key, "string", start, end], versions


def same_key(fact: Any, version: Any) -> bool:
    if fact is None or version is None:
        return False
    if isinstance(version, str):
        return str(fact) == version
    return bool(fact == version)


def found_by_hand(fact: tuple[int, Any, Any], versions: Versions) -> str | None:
    _, key, at = fact
    began = []
    for version_key, name, start, end in versions:
        until = dt.datetime.max.replace(tzinfo=UTC) if end is None else instant(end)
        is_open = until >= FAR[0]
        until = dt.datetime.max.replace(tzinfo=UTC) if is_open else until
        is_proper = is_open or instant(start) < until
        has_begun = at is not None and instant(start) <= instant(at)
        if has_begun and is_proper and same_key(key, version_key):
            began.append((instant(start), until, is_open, name))
    if not began:
        return None
    _, until, is_open, name = max(began)
    return name if is_open or instant(at) < until else None


@pytest.fixture(scope="module")
def built(rendered: Rendered) -> Rendered:
    for seed in SEEDS:
        fact_types, facts, version_types, versions = scenario(seed)
        for name, names, types, rows in (
            (f"facts_{seed}", ("no", "id", "at"), fact_types, facts),
            (f"dim_{seed}", ("id", "name", "valid_from", "valid_to"), version_types, versions),
        ):
            ddl = ", ".join(f"{name} {kind}" for name, kind in zip(names, types, strict=True))
            rendered.spark.createDataFrame(rows, ddl).createOrReplaceGlobalTempView(name)
        for way in WAYS:
            arguments = {"key_columns": "id", "at": "at", "columns": "name"}
            rendered.model(f"s{seed}_{way}", model(f"facts_{seed}", f"dim_{seed}", arguments, way))
    return rendered


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("seed", SEEDS, ids="s{}".format)
def test_the_look_up_is_exact(built: Rendered, seed: int) -> None:
    spark, (_, facts, _, versions) = built.spark, scenario(seed)
    wanted = Counter((fact[0], found_by_hand(fact, versions)) for fact in facts)
    zone = str(spark.conf.get(ZONE))
    spark.conf.set(ZONE, ("UTC", "America/New_York", "Asia/Kolkata")[seed % 3])
    try:
        for way in WAYS:
            other = built.made(f"s{seed}_{way}")
            assert Counter(map(tuple, other.select("no", "name").collect())) == wanted, way
            dimension = table(built, f"dim_{seed}")
            found = as_of(
                table(built, f"facts_{seed}"),
                dimension,
                "id",
                "at",
                "name",
                versions_per_key=way,
            )
            assert Counter(map(tuple, found.select("no", "name").collect())) == wanted, way
    finally:
        spark.conf.set(ZONE, zone)


def test_the_scenarios_are_worth_running() -> None:
    found = Counter[str]()
    for seed in SEEDS:
        _, facts, _, versions = scenario(seed)
        for fact in facts:
            name = found_by_hand(fact, versions)
            found["nothing" if name is None else "a version"] += 1
            found["no key"] += fact[1] is None
            found["no moment"] += fact[2] is None
            if fact[2] is not None and name is not None:
                starts = {instant(start) for _, own, start, _ in versions if own == name}
                found["on the start"] += instant(fact[2]) in starts
                found["after the end of time"] += instant(fact[2]) >= FAR[1]
    wanted = [
        "nothing",
        "a version",
        "no key",
        "no moment",
        "on the start",
        "after the end of time",
    ]
    assert {event: found[event] for event in wanted if found[event] < 10} == {}
