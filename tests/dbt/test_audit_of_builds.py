"""The audit of a healing_table: after each publish, the rows that it has added, without those that it has removed, are
those of the table."""

from __future__ import annotations

from typing import Any

import pytest
from audits import AUDIT, CALL, KEYS, begin, beside_audit, publishes, tell, write
from dying_dbt import dies_after
from known import check_known_at
from lab import Lab
from sessions import FORMAT

pytestmark = pytest.mark.usefixtures("interpreted")


@pytest.fixture(autouse=True)
def crm(lab: Lab) -> None:
    begin(lab)


def test_each_publish(lab: Lab) -> None:
    name = "dim"
    builds: list[dict[str, Any]] = []

    def build(*args: str) -> list[dict[str, Any]]:
        """What the build has added to the audit."""
        known = len(builds)
        row = lab.build(name, *args)
        found = publishes(lab, name)
        builds[:] = found
        assert beside_audit(lab.spark, f"{lab.schema}.{name}") == {}
        assert all(one["build"] == row["invocation_id"] for one in found[known:] if one["by"] == "night")
        return found[known:]

    write(lab, name)
    first = build()
    assert [(one["by"], one["why"], one["rows"]) for one in first] == [
        ("night", "the nightly load", {"insert new": KEYS})
    ]
    assert build() == []
    tell(lab, 2, "1, 3", "Bea")
    tell(lab, 2, "3, 4", "", gone=True)
    (news,) = build()
    assert news["rows"] == {"close changed": 2, "insert changed": 2, "close deleted": 1}
    changed = (
        lab.spark.table(f"{lab.schema}.{name}_audit")
        .where("publish_no = 2")
        .selectExpr("key", "change_type", "changed_columns", "cast(changed_at as date) as day")
    )
    assert {(row.key, row.change_type, str(row.day)) for row in changed.collect()} == {
        ('{"id":1}', "close", "2024-01-02"),
        ('{"id":1}', "insert", "2024-01-02"),
        ('{"id":2}', "close", "2024-01-02"),
        ('{"id":2}', "insert", "2024-01-02"),
        ('{"id":3}', "close", "2024-01-02"),
    }
    assert {tuple(row.changed_columns) for row in changed.where("change_type = 'close'").collect()} == {
        ("valid_to", "is_current")
    }
    tell(lab, 3, f"4, {KEYS + 1}", "Cid")
    (whole,) = build()
    assert whole["rows"] == {"close changed": KEYS - 3, "insert changed": KEYS - 3}
    assert lab.newest(name)["publish"] == "overwrite"
    # somebody corrects the table itself, and the rebuild takes it back
    lab.spark.sql(f"update {lab.schema}.{name} set name = 'Eve' where id = 5 and is_current")
    lab.spark.sql(f"delete from {lab.schema}.{name} where id = 6")
    corrected, deleted, back = build()
    assert [(one["by"], one["why"], one["rows"]) for one in (corrected, deleted)] == [
        ("unknown", None, {"update overwritten": 1}),
        ("unknown", None, {"remove replaced": 2}),
    ]
    assert (back["by"], back["rows"]) == ("night", {"update overwritten": 1, "insert new": 2})
    write(lab, name, mode="heal")
    build()
    tell(lab, 4, "7, 9", "Dan")
    (heal,) = build()
    assert heal["rows"] == {"close changed": 2, "insert changed": 2} and lab.newest(name)["mode"] == "heal"
    write(lab, name, "name", "city", schema="append_new_columns")
    (wider,) = build()
    versions = lab.spark.table(f"{lab.schema}.{name}").count()
    assert wider["rows"] == {"update overwritten": versions}
    write(lab, name, "city", schema="sync_all_columns", max_removed_versions_ratio=1)
    (narrower,) = build()
    assert sum(narrower["rows"].values()) == versions
    assert check_known_at(lab.spark, f"{lab.schema}.{name}") == len(builds)
    # all rows are written, none differs; on Delta, the next build finds that out, once
    assert build("--full-refresh") == []
    for comparisons in (0 if FORMAT == "iceberg" else 1, 0):
        assert build() == []
        assert sum("full outer join" in sql and "version as of" in sql for _, sql in lab.statements) == comparisons


