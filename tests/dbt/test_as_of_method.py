"""as_of() without versions_per_key: which method it chooses for which dimension."""

from __future__ import annotations

import pytest
from lab import Lab

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("interpreted")]
# name: versions of each key, the method that as_of() chooses
COUNTED: dict[str, tuple[list[int], str]] = {
    "few": ([3] * 40, "few"),
    "a_few_more": ([30] * 3, "few"),
    "many": ([31] * 3, "many"),
    "one_key_has_many": ([1] * 500 + [200], "many"),
    "none": ([], "many"),
}
MODEL = """
with sold as (select 1 as id, date '2024-02-01' as at)
{{{{ healing_tables.as_of(
    'sold', api.Relation.create(schema=target.schema, identifier='{}'), 'id', 'at', {{'since': 'valid_from'}}) }}}}
"""


@pytest.fixture(scope="module")
def chosen(lab: Lab, interpreted: None) -> dict[str, str]:
    """The method in the SQL that dbt compiles: a join, or a window over the union."""
    columns = [["id", "int"], ["valid_from", "date"], ["valid_to", "date"]]
    for name, (versions, _) in COUNTED.items():
        rows = [[key, "2024-01-01", "9999-12-31"] for key, number in enumerate(versions) for _ in range(number)]
        lab.table(name, columns, rows)
    lab.spark.sql(f"create view {lab.schema}.a_view as select * from {lab.schema}.few")
    for name in (*COUNTED, "a_view"):
        lab.model(f"sold_{name}", MODEL.format(name))
    lab.dbt("compile")
    folder = lab.home / "target" / "compiled" / "lab" / "models"
    texts = {name: (folder / f"sold_{name}.sql").read_text() for name in (*COUNTED, "a_view")}
    return {name: "few" if "left join" in text else "many" for name, text in texts.items()}


@pytest.mark.parametrize("name, method", [*((name, way) for name, (_, way) in COUNTED.items()), ("a_view", "many")])
def test_versions_are_counted(chosen: dict[str, str], name: str, method: str) -> None:
    assert chosen[name] == method
