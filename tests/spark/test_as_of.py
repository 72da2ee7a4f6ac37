"""Facts and dimensions: the cases and the rules, through the macro and the Python function, in both ways of looking
up."""

from __future__ import annotations

import re
from typing import Any

import pytest
from as_of_rules import RULES, Rule
from cases import load
from rendered import Rendered
from tables import Tables, plain_rows

from healing_tables import ArgumentError, as_of

CASES = load("asof")
WAYS = ("many", "few")


def relation(table: str) -> str:
    return f"api.Relation.create(schema='global_temp', identifier='{table}')"


def model(facts: str, dimension: str, arguments: dict[str, Any], way: str) -> str:
    listed = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
    return (
        f"{{{{ healing_tables.as_of({relation(facts)}, {relation(dimension)}, {listed}, versions_per_key='{way}') }}}}"
    )


def case_arguments(case: dict[str, Any]) -> dict[str, Any]:
    params = case["params"]
    return {"key_columns": params["key"], "at": params["ts"], "columns": [params["return"]]}


# The second dimension is looked up in what the first one gave: a CTE, whose types are not known.
CHAIN = """
with sales as (
    select * from values (1, 7, 8, date '2024-02-01'), (2, 7, null, date '2024-04-01'), (3, 9, 8, null)
    as sales(no, buyer, payer, sold_on)
), people as (
    select * from values
        (7, 'Oslo', timestamp '2024-01-01 00:00:00Z', timestamp '2024-03-01 00:00:00Z'),
        (7, 'Rome', timestamp '2024-03-01 00:00:00Z', null),
        (8, 'Kyiv', timestamp '2024-01-01 00:00:00Z', null),
        (8, 'Kyiv', timestamp '2024-01-01 00:00:00Z', null)
    as people(id, city, valid_from, valid_to)
), with_buyer as (
    {{ healing_tables.as_of(
        'sales', 'people', {'id': 'buyer'}, 'sold_on', {'buyer_city': 'city'}, unknown='no${where}') }}
)
{{ healing_tables.as_of('with_buyer', 'people', {'id': 'payer'}, 'sold_on', {'payer_city': 'city', 'payer_id': 'id'},
    unknown={'payer_id': -1}, versions_per_key='%s') }}
"""
LOG, DIM = relation("facts_0"), relation("dim_0")
WORSE = "versions_per_key='some', valid_to_current='later'"
# name: (arguments, what the error has to say)
REFUSED = {
    "no_columns": (f"{LOG}, {DIM}, 'id', 'at', []", ["columns", "at least one column"]),
    "no_key": (f"{LOG}, {DIM}, [], 'at', 'city'", ["key_columns", "at least one column"]),
    "several": (
        f"{LOG}, {DIM}, {{'idd': 'id'}}, 'moment', {{'id': 'town'}}, {{'city': 1}}, valid_to='id', {WORSE}",
        ["8 mistakes", "got:    idd", "got:    moment", "got:    town", "columns.id", "taken"]
        + ["unknown.city", "versions_per_key", "valid_to_current", "moment column id"],
    ),
    "wrong_unknown": (f"{LOG}, {DIM}, 'id', 'at', {{'k': 'id'}}, {{'k': 'none'}}", ["unknown.k"]),
    "mixed_keys": (f"{LOG}, {DIM}, {{'valid_from': 'id'}}, 'at', 'city'", ["int, timestamp"]),
    "no_facts": (f"none, {DIM}, 'id', 'at', 'city'", ["facts", "a table or view that exists"]),
}


@pytest.fixture(scope="module")
def built(rendered: Rendered) -> Rendered:
    for number, rule in enumerate(RULES):
        rendered.view(f"facts_{number}", rule.fact_columns, rule.facts)
        rendered.view(f"dim_{number}", rule.columns, rule.dimension)
        for way in WAYS:
            call = model(f"facts_{number}", f"dim_{number}", rule.arguments, way)
            rendered.model(f"rule_{number}_{way}", call)
    for case in CASES:
        name = case["id"].lower()
        for part in ("facts", "dim"):
            rendered.view(f"{part}_{name}", case["input"][part]["columns"], case["input"][part]["rows"])
        for way in WAYS:
            call = model(f"facts_{name}", f"dim_{name}", case_arguments(case), way)
            rendered.model(f"case_{name}_{way}", call)
    for way in WAYS:
        rendered.model(f"chain_{way}", CHAIN % way)
    return rendered


@pytest.fixture(scope="module")
def refused(built: Rendered) -> Rendered:
    for name, (arguments, _) in REFUSED.items():
        built.model(f"bad_{name}", f"{{{{ healing_tables.as_of({arguments}) }}}}")
    return built


def table(tables: Tables, name: str) -> Any:
    return tables.spark.table(f"global_temp.{name}")


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_case(built: Rendered, case: dict[str, Any], way: str) -> None:
    name, expected = case["id"].lower(), case["expect"]["rows"]
    columns = [column for column, _ in expected["columns"]]
    wanted = plain_rows(built.frame(expected["columns"], expected["rows"]))
    assert plain_rows(built.made(f"case_{name}_{way}"), columns) == wanted
    found = as_of(
        table(built, f"facts_{name}"),
        table(built, f"dim_{name}"),
        **case_arguments(case),
        versions_per_key=way,
    )
    assert plain_rows(found, columns) == wanted


