"""A heal rebuilds the keys with news only, and gives what a rebuild gives, byte for byte.

Random histories come in instalments: late rows, corrections, rows taken away, an instalment that comes twice and one
that comes late.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from typing import Any

import pytest
from lab import Lab
from sessions import FORMAT
from tables import plain_rows

pytestmark = pytest.mark.usefixtures("interpreted")
SEED = int(os.environ.get("HEALING_TABLES_SEED", "0"))
STEPS = 4
NEW_AT = 2  # the step at which the dimensions get one more attribute
KEYS = [("a", 1), ("a", 2), ("b", 1), ("b", 2), ("c", 7), ("d", 7)]
FEED = "tblproperties ('delta.enableChangeDataFeed' = true)"
TABLES = {
    "crm": (
        "k string, n int, name string, gone boolean, seq int, at timestamp, loaded timestamp",
        "",
    ),
    "erp": ("n int, k string, credit decimal(8,2), at timestamp", FEED),
    "web": ("k string, n int, mail string, taken date, loaded timestamp", ""),
    "shop": ("k string, n int, visits int, taken date", FEED),
    "terms": ("k string, n int, office string, since date, until date", FEED),
    "taken": ("taken date", ""),
}
SOURCES = {
    "crm": "'changed_at': 'at', 'loaded_at': 'loaded', 'deleted_when': 'gone', 'tie_break_by': ['seq'], 'on_tie': "
    "'greatest'",
    "erp": "'changed_at': 'at', 'on_tie': 'greatest'",
    "web": "'snapshot_at': 'taken', 'loaded_at': 'loaded', 'calendar': source('raw', 'taken'), 'on_tie': 'greatest'",
    "shop": "'snapshot_at': 'taken', 'on_tie': 'greatest'",
    "terms": "'valid_from': 'since', 'valid_to': 'until'",
}
ATTRIBUTES: dict[str, Any] = {
    "crm": "name",
    "erp": "credit",
    "web": "mail",
    "shop": "visits",
    "terms": "office",
}
# dimension: its sources
DIMS = {
    "of_snapshots": ["web", "shop"],
    "of_all": ["crm", "erp", "web", "shop", "terms"],
}


def model(lab: Lab, name: str, sources: list[str], types: dict[str, int], without: str = "") -> None:
    """Args: without: a source that has no attribute in it."""
    listed = ", ".join(f"'{s}': {{'relation': source('raw', '{s}'), {SOURCES[s]}}}" for s in sources)
    attributes = {ATTRIBUTES[s]: types.get(s, 2) for s in sources if s != without}
    sql = f"{{{{ healing_tables.dimension(sources={{{listed}}}, attributes={attributes}) }}}}"
    lab.model(
        name,
        sql,
        materialized="healing_table",
        unique_key=["k", "n"],
        meta={
            "healing_tables": {
                "mode": "heal",
                "publish": "merge",
                "checks": {"single_current": False},
            }
        },
    )


class World:
    """The sources, and what befalls them between two runs."""

    def __init__(self, lab: Lab, chance: random.Random) -> None:
        self.lab, self.chance, self.step = lab, chance, 0
        self.held: list[str] = []  # statements of an instalment that comes late
        for name, (columns, properties) in TABLES.items():
            self.sql(f"create table {{raw}}.{name} ({columns}) using {FORMAT} {properties}")

    def sql(self, statement: str) -> None:
        self.lab.spark.sql(statement.replace("{raw}", self.lab.schema))

    def moment(self) -> str:
        day = max(1, self.step * 4 + self.chance.randint(-9, 3))
        return f"timestamp '2024-01-{day:02} {self.chance.choice([0, 12]):02}:00:00Z'"

    def loaded(self) -> str:
        return f"timestamp '2024-02-{self.step + 1:02} 06:00:00Z'"

    def key(self) -> str:
        k, n = self.chance.choice(KEYS)
        return f"'{k}', {n}"

    def changes(self) -> list[str]:
        rows = [
            f"({self.key()}, '{self.chance.choice('xyz')}', {self.chance.choice(['true', 'false', 'false'])}, "
            f"{self.chance.randint(1, 3)}, {self.moment()}, {self.loaded()})"
            for _ in range(self.chance.randint(0, 5))
        ]
        credits = []
        for _ in range(self.chance.randint(0, 4)):
            k, n = self.chance.choice(KEYS)
            credits.append(f"({n}, '{k}', {self.chance.randint(1, 3)}.5, {self.moment()})")
        return self.inserts("crm", rows) + self.inserts("erp", credits)

    def snapshots(self) -> list[str]:
        day = f"date '2024-01-{self.step * 4 + 2:02}'"
        web = [
            f"('{k}', {n}, '{self.chance.choice('pq')}', {day}, {self.loaded()})"
            for k, n in KEYS
            if self.chance.random() < 0.7
        ]
        shop = [f"('{k}', {n}, {self.chance.randint(1, 2)}, {day})" for k, n in KEYS if self.chance.random() < 0.8]
        if self.chance.random() < 0.3:
            web = []  # a snapshot with nobody in it, which only the calendar knows
        return self.inserts("web", web) + self.inserts("shop", shop) + [f"insert into {{raw}}.taken values ({day})"]

    def terms(self) -> list[str]:
        k, n = KEYS[self.step % len(KEYS)]
        end = self.chance.choice(["null", f"date '2024-03-{self.step + 5:02}'"])
        return [
            f"delete from {{raw}}.terms where k = '{k}' and n = {n}",
            (
                f"insert into {{raw}}.terms values ('{k}', {n}, '{self.chance.choice('uvw')}', date "
                f"'2024-01-{self.step + 1:02}', {end})"
            ),
        ]

    def corrections(self) -> list[str]:
        k, n = self.chance.choice(KEYS)
        return self.chance.sample(
            [
                f"update {{raw}}.erp set credit = 9.5 where k = '{k}' and n = {n}",
                f"delete from {{raw}}.erp where k = '{k}'",
                f"update {{raw}}.shop set visits = 7 where k = '{k}' and n = {n}",
                f"delete from {{raw}}.shop where n = {n} and taken < date '2024-01-08'",
            ],
            2,
        )

    @staticmethod
    def inserts(table: str, rows: list[str]) -> list[str]:
        return [f"insert into {{raw}}.{table} values {', '.join(rows)}"] if rows else []

    def go_on(self) -> None:
        """One more instalment. The second one is held back until the fourth, which also brings the third again."""
        self.step += 1
        statements = self.changes() + self.snapshots() + self.terms()
        if self.step == 2:
            self.held, statements = statements, statements[-2:]
        if self.step == 3:
            self.held += statements
        if self.step == 4:
            statements = self.held + statements + self.corrections()
        if self.step == 5:
            statements = self.corrections()
        for statement in statements:
            self.sql(statement)


def anew(lab: Lab, name: str) -> list[tuple[Any, ...]]:
    """What the model's select gives, of which a rebuild makes the table."""
    compiled = (lab.home / "target/compiled/lab/models" / f"{name}.sql").read_text()
    return plain_rows(lab.spark.sql(compiled))


