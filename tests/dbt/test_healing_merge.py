"""The materialization healing_merge: batches from SQL and Python models, and dbt's manners around the merge."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import Any

import dbt.adapters.spark
import pytest
from dbt.adapters.spark.impl import SparkAdapter as StockAdapter
from lab import Lab

import dbt_healing_tables
from dbt_healing_tables.merging import as_data_frame, merge_batch
from healing_tables import MergeResult, merge
from healing_tables.errors import BatchError

COLUMNS = [["id", "int"], ["name", "string"], ["tier", "string"]]
FIRST: list[list[Any]] = [[1, "Ann", "gold"], [2, "Cid", "gold"]]
SECOND: list[list[Any]] = [[1, "Bea", "gold"], [2, "Cid", "gold"], [3, "Eve", "new"]]
MERGED = [
    (1, "Ann", False),
    (1, "Bea", True),
    (2, "Cid", True),
    (3, "Eve", True),
]
SOURCES = """
version: 2
sources: [{name: raw, schema: %s, tables: [{name: players}, {name: no_key}, {name: tied}]}]
models:
  - name: dim_sql
    data_tests: [healing_tables.temporal_integrity]
    columns:
      - name: id
        data_tests:
          [healing_tables.no_overlaps, healing_tables.no_gaps,
           healing_tables.valid_order, healing_tables.single_current,
           healing_tables.no_consecutive_duplicates]
  - name: dim_py
    data_tests: [{healing_tables.single_current: {arguments: {key_columns: id}}}]
  - name: dim_full
    description: Who's ${who}
    columns: [{name: name, description: What they are called}]
"""
# the first line is blank, which dbt strips
pytestmark = pytest.mark.slow
PYTHON = """
import pyspark.sql.functions as f


def model(dbt, session):
    dbt.config(materialized="healing_merge", unique_key="id", meta=%r)
    return dbt.source("raw", "players").where(f.col("id") > 0)
"""
ATTRIBUTES = {"healing_tables": {"attributes": {"name": 2, "tier": 2}}}


def batch(lab: Lab, name: str, table: str = "players", **config: Any) -> None:
    settings = {"unique_key": "id", "meta": ATTRIBUTES, **config}
    lab.model(
        name,
        f"select * from {{{{ source('raw', '{table}') }}}}",
        materialized="healing_merge",
        **settings,
    )


def commits(lab: Lab, name: str) -> list[str]:
    """The operations of the table's commits, newest first."""
    history = lab.spark.sql(f"describe history {lab.schema}.{name}").collect()
    return [row["operation"] for row in history]


def progress(lab: Lab, name: str) -> list[str]:
    return [text for text in lab.log if text.startswith("healing_merge ") and f"{name}: " in text]


@pytest.fixture(scope="module")
def merged(lab: Lab) -> Lab:
    """The same dimension from SQL and Python models, over two batches; dim_py gets the second one twice."""
    lab.write("models/schema.yml", SOURCES % lab.schema)
    batch(lab, "dim_sql")
    lab.write("models/dim_py.py", PYTHON % ATTRIBUTES)
    batch(
        lab,
        "dim_full",
        alias="dim_other_name",
        schema="marts",
        tags=["nightly"],
        partition_by="is_current",
        location_root=str(lab.home / "elsewhere"),
        tblproperties={"delta.enableChangeDataFeed": "true"},
        persist_docs={"relation": True, "columns": True},
        pre_hook="create table if not exists {{ target.schema }}.hooked (name string) using parquet",
        post_hook="insert into {{ target.schema }}.hooked select '{{ this.identifier }}'",
    )
    side_tables = {"change_log": "said_of_logged", "audit": {"table": "changes_of_logged"}}
    batch(
        lab,
        "dim_logged",
        tags=["nightly"],
        meta={"healing_tables": ATTRIBUTES["healing_tables"] | side_tables},
    )
    batch(
        lab,
        "dim_four",
        tags=["nightly"],
        meta={"healing_tables": {"attributes": {"*": 4}, "log_schema": f"{lab.schema}_logs"}},
    )
    options = {"attributes": {"name": 2}, "changed_at": "seen", "log_schema": f"{lab.schema}_logs"}
    lab.model(
        "dim_timed",
        "select id, name, current_timestamp() as seen from {{ source('raw', 'players') }}",
        materialized="healing_merge",
        unique_key="id",
        tags=["nightly"],
        meta={"healing_tables": options},
    )
    batch(
        lab,
        "dim_orc",
        tags=["nightly"],
        file_format="orc",
        meta={"healing_tables": ATTRIBUTES["healing_tables"] | {"key_buckets": 4}},
    )
    lab.table("no_key", COLUMNS, [[None, "Nil", "gold"]])
    lab.table("tied", COLUMNS, [[1, "Ann", "gold"], [1, "Bea", "gold"]])
    everything = ["dim_sql", "dim_py", "tag:nightly"]
    lab.writes_artifacts = True
    for rows, selected in ((FIRST, everything), (SECOND, everything), (SECOND, ["dim_py"])):
        lab.table("players", COLUMNS, rows)
        lab.dbt("build", "--select", *selected)
        assert {status for status, _ in lab.results.values()} == {"success", "pass"}, lab.results
        lab.notes.setdefault("progress", []).extend(progress(lab, "dim_py"))
        lab.notes.setdefault("commits", []).append(str(len(commits(lab, "dim_py"))))
    lab.notes["run"] = [(lab.home / "target" / "run_results.json").read_text()]
    return lab


