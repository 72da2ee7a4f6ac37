"""Names and values of the columns that a dimension has beside keys and attributes."""

from __future__ import annotations

import pytest
from lab import Lab
from tables import plain_rows

CHANGES = """
select * from values (7, 'Ann', 'Oslo', false, 1), (7, 'Bea', 'Rome', false, 2), (7, 'Bea', 'Rome', true, 3)
as t (id, manager, city, gone, day) lateral view explode(array(date_add(date '2023-12-31', day))) as at
"""
CALL = """{{ healing_tables.dimension(
    {'hr': {'relation': ref('changes'), 'changed_at': 'at', 'deleted_when': 'gone'}}, 'id',
    attributes={'manager': {'scd_type': 3, 'changed_at': true}, 'city': 6}, column_names=%s, deleted_values=%s) }}"""
NAMES = {
    "previous_manager": "manager_before",
    "manager_changed_at": "manager_change_ts",
    "previous_city": "city_before",
    "current_city": None,
    "ended_by_delete": "was_deleted",
    "key_hash": None,
    "row_hash": None,
    "compressed_row_count": None,
}


@pytest.fixture(scope="module")
def compiled(lab: Lab) -> Lab:
    lab.model("changes", CHANGES)
    lab.model("renamed", CALL % (repr(NAMES).replace("None", "none"), "['Y', 'N']"))
    lab.model("misspelt", CALL % ({"previous_managr": "m"}, "['Y', 'N']"))
    lab.model("taken", CALL % ({"previous_manager": "city"}, "['Y', 0]"))
    lab.dbt("run", "--select", "changes")
    lab.dbt("run", "--exclude", "changes")
    return lab


def test_columns_of_types_3_and_6_are_renamed_or_left_out(compiled: Lab) -> None:
    assert compiled.results["renamed"][0] == "success", compiled.results["renamed"]
    frame = compiled.spark.table(f"{compiled.schema}.renamed")
    assert frame.columns == [
        *("id", "manager", "manager_before", "manager_change_ts", "city", "city_before"),
        *("valid_from", "valid_to", "is_current", "version", "was_deleted"),
    ]
    shown = frame.drop("is_current", "version").selectExpr("string(struct(*))")
    assert [row[0] for row in plain_rows(shown)] == [
        "{7, Ann, null, 2024-01-01, Oslo, null, 2024-01-01, 2024-01-02, N}",
        "{7, Bea, Ann, 2024-01-02, Rome, Oslo, 2024-01-02, 2024-01-03, Y}",
    ]


def test_a_name_that_nothing_brings_along(compiled: Lab) -> None:
    status, message = compiled.results["misspelt"]
    assert (status, "column_names.previous_managr" in message) == ("error", True), message
    assert "previous_manager" in message


def test_a_name_that_is_taken_and_values_of_two_types(compiled: Lab) -> None:
    status, message = compiled.results["taken"]
    assert status == "error"
    for part in [
        "2 mistakes",
        "column city",
        "generated column of attribute manager",
        "deleted_values",
    ]:
        assert part in message