def logged(lab: Lab) -> dict[str, Any]:
    rows = lab.spark.sql(
        f"select dimension, max_by(struct(*), finished_at) as newest from {lab.schema}.healing_log group by dimension"
    ).collect()
    return {row["dimension"]: row["newest"].asDict(recursive=True) for row in rows}


@pytest.fixture(scope="module")
def raw(lab: Lab) -> Iterator[Lab]:
    tables = ", ".join(f"{{name: {name}}}" for name in TABLES)
    lab.write(
        "models/sources.yml",
        f"sources: [{{name: raw, schema: {lab.schema}, tables: [{tables}]}}]\n",
    )
    yield lab


def test_instalments_healed_one_by_one_are_a_rebuild(raw: Lab) -> None:
    chance = random.Random(SEED)
    world = World(raw, chance)
    types = {name: {s: chance.choice([0, 1, 2, 3, 6]) for s in sources[1:]} for name, sources in DIMS.items()}
    modes = []
    for step in range(STEPS):
        for name, sources in DIMS.items():  # one attribute comes halfway
            model(raw, name, sources, types[name], without="shop" if step < NEW_AT else "")
        world.go_on()
        results = raw.dbt("run")
        assert {status for status, _ in results.values()} == {"success"}, (step, results)
        rows = logged(raw)
        for name in DIMS:
            assert raw.rows(name) == anew(raw, name), (SEED, step, name)
            modes.append((step, name, rows[name]["mode"], rows[name]["reason"]))
    assert {(name, mode) for _, name, mode, _ in modes} >= {(name, "heal") for name in DIMS}, modes
    for step, _, mode, reason in modes[len(DIMS) :]:
        wanted = "a type of its sources, has changed" if step == NEW_AT else "empty snapshots"
        assert (mode == "heal" and step != NEW_AT) or wanted in reason, json.dumps(modes)
