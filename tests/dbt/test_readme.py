"""What the documentation shows is run, in one `dbt build`; see pages.py.

Quick: the README and the page that it leads to. Slow: all pages.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import yaml
from lab import Lab
from pages import PAGES, Example, Table, difference, input_model, read_page
from sessions import ROOT
from third_party import dbt_utils

READ = {name: read_page(name) for name in PAGES}
GROUPS = {"README and three sources": PAGES[:2], "all pages": PAGES}
EXAMPLES = [example for page in READ.values() for example in page.examples]


def groups() -> list[Any]:
    return [pytest.param(name, marks=[pytest.mark.slow] * (name == "all pages")) for name in GROUPS]


def examples(*, with_result: bool = False) -> list[Any]:
    """A group of pages and an example of one of them."""
    return [
        pytest.param(*group.values, example, marks=group.marks, id=f"{example.place}, {group.values[0]}")
        for group in groups()
        for page in GROUPS[group.values[0]]
        for example in READ[page].examples
        if example.result or not with_result
    ]


def files_of(group: str) -> dict[str, str]:
    return {path: text for page in GROUPS[group] for path, text in READ[page].files.items()}


@pytest.fixture(scope="module")
def documented(lab: Lab, request: pytest.FixtureRequest) -> Lab:
    if not (lab.home / "dbt_packages" / "dbt_utils").exists():
        package = dbt_utils()
        lab.write("packages.yml", yaml.safe_dump({"packages": [{"local": str(ROOT)}, {"local": str(package)}]}))
        (lab.home / "dbt_packages" / "dbt_utils").symlink_to(package)
    for page in GROUPS[request.param]:
        for name, table in READ[page].inputs.items():
            lab.write(f"models/{name}.sql", input_model(table))
        for example in READ[page].examples:
            lab.write(f"models/{example.name}.sql", example.sql)
    for path, text in files_of(request.param).items():
        if path not in ("packages.yml", "profiles.yml"):  # the lab has its own
            lab.write(path, text)
    lab.dbt("build")
    return lab


@pytest.fixture(scope="module")
def found(documented: Lab) -> dict[str, list[list[str]]]:
    """What the models that were built hold, as text, in the columns that the page shows."""
    return {
        example.name: found_rows(documented, example)
        for example in EXAMPLES
        if example.result and documented.results.get(example.name, ("none",))[0] == "success"
    }


def found_rows(lab: Lab, example: Example) -> list[list[str]]:
    assert example.result
    frame = lab.spark.table(f"{lab.schema}.{example.name}")
    columns = [frame[f"`{name}`"].cast("string") for name in example.result.header]
    return [["NULL" if cell is None else str(cell) for cell in row] for row in frame.select(*columns).collect()]


def test_names_are_used_once() -> None:
    names = [name for page in READ.values() for name in page.inputs]
    names += [example.name for example in EXAMPLES]
    assert [name for name, count in Counter(names).items() if count > 1] == []
    assert len(examples(with_result=True)) >= 15


@pytest.mark.parametrize("documented, example", examples(), indirect=["documented"])
def test_example(documented: Lab, found: dict[str, list[list[str]]], example: Example) -> None:
    status, message = documented.results[example.name]
    assert status == "success", message
    if example.result:
        assert difference(example.result, found[example.name]) == {}


@pytest.mark.parametrize("documented, example", examples(with_result=True), indirect=["documented"])
@pytest.mark.usefixtures("documented")
def test_a_wrong_cell_is_seen(found: dict[str, list[list[str]]], example: Example) -> None:
    assert example.result
    rows = found[example.name]
    for number, row in enumerate(example.result.rows):
        for column in range(len(row)):
            wrong = [list(cells) for cells in example.result.rows]
            wrong[number][column] = "0000…" if row[column].endswith("…") else f"{row[column]}0"
            assert difference(Table(example.result.header, wrong), rows), (number, column)
    assert difference(Table(example.result.header, example.result.rows[1:]), rows)


@pytest.mark.parametrize(
    "group, documented",
    [pytest.param(*group.values, *group.values, marks=group.marks) for group in groups()],
    indirect=["documented"],
)
def test_files_are_used_and_their_tests_pass(documented: Lab, group: str) -> None:
    files = files_of(group).values()
    nodes = set(documented.results) - {example.name for example in EXAMPLES}
    nodes -= {name for page in READ.values() for name in page.inputs}
    wrong = {name: documented.results[name] for name in nodes}
    wrong = {name: end for name, end in wrong.items() if end[0] not in ("pass", "success")}
    assert wrong == {}
    wanted = sum(text.count("- healing_tables.") for text in files)
    wanted += sum(text.count("snapshots:") + text.count("unit_tests:") for text in files)
    assert len(nodes) == wanted
