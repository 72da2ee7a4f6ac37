"""healing_table on Iceberg: a build is a branch of the table, and one fast_forward publishes it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import dbt.adapters.spark as dbt_spark
import pytest
from dbt.adapters.spark import session as dbt_session
from dbt_common.exceptions import DbtRuntimeError
from lab import Lab
from sessions import with_settings
from tables import plain_rows

months = count(5)  # of changes that any test adds
pytestmark = pytest.mark.usefixtures("interpreted")
COLUMNS = "id int, name string, points smallint, code varchar(3), at date, loaded timestamp"
CALL = (
    "{{ healing_tables.dimension(sources={'crm': {'relation': api.Relation.create(schema=target.schema, "
    "identifier='crm'), 'changed_at': 'at'%s}}, attributes=['name', 'points', 'code']) }}"
)
LOADED = ", 'loaded_at': 'loaded'"
OPEN = "date '9999-12-31'"
BRANCH = re.compile(r"\S+\.branch_(healing_[0-9a-f]{32})")
# a second open row of key 1 where it asks for it
FAULTY = f"""
select 1 as id, 'a' as row_hash, date '2024-01-01' as valid_from, {OPEN} as valid_to, true as is_current
union all select id, name, at, {OPEN}, true from {{{{ target.schema }}}}.extra
"""


def add(lab: Lab, *rows: str, table: str = "crm") -> None:
    lab.spark.sql(f"insert into {lab.schema}.{table} values {', '.join(rows)}")


def row(key: int, name: str, month: int) -> str:
    return f"({key}, '{name}', 1, 'x', date '2024-{month:02}-01', timestamp '2024-05-{month:02} 00:00:00Z')"


def branches(lab: Lab, name: str) -> list[str]:
    refs = lab.spark.sql(f"select name from {lab.schema}.{name}.refs where name <> 'main'")
    return [row[0] for row in refs.collect()]


def ask(lab: Lab, query: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in lab.spark.sql(query.replace("{s}", lab.schema)).collect()]


def delete_files(lab: Lab, name: str) -> int:
    return int(ask(lab, f"select count_if(content <> 0) from {{s}}.{name}.files")[0][0])


@pytest.fixture(scope="module")
def built(lab: Lab, interpreted: None) -> Lab:
    lab.spark.sql(f"create table {lab.schema}.crm ({COLUMNS}) using iceberg")
    lab.spark.sql(f"create table {lab.schema}.news ({COLUMNS}) using iceberg")
    lab.spark.sql(f"create table {lab.schema}.extra (id int, name string, at date) using iceberg")
    for table in ("crm", "news"):
        add(lab, *[row(key, name, month) for key in range(1, 31) for month, name in ((1, "a"), (2, "b"))], table=table)
    model(lab, "dim")
    model(lab, "copied", tblproperties={"write.merge.mode": "copy-on-write"})
    model(lab, "over", partition_by=["is_current", "bucket(4, id)"], meta={"healing_tables": {"publish": "overwrite"}})
    model(lab, "healed", LOADED, meta={"healing_tables": {"mode": "heal"}})
    lab.model(
        "fed",
        CALL.replace("crm'", "news'") % "",
        materialized="healing_table",
        unique_key="id",
        meta={"healing_tables": {"mode": "heal"}},
    )
    lab.model("faulty", FAULTY, materialized="healing_table", unique_key="id")
    lab.dbt("run")
    assert lab.succeeded, lab.results
    return lab


def model(lab: Lab, name: str, more: str = "", **config: Any) -> None:
    lab.model(name, CALL % more, materialized="healing_table", unique_key="id", **config)


@pytest.fixture
def at_statement(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, Callable[[], object]], None]]:
    """Something that happens once, before the first statement with a text."""
    execute = dbt_session.Cursor.execute

    def patch(text: str, work: Callable[[], object]) -> None:
        works = [work]

        def wait(cursor: Any, sql: str, *parameters: Any) -> None:
            if works and text in sql:
                works.pop()()
            execute(cursor, sql, *parameters)

        monkeypatch.setattr(dbt_session.Cursor, "execute", wait)

    yield patch


def test_a_change_is_merged_into_a_branch(built: Lab, at_statement: Callable[..., None]) -> None:
    before, seen = built.commits("dim"), []
    add(built, row(1, "c", 3))
    at_statement("fast_forward", lambda: seen.append((built.commits("dim"), branches(built, "dim"))))
    found = built.build("dim")
    assert (found["publish"], found["rows_added"], found["rows_changed"]) == ("merge", 1, 1)
    ((commits, at_work),) = seen
    assert commits == before and len(at_work) == 1  # readers saw nothing yet
    assert [version for version, _ in built.commits("dim")] == [*[v for v, _ in before], found["version_after"]]
    assert branches(built, "dim") == []
    own = [sql for _, sql in built.statements if f"{built.schema}.dim" in sql or "fast_forward" in sql]
    verbs = ["create or replace branch", "merge into", "fast_forward", "drop branch"]
    assert [verb for sql in own for verb in verbs if verb in sql] == verbs


def test_unchanged(built: Lab) -> None:
    """Also the small types, which Iceberg stores as larger ones, and the partitions are what they were."""
    for name in ("dim", "over"):
        built.build(name)
        before = built.commits(name)
        found = built.build(name)
        assert found["status"] == "unchanged" and built.commits(name) == before, name
    assert not [sql for _, sql in built.statements if "merge into" in sql or "branch" in sql.split("refs")[0]]


@pytest.mark.slow
def test_both_ways_to_write_a_merge(built: Lab) -> None:
    add(built, row(2, "c", 3))
    for name in ("dim", "copied"):
        built.build(name)
    assert delete_files(built, "dim") > 0
    assert delete_files(built, "copied") == 0


@pytest.mark.slow
def test_all_rows_are_replaced_in_a_branch(built: Lab) -> None:
    """Partitions that have no new rows lose theirs, whatever the session says of overwrites."""
    built.build("over")
    version = built.commits("over")[-1][0]
    built.spark.sql(f"delete from {built.schema}.crm where id > 3")
    with with_settings(built.spark, {"spark.sql.sources.partitionOverwriteMode": "dynamic"}):
        found = built.build("over", "--vars", "{max_removed_keys_ratio: 1, max_removed_versions_ratio: 1}")
    assert found["publish"] == "overwrite" and branches(built, "over") == []
    history = ask(built, "select snapshot_id, is_current_ancestor from {s}.over.history order by made_current_at")
    assert history[-1] == (found["version_after"], True) and (version, True) in history
    add(built, *[row(key, name, month) for key in range(4, 31) for month, name in ((1, "a"), (2, "b"))])


def test_a_refused_build_stays_in_its_branch(built: Lab) -> None:
    before = built.rows("faulty")
    add(built, "(1, 'b', date '2024-02-01')", "(2, 'b', date '2024-02-01')", table="extra")
    status, message = built.dbt("run", "--select", "faulty")["faulty"]
    assert status == "error" and "checks failed" in message
    place = BRANCH.search(message)
    assert place is not None, message
    assert built.rows("faulty") == before
    kept = plain_rows(built.spark.sql(f"select * from {place[0]}"))
    assert kept == plain_rows(built.select("faulty")) and len(kept) == 3
    tables = [row.tableName for row in built.spark.sql(f"show tables in {built.schema}").collect()]
    assert not [name for name in tables if "candidate" in name]
    # the next build drops it
    built.spark.sql(f"delete from {built.schema}.extra where id = 1")
    assert branches(built, "faulty") == [place[1]]
    built.build("faulty")
    assert branches(built, "faulty") == []


@pytest.mark.slow
def test_a_guard_refuses(built: Lab) -> None:
    built.build("dim")
    before = built.rows("dim")
    built.spark.sql(f"create or replace table {built.schema}.kept using iceberg as select * from {built.schema}.crm")
    built.spark.sql(f"delete from {built.schema}.crm where id > 3")
    status, message = built.dbt("run", "--select", "dim")["dim"]
    built.spark.sql(f"insert into {built.schema}.crm select * from {built.schema}.kept where id > 3")
    assert status == "error" and "max_removed_versions_ratio" in message
    place = BRANCH.search(message)
    assert place is not None and built.rows("dim") == before
    assert ask(built, f"select count(distinct id) from {place[0]}") == [(3,)]
    built.build("dim")
    assert branches(built, "dim") == []


@pytest.mark.parametrize(
    "text",
    [
        "merge into",
        *(pytest.param(text, marks=pytest.mark.slow) for text in ("create or replace branch", "current-snapshot-id")),
    ],
)
def test_main_has_moved(built: Lab, at_statement: Callable[..., None], text: str) -> None:
    """Nothing is published that was compared with something else; the build begins again."""
    built.build("dim")
    add(built, row(3, text[:5], next(months)))
    columns = ", ".join(built.spark.table(f"{built.schema}.dim").columns)
    sql = (
        f"insert into {built.schema}.dim ({columns}) select {columns.replace('id,', '99 as id,', 1)} from "
        f"{built.schema}.dim limit 1"
    )
    at_statement(text, lambda: built.spark.sql(sql))
    built.build("dim")
    assert any("found a commit of another writer" in line for line in built.log)
    assert branches(built, "dim") == []


def test_main_moves_at_the_last_moment(built: Lab, at_statement: Callable[..., None]) -> None:
    built.build("dim")
    add(built, row(4, "late", 3))
    at_statement("fast_forward", lambda: built.spark.sql(f"delete from {built.schema}.dim where id = 5"))
    built.build("dim")
    assert any("attempt 1 found a commit of another writer" in line for line in built.log)
    assert branches(built, "dim") == []


@pytest.mark.slow
def test_without_the_library_the_last_moment_is_an_error(
    built: Lab, at_statement: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is published. The next build reports the branch, and drop_candidates drops it."""
    built.build("dim")
    add(built, row(4, "later", 4))
    at_statement("fast_forward", lambda: built.spark.sql(f"delete from {built.schema}.dim where id = 5"))
    with monkeypatch.context() as patch:
        adapter: Any = dbt_spark.Plugin.adapter
        patch.setattr(adapter, "_available_", adapter._available_ - {"healing_tables_try"})
        status, message = built.dbt("run", "--select", "dim")["dim"]
    assert status == "error" and "Cannot fast-forward" in message
    assert ask(built, "select count(*) from {s}.dim where name = 'later' or id = 5") == [(0,)]
    assert len(branches(built, "dim")) == 1
    found = built.build("dim")
    assert any("was killed or is running" in line for line in built.log)
    assert found["rows_added"] > 0
    built.dbt("run-operation", "healing_tables.drop_candidates")
    assert len(branches(built, "dim")) == 1
    built.dbt("run-operation", "healing_tables.drop_candidates", "--args", "{build_hours: 0}")
    assert branches(built, "dim") == []


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["create or replace branch", "fast_forward", "drop branch"])
def test_a_change_of_a_branch_that_iceberg_refuses_is_tried_again(
    built: Lab, at_statement: Callable[..., None], verb: str
) -> None:
    """As it does where anybody else changes the table during that call."""
    built.build("dim")
    add(built, row(4, verb[:4], next(months)))

    def refuse() -> None:
        raise DbtRuntimeError(
            "(org.apache.iceberg.exceptions.CommitFailedException) Table metadata refresh is required"
        )

    at_statement(verb, refuse)
    assert built.build("dim")["rows_added"] == 1
    assert branches(built, "dim") == []


