"""The generic tests without arguments: a model of this package says what they need."""

from __future__ import annotations

import json
from typing import Any

import pytest
from lab import Lab

pytestmark = pytest.mark.slow

SOURCE = "sources={'crm': {'relation': ref('changes'), 'changed_at': 'at'%s}}"
NAMES = (
    "column_names={'valid_from': 'effective_from', 'valid_to': 'effective_to', "
    "'is_current': 'active', 'row_hash': 'digest'}"
)
OTHERS = "current_values=['open', 'closed'], valid_to_current=none"
ENDING = SOURCE % ", 'deleted_when': 'is_deleted'"
DELETING = f"dimension({ENDING}, {NAMES}, {OTHERS})"
# key 1 goes and comes back, key 2 goes: a gap, and a key without a current row
CHANGES = """
select * from values
    (1, 'a', false, 1), (1, 'a', true, 2), (1, 'b', false, 3), (1, 'c', false, 4), (2, 'a', false, 1), (2, 'a', true, 2)
as t (id, name, is_deleted, day) lateral view explode(array(timestamp_seconds(day * 86400))) as at
"""


def block(name: str, test: str, **arguments: Any) -> dict[str, Any]:
    return {f"healing_tables.{test}": {"name": name, "arguments": arguments}}


def model(name: str, *tests: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": name, "data_tests": list(tests), **more}


@pytest.fixture(scope="module")
def built(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Lab:
    own: dict[str, Any] = {"materialized": "healing_table", "unique_key": "id"}
    root = str(tmp_path_factory.mktemp("parquet") / "tables")
    plain = f"{{{{ healing_tables.dimension({SOURCE % ''}, attributes=['name']) }}}}"
    deleting = f"{{{{ healing_tables.{DELETING} }}}}"
    lab.model("changes", CHANGES)
    lab.model("dim_deleting", deleting, **own)
    lab.model("dim_parquet", deleting, **own, file_format="parquet", location_root=root)
    lab.model("dim_older", plain, **own)
    lab.model("dim_plain", plain, **own)
    models = [
        model(
            "dim_deleting",
            block("all", "temporal_integrity"),
            block("all_given", "temporal_integrity", at_most_one=False),
            block("current", "single_current"),
            block("current_given", "single_current", at_most_one=False),
            block("overlaps", "no_overlaps"),
            block("gaps_asked", "no_gaps"),
            block("order", "valid_order"),
            block("repeats", "no_consecutive_duplicates"),
            columns=[{"name": "id", "data_tests": [block("column", "temporal_integrity")]}],
        ),
        model("dim_parquet", block("parquet", "temporal_integrity")),
        model("dim_older", block("older", "temporal_integrity")),
        model("dim_plain", block("plain", "temporal_integrity")),
    ]
    lab.write("models/schema.yml", json.dumps({"version": 2, "models": models}))
    lab.dbt("run")
    versions = commits(lab)
    lab.dbt("run", "--select", "dim_deleting")
    lab.notes["commits"] = [str(versions), str(commits(lab))]
    lab.spark.sql(f"alter table {lab.schema}.dim_older unset tblproperties ('healing_tables.spec')")
    lab.spark.sql(f"delete from {lab.schema}.dim_plain where version = 2 and id = 1")
    lab.dbt("test")
    return lab


def commits(lab: Lab) -> int:
    return lab.spark.sql(f"describe history {lab.schema}.dim_deleting").count()


@pytest.mark.parametrize("name", ["all", "current", "overlaps", "order", "repeats", "column", "parquet", "older"])
def test_a_healthy_dimension_passes_without_arguments(built: Lab, name: str) -> None:
    assert built.results[name][0] == "pass", built.results[name]


@pytest.mark.parametrize("name", ["all_given", "current_given", "gaps_asked"])
def test_what_the_test_is_given_wins(built: Lab, name: str) -> None:
    status, message = built.results[name]
    assert (status, message.startswith("Got 1 result")) == ("fail", True), message


def test_gaps_fail_where_no_source_can_delete(built: Lab) -> None:
    status, message = built.results["plain"]
    assert (status, message.startswith("Got 1 result")) == ("fail", True), message


def test_an_unchanged_build_makes_no_commit(built: Lab) -> None:
    before, after = built.notes["commits"]
    assert before == after
