"""The property that Spark tests of its AUTO CDC: shuffled and repeated events of some keys, in eight batches, give the
rows that the reference makes of all of them."""

from __future__ import annotations

import datetime as dt
import random
from dataclasses import replace

import pytest
import reference as ref
from lab import Lab
from random_histories import LAST, LOGGED, NAMES, SEED, START, assert_is, ddl, in_any_order, mix, spec_for
from random_histories import expected as expected_of
from reference import Row
from ways import merge_by_sql, merge_model

from healing_tables import DimensionSpec, merge

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("interpreted")]
HISTORIES = 20  # with keys of their own, merged together


def events(seed: int) -> list[Row]:
    """Five keys with up to 80 events each: a fifth deletions, a sixth twice, a quarter of the values NULL; events of a
    key often have one moment."""
    choose = random.Random(seed)
    found: list[Row] = []
    for key in range(seed * 5, seed * 5 + 5):
        for lsn in range(choose.randint(1, 80)):
            at = START + dt.timedelta(minutes=choose.randrange(40))
            op = "D" if choose.random() < 1 / 5 else "U"
            values = {name: choose.choice([None, "x", "y", "z"]) for name in NAMES}
            row = {"id": key, "at": at, "op": op, **values, "lsn": lsn}
            found += [row] * (2 if choose.random() < 1 / 6 else 1)
    choose.shuffle(found)
    return found


def expected(rows: list[Row], spec: DimensionSpec) -> ref.Dimension:
    dim = expected_of(rows, spec)
    (source,) = dim.sources
    return replace(dim, sources=(replace(source, columns={**source.columns, "lsn": "int"}, tie_break_by=("lsn",)),))


@pytest.mark.parametrize("family", LOGGED)
@pytest.mark.parametrize("ways", ["library", "sql library"])
def test_eight_batches(lab: Lab, ways: str, family: str) -> None:
    model = f"dim_{family}_{ways}".replace(" ", "_")
    name, attributes = f"{lab.schema}.{model}", mix(SEED, LOGGED[family])
    options = {"changed_at": "at", "deleted_when": "op = 'D'", "tie_break_by": ["lsn"], "valid_to_current": LAST}
    spec = spec_for(attributes, **{**options, "change_log": f"{name}_changes"})
    rows = [row for seed in range(SEED, SEED + HISTORIES) for row in events(seed)]
    for number, part in enumerate(in_any_order(rows, 8)):
        batch = lab.spark.createDataFrame([tuple(row.values()) for row in part], f"{ddl()}, lsn int")
        if ways.split()[number % len(ways.split())] == "library":
            merge(batch, name, spec)
        else:
            merge_model(lab, model, batch, attributes=attributes, max_removed_keys_ratio=1, **options)
            merge_by_sql(lab, model)
    assert_is(lab.spark, name, expected(rows, spec))
    log = lab.spark.table(f"{name}_changes").select("id", "changed_at", "lsn")
    assert log.count() == log.distinct().count()