def test_heals(built: Lab) -> None:
    built.build("healed")
    add(built, "(31, 'new', 1, 'x', date '2024-01-01', timestamp '2024-06-01 00:00:00Z')")
    found = built.build("healed")
    assert (found["mode"], found["publish"], found["rows_added"]) == ("heal", "merge", 1)
    # the next one knows this one by its snapshot
    add(built, "(31, 'newer', 1, 'x', date '2024-02-01', timestamp '2024-06-02 00:00:00Z')")
    found = built.build("healed")
    assert (found["mode"], found["rows_added"], found["rows_changed"]) == ("heal", 1, 1)
    assert built.build("healed")["keys_affected"] == 0


@pytest.mark.slow
def test_news_by_the_changes_of_a_source(built: Lab) -> None:
    news = f"{built.schema}.news"
    built.build("fed")
    built.spark.sql(f"update {news} set name = 'corrected' where id = 7")
    built.spark.sql(f"delete from {news} where id = 8 and name = 'b'")
    found = built.build("fed")
    assert (found["mode"], found["keys_affected"]) == ("heal", 2)
    built.spark.sql(f"alter table {news} set tblproperties ('write.delete.mode' = 'merge-on-read')")
    built.spark.sql(f"delete from {news} where id = 9 and name = 'b'")
    found = built.build("fed")
    assert found["mode"] == "rebuild" and "merge-on-read" in found["reason"]
    built.dbt("run-operation", "healing_tables.maintain", "--args", f"{{dimension: {news}, key_columns: id}}")
    built.spark.sql(f"alter table {news} unset tblproperties ('write.delete.mode')")
    built.build("fed")
    built.spark.sql(f"update {news} set name = 'again' where id = 10")
    assert built.build("fed")["mode"] == "heal"


