"""What the documentation shows is run, in one `dbt build`; see pages.py. Pages that are not QUICK are slow tests."""

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
QUICK = ["README.md", "docs/three-sources.md"]
EXAMPLES = [example for page in READ.values() for example in page.examples]
SHOWN = [example for example in EXAMPLES if example.result]


def marked(examples: list[Example]) -> list[Any]:
    quick = [example for page in QUICK for example in READ[page].examples]
    return [
        pytest.param(example, id=example.place, marks=[pytest.mark.slow] * (example not in quick))
        for example in examples
    ]


@pytest.fixture(scope="module")
def pages(request: pytest.FixtureRequest) -> list[str]:
    """All of them if a slow test of this module runs."""
    mine = [item for item in request.session.items if item.path == request.path]
    return PAGES if any(item.get_closest_marker("slow") for item in mine) else QUICK


@pytest.fixture(scope="module")
def files(pages: list[str]) -> dict[str, str]:
    return {path: text for page in pages for path, text in READ[page].files.items()}


@pytest.fixture(scope="module")
def documented(lab: Lab, pages: list[str], files: dict[str, str]) -> Lab:
    package = dbt_utils()
    lab.write("packages.yml", yaml.safe_dump({"packages": [{"local": str(ROOT)}, {"local": str(package)}]}))
    (lab.home / "dbt_packages" / "dbt_utils").symlink_to(package)
    for page in pages:
        for name, table in READ[page].inputs.items():
            # examples refer to the dimension only: its audit has to be built before it
            audit = f"{name}_audit" if f"{name}_audit" in READ[page].inputs else None
            lab.write(
                f"models/{name}.sql", input_model(table) + f"\n-- depends_on: {{{{ ref('{audit}') }}}}" * bool(audit)
            )
        for example in READ[page].examples:
            lab.write(f"models/{example.name}.sql", example.sql)
    for path, text in files.items():
        if path not in ("packages.yml", "profiles.yml"):  # the lab has its own
            lab.write(path, text)
    lab.dbt("build")
    return lab


@pytest.fixture(scope="module")
def found(documented: Lab) -> dict[str, list[list[str]]]:
    """What the models that were built hold, as text, in the columns that the page shows."""
    built = [example for example in SHOWN if documented.results.get(example.name, ("",))[0] == "success"]
    return {example.name: found_rows(documented, example) for example in built}


def found_rows(lab: Lab, example: Example) -> list[list[str]]:
    assert example.result
    frame = lab.spark.table(f"{lab.schema}.{example.name}")
    columns = [frame[f"`{name}`"].cast("string") for name in example.result.header]
    return [["NULL" if cell is None else str(cell) for cell in row] for row in frame.select(*columns).collect()]


def test_names_are_used_once() -> None:
    names = [name for page in READ.values() for name in page.inputs]
    names += [example.name for example in EXAMPLES]
    assert [name for name, count in Counter(names).items() if count > 1] == []
    assert len(SHOWN) >= 12


@pytest.mark.parametrize("example", marked(EXAMPLES))
def test_example(documented: Lab, found: dict[str, list[list[str]]], example: Example) -> None:
    status, message = documented.results[example.name]
    assert status == "success", message
    if example.result:
        assert difference(example.result, found[example.name]) == {}


@pytest.mark.parametrize("example", marked(SHOWN))
def test_a_wrong_cell_is_seen(found: dict[str, list[list[str]]], example: Example) -> None:
    assert example.result
    rows = found[example.name]
    for number, row in enumerate(example.result.rows):
        for column in range(len(row)):
            wrong = [list(cells) for cells in example.result.rows]
            wrong[number][column] = "0000…" if row[column].endswith("…") else f"{row[column]}0"
            assert difference(Table(example.result.header, wrong), rows), (number, column)
    assert difference(Table(example.result.header, example.result.rows[1:]), rows)


@pytest.mark.parametrize("which", ["quick", pytest.param("all", marks=pytest.mark.slow)])
def test_files_are_used_and_their_tests_pass(documented: Lab, files: dict[str, str], which: str) -> None:
    nodes = set(documented.results) - {example.name for example in EXAMPLES}
    nodes -= {name for page in READ.values() for name in page.inputs}
    wrong = {name: documented.results[name] for name in nodes}
    wrong = {name: end for name, end in wrong.items() if end[0] not in ("pass", "success")}
    assert wrong == {}
    wanted = sum(text.count("- healing_tables.") for text in files.values())
    wanted += sum(text.count("snapshots:") + text.count("unit_tests:") for text in files.values())
    assert len(nodes) == wanted
