"""The columns of a merge as SQL: in the order of the stored table, in its types of limited length."""

from __future__ import annotations

from rendering import Project


def test_columns_in_stored_order() -> None:
    stored = {"columns": {"name": "varchar(20)", "id": "int", "old": "string", "points": "varchar(5)"}}
    made = {"id": "int", "name": "string", "city": "string", "points": "int", "old": "string"}
    found = Project({}).macros._in_stored_order(made, stored)
    assert list(found.items()) == [
        ("name", "varchar(20)"),
        ("id", "int"),
        ("old", "string"),
        ("points", "int"),
        ("city", "string"),
    ]
    assert Project({}).macros._in_stored_order(made, {}) == made
