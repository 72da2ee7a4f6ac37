"""Columns of a stored dimension that get a wider type, and columns that the table itself computes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from people_batches import BATCH, SPEC, batch, interrupted, versions
from sessions import SPARK
from tables import Tables

from healing_tables import DimensionSpec, LateChangeError, TargetError, merge
from healing_tables.merge.attempt import Attempt
from healing_tables.merge.dry_run import dry_run
from healing_tables.merge.outbox import Outbox
from healing_tables.targets import delta

pytestmark = pytest.mark.usefixtures("interpreted")


def location(tables: Tables, name: str) -> str:
    place = tables.spark.sql(f"describe detail {name}").collect()[0]["location"]
    return str(place).removeprefix("file:")


@pytest.fixture
def dim(tables: Tables, request: pytest.FixtureRequest) -> str:
    return f"{tables.schema}.{request.node.name.split('[')[0].removeprefix('test_')}"


SYNC: dict[str, Any] = {"on_schema_change": "sync_all_columns"}
BIG = 2**40


def kinds(tables: Tables, name: str) -> dict[str, str]:
    return dict(tables.spark.table(name).dtypes)


@pytest.mark.slow
def test_types_are_widened(tables: Tables, dim: str) -> None:
    """Of keys, of attributes and of the columns that they add; a batch that is refused changes no type."""
    attributes = {"points": 6, "rate": 3, "price": 1}
    ddl = "id {0}, points {0}, rate {1}, price {2}, level int".format
    narrow, wide = ddl("int", "float", "decimal(9,2)"), ddl("bigint", "double", "decimal(12,4)")
    cents = Decimal("1.25")
    plain = DimensionSpec(key_columns="id", attributes={**attributes, "level": 2}, audit={})
    spec = replace(plain, **SYNC)
    merge(batch(tables, [(1, 1, 0.5, cents, 1)], narrow), dim, plain, at="2024-01-01")
    before = kinds(tables, dim)
    rows = [(1, BIG, 0.1, cents, 1), (BIG, 7, 0.5, cents, 1)]
    with pytest.raises(TargetError, match="the batch has 4 mistakes"):
        merge(batch(tables, rows, wide), dim, plain, at="2024-01-02")
    with pytest.raises(LateChangeError):
        merge(batch(tables, rows, wide), dim, spec, at="2023-01-02")
    assert kinds(tables, dim) == before
    assert merge(batch(tables, rows, wide), dim, spec, at="2024-01-02").attempts == 1
    after = kinds(tables, dim)
    changed = {name: kind for name, kind in after.items() if before[name] != kind}
    numbers = dict.fromkeys(["id", "points", "current_points", "previous_points"], "bigint")
    assert changed == {**numbers, "rate": "double", "previous_rate": "double", "price": "decimal(12,4)"}
    told = ["id", "points", "current_points", "previous_points", "rate", "previous_rate", "price"]
    more = Decimal("1.2500")
    assert versions(tables, dim, *told) == [
        (1, 1, BIG, None, 0.5, None, more),
        (1, BIG, BIG, 1, 0.1, 0.5, more),
        (BIG, 7, 7, None, 0.5, None, more),
    ]
    assert tables.spark.table(dim).selectExpr("count(distinct key_hash)").collect()[0][0] == 2
    # equal rows, of the narrower types or of the new ones, change nothing
    for rows_, given in ((rows, wide), ([(1, 1, 0.5, cents, 1)], narrow)):
        known = batch(tables, rows_, given).where(f"points = {BIG} or id > 1")
        assert merge(known, dim, plain, at="2024-01-03").commit_version is None
    assert merge(batch(tables, [(1, 1, 0.5, cents, 1)], narrow), dim, plain, at="2024-01-04").inserted == 1


@pytest.mark.slow
def test_types_that_cannot_be_widened(tables: Tables, dim: str) -> None:
    """The hash of a key contains its digits; Delta needs a digit more than the largest bigint."""
    merge(batch(tables, [(Decimal("1.5"), 1)], "id decimal(9,1), n bigint"), dim, DimensionSpec(key_columns="id"))
    spec = DimensionSpec(key_columns="id", **SYNC)
    with pytest.raises(TargetError) as error:
        merge(batch(tables, [], "id decimal(10,2), n decimal(19,0)"), dim, spec)
    assert "the hash of a key" in error.value.mistakes[0].wanted
    assert error.value.mistakes[1].remedy.startswith("copy the rows to a new table")
    with pytest.raises(TargetError, match="that the batch and the spec do not have"):
        merge(batch(tables, [], "id decimal(9,1)"), dim, spec)
    assert merge(batch(tables, [], "id decimal(11,1), n decimal(20,0)"), dim, spec).commit_version is None
    assert (kinds(tables, dim)["id"], kinds(tables, dim)["n"]) == ("decimal(11,1)", "decimal(20,0)")


@pytest.mark.slow
def test_types_are_widened_in_the_tables_beside(tables: Tables, dim: str) -> None:
    """The history, and the struct in the outbox; with a new column at once. A process is killed in between."""
    narrow = DimensionSpec(key_columns="id", attributes={"points": 4})
    merge(batch(tables, [(1, 1)], "id int, points int"), dim, narrow, at="2024-01-01")
    wide = batch(tables, [(1, BIG, "a"), (BIG, 2, "b")], "id bigint, points bigint, mail string")
    spec = DimensionSpec(key_columns="id", attributes={"points": 4, "mail": 4}, **SYNC)
    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Outbox, "run_merge", interrupted)
        merge(wide, dim, spec, at="2024-01-02")
    merge(wide, dim, spec, at="2024-01-02")
    last = batch(tables, [(1, 3, "a"), (BIG, BIG, "b")], "id bigint, points bigint, mail string")
    merge(last, dim, spec, at="2024-01-03")
    assert versions(tables, dim, "id", "points", "mail") == [(1, 3, "a"), (BIG, BIG, "b")]
    found = versions(tables, f"{dim}_history", "id", "points", "mail")
    assert found == [(1, 1, None), (1, BIG, "a"), (BIG, 2, "b")]


@pytest.mark.slow
def test_types_are_widened_in_the_change_log(tables: Tables, dim: str) -> None:
    """A late change of the wider type is placed."""
    options: dict[str, Any] = {"key_columns": "id", "attributes": ["points"], "change_log": f"{dim}_changes"}
    ddl = "id int, points {}".format
    merge(batch(tables, [(1, 1)], ddl("int")), dim, DimensionSpec(**options), at="2024-01-01")
    spec = DimensionSpec(**options, **SYNC, surrogate_key={"name": "sk", "strategy": "sequence"})
    with pytest.raises(TargetError, match="sk"):
        merge(batch(tables, [(1, BIG)], ddl("bigint")), dim, spec, at="2024-01-05")
    spec = DimensionSpec(**options, **SYNC)
    merge(batch(tables, [(1, BIG)], ddl("bigint")), dim, spec, at="2024-01-05")
    merge(batch(tables, [(1, BIG + 1)], ddl("bigint")), dim, spec, at="2024-01-03")
    assert versions(tables, dim, "points") == [(1,), (BIG,), (BIG + 1,)]
    assert kinds(tables, f"{dim}_changes")["points"] == "bigint"


@pytest.mark.slow
@pytest.mark.parametrize("other", ["bigint", "decimal(22,2)", "int"])
def test_another_writer_while_types_are_widened(
    tables: Tables, dim: str, between: Callable[[type, str, Callable[[], object]], None], other: str
) -> None:
    """It widens the same column, or changes the same key."""
    dim = f"{dim}_{other[:3]}"
    ddl, spec = "id int, points {}".format, DimensionSpec(key_columns="id", audit={}, **SYNC)
    merge(batch(tables, [(1, 1)], ddl("int")), dim, spec, at="2024-01-01")
    second = batch(tables, [(1, 2)], ddl("int")).selectExpr("id", f"cast(points as {other}) as points")
    between(Attempt, "commit", lambda: merge(second, dim, spec, at="2024-01-02"))
    assert merge(batch(tables, [(1, BIG)], ddl("bigint")), dim, spec, at="2024-01-03").attempts == 2
    assert versions(tables, dim, "version", "points") == [(1, 1), (2, 2), (3, BIG)]


BY_SQL = pytest.mark.skipif(SPARK < (4, 2), reason="an older Delta makes identity columns in Python only")


@BY_SQL
def test_columns_that_the_table_computes(either: Tables) -> None:
    """Identity and generated columns are not written."""
    dim = f"{either.schema}.computed"
    either.spark.sql(
        f"create table {dim} (row_no bigint generated always as identity, id int, name string, mail string, "
        "upper_name string generated always as (upper(name)), valid_from timestamp, valid_to timestamp, "
        "is_current boolean generated always as (valid_to > timestamp '9999-01-01'), ended_by_delete boolean) "
        "using delta"
    )
    spec = replace(SPEC, audit={})
    assert merge(batch(either, [(1, "Ann", "a"), (2, "Bo", "b")]), dim, spec, at="2024-01-01").inserted == 2
    wider = batch(either, [(1, "Ann", "c", 1), (2, "Bea", "b", 1)], BATCH + ", level int")
    append = DimensionSpec(key_columns="id", attributes={"name": 2, "mail": 1, "level": 1}, audit={}, **SYNC)
    result = merge(wider, dim, append, at="2024-01-02")
    assert (result.inserted, result.closed, result.updated, result.attempts) == (1, 1, 1, 1)
    spec = replace(append, full_batch=True)
    full = batch(either, [(2, "Bea", "d", 1)], BATCH + ", level int")
    assert str(dry_run(full, dim, spec)) == "1 row in the batch would be 1 closed, 2 updated"
    assert merge(full, dim, spec, at="2024-01-03").closed == 1
    told = ["id", "name", "mail", "upper_name", "is_current"]
    assert versions(either, dim, *told) == [
        (1, "Ann", "c", "ANN", False),
        (2, "Bea", "d", "BEA", True),
        (2, "Bo", "d", "BO", False),
    ]
    assert len(set(versions(either, dim, "row_no"))) == 3
    shouting = batch(either, [], f"{BATCH}, level int, upper_name string")
    with pytest.raises(TargetError, match="upper_name\n.*the table computes its values"):
        merge(shouting, dim, DimensionSpec(key_columns="id"), at="2024-01-04")
    # the batch lacks mail and level, which are attributes by '*'; what the table computes is none
    lost = batch(either, [(2, "Cy")], "id int, name string")
    keep = DimensionSpec(key_columns="id", attributes={"name": 2, "*": 1}, audit={}, missing_columns="keep")
    assert merge(lost, dim, keep, at="2024-01-05").inserted == 1
    assert versions(either, dim, *told)[-1] == (2, "Cy", "d", "CY", True)


@BY_SQL
def test_computed_columns_in_a_checkpoint(tables: Tables, dim: str) -> None:
    """Delta deletes the older commits."""
    columns = "id int, `Next one` int generated always as (id + 1), row_no bigint generated by default as identity"
    properties = "'delta.checkpointInterval' = '1', 'delta.columnMapping.mode' = 'name'"
    tables.spark.sql(f"create table {dim} ({columns}) using delta tblproperties ({properties})")
    tables.spark.sql(f"insert into {dim} (id, row_no) values (1, 7)")
    tables.spark.sql(f"delete from {dim}")
    files = sorted(Path(location(tables, dim), "_delta_log").glob("*.json"))
    assert '"metaData"' not in files[-1].read_text()
    for file in files[:-1]:
        file.unlink()
    assert delta.DeltaTarget(dim).computed_columns(tables.spark) == {"Next one": False, "row_no": True}


@BY_SQL
@pytest.mark.slow
def test_numbers_in_an_identity_column(tables: Tables, dim: str) -> None:
    """Of a table that lets a writer give them; otherwise they are not a surrogate key of the merge."""
    sequence = replace(SPEC, surrogate_key={"name": "sk", "strategy": "sequence"})
    create = (
        "create table {} (sk bigint generated {} as identity, id int, name string, mail string, valid_from timestamp, "
        "valid_to timestamp) using delta"
    ).format
    tables.spark.sql(create(dim, "by default"))
    for name, day in (("Ann", 1), ("Bea", 2)):
        merge(batch(tables, [(1, name, "a")]), dim, sequence, at=f"2024-01-0{day}")
    assert versions(tables, dim, "sk", "name") == [(1, "Ann"), (2, "Bea")]
    tables.spark.sql(create(f"{dim}_2", "always"))
    with pytest.raises(TargetError, match="sk\n.*the table computes its values"):
        merge(batch(tables, [(1, "Ann", "a")]), f"{dim}_2", sequence)
    assert merge(batch(tables, [(1, "Ann", "a")]), f"{dim}_2", SPEC).inserted == 1
