"""Options of dimension() that meet: columns that are named though the default leaves them out, names, values of the
flag."""

from __future__ import annotations

from typing import Any

import pytest
from rendered import Rendered
from tables import plain_rows

pytestmark = pytest.mark.usefixtures("interpreted")
NO_HASHES = "'key_hash': none, 'row_hash': none, 'compressed_row_count': none, 'version': none"
LOG = [
    ["id", "int"],
    ["at", "date"],
    ["status", "string"],
    ["seq", "int"],
    ["date", "date"],
    ["year", "int"],
    ["closed", "date"],
]
ROWS = [
    [1, "2024-01-01", "open", 1, "2023-12-01", 2023, None],
    [1, "2024-01-02", "x", 2, "2023-12-02", 2023, None],
    [1, "2024-01-03", "gone", 3, "2023-12-03", 2023, "2023-12-31"],
]
SOURCE = "'relation': source('raw', 'log'), 'changed_at': 'at'"
END = "9999-12-31"
# Deliveries of 31 January, 1 and 2 February; the second one is bad: it lacks customer 2, and has a wrong name.
DAYS = [["id", "int"], ["country", "string"], ["day", "date"], ["name", "string"], ["is_good", "boolean"]]
DELIVERED: list[list[Any]] = [
    [1, "A", "2024-01-31", "Ann", True],
    [2, "A", "2024-01-31", "Bea", True],
    [1, "A", "2024-02-01", "???", False],
    [1, "A", "2024-02-02", "Ann", True],
    [2, "A", "2024-02-02", "Bea", True],
    [3, "B", "2024-02-02", "Dan", True],
    [None, "B", "2024-02-03", "Eve", True],
]
SNAPSHOTS = "'relation': source('raw', 'days'), 'snapshot_at': 'day'"
WITHOUT_BAD = "'where': \"day <> date '2024-02-01'\""
# name: (arguments, rows as text)
MODELS: dict[str, tuple[str, list[tuple[Any, ...]]]] = {
    "named_though_left_out": (
        (
            f"sources={{'s': {{{SOURCE}, 'tie_break_by': ['seq'], 'deleted_when': \"status = 'gone'\"}}}}, "
            "attributes=['seq', 'status']"
        ),
        [
            (1, 1, "open", "2024-01-01", "2024-01-02", False),
            (1, 2, "x", "2024-01-02", "2024-01-03", False),
        ],
    ),
    "star_and_a_named_one": (
        (
            f"sources={{'s': {{{SOURCE}, 'deleted_when': \"closed <= date '2023-12-31' and year(closed) > 0 and status "
            f'<> \\"seq\\""}}}}, '
            "attributes={'*': 2, 'status': 1}"
        ),
        # closed is named by deleted_when; date and year only look so, and seq stands in quotes
        [
            (1, 1, "2023-12-01", 2023, "x", "2024-01-01", "2024-01-02", False),
            (1, 2, "2023-12-02", 2023, "x", "2024-01-02", "2024-01-03", False),
        ],
    ),
    "key_and_moment_in_columns": (
        f"sources={{'s': {{{SOURCE}, 'columns': ['id', 'at', 'status']}}}}",
        [
            (1, "open", "2024-01-01", "2024-01-02", False),
            (1, "x", "2024-01-02", "2024-01-03", False),
            (1, "gone", "2024-01-03", END, True),
        ],
    ),
    "conditions_that_end_in_comments": (
        (
            f"sources={{'s': {{{SOURCE}, 'where': 'seq > 0 -- all', 'deleted_when': \"status = 'gone' -- it "
            f'left"}}}}, '
            "attributes=['status']"
        ),
        [
            (1, "open", "2024-01-01", "2024-01-02", False),
            (1, "x", "2024-01-02", "2024-01-03", False),
        ],
    ),
    "numbers_as_flags": (
        f"sources={{'s': {{{SOURCE}}}}}, attributes=['status'], current_values=[1, 0]",
        [
            (1, "open", "2024-01-01", "2024-01-02", 0),
            (1, "x", "2024-01-02", "2024-01-03", 0),
            (1, "gone", "2024-01-03", END, 1),
        ],
    ),
    "null_as_a_flag": (
        f"sources={{'s': {{{SOURCE}}}}}, attributes=['status'], current_values=['Y', none]",
        [
            (1, "open", "2024-01-01", "2024-01-02", None),
            (1, "x", "2024-01-02", "2024-01-03", None),
            (1, "gone", "2024-01-03", END, "Y"),
        ],
    ),
    "sources_named_as_columns": (
        (
            f"sources={{'at': {{{SOURCE}}}, 'key_1': {{{SOURCE}}}, 'change_1': {{{SOURCE}}}}}, exists_in=['AT'], "
            "attributes={'status': {'from': ['at', 'key_1', 'change_1'], 'rule': 'most_recent_value'}}"
        ),
        [
            (1, "open", "2024-01-01", "2024-01-02", False),
            (1, "x", "2024-01-02", "2024-01-03", False),
            (1, "gone", "2024-01-03", END, True),
        ],
    ),
    "first_present_of_a_source_named_as_the_moment": (
        (
            f"sources={{'at': {{{SOURCE}, 'where': 'seq > 1'}}, 'crm': {{{SOURCE}}}}}, "
            "attributes={'status': {'from': ['at', 'crm'], 'rule': 'first_present'}}"
        ),
        [
            (1, "open", "2024-01-01", "2024-01-02", False),
            (1, "x", "2024-01-02", "2024-01-03", False),
            (1, "gone", "2024-01-03", END, True),
        ],
    ),
    # 1 and 2 end on 3 February: a row that is set aside, but not excluded, shows that a snapshot was taken
    "a_delivery_that_where_excludes": (
        f"sources={{'s': {{{SNAPSHOTS}, {WITHOUT_BAD}}}}}, attributes=['name']",
        [
            (1, "Ann", "2024-01-31", "2024-02-03", False),
            (2, "Bea", "2024-01-31", "2024-02-03", False),
            (3, "Dan", "2024-02-02", "2024-02-03", False),
        ],
    ),
    # Spark takes `where (is_good)` for an alias
    "a_condition_that_is_a_column": (
        f"sources={{'s': {{{SNAPSHOTS}, 'where': 'is_good'}}}}, attributes=['name']",
        [
            (1, "Ann", "2024-01-31", "2024-02-03", False),
            (2, "Bea", "2024-01-31", "2024-02-03", False),
            (3, "Dan", "2024-02-02", "2024-02-03", False),
        ],
    ),
    "a_calendar_beside_where": (
        (
            f"sources={{'s': {{{SNAPSHOTS}, {WITHOUT_BAD}, 'calendar': source('raw', 'days')}}}}, "
            "attributes=['name'], exists_in=['s']"
        ),
        [
            (1, "Ann", "2024-01-31", "2024-02-01", False),
            (1, "Ann", "2024-02-02", "2024-02-03", False),
            (2, "Bea", "2024-01-31", "2024-02-01", False),
            (2, "Bea", "2024-02-02", "2024-02-03", False),
            (3, "Dan", "2024-02-02", "2024-02-03", False),
        ],
    ),
    # country A has no delivery on 3 February, and B none before 2 February
    "two_sources_of_one_table": (
        (
            f"sources={{'a': {{{SNAPSHOTS}, 'where': \"country = 'A' and name <> '???'\"}}, "
            f"'b': {{{SNAPSHOTS}, 'where': \"country = 'B'\"}}}}, attributes={{'name': {{'from': ['a', 'b']}}}}"
        ),
        [
            (1, "Ann", "2024-01-31", END, True),
            (2, "Bea", "2024-01-31", END, True),
            (3, "Dan", "2024-02-02", "2024-02-03", False),
        ],
    ),
}
FIELDS = "struct<sku:string,variant_id:int>"  # a field that is called like a type without equality


