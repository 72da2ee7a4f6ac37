"""Bad input: one clear error with everything that is wrong in it, before anything is written."""

from __future__ import annotations

from typing import Any

import pytest
from lab import Lab
from sessions import SPARK

TABLES: dict[str, tuple[list[list[str]], list[list[Any]]]] = {
    "crm": (
        [["id", "int"], ["at", "timestamp"], ["name", "string"], ["seq", "int"]],
        [[1, "2024-01-01 00:00:00", "Ann", 1]],
    ),
    "blank": (
        [["id", "int"], ["at", "timestamp"], ["name", "string"]],
        [[1, "2024-01-01 00:00:00", "a"], [2, "2024-01-01 00:00:00", ""]],
    ),
    "periods": (
        [["id", "int"], ["start", "date"], ["until", "date"], ["name", "string"]],
        [[7, "2024-01-01", "2024-03-01", "a"], [7, "2024-02-01", "2024-04-01", "b"]],
    ),
}
CRM = "'relation': source('raw', 'crm'), 'changed_at': 'at'"
# name: (arguments of dimension(), what the error has to say)
CALLS = {
    "misspelt_condition": (
        f"sources={{'crm': {{{CRM}, 'deleted_when': 'nam = 1', 'where': 'seq'}}}}, exists_in=['cmr']",
        [
            "3 mistakes",
            "sources.crm.deleted_when",
            "wanted: a condition over the columns id, at, name, seq",
            "got:    nam = 1: A column, variable, or function parameter with name `nam` cannot be resolved.",
            "sources.crm.where",
            "exists_in",
        ],
    ),
    "unknown_function": (
        f"sources={{'crm': {{{CRM}, 'where': 'is_big(seq) -- big ones'}}}}",
        ["1 mistake;", "sources.crm.where", "Cannot resolve routine `is_big`"],
    ),
    "not_built": (
        (
            f"sources={{'crm': {{{CRM}}}, 'no': {{'relation': api.Relation.create(schema='nowhere', identifier='no'), "
            f"'changed_at': 'at', 'where': 'id > 1'}}}}"
        ),
        ["1 mistake;", "sources.no.relation", "nowhere.no", "dbt run --select +bad_not_built"],
    ),
    "overlap": (
        "sources={'p': {'relation': source('raw', 'periods'), 'valid_from': 'start', 'valid_to': 'until'}}",
        ["overlapping periods in source p", "id = 7", "2024-02-01"],
    ),
}


# Spark 3.5 raises errors of names in EXPLAIN; later versions return them
IN_A_PLAN = ("misspelt_condition", "unknown_function", "not_built")


@pytest.fixture(scope="module")
def refused(lab: Lab) -> Lab:
    for name, (columns, rows) in TABLES.items():
        lab.table(name, columns, rows)
    tables = ", ".join(f"{{name: {name}}}" for name in TABLES)
    lab.write(
        "models/sources.yml",
        f"version: 2\nsources: [{{name: raw, schema: {lab.schema}, tables: [{tables}]}}]",
    )
    for name, (arguments, _) in CALLS.items():
        lab.model(
            f"bad_{name}",
            f"{{{{ healing_tables.dimension({arguments}) }}}}",
            materialized="healing_table",
            unique_key="id",
        )
    lab.model(
        "bad_meta",
        f"{{{{ healing_tables.dimension(sources={{'crm': {{{CRM}}}}}) }}}}",
        materialized="healing_table",
        unique_key="id",
        meta={
            "healing_tables": {
                "cheks": {},
                "publish": "some",
                "overlap": "a month",
                "max_removed_keys_ratio": 2,
            }
        },
    )
    lab.model(
        "bad_table",
        f"{{{{ healing_tables.dimension(sources={{'crm': {{{CRM}}}}}, key_columns='id', exists_in=['cmr']) }}}}",
        materialized="table",
        meta={"healing_tables": {"atributes": ["name"]}},
    )
    blank = "{'relation': source('raw', 'blank'), 'changed_at': 'at'}"
    for name, column in (("text", "name"), ("time", "valid_from")):
        lab.model(
            f"bad_partition_{name}",
            f"{{{{ healing_tables.dimension(sources={{'blank': {blank}}}) }}}}",
            materialized="healing_table",
            unique_key="id",
            partition_by=column,
        )
    lab.model(
        "bad_alias",
        f"{{{{ healing_tables.dimension(sources={{'crm': {{{CRM}}}}}) }}}}",
        materialized="healing_table",
        unique_key="id",
        alias="bad--alias",
    )
    lab.model("bad_plain_select", "select 1 as id, 'Ann' as name", materialized="healing_table", unique_key="id")
    lab.dbt("run", "--exclude", "bad_table")
    lab.dbt(
        "run",
        "--select",
        "bad_table",
        "bad_meta",
        "--vars",
        "{healing_tables: {on_tye: x, mode: heal}}",
    )
    return lab


@pytest.mark.parametrize("name", CALLS)
def test_refused(refused: Lab, name: str) -> None:
    if name in IN_A_PLAN and SPARK < (4, 0):
        pytest.skip("Spark ends the model with its own error")
    status, message = refused.results[f"bad_{name}"]
    assert status == "error"
    for part in [f"bad_{name}", "wanted:", "got:", "remedy:", *CALLS[name][1]]:
        assert part in message
    assert "Relation" not in message  # a plan of Spark
    assert not refused.spark.catalog.tableExists(f"{refused.schema}.bad_{name}")


def test_a_select_that_calls_no_dimension(refused: Lab) -> None:
    status, message = refused.results["bad_plain_select"]
    assert status == "error"
    for part in [
        "wanted: a call of healing_tables.dimension, or the columns valid_from, valid_to, is_current",
        "got:    a select without valid_from, valid_to, is_current",
    ]:
        assert part in message
    assert "row_hash" not in message
    # what a reader needs is before the stack of macros that dbt adds
    own, stack = message.split("What to change is above.")
    assert "> in macro" not in own
    assert "remedy" not in stack


def test_unknown_option_of_the_materialization(refused: Lab) -> None:
    status, message = refused.results["bad_meta"]
    assert status == "error"
    project = "vars.healing_tables.on_tye"
    wrong = ["meta.healing_tables.cheks", "publish", "overlap", "max_removed_keys_ratio", project]
    for part in ["5 mistakes", *wrong]:
        assert part in message


@pytest.mark.parametrize(
    ("name", "got"),
    [
        ("text", "name, which is the empty text in 1 row"),
        ("time", "valid_from, a timestamp: its text follows the time zone of the session"),
    ],
)
def test_a_partition_that_would_change_its_values(refused: Lab, name: str, got: str) -> None:
    status, message = refused.results[f"bad_partition_{name}"]
    assert status == "error"
    for part in ["partition_by", got, "partition by a date or another column"]:
        assert part in message
    assert not refused.spark.catalog.tableExists(f"{refused.schema}.bad_partition_{name}")


def test_a_table_name_that_dbt_would_have_to_quote(refused: Lab) -> None:
    """Behind the two hyphens would be a comment: another table would be written."""
    status, message = refused.results["bad_alias"]
    assert (status, "letters, digits and underscores" in message) == ("error", True), message
    assert not refused.spark.catalog.tableExists(f"{refused.schema}.bad")


def test_unknown_options_of_any_other_model(refused: Lab) -> None:
    status, message = refused.results["bad_table"]
    assert status == "error"
    wrong = ["meta.healing_tables.atributes", "vars.healing_tables.on_tye", "cmr"]
    for part in ["3 mistakes", *wrong]:
        assert part in message
