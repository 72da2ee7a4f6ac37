"""News that is easily missed, or seen where there is none: snapshots that came, went or were read twice."""

from __future__ import annotations

import json
from typing import Any

import pytest
from lab import Lab
from sessions import FORMAT
from tables import plain_rows

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("interpreted")]
WEB = "'relation': source('raw', 'web'), 'snapshot_at': 'day'"
DIMS = {
    # keys of which no row counts in a snapshot that others are in
    "north": f"{{{WEB}, 'where': \"region = 'north'\"}}",
    # a snapshot that is not there
    "without_third": f"{{{WEB}, 'where': \"day <> date '2024-01-03'\"}}",
    "all_keys": f"{{{WEB}}}",
    "loaded": f"{{{WEB}, 'loaded_at': 'loaded_at'}}",
    "terms_dim": "{'relation': source('raw', 'terms'), 'valid_from': 'since', 'valid_to': 'until'}",
}
OF_CTES = """
with days as (select explode(sequence(date '2024-01-01', date '2024-01-05')) as day),
allowed as (select 'north' as region),
known as (select * from {{ source('raw', 'web') }})
{{ healing_tables.dimension(
    {'web': {'relation': source('raw', 'web'), 'snapshot_at': 'day', 'calendar': 'days',
        'where': 'region in (select region from allowed)', 'columns': ['name']},
    'more': {'relation': 'known', 'snapshot_at': 'day', 'columns': ['region'], 'on_tie': 'greatest'}},
    attributes=['name', 'region'], column_types={'id': 'int', 'name': 'string', 'region': 'string', 'day': 'date'}) }}
"""


def model(lab: Lab, name: str, sql: str) -> None:
    lab.model(
        name,
        sql,
        materialized="healing_table",
        unique_key="id",
        meta={"healing_tables": {"mode": "heal"}},
    )


def one_source(source: str) -> str:
    return f"{{{{ healing_tables.dimension({{'one': {source}}}, attributes=['name']) }}}}"


def snapshot(lab: Lab, day: int, *rows: str) -> None:
    values = (f"({row}, date '2024-01-0{day}', timestamp '2024-01-0{day} 02:00:00Z')" for row in rows)
    lab.spark.sql(f"insert into {lab.schema}.web values {', '.join(values)}")


def run(lab: Lab, *args: str) -> dict[str, dict[str, Any]]:
    """The newest row of the log by dimension; what is stored is what a rebuild would store."""
    results = lab.dbt("run", *args)
    assert {status for status, _ in results.values()} == {"success"}, results
    rows = lab.spark.sql(
        f"select dimension, max_by(struct(*), finished_at) as newest from {lab.schema}.healing_log group by dimension"
    ).collect()
    for name in results:
        assert lab.rows(name) == plain_rows(lab.select(name)), name
    return {row["dimension"]: row["newest"].asDict(recursive=True) for row in rows}


def touched(lab: Lab, name: str) -> str:
    """How many keys a heal has looked at."""
    return next(line for line in lab.log if f".{name}: heal from" in line).split(" changed key")[0].split()[-1]


@pytest.fixture(scope="module")
def built(lab: Lab) -> Lab:
    sql = lab.spark.sql
    sql(
        f"create table {lab.schema}.web (id int, name string, region string, day date, loaded_at timestamp) "
        f"using {FORMAT} tblproperties (delta.enableChangeDataFeed = true)"
    )
    sql(
        f"create table {lab.schema}.terms (id int, name string, since date, until date, seen_at timestamp) "
        f"using {FORMAT}"
    )
    sql(
        f"insert into {lab.schema}.terms values (1, 'x', date '2020-01-01', date '2020-06-01', timestamp '2024-01-01'),"
        " (2, 'y', date '2020-01-01', date '2020-06-01', timestamp '2024-01-01')"
    )
    snapshot(lab, 1, "1, 'a', 'north'", "2, 'b', 'north'", "3, 'c', 'south'", "null, 'd', 'north'")
    snapshot(lab, 2, "1, 'a', 'north'", "2, 'b', 'north'", "3, 'c', 'south'")
    lab.write(
        "models/sources.yml",
        f"sources: [{{name: raw, schema: {lab.schema}, tables: [{{name: web}}, {{name: terms}}]}}]\n",
    )
    for name, source in DIMS.items():
        model(lab, name, one_source(source))
    model(lab, "of_ctes", OF_CTES)
    lab.dbt("run", "--exclude", "of_ctes")
    return lab


def test_a_snapshot_in_which_no_row_counts_ends_keys(built: Lab) -> None:
    """A row that is set aside shows that a snapshot was taken, a row that `where` excludes does not."""
    snapshot(built, 3, "3, 'c', 'south'", "null, 'd', 'north'")
    names = ["north", "all_keys", "loaded", "without_third"]
    log = run(built, "--select", *names)
    assert {name: log[name]["mode"] for name in names} == dict.fromkeys(names, "heal")
    assert set(built.rows("north", "id", "is_current")) == {(1, False), (2, False)}
    assert set(built.rows("without_third", "id", "is_current")) == {(1, True), (2, True), (3, True)}
    assert touched(built, "without_third") == "0"


