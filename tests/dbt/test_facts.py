"""Keys in facts: rekey_facts in all its scopes, facts_covered with its reasons, placeholders for keys that come
later."""

from __future__ import annotations

import json
from typing import Any

import pytest
from lab import Lab

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("interpreted")]
END = "9999-12-31"
DIMENSION = [
    ["sk", "bigint"],
    ["shop no", "bigint"],
    ["co.de", "string"],
    ["from", "date"],
    ["to", "date"],
]
VERSIONS: list[list[Any]] = [
    [11, 1, "A", "2024-01-01", "2024-01-10"],
    [12, 1, "A", "2024-01-10", END],
    [21, 1, "B", "2024-01-05", "2024-01-08"],
    [22, 1, "B", "2024-01-12", END],
    [31, 2, "A", "2024-01-01", END],
]
FACTS = [
    ["no", "int"],
    ["where's", "int"],
    ["code", "string"],
    ["at", "timestamp"],
    ["the key", "int"],
]
# no, shop, code, moment, what is stored; then what should be, and what facts_covered says
LOADED: list[tuple[list[Any], int, str | None]] = [
    ([1, 1, "A", "2024-01-09 23:59:59.999999", 11], 11, None),
    ([2, 1, "A", "2024-01-11 10:00:00", 11], 12, "not the valid version"),
    ([2, 1, "A", "2024-01-11 10:00:00", 11], 12, "not the valid version"),
    ([3, 1, "A", "2024-01-10 00:00:00", 11], 12, "not the valid version"),
    ([4, 1, "B", "2024-01-06 00:00:00", -1], 21, "unknown, but a version is valid"),
    ([5, 1, "B", "2024-01-13 00:00:00", None], 22, "unknown, but a version is valid"),
    ([6, 1, "B", "2024-01-09 00:00:00", 21], -1, "a key, but no version is valid"),
    ([7, 1, "B", "2024-01-09 00:00:00", -1], -1, None),
    ([8, 9, "A", "2024-01-09 00:00:00", -1], -1, None),
    ([9, None, "A", "2024-01-09 00:00:00", 31], -1, "a key, but no version is valid"),
    ([10, None, "A", "2024-01-09 00:00:00", -1], -1, None),
    ([11, 2, "A", None, -1], -1, None),
    ([12, 2, "A", "2023-01-01 00:00:00", -1], -1, None),
    ([13, 2, "A", "2024-01-11 10:00:00", 11], 31, "not the valid version"),
]
# what allow_unknown: false adds
RIGHTLY_UNKNOWN = {
    7: "in a gap, or after the end",
    8: "unknown key, or before its first version",
    10: "no key",
    11: "no moment",
    12: "unknown key, or before its first version",
}
ARGUMENTS: dict[str, Any] = {
    "key_columns": {"shop no": "where's", "co.de": "code"},
    "at": "at",
    "columns": {"the key": "sk"},
    "unknown": -1,
    "valid_from": "from",
    "valid_to": "to",
}


def delta(lab: Lab, name: str, columns: list[list[str]], rows: list[list[Any]]) -> None:
    """A Delta table with change data feed and odd column names, filled by its version 1."""
    listed = ", ".join(f"`{column.replace('`', '``')}` {kind}" for column, kind in columns)
    lab.spark.sql(
        f"create table {lab.schema}.{name} ({listed}) using delta tblproperties "
        "('delta.columnMapping.mode' = 'name', 'delta.enableChangeDataFeed' = 'true')"
    )
    lab.frame(columns, rows).coalesce(1).write.insertInto(f"{lab.schema}.{name}")


def commits(lab: Lab, name: str) -> list[Any]:
    return list(lab.spark.sql(f"describe history {lab.schema}.{name}").collect())


def rekey(lab: Lab, **arguments: Any) -> list[str]:
    """What the run-operation tells."""
    operation = ["run-operation", "healing_tables.rekey_facts"]
    lab.dbt(*operation, "--args", json.dumps(arguments))
    return told(lab)


def told(lab: Lab) -> list[str]:
    start = f"healing_tables.rekey_facts {lab.schema}."
    return [text.removeprefix(start) for text in lab.log if text.startswith(start)]


def stored(lab: Lab, name: str) -> list[Any]:
    rows = lab.spark.table(f"{lab.schema}.{name}").select("no", "`the key`").collect()
    return sorted((tuple(row) for row in rows), key=repr)


def wanted(changed: set[int]) -> list[Any]:
    """All facts, those of ``changed`` with the key that they should have."""
    rows = [(row[0], key if row[0] in changed else row[4]) for row, key, _ in LOADED]
    return sorted(rows, key=repr)