def as_texts(frame: Any, rule: Rule) -> list[tuple[Any, ...]]:
    """What is shown of the facts; maps are left out, what is neither number nor text is text."""
    frame = frame.select(
        *[
            frame[f"`{name.replace('`', '``')}`"].cast(kind)
            for name, kind in (
                (name, "int" if dict(frame.dtypes)[name] in ("int", "bigint") else "string") for name in rule.shown
            )
            if name != "map"
        ]
    )
    return plain_rows(frame)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("number", range(len(RULES)), ids=lambda n: RULES[n].title)
def test_rule(built: Rendered, number: int, way: str) -> None:
    rule = RULES[number]
    wanted = sorted(rule.expected, key=repr)
    facts, dimension = table(built, f"facts_{number}"), table(built, f"dim_{number}")
    found = as_of(facts, dimension, **rule.arguments, versions_per_key=way)
    assert as_texts(found, rule) == wanted
    assert found.columns == [*facts.columns, *rule.arguments["columns"]]
    other = built.made(f"rule_{number}_{way}")
    assert as_texts(other, rule) == wanted
    assert other.dtypes == found.dtypes


@pytest.mark.parametrize("way", WAYS)
def test_python_on_either_kind_of_session(either: Tables, way: str) -> None:
    rule = RULES[0]
    facts = either.frame(rule.fact_columns, rule.facts)
    dimension = either.frame(rule.columns, rule.dimension)
    found = as_of(facts, dimension, **rule.arguments, versions_per_key=way)
    assert as_texts(found, rule) == sorted(rule.expected, key=repr)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("way", WAYS)
def test_dimensions_compose(built: Rendered, way: str) -> None:
    wanted = [(1, "Oslo", "Kyiv", 8), (2, "Rome", None, -1), (3, "no${where}", None, -1)]
    columns = ("no", "buyer_city", "payer_city", "payer_id")
    assert plain_rows(built.made(f"chain_{way}"), columns) == wanted


@pytest.mark.parametrize("name", REFUSED)
def test_refused(refused: Rendered, name: str) -> None:
    message = refused.errors[f"bad_{name}"]
    for part in REFUSED[name][1]:
        assert part in message


def test_python_refuses_the_same(built: Rendered) -> None:
    facts, dimension = table(built, "facts_0"), table(built, "dim_0")
    with pytest.raises(ArgumentError) as raised:
        as_of(
            facts,
            dimension,
            {"idd": "id"},
            "moment",
            {"id": "town"},
            {"city": 1},
            valid_to="id",
            versions_per_key="some",
            valid_to_current="later",
        )
    assert len(raised.value.mistakes) == 8
    for arguments, part in (
        (("id", "at", []), "columns"),
        (([], "at", "city"), "key_columns"),
        (("id", "at", {"k": "id"}, {"k": "none"}), "unknown.k"),
        (({"valid_from": "id"}, "at", "city"), "int, timestamp"),
    ):
        with pytest.raises(ArgumentError, match=re.escape(part)):
            as_of(facts, dimension, *arguments)


def test_python_takes_bytes_as_the_unknown_member(built: Rendered) -> None:
    at = "timestamp '2024-01-01' as at"
    facts = built.spark.sql(f"select 1 as id, {at}")
    until = "timestamp '2024-01-02' as until"
    dimension = built.spark.sql(f"select 2 as id, {at}, {until}, X'ff' as k")
    found = as_of(facts, dimension, "id", "at", "k", unknown=b"\x00'", valid_from="at", valid_to="until")
    assert found.select("k").collect()[0][0] == b"\x00'"


@pytest.mark.parametrize(
    ("way", "broadcast", "exchanges", "sorts"),
    [("many", "10MB", 1, 2), ("few", "-1", 2, 2), ("few", "10MB", 1, 1)],
)
def test_the_plan_is_short(built: Rendered, way: str, broadcast: str, exchanges: int, sorts: int) -> None:
    """One shuffle of both sides together, sorted by a number and then by key; or one shuffle and one sort of each.
    Facts stay where they are if the other side is small."""
    built.table("facts_0", RULES[0].fact_columns, RULES[0].facts)
    built.table("dim_0", RULES[0].columns, RULES[0].dimension)
    spark, settings = built.spark, {"spark.sql.autoBroadcastJoinThreshold": broadcast}
    settings["spark.sql.adaptive.enabled"] = "false"
    before = {name: str(spark.conf.get(name)) for name in settings}
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        sql = built.statement(f"rule_0_{way}").replace("global_temp", built.schema)
        plan = spark.sql("explain " + sql).collect()[0][0]
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)
    assert len(re.findall(r"[+:]- \*?(?:\(\d+\) )?Exchange ", plan)) == exchanges
    assert len(re.findall(r"[+:]- \*?(?:\(\d+\) )?Sort \[", plan)) == sorts
