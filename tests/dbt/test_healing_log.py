"""Each build leaves a row in the log, and the next build reads it: when it may heal, and what it cannot heal."""

from __future__ import annotations

import json
import os
import time
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from dbt.adapters.spark import session as dbt_session
from dying_dbt import dies_before
from lab import Lab
from sessions import FORMAT, with_settings

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("interpreted")]
DIM = "{{ healing_tables.dimension({%s}, attributes=['name']) }}"
CRM = (
    "'crm': {'relation': source('raw', '%s'), 'changed_at': 'changed_at', 'deleted_when': 'gone', 'on_tie': 'greatest'}"
)
LOADED = CRM[:-1] + ", 'loaded_at': 'loaded_at'}"
OVERLAPPING = (
    "select 1 as id, 'a' as name, date '2024-01-01' as valid_from, date '9999-12-31' as valid_to, true as is_current "
    "union all select 1, 'b', date '2024-02-01', date '9999-12-31', true"
)


def dim(lab: Lab, name: str, source: str, **config: Any) -> None:
    config |= {"meta": {"healing_tables": {"mode": "heal"} | config.pop("options", {})}}
    lab.model(name, DIM % source, **{"materialized": "healing_table", "unique_key": "id"} | config)


def log(lab: Lab, dimension: str) -> list[dict[str, Any]]:
    rows = lab.spark.sql(
        f"select * from {lab.schema}.healing_log where dimension = '{dimension}' order by finished_at"
    ).collect()
    return [row.asDict(recursive=True) for row in rows]


def newest(lab: Lab, dimension: str) -> dict[str, Any]:
    return log(lab, dimension)[-1]


def run(lab: Lab, name: str, *args: str) -> tuple[str, str]:
    return lab.dbt("run", "--select", name, *args)[name]


def add(lab: Lab, table: str, rows: str, columns: str = "(id, name, gone, changed_at, loaded_at)") -> None:
    lab.spark.sql(f"insert into {lab.schema}.{table} {columns} values {rows}")


def said(lab: Lab) -> str:
    return "\n".join(lab.log)


@pytest.fixture(scope="module")
def built(lab: Lab) -> Lab:
    """Three keys of one version each, in three tables; all dimensions but one built twice, by two threads."""
    columns = "(id int, name string, gone boolean, changed_at date, loaded_at timestamp)"
    for table, properties in (
        ("plain", ""),
        ("fed", "delta.enableChangeDataFeed = true"),
        ("anew", "a = 1"),
    ):
        lab.spark.sql(
            f"create table {lab.schema}.{table} {columns} using {FORMAT}"
            + (f" tblproperties ({properties})" if properties else "")
        )
        add(
            lab,
            table,
            ", ".join(f"({id_}, 'a', false, date '2024-01-01', timestamp '2024-01-01 00:00:00Z')" for id_ in (1, 2, 3)),
        )
    tables = ", ".join(f"{{name: {name}}}" for name in ("plain", "fed", "anew", "typed", "apart"))
    lab.write(
        "models/sources.yml",
        f"sources: [{{name: raw, schema: {lab.schema}, tables: [{tables}]}}]\n",
    )
    dim(lab, "loaded", LOADED % "plain")
    dim(lab, "fed_dim", CRM % "fed")
    dim(lab, "unfed", CRM % "plain")
    dim(lab, "remade", CRM % "anew")
    dim(
        lab,
        "elsewhere",
        CRM % "fed",
        options={"log_schema": f"{lab.schema}_logs"},
        tblproperties={"delta.enableDeletionVectors": "false"},
    )
    lab.model(
        "of_cte",
        "with known as (select * from {{ source('raw', 'fed') }})\n"
        "{{ healing_tables.dimension({'crm': {'relation': 'known', 'changed_at': 'changed_at'}}, "
        "attributes=['name'], column_types={'id': 'int', 'name': 'string', 'changed_at': 'date'}) }}",
        materialized="healing_table",
        unique_key="id",
        meta={"healing_tables": {"mode": "heal"}},
    )
    lab.model(
        "damaged",
        OVERLAPPING,
        materialized="healing_table",
        unique_key="id",
        meta={
            "healing_tables": {
                "tracked_columns": ["name"],
                "column_names": {"version": None, "row_hash": None},
            }
        },
    )
    lab.dbt("run")
    lab.dbt("run", "--exclude", "remade")
    return lab


