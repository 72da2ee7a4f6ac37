"""What other programs change in a merged dimension is in its audit, with an unknown actor, before the next merge."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from audits import beside_audit
from sessions import FORMAT, with_settings
from tables import Tables

from healing_tables import DimensionSpec, merge

DDL = "id int, name string, mail string"
SPEC: dict[str, Any] = {"key_columns": "id", "attributes": {"name": 2, "mail": 1}, "audit": {"actor": "loader"}}


def publishes(tables: Tables, name: str) -> list[tuple[int, str, Counter[str]]]:
    """The publishes of an audit: number, actor, how many rows of each change."""
    found: dict[int, tuple[int, str, Counter[str]]] = {}
    rows = tables.spark.table(f"{tables.schema}.{name}_audit").orderBy("publish_no").collect()
    for row in rows:
        assert (row.publish_no is None) == (row.published_at is None)
        of_publish = found.setdefault(row.publish_no, (row.publish_no, row.actor, Counter()))
        of_publish[2][f"{row.change_type} {row.change_reason}"] += 1
        assert of_publish[1] == row.actor
    moments = [row.published_at for row in rows]
    assert moments == sorted(moments) and list(found) == list(range(1, len(found) + 1))
    return list(found.values())


def load(tables: Tables, name: str, day: int, rows: list[tuple[Any, ...]], **options: Any) -> None:
    spec = DimensionSpec(**{**SPEC, **options})
    merge(tables.spark.createDataFrame(rows, DDL), f"{tables.schema}.{name}", spec, at=f"2024-01-{day:02d}")


@pytest.mark.parametrize("has_log", [False, True], ids=["plain", "log"])
def test_rows_that_others_change(tables: Tables, has_log: bool) -> None:
    name = f"others_{has_log}".lower()
    table, sql = f"{tables.schema}.{name}", tables.spark.sql
    log = {"change_log": f"{table}_changes"} if has_log else {}
    load(tables, name, 1, [(key, "A", "m") for key in range(1, 6)], **log)
    sql(f"update {table} set mail = 'theirs' where id = 1").collect()
    sql(f"delete from {table} where id = 2").collect()
    sql(f"update {table} set is_current = false, valid_to = date '2024-01-02' where id = 3").collect()
    if FORMAT == "delta":
        sql(f"optimize {table}").collect()
    load(tables, name, 3, [(4, "B", "m")], **log)
    wanted = [
        (1, "loader", Counter({"insert new": 5})),
        (2, "unknown", Counter({"update overwritten": 1})),
        (3, "unknown", Counter({"remove replaced": 1})),
        (4, "unknown", Counter({"close deleted": 1})),
        (5, "loader", Counter({"insert changed": 1, "close changed": 1})),
    ]
    assert publishes(tables, name) == wanted
    assert beside_audit(tables.spark, table) == {}
    load(tables, name, 3, [(4, "B", "m")], **log)
    assert publishes(tables, name) == wanted
    # a column that the dimension gets from someone else
    sql(f"alter table {table} add columns (note string)").collect()
    sql(f"update {table} set note = 'n' where id = 5").collect()
    load(
        tables, name, 4, [(5, "A", "new")], **log, attributes={"name": 2, "mail": 1, "note": 1}, missing_columns="keep"
    )
    assert publishes(tables, name)[5:] == [
        (6, "unknown", Counter({"update overwritten": 1})),
        (7, "loader", Counter({"update overwritten": 1})),
    ]
    [theirs] = tables.spark.table(f"{table}_audit").where("publish_no = 6").collect()
    assert theirs.changed_columns == ["note"] and '"note":"n"' in theirs.new_values


@pytest.mark.skipif(FORMAT != "delta", reason="removes files of a Delta table")
def test_a_version_that_is_gone(tables: Tables, caplog: pytest.LogCaptureFixture) -> None:
    table, sql = f"{tables.schema}.gone", tables.spark.sql
    load(tables, "gone", 1, [(1, "A", "m")])
    sql(f"update {table} set mail = 'theirs'").collect()
    with with_settings(tables.spark, {"spark.databricks.delta.retentionDurationCheck.enabled": "false"}):
        sql(f"vacuum {table} retain 0 hours").collect()
    load(tables, "gone", 2, [(1, "B", "m")])
    assert "gone: its audit lacks version" in caplog.text and "of another writer" in caplog.text
    assert [actor for _, actor, _ in publishes(tables, "gone")] == ["loader", "loader"]


def test_an_audit_begins_with_the_next_merge(tables: Tables) -> None:
    """What was there before is not of others."""
    table = f"{tables.schema}.begun"
    load(tables, "begun", 1, [(1, "A", "m")], audit=None)
    tables.spark.sql(f"update {table} set mail = 'theirs'").collect()
    load(tables, "begun", 2, [(1, "B", "m")])
    assert publishes(tables, "begun") == [(1, "loader", Counter({"insert changed": 1, "close changed": 1}))]
