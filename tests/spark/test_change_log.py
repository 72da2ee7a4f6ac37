"""With a change log every order of changes gives one dimension. Random histories: test_merge_property.py."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from interleaved import before_the_merge, other_writer
from pyspark.sql import DataFrame
from pyspark.sql.functions import lit
from tables import Tables, plain_rows

from healing_tables import (
    BatchError,
    ConflictError,
    DimensionSpec,
    FilesTarget,
    GuardError,
    HiveTarget,
    LateChangeError,
    TargetError,
    merge,
)
from healing_tables.merge.outbox import Outbox
from healing_tables.targets import retry
from healing_tables.targets.delta import Commit, DeltaTarget

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("interpreted")]
END = "9999-12-31 00:00:00"
SHOWN = ("id", "name", "mail", "valid_from", "valid_to", "version")


def spec_of(dim: str, **options: Any) -> DimensionSpec:
    attributes = options.pop("attributes", {"name": 2, "mail": 1})
    return DimensionSpec(key_columns="id", attributes=attributes, change_log=f"{dim}_changes", **options)


def batch(tables: Tables, *rows: Any, ddl: str = "id int, name string, mail string") -> DataFrame:
    return tables.spark.createDataFrame(list(rows), ddl)


def versions(tables: Tables, name: str, *columns: str) -> list[tuple[Any, ...]]:
    return plain_rows(tables.spark.table(name), columns or SHOWN)


def day(number: int) -> str:
    return f"2024-01-0{number} 00:00:00"


@pytest.fixture
def dim(tables: Tables, request: pytest.FixtureRequest) -> str:
    return f"{tables.schema}.{request.node.name.removeprefix('test_')}"


def test_a_late_change_finds_its_place(tables: Tables, dim: str) -> None:
    spec = spec_of(dim, surrogate_key={"name": "sk", "strategy": "sequence"})
    merge(batch(tables, (1, "A", "new")), dim, spec, at=day(5))
    merge(batch(tables, (1, "A", "old")), dim, spec, at=day(2))  # moves the start
    late = merge(batch(tables, (1, "B", "old")), dim, spec, at=day(3))
    # what was open at the end is closed now; a new version follows the late one
    assert (late.inserted, late.closed, late.updated, late.removed) == (2, 1, 0, 0)
    shown = ("name", "mail", "valid_from", "valid_to", "is_current", "version", "sk")
    assert versions(tables, dim, *shown) == [
        ("A", "new", day(2), day(3), False, 1, 2),
        ("A", "new", day(5), END, True, 3, 1),  # its number from before
        ("B", "new", day(3), day(5), False, 2, 3),
    ]
    earlier = merge(batch(tables, (1, "B", "old")), dim, spec, at="2024-01-02 12:00:00")
    assert (earlier.inserted, earlier.removed) == (1, 1)  # B starts half a day earlier
    again = merge(batch(tables, (1, "B", "old")), dim, spec, at=day(3))
    assert (again.commit_version, versions(tables, dim, "sk", "valid_from")) == (
        None,
        [(1, day(5)), (2, day(2)), (4, "2024-01-02 12:00:00")],
    )
    with pytest.raises(BatchError, match="two different rows for one key and moment"):
        merge(batch(tables, (1, "C", "old")), dim, spec, at=day(3))
    assert tables.spark.table(f"{dim}_changes").count() == 4


def test_a_log_begins_with_what_is_stored(tables: Tables, dim: str) -> None:
    attributes = {
        "name": 2,
        "mail": {"scd_type": 1, "changed_at": True},
        "city": {"scd_type": 3, "changed_at": True},
        "born": 0,
    }
    without = DimensionSpec(key_columns="id", attributes=attributes, full_batch=True)
    ddl = "id int, name string, mail string, city string, born int"
    first, second = (1, "A", "m1", "Oslo", 1980), (2, "Z", "m", "Rome", 1990)
    merge(batch(tables, first, second, ddl=ddl), dim, without, at=day(1))
    merge(batch(tables, (1, "A", "m2", "Bern", 1981), second, ddl=ddl), dim, without, at=day(3))
    merge(batch(tables, (1, "B", "m2", "Bern", 1981), ddl=ddl), dim, without, at=day(5))  # 2 is gone
    before = versions(tables, dim, *tables.spark.table(dim).columns)
    logged = spec_of(dim, attributes=attributes)
    # the first batch again: nothing that the stored versions do not show
    assert merge(batch(tables, first, ddl=ddl), dim, logged, at=day(1)).commit_version is None
    assert versions(tables, dim, *tables.spark.table(dim).columns) == before
    merge(batch(tables, (1, "L", "m1", "Oslo", 1982), ddl=ddl), dim, logged, at=day(2))
    shown = ("name", "mail", "mail_changed_at", "city", "previous_city", "city_changed_at", "born")
    rest = ("valid_from", "valid_to", "is_current")
    city = ("Bern", "Oslo", day(3))
    assert versions(tables, dim, *shown, *rest) == [
        ("A", "m2", day(3), *city, 1980, day(3), day(5), False),
        ("A", "m2", day(3), "Oslo", None, day(1), 1980, day(1), day(2), False),
        ("B", "m2", day(3), *city, 1980, day(5), END, True),
        ("L", "m2", day(3), "Oslo", None, day(1), 1980, day(2), day(3), False),
        ("Z", "m", day(1), "Rome", None, day(1), 1990, day(1), day(5), False),
    ]


def test_a_log_knows_when_a_value_became_null(tables: Tables, dim: str) -> None:
    attributes = {name: {"scd_type": 1, "changed_at": True} for name in ("mail", "born", "list", "pair", "seen")}
    without = DimensionSpec(key_columns="id", attributes={"name": 2, **attributes})
    ddl = "id int, name string, mail string, born date, list array<int>, pair struct<a:int>, seen timestamp"
    born = dt.date(2000, 1, 1)
    merge(batch(tables, (1, "A", "m", born, [1], (1,), None), ddl=ddl), dim, without, at=day(1))
    merge(batch(tables, (1, "A", *[None] * 5), ddl=ddl), dim, without, at=day(3))
    logged = spec_of(dim, attributes={"name": 2, **attributes})
    merge(batch(tables, (1, "B", *[None] * 5), ddl=ddl), dim, logged, at=day(5))
    shown = ("name", *attributes, *[f"{name}_changed_at" for name in attributes])
    moments = (day(3), day(3), day(3), day(3), day(1))
    assert versions(tables, dim, *shown) == [(name, *[None] * 5, *moments) for name in "AB"]


def test_full_batches_in_any_order(tables: Tables, dim: str) -> None:
    spec = spec_of(dim, full_batch=True, attributes={"name": 2})
    states = {1: [(1, "A"), (2, "A")], 3: [(2, "A"), (3, "A")], 5: [(1, "A"), (3, "B")]}
    for number in (5, 1, 3):
        rows = batch(tables, *states[number], ddl="id int, name string")
        merge(rows, dim, spec, at=day(number))
    expected = [
        (1, "A", day(1), day(3), 1),
        (1, "A", day(5), END, 2),
        (2, "A", day(1), day(5), 1),
        (3, "A", day(3), day(5), 1),
        (3, "B", day(5), END, 2),
    ]
    shown = ("id", "name", "valid_from", "valid_to", "version")
    assert versions(tables, dim, *shown) == expected
    assert merge(rows, dim, spec, at=day(3)).commit_version is None
    # the log holds all of it
    tables.spark.sql(f"drop table {dim}")
    known = batch(tables, (3, "B"), ddl="id int, name string")
    merge(known, dim, spec, at=day(5), full_batch=False)
    assert versions(tables, dim, *shown) == expected


def test_the_guard_comes_before_the_log(tables: Tables, dim: str) -> None:
    spec = spec_of(dim, full_batch=True)
    merge(batch(tables, *[(n, "A", None) for n in range(20)]), dim, spec, at=day(1))
    with pytest.raises(GuardError, match=r"19 of 20"):
        merge(batch(tables, (1, "A", None)), dim, spec, at=day(2))
    assert tables.spark.table(f"{dim}_changes").count() == 21


def test_a_process_that_dies_between_the_dimension_and_the_log(
    tables: Tables, dim: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = spec_of(dim, audit={})
    merge(batch(tables, (1, "A", None), (2, "A", None)), dim, spec, at=day(1))

    def die(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        # the outbox has the rows, the dimension has committed, the log has nothing
        patch.setattr(Outbox, "deliver", die)
        with pytest.raises(KeyboardInterrupt):
            merge(batch(tables, (1, "B", None)), dim, spec, at=day(2))
    assert (len(versions(tables, dim)), tables.spark.table(f"{dim}_changes").count()) == (3, 2)
    merge(batch(tables, (2, "B", None)), dim, spec, at=day(3))  # a batch of another key
    assert [row[:2] + row[3:5] for row in versions(tables, dim)] == [
        (1, "A", day(1), day(2)),
        (1, "B", day(2), END),
        (2, "A", day(1), day(3)),
        (2, "B", day(3), END),
    ]
    assert tables.spark.table(f"{dim}_audit").count() == 6
    assert tables.spark.table(f"{dim}_changes").count() == 4
    assert tables.spark.table(f"{dim}__pending").isEmpty()


def test_another_writer_adds_to_the_log_after_the_plan(
    tables: Tables, dim: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = spec_of(dim)
    merge(batch(tables, (1, "A", None)), dim, spec, at=day(1))
    apply: Callable[..., Any] = DeltaTarget.apply
    calls: list[int] = []

    def late(target: DeltaTarget, *args: Any, **kwargs: Any) -> Any:
        calls.append(1)
        if len(calls) == 1:  # its own plan is not stale: it knows both changes
            merge(batch(tables, (1, "A", None)), dim, spec, at=day(3))
        return apply(target, *args, **kwargs)

    monkeypatch.setattr(DeltaTarget, "apply", late)
    result = merge(batch(tables, (1, "B", None)), dim, spec, at=day(2))
    assert result.attempts == 2
    assert [row[1:2] + row[3:5] for row in versions(tables, dim)] == [
        ("A", day(1), day(2)),
        ("A", day(3), END),
        ("B", day(2), day(3)),
    ]


def test_a_process_that_dies_after_a_confirmation(tables: Tables, dim: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No commit of the dimension says that it came: the log does. Its keys are planned again."""
    spec = spec_of(dim)
    merge(batch(tables, (1, "A", None), (2, "A", None)), dim, spec, at=day(1))

    def die(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Outbox, "discard", die)  # after the log, before the end
        with pytest.raises(KeyboardInterrupt):
            merge(batch(tables, (1, "A", None)), dim, spec, at=day(3))
    assert tables.spark.table(f"{dim}__pending").count() == 1
    merge(batch(tables, (2, "B", None)), dim, spec, at=day(4))
    merge(batch(tables, (1, "B", None)), dim, spec, at=day(2))
    assert [row[:2] + row[3:5] for row in versions(tables, dim)] == [
        (1, "A", day(1), day(2)),
        (1, "A", day(3), END),
        (1, "B", day(2), day(3)),
        (2, "A", day(1), day(4)),
        (2, "B", day(4), END),
    ]
    assert tables.spark.table(f"{dim}__pending").isEmpty()