@pytest.fixture(scope="module")
def built(rendered: Rendered) -> Rendered:
    rendered.table("log", LOG, ROWS)
    rendered.table("days", DAYS, DELIVERED)
    for name, (arguments, _) in MODELS.items():
        rendered.model(
            name,
            f"{{{{ healing_tables.dimension(key_columns='id', {arguments}, column_names={{{NO_HASHES}}}) }}}}",
        )
    types = f"{{'id': 'int', 'at': 'date', 'thing': '{FIELDS}'}}"
    rendered.model(
        "fields",
        "with things as (select id, at, named_struct('sku', status, 'variant_id', seq) as thing from {{ source('raw', "
        "'log') }})\n"
        f"{{{{ healing_tables.dimension({{'s': {{'relation': 'things', 'changed_at': 'at'}}}}, 'id', ['thing'], "
        f"column_types={types}) }}}}",
    )
    return rendered


@pytest.mark.parametrize("name", MODELS)
def test_options(built: Rendered, name: str) -> None:
    found = [
        tuple(str(value) if hasattr(value, "isoformat") else value for value in row)
        for row in plain_rows(built.made(name))
    ]
    assert found == sorted(MODELS[name][1], key=repr)


def test_a_field_called_variant_is_no_variant(built: Rendered) -> None:
    assert [row[0][0] for row in plain_rows(built.made("fields"), ["thing"])] == ["gone", "open", "x"]
