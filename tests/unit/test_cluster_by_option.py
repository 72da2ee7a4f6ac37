"""cluster_by: what is refused before anything is written, and by which columns a log is clustered without it."""

from __future__ import annotations

from typing import Any

import pytest
from rendering import Project

from healing_tables.targets.delta import DeltaTarget


@pytest.mark.parametrize(
    "file_format, config, options, wanted, remedy",
    [
        ("delta", {}, {"cluster_by": 4}, "a column, or a list of columns", "write the key of the model"),
        ("delta", {}, {"cluster_by": ["id", {"by": "day"}]}, "a column, or a list of columns", "write the key"),
        ("orc", {}, {"cluster_by": "id"}, "a table in delta or iceberg", "set key_buckets"),
        ("delta", {"partition_by": "day"}, {"cluster_by": "id"}, "a table without partition_by", "leave one of them"),
        ("iceberg", {"partition_by": ["day"]}, {"cluster_by": ["id"]}, "a table without partition_by", "leave one"),
        ("delta", {"partition_by": "day", "liquid_clustered_by": "id"}, {}, "a table without partition_by", "leave"),
        ("delta", {}, {"cluster_by": list("abcde")}, "at most 4 columns", "keep those by which the table is read"),
    ],
)
def test_refused(file_format: str, config: dict[str, Any], options: dict[str, Any], wanted: str, remedy: str) -> None:
    macros = project(config, options).macros
    mistakes: list[Any] = []
    macros._check_cluster_by(mistakes, macros._format(file_format))
    (mistake,) = mistakes
    assert "cluster_by" in str(mistake)
    assert wanted in str(mistake)
    assert remedy in str(mistake)


COLUMNS = {"id": "int", "on": "boolean", "tags": "array<string>", "name": None}
WITHOUT = "columns of which Delta has statistics"


@pytest.mark.parametrize(
    "file_format, columns, wanted",
    [
        ("delta", ["id", "name"], []),
        ("delta", ["ID"], []),
        ("delta", ["nam"], ["a column of dim"]),
        ("delta", ["id", "Id"], ["each column once"]),
        ("delta", ["nam", "id", "Id"], ["a column of dim", "each column once"]),
        ("delta", ["on", "tags"], [WITHOUT, WITHOUT]),
        ("delta", ["c40"], [WITHOUT]),
        ("iceberg", ["on", "c40"], []),
    ],
)
def test_columns(file_format: str, columns: list[str], wanted: list[str]) -> None:
    macros = project({}, {"cluster_by": columns}).macros
    mistakes: list[Any] = []
    table = COLUMNS | {f"c{number}": "int" for number in range(41)}
    macros._check_cluster_columns(mistakes, macros._format(file_format), "dim", table)
    assert len(mistakes) == len(wanted)
    assert all(text in str(mistake) for text, mistake in zip(wanted, mistakes, strict=True))


@pytest.mark.parametrize(
    "config, options, columns",
    [
        ({}, {}, []),
        ({}, {"cluster_by": "id"}, ["id"]),
        ({"liquid_clustered_by": "id"}, {}, ["id"]),
        ({"liquid_clustered_by": ["a", "b"]}, {"cluster_by": ["id"]}, ["id"]),
        ({"partition_by": "day"}, {"cluster_by": []}, []),
        ({}, {"cluster_by": list("abcd")}, list("abcd")),
    ],
)
def test_accepted(config: dict[str, Any], options: dict[str, Any], columns: list[str]) -> None:
    macros = project(config, options).macros
    mistakes: list[Any] = []
    macros._check_cluster_by(mistakes, macros._format("delta"))
    assert mistakes == []
    assert macros._cluster_by() == columns


FIVE, FORTY = ({f"c{number}": "int" for number in range(count)} for count in (5, 40))


def wide(fields: int) -> dict[str, str]:
    return {"wide": "struct<" + ",".join(f"f{number}:int" for number in range(fields)) + ">", "id": "int"}


@pytest.mark.parametrize(
    "columns, keys, wanted",
    [
        ({"id": "int", "name": "string"}, ["id"], ["id"]),
        ({"on": "boolean", "id": "int"}, ["on", "id"], []),
        ({"id": "struct<a:int,b:int>", "name": "string"}, ["id"], []),
        ({"id": "decimal(10,2)", "at": "timestamp_ntz", "day": "date"}, ["id", "at", "day"], ["id", "at", "day"]),
        (FORTY, ["c31"], ["c31"]),
        (FORTY, ["c32"], []),
        (wide(31), ["id"], ["id"]),
        (wide(32), ["id"], []),
        (FIVE, list(FIVE), ["c0", "c1", "c2", "c3"]),
    ],
)
def test_a_log_that_grows_is_clustered_by_its_key(columns: dict[str, str], keys: list[str], wanted: list[str]) -> None:
    """Alike by a capture and by a merge: if Delta has statistics of the key, and by at most four of its columns."""
    macros = Project({}).macros
    macros.replace("_spark_version", lambda: "4.2.0")
    assert macros._cluster_by_key(macros._format("delta"), keys, columns) == wanted
    assert list(DeltaTarget("a.log").ordered(keys, columns).cluster_by) == wanted


def project(config: dict[str, Any], options: dict[str, Any]) -> Project:
    return Project({}, config={"materialized": "healing_table", **config, "meta": {"healing_tables": options}})
