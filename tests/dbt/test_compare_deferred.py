"""compare with --defer and --state: what a change of the code would do to the tables of production."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator

import pytest
from lab import Lab
from sessions import FORMAT

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("interpreted")]
TARGET = "{type: spark, method: session, host: localhost, schema: %s, threads: 2}"
RAW = """select * from values
    (1, date '2024-01-01', 'Ann', 'Oslo'), (1, date '2024-02-01', 'Ann', 'Rome'), (1, date '2024-03-01', 'Eve', 'Rome'),
    (2, date '2024-01-01', 'Bea', 'Oslo'), (3, date '2024-01-01', 'Cid', 'Bern')
as changes(id, at, name, city)"""
STG = "select * from {{ ref('raw') }} where id < %d"
PART = "select * from {{ ref('stg') }}"
DIMENSION = """{{ healing_tables.dimension({'crm': {'relation': ref('part'), 'changed_at': 'at'}}, attributes=%s,
    column_types={'id': 'int', 'at': 'date', 'name': 'string', 'city': 'string'}) }}"""
SALES = """select * from values (1, date '2024-02-15', 1L), (1, date '2024-03-15', 2L) as sales(id, sold_at, seen)"""
COVERED = {"dimension": "ref('dim_customer')", "key_columns": "id", "at": "sold_at", "columns": {"seen": "version"}}
# Customer 1 gets a start at 02-01 and loses the one at 03-01; both customers have another text at their first start.
FIGURES = {"stored": "3", "rebuilt": "3", "missing": "1", "superfluous": "1", "different": "2", "keys": "2"}


@pytest.fixture(scope="module")
def changed(lab: Lab, interpreted: None) -> Iterator[Lab]:
    """Production follows the names of customers 1 and 2; the changed model would follow their cities."""
    targets = {"dev": TARGET % lab.schema, "prod": TARGET % f"{lab.schema}_prod"}
    outputs = "".join(f"\n    {name}: {target}" for name, target in targets.items())
    lab.writes_artifacts = True
    # a project of another name, since a lab keeps what was parsed for another target
    lab.write("dbt_project.yml", (lab.home / "dbt_project.yml").read_text().replace("name: lab", "name: shop"))
    lab.write("profiles.yml", f"lab:\n  target: dev\n  outputs:{outputs}\n")
    covered = {"name": "fct_sales", "data_tests": [{"healing_tables.facts_covered": {"arguments": COVERED}}]}
    lab.write("models/schema.yml", json.dumps({"version": 2, "models": [covered]}))
    lab.model("raw", RAW, materialized="table", file_format=FORMAT)
    lab.model("stg", STG % 3)
    lab.model("part", PART, materialized="ephemeral")
    lab.model("fct_sales", SALES, materialized="table", file_format=FORMAT)
    lab.model("dim_customer", DIMENSION % "['name']", materialized="healing_table", unique_key="id")
    found = lab.dbt("run", "--target", "prod")
    assert {status for status, _ in found.values()} == {"success"}, found
    (lab.home / "state").mkdir()
    shutil.copy(lab.home / "target" / "manifest.json", lab.home / "state")
    by_city = "{'name': {'from': 'crm.city'}}"
    lab.model("dim_customer", DIMENSION % by_city, materialized="healing_table", unique_key="id")
    yield lab
    lab.spark.sql(f"drop schema if exists {lab.schema}_prod cascade")


def compared(lab: Lab, *flags: str) -> list[str]:
    """The lines of the comment that have something in them."""
    arguments = json.dumps({"dimension": "dim_customer", "markdown": True})
    lab.dbt("run-operation", "healing_tables.compare", "--args", arguments, *flags)
    assert lab.succeeded, lab.log
    comment = next(text for text in lab.log if text.startswith("### "))
    return [line.strip() for line in comment.split("\n") if line.strip()]


def figures(lines: list[str]) -> dict[str, str]:
    names, values = (line.strip("| ").split(" | ") for line in (lines[1], lines[3]))
    return dict(zip(names, values, strict=True))


def deferring(lab: Lab) -> list[str]:
    return ["--defer", "--state", str(lab.home / "state")]


def test_without_tables_of_its_own_a_target_reads_those_of_production(changed: Lab) -> None:
    lines = compared(changed, *deferring(changed))
    assert lines[0] == f"### {changed.schema}_prod.dim_customer against a rebuild by model dim_customer"
    assert figures(lines) == FIGURES
    assert lines[-1].replace("\\", "") == f"| {changed.schema}_prod.fct_sales | 1 | 0 | 0 |"


def test_a_table_of_this_target_comes_before_that_of_production(changed: Lab) -> None:
    """As in dbt's own commands; here it is behind an ephemeral model, and has one customer more."""
    changed.model("stg", STG % 4)
    changed.dbt("run", "--select", "stg", *deferring(changed))
    try:
        assert figures(compared(changed, *deferring(changed))) == FIGURES | {
            "rebuilt": "4",
            "missing": "2",
            "keys": "3",
        }
        assert figures(compared(changed, *deferring(changed), "--favor-state")) == FIGURES
    finally:
        changed.spark.sql(f"drop view {changed.schema}.stg")
        changed.model("stg", STG % 3)


@pytest.mark.parametrize(
    ("flags", "words"),
    [(["--defer"], ["--defer", "got:    no --state"]), (["--defer", "--state", "models"], ["manifest.json of a run"])],
)
def test_without_a_manifest_nothing_is_compared(changed: Lab, flags: list[str], words: list[str]) -> None:
    changed.dbt("run-operation", "healing_tables.compare", "--args", "{dimension: dim_customer}", *flags)
    assert not changed.succeeded
    for word in words:
        assert any(word in text for text in changed.log), changed.log


def test_its_numbers_are_those_of_the_publication(changed: Lab) -> None:
    """The last test of this file: it changes production."""
    found = figures(compared(changed, *deferring(changed)))
    changed.dbt("run", "--target", "prod", "--select", "dim_customer")
    log = changed.spark.table(f"{changed.schema}_prod.healing_log").orderBy("finished_at").tail(1)[0]
    assert [str(log.rows_added), str(log.rows_removed), str(log.rows_changed)] == [
        found[name] for name in ("missing", "superfluous", "different")
    ]
