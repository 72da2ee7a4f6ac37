"""What generate_model makes of columns; that its model builds: tests/dbt/test_generated_models.py."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from rendering import CompilerError, Project
from sessions import ROOT

CUSTOMERS = {"customer_id": "int", "updated_at": "date", "customer_name": "string", "email": "string"}
PROFILES = {"snapshot_date": "date", "customer_id": "int", "email": "string"}
# columns, options of the source, columns that are attributes
GUESSES = {
    "a flag of deletes": (
        {"customer_id": "int", "changed_at": "timestamp", "name": "string", "is_deleted": "boolean"},
        "'changed_at': 'changed_at', 'deleted_when': \"is_deleted\"",
        ["name"],
    ),
    "codes of operations": (
        {"customer_id": "int", "ts": "timestamp_ntz", "Op": "string", "_fivetran_synced": "timestamp"},
        "'changed_at': 'ts', 'loaded_at': '_fivetran_synced', 'deleted_when': \"lower(Op) in ('d', 'delete')\"",
        [],
    ),
    "a moment of deletes": (
        {"customer_id": "int", "updated_at": "timestamp", "deleted_at": "timestamp", "deleted": "string"},
        "'changed_at': 'updated_at', 'deleted_when': \"deleted_at is not null\"",
        ["deleted"],
    ),
    "periods": (
        {"CUSTOMER_ID": "int", "valid_from": "date", "valid_to": "date", "limit": "int"},
        "'valid_from': 'valid_from', 'valid_to': 'valid_to'",
        ["limit"],
    ),
    "a dbt snapshot": (
        {"customer_id": "int", "name": "string", "dbt_scd_id": "string", "dbt_valid_from": "timestamp"},
        "'dbt_snapshot': true",
        ["name"],
    ),
    "another key": (
        {"cust_no": "int", "updated_at": "timestamp", "name": "string"},
        "'changed_at': 'updated_at', 'key_columns': {'customer_id': 'cust_no'}",
        ["name"],
    ),
    "no moment": ({"customer_id": "int", "name": "string"}, "'changed_at': '???'", ["name"]),
}


def project(**catalogue: dict[str, str]) -> Project:
    made = Project({f"db.{name}": columns for name, columns in catalogue.items()})
    nodes = {name: {"name": name, "resource_type": "model", "package_name": "unit"} for name in catalogue}
    made.context["graph"] = {"nodes": {name: Node(node) for name, node in nodes.items()}, "sources": {}}
    return made


class Node(dict[str, str]):
    """A node of dbt's graph: attributes and keys."""

    def __getattr__(self, name: str) -> str:
        return self[name]


@pytest.mark.parametrize("case", GUESSES)
def test_guesses(case: str) -> None:
    columns, options, attributes = GUESSES[case]
    guess = SimpleNamespace(**project().macros._guess_source("stg_crm", "ref('stg_crm')", columns, ["customer_id"]))
    assert ", ".join(guess.options) == options
    assert (guess.name, guess.attributes) == ("crm", attributes)
    assert guess.notes


def test_the_documented_model() -> None:
    made = project(stg_crm_customers=CUSTOMERS, stg_web_profiles=PROFILES)
    tables = {"stg_crm_customers": CUSTOMERS, "stg_web_profiles": PROFILES}
    text = made.macros._generated_model(tables, ["customer_id"])
    page = (ROOT / "docs" / "operations.md").read_text()
    assert f"-- models/dim_customer.sql\n{text}\n```" in page
    attributes = made.macros._guessed_attributes(tables, ["customer_id"])
    assert attributes == {
        "customer_name": "From crm_customers.",
        "email": "From crm_customers or web_profiles: the first value that is not NULL.",
    }
    yml = made.macros._generated_yml("dim_customer", ["customer_id"], attributes=attributes)
    assert '- name: "email"' in yml
    assert "description: One row for each version of a customer." in yml
    for name in ("valid_from", "row_hash"):
        assert f"doc('healing_tables', 'healing_tables_{name}')" in yml


def test_a_key_of_several_columns() -> None:
    made = project(stg_shops={})
    columns = {"region": "string", "shopno": "int", "updated_at": "date", "name": "string"}
    guess = SimpleNamespace(**made.macros._guess_source("shops", "ref('shops')", columns, ["region", "shop_no"]))
    assert guess.options[-1] == "'key_columns': {'shop_no': 'shopno'}"
    assert guess.attributes == ["name"]
    text = made.macros._generated_model({"stg_shops": columns}, ["region", "shop_no"])
    assert "unique_key=['region', 'shop_no']" in text


@pytest.mark.parametrize(
    ("columns", "key_columns"),
    [
        ({"shop_id": "int", "area_code": "string"}, {"region": "area_code", "shop_no": "shop_id"}),
        ({"area_code": "string"}, {"region": "area_code", "shop_no": "???"}),
    ],
)
def test_no_column_is_taken_for_two_keys(columns: dict[str, str], key_columns: dict[str, str]) -> None:
    guess = SimpleNamespace(**project().macros._guess_source("shops", "ref('shops')", columns, list(key_columns)))
    assert guess.options[-1] == f"'key_columns': {key_columns}"
    assert guess.attributes == []


def test_candidates_for_the_key() -> None:
    macros = project().macros
    tables = {"a": CUSTOMERS | {"shop_no": "int"}, "b": PROFILES}
    assert macros._key_candidates(tables) == ["customer_id"]
    with pytest.raises(CompilerError, match=r"names of models, or schema.table"):
        macros.generate_model([])


RULES = {
    "first_present": "the value of the first one that has the key, even if it is NULL",
    "most_recent_row": "of the values that are not NULL, the one whose source row starts last",
}


@pytest.mark.parametrize("rule", RULES)
def test_lineage_of_an_attribute(rule: str) -> None:
    attributes = {"name": {"from": ["crm", "erp.label"], "rule": rule, "scd_type": 1}, "tier": {"from": "crm"}}
    code = (
        "{{ healing_tables.dimension({'crm': {'relation': relation('crm'), 'changed_at': 'at'}, 'erp': {'relation': "
        f"relation('erp'), 'changed_at': 'at'}}}}, 'id', {attributes!r}, column_names={{'version': 'no'}}) }}}}"
    )
    catalogue = {
        "db.crm": {"id": "int", "at": "date", "name": "string", "tier": "string"},
        "db.erp": {"id": "int", "at": "date", "label": "string"},
    }
    made = Project(catalogue)
    rendering: dict[str, object] = {"explain": None, "node": {"name": "dim", "config": {}}}
    made.context["healing_tables_rendering"] = rendering
    made.render(code)
    rules = made.macros._explained_rules(rendering["spec"])
    assert [made.macros._lineage(each) for each in rules] == [
        f"From crm, erp.label by {rule}: {RULES[rule]}. Type 1: the newest value.",
        "From crm. Type 2: the value at that time.",
    ]