@pytest.mark.parametrize("rule", ["check (length(name) < 4)", "not null", "varchar(3)"])
def test_what_the_dimension_refuses_never_reaches_the_log(tables: Tables, dim: str, rule: str) -> None:
    dim, rest = f"{tables.schema}.refused_{rule[:3]}", "valid_from timestamp, valid_to timestamp"
    name = "string not null" if rule == "not null" else "varchar(3)" if "var" in rule else "string"
    columns = f"id int, name {name}, mail string, {rest}, is_current boolean, version int"
    tables.spark.sql(f"create table {dim} ({columns}) using delta")
    if "check" in rule:
        tables.spark.sql(f"alter table {dim} add constraint short {rule}")
    spec = spec_of(dim)
    merge(batch(tables, (1, "A", None)), dim, spec, at=day(1))
    bad = None if rule == "not null" else "too long"
    with pytest.raises(TargetError, match="accepts the rows of the merge"):
        merge(batch(tables, (1, bad, None), (2, "A", None)), dim, spec, at=day(2))
    assert tables.spark.table(f"{dim}_changes").count() == 1
    assert tables.spark.table(f"{dim}__pending").isEmpty()
    merge(batch(tables, (3, "A", None)), dim, spec, at=day(3))
    merge(batch(tables, (1, "ok", None)), dim, spec, at=day(2))
    assert [row[:2] + row[3:4] for row in versions(tables, dim)] == [
        (1, "A", day(1)),
        (1, "ok", day(2)),
        (3, "A", day(3)),
    ]


