"""Batches merged by either way of healing_merge, in any order, give the dimension of their whole history."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import pytest
from audits import beside_audit
from dbt.adapters.spark import session as dbt_session
from lab import Lab
from pyspark.sql import DataFrame
from random_histories import (
    LOGGED,
    SEED,
    START,
    assert_is,
    expected,
    frame,
    full_batches,
    in_any_order,
    in_order,
    mix,
    random_changes,
    spec_for,
)
from reference import Row
from sessions import FORMAT
from ways import merge_by_sql, merge_model, without_library

from healing_tables import DimensionSpec, merge
from healing_tables.merge.outbox import Outbox

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("interpreted")]
GIVEN = (
    "attributes",
    "changed_at",
    "deleted_when",
    "max_removed_keys_ratio",
    "valid_to_current",
    "full_batch",
    "audit",
)


def options_of(spec: DimensionSpec, attributes: dict[str, Any]) -> dict[str, Any]:
    """The definition as options of a model."""
    names = {item.name for item in fields(spec)} & set(GIVEN)
    return {name: getattr(spec, name) for name in names} | {"attributes": attributes}


def logged(lab: Lab, name: str, columns: Sequence[str] = ("*",)) -> list[Any]:
    return sorted(map(tuple, lab.spark.table(f"{name}_changes").select(*columns).collect()), key=repr)


@pytest.mark.parametrize("ways", ["sql", "library sql", "sql library"])
@pytest.mark.parametrize("family", LOGGED)
def test_batches_in_any_order_by_both_ways(lab: Lab, family: str, ways: str) -> None:
    model = f"dim_{family}_{ways}".replace(" ", "_")
    name = f"{lab.schema}.{model}"
    attributes = mix(SEED + 1, LOGGED[family])
    spec = spec_for(attributes, change_log=f"{name}_changes")
    rows = random_changes(SEED + 1)
    parts = in_any_order(rows, 4)
    for number, part in enumerate([*parts, parts[1]]):
        way = ways.split()[number % len(ways.split())]
        if way == "library":
            merge(frame(lab.spark, part), name, spec)
        else:
            merge_model(lab, model, frame(lab.spark, part), **options_of(spec, attributes))
            assert merge_by_sql(lab, model)["status"] == ("published" if number < 4 else "unchanged")
    assert_is(lab.spark, name, expected(rows, spec))
    assert len(logged(lab, name)) == len(rows)
    assert len(logged(lab, name, ["id", "changed_at"])) == len({(row["id"], row["at"]) for row in rows})


@pytest.mark.parametrize("family", LOGGED)
def test_a_log_begun_over_a_filled_table(lab: Lab, family: str) -> None:
    model = f"begun_{family.replace(' ', '_')}"
    name = f"{lab.schema}.{model}"
    attributes = mix(SEED + 2, LOGGED[family])
    spec = spec_for(attributes)
    rows = random_changes(SEED + 2)
    filled, *later = in_order(rows, 4)
    merge(frame(lab.spark, filled), name, spec)
    for part in reversed(later):
        merge_model(lab, model, frame(lab.spark, part), **options_of(spec, attributes))
        merge_by_sql(lab, model)
    assert_is(lab.spark, name, expected(rows, spec))
    # the seeds of the library are the same rows
    twin = f"{name}_twin"
    merge(frame(lab.spark, filled), twin, spec)
    merge(frame(lab.spark, later[0]), twin, spec_for(attributes, change_log=f"{twin}_changes"))
    shown = ["id", "a", "b", "c", "d", "changed_at", "is_deleted"]
    seeds = [
        sorted(map(tuple, lab.spark.table(f"{table}_changes").where("is_seed").select(*shown).collect()), key=repr)
        for table in (name, twin)
    ]
    assert seeds[0] == seeds[1]


@pytest.mark.parametrize("ways", ["sql", "library sql"])
@pytest.mark.parametrize("with_moments", [False, True], ids=["plain", "moments"])
def test_full_batches_by_both_ways(lab: Lab, with_moments: bool, ways: str) -> None:
    """Each batch holds every key that exists at its moment; they come in any order, and one of them twice."""
    model = f"full_{with_moments}_{ways.replace(' ', '_')}".lower()
    name = f"{lab.schema}.{model}"
    attributes = mix(SEED + 3, (2, 0, 1, 3, 6))
    options: dict[str, Any] = {"deleted_when": None, "full_batch": True}
    if not with_moments:
        options["changed_at"] = None
    spec = spec_for(attributes, change_log=f"{name}_changes", **options)
    rows = random_changes(SEED + 3)
    batches, told = full_batches(rows, with_moments=with_moments)
    for number, place in enumerate((1, 3, 0, 2, 0)):
        at, held = batches[place]
        given = frame(lab.spark, held).drop("op", *([] if with_moments else ["at"]))
        way = ways.split()[number % len(ways.split())]
        if way == "library":
            merge(given, name, spec, at=at)
        else:
            moment = at.strftime("%Y-%m-%d %H:%M:%S")
            merge_model(lab, model, given, **options_of(spec, attributes), at=moment)
            assert merge_by_sql(lab, model)["status"] == ("published" if number < 4 else "unchanged")
    assert_is(lab.spark, name, expected(told, spec))


class Stopped(Exception):
    """The process died here."""


HISTORY = r"merge into \S+_history "

# what a merge writes: its batch, the log, the difference, the dimension, its history (type 4), its audit, the row of
# healing_log
STATEMENTS = [
    r"create table \S+_batch",
    r"merge into \S+_changes\S* ",
    r"create table \S+_changes using",
    r"merge into ",
    HISTORY,
    r"merge into \S+_audit ",
    "insert",
]
if FORMAT == "iceberg":  # log and dimension are branches first, and the dimension has its tag before it is published
    STATEMENTS += [
        r"fast_forward\(\S+_changes`",
        r"healing_tables\.build\.\d",
        r"fast_forward\((?!\S+_changes`)",
        r"healing_tables\.written_by' = '(?!sql')",
    ]


def stop(lab: Lab, name: str, pattern: str, when: str) -> None:
    """Run a model until just before, or after, the first statement of this kind."""
    run = dbt_session.Cursor.execute

    def execute(cursor: Any, sql: str, *parameters: Any) -> None:
        is_beside = re.match(r"\s*merge into \S+_(changes|history|audit)(\.\S+)? ", sql)
        hit = re.search(pattern, sql) and not (is_beside and pattern == r"merge into ")
        if hit and when == "before":
            raise Stopped
        run(cursor, sql, *parameters)
        if hit:
            raise Stopped

    with without_library(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(dbt_session.Cursor, "execute", execute)
        assert lab.dbt("run", "--select", name)[name][0] == "error"


@pytest.mark.parametrize("way", ["sql", "library"])
@pytest.mark.parametrize("is_full", [False, True], ids=["changes", "full"])
@pytest.mark.parametrize("scd_type", [2, 4])
def test_the_next_merge_completes_a_killed_one(lab: Lab, scd_type: int, is_full: bool, way: str) -> None:
    """A killed batch whose rows are in the log is published by the next merge; another one has left nothing."""
    model = f"killed_{scd_type}_{is_full}_{way}".lower()
    name, attributes = f"{lab.schema}.{model}", {"a": scd_type, "b": 1}
    options: dict[str, Any] = {"full_batch": is_full, "deleted_when": None, "audit": {"actor": "night"}}
    spec = spec_for(attributes, change_log=f"{name}_changes", **options)
    rest = {"c": None, "d": None}

    def row(key: int, number: int, value: str) -> Row:
        at = START + dt.timedelta(days=number)
        return {"id": key, "at": at, "op": "U", "a": value, "b": value, **rest}

    def run(rows: list[Row], at: dt.datetime, by: str) -> None:
        if by == "library":
            merge(frame(lab.spark, rows), name, spec, at=at)
            return
        merge_model(lab, model, frame(lab.spark, rows), **options_of(spec, attributes), at=f"{at:%Y-%m-%d %H:%M:%S}")
        merge_by_sql(lab, model)

    run([row(key, 0, "first") for key in range(4)], START, "sql")
    told = [(START, [row(key, 0, "first") for key in range(4)])]
    number = 0
    statements = [pattern for pattern in STATEMENTS if pattern != HISTORY or scd_type == 4]
    for pattern in statements:
        for when in ("before", "after"):
            number += 2
            at = START + dt.timedelta(days=number)
            # of a full batch, key 3 is missing
            killed = [row(key, number, f"killed {number}") for key in range(3 if is_full else 1)]
            merge_model(
                lab, model, frame(lab.spark, killed), **options_of(spec, attributes), at=f"{at:%Y-%m-%d %H:%M:%S}"
            )
            stop(lab, model, pattern, when)
            if lab.spark.table(f"{name}_changes").where(f"a = 'killed {number}'").count():
                told.append((at, killed))
            later = at + dt.timedelta(days=1)
            following = [row(key, number + 1, f"next {number}") for key in (range(4) if is_full else [1])]
            run(following, later, way)
            told.append((later, following))
            assert_is(lab.spark, name, expected(history(told, is_full), replace(spec, full_batch=False)))
            assert_audited(lab, name)
    assert len(told) > len(statements) * 2 + 3
    logged_keys = lab.spark.table(f"{name}_changes").where("not is_full").groupBy("id", "changed_at").count()
    assert logged_keys.where("count > 1").count() == 0


@pytest.mark.parametrize("way", ["sql", "library"])
def test_a_stopped_merge_whose_past_is_gone(lab: Lab, way: str, caplog: pytest.LogCaptureFixture) -> None:
    """Without the version before, there is a warning instead of an audit, and merges go on."""
    model = f"gone_{way}"
    name, attributes = f"{lab.schema}.{model}", {"a": 2, "b": 1}
    spec = spec_for(attributes, change_log=f"{name}_changes", audit={})

    def batch(number: int) -> DataFrame:
        at = START + dt.timedelta(days=number)
        rows: list[Row] = [{"id": 1, "at": at, "op": "U", **dict.fromkeys("abcd", f"{number}")}]
        merge_model(lab, model, frame(lab.spark, rows), **options_of(spec, attributes))
        return frame(lab.spark, rows)

    for number in (1, 2):
        batch(number)
        merge_by_sql(lab, model)
    batch(3)
    stop(lab, model, r"merge into \S+_audit ", "before")
    forget_the_past(lab, name)
    last = batch(4)
    lab.log.clear()
    if way == "library":
        merge(last, name, spec)
    else:
        merge_by_sql(lab, model)
    assert "has no audit: its merge was stopped" in caplog.text + "\n".join(lab.log)
    audited = [
        row["changed_at"].day for row in lab.spark.table(f"{name}_audit").where("change_type = 'insert'").collect()
    ]
    assert sorted(audited) == [2, 3, 5]
    assert lab.spark.table(name).count() == 4


def forget_the_past(lab: Lab, name: str) -> None:
    """Remove what only earlier versions of a table need."""
    if FORMAT == "iceberg":
        lab.spark.sql(f"call lake.system.expire_snapshots('{name}', timestamp '9999-01-01 00:00:00', 1)")
        return
    lab.spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    lab.spark.sql(f"optimize {name}")
    lab.spark.sql(f"vacuum {name} retain 0 hours")
    lab.spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")


def assert_audited(lab: Lab, name: str) -> None:
    """The rows that the audit has added, without those that it has removed, are those of the dimension."""
    assert beside_audit(lab.spark, name) == {}
    audit = lab.spark.table(f"{name}_audit")
    assert audit.where("change_type is null or change_reason is null or changed_at is null").isEmpty()


def history(told: list[tuple[dt.datetime, list[Row]]], is_full: bool) -> list[Row]:
    """The rows of these batches, and the ends of keys that a full one lacks."""
    found: list[Row] = []
    alive: dict[Any, Row] = {}
    for at, rows in told:
        if is_full:
            found += [
                {**alive.pop(key), "at": at, "op": "D"} for key in sorted(set(alive) - {row["id"] for row in rows})
            ]
        found += rows
        alive |= {row["id"]: row for row in rows}
    return found


def test_sql_completes_a_killed_merge_of_the_library(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    model, attributes = "killed_library", {"a": 2, "b": 1}
    name = f"{lab.schema}.{model}"
    spec = spec_for(attributes, change_log=f"{name}_changes", audit={"actor": "night"})
    rows: list[Row] = [
        {"id": key, "at": START + dt.timedelta(days=day), "op": "U", **dict.fromkeys("abcd", f"{key} {day}")}
        for key in range(3)
        for day in range(4)
    ]
    parts = [[row for row in rows if row["at"] == START + dt.timedelta(days=day)] for day in (0, 2, 1, 3)]
    merge(frame(lab.spark, parts[0]), name, spec)

    def die(*_: Any, **__: Any) -> None:
        raise Stopped

    with monkeypatch.context() as patch, pytest.raises(Stopped):
        patch.setattr(Outbox, "deliver", die)
        merge(frame(lab.spark, parts[1]), name, spec)
    for part in parts[2:]:
        merge_model(lab, model, frame(lab.spark, part), **options_of(spec, attributes))
        merge_by_sql(lab, model)
    assert_is(lab.spark, name, expected(rows, spec))
    assert len(logged(lab, name)) == len(rows)
    assert_audited(lab, name)
    assert lab.spark.table(f"{name}__pending").count() == 0
