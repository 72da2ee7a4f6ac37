"""What a merge does beyond the cases: bad input, other writers, deletions, side tables, surrogate keys."""

from __future__ import annotations

import datetime as dt
import hashlib
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from hash_examples import HASHED
from people_batches import BATCH, SPEC, batch, interrupted, versions
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from sessions import with_settings
from tables import Tables, plain_rows

from healing_tables import (
    ArgumentError,
    BatchError,
    DimensionSpec,
    GuardError,
    HealingTablesError,
    LateChangeError,
    SpecError,
    TargetError,
    merge,
    plan,
)
from healing_tables.merge import attempt
from healing_tables.merge.outbox import Outbox
from healing_tables.sql import instants
from healing_tables.targets import conflicts, delta, merge_statement, retry
from healing_tables.targets.naming import full_name

pytestmark = pytest.mark.usefixtures("interpreted")
METADATA = "spark.databricks.delta.commitInfo.userMetadata"


@pytest.fixture
def dim(tables: Tables, request: pytest.FixtureRequest) -> str:
    return f"{tables.schema}.{request.node.name.split('[')[0].removeprefix('test_')}"


def test_all_mistakes_of_a_spec_come_together() -> None:
    given = {
        "KEYS": ["id"],
        "DIFF_COLS": ["name"],
        "key_columns": ["id"],
        "on_tie": "first",
        "valid_to_current": "soon",
        "column_names": {"valid_form": "since"},
        "surrogate_key": {"name": "sk", "strategy": "uuid"},
        "max_removed_keys_ratio": 2,
        "colour": "red",
    }
    with pytest.raises(SpecError) as error:
        DimensionSpec.from_dict(given)
    assert [mistake.where for mistake in error.value.mistakes] == [
        "KEYS",
        "colour",
        "column_names.valid_form",
        "surrogate_key.strategy",
        "on_tie",
        "max_removed_keys_ratio",
        "valid_to_current",
    ]
    assert "7 mistakes; nothing was written." in str(error.value)
    with pytest.raises(SpecError, match="columns that attributes does not name"):
        DimensionSpec.from_dict({"KEYS": "id", "DIFF_COLS": ["a"], "attributes": {"a": 1}})
    with pytest.raises(SpecError, match="type 4 with type 2"):
        DimensionSpec(key_columns="id", attributes={"a": 4, "b": 2})
    with pytest.raises(SpecError, match=r"one of 0, 1, 2, 3, 4, 6"):
        DimensionSpec(key_columns="id", attributes={"a": 5})


def test_a_spec_from_yaml(tmp_path: Any) -> None:
    path = tmp_path / "dim.yml"
    path.write_text("KEYS: [id]\nDIFF_COLS: [name]\nvalid_from_first: 1900-01-01\n")
    spec = DimensionSpec.from_yaml(path)
    assert spec.keys == ("id",)
    assert spec == DimensionSpec(key_columns=["id"], attributes=["name"], valid_from_first=spec.valid_from_first)
    path.write_text("KEYS: [id]\nDIFF_COLS: [name]\nattributes: {mail: 1, tier: }\n")
    mixed = DimensionSpec(key_columns="id", attributes={"name": 2, "mail": 1, "tier": 2})
    assert DimensionSpec.from_yaml(path) == mixed


