"""The option `at`: an extract that is captured or merged later has the moment at which it was taken."""

from __future__ import annotations

from lab import Lab
from sessions import FORMAT


def model(lab: Lab, name: str, materialized: str, options: str) -> None:
    """A model of the table extract; the variable extracted_at is its moment."""
    lab.write(
        f"models/{name}.sql",
        f"{{{{ config(materialized='{materialized}', unique_key='id', file_format='{FORMAT}', "
        f"meta={{'healing_tables': {{{options}'at': var('extracted_at', none)}}}}) }}}}\n"
        f"select * from {lab.schema}.extract\n",
    )


def run(lab: Lab, name: str, at: str | None) -> tuple[str, str]:
    """Status and message of a run."""
    variables = [] if at is None else ["--vars", f"{{extracted_at: '{at}'}}"]
    # a lab keeps what was parsed, with the variable
    return lab.dbt("run", "--no-partial-parse", "--select", name, *variables)[name]


def refused(lab: Lab, name: str, at: str, *parts: str) -> None:
    status, message = run(lab, name, at)
    assert status == "error"
    for part in ("at", *parts):
        assert part in message, message


def extract(lab: Lab, rows: str) -> None:
    lab.spark.sql(f"drop table if exists {lab.schema}.extract")
    lab.spark.sql(f"create table {lab.schema}.extract using {FORMAT} as {rows}")


def stored(lab: Lab, query: str) -> list[tuple[object, ...]]:
    return [tuple(row) for row in lab.spark.sql(f"{query} order by all").collect()]


def test_a_captured_extract_has_its_own_moment(lab: Lab) -> None:
    model(lab, "cap_extract", "capture", "")
    extract(lab, "select 1 as id, 'a' as name")
    assert run(lab, "cap_extract", "2024-01-01 02:00:00+01:00")[0] == "success"
    extract(lab, "select 2 as id, 'b' as name")
    assert run(lab, "cap_extract", "2024-01-02")[0] == "success"
    assert stored(lab, f"select id, cast(captured_at as string), is_deleted from {lab.schema}.cap_extract") == [
        (1, "2024-01-01 01:00:00", False),
        (1, "2024-01-02 00:00:00", True),
        (2, "2024-01-02 00:00:00", False),
    ]
    newest = "after the newest one in the log, 2024-01-02 00:00:00"
    refused(lab, "cap_extract", "2024-01-02", newest, "in the order of their moments")
    refused(lab, "cap_extract", "tonight", "a moment in UTC such as", "tonight")
    assert lab.spark.table(f"{lab.schema}.cap_extract").count() == 3
    assert run(lab, "cap_extract", None)[0] == "success"  # the clock


def test_keys_that_are_missing_from_an_extract_end_at_its_moment(lab: Lab) -> None:
    """Rows with moments of their own keep them."""
    options = "'attributes': {'name': 2}, 'changed_at': 'seen', 'full_batch': true, 'max_removed_keys_ratio': 1, "
    model(lab, "dim_extract", "healing_merge", options)
    extract(lab, "select id, 'a' as name, timestamp '2024-01-01 10:00:00Z' as seen from values (1), (2) as t(id)")
    assert run(lab, "dim_extract", "2024-01-01 12:00")[0] == "success"
    extract(lab, "select 1 as id, 'b' as name, timestamp '2024-01-02 10:00:00Z' as seen")
    refused(lab, "dim_extract", "yesterday", "a moment in UTC such as", "yesterday")
    assert run(lab, "dim_extract", "2024-01-02T13:00+01:00")[0] == "success"
    columns = "id, name, cast(valid_from as string), cast(valid_to as string)"
    assert stored(lab, f"select {columns} from {lab.schema}.dim_extract") == [
        (1, "a", "2024-01-01 10:00:00", "2024-01-02 10:00:00"),
        (1, "b", "2024-01-02 10:00:00", "9999-12-31 00:00:00"),
        (2, "a", "2024-01-01 10:00:00", "2024-01-02 12:00:00"),
    ]