@pytest.mark.slow
def test_what_others_did_to_the_table(built: Lab) -> None:
    built.build("healed")
    healed = f"{built.schema}.healed"
    built.spark.sql(f"call system.rewrite_data_files(table => '{healed}', options => map('rewrite-all', 'true'))")
    assert built.build("healed")["mode"] == "heal"  # the rows are as they were
    first = built.commits("healed")[0][0]
    built.spark.sql(f"call system.rollback_to_snapshot('{healed}', {first})")
    found = built.build("healed")
    assert found["mode"] == "rebuild" and "another table, or an older snapshot" in found["reason"]
    built.spark.sql(f"create or replace table {healed} using iceberg as select * from {healed}")
    assert built.build("healed")["mode"] == "rebuild"
    built.spark.sql(f"drop table {healed}")
    built.spark.sql(f"create table {healed} using iceberg as select 1 as id")
    status, message = built.dbt("run", "--select", "healed")["healed"]
    assert status == "error" and "a table with rows that is not in healing_log" in message
    found = built.dbt("run", "--select", "healed", "--vars", "{allow_replace: true}")
    assert found["healed"][0] == "success"


@pytest.mark.slow
def test_a_column_of_another_type(built: Lab) -> None:
    model(built, "wider")
    built.build("wider")
    built.spark.sql(f"alter table {built.schema}.crm alter column points type bigint")
    found = built.build("wider")
    assert found["publish"] == "overwrite"
    assert built.build("wider")["status"] == "unchanged"


@pytest.mark.slow
def test_maintenance(built: Lab) -> None:
    built.build("dim")
    for name in ("x", "y"):
        add(built, row(6, name, next(months)))
        built.build("dim")
    assert delete_files(built, "dim") > 0
    before, commits = built.rows("dim"), built.commits("dim")
    args = "{dimension: dim, retention_hours: 0, allow_short_retention: true, build_hours: 0}"
    built.dbt("run-operation", "healing_tables.maintain", "--args", args)
    assert built.succeeded
    assert delete_files(built, "dim") == 0 and built.rows("dim") == before
    assert not set(built.commits("dim")) & set(commits)  # they have expired
    # each build adds a file to the log
    built.dbt("run-operation", "healing_tables.maintain", "--args", args.replace("dim,", "healing_log,"))
    assert built.succeeded and len(ask(built, "select * from {s}.healing_log.files")) == 1
    # the history of the dimension is gone, and with it the knowledge of what the last build has left
    assert built.build("dim")["status"] == "unchanged"