WRONG = {row[0] for row, key, _ in LOADED if row[4] != key}
# what rekey_facts is told, and whose facts change
SCOPES: dict[str, tuple[dict[str, Any], set[int]]] = {
    "where": ({"where": "`where's` = 2 or no = 4"}, {4, 13}),
    "keys": ({"keys": "some_keys"}, {4, 5, 6}),
    "few": ({"versions_per_key": "few"}, WRONG),
    "since": ({"since_version": 2}, {2, 3}),
}
BAD: dict[str, tuple[dict[str, Any], list[str]]] = {
    "tables": (
        {"facts": "some_keys", "dimension": "nowhere"},
        ["2 mistakes", "a table in delta or iceberg, so that it is one commit", "got:    nowhere"],
    ),
    "columns": (
        {"columns": {"the key": "from", "no key": "sk", "at": "from"}, "unknown": None}
        | {"keys": "some_keys", "since_version": 3},
        ["4 mistakes", "columns.the key", "wanted: a type in which date can be", "got:    int"]
        + ["got:    no key", "columns.at", "since_version", "keys or since_version"],
    ),
    "keys": (
        {"keys": "fct_all"},
        ["2 mistakes", "a column of", "got:    shop no", "got:    co.de"],
    ),
    "version": ({"since_version": 99}, ["a version that the dimension has had", "is 5"]),
    "no feed": (
        {"since_version": 0, "dimension": "dim_plain"},
        ["a dimension with change data feed", "delta.enableChangeDataFeed"],
    ),
}
# What a project would call in a hook or a macro of its own.
STEPS = """
{%% macro steps() %%}
    {{ healing_tables.rekey_facts('fct_since', 'dim_shop', since_version=5, **%r) }}
    {%% for scope, options in %r.items() %%}
        {{ healing_tables.rekey_facts('fct_' ~ scope, 'dim_shop', **dict(%r, **options)) }}
    {%% endfor %%}
{%% endmacro %%}
"""


@pytest.fixture(scope="module")
def loaded(lab: Lab, interpreted: None) -> Lab:
    """A dimension whose boundary between 11 and 12 was moved, and facts that do not know it yet."""
    before = [list(row) for row in VERSIONS]
    before[0][4] = before[1][3] = "2024-01-12"
    delta(lab, "dim_shop", DIMENSION, before)
    dim = f"{lab.schema}.dim_shop"
    lab.spark.sql(f"alter table {dim} set tblproperties ('x' = 'y')")  # version 2
    lab.spark.sql(f"update {dim} set `from` = date '2024-01-10' where sk = 12")
    lab.spark.sql(f"update {dim} set `to` = date '2024-01-10' where sk = 11")
    lab.spark.sql(f"update {dim} set `to` = `to` where sk in (21, 31)")  # touched, and as before
    columns = ["`shop no`", "`co.de`", "sk", "`from`", "`to`"]
    lab.spark.sql(
        f"create table {lab.schema}.dim_plain using delta tblproperties "
        f"('delta.columnMapping.mode' = 'name') as select {', '.join(columns)} from {dim}"
    )
    lab.table("some_keys", DIMENSION[1:3], [[1, "B"]])
    facts = lab.frame(FACTS, [row for row, _, _ in LOADED]).coalesce(1)
    for name in ("all", *SCOPES):
        writer = facts.write.format("delta").option("delta.columnMapping.mode", "name")
        writer.saveAsTable(f"{lab.schema}.fct_{name}")
    tests = [
        {
            "healing_tables.facts_covered": {
                "name": f"covered_{allowed}",
                "arguments": ARGUMENTS
                | {"dimension": f"source('raw', 'dim_{which}')"}
                | {"allow_unknown": allowed == "unknown"},
                "config": {"store_failures": True, "alias": f"covered_{allowed}_rows"},
            }
        }
        for allowed, which in (("unknown", "shop"), ("known", "plain"))
    ]
    fact: dict[str, Any] = {"name": "fct_all", "data_tests": tests[:1]}
    fact["columns"] = [{"name": "the key", "data_tests": tests[1:]}]
    tables: list[dict[str, Any]] = [fact, {"name": "dim_shop"}, {"name": "dim_plain"}]
    sources = [{"name": "raw", "schema": lab.schema, "tables": tables}]
    lab.write("models/raw.yml", json.dumps({"version": 2, "sources": sources}))
    return lab


@pytest.fixture(scope="module")
def failing(loaded: Lab) -> dict[str, list[Any]]:
    """What facts_covered says before anything is re-keyed."""
    loaded.dbt("test")
    audit = f"{loaded.schema}_dbt_test__audit"
    return {name: loaded.spark.table(f"{audit}.covered_{name}_rows").collect() for name in ("unknown", "known")}


@pytest.fixture(scope="module")
def rekeyed(loaded: Lab, failing: dict[str, list[Any]]) -> Lab:
    loaded.notes["before"] = [str(len(commits(loaded, "fct_all")))]
    arguments = {"facts": "fct_all", "dimension": "raw.dim_shop", **ARGUMENTS}
    loaded.notes["told"] = rekey(loaded, **arguments)
    loaded.notes["again"] = rekey(loaded, **arguments)
    loaded.dbt("test")
    loaded.notes["tests"] = [loaded.results[f"covered_{name}"][0] for name in ("unknown", "known")]
    return loaded


