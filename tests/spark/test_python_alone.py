"""Without dbt: frames of pandas and Polars, the command line, the sink of a stream."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from tables import Tables, plain_rows

from healing_tables import ArgumentError, DimensionSpec, HiveTarget, SpecError, merge
from healing_tables.cli import check_is_kept, main

pytestmark = pytest.mark.usefixtures("interpreted")
SPEC = DimensionSpec(key_columns="id", attributes={"name": 2, "city": 1})
YAML = "KEYS: [id]\nDIFF_COLS: [name]\nattributes: {city: 1}\n"
BEFORE = {"id": [1, 2], "name": ["Ann", None], "city": ["Split", "Zadar"]}
AFTER = {"id": [1, 2, 3], "name": ["Eva", None, "Ivo"], "city": ["Split", "Pula", None]}
MERGED = [
    (1, "Ann", "Split", False),
    (1, "Eva", "Split", True),
    (2, None, "Pula", True),
    (3, "Ivo", None, True),
]


@pytest.fixture
def dim(tables: Tables, request: pytest.FixtureRequest) -> str:
    return f"{tables.schema}.{request.node.name.partition('[')[0].removeprefix('test_')}"


def stored(tables: Tables, dim: str) -> list[tuple[Any, ...]]:
    return plain_rows(tables.spark.table(dim), ["id", "name", "city", "is_current"])


def polars_frame(values: dict[str, list[Any]]) -> Any:
    return pytest.importorskip("polars").DataFrame(values)


@pytest.mark.slow
@pytest.mark.parametrize("make", [pd.DataFrame, polars_frame, pa.table], ids=["pandas", "polars", "pyarrow"])
def test_frames_of_others(tables: Tables, dim: str, make: Any) -> None:
    name = f"{dim}_{make.__name__.lower()}"
    merge(make(BEFORE), name, SPEC, at="2024-01-01")
    assert merge(make(AFTER), name, SPEC, at="2024-01-02").inserted == 2
    assert stored(tables, name) == MERGED
    assert merge(make(AFTER), name, SPEC, at="2024-01-03").commit_version is None
    assert merge(make(AFTER)[:0], name, SPEC, at="2024-01-03").commit_version is None


def test_values_of_pandas(tables: Tables, dim: str) -> None:
    """A missing number is NULL and no NaN, categories are texts, rows that were filtered bring no index."""
    frame = pd.DataFrame(
        {
            "id": pd.array([1, 2, None], dtype="Int64"),
            "size": [1.5, None, 9.0],
            "kind": pd.Categorical(["a", "b", "a"]),
            "day": pd.to_datetime(["2024-01-01", None, "2024-01-01"]).date,
            "seen": pd.to_datetime(["2024-01-01 10:00:00.5+02:00", None, None], utc=True),
            "small": pd.array([1, 255, 3], dtype="uint8"),
            "none": [None, None, None],
        }
    )
    merge(frame[frame["id"].notna()], dim, DimensionSpec(key_columns="id"), at="2024-01-01")
    seen = dt.datetime(2024, 1, 1, 8, 0, 0, 500000)
    assert tables.spark.table(dim).select("id", "size", "kind", "day", "small", "none").orderBy("id").collect() == [
        (1, 1.5, "a", dt.date(2024, 1, 1), 1, None),
        (2, None, "b", None, 255, None),
    ]
    found = tables.spark.table(dim).selectExpr("cast(to_utc_timestamp(seen, current_timezone()) as timestamp_ntz)")
    assert sorted((row[0] for row in found.collect()), key=str) == [seen, None]


def test_what_is_no_frame(tables: Tables, dim: str) -> None:
    with pytest.raises(ArgumentError, match="got:    a builtins.list"):
        merge([1], dim, SPEC)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "spec.yml").write_text(YAML)
    for name, values in (("before", BEFORE), ("after", AFTER)):
        pd.DataFrame(values).to_csv(tmp_path / f"{name}.csv", index=False)
        pd.DataFrame(values).to_parquet(tmp_path / f"{name}.parquet")
    return tmp_path


def run(files: Path, dim: str, batch: str, *more: str, spec: str = "spec.yml") -> int:
    return main(["merge", "--spec", str(files / spec), "--batch", str(files / batch), "--target", dim, *more])


def test_the_command_line(tables: Tables, dim: str, files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schema = ("--schema", "id bigint, name string, city string")
    assert run(files, dim, "before.csv", "--at", "2024-01-01", *schema) == 0
    assert "2 rows in the batch: 2 inserted, 0 closed, 0 updated; 1 attempt, commit 1" in capsys.readouterr().err
    before = tables.spark.sql(f"describe history {dim}").count()
    assert run(files, dim, "after.parquet", "--at", "2024-01-02", "--dry-run") == 0
    said = capsys.readouterr()
    assert "3 rows in the batch would be 2 inserted, 1 closed, 1 updated" in said.err
    assert said.out.splitlines() == [
        'close  {"id": 1} changed: valid_to "9999-12-31" -> "2024-01-02"',
        'insert {"id": 1} changed: name "Eva", city "Split", valid_from "2024-01-02"',
        'update {"id": 2} overwritten: city "Zadar" -> "Pula"',
        'insert {"id": 3} new: name "Ivo", city null, valid_from "2024-01-02"',
    ]
    assert tables.spark.sql(f"describe history {dim}").count() == before
    assert run(files, dim, "after.parquet", "--at", "2024-01-02") == 0
    assert stored(tables, dim) == MERGED
    assert run(files, dim, "after.parquet", "--at", "2024-01-03", "--dry-run") == 0
    assert "nothing to change" in capsys.readouterr().err


def test_the_command_line_says_what_is_wrong(
    tables: Tables, dim: str, files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (files / "bad.yml").write_text("KEYS: [id]\nDIFF_COL: [name]\n")
    (files / "twice.csv").write_text("id,name,city\n1,a,b\n1,c,d\n")
    for batch, more, spec, code, text in (
        ("before.csv", [], "none.yml", 2, "remedy: correct the path"),
        ("before.csv", [], "bad.yml", 2, "DIFF_COL"),
        ("none.csv", [], "spec.yml", 2, "a table, or a file that Spark can read"),
        ("before.csv", ["--conf", "spark"], "spec.yml", 2, "NAME=VALUE"),
        ("before.csv", ["--at", "soon"], "spec.yml", 2, "a moment before the end of time"),
        ("twice.csv", [], "spec.yml", 1, "nothing was written"),
        ("twice.csv", ["--dry-run"], "spec.yml", 1, "nothing was written"),
    ):
        assert run(files, dim, batch, *more, spec=spec) == code, batch
        assert text in capsys.readouterr().err
    assert not tables.spark.catalog.tableExists(dim)
    with pytest.raises(SystemExit, match="2"):
        main(["merge", "--spec", "x"])


def test_a_table_that_would_be_gone_with_the_command() -> None:
    catalogs = ["spark_catalog"]
    session: Any = SimpleNamespace(
        _jsc=None,
        conf={"spark.sql.catalogImplementation": "in-memory"},
        catalog=SimpleNamespace(currentCatalog=lambda: catalogs[-1]),
    )
    for name in ("/data/dim", "s3a://bucket/dim", "lake.sales.dim"):
        check_is_kept(session, name)
    with pytest.raises(ArgumentError, match="remedy: name the path"):
        check_is_kept(session, "sales.dim")
    catalogs.append("lake")
    check_is_kept(session, "sales.dim")
    catalogs.pop()
    session.conf["spark.sql.catalogImplementation"] = "hive"
    check_is_kept(session, "sales.dim")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["delta", "orc"])
def test_a_sink_merges_each_micro_batch_once(tables: Tables, dim: str, kind: str) -> None:
    """Also where one is delivered again after others, and after merges that have nothing to do with the stream."""
    name = f"{dim}_{kind}"
    target = name if kind == "delta" else HiveTarget(name)
    spec = DimensionSpec(key_columns="id", attributes={"name": 2, "city": 1}, audit={})
    sink = spec.sink(target, name="crm")

    def batch(value: str) -> Any:
        return tables.spark.createDataFrame([(1, value, "x")], "id int, name string, city string")

    for number, value in enumerate(("A", "B")):
        sink(batch(value), number)
    merge(batch("C"), name, spec)
    sink(batch("A"), 0)
    sink(batch("B"), 1)
    versions = tables.spark.table(name).orderBy("version")
    assert [row["name"] for row in versions.collect()] == ["A", "B", "C"]
    spec.sink(target, name="other")(batch("D"), 0)  # a stream of its own
    sink(batch("E"), 2)
    assert [row["name"] for row in tables.spark.table(name).orderBy("version").collect()] == list("ABCDE")
    ids = {row["batch_id"] for row in tables.spark.table(f"{name}_audit").collect()}
    assert {"crm:0", "crm:1", "crm:2", "other:0"} < ids


@pytest.mark.slow
def test_a_stream(tables: Tables, dim: str, tmp_path: Path) -> None:
    """Its checkpoint says which stream it is; without the checkpoint, it is another one."""
    source = tmp_path / "source"
    spark = tables.spark

    def arrive(name: str) -> None:
        rows = spark.createDataFrame([(1, name, "x")], "id int, name string, city string")
        rows.coalesce(1).write.mode("append").parquet(str(source))

    def run_stream(checkpoint: str) -> None:
        stream = spark.readStream.schema("id int, name string, city string").parquet(str(source))
        writer = stream.writeStream.foreachBatch(SPEC.sink(dim)).trigger(availableNow=True)
        writer.option("checkpointLocation", str(tmp_path / checkpoint)).start().awaitTermination()

    arrive("A")
    run_stream("one")
    (tmp_path / "one" / "commits" / "0").unlink()  # killed after the merge, before Spark has noted it
    (tmp_path / "one" / "commits" / ".0.crc").unlink(missing_ok=True)
    merge(spark.createDataFrame([(1, "B", "x")], "id int, name string, city string"), dim, SPEC)
    run_stream("one")
    assert [row["name"] for row in spark.table(dim).orderBy("version").collect()] == ["A", "B"]
    arrive("C")
    run_stream("one")
    assert [row["name"] for row in spark.table(dim).orderBy("version").collect()] == ["A", "B", "C"]


def test_a_sink_with_a_wrong_name() -> None:
    with pytest.raises(ArgumentError, match="letters, digits"):
        SPEC.sink("d", name="a'b")
    with pytest.raises(SpecError):
        DimensionSpec(key_columns=[]).sink("d")