def test_each_build_has_a_row(built: Lab) -> None:
    first, second = log(built, "loaded")
    wanted = {
        "mode": "rebuild",
        "status": "published",
        "publish": "overwrite",
        "rows_added": 3,
        "rows_changed": 0,
        "rows_removed": 0,
        "rows_unchanged": 0,
        "keys_affected": 3,
        "rows_set_aside": 0,
        "ties_resolved": 0,
        "version_before": None,
        "version_after": 0,
        "reason": "nothing is stored yet",
        "checks": {
            "no_overlaps": 0,
            "valid_order": 0,
            "single_current": 0,
            "no_consecutive_duplicates": 0,
        },
    }
    assert {name: first[name] for name in wanted} == wanted
    mark = json.loads(first["high_water_marks"]["crm"])
    assert mark.pop("newest_commit", "").startswith("1 at 20") == (FORMAT == "delta")
    assert mark == {"loaded_until": "2024-01-01 00:00:00.000000Z", "overlap": mark["overlap"]}
    assert mark["overlap"].startswith("3, ")
    assert second["high_water_marks"] == first["high_water_marks"]
    assert first["started_at"] < first["finished_at"] <= second["started_at"]
    # the overlap reads the rows of the last hour again
    wanted |= {
        "mode": "heal",
        "status": "unchanged",
        "publish": None,
        "rows_added": 0,
        "rows_unchanged": 3,
        "keys_affected": 0,
        "version_before": 0,
        "version_after": 0,
        "reason": None,
        "rows_set_aside": None,
        "ties_resolved": None,
        "checks": None,  # no row was computed
    }
    assert {name: second[name] for name in wanted} == wanted
    assert first["table_id"] == second["table_id"]


def test_a_source_of_the_same_version_has_not_changed(built: Lab) -> None:
    for name in ("fed_dim", "unfed"):
        row = newest(built, name)
        assert (row["mode"], row["status"], row["rows_unchanged"]) == ("heal", "unchanged", 3)
    mark = json.loads(newest(built, "fed_dim")["high_water_marks"]["crm"])
    assert (sorted(mark), mark["has_change_feed"]) == (
        ["has_change_feed", "table_id", "version"],
        True,
    )


def test_a_source_that_only_the_model_can_read(built: Lab) -> None:
    assert len(built.rows("of_cte")) == 3
    row = newest(built, "of_cte")
    assert (row["mode"], row["status"], row["rows_set_aside"]) == ("rebuild", "unchanged", 0)
    assert row["reason"].startswith("source crm is a CTE or an ephemeral model")


def test_a_refused_build_has_a_row_too(built: Lab) -> None:
    assert [(row["status"], row["reason"]) for row in log(built, "damaged")] == [
        ("refused", "failed single_current, no_overlaps")
    ] * 2
    assert newest(built, "damaged")["checks"] == {
        "single_current": 1,
        "no_overlaps": 1,
        "valid_order": 0,
        "no_consecutive_duplicates": 0,
    }
    assert newest(built, "damaged")["rows_set_aside"] == 0  # counted before the checks
    # the log knows the builds whose candidates are there
    assert run(built, "damaged")[0] == "error"
    assert "was killed or is running" not in said(built)


def test_a_warning_that_is_an_error_is_a_refusal(built: Lab) -> None:
    """`--warn-error`: nothing is published, and the log says why."""
    built.spark.sql(
        f"create table {built.schema}.keyless using {FORMAT} as select cast(null as int) as id, 'a' as name, date "
        "'2024-01-01' as changed_at"
    )
    place = f"api.Relation.create(schema='{built.schema}', identifier='keyless')"
    dim(built, "strict", f"'crm': {{'relation': {place}, 'changed_at': 'changed_at'}}")
    status, _ = run(built, "strict", "--warn-error-options", "{error: [JinjaLogWarning]}")
    row = newest(built, "strict")
    assert (status, row["status"], row["rows_set_aside"]) == ("error", "refused", 1), row
    assert "1 row of source crm set aside" in row["reason"]
    assert not built.spark.catalog.tableExists(f"{built.schema}.strict")