def test_an_unchanged_batch_commits_nothing(tables: Tables, dim: str) -> None:
    rows = [(1, "Ann", "a@x"), (2, None, None)]
    first = merge(batch(tables, rows), dim, SPEC, at="2024-01-01 00:00:00")
    assert (first.rows_in_batch, first.inserted, first.closed, first.updated) == (2, 2, 0, 0)
    again = merge(batch(tables, rows), dim, SPEC, at="2024-01-02 00:00:00")
    assert (again.inserted, again.closed, again.updated, again.commit_version) == (0, 0, 0, None)
    # the same batch at its own moment, and one that agrees with what was in force then
    merge(batch(tables, [(1, "Bea", "b@x")]), dim, SPEC, at="2024-01-03 00:00:00")
    old = merge(batch(tables, rows), dim, SPEC, at="2024-01-01 00:00:00")
    assert old.commit_version is None
    assert tables.spark.sql(f"describe history {dim}").count() == 3  # made, merged, merged
    assert versions(tables, dim, "id", "name", "mail", "version") == [
        (1, "Ann", "b@x", 1),
        (1, "Bea", "b@x", 2),
        (2, None, None, 1),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("wanted", ["true", "false"])
def test_rows_that_change_are_marked_in_their_files(tables: Tables, dim: str, wanted: str) -> None:
    """By deletion vectors, unless the properties say otherwise."""
    name = f"{dim}_{wanted}"
    properties = {} if wanted == "true" else {"delta.enableDeletionVectors": wanted}
    target = delta.DeltaTarget(name, properties=properties)
    many = batch(tables, [(number, "Ada", "a@x") for number in range(50)]).coalesce(1)
    merge(many, target, SPEC, at="2024-01-01")
    merge(batch(tables, [(7, "Eve", "a@x")]), target, SPEC, at="2024-02-01")
    shown = tables.spark.sql(f"show tblproperties {name}").collect()
    assert ("delta.enableDeletionVectors", wanted) in [tuple(row) for row in shown]
    newest = tables.spark.sql(f"describe history {name} limit 1").collect()[0]["operationMetrics"]
    assert int(newest["numTargetDeletionVectorsAdded"]) == (1 if wanted == "true" else 0)
    assert int(newest["numTargetRowsCopied"]) == (0 if wanted == "true" else 49)


@pytest.mark.slow
@pytest.mark.parametrize("kinds, narrowed", [(("int", "string", "decimal(9,2)"), True), (("double",), False)])
def test_a_merge_of_few_rows_names_the_buckets_of_its_keys(
    tables: Tables, dim: str, kinds: tuple[str, ...], narrowed: bool
) -> None:
    """So that Delta need not shuffle the rest of the table."""
    name, keys = f"{dim}_{len(kinds)}", [f"key_{number}" for number in range(len(kinds))]
    cast = [f"cast(id as {kind}) as {key}" for key, kind in zip(keys, kinds, strict=True)]
    cast += ["name", "mail"]
    spec = DimensionSpec(key_columns=keys, attributes={"name": 2, "mail": 1})
    many = batch(tables, [(number, "Ada", "a@x") for number in range(50)]).selectExpr(*cast)
    merge(many, name, spec, at="2024-01-01")
    news = batch(tables, [(7, "Eve", "a@x"), (77, "Ada", "a@x")]).selectExpr(*cast)
    result = merge(news, name, spec, at="2024-02-01")
    assert (result.inserted, result.closed) == (2, 1)
    commits = tables.spark.sql(f"describe history {name}").where("operation = 'MERGE'").collect()
    found = ["xxhash64" in commit["operationParameters"]["predicate"] for commit in commits]
    assert found == [narrowed, False]  # the first merge makes the table
    table = tables.spark.table(name)
    assert (table.count(), table.where("is_current").count()) == (52, 51)


def test_late_changes_are_refused_with_their_keys(tables: Tables, dim: str) -> None:
    merge(batch(tables, [(n, "A", None) for n in range(9)]), dim, SPEC, at="2024-01-05 00:00:00")
    before = tables.spark.table(dim).collect()
    with pytest.raises(LateChangeError) as error:
        merge(batch(tables, [(n, "B", None) for n in range(7)]), dim, SPEC, at="2024-01-04 00:00:00")
    assert "7 keys: id = 0; id = 1; id = 2; id = 3; id = 4 and 2 more" in str(error.value)
    assert "by a rebuild of keys" in str(error.value)
    assert sorted(tables.spark.table(dim).collect()) == sorted(before)


def test_a_row_that_differs_from_the_stored_one_of_its_moment(tables: Tables, dim: str) -> None:
    """A tie, which no other order of the batches would resolve."""
    merge(batch(tables, [(1, "A", None)]), dim, SPEC, at="2024-01-05 00:00:00")
    with pytest.raises(LateChangeError) as error:
        merge(batch(tables, [(1, "B", None)]), dim, SPEC, at="2024-01-05 00:00:00")
    assert "a row that differs from the stored row with the same key and moment" in str(error.value)
    assert "in order" not in str(error.value)
    assert versions(tables, dim, "id", "name") == [(1, "A")]


def test_errors_name_the_moments_of_rows(tables: Tables, dim: str) -> None:
    ddl = "id int, name string, at timestamp"
    moment = dt.datetime(2024, 1, 5, 10, 30, tzinfo=dt.timezone.utc)
    rows = [(1, "A", moment), (1, "B", moment)]
    with pytest.raises(BatchError) as error:
        merge(batch(tables, rows, ddl), dim, DimensionSpec(key_columns="id", changed_at="at"))
    found = {mistake.where: (mistake.got, mistake.remedy) for mistake in error.value.mistakes}
    assert found["two different rows for one key and moment"][0] == "id = 1 at 2024-01-05 10:30:00 UTC"
    assert str(error.value).startswith(f"healing_tables: {dim}: the batch has 1 mistake; nothing was written.")


def test_rows_that_cannot_be_ordered(tables: Tables, dim: str) -> None:
    rows = [(1, "A", None), (1, "B", None), (2, "A", None), (2, "A", None)]
    with pytest.raises(BatchError) as error:
        merge(batch(tables, rows), dim, SPEC)
    assert len(error.value.mistakes) == 1
    assert "two different rows for one key and moment" in str(error.value)
    assert "id = 1\n" in str(error.value)
    assert not tables.spark.catalog.tableExists(dim)


def test_ties(tables: Tables, dim: str) -> None:
    rows = [
        (1, "A", 1, False),
        (1, "B", 3, False),
        (1, "C", 2, False),
        (2, "A", 1, True),
        (2, "Z", 1, False),
    ]
    ddl = "id int, name string, seq int, gone boolean"
    spec = DimensionSpec(key_columns="id", tie_break_by="seq", on_tie="greatest", deleted_when="gone")
    merge(batch(tables, rows, ddl), dim, spec)
    assert versions(tables, dim, "id", "name") == [(1, "B")]  # 2 is gone: a delete wins


@pytest.mark.parametrize(
    ("ddl", "wanted"),
    [
        ("id int, name string", "attributes: mail"),
        ("id int, name string, mail int", "the stored type string"),
        ("id string, name string, mail string", "the stored type int"),
    ],
)
def test_columns_that_do_not_fit(tables: Tables, dim: str, ddl: str, wanted: str) -> None:
    merge(batch(tables, [(1, "Ann", "a")]), dim, SPEC, at="2024-01-01 00:00:00")
    with pytest.raises(HealingTablesError, match=wanted):
        merge(batch(tables, [], ddl), dim, SPEC)


WIDENS = "set on_schema_change: sync_all_columns, which widens the stored column"


@pytest.mark.parametrize(
    ("stored", "given", "remedy"),
    [
        ("int", "bigint", WIDENS),
        ("float", "double", WIDENS),
        ("decimal(9,2)", "decimal(12,4)", WIDENS),
        ("int", "decimal(9,2)", "cast it in the batch"),
        ("double", "float", None),
        ("bigint", "string", "cast it in the batch"),
    ],
)
def test_types_that_differ(tables: Tables, stored: str, given: str, remedy: str | None) -> None:
    """The error names both types. If the stored one is too narrow, no cast in the batch helps."""
    spec, ddl = DimensionSpec(key_columns="id"), "id int, amount "
    rows = plan(batch(tables, [], ddl + stored), None, spec).selectExpr("new.*")
    if remedy is None:
        plan(batch(tables, [], ddl + given), rows, spec)
        return
    with pytest.raises(TargetError) as error:
        plan(batch(tables, [], ddl + given), rows, spec)
    assert error.value.what.startswith("the batch has 1 mistake;")
    (mistake,) = error.value.mistakes
    assert stored in mistake.wanted and given in mistake.got
    assert (mistake.where, mistake.remedy) == ("amount", remedy)


def test_mistakes_of_the_batch_and_of_the_table(tables: Tables) -> None:
    spec = DimensionSpec(key_columns="id")
    rows = plan(batch(tables, [], "id int, a int"), None, spec).selectExpr("new.*", "1 as b")
    with pytest.raises(TargetError, match="the stored dimension has 1 mistake;"):
        plan(batch(tables, [], "id int, a int"), rows, spec)
    with pytest.raises(TargetError, match="the merge has 2 mistakes;"):
        plan(batch(tables, [], "id int, a bigint"), rows, spec)


@pytest.mark.slow
def test_a_new_column(tables: Tables, dim: str) -> None:
    spec = DimensionSpec(key_columns="id")
    merge(batch(tables, [(1, "Ann")], "id int, name string"), dim, spec, at="2024-01-01 00:00:00")
    wider = batch(tables, [(1, "Ann", "Oslo")], "id int, name string, city string")
    with pytest.raises(TargetError, match="append_new_columns"):
        merge(wider, dim, spec, at="2024-01-02 00:00:00")
    merge(
        wider,
        dim,
        DimensionSpec(key_columns="id", on_schema_change="append_new_columns"),
        at="2024-01-02 00:00:00",
    )
    assert versions(tables, dim, "name", "city", "version") == [("Ann", "Oslo", 2), ("Ann", None, 1)]


def test_a_target_of_someone_else(tables: Tables, dim: str) -> None:
    tables.spark.sql(f"create table {dim} (id int, name string, mail string, colour string) using delta")
    with pytest.raises(TargetError) as error:
        merge(batch(tables, [(1, "Ann", "a")]), dim, SPEC)
    assert {mistake.where for mistake in error.value.mistakes} == {
        "colour",
        "valid_from",
        "valid_to",
    }
    tables.spark.sql(f"create table {dim}_csv (id int) using csv")
    for target in (f"{dim}_csv", delta.DeltaTarget(f"{dim}_csv")):
        with pytest.raises(TargetError, match="a Delta table"):
            merge(batch(tables, [(1, "Ann", "a")]), target, SPEC)


@pytest.mark.slow
def test_columns_that_someone_else_spells_differently(tables: Tables, dim: str) -> None:
    tables.spark.sql(
        f"create table {dim} (ID int, Name string, MAIL string, Mail_Changed_At timestamp, Tier string, "
        "PREVIOUS_TIER string, Valid_From timestamp, VALID_TO timestamp, Is_Current boolean, SCD_VERSION int) using "
        "delta"
    )
    spec = DimensionSpec(
        key_columns="id",
        attributes={"name": 2, "mail": 1, "tier": 3},
        column_names={"version": "scd_version"},
        audit={},
    )
    ddl = BATCH + ", tier string"
    merge(batch(tables, [(1, "Ann", "a", "x")], ddl), dim, spec, at="2024-01-01 00:00:00")
    merge(batch(tables, [(1, "Bea", "b", "y")], ddl), dim, spec, at="2024-01-02 00:00:00")
    assert tables.spark.table(dim).columns[-4:] == [
        "Valid_From",
        "VALID_TO",
        "Is_Current",
        "SCD_VERSION",
    ]
    told = ["name", "mail", "tier", "previous_tier", "valid_from", "valid_to", "scd_version"]
    day = "2024-01-0{} 00:00:00".format
    assert versions(tables, dim, *told) == [
        ("Ann", "b", "x", None, day(1), day(2), 1),
        ("Bea", "b", "y", "x", day(2), "9999-12-31 00:00:00", 2),
    ]
    assert versions(tables, dim, "mail_changed_at") == [(day(2),), (day(2),)]
    assert tables.spark.table(f"{dim}_audit").count() == 3


def test_a_damaged_dimension(tables: Tables, dim: str) -> None:
    merge(batch(tables, [(1, "Ann", "a")]), dim, SPEC, at="2024-01-01 00:00:00")
    later = tables.spark.table(dim).withColumn("valid_from", f.expr("timestamp '2024-01-02'"))
    later.write.insertInto(dim)
    with pytest.raises(TargetError, match="two current versions"):
        merge(batch(tables, [(1, "Bea", "a")]), dim, SPEC, at="2024-01-03 00:00:00")


@pytest.mark.slow
def test_stored_versions_that_overlap(tables: Tables, dim: str) -> None:
    """A closed version inside the open one: the next change would leave two current versions."""
    columns = "id int, name string, valid_from date, valid_to date"
    stored = "select {} as id, 'A' as name, date '2024-01-0{}' as valid_from, date '{}' as valid_to"
    rows = [
        stored.format(1, 1, "9999-12-31"),
        stored.format(1, 3, "2024-01-04"),
        stored.format(2, 1, "2024-01-03"),
        stored.format(2, 3, "9999-12-31"),
    ]
    tables.spark.sql(f"create table {dim} ({columns}) using delta")
    tables.spark.sql(f"insert into {dim} {' union all '.join(rows)}")
    spec = DimensionSpec(key_columns="id", attributes=["name"])
    changed = batch(tables, [(1, "B"), (2, "B")], "id int, name string")
    with pytest.raises(TargetError, match="that overlap(.*\n)*.*got:    id = 1\n.*repair"):
        merge(changed, dim, spec, at="2024-01-05")
    # the same without the stored rows: only what the log would begin with
    logged = replace(spec, change_log=f"{dim}_changes")
    with pytest.raises(TargetError, match="that overlap(.*\n)*.*got:    id = 1\n"):
        merge(changed.where("id = 2"), dim, logged, at="2024-01-05")


@pytest.mark.slow
@pytest.mark.parametrize(
    "cuts",
    [[[0], [1], [2], [3]], pytest.param([[0, 1, 2, 3]], marks=pytest.mark.slow)],
    ids=["one by one", "whole"],
)
def test_type_4_remembers_keys_that_were_gone(tables: Tables, dim: str, cuts: list[list[int]]) -> None:
    """Ann leaves and comes back as Bea: the history still knows the first value, and when the mail became what it
    is."""
    spec = DimensionSpec(
        key_columns="id",
        attributes={"first": 0, "name": 4, "mail": {"scd_type": 1, "changed_at": True}},
        changed_at="at",
        deleted_when="name = 'gone'",
        surrogate_key={"name": "sk"},
    )
    day = "2024-01-0{} 00:00:00".format
    rows = [
        ("Ann", "Ann", "old", day(1)),
        ("Ann", "Ann", "new", day(2)),
        (None, "gone", None, day(3)),
        ("Bea", "Bea", "new", day(4)),
    ]
    name = f"{dim}_{len(cuts)}"
    for cut in cuts:
        given = batch(tables, [rows[i] for i in cut], "first string, name string, mail string, t string")
        merge(given.selectExpr("1 as id", "* except (t)", "timestamp(t) as at"), name, spec)
    shown = ("first", "name", "mail", "mail_changed_at")
    assert versions(tables, name, *shown, "last_updated") == [("Ann", "Bea", "new", day(2), day(4))]
    key = f"{hashlib.sha256(b'1').hexdigest()}|{day(1)}"
    id_ = hashlib.sha256(key.encode()).hexdigest()[:32]
    told = (*shown, "valid_from", "valid_to", "change_reason", "history_id")
    assert versions(tables, f"{name}_history", *told) == [("Ann", "Ann", "new", day(2), day(1), day(3), "deleted", id_)]
    assert versions(tables, name, "sk") == [(id_,)]


@pytest.mark.slow
def test_names_of_the_columns_that_attributes_bring_along(tables: Tables) -> None:
    tier = {"current_tier": "tier_now", "previous_tier": "tier_before"}
    city = {"previous_city": "city_before", "city_changed_at": "city_since"}
    first: dict[str, Any] = {"name": 2, "city": {"scd_type": 3, "changed_at": True}}
    hashes = {"key_hash": None, "row_hash": None}
    options: dict[str, Any] = {
        "key_columns": "id",
        "deleted_values": ["Y", "N"],
        "deleted_when": "name = 'gone'",
        "on_schema_change": "append_new_columns",
    }
    shown = {**city, **hashes, "ended_by_delete": "was_deleted"}
    spec = DimensionSpec(attributes=first, column_names=shown, **options)
    day = "2024-01-0{} 00:00:00".format
    ddl = "id int, name string, city string"
    stored = plan(batch(tables, [(1, "A", "Oslo")], ddl), None, spec, day(1)).selectExpr("new.*")
    # the table gets new columns by their own names, too
    spec = DimensionSpec(attributes={**first, "tier": 6}, column_names={**shown, **tier}, **options)
    wide = f"{ddl}, tier string"
    changes = plan(batch(tables, [(1, "A", "Rome", "x")], wide), stored, spec, day(2)).localCheckpoint()
    columns = ["name", "city", *city.values(), "tier", *tier.values(), "was_deleted"]
    assert plain_rows(changes.selectExpr("new.*"), columns) == sorted(
        [
            ("A", "Oslo", None, day(1), None, "x", None, "N"),
            ("A", "Rome", "Oslo", day(2), "x", "x", None, "N"),
        ],
        key=repr,
    )
    stored = changes.selectExpr("new.*")
    gone = plan(batch(tables, [(1, "gone", None, None)], wide), stored, spec, day(3))
    (row,) = gone.selectExpr("new.*").collect()
    assert (row.was_deleted, row.city_before, row.tier_now) == ("Y", "Oslo", "x")
    with pytest.raises(SpecError, match="previous_name\n.*one of valid_from.*current_tier"):
        replace(spec, column_names={"previous_name": "before"})
    either = DimensionSpec(key_columns="id", attributes={"*": 6}, column_names={"current_nam": "x"})
    with pytest.raises(BatchError, match="current_nam\n.*one of valid_from.*current_name"):
        plan(batch(tables, [(1, "A", "Oslo")], ddl), None, either)


@pytest.mark.slow
def test_a_batch_of_a_flat_dimension_again(tables: Tables) -> None:
    """The one row of a key shows no gap: what was said before it is hidden by what was said after it."""
    spec = DimensionSpec(
        key_columns="id",
        attributes={"a": {"scd_type": 1, "changed_at": True}, "b": 3},
        changed_at="at",
        deleted_when="a = 'gone'",
    )
    rows = batch(
        tables,
        [("a", "a", 1), ("a", "b", 2), ("gone", None, 3), ("b", "a", 4)],
        "a string, b string, d int",
    ).selectExpr("1 as id", "a", "b", "timestamp(date_from_unix_date(d)) as at")
    first = plan(rows, None, spec)
    assert [row.action for row in first.collect()] == ["insert"]
    assert plan(rows, first.selectExpr("new.*"), spec).isEmpty()


def test_only_the_same_version_hides_an_earlier_value(tables: Tables) -> None:
    """What comes with the next version says nothing about the one before."""
    spec = DimensionSpec(key_columns="id", attributes={"name": 2, "city": 3}, changed_at="at")
    values = "select 1 as id, '{}' as name, '{}' as city, timestamp '2024-01-0{}' as at".format
    stored = plan(tables.spark.sql(values("A", "Oslo", 1)), None, spec).selectExpr("new.*")
    late = tables.spark.sql(f"{values('A', 'Bern', 1)} union all {values('B', 'Rome', 2)}")
    assert {row.action for row in plan(late, stored, spec).collect()} == {"refuse"}


@pytest.fixture
def between(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], object]]:
    """What another writer does between the plan of a merge and its commit: put functions in; each runs once."""
    commit = attempt.Attempt.commit
    works: list[Callable[[], object]] = []

    def wait(*args: Any, **options: Any) -> None:
        if works:
            works.pop()()
        commit(*args, **options)

    monkeypatch.setattr(attempt.Attempt, "commit", wait)
    return works


