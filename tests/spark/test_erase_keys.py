"""erase of the library: no table of a dimension in PostgreSQL or in files has a row of the key, and no merge brings it
back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from postgres_server import PASSWORD
from pyspark.sql import DataFrame
from tables import Tables

from healing_tables import (
    ArgumentError,
    DeltaTarget,
    DimensionSpec,
    FilesTarget,
    PostgresTarget,
    TargetError,
    erase,
    erased,
    merge,
    readmit,
)

pytestmark = pytest.mark.usefixtures("interpreted")

KEY, NAME = 700007, "Wilhelmina"  # nobody else has them
SPEC = DimensionSpec(
    key_columns=["id", "shop"],
    attributes={"name": 2, "mail": 1},
    changed_at="changed_at",
    audit={},
    surrogate_key={"name": "sk", "strategy": "sequence"},
    on_late="set_aside",
)
BESIDE = ["", "_audit", "__set_aside", "__keys", "_changes", "_history"]


@pytest.fixture(autouse=True)
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEALING_TABLES_SECRET", "a secret of these tests, long enough")


@pytest.fixture(params=["files", "postgres"])
def dim(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FilesTarget | PostgresTarget]:
    if request.param == "files":
        yield FilesTarget(f"{tmp_path}/dim")
    else:
        server = request.getfixturevalue("postgres")
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PGPASSWORD", PASSWORD)
            name = "".join(letter if letter.isalnum() else "_" for letter in request.node.name.lower())
            yield PostgresTarget(f"public.{name[-40:]}", server.url)


def batch(tables: Tables, *rows: tuple[Any, ...]) -> DataFrame:
    return tables.spark.createDataFrame(list(rows), "id bigint, shop string, name string, day string").selectExpr(
        "id", "shop", "name", "concat(name, '@x') as mail", "cast(day as date) as changed_at"
    )


def keys(tables: Tables) -> DataFrame:
    return tables.spark.createDataFrame([(KEY, "Bern")], "id int, shop string")


def holders(tables: Tables, dim: Any) -> set[str]:
    """The tables, by their suffixes, with a row that has the key or the name in any column."""
    found = set()
    for suffix in BESIDE:
        rows = (dim.beside(suffix) if suffix else dim).read(tables.spark)
        if rows is not None:
            texts = rows.selectExpr("to_json(struct(*)) as text")
            if texts.where(f"text like '%{KEY}%' or text like '%{NAME}%'").count():
                found.add(suffix)
    return found


def names(tables: Tables, dim: Any) -> list[tuple[Any, ...]]:
    rows = dim.read(tables.spark).orderBy("id", "valid_from").select("id", "name", "sk").collect()
    return [tuple(row) for row in rows]


def test_a_key_is_forgotten(tables: Tables, dim: FilesTarget | PostgresTarget) -> None:
    merge(batch(tables, (1, "Bern", "Ann", "2024-01-05"), (KEY, "Bern", NAME, "2024-01-05")), dim, SPEC)
    merge(batch(tables, (1, "Bern", "Bea", "2024-01-07"), (KEY, "Bern", f"{NAME} II", "2024-01-07")), dim, SPEC)
    late = batch(tables, (1, "Bern", "Cy", "2024-01-02"), (KEY, "Bern", f"{NAME} late", "2024-01-02"))
    assert merge(late, dim, SPEC).set_aside == 2
    before, held = names(tables, dim), holders(tables, dim)
    assert {"", "_audit", "__set_aside"} <= held

    looked = erase(keys(tables), dim, SPEC)
    assert (looked.is_done, sum(looked.rows.values())) == (False, 2 + 3 + 1 + (2 if "__keys" in held else 0))
    assert (names(tables, dim), holders(tables, dim)) == (before, held)

    done = erase(keys(tables), dim, SPEC, run=True)
    assert (done.rows, done.hashes, done.is_done) == (looked.rows, looked.hashes, True)
    assert holders(tables, dim) == set()
    assert names(tables, dim) == [row for row in before if row[0] == 1]
    assert sum(erase(keys(tables), dim, SPEC, run=True).rows.values()) == 0
    register = dim.beside("__erased").read(tables.spark)
    assert register is not None
    assert [(row.key_hash, row.event) for row in register.collect()] == [(done.hashes[0], "erase")]
    if isinstance(dim, PostgresTarget):
        assert erased(dim, SPEC) == {dim.name: 0, dim.beside("_audit").name: 0, dim.beside("__set_aside").name: 0}
    else:  # older states have the rows until they expire: one of the first merge, two of the second
        beside = {"_audit": 3, "__set_aside": 1, "__keys": 2}
        assert erased(dim, SPEC) == {dim.path: 3, **{dim.beside(name).path: rows for name, rows in beside.items()}}

    more = [
        (2, "Bern", "Dee", "2024-01-09"),
        (KEY, "Bern", f"{NAME} III", "2024-01-09"),
        (KEY, "Basel", "x", "2024-01-09"),
    ]
    merge(batch(tables, *more), dim, SPEC)
    found = names(tables, dim)
    assert [row[:2] for row in found] == [(1, "Ann"), (1, "Bea"), (2, "Dee"), (KEY, "x")]
    assert min(row[2] for row in found[2:]) > max(row[2] for row in before)  # no number is given again

    assert readmit(keys(tables), dim, SPEC, "2024-01-10") == 1
    back = batch(tables, (KEY, "Bern", f"{NAME} X", "2024-01-10"), (KEY, "Bern", f"{NAME} XI", "2024-01-11"))
    merge(back, dim, SPEC)
    assert [row[1] for row in names(tables, dim)][-2:] == ["x", f"{NAME} XI"]
    assert erase(keys(tables), dim, SPEC, run=True).rows[dim.name] == 1


def test_refused(tables: Tables, dim: FilesTarget | PostgresTarget, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TargetError, match="no table"):
        erase(keys(tables), dim, SPEC)
    merge(batch(tables, (KEY, "Bern", NAME, "2024-01-05")), dim, SPEC)
    with pytest.raises(ArgumentError, match="the key column shop"):
        erase(keys(tables).drop("shop"), dim, SPEC, run=True)
    with pytest.raises(ArgumentError, match="1 without one"):
        erase(keys(tables).selectExpr("'seven' as id", "shop"), dim, SPEC, run=True)
    with pytest.raises(ArgumentError, match="no keys"):
        erase(keys(tables).limit(0), dim, SPEC, run=True)
    with pytest.raises(ArgumentError, match="dbt run-operation"):
        erase(keys(tables), DeltaTarget("dim"), SPEC, run=True)  # type: ignore[arg-type]
    monkeypatch.setenv("HEALING_TABLES_SECRET", "short")
    with pytest.raises(TargetError, match="at least 16 characters"):
        erase(keys(tables), dim, SPEC, run=True)
    assert "" in holders(tables, dim)
    monkeypatch.setenv("HEALING_TABLES_SECRET", "a secret of these tests, long enough")
    erase(keys(tables), dim, SPEC, run=True)
    monkeypatch.setenv("HEALING_TABLES_SECRET", "another one that is long enough")
    for call in (erase, merge):
        with pytest.raises(TargetError, match="whose name is"):
            call(batch(tables, (3, "Bern", "Eve", "2024-01-09")), dim, replace(SPEC, on_late="error"))
    assert holders(tables, dim) == set()