def test_a_heal_that_fails_a_check_leaves_its_candidate_only(built: Lab) -> None:
    dim(built, "gapless", LOADED % "apart", options={"checks": {"no_gaps": {}}})
    built.spark.sql(f"create table {built.schema}.apart using {FORMAT} as table {built.schema}.plain")
    assert run(built, "gapless")[0] == "success"
    for moment, gone in (("2024-02-01", "true"), ("2024-03-01", "false")):
        add(built, "apart", f"(3, 'a', {gone}, date '{moment}', timestamp '2024-04-01 00:00:00Z')")
    status, message = run(built, "gapless")
    assert (status, newest(built, "gapless")["mode"]) == ("error", "heal"), message
    assert newest(built, "gapless")["reason"] == "failed no_gaps"
    left = built.spark.sql(f"show tables in {built.schema} like 'gapless__candidate_*'").collect()
    assert len(left) == 1 and left[0]["tableName"] in message


def test_log_schema_is_where_the_log_lies(built: Lab) -> None:
    assert log(built, "elsewhere") == []
    rows = built.spark.table(f"{built.schema}_logs.healing_log").collect()
    assert [(row["dimension"], row["mode"]) for row in rows] == [
        ("elsewhere", "rebuild"),
        ("elsewhere", "heal"),
    ]


def test_without_scripts_one_thread_creates_the_log(built: Lab) -> None:
    """Spark before 4.1 cannot catch the error of the second."""
    for name in ("early_1", "early_2"):
        dim(built, name, CRM % "plain", options={"log_schema": f"{built.schema}_early"})
    with with_settings(built.spark, {"spark.sql.scripting.enabled": "false"}):
        results = built.dbt("run", "--select", "early_1", "early_2")
    assert {status for status, _ in results.values()} == {"success"}, results
    assert built.spark.table(f"{built.schema}_early.healing_log").count() == 2


def test_the_log_does_not_fall_to_pieces(built: Lab) -> None:
    table, few = f"{built.schema}.healing_log", "spark.databricks.delta.autoCompact.minNumFiles"
    rows = built.spark.table(table).count()
    built.spark.conf.set(few, "3")
    try:
        run(built, "loaded")
    finally:
        built.spark.conf.unset(few)
    detail = built.spark.sql(f"describe detail {table}").collect()[0]
    assert detail["numFiles"] == 1
    assert built.spark.table(table).count() == rows + 1
    assert detail["properties"]["delta.dataSkippingNumIndexedCols"] == "0"  # no statistics of 22 columns in each insert


def test_history_prints_the_last_builds(built: Lab) -> None:
    built.dbt("run-operation", "healing_tables.history", "--args", "{dimension: loaded, limit: 1}")
    lines = [line for line in built.log if " | " in line]
    assert [cell.strip() for cell in lines[0].split("|")] == [
        "finished (UTC)", "mode", "status", "publish", "added", "changed", "removed", "unchanged", "set aside",
        "seconds", "version", "reason",
    ]  # fmt: skip
    assert [cell.strip() for cell in lines[-1].split("|")][1:8] == [
        "heal",
        "unchanged",
        "NULL",
        "0",
        "0",
        "0",
        "3",
    ]
    for name in ("elsewhere", f"{built.schema}.elsewhere"):  # its log is in another schema
        built.dbt("run-operation", "healing_tables.history", "--args", f"{{dimension: {name}}}")
        assert len([line for line in built.log if " | rebuild" in line or " | heal" in line]) == 2, name
    built.dbt("run-operation", "healing_tables.history", "--args", "{dimension: nobody}")
    assert "a dimension with a row in lab_test_healing_log.healing_log" in said(built)
    built.dbt("run-operation", "healing_tables.history", "--args", "{dimension: loaded, limit: 0}")
    assert "how many builds, from 1 on" in said(built)