@pytest.mark.slow
@pytest.mark.parametrize("others", [[(2, "A")], [(2, "A"), (9, "gone")]], ids=["more", "as many"])
def test_a_full_batch_ends_a_key_that_came_after_its_plan(
    tables: Tables, dim: str, between: list[Callable[[], object]], others: list[tuple[int, str]]
) -> None:
    """Also where as many rows are open as before."""
    dim = f"{dim}_{len(others)}"
    spec = DimensionSpec(key_columns="id", attributes=["name"], deleted_when="name = 'gone'")
    ddl = "id int, name string"
    merge(batch(tables, [(1, "A"), (9, "A")], ddl), dim, spec, at="2024-01-01")
    other = batch(tables, others, ddl)
    between.append(lambda: merge(other, dim, spec, at="2024-01-02"))
    full = batch(tables, [(1, "B"), (9, "A")], ddl)
    result = merge(full, dim, spec, at="2024-01-03", full_batch=True)
    is_back = [(9, "A", False)] if len(others) == 2 else []
    found = versions(tables, dim, "id", "name", "is_current")
    assert found == [(1, "A", False), (1, "B", True), (2, "A", False), *is_back, (9, "A", True)]
    assert result.attempts == 2


@pytest.mark.slow
def test_a_key_that_comes_and_goes_meets_another_writer(
    tables: Tables, dim: str, between: list[Callable[[], object]]
) -> None:
    """Type 4: the history must not run past a row that the other writer has put there since."""
    spec = DimensionSpec(key_columns="id", attributes={"name": 4}, changed_at="at", deleted_when="name = 'gone'")
    row = "select {} as id, '{}' as name, date '2024-01-0{}' as at".format
    merge(tables.spark.sql(row(1, "a", 1)), dim, spec)
    other = tables.spark.sql(row(7, "x", 2))
    between.append(lambda: merge(other, dim, spec))
    both = tables.spark.sql(f"{row(7, 'b', 3)} union all {row(7, 'gone', 5)}")
    assert merge(both, dim, spec).attempts == 2
    assert versions(tables, dim, "id", "name") == [(1, "a")]
    days = [dt.date(2024, 1, number) for number in (2, 3, 5)]
    found = versions(tables, f"{dim}_history", "id", "name", "valid_from", "valid_to")
    assert found == [(7, "b", days[1], days[2]), (7, "x", days[0], days[1])]


