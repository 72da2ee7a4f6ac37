"""Feeds of change data capture, merged by either way in any order, give the dimension of all their rows."""

from __future__ import annotations

from typing import Any

import pytest
from lab import Lab
from random_feeds import RULES, expected, frame, options_of, random_feed
from random_histories import LAST, LOGGED, NAMES, SEED, assert_is, in_any_order, mix, spec_for
from reference import Row
from sessions import FORMAT
from ways import merge_by_sql, merge_model

from healing_tables import HiveTarget, merge

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("interpreted")]


def as_logged(row: Row, rules: str) -> tuple[Any, ...]:
    """What the log keeps: a deletion has no values, and no option of these rules names the sequence."""
    values = [row[name] if row["op"] == "U" else None for name in NAMES]
    return (row["id"], row["at"], row["op"], *values, row["lsn"] if rules != "greatest" else None)


@pytest.mark.parametrize("ways", ["sql", "library sql"])
@pytest.mark.parametrize("rules", RULES)
def test_batches_in_any_order(lab: Lab, rules: str, ways: str) -> None:
    families = [family for family in LOGGED if family != "type 4" or "deleted_rows" not in RULES[rules]]
    family = families[list(RULES).index(rules) % len(families)]
    merge_in_any_order(lab, f"dim_{rules}_{ways}".replace(" ", "_"), family, rules, ways)


@pytest.mark.skipif(FORMAT != "delta", reason="a catalog of Iceberg has no tables of files")
@pytest.mark.parametrize(("file_format", "buckets"), [("parquet", None), ("orc", 4)])
@pytest.mark.parametrize("rules", ["partial", "sequence"])
def test_in_hive_tables(lab: Lab, rules: str, file_format: str, buckets: int | None) -> None:
    merge_in_any_order(lab, f"{file_format}_{rules}", "flat", rules, "sql library", HiveTarget, file_format, buckets)


def merge_in_any_order(lab: Lab, model: str, family: str, rules: str, ways: str, kind: Any = None, *hive: Any) -> None:
    """Args: kind, hive: the class of a target of the library, and its arguments after the name."""
    name = f"{lab.schema}.{model}"
    attributes = mix(SEED + 1, LOGGED[family])
    options = {"changed_at": "at", "max_removed_keys_ratio": 1, "valid_to_current": LAST, **options_of(rules)}
    spec = spec_for(attributes, **{**options, "change_log": f"{name}_changes"})
    if hive:
        options |= {"config": {"file_format": hive[0]}} | ({"key_buckets": hive[1]} if hive[1] else {})
    rows = random_feed(SEED, rules)
    parts = in_any_order(rows, 4)
    for number, part in enumerate([*parts, parts[1]]):
        if ways.split()[number % len(ways.split())] == "library":
            merge(frame(lab.spark, part), name if kind is None else kind(name, *hive), spec)
        else:
            merge_model(lab, model, frame(lab.spark, part), **options, attributes=attributes)
            assert merge_by_sql(lab, model)["status"] == ("published" if number < 4 else "unchanged")
    assert_is(lab.spark, name, expected(rows, spec, rules))
    assert lab.spark.table(f"{name}_changes").count() == len({as_logged(row, rules) for row in rows})
