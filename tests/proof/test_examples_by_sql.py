"""The examples in python_models as SQL models, where the library cannot run: the same rows after each batch."""

from __future__ import annotations

import pytest
from example_batches import EXPECTED, FACTS, MODELS, Rows, stored
from lab import Lab
from merge_lists import example_model
from ways import without_library

TABLES = [key for key in EXPECTED if key[0] not in FACTS]


@pytest.fixture(scope="module")
def outcome(lab: Lab, interpreted: None) -> dict[tuple[str, int], list[Rows]]:
    for model in MODELS:
        if model.stem not in FACTS:
            lab.write(f"models/{model.stem}.sql", example_model(model).sql[0])
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