@pytest.mark.slow
def test_rows_that_are_read_twice_are_no_news(built: Lab) -> None:
    """Keys 1 and 2 are back; the last snapshot, in which key 3 was, is within the overlap."""
    snapshot(built, 4, "1, 'a', 'north'", "2, 'b', 'north'", "3, 'c', 'south'")
    run(built, "--select", "loaded")
    assert touched(built, "loaded") == "2"
    # a late row of that snapshot
    built.spark.sql(
        f"insert into {built.schema}.web values (4, 'e', 'south', date '2024-01-04', timestamp '2024-01-04 01:30:00Z')"
    )
    run(built, "--select", "loaded")
    assert touched(built, "loaded") == "4"


def test_a_late_row_with_an_old_time_is_in_the_feed(built: Lab) -> None:
    """Its loaded_at is before the overlap, so that only the feed has it; so has it a row that was deleted."""
    run(built, "--select", "loaded")
    built.spark.sql(
        f"insert into {built.schema}.web values (5, 'f', 'south', date '2024-01-02', timestamp '2024-01-02 02:00:00Z')"
    )
    log = run(built, "--select", "loaded")
    # 1 and 2 too: they are in the snapshot before and not in the one after it
    assert (log["loaded"]["mode"], touched(built, "loaded")) == ("heal", "3")
    assert [row[0] for row in built.rows("loaded", "id")].count(5) == 1
    built.spark.sql(f"delete from {built.schema}.web where id = 5")
    log = run(built, "--select", "loaded")
    # 1 and 2 too: they are in the snapshot before and not in the one after it
    assert (log["loaded"]["mode"], touched(built, "loaded")) == ("heal", "3")
    assert 5 not in [row[0] for row in built.rows("loaded", "id")]
    run(built, "--select", "loaded")
    assert touched(built, "loaded") == "0"
    # an incomplete feed is not used, and a line of the log says why
    for value in ("false", "true"):
        built.spark.sql(f"alter table {built.schema}.web set tblproperties (delta.enableChangeDataFeed = {value})")
        if value == "false":
            built.spark.sql(f"delete from {built.schema}.web where id = 77")
    run(built, "--select", "loaded")
    assert any("only its loaded_at is used" in line for line in built.log), built.log


@pytest.mark.slow
def test_a_snapshot_that_goes_as_a_whole(built: Lab) -> None:
    """Who was not in it has no gap any more, and no row tells of that."""
    run(built, "--select", "north", "all_keys", "without_third")
    built.spark.sql(f"delete from {built.schema}.web where day = date '2024-01-03'")
    log = run(built, "--select", "north", "all_keys", "without_third")
    assert log["without_third"]["mode"] == "heal"
    for name in ("north", "all_keys"):
        assert log[name]["mode"] == "rebuild"
        assert "snapshots of source one from before the last build" in log[name]["reason"]
    assert len(built.rows("all_keys")) == 4  # none has a gap


@pytest.mark.slow
def test_a_mark_goes_back_with_the_rows_that_made_it(built: Lab) -> None:
    built.spark.sql(f"delete from {built.schema}.web where loaded_at > timestamp '2024-01-02 02:00:00Z'")
    built.dbt("run", "--select", "loaded")
    log = built.spark.sql(
        f"select max_by(high_water_marks, finished_at)['one'] from {built.schema}.healing_log where dimension = "
        "'loaded'"
    )
    assert json.loads(log.collect()[0][0])["loaded_until"] == "2024-01-02 02:00:00.000000Z"


@pytest.mark.slow
def test_a_period_that_is_open_again_says_something_of_the_time_since(built: Lab) -> None:
    built.spark.sql(f"update {built.schema}.terms set until = null where id = 1")
    log = run(built, "--select", "terms_dim", "--vars", "{heal_since: '2024-03-01'}")
    assert log["terms_dim"]["mode"] == "heal"
    assert touched(built, "terms_dim") == "1"


@pytest.mark.slow
def test_a_feed_that_is_new_is_not_taken_for_a_new_table(built: Lab) -> None:
    sql = built.spark.sql
    run(built, "--select", "terms_dim")
    sql(f"alter table {built.schema}.terms set tblproperties (delta.enableChangeDataFeed = true)")
    sql(f"update {built.schema}.terms set name = 'z' where id = 2")
    log = run(built, "--select", "terms_dim")
    assert "nor a change feed" in log["terms_dim"]["reason"]


@pytest.mark.slow
def test_another_column_of_load_times_is_another_definition(built: Lab) -> None:
    model(built, "terms_dim", one_source(DIMS["terms_dim"].replace("}", ", 'loaded_at': 'seen_at'}")))
    run(built, "--select", "terms_dim")
    sql = f"select *, seen_at as loaded_at from {built.schema}.terms"
    built.spark.sql(f"create or replace table {built.schema}.terms using {FORMAT} as {sql}")
    run(built, "--select", "terms_dim")
    model(
        built,
        "terms_dim",
        one_source(DIMS["terms_dim"].replace("}", ", 'loaded_at': 'loaded_at'}")),
    )
    log = run(built, "--select", "terms_dim")
    assert log["terms_dim"]["reason"] == "the definition, or a type of its sources, has changed since the last build"


@pytest.mark.slow
def test_what_only_the_model_can_read_is_read_with_its_ctes(built: Lab) -> None:
    """A calendar, a condition and a source: rebuilt each time, and rows set aside are counted."""
    for _ in range(2):
        log = run(built, "--select", "of_ctes")["of_ctes"]
    assert log["mode"] == "rebuild"
    assert "where or deleted_when of source web reads more than its own row" in log["reason"]
    assert log["rows_set_aside"] == 2  # the row without a key, once by each source
    assert "1 row of source more set aside" in "\n".join(built.log)
