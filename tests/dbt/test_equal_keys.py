"""Keys as dbt_utils makes them join texts by a hyphen: a build after which two rows would have one key is refused."""

from __future__ import annotations

import pytest
from lab import Lab
from sessions import FORMAT

KEY = "surrogate_key={'name': 'sk', 'strategy': 'dbt_utils'}"
MODELS: dict[str, dict[str, object]] = {
    "rebuilt": {},
    "overwritten": {"publish": "overwrite"},
    "healed": {"mode": "heal"},
    "sharded": {"shards": 2},
}


def model(lab: Lab, name: str, where: str, options: dict[str, object], key: str = KEY) -> None:
    source = f"{{'relation': source('raw', 'log'), 'changed_at': 'at', 'loaded_at': 'at', 'where': \"{where}\"}}"
    lab.model(
        name,
        f"{{{{ healing_tables.dimension({{'log': {source}}}, attributes=['name'], {key}) }}}}",
        materialized="healing_table",
        unique_key=["one", "two"],
        meta={"healing_tables": options},
    )


@pytest.fixture(scope="module")
def built(lab: Lab) -> Lab:
    lab.spark.sql(f"create table {lab.schema}.log (one string, two string, at timestamp, name string) using {FORMAT}")
    lab.write("models/sources.yml", f"sources: [{{name: raw, schema: {lab.schema}, tables: [{{name: log}}]}}]\n")
    lab.spark.sql(
        f"insert into {lab.schema}.log values ('a-', 'b', timestamp '2024-01-01', 'x'), "
        "('c', 'd', timestamp '2024-01-01', 'x'), ('e', 'f', timestamp '2024-01-01', 'x'), "
        "('old', '-er', timestamp '2024-01-01', 'x'), ('old-', 'er', timestamp '2024-01-01', 'x')"
    )
    model(lab, "first", "true", {})
    model(lab, "first_in_shards", "true", {"shards": 2})
    model(lab, "hashed", "true", {}, "surrogate_key='sk'")
    for name, options in MODELS.items():
        model(lab, name, "one not like 'old%'", options)
    lab.dbt("run")
    return lab


def refused(lab: Lab, name: str, *rows: str) -> None:
    status, message = lab.results[name]
    assert status == "error", name
    assert "surrogate_key" in message, message
    for row in rows:
        assert row in message, message
    assert "use the strategy hash" in message
    assert lab.newest(name)["status"] == "refused"


def test_a_first_build(built: Lab) -> None:
    for name in ("first", "first_in_shards"):
        keys = ("one = old, two = -er from 2024-01-01", "one = old-, two = er")
        refused(built, name, "2 rows that share a surrogate key", *keys)
        assert not built.spark.catalog.tableExists(f"{built.schema}.{name}")
    assert built.results["hashed"][0] == "success"
    assert built.spark.table(f"{built.schema}.hashed").select("sk").distinct().count() == 5


def test_later_builds(built: Lab) -> None:
    """Of a key that is new, and the key of a row that stays."""
    before = {name: built.rows(name) for name in MODELS}
    assert {len(rows) for rows in before.values()} == {3}
    built.spark.sql(f"insert into {built.schema}.log values ('a', '-b', timestamp '2024-01-01', 'y')")
    built.dbt("run", "--select", *MODELS)
    for name in MODELS:
        refused(built, name, "one = a, two = -b from 2024-01-01", "one = a-, two = b from 2024-01-01")
        assert built.rows(name) == before[name]
    # its moment is another one now
    built.spark.sql(f"delete from {built.schema}.log where one = 'a'")
    built.spark.sql(f"insert into {built.schema}.log values ('a', '-b', timestamp '2024-01-02', 'y')")
    results = built.dbt("run", "--select", *MODELS)
    assert {status for status, _ in results.values()} == {"success"}, results
    assert {len(built.rows(name)) for name in MODELS} == {4}
