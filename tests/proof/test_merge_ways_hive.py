"""As test_merge_ways.py, in Hive tables: one commit names the folders of a merge by either way."""

from __future__ import annotations

from typing import Any

import pytest
from lab import Lab
from random_histories import SEED, assert_is, expected, frame, in_any_order, mix, random_changes, spec_for
from test_merge_ways import logged, options_of
from ways import merge_by_sql, merge_model

from healing_tables import HiveTarget, merge

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("interpreted")]
TYPES = (2, 0, 1, 3, 6)


@pytest.mark.parametrize("ways", ["sql", "library sql", "sql library"])
@pytest.mark.parametrize(("file_format", "buckets"), [("parquet", None), ("orc", 4)])
def test_batches_in_any_order_by_both_ways(lab: Lab, file_format: str, buckets: int | None, ways: str) -> None:
    model = f"{file_format}_{ways}".replace(" ", "_")
    name = f"{lab.schema}.{model}"
    attributes = mix(SEED + 1, TYPES)
    spec = spec_for(attributes, change_log=f"{name}_changes")
    rows = random_changes(SEED + 1)
    parts = in_any_order(rows, 4)
    options: dict[str, Any] = {"config": {"file_format": file_format}}
    if buckets is not None:
        options["key_buckets"] = buckets
    for number, part in enumerate([*parts, parts[1]]):
        way = ways.split()[number % len(ways.split())]
        if way == "library":
            merge(frame(lab.spark, part), HiveTarget(name, file_format, buckets), spec)
        else:
            merge_model(lab, model, frame(lab.spark, part), **options_of(spec, attributes), **options)
            assert merge_by_sql(lab, model)["status"] == ("published" if number < 4 else "unchanged")
    assert_is(lab.spark, name, expected(rows, spec))
    assert len(logged(lab, name)) == len(rows)
    assert len(logged(lab, name, ["id", "changed_at"])) == len({(row["id"], row["at"]) for row in rows})
