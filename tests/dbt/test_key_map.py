"""Integer surrogate keys are given once: the key map outlives rows, tables and races."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.adapters.spark import session as dbt_session
from interleaved import before_the_merge, other_writer
from lab import Lab
from pyspark.sql import DataFrame
from sessions import FORMAT
from tables import plain_rows

from healing_tables import DimensionSpec, TargetError, merge

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("interpreted")]
SEQUENCE = {"name": "sk", "strategy": "sequence"}
# One key of each kind of type, as text of SQL, with its text in the key map
KEYS = {
    "k_int": ("42", "42"),
    "k_text": (r"r'a|b^c\d'", r"a\|b\^c\\d"),
    "k_decimal": ("cast(10.50 as decimal(12, 2))", "10.5"),
    "k_whole": ("cast(100 as decimal(12, 2))", "100"),
    "k_tiny": ("cast(0.0000001 as decimal(20, 10))", "0.0000001"),
    "k_double": ("cast('-0.0' as double)", "0.0"),
    "k_date": ("date '2024-01-31'", "2024-01-31"),
    "k_moment": ("timestamp '2024-01-31 10:00:00.5Z'", "2024-01-31 10:00:00.5"),
    "k_flag": ("true", "true"),
    "k_bytes": ("X'00FF'", "00ff"),
    "k_list": ("array(1, 2)", "[1,2]"),
}


def spec_of(**options: Any) -> DimensionSpec:
    given = {"key_columns": "id", "attributes": {"name": 2}, "surrogate_key": SEQUENCE}
    return DimensionSpec.from_dict(given | options)


def batch(lab: Lab, *rows: Any, ddl: str = "id int, name string") -> DataFrame:
    return lab.spark.createDataFrame(list(rows), ddl)


def rows_of(lab: Lab, table: str, *columns: str) -> list[tuple[Any, ...]]:
    return plain_rows(lab.spark.table(table), columns)


def day(number: int) -> str:
    return f"2024-01-0{number} 00:00:00"


def test_both_halves_write_one_key_map(lab: Lab) -> None:
    values = ", ".join(f"{value} as {name}" for name, (value, _) in KEYS.items())
    query = f"select {values}, timestamp '2024-01-01 00:00:00Z' as at, 'A' as name"
    lab.model("keys_source", query)
    lab.model(
        "dim_keys",
        "{{ healing_tables.dimension({'one': {'relation': ref('keys_source'), 'changed_at': 'at'}}) }}",
        materialized="healing_table",
        unique_key=list(KEYS),
        meta={"healing_tables": {"surrogate_key": SEQUENCE}},
    )
    lab.dbt("run")
    assert lab.results["dim_keys"][0] == "success", lab.results["dim_keys"]
    merged = f"{lab.schema}.merged_keys"
    merge(lab.spark.sql(query), merged, spec_of(key_columns=list(KEYS), changed_at="at"))
    shown = ("key", "valid_from", "surrogate_key")
    expected = [("|".join(text for _, text in KEYS.values()), day(1), 1)]
    assert rows_of(lab, f"{lab.schema}.dim_keys__keys", *shown) == expected
    assert rows_of(lab, f"{merged}__keys", *shown) == expected
    assert rows_of(lab, merged, "sk") == lab.rows("dim_keys", "sk") == [(1,)]


@pytest.mark.slow
def test_a_dropped_dimension_comes_back_from_its_log_with_its_numbers(lab: Lab) -> None:
    dim = f"{lab.schema}.dropped"
    spec = spec_of(change_log=f"{dim}_log", changed_at="at")
    ddl = "id int, name string, at timestamp_ntz"
    for number in (3, 1, 2):
        query = f"select {number % 2} as id, 'v{number}' as name, timestamp_ntz '{day(number)}' as at"
        merge(lab.spark.sql(query), dim, spec)
    before = rows_of(lab, dim, "sk", "id", "name")
    assert before == [(1, 1, "v3"), (2, 1, "v1"), (3, 0, "v2")]
    lab.spark.sql(f"drop table {dim}")
    late = lab.spark.sql(f"select 5 as id, 'new' as name, timestamp_ntz '{day(4)}' as at")
    assert late.schema.simpleString() == f"struct<{ddl.replace(' ', ':').replace(',:', ',')}>"
    merge(late, dim, spec)
    assert rows_of(lab, dim, "sk", "id", "name") == [*before, (4, 5, "new")]


@pytest.mark.slow
def test_a_restored_dimension_gives_no_number_twice(lab: Lab) -> None:
    dim = f"{lab.schema}.restored"
    spec = spec_of()
    merge(batch(lab, (1, "A")), dim, spec, at=day(1))
    merge(batch(lab, (2, "B")), dim, spec, at=day(2))
    lab.spark.sql(f"restore table {dim} to version as of 1")
    assert rows_of(lab, dim, "sk", "id") == [(1, 1)]
    merge(batch(lab, (3, "C")), dim, spec, at=day(3))
    # 2 stays the number of the version that was undone
    merge(batch(lab, (2, "B")), dim, spec, at=day(2))
    assert rows_of(lab, dim, "sk", "id") == [(1, 1), (2, 2), (3, 3)]


@pytest.mark.slow
def test_the_newest_row_leaves_between_plan_and_merge(lab: Lab) -> None:
    dim = f"{lab.schema}.overtaken"
    spec = spec_of(attributes={"name": 4}, deleted_when="name = 'gone'")
    merge(batch(lab, (1, "A"), (2, "B")), dim, spec, at=day(1))

    def other() -> None:
        merge(batch(lab, (2, "gone"), (4, "D")), dim, spec, at=day(2))

    with other_writer(lab.spark, other, before_the_merge(f"{dim}__keys")) as writer:
        merge(batch(lab, (3, "C")), dim, spec, at=day(3))
    assert writer.has_acted
    assert rows_of(lab, dim, "sk", "id") == [(1, 1), (3, 4), (4, 3)]
    keys = [("1", 1), ("2", 2), ("3", 4), ("4", 3)]
    assert rows_of(lab, f"{dim}__keys", "key", "surrogate_key") == keys


def test_a_build_whose_numbers_were_given_meanwhile_begins_again(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    def rows(names: str) -> str:
        moments = [f"select 1 as id, timestamp '{day(n)}Z' as at, '{x}' as name" for n, x in enumerate(names, 1)]
        return " union all ".join(moments)

    lab.model("raced_source", rows("A"))
    lab.model(
        "dim_raced",
        "{{ healing_tables.dimension({'one': {'relation': ref('raced_source'), 'changed_at': 'at'}}) }}",
        materialized="healing_table",
        unique_key="id",
        meta={"healing_tables": {"surrogate_key": SEQUENCE}},
    )
    lab.dbt("run", "--select", "+dim_raced")
    lab.model("raced_source", rows("AB"))
    dim = f"{lab.schema}.dim_raced"
    execute = dbt_session.Cursor.execute
    others: list[str] = []

    def meanwhile(self: Any, sql: str, *parameters: Any) -> None:
        if f"merge into {dim}__keys" in sql and not others:
            others.append(sql)
            lab.spark.sql(f"insert into {dim}__keys values ('9', timestamp '{day(1)}Z', 2)")
        execute(self, sql, *parameters)

    monkeypatch.setattr(dbt_session.Cursor, "execute", meanwhile)
    status, message = lab.dbt("run", "--select", "+dim_raced")["dim_raced"]
    monkeypatch.undo()
    assert others
    assert status == "success", message
    assert any("attempt 1 found a commit of another writer" in text for text in lab.log), lab.log
    assert lab.rows("dim_raced", "sk", "name") == [(1, "A"), (3, "B")]
    assert rows_of(lab, f"{dim}__keys", "key", "surrogate_key") == [("1", 1), ("1", 3), ("9", 2)]


@pytest.mark.slow
def test_numbers_of_a_stored_table_are_taken_over(lab: Lab) -> None:
    dim = f"{lab.schema}.theirs"
    columns = "sk int, id int, name string, valid_from timestamp, valid_to timestamp, is_current boolean"
    lab.spark.sql(f"create table {dim} ({columns}) using {FORMAT}")
    end = "timestamp '9999-12-31 00:00:00Z'"
    lab.spark.sql(
        f"insert into {dim} values (7, 1, 'A', timestamp '{day(1)}Z', {end}, true), "
        f"(12, 2, 'B', timestamp '{day(1)}Z', {end}, true)"
    )
    merge(batch(lab, (1, "A2"), (3, "C")), dim, spec_of(), at=day(2))
    expected = [(12, 2, "B"), (13, 1, "A2"), (14, 3, "C"), (7, 1, "A")]
    assert rows_of(lab, dim, "sk", "id", "name") == expected
    numbers = sorted(row[0] for row in rows_of(lab, f"{dim}__keys", "surrogate_key"))
    assert numbers == [7, 12, 13, 14]


def test_a_table_of_someone_else_is_no_key_map(lab: Lab) -> None:
    dim = f"{lab.schema}.taken"
    lab.spark.sql(f"create table {dim}__keys (id int) using {FORMAT}")
    with pytest.raises(TargetError, match="key map"):
        merge(batch(lab, (1, "A")), dim, spec_of())
