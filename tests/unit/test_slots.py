"""Slots: the one way in which finished SQL is changed."""

from __future__ import annotations

import re

import pytest
from rendering import CompilerError, Project
from sessions import ROOT

SQL = "select /* healing_tables n */ 0 /* healing_tables n end */, /* healing_tables n */ 1 /* healing_tables n end */"


def test_fill() -> None:
    macros = Project({}).macros
    assert f"select {macros._slot('n', ' 0 ')}, {macros._slot('n', ' 1 ')}" == SQL
    assert macros._fill_slot(SQL, "n", 7, 2) == "select 7, 7"
    assert macros._has_slot(SQL, "n") and not macros._has_slot(SQL, "m")


@pytest.mark.parametrize(
    ("sql", "times", "got"),
    [
        (SQL, 1, "2"),
        (SQL, 3, "2"),
        ("select 1", 1, "0"),
        ("select /* healing_tables n */ 1", 1, "1"),  # without its end
        ("select /* healing_tables m */ 1 /* healing_tables m end */", 1, "0"),
    ],
)
def test_refused(sql: str, times: int, got: str) -> None:
    with pytest.raises(CompilerError, match=rf"healing_tables n \*/ {times} times.*\n +got: +{got}\n"):
        Project({}).macros._fill_slot(sql, "n", "x", times)


def test_only_slots_change_sql() -> None:
    """Only two files contain the text of the comments that the package writes into SQL."""
    named = [
        file.name for file in (ROOT / "macros").rglob("*.sql") if re.search(r"'/\* healing_tables", file.read_text())
    ]
    assert sorted(named) == ["_call.sql", "_slots.sql"]