@pytest.mark.parametrize("publish", ["merge", "overwrite"])
def test_a_build_that_is_stopped_after_its_commit(lab: Lab, publish: str) -> None:
    """The next one adds its audit, once, as its own."""
    name = f"stopped_{publish}"
    write(lab, name, publish=publish)
    with dies_after(rf"(create or replace|create) table \S*\.{name}\b"):
        lab.dbt("run", "--select", name)
    lab.build(name)
    assert [one["rows"] for one in publishes(lab, name)] == [{"insert new": KEYS}]
    tell(lab, 2, "1, 3", "Bea")
    changed = "fast_forward" if FORMAT == "iceberg" else rf"(merge into|create or replace table) \S*\.{name}\b"
    with dies_after(changed):
        lab.dbt("run", "--select", name)
    tell(lab, 3, "9, 10", "Cid")
    row = lab.build(name)
    assert beside_audit(lab.spark, f"{lab.schema}.{name}") == {}
    _, stopped, own = publishes(lab, name)
    assert stopped["rows"] == {"close changed": 2, "insert changed": 2}
    assert own["rows"] == {"close changed": 1, "insert changed": 1}
    assert own["build"] == row["invocation_id"] != stopped["build"]


def test_an_audit_without_the_first_build(lab: Lab) -> None:
    name = "later"
    shards: dict[str, Any] = {} if FORMAT == "iceberg" else {"shards": 2}
    write(lab, name, audit={**AUDIT, "first_build": False, "table": "audit_of_later"}, **shards)
    lab.build(name)
    tell(lab, 2, "1, 3", "Bea")
    lab.build(name)
    found = lab.spark.table(f"{lab.schema}.audit_of_later").groupBy("publish_no", "change_type").count()
    assert {tuple(row) for row in found.collect()} == {(1, "close", 2), (1, "insert", 2)}


def test_the_source_that_moved_a_row(lab: Lab) -> None:
    """With `change_source`, the audit names the source that started a version; so does the row that it closes."""
    lab.spark.sql(f"create or replace table {lab.schema}.shop using {FORMAT} as select * from {lab.schema}.crm limit 0")
    lab.model(
        "moved",
        """{{ healing_tables.dimension({
            'crm': {'relation': source('raw', 'crm'), 'changed_at': 'changed_at', 'columns': ['name']},
            'shop': {'relation': source('raw', 'shop'), 'changed_at': 'changed_at', 'columns': ['city']}
        }, column_names={'change_source': 'moved_by', 'change_reason': 'why'}) }}""",
        materialized="healing_table",
        unique_key="id",
        meta={"healing_tables": {"audit": {"source": "nobody"}}},
    )
    lab.build("moved")
    lab.spark.sql(f"insert into {lab.schema}.shop select 1, null, 'Rome', false, date '2024-01-05', now()")
    lab.build("moved")
    found = lab.spark.table(f"{lab.schema}.moved_audit").groupBy("publish_no", "change_type", "source").count()
    assert {tuple(row) for row in found.collect()} == {
        (1, "insert", "crm", KEYS),
        (2, "close", "shop", 1),
        (2, "insert", "shop", 1),
    }


def test_mistakes_in_the_option(lab: Lab) -> None:
    write(lab, "wrong", audit={"actr": "me", "reason": 5, "first_build": "no"})
    lab.dbt("run", "--select", "wrong")
    text = lab.results["wrong"][1]
    for part in ("audit.actr", "audit.reason", "audit.first_build"):
        assert part in text, text
    lab.model(
        "files",
        CALL.format(["name"]),
        materialized="healing_table",
        unique_key="id",
        file_format="parquet",
        meta={"healing_tables": {"audit": {}}},
    )
    lab.dbt("run", "--select", "files")
    assert "whose versions can be compared" in lab.results["files"][1]