def test_hashes_of_merged_rows_are_those_of_built_ones(tables: Tables) -> None:
    """One table of examples for both halves: see test_steps.py."""
    values = ", ".join(f"{value} as {name}" for name, (_, value, _) in HASHED.items())
    spec = DimensionSpec(key_columns=["whole", "day"])
    for zone in ("UTC", "America/New_York"):
        with with_settings(tables.spark, {"spark.sql.session.timeZone": zone}):
            made = plan(tables.spark.sql(f"select {values}"), None, spec, "2024-01-01 00:00:00")
            (row,) = made.selectExpr("new.row_hash", "new.key_hash").collect()
        text = "|".join(HASHED[name][2] for name in sorted(HASHED) if name not in spec.key_columns)
        assert row.row_hash == hashlib.sha256(text.encode()).hexdigest()
        assert row.key_hash == hashlib.sha256(b"-12|1789-03-04").hexdigest()


@pytest.mark.slow
def test_full_batches(tables: Tables, dim: str) -> None:
    spec = DimensionSpec(
        key_columns="id",
        attributes={"name": 2},
        full_batch=True,
        column_names={"ended_by_delete": "was_deleted", "is_current": "flag"},
        current_values=["Y", "N"],
        current_while_deleted=True,
        valid_from_first="1900-01-01",
    )
    ddl = "id int, name string"
    merge(batch(tables, [(n, "A") for n in range(20)], ddl), dim, spec, at="2024-01-01 00:00:00")
    with pytest.raises(BatchError, match="a batch without rows"):
        merge(batch(tables, [], ddl), dim, spec)
    with pytest.raises(GuardError, match=r"11 of 20 \(0.55\)"):
        merge(batch(tables, [(n, "A") for n in range(9)], ddl), dim, spec, at="2024-01-02 00:00:00")
    merge(batch(tables, [(n, "A") for n in range(1, 20)], ddl), dim, spec, at="2024-01-02 00:00:00")
    shown = ("id", "valid_from", "valid_to", "flag", "was_deleted")
    start, gone, back = "1900-01-01 00:00:00", "2024-01-02 00:00:00", "2024-01-03 00:00:00"
    assert versions(tables, dim, *shown)[0] == (0, start, gone, "Y", True)
    merge(batch(tables, [(n, "A") for n in range(20)], ddl), dim, spec, at=back)
    assert versions(tables, dim, *shown)[:2] == [
        (0, start, gone, "N", True),
        (0, back, "9999-12-31 00:00:00", "Y", False),
    ]


