"""A random history as tools of change data capture write it: out of order, repeated, with late rows of a snapshot,
changed keys, values that are not sent. And as a plain change log, for the reference."""

from __future__ import annotations

import datetime as dt
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import random_histories as histories
import reference as ref
from random_histories import NAMES, START
from reference import Row

from healing_tables import DimensionSpec

UNSENT = "__debezium_unavailable_value"
TOASTED = ("c", "d")  # columns that a change may leave out
KEYS = 25


@dataclass
class ToolFeed:
    """Attributes: ddl: of the messages; rows: the plain change log, ordered by ``lsn`` and ``part``; reader: its
    arguments; options: of the source that reads it."""

    ddl: str
    reader: dict[str, Any]
    options: dict[str, Any]
    messages: list[tuple[Any, ...]] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)

    def say(self, key: int | None, at: dt.datetime, op: str, values: Row, lsn: int, part: int) -> None:
        self.rows.append({"id": key, "at": at, "op": op, **values, "lsn": lsn, "part": part})

    def shuffled(self, choose: random.Random) -> ToolFeed:
        repeated = [message for message in self.messages if choose.random() < 0.1]
        return replace(self, messages=choose.sample(self.messages + repeated, len(self.messages) + len(repeated)))


NOTHING: Row = dict.fromkeys(NAMES)
COMMON = {"changed_at": "_changed_at", "sequence_by": "_sequence", "deleted_when": "_is_deleted"}


def debezium(seed: int) -> ToolFeed:
    ddl = "id int, " + ", ".join(f"{name} string" for name in NAMES)
    options = {**COMMON, "truncated_when": "_is_truncated", "unchanged_value": dict.fromkeys(TOASTED, UNSENT)}
    feed = ToolFeed("value string", {"payload": "value", "schema": ddl}, options)
    choose, alive = random.Random(seed), set[int]()

    def send(op: str, at: dt.datetime, lsn: int, **images: Any) -> None:
        source = {"ts_ms": int(at.timestamp() * 1000), "lsn": lsn}
        feed.messages.append((json.dumps({"op": op, "source": source, "ts_ms": 9, **images}),))

    for lsn in range(10, 2000, 10):
        at = START + dt.timedelta(minutes=max(0, lsn // 80 + choose.choice((0, 0, 1, -3))))
        key, values = choose.randrange(KEYS), {name: choose.choice((None, "x", "y")) for name in NAMES}
        if choose.random() < 0.02:
            send("t", at, lsn)
            feed.say(None, at, "t", NOTHING, lsn, 1)
            alive.clear()
        elif key not in alive:
            send("c", at, lsn, after={"id": key, **values})
            feed.say(key, at, "U", values, lsn, 1)
            alive.add(key)
        elif choose.random() < 0.3:
            send("d", at, lsn, before={"id": key})
            feed.say(key, at, "D", NOTHING, lsn, 1)
            alive.remove(key)
            if choose.random() < 0.3:  # the key has changed
                other = choose.randrange(KEYS)
                send("c", at, lsn + 1, after={"id": other, **values})
                feed.say(other, at, "U", values, lsn + 1, 1)
                alive.add(other)
        else:
            values |= {name: UNSENT for name in TOASTED if choose.random() < 0.4}
            send("u", at, lsn, after={"id": key, **values}, before={"id": key})
            feed.say(key, at, "U", values, lsn, 1)
        if choose.random() < 0.1:  # an incremental snapshot, read later at this position
            late, stale = (
                at + dt.timedelta(minutes=choose.randint(0, 2)),
                {name: choose.choice("xyz") for name in NAMES},
            )
            send("r", late, lsn, after={"id": key, **stale})
            feed.say(key, late, "U", stale, lsn, 0)
    feed.messages += [(None,), ('{"ts_ms": 5}',)]
    return feed.shuffled(choose)


def dms(seed: int) -> ToolFeed:
    ddl = f"Op string, ts timestamp, seq int, id int, {', '.join(f'{name} string' for name in NAMES)}, BI_id int"
    feed = ToolFeed(ddl, {"changed_at": "ts", "sequence": ["seq"], "key_columns": ["id"]}, COMMON)
    choose, alive = random.Random(seed), set[int]()
    for key in range(0, KEYS, 2):
        values = {name: choose.choice((None, "x", "y")) for name in NAMES}
        feed.messages.append((None, START, 0, key, *values.values(), None))
        feed.say(key, START, "U", values, 0, 0)
        alive.add(key)
    for seq in range(1, 200):
        at = START + dt.timedelta(minutes=max(0, seq // 8 + choose.choice((0, 0, 1, -3))))
        key, values = choose.randrange(KEYS), {name: choose.choice((None, "x", "y")) for name in NAMES}
        op, before = "I" if key not in alive else choose.choice("UUUD"), key
        if op == "U" and choose.random() < 0.2:
            before, key = key, choose.randrange(KEYS)
        feed.messages.append((op, at, seq, key, *values.values(), before))
        if before != key:
            feed.say(before, at, "D", NOTHING, seq, 1)
            alive.discard(before)
        feed.say(key, at, "D" if op == "D" else "U", NOTHING if op == "D" else values, seq, 2)
        (alive.discard if op == "D" else alive.add)(key)
    return feed.shuffled(choose)


TOOLS: dict[str, Callable[[int], ToolFeed]] = {"debezium": debezium, "dms": dms}


def expected(feed: ToolFeed, spec: DimensionSpec) -> ref.Dimension:
    dim = histories.expected(feed.rows, spec)
    (source,) = dim.sources
    source = replace(
        source,
        columns={**source.columns, "lsn": "int", "part": "int"},
        sequence_by=("lsn", "part"),
        unchanged_value=feed.options.get("unchanged_value", {}),
        truncated_when=ref.Condition("op = 't'", ("op",), lambda row: row["op"] == "t"),
    )
    return replace(dim, sources=(source,))


def in_parts(messages: Sequence[tuple[Any, ...]], parts: int) -> list[list[tuple[Any, ...]]]:
    return [list(messages[number::parts]) for number in range(parts)]