def test_keys_that_a_run_names(built: Lab) -> None:
    """A correction that the marks do not show: the row was loaded long ago."""
    for keys, wanted in (
        ("heal_keys: [2, {id: 3}], heal_where: 'id < 1'", {2, 3}),
        ("heal_since: '2024-01-01'", {1}),
    ):
        for id_ in wanted:
            add(
                built,
                "plain",
                f"({id_}, 'b', false, date '2024-01-05', timestamp '2023-01-01 00:00:00Z')",
            )
        before = newest(built, "loaded")["high_water_marks"]
        assert run(built, "loaded", "--vars", f"{{{keys}}}")[0] == "success"
        row = newest(built, "loaded")
        found = (row["mode"], row["rows_added"], row["rows_changed"])
        assert found == ("heal", len(wanted), len(wanted)), keys
        assert row["high_water_marks"] == before
    assert run(built, "loaded", "--vars", "{heal_keys: [{no: 3}]}")[0] == "error"
    assert "a value of each of id" in built.results["loaded"][1]


OF_TYPED = LOADED.replace("'deleted_when': 'gone', ", "") % "typed"
TYPED = "at string, size decimal(8,2), open boolean, since timestamp"


def test_keys_that_a_run_names_are_found_by_value(built: Lab) -> None:
    """Whatever their types; a key may have a name that the package uses itself."""
    table = f"{built.schema}.typed"
    built.spark.sql(f"create table {table} ({TYPED}, name string, changed_at date, loaded_at timestamp) using {FORMAT}")
    moment = "timestamp '2024-02-01 10:00:00Z'"
    for at in ("n", "s", "e"):
        values = f"'{at}', 7, true, {moment}, 'a', date '2024-01-01', timestamp '2024-01-01 00:00:00Z'"
        add(built, "typed", f"({values})", columns="")
    keys = ["at", "size", "open", "since"]
    dim(built, "typed_dim", OF_TYPED, unique_key=keys)
    assert run(built, "typed_dim")[0] == "success", built.results["typed_dim"]
    listed = "{AT: n, size: 7, open: true, since: 2024-02-01 10:00}"
    otherwise = "{AT: s, size: 7.0, open: true, since: '2024-02-01 10:00:00'}"
    for number, (keys_named, changed) in enumerate(
        [
            (f"heal_keys: [{listed}, {otherwise}]", 2),
            ("heal_keys: [], heal_where: \"at = 's' -- south\"", 1),
            ("heal_since: '2024-01-01'", 3),
            ("heal_where: open", 3),
        ]
    ):
        built.spark.sql(f"update {table} set name = 'b{number}'")
        assert run(built, "typed_dim", "--vars", f"{{{keys_named}}}")[0] == "success", keys_named
        row = newest(built, "typed_dim")
        found = (row["mode"], row["rows_changed"], row["rows_unchanged"])
        assert found == ("heal", changed, 3 - changed), (keys_named, row)
    assert run(built, "typed_dim", "--vars", "{heal_since: '2024-02-30'}")[0] == "error"
    assert "a moment in UTC" in built.results["typed_dim"][1]


def test_a_load_time_that_is_still_to_come_hides_nothing(built: Lab) -> None:
    when = "timestamp '{} 00:00:00Z'"
    add(built, "typed", f"('w', 1, true, null, 'x', date '2024-01-01', {when.format('2999-01-01')})", columns="")
    dim(built, "clocks", OF_TYPED, unique_key="at")
    assert run(built, "clocks")[0] == "success", built.results["clocks"]
    add(built, "typed", f"('n', 7, true, null, 'y', date '2024-01-09', {when.format('2024-01-02')})", columns="")
    assert run(built, "clocks")[0] == "success", built.results["clocks"]
    assert newest(built, "clocks")["mode"] == "heal"
    assert ("n", "y") in built.rows("clocks", "at", "name")


