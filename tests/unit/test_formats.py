"""The entries of a format, a map of maps: Jinja reads an entry that is not there as false, and says nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from rendering import ROOT, Project

FILES = sorted((ROOT / "macros").rglob("*.sql"))
NAMES = ["delta", "iceberg", "orc", "parquet"]
OWN = {"name", "staging_format"}  # no default
# an entry of a variable or field that holds a format, or of what a macro returns; _format.sql is a file
USE = re.compile(r"(?:\b|_)format(?:\(\w*\))?\.(?!sql\b)(\w+)(?:\.(\w+))?")


def maps(entries: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return {name: entry for name, entry in entries.items() if isinstance(entry, Mapping)}


@pytest.fixture(scope="module")
def macros() -> Any:
    return Project({}).macros


@pytest.mark.parametrize("name", NAMES)
def test_a_format_has_the_entries_of_the_interface(macros: Any, name: str) -> None:
    defaults, found = macros._no_format(), macros._format(name)
    assert set(found) == set(defaults) | OWN
    assert found["name"] == name
    assert {group: set(entries) for group, entries in maps(found).items()} == {
        group: set(entries) for group, entries in maps(defaults).items()
    }


def test_a_format_keeps_the_defaults_of_a_map_that_it_sets_in_part(macros: Any) -> None:
    iceberg = macros._format("iceberg")
    assert iceberg["commits"]["has_ordered_versions"] is False
    assert iceberg["commits"]["may_be_gone"]([], {}) is None
    assert macros._format("orc")["properties"]["change_log"] == {}
    assert macros._format("delta")["commits"]["begin"]("table", 7) == "table"


def uses(text: str) -> Iterator[tuple[str, str | None]]:
    for entry, member in USE.findall(text):
        yield entry, member or None


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_each_use_names_an_entry(macros: Any, file: Any) -> None:
    defaults = macros._no_format()
    groups = maps(defaults)
    wrong = [
        (entry, member)
        for entry, member in uses(file.read_text())
        if entry not in set(defaults) | OWN or (entry in groups and member not in groups[entry])
    ]
    assert wrong == []


def test_uses_are_found() -> None:
    text = "{{ run.format.commits.end(a, b) }} {{ _side_table_format().has_commits }} see _format.sql"
    assert list(uses(text)) == [("commits", "end"), ("has_commits", None)]
    assert sum(len(list(uses(file.read_text()))) for file in FILES) > 70
