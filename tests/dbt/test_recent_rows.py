"""The rows since the last build: a few groups are read as they are, many are counted by Spark; both give one mark."""

from __future__ import annotations

import re
from typing import Any

import pytest
from lab import Lab
from sessions import FORMAT
from tables import plain_rows

pytestmark = pytest.mark.slow
# as texts that stand for their values in a statement, also those that a client might take for NULL or for one another
PLAIN = ["a", "A", "null", "", " x", "x ", "-1", "1.50", "a.b@c:d+e_f"]
HOSTILE = ["o'neil", "back\\slash", "ü", "${x}", "{{ x }}", "two\nlines", "-- x", "x" * 101]
KEYS = {"by_text": ["code"], "by_pair": ["number", "day"], "by_amount": ["amount"]}
NEWS = "'relation': source('raw', 'news'), 'changed_at': 'at', 'loaded_at': 'loaded_at', 'on_tie': 'greatest'"


@pytest.fixture(scope="module")
def built(lab: Lab) -> Lab:
    lab.spark.sql(
        f"create table {lab.schema}.news (code string, number int, day date, amount decimal(10,2), name string, "
        f"at timestamp, loaded_at timestamp) using {FORMAT}"
    )
    lab.write(
        "models/sources.yml",
        f"sources: [{{name: raw, schema: {lab.schema}, tables: [{{name: news}}, {{name: quiet}}]}}]\n",
    )
    for name, keys in KEYS.items():
        model(lab, name, keys, NEWS)
    model(lab, "wide", ["code"], NEWS + ", 'where': \"name in (select concat('x', '')) or code is not null\"")
    load(lab, "2024-01-01 00:00", ["first", "a"])
    lab.dbt("run")
    return lab


def model(lab: Lab, name: str, keys: list[str], source: str) -> None:
    lab.model(
        name,
        f"{{{{ healing_tables.dimension({{'news': {{{source}}}}}, attributes=['name']) }}}}",
        materialized="healing_table",
        unique_key=keys,
        meta={"healing_tables": {"mode": "heal"}},
    )


def load(lab: Lab, at: str, codes: list[str], number: int = 0) -> None:
    """A row of each code; equal codes have equal numbers, days and amounts."""
    rows: list[tuple[Any, ...]] = [(code, number + place) for place, code in enumerate(codes)]
    frame = lab.spark.createDataFrame(rows, "code string, number int")
    frame.selectExpr(
        "code",
        "number",
        "date_add(date '2024-01-01', number) as day",
        "cast(number * 1.5 as decimal(10,2)) as amount",
        f"concat(code, ' {at}') as name",
        f"timestamp '{at}:00Z' as at",
        f"timestamp '{at}:00Z' as loaded_at",
    ).write.insertInto(f"{lab.schema}.news")


def healed(lab: Lab, *names: str) -> dict[str, str]:
    """Of each dimension, how many keys its heal has looked at; what is stored is what a rebuild would store."""
    results = lab.dbt("run", "--select", *names)
    assert {status for status, _ in results.values()} == {"success"}, results
    for name in names:
        assert lab.rows(name) == plain_rows(lab.select(name)), name
    begun = [line for line in lab.log if ": heal from" in line]
    return {name: touched(line) for name in names for line in begun if f".{name}: heal" in line}


def touched(line: str) -> str:
    return line.split(" changed key")[0].split()[-1]


def has_table_of_keys(lab: Lab, name: str) -> bool:
    return any(re.search(rf"create table \S+\.{name}__\S+_keys using", sql) for _, sql in lab.statements)


def test_a_few_keys_stand_in_the_statements(built: Lab) -> None:
    load(built, "2024-01-02 00:00", PLAIN)
    count = str(len(PLAIN))
    assert healed(built, *KEYS) == {"by_text": count, "by_pair": count, "by_amount": count}
    assert not any(has_table_of_keys(built, name) for name in KEYS)
    assert healed(built, *KEYS) == dict.fromkeys(KEYS, "0")


def test_other_texts_are_read_from_a_table(built: Lab) -> None:
    load(built, "2024-01-03 00:00", [*HOSTILE, "a"], number=100)
    assert healed(built, *KEYS) == dict.fromkeys(KEYS, str(len(HOSTILE) + 1))
    assert [name for name in KEYS if has_table_of_keys(built, name)] == ["by_text"]


