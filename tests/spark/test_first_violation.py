"""A build that writes directly compares each row with the previous one only: it refuses the same keys as the checks."""

from __future__ import annotations

from itertools import combinations_with_replacement, product

import pytest
from rendered import Rendered

STARTS = [None, "2024-01-01", "2024-01-02", "2024-01-04"]
ENDS = [None, "2024-01-02", "2024-01-03", "2024-01-04", "2024-01-05"]
# Every row with these bounds, and every key of up to three of them
ROWS = list(product(STARTS, ENDS, [True, False]))
KEYS = [rows for size in (1, 2, 3) for rows in combinations_with_replacement(ROWS, size)]
ALL = {"single_current", "no_overlaps", "valid_order", "no_consecutive_duplicates", "no_gaps"}
CHECKS = {
    "all": ALL,
    "gaps_allowed": ALL - {"no_gaps"},
    "only_periods": {"no_overlaps", "valid_order"},
    "overlaps_allowed": ALL - {"no_overlaps"},
    "any_order": ALL - {"valid_order"},
}
REFUSED = """
{{%- set request = {{'relation': 'global_temp.faulty_keys', 'key_columns': ['id'], 'valid_from': 'valid_from',
    'valid_to': 'valid_to', 'is_current': 'is_current', 'current_value': true, 'valid_to_current': {end},
    'tracked': ['name'], 'checks': {checks}}} -%}}
{{%- set failed = [] -%}}
{{%- for check in request.checks -%}}
    {{%- do failed.append('(' ~ healing_tables._is_violated(request, check, {{}}) ~ ')') -%}}
{{%- endfor -%}}
with {{{{ healing_tables._checked_ctes(request, finds='{finds}') }}}}
select distinct key_1 from checked where {{{{ failed | join(' or ') }}}}
"""


@pytest.fixture(scope="module")
def keys(rendered: Rendered) -> Rendered:
    rows = [
        [key, since, until, flag, "ab"[number % 2 and key % 2]]
        for key, rows in enumerate(KEYS)
        for number, (since, until, flag) in enumerate(rows)
    ]
    columns = [["id", "int"], ["valid_from", "date"], ["valid_to", "date"], ["is_current", "boolean"]]
    rendered.view("faulty_keys", [*columns, ["name", "string"]], rows)
    return rendered


@pytest.mark.parametrize("end", ["none", "'2024-01-05'"])
@pytest.mark.parametrize("name", CHECKS)
def test_the_same_keys_are_refused(keys: Rendered, name: str, end: str) -> None:
    refused = {}
    for finds in ("pairs", "rows", "first"):
        keys.model(finds, REFUSED.format(end=end, checks=dict.fromkeys(sorted(CHECKS[name]), True), finds=finds))
        refused[finds] = {row[0] for row in keys.made(finds).collect()}
    assert refused["first"] == refused["rows"] == refused["pairs"]
    assert 0 < len(refused["first"]) < len(KEYS)