def test_a_deletion_in_the_change_feed_is_news(built: Lab) -> None:
    add(built, "fed", "(4, 'x', false, date '2024-01-07', null)")
    built.spark.sql(f"delete from {built.schema}.fed where id = 1")
    assert run(built, "fed_dim")[0] == "success"
    row = newest(built, "fed_dim")
    figures = (
        "mode",
        "publish",
        "rows_added",
        "rows_changed",
        "rows_removed",
        "rows_unchanged",
        "keys_affected",
    )
    assert [row[name] for name in figures] == ["heal", "merge", 1, 0, 1, 2, 2]
    assert [row[0] for row in built.rows("fed_dim", "id")] == [2, 3, 4]


def test_what_cannot_be_healed_is_rebuilt(built: Lab) -> None:
    def reason(name: str, *args: str) -> str:
        assert run(built, name, *args)[0] == "success", built.results[name]
        row = newest(built, name)
        assert row["mode"] == "rebuild" and row["reason"] in said(built)
        return str(row["reason"])

    add(built, "plain", "(5, 'a', false, date '2024-02-01', timestamp '2024-01-05 00:00:00Z')")
    assert "neither loaded_at nor a change feed" in reason("unfed")
    assert reason("unfed", "--full-refresh") == "--full-refresh"
    built.spark.sql(
        f"create or replace table {built.schema}.anew using {FORMAT} tblproperties (delta.enableChangeDataFeed = true) "
        f"as select * from {built.schema}.plain"
    )
    assert "was recreated since the last build" in reason("remade")
    built.spark.sql(f"restore table {built.schema}.fed to version as of 1")
    assert reason("fed_dim").endswith("it has a commit that is not in its change feed: RESTORE")
    built.spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    built.spark.sql(f"update {built.schema}.fed set name = 'v' where id = 2")
    built.spark.sql(f"vacuum {built.schema}.fed retain 0 hours")
    built.spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")
    assert "a VACUUM may have removed its change data" in reason("fed_dim")
    assert ("v",) in built.rows("fed_dim", "name")
    add(built, "fed", "(3, 'late', false, date '2024-01-03', null)")
    where = built.spark.sql(f"describe detail {built.schema}.fed").collect()[0]["location"]
    for commit in Path(where.removeprefix("file:"), "_delta_log").glob("*.json"):
        os.utime(commit, (time.time() - 8 * 86400,) * 2)
    assert "older than the retention of deleted files" in reason("fed_dim")
    built.spark.sql(f"alter table {built.schema}.fed set tblproperties (delta.enableTypeWidening = true)")
    built.spark.sql(f"alter table {built.schema}.fed add column unread int")
    assert run(built, "fed_dim")[0] == "success"
    built.spark.sql(f"alter table {built.schema}.fed alter column unread type bigint")
    assert "the type of a column may have changed" in reason("fed_dim")
    built.spark.sql(f"alter table {built.schema}.fed alter column id type bigint")
    changed = "the definition, or a type of its sources, has changed since the last build"
    assert reason("fed_dim") == changed
    built.spark.sql(f"update {built.schema}.loaded set name = 'z' where id = 1")
    assert "commits that are not in the log (UPDATE)" in reason("loaded")
    assert ("z",) not in built.rows("loaded", "name")
    dim(
        built,
        "loaded",
        (LOADED % "plain").replace("'deleted_when'", "'where': 'true', 'deleted_when'"),
    )
    assert reason("loaded") == changed
    built.spark.sql(f"drop table {built.schema}.loaded")
    assert reason("loaded") == "nothing is stored yet"
    assert run(built, "loaded")[0] == "success"
    assert newest(built, "loaded")["mode"] == "heal"


