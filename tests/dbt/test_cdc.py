"""Sources of change data capture, built and healed in instalments: each state is what a rebuild gives."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest
from lab import Lab
from sessions import FORMAT
from tables import plain_rows

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("interpreted")]
FEED = "'relation': source('raw', 'feed'), 'changed_at': 'at', 'loaded_at': 'loaded_at', 'where': \"kind <> 'x'\""
TRUNCATED = "'deleted_when': \"op = 'D'\", 'truncated_when': \"op = 't'\""
ATTRIBUTES = "attributes={'city': 2, 'doc': 6, 'first': {'from': 'feed.city', 'scd_type': 0}}"
DIMS = {
    "filled": f"{{'feed': {{{FEED}, {TRUNCATED}, 'ignore_nulls': ['city'], 'tie_break_by': 'lsn', "
    f"'unchanged_value': {{'doc': '(unchanged)'}}}}}}, {ATTRIBUTES}",
    "sequenced": f"{{'feed': {{{FEED}, {TRUNCATED}, 'ignore_nulls': true, 'sequence_by': 'lsn'}}}}, {ATTRIBUTES}",
    "sequenced_only": f"{{'feed': {{{FEED}, 'sequence_by': 'lsn'}}}}, attributes=['city', 'doc'], "
    "valid_from_first={'feed': 'born'}",
}
CHOICES: dict[str, tuple[Any, ...]] = {
    "city": (None, "Oslo", "Rome"),
    "doc": (None, "a", "(unchanged)"),
    "kind": ("", "", "", "x"),
}


def feed(seed: int, days: int, *, truncates: bool) -> list[str]:
    """Rows of 12 keys as SQL: a clock that runs back, a sequence, and one load on each of these days of May."""
    choose = random.Random(seed)
    rows = []
    for day in range(1, days + 1):
        for number in range(20):
            op = choose.choice(("U", "U", "U", "D"))
            key: Any = choose.randint(1, 12)
            if truncates and number == 10:
                op, key = "t", "null"
            at = f"timestamp '2024-01-{choose.randint(day, day + 9):02d} 00:00:00Z'"
            values = [choose.choice(choices) for choices in CHOICES.values()]
            texts = ["null" if value is None else f"'{value}'" for value in values]
            loaded = f"timestamp '2024-05-{day:02d} 00:00:00Z'"
            born = f"timestamp '2023-0{choose.randint(1, 9)}-01 00:00:00Z'"
            rows.append(f"({key}, {at}, '{op}', {', '.join(texts)}, {day * 100 + number}, {loaded}, {born})")
    return rows


def load(lab: Lab, rows: list[str]) -> None:
    lab.spark.sql(f"insert into {lab.schema}.feed values {', '.join(rows)}")


def run(lab: Lab, *args: str) -> dict[str, dict[str, Any]]:
    """The newest row of the log by dimension; what is stored is what a rebuild would store."""
    lab.dbt("run", *args)
    assert lab.succeeded, lab.log
    for name in DIMS:
        assert lab.rows(name) == plain_rows(lab.select(name)), name
    found = lab.spark.sql(
        f"select dimension, max_by(struct(*), finished_at) as newest from {lab.schema}.healing_log group by dimension"
    )
    return {row["dimension"]: row["newest"].asDict() for row in found.collect()}


def said(lab: Lab, text: str) -> list[str]:
    return [line for line in lab.log if text in line]


def test_heals_are_rebuilds(lab: Lab) -> None:
    lab.spark.sql(
        f"create table {lab.schema}.feed (id int, at timestamp, op string, city string, doc string, kind string, "
        f"lsn int, loaded_at timestamp, born timestamp) using {FORMAT}"
    )
    lab.write("models/sources.yml", f"sources: [{{name: raw, schema: {lab.schema}, tables: [{{name: feed}}]}}]\n")
    for name, call in DIMS.items():
        settings = {"mode": "heal", "max_removed_keys_ratio": 1, "max_removed_versions_ratio": 1, "overlap": "1 second"}
        sql = f"{{{{ healing_tables.dimension({call}) }}}}"
        lab.model(name, sql, materialized="healing_table", unique_key="id", meta={"healing_tables": settings})
    rows = feed(1, 3, truncates=False)
    near = "timestamp '2024-01-01 00:00:00Z', 'd ', 'Oslo', 'a', '', 1, timestamp '2024-05-01', null"
    load(lab, [*rows[:20], f"(20, {near})", f"(21, {near.replace('d ', 'D')})"])
    run(lab)
    for name in ("filled", "sequenced"):
        assert said(lab, f"{name}: 1 row of source feed where op differs from 'D' only by case or blanks: 'd '")
        assert re.search(
            rf"{name}: [0-9]+ keys? of source feed deleted before the first row, for example id = [0-9]+",
            "\n".join(lab.log),
        )
    assert not said(lab, "sequenced_only: 1 row of source feed where")
    assert said(lab, "rows of source feed moved to the moment of a row before in sequence_by")
    assert not said(lab, "set aside")
    load(lab, rows[20:40])
    log = run(lab)
    assert {log[name]["mode"] for name in DIMS} == {"heal"}
    load(lab, rows[40:])
    run(lab)
    # a truncation reaches keys that have no news
    load(lab, ["(null, timestamp '2024-01-09 00:00:00Z', 't', null, null, '', 1000, timestamp '2024-06-01', null)"])
    before = lab.rows("filled")
    log = run(lab)
    assert "source feed was truncated" in log["filled"]["reason"], log["filled"]
    assert log["filled"]["mode"] == "rebuild"
    assert lab.rows("filled") != before
    assert not said(lab, "filled: 1 row of source feed set aside")
    load(lab, ["(1, timestamp '2024-02-09 00:00:00Z', 'U', 'Rome', 'b', '', 1001, timestamp '2024-06-02', null)"])
    assert run(lab)["filled"]["mode"] == "heal"


def test_truncations_again_and_again(lab: Lab) -> None:
    lab.spark.sql(f"delete from {lab.schema}.feed")
    load(lab, feed(2, 5, truncates=True))
    run(lab, "--full-refresh")


def test_explain(lab: Lab) -> None:
    lab.spark.sql(f"delete from {lab.schema}.feed")
    load(
        lab,
        [
            "(1, timestamp '2024-01-05 00:00:00Z', 'U', 'Oslo', 'a', '', 1, timestamp '2024-05-01', null)",
            "(1, timestamp '2024-01-01 00:00:00Z', 'U', null, 'b', '', 2, timestamp '2024-05-01', null)",
            "(1, timestamp '2024-01-09 00:00:00Z', 'U', null, null, 'x', 3, timestamp '2024-05-01', null)",
            "(null, timestamp '2024-01-07 00:00:00Z', 't', null, null, '', 4, timestamp '2024-05-01', null)",
        ],
    )
    run(lab, "--full-refresh")
    lab.dbt("run-operation", "healing_tables.explain", "--args", "{dimension: sequenced, key: 1}")
    assert lab.succeeded
    lines = [" | ".join(cell.strip() for cell in line.split("|")) for line in lab.log if "|" in line]
    text = "\n".join(lines)
    for outcome in ("no change: a later row has its moment", "not read: where"):
        assert outcome in text, text
    assert "lost a tie" not in text