@pytest.mark.slow
def test_the_guard_counts_keys_that_change_and_end_in_one_batch(tables: Tables, dim: str) -> None:
    spec = DimensionSpec(key_columns="id", attributes={"name": 2}, changed_at="at", deleted_when="name = 'gone'")
    rows = "select id, '{}' as name, date '2024-01-0{}' as at from range({}, {})".format
    merge(tables.spark.sql(rows("A", 1, 0, 20)), dim, spec)
    with pytest.raises(GuardError, match=r"11 of 20 \(0.55\)"):
        merge(tables.spark.sql(f"{rows('B', 2, 0, 11)} union all {rows('gone', 3, 0, 11)}"), dim, spec)
    # a key that was not there does not end, nor does one that returns
    new = f"{rows('A', 2, 20, 40)} union all {rows('gone', 3, 20, 40)}"
    back = f"{rows('gone', 2, 0, 20)} union all {rows('B', 3, 0, 20)}"
    assert merge(tables.spark.sql(f"{new} union all {back}"), dim, spec).inserted == 40


@pytest.mark.slow
def test_the_open_end_of_a_dimension_of_dates_is_its_day(tables: Tables, dim: str) -> None:
    spec = DimensionSpec(key_columns="id", attributes={"name": 2}, valid_to_current="2999-12-31 23:59:59")
    for day, name in ((1, "A"), (2, "B")):
        merge(batch(tables, [(1, name)], "id int, name string"), dim, spec, at=f"2024-01-0{day}")
    found = [tuple(map(str, row)) for row in versions(tables, dim, "name", "valid_from", "valid_to")]
    assert found == [("A", "2024-01-01", "2024-01-02"), ("B", "2024-01-02", "2999-12-31")]


@pytest.mark.slow
def test_several_changes_of_a_key_in_one_batch(tables: Tables, dim: str) -> None:
    spec = DimensionSpec(
        key_columns="id",
        attributes={"a": 2, "b": 1, "c": {"scd_type": 3, "changed_at": True}},
        changed_at="at",
        deleted_when="op = 'D'",
        column_names={"last_updated": "last_updated"},
    )
    ddl = "id int, at timestamp_ntz, op string, a string, b string, c string"
    rows: list[list[Any]] = [
        ["1", "2024-01-01 00:00:00", "U", "x", "p", "u"],
        ["1", "2024-01-02 00:00:00", "U", "x", "p", "v"],
        ["1", "2024-01-03 00:00:00", "U", "y", "q", "v"],
        ["1", "2024-01-04 00:00:00", "D", None, None, None],
        ["1", "2024-01-05 00:00:00", "D", None, None, None],
        ["1", "2024-01-06 00:00:00", "U", "y", "q", "w"],
    ]
    frame = batch(tables, rows, ddl.replace("int", "string").replace("timestamp_ntz", "string"))
    frame = frame.selectExpr("int(id) id", "cast(at as timestamp_ntz) at", "op", "a", "b", "c")
    result = merge(frame, dim, spec)
    assert (result.inserted, result.closed, result.updated) == (3, 0, 0)
    shown = (
        "a",
        "b",
        "c",
        "previous_c",
        "c_changed_at",
        "valid_from",
        "valid_to",
        "version",
        "last_updated",
    )
    days = {n: f"2024-01-0{n} 00:00:00" for n in range(1, 7)}
    assert versions(tables, dim, *shown) == [
        ("x", "q", "v", "u", days[2], days[1], days[3], 1, days[3]),
        ("y", "q", "v", "u", days[2], days[3], days[4], 2, days[4]),
        ("y", "q", "w", "v", days[6], days[6], "9999-12-31 00:00:00", 3, days[6]),
    ]
    # the same rows one by one give the same
    for row in rows:
        part = frame.where(f"at = timestamp_ntz '{row[1]}'")
        merge(part, f"{dim}_by_one", spec)
    assert plain_rows(tables.spark.table(f"{dim}_by_one")) == plain_rows(tables.spark.table(dim))


