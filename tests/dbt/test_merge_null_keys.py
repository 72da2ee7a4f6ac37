"""null_keys: keep in merges with a change log, by both ways. The witness is the same merge of keys in which a text
stands for NULL."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
from lab import Lab
from pyspark.sql import DataFrame
from sessions import FORMAT
from ways import merge_by_sql, merge_model, refused

from healing_tables import DimensionSpec, HiveTarget, SpecError, merge

KEYS = ["site", "code"]
NO_SITE, NO_CODE = "(none)", -1
COLUMNS = "site string, code int, at timestamp, no int, op string, name string, size int"
PLAIN: dict[str, Any] = {"changed_at": "at", "deleted_when": "op = 'D'", "max_removed_keys_ratio": 1, "audit": {}}
TIED = {**PLAIN, "tie_break_by": ["no"], "attributes": {"name": 2, "size": 1}}
CASES: dict[str, dict[str, Any]] = {
    "plain": {**TIED, "surrogate_key": {"name": "sk", "strategy": "dbt_utils"}},
    "full": {**TIED, "attributes": {"name": 6, "size": 2}, "full_batch": True},
    "part": {**TIED, "full_batch": True, "within": ["site"]},
    "deleted rows": {**TIED, "deleted_rows": True, "surrogate_key": {"name": "sk", "strategy": "sequence"}},
    "type 4": {**TIED, "attributes": {"name": 4, "size": 4}, "surrogate_key": {"name": "sk", "strategy": "hash"}},
    "feed": {
        **PLAIN,
        "attributes": {"name": 2, "size": 3},
        "sequence_by": ["no"],
        "ignore_nulls": True,
        "truncated_when": "op = 'T'",
        "change_reason": "op",
    },
}


def batches(spark: Any, seed: int, ops: str) -> list[DataFrame]:
    """Five batches, the last of which repeats the second one; NULL in keys is frequent."""
    choose, found = random.Random(seed), []
    for number in range(4):
        rows = []
        for place in range(8):
            site, code = choose.choice((None, "a", "b", "")), choose.choice((None, 1, 2))
            at = f"2024-01-{choose.randint(1, 20):02d} 00:00:00"
            values = (choose.choice(ops), choose.choice("xyz"), choose.choice((None, 1, 2)))
            rows.append((site, code, at, number * 8 + place, *values))
        found.append(spark.createDataFrame(rows, COLUMNS.replace("at timestamp", "at string")))
    frames = [frame.selectExpr(*KEYS, "timestamp(at) as at", "no", "op", "name", "size") for frame in found]
    return [*frames, frames[1]]


def filled(rows: DataFrame) -> DataFrame:
    """The rows with a text in place of NULL; a row without any key stays so."""
    has_key = "site is not null or code is not null"
    values = {"site": f"coalesce(site, '{NO_SITE}')", "code": f"coalesce(code, {NO_CODE})"}
    return rows.selectExpr(
        *(f"if({has_key}, {values[name]}, null) as {name}" if name in values else f"`{name}`" for name in rows.columns)
    )


def shown(lab: Lab, name: str, *, fill: bool) -> list[Any]:
    """The rows of a table, but for what hashes and numbers keys, and the ids of runs."""
    own = ("sk", "key_hash", "history_id", "merge_id", "logged_at", "within_values")
    rows = lab.spark.table(f"{lab.schema}.{name}").drop(*own)
    return sorted(map(tuple, (filled(rows) if fill else rows).collect()), key=repr)


def audited(lab: Lab, name: str) -> list[Any]:
    columns = ["change_type", "change_reason", "changed_at", "reason"]
    columns.append("if(change_type = 'remove', null, changed_columns)")  # those of a row that goes are not NULL
    return sorted(map(tuple, lab.spark.table(f"{lab.schema}.{name}_audit").selectExpr(columns).collect()), key=repr)


def merge_and_compare(lab: Lab, name: str, case: str, ways: str, merges: int = 5, hive: Sequence[Any] = ()) -> None:
    """Args: hive: format and perhaps key buckets of a table of files."""
    options, at = CASES[case], "2024-02-{:02d} 00:00:00"
    of_files = {"config": {"file_format": hive[0]}} if hive else {}
    of_files |= {"key_buckets": hive[1]} if hive[1:] else {}
    table = f"{lab.schema}.{name}"
    specs = {
        end: DimensionSpec(key_columns=KEYS, change_log=f"{table}{end}_changes", null_keys=nulls, **options)
        for end, nulls in (("", "keep"), ("_witness", "set_aside"))
    }
    for number, batch in enumerate(batches(lab.spark, 4, "UUUDT" if case == "feed" else "UUUD")[:merges], start=1):
        way = ways.split()[number % len(ways.split())]
        if way == "library":
            merge(batch, HiveTarget(table, *hive) if hive else table, specs[""], at=at.format(number))
        else:
            own = {"key_columns": KEYS, "null_keys": "keep", "at": at.format(number), **of_files}
            merge_model(lab, name, batch, **own, **options)
            merge_by_sql(lab, name)
        merge(filled(batch), f"{table}_witness", specs["_witness"], at=at.format(number))
        beside = ["", "_changes", *(["_history"] if case == "type 4" else [])]
        for end in beside:
            found = shown(lab, name + end, fill=True)
            assert found == shown(lab, f"{name}_witness{end}", fill=False), (number, way, end)
        assert audited(lab, name) == audited(lab, f"{name}_witness"), (number, way)
    dim = lab.spark.table(table)
    assert dim.where("site is null and code is null").isEmpty()
    assert dim.where("site is null").count() and dim.where("code is null").count()
    if "surrogate_key" in options:
        assert dim.select("sk").distinct().count() == dim.count()
    aside = lab.spark.table(f"{table}__set_aside").select("reason").distinct().collect()
    assert [row.reason for row in aside] == ["NULL in all key columns"]


def test_two_merges(lab: Lab) -> None:
    merge_and_compare(lab, "dim", "plain", "library sql", 2)


@pytest.mark.slow
@pytest.mark.parametrize("ways", ["sql", "library", "library sql"])
@pytest.mark.parametrize("case", CASES)
def test_merges(lab: Lab, case: str, ways: str) -> None:
    merge_and_compare(lab, f"dim_{case}_{ways}".replace(" ", "_"), case, ways)


@pytest.mark.slow
@pytest.mark.skipif(FORMAT != "delta", reason="a catalog of Iceberg has no tables of files")
@pytest.mark.parametrize("hive", [("parquet",), ("orc", 4)])
def test_in_files(lab: Lab, hive: tuple[Any, ...]) -> None:
    merge_and_compare(lab, f"dim_{hive[0]}", "feed", "library sql", hive=hive)


@pytest.mark.slow
def test_a_log_of_stored_versions(lab: Lab) -> None:
    """A log that begins with stored versions of such keys knows them again."""
    for way in ("sql", "library"):
        name, first = f"dim_{way}", batches(lab.spark, 2, "U")[0]
        options = {**PLAIN, "attributes": {"name": 2, "size": 1}, "tie_break_by": ["no"]}
        first.write.mode("overwrite").saveAsTable(f"{lab.schema}.rows_as_given")
        lab.model("first_rows", f"select * from {lab.schema}.rows_as_given")
        call = """{{ healing_tables.dimension(
            sources={'feed': {'relation': ref('first_rows'), 'changed_at': 'at', 'tie_break_by': ['no'],
                'deleted_when': "op = 'D'", 'columns': ['name', 'size']}},
            key_columns=['site', 'code'], attributes={'name': 2, 'size': 1}, null_keys='keep') }}"""
        lab.model(name, call, materialized="healing_table", unique_key=KEYS)
        lab.dbt("run", "--select", "first_rows", name)
        assert lab.succeeded, lab.log
        before = shown(lab, name, fill=False)
        if way == "sql":
            merge_model(lab, name, first, key_columns=KEYS, null_keys="keep", **options)
            merge_by_sql(lab, name)
        else:
            spec = DimensionSpec(
                key_columns=KEYS, null_keys="keep", change_log=f"{lab.schema}.{name}_changes", **options
            )
            merge(first, f"{lab.schema}.{name}", spec)
        assert shown(lab, name, fill=False) == before
        log = lab.spark.table(f"{lab.schema}.{name}_changes")
        seeds, others = (log.where(f"{no}is_seed").selectExpr(*KEYS, "changed_at") for no in ("", "not "))
        assert seeds.where("site is null or code is null").count() > 1 and seeds.intersect(others).isEmpty()


def test_refused(lab: Lab) -> None:
    """Without a change log, and another value."""
    spec = DimensionSpec(key_columns=KEYS, null_keys="keep", attributes=["name"])
    batch = lab.spark.sql("select 'a' as site, 1 as code, 'x' as name")
    with pytest.raises(SpecError, match="null_keys"):
        merge(batch, f"{lab.schema}.no_log", spec)
    with pytest.raises(SpecError, match="null_keys"):
        DimensionSpec(key_columns=KEYS, null_keys="drop")
    merge_model(lab, "other_value", batch, key_columns=KEYS, null_keys="drop")
    assert "null_keys" in refused(lab, "other_value")