def test_a_conflict_says_what_is_written(tables: Tables, dim: str, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = spec_of(dim)
    merge(batch(tables, (1, "A", None)), dim, spec, at=day(1))
    commits_since: Callable[..., Any] = DeltaTarget.commits_since

    def foreign(target: DeltaTarget, *args: Any) -> Any:
        found = commits_since(target, *args)
        return [*found, Commit(99, "MERGE", None, 0)] if "changes" in target.name else found

    monkeypatch.setattr(retry, "ATTEMPTS", 2)
    monkeypatch.setattr(retry, "LONGEST_WAIT", 0.0)
    monkeypatch.setattr(DeltaTarget, "commits_since", foreign)
    with pytest.raises(ConflictError) as error:
        merge(batch(tables, (1, "B", None)), dim, spec, at=day(2))
    assert "the MERGE has committed as version" in str(error.value)
    assert "the change log has the batch" in str(error.value)
    assert "nothing was written" not in str(error.value)
    assert str(error.value).count(f"{dim}: ") == 1
    monkeypatch.undo()
    assert merge(batch(tables, (1, "B", None)), dim, spec, at=day(2)).commit_version is None
    assert tables.spark.table(f"{dim}__pending").isEmpty()


def test_two_writers_contradict_each_other_at_one_moment(
    tables: Tables, dim: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither is lost: the later one is refused with the key, and the text says what is written."""
    spec = spec_of(dim)
    merge(batch(tables, (1, "A", "new")), dim, spec, at=day(5))
    apply: Callable[..., Any] = DeltaTarget.apply
    calls: list[int] = []

    def late(target: DeltaTarget, *args: Any, **kwargs: Any) -> Any:
        calls.append(1)
        if len(calls) == 1:
            merge(batch(tables, (1, "B", "old")), dim, spec, at=day(2))
        return apply(target, *args, **kwargs)

    monkeypatch.setattr(DeltaTarget, "apply", late)
    with pytest.raises(BatchError, match="two different rows(.*\n)*.*id = 1"):
        merge(batch(tables, (1, "C", "old")), dim, spec, at=day(2))
    monkeypatch.undo()
    assert [row[1] for row in versions(tables, dim)] == ["A", "B"]
    merge(batch(tables, (1, "C", "old")), dim, spec, at=day(3))
    assert [row[1] for row in versions(tables, dim)] == ["A", "B", "C"]


def test_a_dimension_names_its_log_and_a_log_its_dimension(tables: Tables, dim: str) -> None:
    spec = spec_of(dim)
    without = DimensionSpec(key_columns="id", attributes={"name": 2, "mail": 1})
    merge(batch(tables, (1, "A", None)), dim, without, at=day(1))
    merge(batch(tables, (1, "B", None)), dim, spec, at=day(2))
    rows = versions(tables, dim)
    other = replace(spec, change_log=f"{dim}_other")
    with pytest.raises(TargetError, match="change_log\n(.*\n)*.*UNSET TBLPROPERTIES"):
        merge(batch(tables, (1, "C", None)), dim, other, at=day(3))
    assert versions(tables, dim) == rows
    assert not tables.spark.catalog.tableExists(f"{dim}_other")
    with pytest.raises(TargetError, match="two dimensions cannot share one"):
        merge(batch(tables, (1, "C", None)), f"{dim}_second", spec, at=day(3))
    assert not tables.spark.catalog.tableExists(f"{dim}_second")
    # the same log, spelled in full
    full = replace(spec, change_log=f"spark_catalog.`{tables.schema}`.{dim.split('.')[1].upper()}_CHANGES")
    merge(batch(tables, (1, "C", None)), dim, full, at=day(3))
    # a merge that names none uses the one that is recorded
    merge(batch(tables, (1, "E", None)), dim, without, at=day(5))
    assert tables.spark.table(f"{dim}_changes").where("name = 'E'").count() == 1
    tables.spark.sql(f"alter table {dim} unset tblproperties ('healing_tables.change_log')")
    merge(batch(tables, (1, "F", None)), dim, without, at=day(6))
    assert sorted(row[1] for row in versions(tables, dim)) == ["A", "B", "C", "E", "F"]
    assert tables.spark.table(f"{dim}_changes").where("name = 'F'").count() == 0


def test_a_log_that_begins_during_a_merge(tables: Tables, dim: str) -> None:
    """The merge that does not name it has committed, and says what to do; then the log has its batch too."""
    logged = spec_of(dim)
    plain = replace(logged, change_log=None)
    merge(batch(tables, (1, "A", "old"), (2, "B", "b")), dim, plain, at=day(1))

    def begin() -> None:
        merge(batch(tables, (2, "C", "b")), dim, logged, at=day(2))

    news = batch(tables, (1, "A", "new"))
    with (
        other_writer(tables.spark, begin, before_the_merge(dim)) as other,
        pytest.raises(TargetError, match=r"(?s)has committed as version.*or set it to ") as error,
    ):
        merge(news, dim, plain, at=day(2))
    assert other.has_acted
    assert "nothing" not in str(error.value)
    merge(news, dim, logged, at=day(2))
    merge(batch(tables, (1, "D", "new")), dim, logged, at=day(3))
    assert versions(tables, dim, "id", "name", "mail") == [
        (1, "A", "new"),
        (1, "D", "new"),
        (2, "B", "b"),
        (2, "C", "b"),
    ]


def test_what_a_log_cannot_do(tables: Tables, dim: str) -> None:
    merge(batch(tables, (1, "A", None)), dim, spec_of(dim), at=day(1))
    without = DimensionSpec(key_columns="id", attributes={"name": 2, "mail": 1})
    tables.spark.sql(f"alter table {dim} unset tblproperties ('healing_tables.change_log')")
    merge(batch(tables, (1, "B", None)), dim, without, at=day(2))
    with pytest.raises(TargetError) as error:
        merge(batch(tables, (1, "C", None)), dim, spec_of(dim), at=day(3))
    assert "a stored version that is not in the change log" in str(error.value)
    assert "id = 1" in str(error.value)
    tables.spark.sql(f"alter table {dim} unset tblproperties ('healing_tables.change_log')")
    with pytest.raises(LateChangeError, match="keep a change_log"):
        merge(batch(tables, (1, "C", None)), dim, without, at=day(1))
    taken = DimensionSpec(key_columns="id", change_log=f"{dim}_other")
    with pytest.raises(TargetError, match="a name other than the change log's own"):
        merge(batch(tables, (1, True), ddl="id int, is_full boolean"), f"{dim}_other_dim", taken)
    tables.spark.sql(f"create table {dim}_strange (id int, name string, mail string) using delta")
    strange = DimensionSpec(key_columns="id", change_log=f"{dim}_strange")
    with pytest.raises(TargetError, match="the change log of a dimension"):
        merge(batch(tables, (1, "A", None)), f"{dim}_strange_dim", strange)


@pytest.mark.parametrize("on_tie", ["error", "greatest"])
def test_a_tie_breaker_that_is_an_attribute(tables: Tables, on_tie: str) -> None:
    dim = f"{tables.schema}.ties_{on_tie}"
    spec = spec_of(
        dim,
        attributes=["name", "seq"],
        tie_break_by="seq",
        on_tie=on_tie,
        changed_at="at",
        deleted_when="name = 'gone'",
    )
    row = f"select {{}} as id, '{{}}' as name, {{}} as seq, timestamp '{day(1)}' as at".format
    # in two batches; key 2 ends by the greatest row
    for parts in ([row(1, "A", 1), row(2, "gone", 5)], [row(1, "B", 2), row(2, "C", 3)]):
        merge(tables.spark.sql(" union all ".join(parts)), dim, spec)
    shown = ("id", "name", "seq", "valid_from", "valid_to")
    assert versions(tables, dim, *shown) == [(1, "B", 2, day(1), END)]


@pytest.mark.parametrize(("kind", "order"), [("plain", (1, 3, 5)), ("logged", (5, 3, 1))])
def test_a_key_of_a_full_batch_is_not_absent_from_it(tables: Tables, kind: str, order: tuple[int, ...]) -> None:
    """Also where its rows are later than the moment of the batch."""
    dim, noon = f"{tables.schema}.later_{kind}", "2024-01-03 12:00:00"
    row = "select {} as id, '{}' as name, timestamp '{}' as at".format
    later = [row(1, "B", noon), row(2, "A", day(1)), row(4, "B", noon)]
    batches = {1: [row(n, "A", day(1)) for n in (1, 2, 3)], 3: later, 5: later}
    spec = spec_of(dim, attributes=["name"], changed_at="at", full_batch=True)
    if kind == "plain":
        spec = replace(spec, change_log=False)
    for number in (*order, order[-1]):
        result = merge(tables.spark.sql(" union all ".join(batches[number])), dim, spec, at=day(number))
    assert result.commit_version is None
    assert versions(tables, dim, "id", "name", "valid_from", "valid_to") == [
        (1, "A", day(1), noon),
        (1, "B", noon, END),
        (2, "A", day(1), END),
        (3, "A", day(1), day(3)),
        (4, "B", noon, END),
    ]


def test_a_log_does_not_begin_with_damage(tables: Tables, dim: str) -> None:
    without = DimensionSpec(key_columns="id", attributes={"name": 2, "mail": 1})
    merge(batch(tables, (1, "A", None), (2, "A", None)), dim, without, at=day(1))
    twice = tables.spark.table(dim).where("id = 1").withColumn("name", lit("B"))
    twice.write.insertInto(dim)
    with pytest.raises(TargetError, match="two current versions(.*\n)*.*id = 1\n"):
        merge(batch(tables, (2, "B", None)), dim, spec_of(dim), at=day(2))
    assert tables.spark.table(f"{dim}_changes").isEmpty()


def test_counts_of_rows_stay(tables: Tables, dim: str) -> None:
    spec = spec_of(dim, column_names={"compressed_row_count": "compressed_row_count"})
    merge(batch(tables, (1, "A", None)), dim, spec, at=day(1))
    tables.spark.sql(f"update {dim} set compressed_row_count = 5")
    merge(batch(tables, (1, "B", None)), dim, spec, at=day(3))
    assert versions(tables, dim, "name", "compressed_row_count") == [("A", 5), ("B", 1)]


@pytest.mark.parametrize("kind", ["plain", "logged"])
def test_a_key_is_back_in_a_full_batch_with_its_old_moment(tables: Tables, kind: str) -> None:
    dim = f"{tables.schema}.back_{kind}"
    spec = spec_of(dim, attributes=["name"], changed_at="at", full_batch=True)
    if kind == "plain":
        spec = replace(spec, change_log=False)
    row = f"select {{}} as id, 'A' as name, timestamp '{day(1)}' as at".format
    for number, ids in ((2, (1, 2)), (3, (2,)), (4, (1, 2)), (4, (1, 2))):
        rows = tables.spark.sql(" union all ".join(row(id_) for id_ in ids))
        result = merge(rows, dim, spec, at=day(number))
    assert result.commit_version is None
    assert versions(tables, dim, "id", "valid_from", "valid_to") == [
        (1, day(1), day(3)),
        (1, day(4), END),
        (2, day(1), END),
    ]


@pytest.mark.parametrize("kind", ["delta", "hive", "files"])
def test_a_new_dimension_of_changes_keeps_a_log(tables: Tables, kind: str, tmp_path: Path) -> None:
    """Without it, changes that come out of order can be silently wrong."""

    def target(name: str) -> Any:
        if kind == "files":
            return FilesTarget(f"{tmp_path}/{name}")
        name = f"{tables.schema}.{name}_{kind}"
        return HiveTarget(name, "parquet") if kind == "hive" else DeltaTarget(name)

    def merge_days(dim: Any, *days: int, **options: Any) -> bool:
        """Whether there is a log."""
        for number in days:
            rows = batch(tables, (1, f"on day {number}", day(number)), ddl="id int, name string, at string")
            merge(rows.selectExpr("id", "name", "cast(at as timestamp) as at"), dim, replace(spec, **options))
        return dim.beside("_changes").read(tables.spark) is not None

    spec = DimensionSpec(key_columns="id", attributes={"name": 2}, changed_at="at")
    dim = target("kept")
    assert merge_days(dim, 2, 4, 3)  # the last one is late
    assert plain_rows(dim.read(tables.spark), ["name", "valid_to"]) == [
        ("on day 2", day(3)),
        ("on day 3", day(4)),
        ("on day 4", END),
    ]
    with pytest.raises(TargetError, match="_changes, the change log of this dimension"):
        merge_days(dim, 5, change_log=False)
    # a dimension that began without a log has none later
    plain = target("none")
    assert not merge_days(plain, 2, change_log=False)
    with pytest.raises(LateChangeError):
        merge_days(plain, 1)
    assert plain.beside("_changes").read(tables.spark) is None
    assert not merge_days(target("aside"), 2, 1, on_late="set_aside")
    assert not merge_days(target("batches"), 2, changed_at=None, attributes=["name"])
    assert merge_days(target("type_4"), 2, 4, attributes={"name": 4}) == (kind == "delta")
