"""healing_table on parquet and ORC in key buckets: a heal writes the buckets of its keys, in one switch."""

from __future__ import annotations

import re
from typing import Any

import pytest
from dbt.adapters.spark import session as dbt_session
from lab import Lab
from tables import plain_rows

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("interpreted")]
BUCKETS, KEYS = 8, 40
NAMES = ("parquet", "orc", "numbered")
CALL = """{{ healing_tables.dimension({'crm': {'relation': source('raw', 'crm'), 'changed_at': 'changed_at',
    'loaded_at': 'loaded_at', 'deleted_when': "name = 'left'"}},
    attributes=['name']) }}"""


def dim(lab: Lab, name: str, file_format: str, **options: Any) -> None:
    lab.model(
        f"dim_{name}",
        CALL,
        materialized="healing_table",
        unique_key="the id",
        file_format=file_format,
        meta={"healing_tables": {"mode": "heal", "key_buckets": BUCKETS} | options},
    )


def load(lab: Lab, day: int, *rows: tuple[int, str]) -> None:
    at = f"timestamp '2024-01-{day:02} 00:00:00Z'"
    values = ", ".join(f"({key}, '{name}', {at}, {at})" for key, name in rows)
    lab.spark.sql(f"insert into {lab.schema}.crm values {values}")


def run(lab: Lab, *select: str, is_right: bool = True) -> dict[str, dict[str, Any]]:
    """The newest row of the log by dimension; what is stored is what a rebuild would store."""
    results = lab.dbt("run", "--select", *(select or [f"dim_{name}" for name in NAMES]))
    assert {status for status, _ in results.values()} == {"success"}, results
    for name in results if is_right else ():
        columns = ["the id", "name", "valid_from", "valid_to", "is_current", "key_hash", "row_hash"]
        assert plain_rows(lab.spark.table(f"{lab.schema}.{name}"), columns) == plain_rows(lab.select(name), columns)
    rows = lab.spark.sql(
        f"select dimension, max_by(struct(*), finished_at) as newest from {lab.schema}.healing_log group by dimension"
    ).collect()
    return {row["dimension"][4:]: row["newest"].asDict(recursive=True) for row in rows}


def folders(lab: Lab, name: str) -> dict[int, str]:
    """Bucket to its folder."""
    told = lab.spark.sql(f"describe table extended {lab.schema}.dim_{name}").collect()
    location = {row[0]: row[1] for row in told}["Location"]
    parts = re.fullmatch(r".*/\{(.*)\}", location)[1].split(",")  # type: ignore[index]
    return {int(part.rpartition("=")[2]): part for part in parts}


def add_a_row(lab: Lab, name: str, key: int) -> None:
    """Spark refuses an insert into several folders; another engine may not."""
    told = lab.spark.sql(f"describe schema {lab.schema}").collect()
    root = {row[0]: row[1] for row in told}["Location"] + f"/dim_{name}__versions"
    place = next(iter(folders(lab, name).values()))
    rows = lab.spark.table(f"{lab.schema}.dim_{name}").limit(1)
    columns = [f"{key} as `the id`", *(f"`{column}`" for column in rows.columns if column != "the id")]
    rows.selectExpr(*columns).write.mode("append").format(name).save(f"{root}/{place}")
    lab.spark.sql(f"refresh table {lab.schema}.dim_{name}")


@pytest.fixture(scope="module")
def built(lab: Lab) -> Lab:
    lab.spark.sql(
        f"create table {lab.schema}.crm (`the id` int, name string, changed_at timestamp, loaded_at timestamp) "
        "using delta tblproperties ('delta.columnMapping.mode' = 'name')"
    )
    lab.write(
        "models/sources.yml", f"version: 2\nsources: [{{name: raw, schema: {lab.schema}, tables: [{{name: crm}}]}}]"
    )
    for name in ("parquet", "orc"):
        dim(lab, name, name)
    dim(lab, "numbered", "parquet", surrogate_key={"name": "sk", "strategy": "sequence"})
    load(lab, 1, *((key, "A") for key in range(KEYS)))
    run(lab)
    return lab


def test_a_heal_writes_the_buckets_of_its_keys(built: Lab) -> None:
    """One key has a new version, one is new, one ends."""
    before = {name: folders(built, name) for name in NAMES}
    assert {name: len(places) for name, places in before.items()} == dict.fromkeys(NAMES, BUCKETS)
    keys = built.spark.table(f"{built.schema}.dim_numbered").selectExpr("`the id`", "name", "sk").collect()
    load(built, 2, (1, "B"), (KEYS, "A"), (2, "left"))
    log = run(built)
    touched = {
        row[0]
        for row in built.spark.sql(
            f"select pmod(xxhash64(id), {BUCKETS}) from values (1), ({KEYS}), (2) as t(id)"
        ).collect()
    }
    for name in NAMES:
        row = log[name]
        assert (row["mode"], row["publish"], row["status"]) == ("heal", "merge", "published")
        assert (row["rows_added"], row["rows_changed"], row["rows_removed"]) == (2, 2, 0)
        after = folders(built, name)
        assert {number for number in after if after[number] != before[name].get(number)} == touched
        assert any(f"dim_{name}: published in {len(touched)} of {BUCKETS} key buckets" in line for line in built.log)
    numbers = {
        (row[0], row[1]): row[2]
        for row in built.spark.table(f"{built.schema}.dim_numbered").selectExpr("`the id`", "name", "sk").collect()
    }
    assert all(numbers[row[0], row[1]] == row[2] for row in keys)
    assert sorted(numbers.values()) == list(range(1, KEYS + 3))


