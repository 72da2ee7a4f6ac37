"""Facts loaded day by day while their dimension is healed; and keys that facts name before the dimension knows them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from lab import Lab
from pages import blocks_of, table_of
from sessions import ROOT

from healing_tables import as_of

pytestmark = pytest.mark.usefixtures("interpreted")
CHANGES = [
    ["no", "int"],
    ["id", "int"],
    ["at", "timestamp"],
    ["tier", "string"],
    ["gone", "boolean"],
]
SALES = [["no", "int"], ["id", "int"], ["sold_at", "timestamp"], ["amount", "int"]]
# per day: what the source of the dimension said, and what was sold. Late rows, corrections, a deletion, a return.
DAYS: list[tuple[list[list[Any]], list[list[Any]]]] = [
    (
        [
            [1, 1, "2024-01-01 00:00:00", "bronze", False],
            [2, 2, "2024-01-01 00:00:00", "silver", False],
        ],
        [[1, 1, "2024-01-01 10:00:00", 10], [2, 2, "2024-01-01 11:00:00", 20]],
    ),
    (
        [],
        [
            [3, 1, "2024-01-02 10:00:00", 30],
            [4, 2, "2024-01-02 12:00:00", 40],
            [5, 3, "2024-01-02 13:00:00", 50],  # nobody knows customer 3
        ],
    ),
    (
        [
            [3, 1, "2024-01-03 12:00:00", "gold", False],
            [4, 2, "2024-01-02 06:00:00", "gold", False],  # a day late
            [5, 3, "2024-01-02 00:00:00", "bronze", False],  # a day late, and so is the customer
        ],
        [[6, 1, "2024-01-03 13:00:00", 60], [7, 2, "2024-01-03 09:00:00", 70]],
    ),
    (
        [
            [6, 1, "2024-01-03 12:00:00", "silver", False],  # corrects change 3
            [7, 2, "2024-01-04 00:00:00", None, True],
        ],
        [
            [8, 2, "2024-01-04 08:00:00", 80],  # after the end
            [9, 1, "2024-01-01 09:00:00", 90],  # three days late
        ],
    ),
    (
        [
            [8, 2, "2024-01-05 18:00:00", "gold", False],  # is back
            [9, 1, "2024-01-02 06:00:00", "gold", False],  # three days late
        ],
        [
            [10, 4, "2024-01-05 10:00:00", 100],  # never known
            [11, 2, "2024-01-05 18:00:00", 110],  # on the boundary
            [12, 1, "2024-01-04 10:00:00", 120],
        ],
    ),
]
LOOK_UP = "'id', 'sold_at', {'customer_key': 'sk'}"
DIM = """
{{ healing_tables.dimension(
    {'log': {'relation': source('raw', 'changes'), 'changed_at': 'at', 'tie_break_by': 'no', 'deleted_when': 'gone'}},
    attributes=['tier'], surrogate_key='sk'
) }}
"""
FCT = """
with new_sales as (
    select * from {{ source('raw', 'sales') }}
    {%% if is_incremental() %%} where no > (select max(no) from {{ this }}) {%% endif %%}
)
{{ healing_tables.as_of('new_sales', ref('dim_customer'), %s) }}
"""
# The tier of the key that a fact stores.
BY_KEY = """
select coalesce(tier, 'unknown') as tier, sum(amount) as amount
from {0}.fct_sales left join {0}.dim_customer on customer_key = sk group by 1
"""
NAIVE = """
select coalesce(tier, 'unknown') as tier, sum(amount) as amount
from {0}.fct_sales as f left join {0}.dim_customer as d on f.id = d.id and d.is_current group by 1
"""
# By hand: the sales of each tier, looked up in the complete data.
BY_HAND = {
    "bronze": 10 + 50 + 90,
    "silver": 20 + 60 + 120,
    "gold": 30 + 40 + 70 + 110,
    "unknown": 80 + 100,
}


def totals(lab: Lab, query: str) -> dict[str, int]:
    return {row[0]: row[1] for row in lab.spark.sql(query.format(lab.schema)).collect()}


def settings(lab: Lab, *tables: str) -> None:
    raw = {"name": "raw", "schema": lab.schema, "tables": [{"name": name} for name in tables]}
    lab.write("models/schema.yml", json.dumps({"version": 2, "sources": [raw]}))


@pytest.fixture(scope="module")
def figures(lab: Lab, interpreted: None) -> dict[str, dict[str, int]]:
    """Totals by tier: as loaded, re-keyed, by the naive join, and in one pass over all data."""
    settings(lab, "changes", "sales")
    lab.model("dim_customer", DIM, materialized="healing_table", unique_key="id")
    lab.model("fct_sales", FCT % LOOK_UP, materialized="incremental", file_format="delta")
    changes: list[list[Any]] = []
    sales: list[list[Any]] = []
    for heard, sold in DAYS:
        changes, sales = changes + heard, sales + sold
        lab.table("changes", CHANGES, changes)
        lab.table("sales", SALES, sales)
        results = lab.dbt("run")
        assert {status for status, _ in results.values()} == {"success"}, results
    found = {"as loaded": totals(lab, BY_KEY), "naive": totals(lab, NAIVE)}
    rekey(lab, facts="fct_sales", at="sold_at", columns={"customer_key": "sk"})
    found["rekeyed"] = totals(lab, BY_KEY)
    all_sold, dimension = (lab.spark.table(f"{lab.schema}.{name}") for name in ("sales", "dim_customer"))
    once = as_of(all_sold, dimension, "id", "sold_at", "tier", "unknown").groupBy("tier").sum("amount")
    return found | {"one pass": dict(map(tuple, once.collect()))}


def rekey(lab: Lab, **arguments: Any) -> None:
    arguments = {"dimension": "dim_customer", "key_columns": "id"} | arguments
    operation = ["run-operation", "healing_tables.rekey_facts"]
    lab.dbt(*operation, "--args", json.dumps(arguments))
    lab.notes["told"] = [line for line in lab.log if line.startswith("healing_tables.rekey_facts")]


def test_totals_are_those_of_one_pass_over_complete_data(lab: Lab, figures: dict[str, dict[str, int]]) -> None:
    assert figures["one pass"] == BY_HAND
    assert figures["rekeyed"] == BY_HAND
    assert figures["as loaded"] != BY_HAND
    # 3 and 4 moved with their boundaries, 5 was early; the key of 6 stands for the corrected tier
    assert "3 facts changed in one commit" in lab.notes["told"][0]
    assert lab.notes["told"][2].endswith("resolved from unknown    | 1")


def test_the_documented_figures_are_these(figures: dict[str, dict[str, int]]) -> None:
    pages = [table_of(block) for block in blocks_of((ROOT / "docs" / "facts.md").read_text()) if block.kind == "table"]
    (table,) = [table for table in pages if table.header[0] == "tier"]
    shown = {row[0]: [int(cell) for cell in row[1:]] for row in table.rows}
    assert table.header[1:] == ["complete data", "re-keyed", "as loaded", "current rows", "error"]
    assert shown == {
        tier: [
            *[figures[name][tier] for name in ("one pass", "rekeyed", "as loaded", "naive")],
            figures["naive"][tier] - figures["one pass"][tier],
        ]
        for tier in BY_HAND
    }


# Keys that facts name before the dimension knows them.
HEARD = [["id", "int"], ["at", "timestamp"], ["tier", "string"]]
EARLY: list[list[Any]] = [
    [1, 7, "2024-01-10 00:00:00", 1],  # before 7 is known
    [2, 7, "2024-02-01 00:00:00", 1],
    [3, 8, "2024-01-15 00:00:00", 1],
    [4, 9, "2024-01-15 10:00:00", 1],  # 9 is known later, from the 12th on
    [5, 10, "2024-01-15 10:00:00", 1],  # 10 is known later, from the 18th on
    [6, 10, "2024-01-20 00:00:00", 1],
    [7, None, "2024-01-20 00:00:00", 1],
    [8, 11, None, 1],
]
KNOWN: list[list[Any]] = [
    [7, "2024-02-01 00:00:00", "gold"],
    [8, "2024-01-01 00:00:00", "silver"],
]
LATER: list[list[Any]] = [
    [9, "2024-01-12 00:00:00", "bronze"],
    [10, "2024-01-18 00:00:00", "gold"],
]
INFERRED = "healing_tables.inferred_members(source('raw', 'early'), %s, 'id', 'sold_at'%s)"
REBUILT = """
{{ healing_tables.dimension(
    {
        'crm': {'relation': source('raw', 'heard'), 'changed_at': 'at'},
        'inferred': {'relation': ref('inferred'), 'valid_from': 'valid_from', 'valid_to': 'valid_to'}
    },
    attributes={'tier': {'from': ['crm']}, 'is_inferred': {'from': ['inferred']}}, surrogate_key='sk'
) }}
"""
MERGED = """
select id, at, tier, false as is_inferred from {{ source('raw', 'heard') }}
{%% if load_relation(this) is not none %%}
union all
select id, valid_from, null, is_inferred from (
{{ %s }}
)
where valid_to is null
{%% endif %%}
"""
EARLY_FCT = """
with built as (
    {{ healing_tables.as_of(source('raw', 'early'), ref('dim_built'), 'id', 'sold_at', {'built_key': 'sk'}, 'none') }}
)
{{ healing_tables.as_of('built', ref('dim_merged'), 'id', 'sold_at', {'merged_key': 'sk'}, 'none') }}
"""


def tiers(lab: Lab, which: str) -> dict[int, Any]:
    """Fact to tier and flag of the version whose key it stores; none for the unknown member."""
    rows = lab.spark.sql(
        f"select f.no, d.sk, d.tier, d.is_inferred from {lab.schema}.fct_early as f "
        f"left join {lab.schema}.dim_{which} as d on f.{which}_key = d.sk"
    ).collect()
    return {row[0]: None if row[1] is None else (row[2], row[3] is True) for row in rows}


@pytest.fixture(scope="module")
def early(lab: Lab, interpreted: None, figures: object) -> dict[str, dict[int, Any]]:
    settings(lab, "changes", "sales", "heard", "early")
    lab.table("early", SALES, EARLY)
    lab.table("heard", HEARD, KNOWN)
    first = ", valid_from_first='1900-01-01'"
    lab.model("inferred", f"{{{{ {INFERRED % (SOURCE, KNOWN_FROM)} }}}}")
    lab.model("dim_built", REBUILT, materialized="healing_table", unique_key="id")
    meta = {"healing_tables": {"changed_at": "at", "surrogate_key": {"name": "sk"}}}
    merged = MERGED % (INFERRED % ("this", first))
    lab.model("dim_merged", merged, materialized="healing_merge", unique_key="id", meta=meta)
    lab.model("fct_early", EARLY_FCT, materialized="table", file_format="delta")
    lab.dbt("run", "--select", "dim_merged")  # there is nothing yet that could know keys
    ended = lab.dbt("run", "--select", "+fct_early")
    assert {status for status, _ in ended.values()} == {"success"}, ended
    found = {f"{which} early": tiers(lab, which) for which in ("built", "merged")}
    lab.table("heard", HEARD, KNOWN + LATER)
    ended = lab.dbt("run", "--select", "dim_merged", "+dim_built")
    assert {status for status, _ in ended.values()} == {"success"}, ended
    for which in ("built", "merged"):
        rekey(
            lab,
            facts="fct_early",
            dimension=f"dim_{which}",
            at="sold_at",
            columns={f"{which}_key": "sk"},
            unknown="none",
        )
        found[f"{which} later"] = tiers(lab, which)
    return found


SOURCE = "source('raw', 'heard')"
KNOWN_FROM = ", valid_from='at'"
PLACEHOLDER = (None, True)
SEEN = {2: ("gold", False), 3: ("silver", False), 7: None, 8: None}


def test_an_early_fact_has_a_placeholder(early: dict[str, dict[int, Any]]) -> None:
    unknown_keys = dict.fromkeys((4, 5, 6), PLACEHOLDER)
    assert early["built early"] == SEEN | unknown_keys | {1: PLACEHOLDER}
    # a merge gives placeholders to keys that it does not know at all
    assert early["merged early"] == SEEN | unknown_keys | {1: None}


def test_the_next_rekey_resolves_it(early: dict[str, dict[int, Any]]) -> None:
    resolved = SEEN | {4: ("bronze", False), 5: PLACEHOLDER, 6: ("gold", False)}
    assert early["built later"] == resolved | {1: PLACEHOLDER}
    assert early["merged later"] == resolved | {1: None}