def test_a_row_without_a_key_is_no_key(built: Lab) -> None:
    load(built, "2024-01-04 00:00", ["b"], number=200)
    built.spark.sql(
        f"insert into {built.schema}.news values (null, null, null, null, 'x', timestamp '2024-01-04 00:00:00Z', "
        "timestamp '2024-01-04 00:00:00Z'), ('c', 201, null, 7, 'y', timestamp '2024-01-04 00:00:00Z', null)"
    )
    assert healed(built, *KEYS) == {"by_text": "2", "by_pair": "1", "by_amount": "2"}
    assert healed(built, "wide") == {}  # its where reads more than the row: a rebuild, which reads marks too


def test_rows_that_are_read_and_rows_that_are_counted_have_one_hash(built: Lab) -> None:
    load(built, "2024-01-05 00:00", ["read"], number=300)
    healed(built, "by_text")
    many = [f"m{number}" for number in range(1001)]
    load(built, "2024-01-05 00:10", many, number=400)
    # were the overlap another one than when it was read, its key would be looked at again
    assert healed(built, "by_text") == {"by_text": str(len(many) + rows_without_time(built))}
    # the rows that are read again were loaded at two moments, so they are two groups
    load(built, "2024-01-05 01:00", ["counted"], number=2000)
    assert healed(built, "by_text") == {"by_text": str(1 + rows_without_time(built))}
    assert not has_table_of_keys(built, "by_text")
    load(built, "2024-01-05 01:10", ["new"], number=2001)
    assert healed(built, "by_text") == {"by_text": str(1 + rows_without_time(built))}
    assert not has_table_of_keys(built, "by_text")


def rows_without_time(lab: Lab) -> int:
    """They are looked at by every heal that has news."""
    return lab.spark.table(f"{lab.schema}.news").where("loaded_at is null").count()


def test_a_late_row_and_a_row_from_the_future(built: Lab) -> None:
    always = rows_without_time(built)
    load(built, "2024-01-06 00:00", ["on time"], number=3000)
    healed(built, "by_text")
    load(built, "2024-01-05 23:30", ["late"], number=3001)
    assert healed(built, "by_text") == {"by_text": str(2 + always)}  # both are in the overlap
    assert healed(built, "by_text") == {"by_text": str(0 + always)}
    load(built, "2124-01-01 00:00", ["future"], number=3002)
    assert healed(built, "by_text") == {"by_text": str(1 + always)}
    load(built, "2024-01-06 00:30", ["after it"], number=3003)
    assert healed(built, "by_text") == {"by_text": str(2 + always)}


def test_a_source_is_read_again_when_it_has_a_commit(built: Lab) -> None:
    """Without one it is not even scanned; a table that is created again has the same versions."""

    def create(*loads: str) -> None:
        built.spark.sql(f"drop table if exists {built.schema}.quiet")
        built.spark.sql(f"create table {built.schema}.quiet (id int, at timestamp, loaded_at timestamp) using {FORMAT}")
        for values in loads:
            built.spark.sql(f"insert into {built.schema}.quiet values {values}")

    def look() -> tuple[str, bool]:
        """How many keys a heal has looked at, and whether it has read the source for that."""
        results = built.dbt("run", "--select", "of_quiet")
        assert {status for status, _ in results.values()} == {"success"}, results
        assert built.rows("of_quiet") == plain_rows(built.select("of_quiet"))
        keys = next(touched(line) for line in built.log if "of_quiet: heal from" in line)
        return keys, any("is_in_last_overlap" in sql for _, sql in built.statements)

    noon, one, two = "timestamp '2024-01-02 12:00:00Z'", "timestamp '2024-01-01'", "timestamp '2024-01-02'"
    create(f"(1, {one}, {noon})", f"(2, {one}, {noon})")
    built.model(
        "of_quiet",
        "{{ healing_tables.dimension({'quiet': {'relation': source('raw', 'quiet'), 'changed_at': 'at', "
        "'loaded_at': 'loaded_at'}}) }}",
        materialized="healing_table",
        unique_key="id",
        meta={"healing_tables": {"mode": "heal"}},
    )
    built.dbt("run", "--select", "of_quiet")
    knows_commits = FORMAT == "delta"
    assert look() == ("0", not knows_commits)
    create(f"(1, {one}, {noon})", f"(2, {one}, {noon}), (2, {two}, {noon})")
    assert look() == ("2", True)
    assert look() == ("0", not knows_commits)
    # a row from the future is looked at by every heal
    built.spark.sql(f"insert into {built.schema}.quiet values (3, {two}, timestamp '2124-01-01 00:00:00Z')")
    assert look() == ("1", True)
    assert look() == ("1", True)