def test_nothing_is_written_where_nothing_has_changed(built: Lab) -> None:
    before = folders(built, "parquet")
    load(built, 3, (3, "A"))  # as it was
    assert run(built, "dim_parquet")["parquet"]["status"] == "unchanged"
    assert run(built, "dim_parquet")["parquet"]["rows_unchanged"] == KEYS + 2
    assert folders(built, "parquet") == before


def test_folders_of_the_state_before_stay_and_older_ones_are_emptied(built: Lab) -> None:
    one = folders(built, "orc")
    load(built, 4, *((key, "D") for key in range(KEYS)))
    run(built, "dim_orc")
    two = folders(built, "orc")
    assert not set(one.values()) & set(two.values())
    load(built, 5, *((key, "E") for key in range(KEYS)))
    run(built, "dim_orc")
    told = built.spark.sql(f"describe schema {built.schema}").collect()
    root = {row[0]: row[1] for row in told}["Location"] + "/dim_orc__versions"
    assert {tuple(built.spark.read.orc(f"{root}/{place}").columns) for place in one.values()} == {("emptied",)}
    assert sum(built.spark.read.orc(f"{root}/{place}").count() for place in two.values()) > KEYS


def test_files_that_another_writer_has_added_make_the_heal_a_rebuild(built: Lab) -> None:
    run(built, "dim_parquet")
    add_a_row(built, "parquet", 999)
    row = run(built, "dim_parquet")["parquet"]
    assert (row["mode"], row["reason"]) == ("rebuild", "the stored table is not the one that the last build wrote")
    assert (row["rows_removed"], row["publish"]) == (1, "overwrite")


def test_another_number_of_buckets_is_a_rebuild(built: Lab) -> None:
    dim(built, "parquet", "parquet", key_buckets=4)
    row = run(built, "dim_parquet")["parquet"]
    assert (row["mode"], row["reason"]) == ("rebuild", "the stored rows are not in 4 key buckets yet")
    assert sorted(folders(built, "parquet")) == [0, 1, 2, 3]
    load(built, 9, (1, "F"))
    assert run(built, "dim_parquet")["parquet"]["mode"] == "heal"
    dim(built, "parquet", "parquet", key_buckets=None)
    assert run(built, "dim_parquet")["parquet"]["reason"].startswith("only a table with commits, such as Delta, or")
    assert run(built, "dim_parquet")["parquet"]["status"] == "unchanged"
    told = built.spark.sql(f"describe table extended {built.schema}.dim_parquet").collect()
    assert "{" not in {row[0]: row[1] for row in told}["Location"]


def test_what_cannot_be_kept_in_buckets_is_refused(built: Lab) -> None:
    dim(built, "refused_delta", "delta")
    dim(built, "refused_number", "orc", key_buckets=65)
    results = built.dbt("run", "--select", "dim_refused_delta", "dim_refused_number")
    assert "remedy: leave it out, or set file_format: orc" in results["dim_refused_delta"][1]
    assert "wanted: a number from 2 to 64" in results["dim_refused_number"][1]


def test_two_heals_at_once(built: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another writer switches the table just before this build would: the build begins again, and both stay."""
    load(built, 10, (5, "G"))
    execute, acted = dbt_session.Cursor.execute, list[str]()

    def meanwhile(cursor: Any, sql: str, *parameters: Any) -> None:
        if "select distinct ht_b8 as bucket" in sql and not acted:
            acted.append(sql)
            add_a_row(built, "orc", 998)
        execute(cursor, sql, *parameters)

    monkeypatch.setattr(dbt_session.Cursor, "execute", meanwhile)
    row = run(built, "dim_orc")["orc"]
    assert acted and (row["mode"], row["status"]) == ("rebuild", "published")
    assert any("attempt 1 found a commit of another writer (its files have changed)" in line for line in built.log)


@pytest.mark.slow
def test_a_table_that_becomes_empty_and_full_again(built: Lab) -> None:
    dim(built, "emptied", "orc", key_buckets=2, max_removed_keys_ratio=1)
    load(built, 11, (6, "H"))
    run(built, "dim_emptied")
    built.spark.sql(f"delete from {built.schema}.crm")
    built.dbt("run", "--select", "dim_emptied", "--vars", "{heal_where: 'true', max_removed_versions_ratio: 1}")
    assert built.spark.table(f"{built.schema}.dim_emptied").count() == 0
    load(built, 12, (6, "I"), (7, "I"))
    assert run(built, "dim_emptied")["emptied"]["mode"] == "rebuild"
    assert run(built, "dim_emptied")["emptied"]["status"] == "unchanged"