@pytest.mark.slow
@pytest.mark.parametrize("when", ["known", "unknown"])
def test_a_plan_from_before_another_commit(
    tables: Tables, dim: str, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    dim = f"{dim}_{when}"
    if when == "known":
        merge(batch(tables, [(1, "Ann", "a")]), dim, SPEC, at="2024-01-01 00:00:00")
    else:
        merge(batch(tables, [(9, "Zoe", "z")]), dim, SPEC, at="2024-01-01 00:00:00")
    apply, calls = delta.DeltaTarget.apply, []

    def late(self: Any, *args: Any, **options: Any) -> Any:
        calls.append(1)
        if len(calls) == 1:  # between the plan and its MERGE
            merge(batch(tables, [(1, "Bea", "b")]), dim, SPEC, at="2024-01-02 00:00:00")
        return apply(self, *args, **options)

    monkeypatch.setattr(delta.DeltaTarget, "apply", late)
    monkeypatch.setattr(retry, "SHORTEST_WAIT", 0.0)
    result = merge(batch(tables, [(1, "Cid", "c")]), dim, SPEC, at="2024-01-03 00:00:00")
    assert result.attempts == 2
    names = [row[0] for row in versions(tables, dim, "name", "valid_from") if row[0] != "Zoe"]
    assert names == (["Ann"] if when == "known" else []) + ["Bea", "Cid"]
    current = tables.spark.table(dim).where("is_current and id = 1")
    assert [row.name for row in current.collect()] == ["Cid"]


@pytest.mark.slow
def test_a_sequence_of_surrogate_keys(tables: Tables, dim: str) -> None:
    spec = DimensionSpec(
        key_columns="id",
        attributes={"name": 2, "mail": 1},
        surrogate_key={"name": "sk", "strategy": "sequence"},
        audit={},
    )
    for day in (1, 2, 3):
        rows = [(n, f"{n}-{day if n % 2 else 0}", f"mail {day if n % 2 else 0}") for n in range(4)]
        merge(batch(tables, rows), dim, spec, at=f"2024-01-0{day} 00:00:00")
    found = versions(tables, dim, "sk", "id", "version")
    assert [row[0] for row in found] == list(range(1, 9))
    assert {row[1:] for row in found[:4]} == {(n, 1) for n in range(4)}
    columns = ("change_type", "old_surrogate_key", "new_surrogate_key")
    replaced = [str(key) for key, id_, version in found if id_ % 2 and version < 3]
    # the second new mail comes to a version that was closed before, too
    mailed = [str(key) for key, id_, version in found if id_ % 2 and version == 1]
    assert versions(tables, f"{dim}_audit", *columns) == sorted(
        [("insert", None, str(row[0])) for row in found]
        + [("close", key, key) for key in replaced]
        + [("update", key, key) for key in mailed],
        key=repr,
    )


@pytest.mark.slow
def test_type_4_and_the_audit(tables: Tables, dim: str) -> None:
    spec = DimensionSpec(
        key_columns="id",
        attributes={"name": 4, "mail": 1},
        audit={"table": f"{dim}_changes", "actor": "tester", "reason": "nightly"},
        full_batch=True,
    )
    merge(batch(tables, [(1, "A", "x"), (2, "B", "y")]), dim, spec, at="2024-01-01 00:00:00")
    merge(batch(tables, [(1, "C", "x"), (2, "B", "z")]), dim, spec, at="2024-01-02 00:00:00")
    merge(batch(tables, [(1, "C", "x")]), dim, spec, at="2024-01-03 00:00:00", batch_id="third")
    merge(batch(tables, [(1, "C", "x"), (2, "B", "z")]), dim, spec, at="2024-01-04 00:00:00")
    days = {n: f"2024-01-0{n} 00:00:00" for n in range(1, 5)}
    assert versions(tables, dim) == [(1, "C", "x", days[2]), (2, "B", "z", days[4])]
    history = ("id", "name", "valid_from", "valid_to")
    assert versions(tables, f"{dim}_history", *history) == [
        (1, "A", days[1], days[2]),
        (2, "B", days[1], days[3]),
    ]
    audit = tables.spark.table(f"{dim}_changes")
    assert [tuple(row) for row in audit.groupBy("change_type").count().orderBy("change_type").collect()] == [
        ("insert", 3),
        ("remove", 1),
        ("update", 2),
    ]
    (removed,) = audit.where("batch_id = 'third'").collect()
    assert (removed.key, removed.change_type, removed.actor, removed.reason) == (
        '{"id":2}',
        "remove",
        "tester",
        "nightly",
    )
    (changed,) = audit.where("changed_columns = array('mail')").collect()
    assert ('"mail":"y"' in changed.old_values, '"mail":"z"' in changed.new_values) == (True, True)
    assert tables.spark.table(f"{dim}__pending").count() == 0
    with pytest.raises(LateChangeError):
        merge(batch(tables, [(1, "E", "x")]), dim, spec, at=days[1], full_batch=False)
    # the history shows that this was so
    known = batch(tables, [(1, "A", "x"), (2, "B", "z")])
    assert merge(known, dim, spec, at=days[1], full_batch=False).commit_version is None


@pytest.mark.slow
def test_integer_keys_of_rows_that_left_are_not_given_again(tables: Tables, dim: str) -> None:
    spec = DimensionSpec(
        key_columns="id",
        attributes={"name": 4},
        deleted_when="name = 'gone'",
        surrogate_key={"name": "sk", "strategy": "sequence"},
    )
    for day, rows in enumerate(([(1, "A"), (2, "B")], [(2, "gone")], [(1, "C"), (3, "D")]), start=1):
        merge(batch(tables, rows, "id int, name string"), dim, spec, at=f"2024-01-0{day} 00:00:00")
    assert versions(tables, dim, "sk", "id", "name") == [(1, 1, "C"), (3, 3, "D")]


@pytest.mark.slow
def test_a_new_column_of_type_4(tables: Tables, dim: str) -> None:
    spec = DimensionSpec(key_columns="id", attributes={"*": 4}, on_schema_change="append_new_columns")
    wide = "id int, name string, city string"
    merge(batch(tables, [(1, "A")], "id int, name string"), dim, spec, at="2024-01-01 00:00:00")
    merge(batch(tables, [(1, "B", "Rome")], wide), dim, spec, at="2024-01-03 00:00:00")
    swapped = batch(tables, [(1, "Pisa", "B")], "id int, city string, name string")
    merge(swapped, dim, spec, at="2024-01-04 00:00:00")
    assert versions(tables, dim, "name", "city") == [("B", "Pisa")]
    history = [("A", None), ("B", "Rome")]
    assert versions(tables, f"{dim}_history", "name", "city") == history


@pytest.mark.slow
def test_what_a_killed_process_left(tables: Tables, dim: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It dies between the commit and the side tables: the next merge delivers the rows, once."""
    spec = DimensionSpec(key_columns="id", attributes={"name": 4}, audit={})
    ddl = "id int, name string"
    merge(batch(tables, [(1, "A")], ddl), dim, spec, at="2024-01-01 00:00:00")
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Outbox, "deliver", interrupted)
        merge(batch(tables, [(1, "B")], ddl), dim, spec, at="2024-01-02 00:00:00")
    assert tables.spark.table(f"{dim}_history").count() == 0
    merge(batch(tables, [(1, "B")], ddl), dim, spec, at="2024-01-03 00:00:00")
    assert versions(tables, f"{dim}_history", "id", "name") == [(1, "A")]
    assert tables.spark.table(f"{dim}_audit").count() == 2
    assert tables.spark.table(f"{dim}__pending").count() == 0


@pytest.mark.slow
def test_odd_names_and_values(tables: Tables, dim: str) -> None:
    key, attribute = "the key.of `it`", "s.key, naïve"
    ddl = f"`{key.replace('`', '``')}` string, `{attribute}` string, action string"
    spec = DimensionSpec(key_columns=key)
    hostile = 't.x\' or \\ "1"="1'
    merge(batch(tables, [(hostile, "a|b^", "x")], ddl), dim, spec, at="2024-01-01 00:00:00")
    merge(batch(tables, [(hostile, "a|b^", "y")], ddl), dim, spec, at="2024-01-02 00:00:00")
    rows = plain_rows(tables.spark.table(dim).selectExpr("`s.key, naïve`", "action", "version"))
    assert rows == [("a|b^", "x", 1), ("a|b^", "y", 2)]


@pytest.mark.slow
def test_dates(tables: Tables, dim: str) -> None:
    """A day is a day: now is today, a second change of it is late, moments with a time do not fit."""
    spec = DimensionSpec(key_columns="id", attributes={"name": 2})
    ddl = "id int, name string"
    merge(batch(tables, [(1, "A")], ddl), dim, spec, at="2024-01-01")
    merge(batch(tables, [(1, "B")], ddl), dim, spec)
    with pytest.raises(LateChangeError):
        merge(batch(tables, [(1, "C")], ddl), dim, spec)
    assert dict(tables.spark.table(dim).dtypes)["valid_from"] == "date"
    assert [row[0] for row in versions(tables, dim, "name", "version")] == ["A", "B"]
    dated = DimensionSpec(key_columns="id", attributes={"name": 2}, changed_at="at")
    with pytest.raises(TargetError, match="a date, as the stored dimension has them"):
        merge(tables.spark.sql("select 1 as id, 'D' as name, current_timestamp() as at"), dim, dated)


def test_a_key_whose_end_would_leave_no_trace(tables: Tables, dim: str) -> None:
    tables.spark.sql(f"create table {dim} (id int, name string) using delta")
    spec = DimensionSpec(key_columns="id", attributes={"name": 1})
    with pytest.raises(TargetError, match="a column valid_to or is_current"):
        merge(batch(tables, [(1, "A")], "id int, name string"), dim, spec, full_batch=True)


def test_plan_is_pure(tables: Tables, dim: str) -> None:
    changes = plan(batch(tables, [(1, "Ann", "a")]), None, SPEC, "2024-01-01 00:00:00")
    (row,) = changes.collect()
    assert (row.action, row.reason, row.key.id, row.new.name, row.stored) == (
        "insert",
        "new",
        1,
        "Ann",
        None,
    )
    assert not tables.spark.catalog.tableExists(dim)


def test_arguments_that_mean_something_else(tables: Tables, dim: str) -> None:
    said: Any = "false"
    with pytest.raises(ArgumentError, match="'false'"):
        merge(batch(tables, [(1, "Ann", "a")]), dim, SPEC, full_batch=said)
    with pytest.raises(ArgumentError, match="'false'"):
        plan(batch(tables, [(1, "Ann", "a")]), None, SPEC, full_batch=said)


@pytest.mark.parametrize(
    ("condition", "got"),
    [
        ("k1 = 1", "k1"),
        ("nmae = 'x'", "nmae"),
        ("name", "of type string"),
        ("name = ", "name ="),
    ],
)
def test_conditions_that_are_none(tables: Tables, dim: str, condition: str, got: str) -> None:
    spec = DimensionSpec(key_columns="id", attributes={"name": 2}, deleted_when=condition)
    with pytest.raises(BatchError, match="deleted_when") as error:
        merge(batch(tables, [(1, "Ann", "a")]), dim, spec)
    assert got in error.value.mistakes[0].got
    assert not tables.spark.catalog.tableExists(dim)


@pytest.mark.slow
def test_a_condition_is_asked_once_of_each_row(tables: Tables, dim: str) -> None:
    spec = DimensionSpec(
        key_columns="id",
        attributes={"name": 2},
        deleted_when="mail = 'gone' or rand() < 0.5 -- by chance",
    )
    rows = [(key, "Ann", "a") for key in range(200)]
    merge(batch(tables, rows), dim, spec, at="2024-01-01 00:00:00")
    stored = tables.spark.table(dim)
    assert 0 < stored.count() < 200
    assert stored.where("name is null").isEmpty()


@pytest.mark.slow
def test_columns_without_a_type(tables: Tables, dim: str) -> None:
    spec = DimensionSpec(key_columns="id")
    for value in ("null", "named_struct('a', null)", "array()"):
        with pytest.raises(BatchError, match="note.*\n.*a column with a type"):
            merge(tables.spark.sql(f"select 1 as id, {value} as note"), dim, spec)
    merge(tables.spark.sql("select 1 as id, 'a' as name"), dim, spec)
    append = DimensionSpec(key_columns="id", on_schema_change="append_new_columns")
    with pytest.raises(TargetError, match="note.*\n.*a column with a type"):
        merge(tables.spark.sql("select 1 as id, 'a' as name, null as note"), dim, append)


@pytest.mark.slow
def test_fields_with_odd_names(tables: Tables, dim: str) -> None:
    spec = DimensionSpec(key_columns="id")
    for number in (1, 2):
        merge(
            tables.spark.sql(
                f"select 1 as id, named_struct('variant_id', {number}, 'my field', 5, 'a-`b', array('x')) as v"
            ),
            dim,
            spec,
            at=f"2024-01-0{number} 00:00:00",
        )
    rows = tables.spark.sql(f"select v.variant_id, v.`a-``b`[0] from {dim} order by version").collect()
    assert [tuple(row) for row in rows] == [(1, "x"), (2, "x")]


@pytest.mark.slow
def test_surrogate_keys_of_dbt_utils(tables: Tables, dim: str) -> None:
    """The MD5 of the key columns and valid_from as text, joined by hyphens; of a version that stays, its key stays."""
    spec = DimensionSpec(
        key_columns=["id", "part"], attributes="name", surrogate_key={"name": "sk", "strategy": "dbt_utils"}
    )
    columns = [["id", "int"], ["part", "string"], ["name", "string"]]
    merge(tables.frame(columns, [[1, "a", "A"], [2, "b", "B"]]), dim, spec, at="2024-01-01 00:00:00")
    merge(tables.frame(columns, [[1, "a", "C"], [2, "b", "B"]]), dim, spec, at="2024-02-01 12:30:00.5")
    texts = ["1-a-2024-01-01 00:00:00", "1-a-2024-02-01 12:30:00.5", "2-b-2024-01-01 00:00:00"]
    wanted = [hashlib.md5(text.encode()).hexdigest() for text in texts]
    found = plain_rows(tables.spark.table(dim).orderBy("id", "valid_from"), ["sk"])
    assert sorted(key for (key,) in found) == sorted(wanted)


def test_two_versions_with_one_key_of_dbt_utils(tables: Tables, dim: str) -> None:
    """Within a batch, and with a row that is stored: nothing is written."""
    spec = DimensionSpec(
        key_columns=["one", "two"], attributes="name", surrogate_key={"name": "sk", "strategy": "dbt_utils"}
    )
    columns = [["one", "string"], ["two", "string"], ["name", "string"]]
    first, second = ["a-", "b", "x"], ["a", "-b", "x"]
    with pytest.raises(
        BatchError, match=r"surrogate_key \(sk\)\n(.*\n)*.*\{a, -b, 2024-01-01.* and \{a-, b, 2024-01-01"
    ):
        merge(tables.frame(columns, [first, second]), dim, spec, at="2024-01-01")
    assert not tables.spark.catalog.tableExists(dim)
    merge(tables.frame(columns, [first, ["c", "d", "x"]]), dim, spec, at="2024-01-01")
    with pytest.raises(
        BatchError, match=r"surrogate_key \(sk\)\n(.*\n)*.*\{a, -b, 2024-01-01.* and \{a-, b, 2024-01-01"
    ):
        merge(tables.frame(columns, [second]), dim, spec, at="2024-01-01")
    assert tables.spark.table(dim).count() == 2
    assert merge(tables.frame(columns, [second]), dim, spec, at="2024-01-02").inserted == 1


def test_a_surrogate_key_of_another_type(tables: Tables, dim: str) -> None:
    bounds = "valid_from timestamp, valid_to timestamp, is_current boolean"
    for strategy, kind in (("sequence", "string"), ("hash", "int")):
        spec = DimensionSpec(
            key_columns="id",
            attributes={"name": 2},
            surrogate_key={"name": "sk", "strategy": strategy},
        )
        tables.spark.sql(f"create table {dim}_{kind} (sk {kind}, id int, name string, {bounds}) using delta")
        with pytest.raises(TargetError, match=f"sk(.*\n)+.*{kind}"):
            merge(tables.spark.sql("select 1 as id, 'a' as name"), f"{dim}_{kind}", spec)


def test_what_a_session_says_of_commits_stays(tables: Tables, dim: str) -> None:
    """The commits carry the user's own metadata; the id of the merge stands in the condition of the MERGE."""
    tables.spark.conf.set(METADATA, "job=42")
    try:
        merge(batch(tables, [(1, "Ann", "a")]), dim, SPEC)
    finally:
        tables.spark.conf.unset(METADATA)
    newest = tables.spark.sql(f"describe history {dim} limit 1").collect()[0]
    assert (newest.operation, newest.userMetadata) == ("MERGE", "job=42")


@pytest.mark.slow
def test_an_interrupted_merge_leaves_nothing_in_the_session(
    tables: Tables, dim: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rows are discarded or delivered by whether its MERGE has committed, whatever other commits there are."""
    spec = DimensionSpec(key_columns="id", attributes={"name": 2, "mail": 1}, audit={})
    merge(batch(tables, [(1, "Ann", "a")]), dim, spec, at="2024-01-01")
    with monkeypatch.context() as patched:
        patched.setattr(delta.DeltaTarget, "apply", interrupted)
        with pytest.raises(KeyboardInterrupt):
            merge(batch(tables, [(1, "Bea", "a")]), dim, spec, at="2024-01-02")
    assert tables.spark.conf.get(METADATA, None) is None
    tables.spark.sql(f"alter table {dim} set tblproperties ('a' = 'b')")
    tables.spark.sql(f"optimize {dim}")
    merge(batch(tables, [(2, "Cid", "a")]), dim, spec, at="2024-01-03")
    assert [row[0] for row in versions(tables, f"{dim}_audit", "key")] == ['{"id":1}', '{"id":2}']


@pytest.mark.slow
@pytest.mark.parametrize("is_known", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_conflict_reported_for_a_merge_that_has_committed(
    tables: Tables, dim: str, monkeypatch: pytest.MonkeyPatch, is_known: bool
) -> None:
    """The answer of a put was lost: the commit is looked for before anything is discarded."""
    dim = f"{dim}_{is_known}"
    spec = DimensionSpec(key_columns="id", attributes={"name": 2, "mail": 1}, audit={})
    merge(batch(tables, [(1, "Ann", "a")]), dim, spec, at="2024-01-01")
    kind = type(tables.spark.sql("select 1"))
    collect = kind.collect
    lost: list[int] = []

    class ConcurrentAppendException(Exception):
        """Named as Delta's."""

    def answer_lost(frame: DataFrame) -> Any:
        rows = collect(frame)
        if "num_affected_rows" in frame.columns and not lost:
            lost.append(1)
            raise ConcurrentAppendException if is_known else ConnectionError
        return rows

    monkeypatch.setattr(kind, "collect", answer_lost)
    result = merge(batch(tables, [(1, "Bea", "a")]), dim, spec, at="2024-01-02")
    assert (lost, result.attempts, result.inserted) == ([1], 1, 1)
    assert tables.spark.table(f"{dim}_audit").count() == 3
    assert [row[0] for row in versions(tables, dim, "name")] == ["Ann", "Bea"]


@pytest.mark.slow
def test_many_commits_since_a_merge_was_killed(tables: Tables, dim: str, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = DimensionSpec(key_columns="id", attributes={"name": 2, "mail": 1}, audit={})
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(Outbox, "deliver", interrupted)
        merge(batch(tables, [(1, "Ann", "a")]), dim, spec, at="2024-01-01")
    for number in range(25):  # more than one look at the log of the table takes
        tables.spark.sql(f"alter table {dim} set tblproperties ('a' = '{number}')")
    assert tables.spark.table(f"{dim}_audit").isEmpty()
    merge(batch(tables, [(1, "Ann", "a")]), dim, spec, at="2024-01-02")
    assert tables.spark.table(f"{dim}_audit").count() == 1


@pytest.mark.slow
def test_clocks_that_differ(tables: Tables, dim: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock of the second writer is behind: a little, and the merge waits; or much, and the error says so."""
    now = instants.now

    def clock_behind(seconds: int) -> None:
        monkeypatch.setattr(instants, "now", lambda: now() - seconds * 1_000_000)

    merge(batch(tables, [(1, "Ann", "a")]), dim, SPEC)
    clock_behind(300)
    with pytest.raises(LateChangeError, match="clock of this machine") as error:
        merge(batch(tables, [(1, "Bea", "a")]), dim, SPEC)
    assert "change_log" not in str(error.value)
    monkeypatch.setattr(instants, "now", now)
    merge(batch(tables, [(1, "Bea", "a")]), dim, SPEC)
    slept: list[float] = []
    monkeypatch.setattr(attempt, "CLOCK_WAIT", 1e6)
    clock_behind(3000)

    def waited(seconds: float) -> None:
        if seconds > 60:  # not the pause between two attempts
            slept.append(seconds)
            monkeypatch.setattr(instants, "now", now)

    monkeypatch.setattr(time, "sleep", waited)
    result = merge(batch(tables, [(1, "Cid", "a")]), dim, SPEC)
    assert (result.attempts, result.inserted) == (2, 1)
    assert len(slept) == 1
    assert 2000 < slept[0] < 3000


VALUES = ("ALREADY_EXISTS DELTA_CONCURRENT_APPEND", "healing_tables: stale plan")


@pytest.mark.slow
@pytest.mark.parametrize("value", VALUES)
def test_words_in_a_value_are_no_conflict(tables: Tables, dim: str, value: str) -> None:
    """What the table refuses is told at once, by the condition of the error."""
    dim = f"{dim}_{VALUES.index(value)}"
    merge(batch(tables, [(1, "Ann", "a")]), dim, SPEC, at="2024-01-01")
    tables.spark.sql(f"alter table {dim} add constraint short check (length(name) < 5)")
    began = time.monotonic()
    with pytest.raises(TargetError, match="accepts the rows of the merge") as error:
        merge(batch(tables, [(1, value, "a")]), dim, SPEC, at="2024-01-02")
    assert time.monotonic() - began < 90
    assert value in str(error.value)


def test_an_error_that_shows_the_plan_is_no_conflict(tables: Tables) -> None:
    from pyspark.errors import AnalysisException

    text = merge_statement.stale_text("the id")
    with pytest.raises(AnalysisException) as error:
        tables.spark.sql(f"select nowhere, raise_error('{text}') from range(1)")
    assert text in str(error.value)
    assert not conflicts.raised(error.value, text)
    assert not conflicts.is_conflict(error.value)
    with pytest.raises(AnalysisException) as error:
        tables.spark.sql("select named_struct('a', 1, 'A', 2).b, 1 as x from range(1)")
    assert not conflicts.is_conflict(error.value)


def test_the_full_name_has_a_default_catalog_also_in_another_thread(tables: Tables) -> None:
    """As dbt runs merges; the noted name of a change log contains it."""
    catalog, spark = "spark.sql.catalog.shop", tables.spark
    settings = {
        catalog: "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog",
        f"{catalog}.url": "jdbc:derby:memory:shop;create=true",
        f"{catalog}.driver": "org.apache.derby.jdbc.EmbeddedDriver",
        "spark.sql.defaultCatalog": "shop",
    }
    with with_settings(spark, settings), ThreadPoolExecutor() as threads:
        assert threads.submit(full_name, spark, "Sales.dim").result() == "shop.sales.dim"
    assert full_name(spark, "`Sales`.dim") == "spark_catalog.sales.dim"