@pytest.mark.parametrize("name", ["dim_sql", "dim_py"])
def test_batches_of_both_languages_become_versions(merged: Lab, name: str) -> None:
    assert merged.results[name][0] == "success", merged.results[name]
    assert merged.rows(name, "id", "name", "is_current") == MERGED


def test_a_hive_table_is_made_and_merged_into(merged: Lab) -> None:
    assert merged.rows("dim_orc", "id", "name", "is_current") == MERGED
    details = {row[0]: row[1] for row in merged.spark.sql(f"describe table extended {merged.schema}.dim_orc").collect()}
    assert (details["Provider"], details["Type"]) == ("orc", "EXTERNAL")
    log = merged.spark.table(f"{merged.schema}.healing_log").where("dimension = 'dim_orc'").orderBy("started_at")
    assert [(row.status, row.rows_added) for row in log.collect()] == [("published", 2), ("published", 2)]


def test_each_attempt_that_was_retried_has_a_row_in_the_log(merged: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    def after_two_others(*args: Any, **options: Any) -> MergeResult:
        return replace(merge(*args, **options), attempts=3)

    monkeypatch.setattr("dbt_healing_tables.merging.merge", after_two_others)
    assert merged.dbt("run", "--select", "dim_orc")["dim_orc"][0] == "success"
    log = merged.spark.table(f"{merged.schema}.healing_log").where("dimension = 'dim_orc'").orderBy("finished_at")
    lost, lost_again, last = log.collect()[-3:]
    assert (lost.status, lost_again.status) == ("retried", "retried")
    assert last.status in ("published", "unchanged")


def test_a_hive_table_of_someone_else_is_converted_on_request(merged: Lab) -> None:
    sql, name = merged.spark.sql, f"{merged.schema}.theirs"
    sql(f"create table {name} stored as orc as select 1 as id, 'Ann' as name")
    merged.dbt("run-operation", "healing_tables.convert_table", "--args", f"{{dimension: {name}}}")
    details = {row[0]: row[1] for row in sql(f"describe table extended {name}").collect()}
    assert (details["Provider"], details["Type"]) == ("orc", "EXTERNAL")
    assert merged.rows("theirs") == [(1, "Ann")]
    kept = [row.tableName for row in sql(f"show tables in {merged.schema} like 'theirs__before_*'").collect()]
    assert len(kept) == 1 and any(kept[0] in line for line in merged.log), merged.log


def test_an_unchanged_batch_commits_nothing(merged: Lab) -> None:
    first, second, again = merged.notes["commits"]
    assert first != second == again


def test_side_tables_are_beside_the_dimension(merged: Lab) -> None:
    assert merged.results["dim_logged"][0] == "success", merged.results["dim_logged"]
    for name in ("said_of_logged", "changes_of_logged"):
        assert merged.spark.table(f"{merged.schema}.{name}").count() > 0


def test_side_tables_go_to_log_schema(merged: Lab) -> None:
    earlier = merged.spark.table(f"{merged.schema}_logs.dim_four_history")
    assert [(row["id"], row["name"]) for row in earlier.collect()] == [(1, "Ann")]
    assert not merged.spark.catalog.tableExists(f"{merged.schema}.dim_four_history")
    assert merged.spark.table(f"{merged.schema}_logs.dim_timed_changes").count() == 5
    assert not merged.spark.catalog.tableExists(f"{merged.schema}.dim_timed_changes")


def test_the_generic_tests_run_on_it(merged: Lab) -> None:
    found = [status for name, (status, _) in merged.results.items() if "healing_tables_" in name]
    assert found == ["pass"] * 7


def test_each_merge_tells_its_figures(merged: Lab) -> None:
    wanted = ["2 inserted, 0 closed", "2 inserted, 1 closed", "0 inserted, 0 closed"]
    told = [line for line in merged.notes["progress"] if " in the batch: " in line]
    assert [part in text for part, text in zip(wanted, told, strict=True)] == [True] * 3, told
    run = json.loads(merged.notes["run"][0])
    (figures,) = [result["adapter_response"] for result in run["results"] if result["unique_id"] == "model.lab.dim_py"]
    assert [figures[name] for name in ("rows_in_batch", "inserted", "attempts")] == [3, 0, 1]
    assert "commit_version" not in figures


def test_what_dbt_configures_is_honoured(merged: Lab) -> None:
    assert merged.results["dim_full"][0] == "success", merged.results["dim_full"]
    name = f"{merged.schema}_marts.dim_other_name"
    about = {row[0]: row[1] for row in merged.spark.sql(f"describe table extended {name}").collect()}
    assert about["Location"].endswith("elsewhere/dim_other_name")
    assert about["Comment"] == "Who's ${who}"
    assert "delta.enableChangeDataFeed=true" in about["Table Properties"]
    partitions = merged.spark.sql(f"describe detail {name}").collect()[0]["partitionColumns"]
    assert partitions == ["is_current"]
    comments = {field.name: field.metadata.get("comment") for field in merged.spark.table(name).schema}
    assert comments["name"] == "What they are called"
    assert merged.rows("hooked") == [("dim_other_name",)] * 2
    history = merged.spark.sql(f"describe history {name}").collect()
    assert [row["operation"] for row in history].count("CHANGE COLUMN") == 1


@pytest.fixture(scope="module")
def refused(merged: Lab) -> Lab:
    """Everything that must not be merged, after which the tables are as they were."""
    meta = ATTRIBUTES["healing_tables"]
    batch(
        merged,
        "dim_unknown",
        unique_key=None,
        file_format="csv",
        meta={"healing_tables": {"attribute": {"name": 2}}},
    )
    batch(merged, "dim_wrong")
    own: dict[str, Any] = {**meta, "on_tie": "error"}
    batch(merged, "dim_no_key", table="no_key", meta={"healing_tables": own})
    batch(merged, "dim_tied", table="tied", meta={"healing_tables": own})
    on_cluster = 'unique_key="id", submission_method="job_cluster"'
    merged.write("models/dim_cluster.py", (PYTHON % ATTRIBUTES).replace('unique_key="id"', on_cluster))
    own["allow_full_refresh"] = True
    batch(merged, "dim_new", meta={"healing_tables": own})
    # what the models do not say themselves; the other materialization has options there as well
    project = "{healing_tables: {on_tie: last, valid_from_first: 1900-01-01, checks: {}}}"
    names = ["dim_unknown", "dim_wrong", "dim_no_key", "dim_tied", "dim_cluster", "dim_new"]
    merged.dbt("run", "--vars", project, "--select", *names)
    merged.notes["first"] = [row[0] for row in merged.rows("dim_new", "valid_from")]

    merged.dbt("run", "--vars", "{max_removed_keys_ratio: 2}", "--select", "dim_sql")
    merged.results["dim_sql, with a variable"] = merged.results["dim_sql"]

    batch(merged, "dim_new", table="no_key", meta={"healing_tables": own})
    merged.dbt("run", "--full-refresh", "--select", "dim_new")
    merged.results["dim_new, NULL as its key"] = merged.results["dim_new"]
    merged.notes["kept"] = [row[0] for row in merged.rows("dim_new", "name")]
    batch(merged, "dim_new", meta={"healing_tables": own})

    merged.table("players", COLUMNS, [[4, "Fay", "new"]])
    merged.dbt("run", "--full-refresh", "--select", "dim_sql", "dim_full", "dim_new")
    refusals = {name: merged.results[name] for name in ("dim_sql", "dim_full")}

    batch(merged, "dim_sql", meta={"healing_tables": {**meta, "full_batch": True}})
    merged.dbt("run", "--empty", "--select", "dim_sql")
    merged.results |= {
        "dim_sql --empty": merged.results["dim_sql"],
        **{f"{name} --full-refresh": result for name, result in refusals.items()},
    }
    return merged


@pytest.mark.slow
def test_a_full_refresh_of_type_4_drops_the_history_of_quoted_names(lab: Lab) -> None:
    target = f"`{lab.schema}`.`dim_quoted`"
    settings: dict[str, Any] = {
        "target": target,
        "file_format": None,
        "at": None,
        "spec": {"key_columns": "id", "attributes": {"name": 4}},
        "cluster_by": [],
        "table": {},
        "is_empty": False,
        "is_partial": False,
        "batch_id": "b",
    }
    before = f"`{lab.schema}`.`dim_quoted__before_b`"
    replaced = {"target": target, "before": before, "is_view": False, "is_kept": False}
    for name, refresh in (("a", None), ("b", None), ("c", replaced)):
        sql = f"select 1 as id, '{name}' as name"
        merge_batch({**settings, "sql": sql, "replaced": refresh}, lab.spark, None)
    assert [row.name for row in lab.spark.table(target).collect()] == ["c"]
    assert lab.spark.table(f"`{lab.schema}`.`dim_quoted_history`").isEmpty()


def test_mistakes_in_the_configuration_come_together(refused: Lab) -> None:
    status, message = refused.results["dim_unknown"]
    assert status == "error"
    for part in [
        "healing_merge() in model dim_unknown has 3 mistakes; nothing was written",
        "1. meta.healing_tables.attribute\n",
        "2. unique_key\n",
        "3. file_format\n",
        "remedy: set unique_key",
    ]:
        assert part in message, message


def test_options_come_from_the_project_too(refused: Lab) -> None:
    """An unquoted moment in YAML is a date."""
    assert refused.notes["first"] == ["1900-01-01 00:00:00"] * 3


def test_a_run_may_open_the_guard(refused: Lab) -> None:
    """Its variable reaches the library, which says what it may be."""
    status, message = refused.results["dim_sql, with a variable"]
    assert status == "error" and "max_removed_keys_ratio" in message, message


@pytest.mark.parametrize("name, part", [("dim_wrong", "on_tie"), ("dim_tied", "two different rows")])
def test_the_librarys_own_message_is_not_buried(refused: Lab, name: str, part: str) -> None:
    status, message = refused.results[name]
    assert status == "error"
    assert message.startswith(f"Runtime Error in model {name} (models/{name}.sql)\n  ")
    assert part in message
    assert "Traceback" not in message


def test_a_platform_that_cannot_merge_gets_one_error(refused: Lab) -> None:
    status, message = refused.results["dim_cluster"]
    assert status == "error"
    assert "model dim_cluster has 1 mistake" in message
    assert "method: session" in message


def test_a_full_refresh_would_lose_history(refused: Lab) -> None:
    status, message = refused.results["dim_sql --full-refresh"]
    assert status == "error"
    assert "--full-refresh" in message
    assert "meta.healing_tables.allow_full_refresh: true" in message
    assert refused.rows("dim_sql", "id", "name", "is_current") == MERGED


def test_a_full_refresh_on_purpose_begins_with_the_batch(refused: Lab) -> None:
    assert refused.results["dim_new"][0] == "success", refused.results["dim_new"]
    assert refused.rows("dim_new", "id", "name", "is_current") == [(4, "Fay", True)]


def test_a_full_refresh_looks_at_the_batch_before_the_table_goes(refused: Lab) -> None:
    status, message = refused.results["dim_new, NULL as its key"]
    assert status == "error" and "NULL in key column id: 1 row" in message, message
    assert refused.notes["kept"] == ["Bea", "Cid", "Eve"]


def test_files_that_outlive_their_table_are_no_full_refresh(refused: Lab) -> None:
    assert "remove its files" in refused.results["dim_full --full-refresh"][1]


def test_an_empty_batch_closes_nothing(refused: Lab) -> None:
    """--empty takes no rows; that does not mean that the keys are gone."""
    status, message = refused.results["dim_sql --empty"]
    assert status == "success", message
    assert refused.rows("dim_sql", "id", "name", "is_current") == MERGED


def test_without_the_library_a_sql_model_merges_by_sql(refused: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dbt.adapters.spark.Plugin, "adapter", StockAdapter)
    monkeypatch.setattr(dbt_healing_tables.plugins[0], "initialize", lambda self: None)
    refused.dbt("run", "--select", "dim_new", "dim_py")
    assert refused.results["dim_new"][0] == "success"
    assert refused.spark.table(f"{refused.schema}.dim_new_changes").where("merge_id like 'sql-%'").count() == 1
    status, message = refused.results["dim_py"]
    assert status == "error"
    assert "model dim_py has 1 mistake" in message
    assert "remedy: install the Python library in dbt's environment, see docs/merging.md" in message
    assert "or write it as a SQL model, which needs no library" in message


@pytest.mark.filterwarnings("ignore:.*Arrow optimization")
def test_a_model_may_return_pandas(merged: Lab) -> None:
    frame = as_data_frame(merged.spark.range(1).toPandas(), merged.spark)
    assert [tuple(row) for row in frame.collect()] == [(0,)]


def test_a_model_that_returns_no_data_frame_is_refused(merged: Lab) -> None:
    with pytest.raises(BatchError, match="(?s)returned no batch.*got:    list.*remedy: return the"):
        as_data_frame([1, 2], merged.spark)


def test_each_merge_has_a_row_in_the_log(refused: Lab) -> None:
    rows = refused.spark.sql(
        f"select * from {refused.schema}.healing_log where dimension = 'dim_sql' order by finished_at"
    ).collect()
    assert {row["mode"] for row in rows} == {"merge"}
    first = rows[0]
    assert (first["status"], first["publish"], first["rows_added"]) == (
        "published",
        "merge",
        len(FIRST),
    )
    assert first["version_before"] is None and first["version_after"] is not None
    # those that are refused before they begin, by the configuration, have none
    assert {row["status"] for row in rows} >= {"published", "unchanged"}
    failed = refused.spark.sql(
        f"select status, reason from {refused.schema}.healing_log where dimension = 'dim_tied'"
    ).collect()
    assert {row["status"] for row in failed} == {"refused"}
    hashed = hashlib.md5(b"id = 1").hexdigest()  # the log names no key
    assert failed[0]["reason"].startswith(f"two different rows for one key and moment: key {hashed}")


def test_rows_that_are_set_aside_are_in_the_log(refused: Lab) -> None:
    assert refused.results["dim_no_key"][0] == "success", refused.results["dim_no_key"]
    assert refused.rows("dim_no_key", "id") == []
    assert refused.rows("dim_no_key__set_aside", "name", "reason") == [("Nil", "NULL in key column id")]
    query = f"select rows_set_aside, rows_unchanged from {refused.schema}.healing_log where dimension = 'dim_no_key'"
    assert [tuple(row) for row in refused.spark.sql(query).collect()] == [(1, 0)]


def test_history_shows_all_dimensions(refused: Lab) -> None:
    refused.dbt("run-operation", "healing_tables.history", "--args", "{limit: 100}")
    lines = [line.split("|") for line in refused.log if " | " in line]
    assert [cell.strip() for cell in lines[0][:3]] == ["dimension", "finished (UTC)", "mode"]
    assert {"dim_sql", "dim_py"} <= {line[0].strip() for line in lines[1:]}
