"""Batches merged in order give the dimension that a rebuild gives: the two halves of the package check each other."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest
from lab import Lab, plain_rows

from healing_tables import DimensionSpec, merge

COLUMNS = {
    "id": "int",
    "part": "string",
    "at": "timestamp",
    "op": "string",
    "a_text": "string",
    "b_double": "double",
    "c_decimal": "decimal(12,8)",
    "d_date": "date",
    "e_stamp": "timestamp",
    "f_flag": "boolean",
    "g_bytes": "binary",
    "h_list": "array<string>",
}
ATTRIBUTES: dict[str, Any] = {
    "a_text": 2,
    "b_double": 2,
    "c_decimal": 6,
    "d_date": {"scd_type": 3, "changed_at": True},
    "e_stamp": {"scd_type": 1, "changed_at": True},
    "f_flag": 1,
    "g_bytes": 2,
    "h_list": 6,
}
OPTIONS: dict[str, Any] = {
    "column_names": {
        "ended_by_delete": "ended_by_delete",
        "last_updated": "last_updated",
        "change_reason": "change_reason",
    },
    "surrogate_key": {"name": "sk", "strategy": "hash"},
    "valid_to_current": "2999-12-31",
    "current_values": ["Y", "N"],
}
START = dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc)


def history(seed: int) -> list[tuple[Any, ...]]:
    choose = random.Random(seed)
    rows: list[tuple[Any, ...]] = []
    for key in range(25):
        moments = choose.sample(range(2000), choose.randint(1, 9))
        for minute in moments:
            values = (
                choose.choice([None, "", "a", "a|b", "^^NULL^^", "back\\slash"]),
                choose.choice([None, 0.0, -0.0, 1.5, float("nan")]),
                choose.choice([None, Decimal("0.00000001"), Decimal("2.5")]),
                choose.choice([None, dt.date(2024, 2, 29), dt.date(1900, 1, 1)]),
                choose.choice([None, START + dt.timedelta(microseconds=1230)]),
                choose.choice([None, True, False]),
                choose.choice([None, b"\x00\xff", b""]),
                choose.choice([None, [], ["x", None], ["x"]]),
            )
            gone = choose.random() < 0.25
            at = START + dt.timedelta(minutes=minute, microseconds=minute)
            rows.append((key, "ß|" if key % 2 else "p", at, "D" if gone else "U", *values))
    return rows


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(("seed", "cuts"), [(1, [300, 301, 900]), (2, [1500])])
def test_batches_in_order_equal_a_rebuild(lab: Lab, seed: int, cuts: list[int]) -> None:
    ddl = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    changes = lab.spark.createDataFrame(history(seed), ddl)
    changes.write.saveAsTable(f"{lab.schema}.changes_{seed}", format="parquet")
    source = (
        f"{{'log': {{'relation': api.Relation.create(schema=target.schema, identifier='changes_{seed}'), "
        "'changed_at': 'at', 'deleted_when': \"op = 'D'\"}}"
    )
    arguments = ", ".join(f"{name}={value!r}" for name, value in OPTIONS.items())
    lab.model(
        f"rebuilt_{seed}",
        f"{{{{ healing_tables.dimension(sources={source}, key_columns=['id', 'part'], attributes={ATTRIBUTES!r}, {arguments}) }}}}",
        materialized="table",
        file_format="parquet",
    )
    lab.dbt("run", "--select", f"rebuilt_{seed}")
    assert lab.results[f"rebuilt_{seed}"][0] == "success", lab.results
    spec = DimensionSpec(
        key_columns=["id", "part"],
        attributes=ATTRIBUTES,
        changed_at="at",
        deleted_when="op = 'D'",
        max_removed_keys_ratio=1,
        **OPTIONS,
    )
    name = f"{lab.schema}.merged_{seed}"
    edges = [START + dt.timedelta(minutes=minute) for minute in [-1, *cuts, 3000]]
    read = lab.spark.table(f"{lab.schema}.changes_{seed}")
    for low, high in pairwise(edges):
        part = read.where(
            f"at > timestamp '{low.isoformat()}' and at <= timestamp '{high.isoformat()}'"
        )
        merge(part, name, spec)
    rebuilt, merged = lab.spark.table(f"{lab.schema}.rebuilt_{seed}"), lab.spark.table(name)
    assert merged.columns == rebuilt.columns
    assert dict(merged.dtypes) == dict(rebuilt.dtypes)
    assert repr(plain_rows(merged)) == repr(plain_rows(rebuilt))
    # whatever is merged again is known already
    assert merge(read, name, spec).commit_version is None
