"""The two ways of healing_merge on twins: the same batches give the same tables, to the last column and row."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from lab import Lab
from pyspark.sql import DataFrame
from tables import plain_rows
from ways import merge_by_sql, merge_model

from healing_tables import DimensionSpec, merge

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("interpreted")]
COLUMNS = [
    ["id", "int"],
    ["part", "string"],
    ["op", "string"],
    ["seq", "int"],
    ["name", "string"],
    ["tier", "double"],
    ["tags", "array<string>"],
    ["at", "timestamp"],
]
# of three batches; the third is late, and the first comes again at the end
ROWS: list[list[list[Any]]] = [
    [
        [1, "a", "U", 1, "Ann", 0.0, ["x"], "2024-01-01"],
        [1, "b", "U", 1, 'O\'Neil \\ "q" ${x}', None, [], "2024-01-01"],
        [2, "", "U", 1, None, float("nan"), None, "2024-01-01"],
        [3, "a", "U", 1, "Zoë", -0.0, ["x", None], "2024-01-01"],
    ],
    [
        [1, "a", "U", 1, "Ann", 1.5, ["x"], "2024-01-05"],
        [1, "a", "U", 2, "Eve", 2.5, ["y"], "2024-01-06"],
        [2, "", "D", 1, "gone", None, None, "2024-01-05"],
        [3, "a", "D", 1, None, None, None, "2024-01-04"],
        [3, "a", "U", 1, "Zoë", 0.0, ["x", None], "2024-01-08"],
        [4, "a", "U", 1, "new", 1.0, None, "2024-01-02"],
    ],
    [
        [1, "a", "U", 1, "late", 0.5, ["x"], "2024-01-03"],
        [3, "a", "U", 1, "Zoë", 7.0, ["x", None], "2024-01-02"],
        [4, "a", "D", 1, None, None, None, "2024-01-01 12:00:00"],
    ],
]
LATER = {"name": 2, "tier": 1, "tags": 2}
CAUSES = {"change_reason": "why", "change_source": "origin", "correlation_id": "event"}
# columns of the batch with the cause of a row
GIVEN = [
    "if(id = 3, null, concat('because of ', name)) as why",
    "if(id = 4, null, concat('from ', seq)) as origin",
    "concat(id, '-', at) as event",
]
OWN = ("dimension", "actor", "batch_id", "row_id")
CASES: dict[str, dict[str, Any]] = {
    "plain": {"attributes": {"name": 2, "tier": 2, "tags": 2}},
    "all": {"attributes": {"*": 2}},
    "mixed": {"attributes": {"name": 6, "tier": {"scd_type": 3, "changed_at": True}, "tags": 0}},
    "flat": {
        "attributes": {"name": {"scd_type": 1, "changed_at": True}, "tier": 0, "tags": 3},
        "column_names": {"last_updated": "last_updated"},
    },
    "hash": {"attributes": LATER, "surrogate_key": "sk"},
    "dbt_utils": {"attributes": LATER, "surrogate_key": {"name": "sk", "strategy": "dbt_utils"}},
    "sequence": {"attributes": LATER, "surrogate_key": {"name": "sk", "strategy": "sequence"}},
    "names": {
        "attributes": {"name": 6, "tier": 3, "tags": 2},
        "column_names": {
            "valid_from": "from",
            "valid_to": "to; the day",
            "is_current": "Is it?",
            "version": None,
            "key_hash": None,
            "ended_by_delete": "ended",
            "last_updated": "last_updated",
            "previous_name": "name before",
        },
        "current_values": ["Y", "N"],
        "deleted_values": [1, 0],
        "valid_to_current": None,
    },
    "first": {"attributes": LATER, "valid_from_first": "1900-01-01", "valid_to_current": "2999-12-31"},
    "ties": {"attributes": LATER, "tie_break_by": ["seq"], "on_tie": "greatest"},
    "tie of an attribute": {"attributes": {"name": 2, "seq": 2}, "tie_break_by": ["seq"]},
    "full": {"attributes": LATER, "full_batch": True, "deleted_when": None, "max_removed_keys_ratio": 1},
    "while deleted": {"attributes": LATER, "current_while_deleted": True},
    "causes": {"attributes": {"name": 2, "tier": 6, "tags": 2}, **CAUSES, "audit": {"source": "the default"}},
    "audit": {"attributes": {"name": 6, "tier": 3, "tags": 0}, "audit": {"actor": "O'Neil", "reason": "nightly"}},
    "audit of keys": {
        "attributes": {"name": 2, "tier": 1},
        "surrogate_key": {"name": "sk", "strategy": "sequence"},
        "valid_from_first": "1900-01-01",
        "audit": {},
    },
    "audit of a full batch": {
        "attributes": LATER,
        "full_batch": True,
        "deleted_when": None,
        "max_removed_keys_ratio": 1,
        "surrogate_key": "sk",
        "change_reason": "why",
        "audit": {},
    },
    "audit of flat rows": {
        "attributes": {"name": 1, "tier": 3, "tags": 0},
        "current_while_deleted": True,
        "audit": {"table": "flat_audit"},
    },
    "dates": {"attributes": LATER, "moment": "cast(at as date)"},
    "no zone": {"attributes": LATER, "moment": "cast(at as timestamp_ntz)"},
}
NEWEST = {"name": 4, "tier": {"scd_type": 1, "changed_at": True}, "tags": 0}
TYPE_4: dict[str, dict[str, Any]] = {
    "type 4": {"attributes": {"*": 4}},
    "type 4 beside 0 and 1": {"attributes": NEWEST, "surrogate_key": "sk", "audit": {}},
    "type 4 with integers": {
        "attributes": {"name": 4, "tier": 1},
        "surrogate_key": {"name": "sk", "strategy": "sequence"},
        "valid_from_first": "1900-01-01",
    },
    "type 4 with causes": {
        "attributes": NEWEST,
        **CAUSES,
        "audit": {"source": "the default"},
        "surrogate_key": {"name": "sk", "strategy": "dbt_utils"},
    },
    "type 4 with names": {
        "attributes": NEWEST,
        "column_names": {
            "last_updated": "since when",
            "valid_from": "from",
            "valid_to": "until",
            "is_current": "Is it?",
            "version": "number",
            "key_hash": "hash",
            "ended_by_delete": "gone",
            "tier_changed_at": "tier since",
        },
        "current_values": ["Y", "N"],
        "deleted_values": [1, 0],
        "valid_from_first": "1900-01-01",
        "valid_to_current": "2999-12-31",
    },
    "type 4, full batches": {
        "attributes": NEWEST,
        "full_batch": True,
        "deleted_when": None,
        "max_removed_keys_ratio": 1,
        "change_reason": "why",
        "audit": {},
    },
    "type 4, dates": {"attributes": {"name": 4, "tier": 1}, "moment": "cast(at as date)"},
}
MOMENTS = ["2024-01-01", "2024-01-09", "2024-01-07"]


def batches(lab: Lab, moment: str, causes: list[str]) -> list[DataFrame]:
    """With hostile names of a key and an attribute."""
    frames = [lab.frame(COLUMNS, rows) for rows in ROWS]
    names = ["id", "`the ``key`` of it` as part", "op", "seq", "name", "tier", "tags", *causes, f"{moment} as at"]
    renamed = [frame.withColumnRenamed("part", "the `key` of it") for frame in frames]
    return [frame.selectExpr("id", "`the ``key`` of it`", *names[2:]) for frame in renamed]


@pytest.mark.parametrize("case", CASES)
def test_twins(lab: Lab, case: str) -> None:
    options = {"changed_at": "at", "deleted_when": "op = 'D'", **CASES[case]}
    options["key_columns"] = ["id", "the `key` of it"]
    given = [column for column in GIVEN if column.split()[-1] in map(str, options.values())]
    frames = batches(lab, options.pop("moment", "at"), given)
    number = list(CASES).index(case)
    by_sql, by_library = (f"{lab.schema}.{way}_{number}" for way in ("sql", "library"))
    spec = DimensionSpec(**options, change_log=f"{by_library}_changes")
    audits = [f"{by_sql}_audit", f"{by_library}_audit"]
    if spec.audit is not None and (named := spec.audit.get("table")):
        audits = [f"{lab.schema}.{named}_sql", f"{lab.schema}.{named}_library"]
        options["audit"], spec = {"table": audits[0]}, replace(spec, audit={"table": audits[1]})
    for place in (0, 1, 2, 0):
        at = MOMENTS[place] if options.get("full_batch") else None
        merge(frames[place], by_library, spec, at=at)
        merge_model(lab, f"sql_{number}", frames[place], **options, **({"at": at} if at else {}))
        merge_by_sql(lab, f"sql_{number}")
        assert_same(lab, by_sql, by_library)
    if spec.audit is not None:
        assert_same_audit(lab, spec, *audits)
    logs = [lab.spark.table(f"{name}_changes").drop("merge_id", "logged_at") for name in (by_sql, by_library)]
    assert logs[0].dtypes == logs[1].dtypes
    assert repr(plain_rows(logs[0])) == repr(plain_rows(logs[1]))


@pytest.mark.parametrize("has_log", [True, False], ids=["log", "no log"])
@pytest.mark.parametrize("case", TYPE_4)
def test_twins_of_type_4(lab: Lab, case: str, has_log: bool) -> None:
    """In the order of their moments, the library needs no log."""
    options = {"changed_at": "at", "deleted_when": "op = 'D'", **TYPE_4[case]}
    options["key_columns"] = ["id", "the `key` of it"]
    given = [column for column in GIVEN if column.split()[-1] in map(str, options.values())]
    frames = batches(lab, options.pop("moment", "at"), given)
    number = list(TYPE_4).index(case)
    model = f"four_{number}_{has_log}".lower()
    by_sql, by_library = f"{lab.schema}.{model}", f"{lab.schema}.twin_{model}"
    spec = DimensionSpec(**options, change_log=f"{by_library}_changes" if has_log else None)
    for place in (0, 1, 2, 0) if has_log else (0, 1, 1):
        at = MOMENTS[place] if options.get("full_batch") else None
        merge(frames[place], by_library, spec, at=at)
        merge_model(lab, model, frames[place], **options, **({"at": at} if at else {}))
        merge_by_sql(lab, model)
        assert_same(lab, by_sql, by_library)
        assert_same(lab, f"{by_sql}_history", f"{by_library}_history")
    assert not lab.spark.table(f"{by_sql}_history").isEmpty()
    if spec.audit is not None:
        assert_same_audit(lab, spec, f"{by_sql}_audit", f"{by_library}_audit")


def assert_same_audit(lab: Lab, spec: DimensionSpec, one: str, other: str) -> None:
    own = [name for name in OWN if not (spec.audit or {}).get(name)]
    tables = [lab.spark.table(name) for name in (one, other)]
    assert tables[0].dtypes == tables[1].dtypes
    assert tables[0].select("row_id").distinct().count() == tables[0].count() > 0
    found, wanted = (plain_rows(table.drop(*own)) for table in tables)
    assert repr(found) == repr(wanted)


def assert_same(lab: Lab, one: str, other: str) -> None:
    tables = [lab.spark.table(name) for name in (one, other)]
    assert tables[0].dtypes == tables[1].dtypes
    found, wanted = (plain_rows(table) for table in tables)
    assert repr(found) == repr(wanted)
