"""What the suites of peers test, as rows: AUTO CDC of Spark, snapshots of dbt, SQLMesh, mack, scd2-utils, AutomateDV.

Scenarios of one shape are merged together: the number of the scenario is a part of the key.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from peers import (
    ORDERS,
    REBUILT,
    REFUSED,
    SCENARIOS,
    SHAPES,
    Scenario,
    batches_in,
    call_of,
    check,
    columns_of,
    expected,
    shown,
    spec_of,
)
from rendered import Rendered
from tables import Tables, plain_rows

from healing_tables import DimensionSpec, HealingTablesError, merge

pytestmark = pytest.mark.slow
# A column that comes with the second batch has an order
IN_ORDERS = [
    (name, order)
    for name, (one, *_) in SHAPES.items()
    for order in (ORDERS[:1] if "first_batch_without" in one["options"] else ORDERS)
]


@pytest.fixture(scope="module")
def rebuilt(rendered: Rendered) -> Rendered:
    for scenario in REBUILT:
        rows = [row for batch in scenario["batches"] for row in batch]
        rendered.view(f"in_{scenario['id']}", scenario["columns"], rows)
        relation = f"api.Relation.create(schema='global_temp', identifier='in_{scenario['id']}')"
        rendered.model(scenario["id"], call_of(scenario, relation, ""))
    return rendered


@pytest.mark.parametrize("scenario", REBUILT, ids=lambda one: one["id"])
def test_rebuild(rebuilt: Rendered, scenario: Scenario) -> None:
    found = plain_rows(rebuilt.made(scenario["id"]), scenario["expected_columns"])
    assert shown(found) == shown(plain_rows(rebuilt.frame(columns_of(scenario), expected(scenario))))


def merged(tables: Tables, name: str, same: Sequence[Scenario], order: str, spec: DimensionSpec) -> None:
    columns = [["scenario", "int"], *same[0]["columns"]]
    without = same[0]["options"].get("first_batch_without", ())
    for place, rows in enumerate(batches_in(order, same)):
        batch = tables.frame(columns, rows)
        merge(batch.drop(*without) if place == 0 else batch, name, spec)


@pytest.mark.parametrize(("shape", "order"), IN_ORDERS)
def test_merge_with_a_log(tables: Tables, shape: str, order: str) -> None:
    name = f"{tables.schema}.{shape}_{order.replace(' ', '_')}"
    merged(tables, name, SHAPES[shape], order, spec_of(SHAPES[shape][0], f"{name}_changes"))
    check(tables, name, SHAPES[shape])


@pytest.mark.parametrize(
    "shape", [name for name, (one, *_) in SHAPES.items() if not {"change_log", "ignore_nulls"} & {*one["options"]}]
)
def test_merge_without_a_log(tables: Tables, shape: str) -> None:
    name = f"{tables.schema}.{shape}_unlogged"
    merged(tables, name, SHAPES[shape], "in order", spec_of(SHAPES[shape][0], change_log=False))
    check(tables, name, SHAPES[shape])


@pytest.mark.parametrize("scenario", [one for one in SCENARIOS if one["id"] in REFUSED[:2]], ids=lambda one: one["id"])
def test_rows_that_are_set_aside(tables: Tables, scenario: Scenario) -> None:
    """Different by design: Spark refuses the whole batch."""
    name = f"{tables.schema}.{scenario['id']}"
    merged(tables, name, [scenario], "in order", spec_of(scenario, change_log=False))
    check(tables, name, [scenario])
    assert tables.spark.table(f"{name}__set_aside").count() == 1


def test_moments_that_are_numbers(tables: Tables) -> None:
    (scenario,) = (one for one in SCENARIOS if one["id"] == "mack_05")
    with pytest.raises(HealingTablesError, match=r"changed_at \(ver\)\n     wanted: a date or a timestamp"):
        merged(tables, f"{tables.schema}.mack_05", [scenario], "in order", spec_of(scenario, change_log=False))
