"""The examples in python_models as SQL models, where the library cannot run: the same rows after each batch."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest
import yaml
from example_batches import BATCHES, EXPECTED, FACTS, MODELS, Rows, stored
from lab import Lab
from ways import without_library

NOT_IN_DELTA = ("dim_user", *FACTS)
TABLES = [key for key in EXPECTED if key[0] not in NOT_IN_DELTA]


class Recorded:
    """`dbt` and the session of a Python model, which note what the model asks for."""

    def __init__(self) -> None:
        self.options: dict[str, Any] = {}
        self.columns = ""
        self.config = self.read = self

    def __call__(self, **options: Any) -> None:
        self.options |= options

    def meta_get(self, name: str) -> str:
        return name

    def csv(self, path: str, columns: str, **_: Any) -> None:
        self.columns = columns


def described(model: Path) -> dict[str, Any]:
    """`config.meta` of the model in the yml files beside it."""
    for path in model.parent.glob("*.yml"):
        for item in yaml.safe_load(path.read_text())["models"]:
            if item["name"] == model.stem:
                return dict(item["config"]["meta"])
    raise AssertionError(model)


def as_sql(lab: Lab, model: Path) -> None:
    """Write the model in SQL, with the options of the Python model and of its yml."""
    found = Recorded()
    runpy.run_path(str(model))["model"](found, found)
    options, meta = dict(found.options), described(model)
    merged = options.pop("meta", {}).get("healing_tables", {}) | meta.get("healing_tables", {})
    folder = re.search(r"batches/(\w+)/", meta["batch"])
    assert folder
    lab.model(
        model.stem,
        f"select row.* from (select from_csv(value, '{found.columns}', map('mode', 'FAILFAST')) as row "
        f"from text.`{BATCHES / folder[1]}/{{{{ var('batch', 1) }}}}.csv` "
        f"where value not like '{found.columns.split()[0]},%')",
        **options,
        meta={"healing_tables": merged},
    )


@pytest.fixture(scope="module")
def outcome(lab: Lab, interpreted: None) -> dict[tuple[str, int], list[Rows]]:
    for model in MODELS:
        if model.stem not in NOT_IN_DELTA:
            as_sql(lab, model)
    found = {}
    with without_library():
        for batch in (1, 2, 3, 3):
            results = lab.dbt("run", "--vars", f"{{batch: {batch}}}")
            assert {status for status, _ in results.values()} == {"success"}, results
            for table, number in TABLES:
                if number == batch:
                    found[table, number] = [stored(lab, table, header) for header, *_ in EXPECTED[table, number]]
    return found


@pytest.mark.parametrize("table, batch", TABLES, ids=str)
def test_stored_after(outcome: dict[tuple[str, int], list[Rows]], table: str, batch: int) -> None:
    for (_, *rows), found in zip(EXPECTED[table, batch], outcome[table, batch], strict=True):
        assert sorted(found) == sorted(rows)
