"""Merges into PostgreSQL: one transaction, values as they are, other writers noticed."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from cases import merge_cases, spec_of
from postgres_server import PASSWORD, Server
from sessions import with_settings
from tables import Tables, plain_rows

from healing_tables import (
    ArgumentError,
    DimensionSpec,
    GuardError,
    LateChangeError,
    PostgresTarget,
    TargetError,
    merge,
)
from healing_tables.cli import main
from healing_tables.merge.dry_run import dry_run
from healing_tables.merge.postgres_tables import PostgresTables

pytestmark = pytest.mark.usefixtures("interpreted")
SPEC = DimensionSpec(key_columns="id", attributes={"name": 2, "city": 1})
FOREVER = dt.datetime(9999, 12, 31, tzinfo=dt.timezone.utc)


@pytest.fixture(scope="module")
def server(postgres: Server) -> Iterator[Server]:
    """Its password is in the environment."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PGPASSWORD", PASSWORD)
        yield postgres


@pytest.fixture
def dim(server: Server, request: pytest.FixtureRequest) -> PostgresTarget:
    name = "".join(letter if letter.isalnum() else "_" for letter in request.node.name.lower())
    return PostgresTarget(f"public.{name[-50:]}", server.url)


def interrupted(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


def batch(tables: Tables, *rows: tuple[Any, ...]) -> Any:
    return tables.spark.createDataFrame(
        [row + ("x",) * (3 - len(row)) for row in rows], "id int, name string, city string"
    )


def versions(server: Server, dim: PostgresTarget) -> list[tuple[Any, ...]]:
    query = (
        f"select id, name, valid_from::date::text, valid_to::date::text, is_current from {dim.sql_name} order by 1, 3"
    )
    return server.ask(query)


@pytest.mark.parametrize("case", merge_cases())
def test_case(either: Tables, server: Server, case: dict[str, Any]) -> None:
    """Of tables that someone else has made, with the columns of the case."""
    names = {"dim": case["id"].lower(), "current": case["id"].lower(), "history": f"{case['id'].lower()}_history"}
    schema = either.schema
    with server.connect() as connection:
        connection.execute(f"create schema if not exists {schema}")
    for part, table in case["input"].items():
        if part != "batches":
            seed(either, PostgresTarget(f"{schema}.{names[part]}", server.url), table)
    dim = PostgresTarget(f"{schema}.{names['dim']}", server.url)
    for given in case["input"]["batches"]:
        rows = either.frame(given["rows"]["columns"], given["rows"]["rows"])
        merge(rows, dim, spec_of(case), at=given["at"], full_batch=given.get("full_snapshot", False))
    for part, table in case["expect"].items():
        columns = [column for column, _ in table["columns"]]
        stored = PostgresTarget(f"{schema}.{names[part]}", server.url).rows(either.spark)
        assert plain_rows(stored, columns) == plain_rows(either.frame(table["columns"], table["rows"]))


def seed(tables: Tables, target: PostgresTarget, table: dict[str, Any]) -> None:
    from healing_tables.sql.types import types_of
    from healing_tables.targets.postgres import copy_texts, name_of
    from healing_tables.targets.postgres_types import Column, postgres_type

    rows = tables.frame(table["columns"], table["rows"])
    kinds = types_of(rows.schema)
    with target.connect() as connection:
        target.create_in(connection, kinds)
        copy_texts(connection, rows, "seeds")
        values = [Column(name, postgres_type(kind)).store(f"s.{name_of(name)}") for name, kind in kinds.items()]
        connection.execute(f"insert into {target.sql_name} select {', '.join(values)} from seeds s")


@pytest.mark.slow
def test_a_table_that_a_merge_has_made(tables: Tables, server: Server, dim: PostgresTarget) -> None:
    spec = DimensionSpec(
        key_columns="id",
        attributes={"name": 2, "city": 1},
        surrogate_key={"name": "sk", "strategy": "sequence"},
        audit={"actor": "ann"},
    )
    first = merge(batch(tables, (1, "A"), (2, None)), dim, spec, at="2024-01-01")
    assert (first.inserted, first.attempts) == (2, 1) and first.commit_version is not None
    second = merge(batch(tables, (1, "B"), (2, None, "y"), (3, "A")), dim, spec, at="2024-01-02")
    assert (second.inserted, second.closed, second.updated) == (2, 1, 1)
    assert merge(batch(tables, (1, "B"), (2, None, "y")), dim, spec, at="2024-01-03").commit_version is None
    found = server.ask(f"select sk, id, name, city, is_current from {dim.sql_name} order by sk")
    assert found == [
        (1, 1, "A", "x", False),
        (2, 2, None, "y", True),
        (3, 1, "B", "x", True),
        (4, 3, "A", "x", True),
    ]
    audit = server.ask(
        f'select key, change_type, new_surrogate_key, changed_columns, actor from {dim.sql_name[:-1]}_audit"'
    )
    assert sorted(audit) == [
        ('{"id":1}', "close", "1", ["valid_to", "is_current"], "ann"),
        ('{"id":1}', "insert", "1", None, "ann"),
        ('{"id":1}', "insert", "3", None, "ann"),
        ('{"id":2}', "insert", "2", None, "ann"),
        ('{"id":2}', "update", "2", ["city"], "ann"),
        ('{"id":3}', "insert", "4", None, "ann"),
    ]


@pytest.mark.slow
def test_values_of_every_type(tables: Tables, server: Server, dim: PostgresTarget) -> None:
    """What someone else has stored comes back as it was, in a session of another time zone as well."""
    with server.connect() as connection:
        connection.execute(
            f"""create table {dim.sql_name} (
                "The Key" uuid, doc jsonb, tags text[], numbers int[], raw bytea, price numeric(12,4), share float8,
                seen timestamptz, wall timestamp(3), day date, flag boolean, small smallint, code char(3),
                note varchar(40),                valid_from timestamptz, valid_to timestamptz, is_current boolean)"""
        )
        connection.execute(
            f"""insert into {dim.sql_name} values (
                'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '{{"a": [1, null]}}', array['x', 'y "z', null, ''], array[3, 1],
                '\\x00ff', 12345678.9, 'NaN', '0001-01-01 00:00:00+00', '2024-03-31 02:30:00.123', '9999-12-31', true,
                -1, 'ab', E'tab\\t line\\n back\\\\ quote''',
                '2024-01-01 00:00:00+00', '9999-12-31 00:00:00+00', true)"""
        )
    before = server.ask(f"select to_jsonb(t) - 'valid_to' - 'is_current' from {dim.sql_name} t")
    spec = DimensionSpec(key_columns="The Key")
    for zone, day in (("America/New_York", "02"), ("Asia/Kolkata", "03")):
        with with_settings(tables.spark, {"spark.sql.session.timeZone": zone}):
            stored = dim.rows(tables.spark).where("is_current")
            rows = stored.drop("valid_from", "valid_to", "is_current")
            assert merge(rows, dim, spec, at=f"2024-01-{day}").commit_version is None
            changed = rows.selectExpr(*[f"`{name}`" for name in rows.columns if name != "note"], f"'n{day}' as note")
            assert merge(changed, dim, spec, at=f"2024-01-{day}").inserted == 1
    after = server.ask(f"select to_jsonb(t) - 'valid_to' - 'is_current' from {dim.sql_name} t order by valid_from")
    assert after[0] == before[0]
    for (version,) in after[1:]:
        same = {name: value for name, value in version.items() if name not in ("note", "valid_from")}
        assert same == {name: value for name, value in before[0][0].items() if name in same}
    types = server.ask(f"select share::text, seen, raw, price, wall from {dim.sql_name}")
    assert len(set(types)) == 1
    assert types[0][2:] == (b"\x00\xff", Decimal("12345678.9000"), dt.datetime(2024, 3, 31, 2, 30, 0, 123000))


@pytest.mark.slow
def test_types_of_a_new_table(tables: Tables, server: Server, dim: PostgresTarget) -> None:
    rows = tables.spark.sql(
        "select 1 as `k 1`, 'a''b\\\\c' as `\"odd\"`, 1.5bd as d, cast('x' as binary) as b, "
        "timestamp '2024-01-01 10:00:00.5Z' as t, "
        "timestamp_ntz '2024-01-01 10:00:00' as n, date '2024-01-01' as day, array('p', null) as a, "
        "named_struct('x', 1) as s, float('nan') as f, 9223372036854775807 as big, true as yes, "
        "cast(null as string) as none"
    )
    spec = DimensionSpec(key_columns="k 1")
    merge(rows, dim, spec, at="2024-01-01 10:00:00.123456")
    kinds = dict(
        server.ask(
            "select attname, format_type(atttypid, atttypmod) from pg_attribute where attnum > 0 and "
            f"attrelid = '{dim.sql_name}'::regclass",
        )
    )
    wanted = ["integer", "text", "numeric(2,1)", "bytea", "timestamp with time zone", "timestamp without time zone"]
    wanted += ["date", "text[]", "jsonb", "real", "bigint", "boolean", "text"]
    assert [kinds[name] for name in rows.columns] == wanted
    stored = server.ask(f'select """odd""", t, a, s, f::text, big, none, valid_from from {dim.sql_name}')
    seen = dt.datetime(2024, 1, 1, 10, tzinfo=dt.timezone.utc)
    assert stored == [
        (
            "a'b\\c",
            seen.replace(microsecond=500000),
            ["p", None],
            {"x": 1},
            "NaN",
            9223372036854775807,
            None,
            seen.replace(microsecond=123456),
        )
    ]


@pytest.mark.slow
def test_deletions_guard_and_full_batches(tables: Tables, server: Server, dim: PostgresTarget) -> None:
    rows = [(number, "A") for number in range(30)]
    merge(batch(tables, *rows), dim, SPEC, at="2024-01-01")
    with pytest.raises(GuardError):
        merge(batch(tables, *rows[:10]), dim, SPEC, at="2024-01-02", full_batch=True)
    assert merge(batch(tables, *rows[:20]), dim, SPEC, at="2024-01-02", full_batch=True).closed == 10
    spec = DimensionSpec(key_columns="id", attributes={"name": 2, "city": 1}, deleted_when="name = 'gone'")
    assert merge(batch(tables, (1, "gone"), (25, "back")), dim, spec, at="2024-01-03").closed == 1
    assert versions(server, dim)[-6:-4] == [
        (25, "A", "2024-01-01", "2024-01-02", False),
        (25, "back", "2024-01-03", "9999-12-31", True),
    ]
    everything = batch(tables, *((number, "gone") for number in range(20)))
    with pytest.raises(GuardError):
        merge(everything, dim, spec, at="2024-01-04")


@pytest.mark.slow
def test_type_4_has_its_history_in_the_same_transaction(
    tables: Tables, server: Server, dim: PostgresTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = DimensionSpec(key_columns="id", attributes={"name": 4, "city": 1}, audit={})
    merge(batch(tables, (1, "A"), (2, "A")), dim, spec, at="2024-01-01")
    append = PostgresTables.append

    def broken(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(PostgresTables, "append", broken)
    with pytest.raises(KeyboardInterrupt):
        merge(batch(tables, (1, "B")), dim, spec, at="2024-01-02")
    assert server.ask(f"select id, name from {dim.sql_name} order by 1") == [(1, "A"), (2, "A")]
    monkeypatch.setattr(PostgresTables, "append", append)
    merge(batch(tables, (1, "B")), dim, spec, at="2024-01-02")
    merge(batch(tables, (1, "C")), dim, spec, at="2024-01-03")
    assert server.ask(f"select id, name from {dim.sql_name} order by 1") == [(1, "C"), (2, "A")]
    history = server.ask(
        f"select id, name, valid_from::date::text, valid_to::date::text from {dim.beside('_history').sql_name}"
    )
    assert sorted(history) == [(1, "A", "2024-01-01", "2024-01-02"), (1, "B", "2024-01-02", "2024-01-03")]
    assert len(server.ask(f"select 1 from {dim.beside('_audit').sql_name}")) == 4


@pytest.fixture
def between(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Callable[[], object]], None]:
    """Something that happens before a method of PostgresTables is called for the first time."""

    def patch(method: str, work: Callable[[], object]) -> None:
        then, works = getattr(PostgresTables, method), [work]

        def wait(*args: Any, **options: Any) -> Any:
            if works:
                works.pop()()
            return then(*args, **options)

        monkeypatch.setattr(PostgresTables, method, wait)

    return patch


OTHERS = {
    "updates a row": "update {} set city = 'other' where id = 1",
    "adds a row": "insert into {} (id, name, city, valid_from, valid_to, is_current, version) values "
    "(3, 'other', 'other', '2023-01-01', '9999-12-31', true, 1)",
    "deletes a row": "delete from {} where id = 1",
    "of another key": "update {} set city = 'other' where id = 2",
}
QUICK_OTHERS = ("updates a row", "of another key")


@pytest.mark.parametrize(
    "other", [pytest.param(other, marks=[pytest.mark.slow] * (other not in QUICK_OTHERS)) for other in OTHERS]
)
def test_another_writer_after_the_plan(
    tables: Tables, server: Server, dim: PostgresTarget, between: Any, other: str
) -> None:
    merge(batch(tables, (1, "A"), (2, "A")), dim, SPEC, at="2024-01-01")
    between("publish", lambda: server.run(OTHERS[other].format(dim.sql_name)))
    result = merge(batch(tables, (1, "B"), (3, "B")), dim, SPEC, at="2024-01-02")
    assert result.attempts == (1 if other == "of another key" else 2)
    names = [row[1] for row in versions(server, dim)]
    wanted = {"adds a row": ["A", "B", "A", "other", "B"], "deletes a row": ["B", "A", "B"]}
    assert names == wanted.get(other, ["A", "B", "A", "B"])


@pytest.mark.slow
def test_two_merges_that_make_the_table(tables: Tables, server: Server, dim: PostgresTarget, between: Any) -> None:
    between("publish", lambda: merge(batch(tables, (2, "A")), dim, SPEC, at="2024-01-01"))
    assert merge(batch(tables, (1, "A")), dim, SPEC, at="2024-01-02").attempts == 2
    assert [row[:2] for row in versions(server, dim)] == [(1, "A"), (2, "A")]


def test_odd_names_and_an_empty_batch(tables: Tables, server: Server) -> None:
    server.run('create schema "An odd Schema"')
    odd = PostgresTarget('"An odd Schema"."50%_of ""it"""', server.url)
    spec = DimensionSpec(key_columns="the key", attributes={"100%": 2, "a'b\"c": 1})
    rows = tables.spark.createDataFrame([("k", "a", "x"), ("", "%s", "\\N")], ["the key", "100%", "a'b\"c"])
    assert merge(rows.limit(0), odd, spec, at="2024-01-01").commit_version is None
    sink = spec.sink(odd, name="s")
    sink(rows, 0)
    assert server.ask(f'select "the key", "100%", "a\'b""c", is_current from {odd.sql_name} order by 1') == [
        ("", "%s", "\\N", True),
        ("k", "a", "x", True),
    ]


@pytest.mark.slow
def test_readers_do_not_wait(tables: Tables, server: Server, dim: PostgresTarget, between: Any) -> None:
    """And see the old state until the commit."""
    merge(batch(tables, (1, "A")), dim, SPEC, at="2024-01-01")
    seen: list[Any] = []
    between("note_micro_batch", lambda: seen.extend(versions(server, dim)))
    merge(batch(tables, (1, "B")), dim, SPEC, at="2024-01-02")
    assert seen == [(1, "A", "2024-01-01", "9999-12-31", True)]
    assert len(versions(server, dim)) == 2


@pytest.mark.slow
def test_a_sink(tables: Tables, server: Server, dim: PostgresTarget) -> None:
    sink = SPEC.sink(dim, name="crm")
    for number, name in ((0, "A"), (1, "B"), (0, "A"), (1, "B"), (2, "C")):
        sink(batch(tables, (1, name)), number)
    assert [row[1] for row in versions(server, dim)] == ["A", "B", "C"]
    assert server.ask(f"select * from {dim.beside('__micro_batches').sql_name}") == [("@crm:", 2)]


@pytest.mark.slow
def test_new_columns_and_pandas(tables: Tables, server: Server, dim: PostgresTarget) -> None:
    spec = DimensionSpec(key_columns="id", on_schema_change="append_new_columns")
    merge(pd.DataFrame({"id": [1, 2], "name": ["A", None]}), dim, spec, at="2024-01-01")
    merge(pd.DataFrame({"id": [1], "name": ["A"], "tier": ["gold"]}), dim, spec, at="2024-01-02")
    found = server.ask(f"select id, name, tier from {dim.sql_name} order by id, valid_from")
    assert found == [(1, "A", None), (1, "A", "gold"), (2, None, None)]


@pytest.mark.slow
def test_types_are_widened(tables: Tables, server: Server, dim: PostgresTarget) -> None:
    """In the transaction of the merge, with those of the history."""
    rows, big = tables.spark.createDataFrame, 2**40
    options: dict[str, Any] = {"key_columns": "id", "attributes": {"points": 4, "rate": 1, "price": 1}, "audit": {}}
    spec = DimensionSpec(**options, on_schema_change="sync_all_columns")
    wide, cents = "id bigint, points bigint, rate double, price decimal(12,4)", Decimal("1.25")
    narrow = "id int, points int, rate float, price decimal(9,2)"
    for points, day in ((1, 1), (2, 2)):
        merge(rows([(1, points, 0.5, cents)], narrow), dim, DimensionSpec(**options), at=f"2024-01-0{day}")
    given = rows([(1, big, 0.1, cents), (big, 1, 0.5, cents)], wide)
    types = (
        "select attname::text, format_type(atttypid, atttypmod) from pg_attribute where attrelid = '{}'::regclass "
        "and attname in ('id', 'points', 'rate', 'price') order by 1"
    )
    own, past = types.format(dim.sql_name), types.format(dim.beside("_history").sql_name)
    before = server.ask(own)
    with pytest.raises(TargetError, match="the batch has 4 mistakes"):
        merge(given, dim, DimensionSpec(**options), at="2024-01-03")
    with pytest.raises(LateChangeError):
        merge(given, dim, spec, at="2023-01-03")
    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(PostgresTables, "apply", interrupted)
        merge(given, dim, spec, at="2024-01-03")
    assert server.ask(own) == before
    assert merge(given, dim, spec, at="2024-01-03").attempts == 1
    merge(rows([(1, 5, 0.1, cents)], wide), dim, spec, at="2024-01-04")
    after = [("id", "bigint"), ("points", "bigint"), ("price", "numeric(12,4)"), ("rate", "double precision")]
    assert server.ask(own) == server.ask(past) == after
    assert server.ask(f"select id, points, rate from {dim.sql_name} order by 1") == [(1, 5, 0.1), (big, 1, 0.5)]
    history = server.ask(f"select id, points from {dim.beside('_history').sql_name} order by valid_from")
    assert history == [(1, 1), (1, 2), (1, big)]
    even = tables.spark.sql(f"select {big} as id, cast(1 as decimal(20,0)) as points, 0.5d as rate, 1.25 as price")
    assert merge(even, dim, spec, at="2024-01-05").commit_version is None
    assert server.ask(own)[1] == ("points", "numeric(20,0)")


@pytest.mark.slow
def test_another_writer_while_types_are_widened(
    tables: Tables, server: Server, dim: PostgresTarget, between: Callable[[str, Callable[[], object]], None]
) -> None:
    rows, spec = tables.spark.createDataFrame, DimensionSpec(key_columns="id", on_schema_change="sync_all_columns")
    merge(rows([(1, 1)], "id int, points int"), dim, spec, at="2024-01-01")
    other = rows([(1, 2)], "id int, points bigint")
    between("publish", lambda: merge(other, dim, spec, at="2024-01-02"))
    assert merge(rows([(1, 2**40)], "id int, points bigint"), dim, spec, at="2024-01-03").attempts == 2
    assert server.ask(f"select points from {dim.sql_name} order by version") == [(1,), (2,), (2**40,)]


def test_columns_that_the_server_computes(tables: Tables, server: Server, dim: PostgresTarget) -> None:
    """Identity, serial and generated columns are not written."""
    server.run(
        f"create table {dim.sql_name} (row_no bigint generated always as identity, number serial, id int, name text, "
        "city text, upper_name text generated always as (upper(name)) stored, valid_from timestamptz, "
        "valid_to timestamptz, is_current boolean)"
    )
    merge(batch(tables, (1, "a"), (2, "b")), dim, SPEC, at="2024-01-01")
    given = batch(tables, (1, "a", "y"), (2, "c"))
    assert str(dry_run(given, dim, SPEC)) == "2 rows in the batch would be 1 inserted, 1 closed, 1 updated"
    merge(given, dim, SPEC, at="2024-01-02")
    found = server.ask(f"select row_no, number, id, name, city, upper_name from {dim.sql_name} order by 1")
    assert found == [(1, 1, 1, "a", "y", "A"), (2, 2, 2, "b", "x", "B"), (3, 3, 2, "c", "x", "C")]
    for options in (
        {"surrogate_key": {"name": "row_no", "strategy": "sequence"}},
        {"column_names": {"version": "ROW_NO"}},
    ):
        spec = DimensionSpec(key_columns="id", attributes={"name": 2, "city": 1}, **options)  # type: ignore[arg-type]
        with pytest.raises(TargetError, match="row_no\n.*the table computes its values"):
            merge(given, dim, spec, at="2024-01-03")


@pytest.mark.slow
def test_the_command_line(tables: Tables, server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "spec.yml").write_text("KEYS: [id]\nDIFF_COLS: [name]\n")
    (tmp_path / "batch.csv").write_text("id,name\n1,Ann\n")
    call = ["merge", "--spec", str(tmp_path / "spec.yml"), "--batch", str(tmp_path / "batch.csv"), "--target"]
    target = f"{server.url}?table=public.by_command&connect_timeout=5"
    assert main([*call, target, "--dry-run"]) == 0
    assert 'insert {"id": "1"} new: name "Ann"' in capsys.readouterr().out
    assert main([*call, target]) == 0
    assert server.ask("select id, name from public.by_command") == [("1", "Ann")]
    assert main([*call, target.replace("healer@", "healer:secret@")]) == 2
    assert main([*call, server.url]) == 2
    said = capsys.readouterr().err
    assert "set PGPASSWORD" in said and "secret" not in said and "remedy: name the table" in said


@pytest.mark.slow
def test_a_connection_that_breaks(
    tables: Tables, server: Server, dim: PostgresTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the commit: the server knows of it. Before: nothing was written."""
    import psycopg

    merge(batch(tables, (1, "A")), dim, SPEC, at="2024-01-01")
    note, commit = PostgresTables.note_micro_batch, psycopg.Connection.commit

    def cut(_: Any, connection: Any, *__: Any) -> None:
        server.run(f"select pg_terminate_backend({connection.info.backend_pid})")

    monkeypatch.setattr(PostgresTables, "note_micro_batch", cut)
    with pytest.raises(TargetError, match="nothing was written"):
        merge(batch(tables, (1, "B")), dim, SPEC, at="2024-01-02")
    monkeypatch.setattr(PostgresTables, "note_micro_batch", note)
    assert len(versions(server, dim)) == 1

    def unheard(connection: Any) -> None:
        commit(connection)
        if connection.info.backend_pid in writing:
            raise psycopg.OperationalError("the server closed the connection")

    writing: set[int] = set()

    def remember(tables_: Any, connection: Any, merge_id: str) -> None:
        writing.add(connection.info.backend_pid)
        note(tables_, connection, merge_id)

    monkeypatch.setattr(PostgresTables, "note_micro_batch", remember)
    monkeypatch.setattr(psycopg.Connection, "commit", unheard)
    result = merge(batch(tables, (1, "B")), dim, SPEC, at="2024-01-02")
    assert (result.inserted, result.attempts) == (1, 1)
    assert len(versions(server, dim)) == 2


def test_what_is_wrong_is_said_without_the_password(tables: Tables, server: Server, dim: PostgresTarget) -> None:
    rows = batch(tables, (1, "A"))
    server.run(f"create view {dim.sql_name} as select 1 as id")
    closed = {"host": "127.0.0.1", "port": 1, "user": "healer", "password": PASSWORD}
    for target, wanted in (
        (dim, "got:    a view"),
        (PostgresTarget("d", closed), "remedy: check the connection"),
        (PostgresTarget("d", server.url.replace("healer", "nobody")), "remedy: check the connection"),
    ):
        with pytest.raises(TargetError, match=wanted) as error:
            merge(rows, target, SPEC)
        assert PASSWORD not in str(error.value) and PASSWORD not in repr(target)
    with pytest.raises(ArgumentError, match="a table of PostgreSQL"):
        PostgresTarget("a.b.c; drop table x", server.url)
    logged = DimensionSpec(key_columns="id", change_log="log")
    with pytest.raises(ArgumentError, match="one in PostgreSQL has no change log"):
        merge(rows, PostgresTarget("public.new_one", server.url), logged)
    server.run("create table public.checked (id int, name text check (name <> 'B'), valid_from date, valid_to date)")
    checked = PostgresTarget("public.checked", server.url)
    with pytest.raises(TargetError, match="violates check constraint"):
        merge(batch(tables, (1, "B")).drop("city"), checked, DimensionSpec(key_columns="id"), at="2024-01-01")
    assert server.ask("select * from public.checked") == []


@pytest.mark.slow
def test_this_module_needs_no_jar(server: Server) -> None:
    """A session without any package reads and writes."""
    code = (
        "import os\n"
        "from pyspark.sql import SparkSession\n"
        "from healing_tables import DimensionSpec, PostgresTarget, merge\n"
        "spark = SparkSession.builder.master('local[1]').config('spark.ui.enabled', 'false').getOrCreate()\n"
        f"target = PostgresTarget('public.plain', {server.url!r})\n"
        "rows = spark.createDataFrame([(1, 'A')], 'id int, name string')\n"
        "print(merge(rows, target, DimensionSpec(key_columns='id')).inserted)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=300)
    assert done.stdout.strip().splitlines()[-1] == "1", done.stderr[-2000:]
