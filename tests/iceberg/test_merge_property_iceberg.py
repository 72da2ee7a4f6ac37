"""Random histories of many keys, merged into Iceberg batch by batch, give the dimension that the reference gives."""

from __future__ import annotations

import pytest
from random_histories import (
    FAMILIES,
    LOGGED,
    SEED,
    assert_is,
    expected,
    frame,
    in_any_order,
    in_order,
    mix,
    random_changes,
    spec_for,
)
from tables import Tables

from healing_tables import IcebergTarget, merge

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("interpreted")]


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("family", FAMILIES)
def test_any_cut_gives_the_dimension_of_the_whole(tables: Tables, family: str, mode: str) -> None:
    """Each batch comes twice, one right after the other: the second one changes nothing."""
    types, kind, options = FAMILIES[family]
    seed = SEED + sum(map(ord, family))
    spec = spec_for(mix(seed, types), **options)
    rows = random_changes(seed, kind=kind)
    name = f"{tables.schema}.{family.replace(' ', '_')}_{mode[:4]}"
    target = IcebergTarget(name, properties={"write.merge.mode": mode})
    for part in in_order(rows, 3):
        for is_repeated in (False, True):
            result = merge(frame(tables.spark, part, kind), target, spec)
            assert result.commit_version is None or not is_repeated
    assert_is(tables.spark, name, expected(rows, spec, kind))


@pytest.mark.parametrize("family", LOGGED)
def test_a_log_gives_the_whole_in_any_order(tables: Tables, family: str) -> None:
    name = f"{tables.schema}.logged_{family.replace(' ', '_')}"
    spec = spec_for(mix(SEED + 1, LOGGED[family]), change_log=f"{name}_changes")
    rows = random_changes(SEED + 1)
    parts = in_any_order(rows, 4)
    for part in parts:
        merge(frame(tables.spark, part), name, spec)
    assert merge(frame(tables.spark, parts[0]), name, spec).commit_version is None
    assert_is(tables.spark, name, expected(rows, spec))