def test_what_no_source_tells_is_rebuilt(built: Lab) -> None:
    """Rows beside the call, and conditions on other tables: a heal of some keys would not give what a rebuild gives."""
    call = DIM % (CRM % "fed")
    settings: dict[str, Any] = {"materialized": "healing_table", "unique_key": "id"}
    settings["meta"] = {"healing_tables": {"mode": "heal"}}
    column_list = "id, name, valid_from, valid_to, is_current, row_hash"
    unknown = (
        "-1 as id, 'nobody' as name, date '1900-01-01' as valid_from, date '9999-12-31' as valid_to, "
        "true as is_current, 'x' as row_hash"
    )
    built.model(
        "wrapped",
        f"with known as (\n{call}\n)\nselect {column_list} from known union all select {unknown}",
        **settings,
    )
    built.model("behind", f"select {unknown} union all select {column_list} from (\n{call}\n)", **settings)
    built.model("noted", f"-- one\nwith a as (select 1)\n{call} -- call;\n;", **settings)
    other = "'where': 'id in (select id from {{ source('raw', 'plain') }})'"
    dim(
        built,
        "filtered",
        (CRM % "fed")[:-1] + ", " + other.replace("{{ ", "' ~ ").replace(" }}", " ~ '") + "}",
    )
    dim(built, "aging", (CRM % "fed")[:-1] + ", 'where': 'changed_at < current_date()'}")
    names = ["wrapped", "behind", "noted", "filtered", "aging"]
    for _ in range(2):
        built.dbt("run", "--select", *names)
        assert {built.results[name][0] for name in names} == {"success"}, built.results
    wider = "where or deleted_when of source crm reads more than its own row"
    more = "the model does more than call dimension()"
    assert [newest(built, name)["reason"] for name in names] == [more, more, None, wider, wider]
    assert newest(built, "noted")["mode"] == "heal"


def test_a_sample_does_not_replace_a_whole_table(built: Lab) -> None:
    rows = built.rows("unfed")
    for part in (["--empty"], ["--sample", "3 days"]):
        assert run(built, "unfed", *part)[0] == "error"
        assert "a target that was not built in full" in built.results["unfed"][1]
        assert built.rows("unfed") == rows
    # a table that another materialization has built, and that is to become a dimension
    dim(built, "by_others", CRM % "plain")
    built.spark.sql(f"create table {built.schema}.by_others using {FORMAT} as select 1 as id")
    assert run(built, "by_others", "--empty")[0] == "error"
    assert built.rows("by_others") == [(1,)]
    assert run(built, "unfed", "--empty", "--vars", "{allow_sample: true}")[0] == "success"
    assert (newest(built, "unfed")["mode"], newest(built, "unfed")["high_water_marks"]) == (
        "sample",
        None,
    )
    assert run(built, "unfed", "--empty")[0] == "success"
    assert run(built, "unfed")[0] == "success"
    assert newest(built, "unfed")["reason"] == "the last build was one with --empty or --sample"
    assert built.rows("unfed") == rows


@pytest.mark.parametrize("published_by", ["merge", "overwrite"])
def test_a_build_that_another_writer_overtakes_begins_again(
    built: Lab, monkeypatch: pytest.MonkeyPatch, published_by: str
) -> None:
    """What the other one wrote is no version of the sources: the build that comes after it sets it right."""
    execute = dbt_session.Cursor.execute
    day = {"merge": 1, "overwrite": 2}[published_by]
    add(built, "fed", f"(2, '{published_by}', false, date '2024-03-0{day}', null)")
    target = f"{built.schema}.fed_dim"
    statement = {"merge": f"merge into {target} as t", "overwrite": f"create or replace table {target}\n"}[published_by]
    writes: list[str] = []

    def meanwhile(self: Any, sql: str, *parameters: Any) -> None:
        if statement in sql and not writes:
            writes.append(sql)
            built.spark.sql(f"update {target} set name = 'other' where id = 3")
        execute(self, sql, *parameters)

    rows = len(log(built, "fed_dim"))
    monkeypatch.setattr(dbt_session.Cursor, "execute", meanwhile)
    status, message = run(built, "fed_dim", *(["--full-refresh"] if published_by == "overwrite" else []))
    monkeypatch.undo()
    assert status == "success", message
    told = [text for text in built.log if "found a commit of another writer" in text]
    assert len(told) == 1 and "attempt 1" in told[0] and "UPDATE" in told[0], told
    (lost,) = [row for row in log(built, "fed_dim")[rows:] if row["status"] == "retried"]
    assert len(log(built, "fed_dim")) == rows + 2
    assert "UPDATE" in lost["reason"] and lost["version_after"] is None
    row = newest(built, "fed_dim")
    assert row["status"] == "published"
    assert row["mode"] == "rebuild"
    assert "UPDATE" in row["reason"] or published_by == "overwrite"
    assert (published_by,) in built.rows("fed_dim", "name")
    assert ("other",) not in built.rows("fed_dim", "name")