def test_a_failing_row_is_a_fact_and_says_why(failing: dict[str, list[Any]]) -> None:
    named = ["reason", "where's", "code", "stored_the key", "wanted_the key"]
    expected = [(reason, row[1], row[2], row[4], key, row[3] and row[3][:19]) for row, key, reason in LOADED if reason]

    def shown(rows: list[Any]) -> list[Any]:
        found = [(*(row[name] for name in named), row["at"] and str(row["at"])[:19]) for row in rows]
        return sorted(found, key=repr)

    assert shown(failing["unknown"]) == sorted(expected, key=repr)
    expected += [
        (RIGHTLY_UNKNOWN[row[0]], row[1], row[2], -1, -1, row[3] and row[3][:19])
        for row, _, _ in LOADED
        if row[0] in RIGHTLY_UNKNOWN
    ]
    # two of those that are wrong have no version, once
    assert shown(failing["known"]) == sorted(expected, key=repr)


def test_facts_get_the_version_in_force_in_one_commit(rekeyed: Lab) -> None:
    assert stored(rekeyed, "fct_all") == wanted(WRONG)
    history = commits(rekeyed, "fct_all")
    assert len(history) == int(rekeyed.notes["before"][0]) + 1
    assert history[0]["operation"] == "MERGE"
    assert history[0]["operationMetrics"]["numTargetRowsUpdated"] == "8"
    assert history[0]["operationMetrics"]["numTargetRowsInserted"] == "0"


def test_what_has_changed_is_told(rekeyed: Lab) -> None:
    assert rekeyed.notes["told"] == [
        "fct_all: 8 facts changed in one commit, version 1",
        "fct_all:     moved to another version | 4",
        "fct_all:     resolved from unknown    | 2",
        "fct_all:     became unknown           | 2",
        "fct_all: the dimension is at version 5, the next since_version",
    ]
    assert rekeyed.notes["again"][0] == "fct_all: unchanged, nothing to commit"


def test_what_is_left_rightly_stores_the_unknown_member(rekeyed: Lab) -> None:
    assert rekeyed.notes["tests"] == ["pass", "fail"]
    assert rekeyed.results["covered_known"][1].startswith("Got 7 results")


@pytest.fixture(scope="module")
def scoped(loaded: Lab) -> Lab:
    scopes = {name: options for name, (options, _) in SCOPES.items()}
    loaded.write("macros/steps.sql", STEPS % (ARGUMENTS, scopes, ARGUMENTS))
    left = f"{loaded.schema}.fct_since__rekey_0badcafe"
    loaded.spark.sql(f"create table {left} (id int)")
    loaded.dbt("run-operation", "steps")
    loaded.spark.sql(f"drop table {left}")
    loaded.notes["scoped"] = told(loaded)
    return loaded


@pytest.mark.parametrize("scope", SCOPES)
def test_only_the_facts_asked_for(scoped: Lab, scope: str) -> None:
    _, changed = SCOPES[scope]
    assert stored(scoped, f"fct_{scope}") == wanted(changed)
    assert len(commits(scoped, f"fct_{scope}")) == 2
    left = scoped.spark.sql(f"show tables in {scoped.schema} like 'fct_*__*'").collect()
    assert [row for row in left if not row["isTemporary"]] == []  # other tests leave views
    assert scoped.notes["scoped"][:2] == [
        "fct_since: another run writes fct_since__rekey_0badcafe, or has failed and left it; then drop it",
        "fct_since: unchanged, nothing to commit",
    ]


@pytest.mark.parametrize("name", BAD)
def test_refused(loaded: Lab, name: str) -> None:
    options, parts = BAD[name]
    arguments = {"facts": "fct_where", "dimension": "dim_shop"} | ARGUMENTS | options
    rekey(loaded, **arguments)
    text = "\n".join(loaded.log)
    for part in ["healing_tables.rekey_facts() has", *parts]:
        assert part in text, text


def test_a_feed_that_does_not_tell_everything_is_not_asked(scoped: Lab) -> None:
    """Whoever switches the feed off and on loses what came between; then all facts are looked at."""
    dim, facts = f"{scoped.schema}.dim_shop", f"{scoped.schema}.fct_since"
    options = {"facts": "fct_since", "dimension": "dim_shop", **ARGUMENTS}
    rekey(scoped, **options)
    scoped.spark.sql(f"update {facts} set `the key` = -1 where no = 3")
    for state in ("false", "true"):
        properties = f"tblproperties ('delta.enableChangeDataFeed' = '{state}')"
        scoped.spark.sql(f"alter table {dim} set {properties}")
    lines = rekey(scoped, **options, since_version=5)
    assert "its change feed was switched on or off since" in lines[0], lines
    assert lines[1].startswith("fct_since: 1 fact changed"), lines