def test_a_build_that_always_meets_another_writer_gives_up(built: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each attempt has a row to merge: the one that another writer has changed during the last attempt."""
    execute = dbt_session.Cursor.execute
    add(built, "fed", "(2, 'limit', false, date '2024-03-04', null)")
    rows = log(built, "fed_dim")
    keys = cycle((3, 2))

    def meanwhile(self: Any, sql: str, *parameters: Any) -> None:
        if f"merge into {built.schema}.fed_dim as t" in sql:
            table = f"{built.schema}.fed_dim"
            built.spark.sql(f"update {table} set name = concat('other', name) where id = {next(keys)} and is_current")
        execute(self, sql, *parameters)

    monkeypatch.setattr(dbt_session.Cursor, "execute", meanwhile)
    status, message = run(built, "fed_dim")
    monkeypatch.undo()
    assert status == "error"
    assert "30 attempts with such a commit" in message and "(UPDATE)" in message, message
    assert "the table may have rows of both" in message, message
    assert [row["status"] for row in log(built, "fed_dim")[len(rows) :]] == ["retried"] * 29
    assert run(built, "fed_dim")[0] == "success"
    assert ("limit",) in built.rows("fed_dim", "name")
    assert not [row for row in built.rows("fed_dim", "name") if row[0].startswith("other")]


def test_a_build_that_was_killed_is_seen_by_the_next(built: Lab) -> None:
    """It dies after the MERGE and before its row in the log."""
    rows = len(log(built, "fed_dim"))
    add(built, "fed", "(3, 'last', false, date '2024-04-01', null)")
    with dies_before(f"insert into {built.schema}.healing_log"):
        assert run(built, "fed_dim")[0] == "error"
    assert ("last",) in built.rows("fed_dim", "name")
    assert len(log(built, "fed_dim")) == rows
    assert run(built, "fed_dim")[0] == "success"
    row = newest(built, "fed_dim")
    # on Delta the commit names its build
    assert (row["mode"], row["status"]) == ("heal" if FORMAT == "delta" else "rebuild", "unchanged")
    assert FORMAT == "delta" or "commits that are not in the log (MERGE)" in row["reason"]
    add(built, "fed", "(3, 'later', false, date '2024-05-01', null)")
    assert run(built, "fed_dim")[0] == "success"
    assert said(built).count("was killed or is running") == 1
    row = newest(built, "fed_dim")
    assert (row["mode"], row["rows_added"]) == ("heal", 1)


@pytest.mark.parametrize("name, wanted", [("fed_dim", "true"), ("elsewhere", "false")])
def test_a_healed_table_has_deletion_vectors_unless_told_otherwise(built: Lab, name: str, wanted: str) -> None:
    rows = built.spark.sql(f"show tblproperties {built.schema}.{name}").collect()
    assert ("delta.enableDeletionVectors", wanted) in [tuple(row) for row in rows]
    merges = built.spark.sql(f"describe history {built.schema}.{name}").where("operation = 'MERGE'")
    added = [int(row[0]["numTargetDeletionVectorsAdded"]) for row in merges.select("operationMetrics").collect()]
    assert wanted == "false" or sum(added) > 0


def test_a_repair_is_in_the_history_whatever_the_case(built: Lab) -> None:
    name = "Dim_Cap"
    dim(built, name, CRM % "plain")
    assert run(built, name)[0] == "success", built.results[name]
    built.spark.sql(f"update {built.schema}.{name} set is_current = not is_current where id = 1")
    arguments = f"{{dimension: {name}, dry_run: false}}"
    built.dbt("run-operation", "healing_tables.repair", "--args", arguments)
    for asked in (name, name.lower()):
        built.dbt("run-operation", "healing_tables.history", "--args", f"{{dimension: {asked}}}")
        shown = [line.split("|")[1].strip() for line in built.log if " | " in line]
        assert shown[-2:] == ["repair", "rebuild"], built.log
    assert [row["dimension"] for row in log(built, name)] == [name] * 2
