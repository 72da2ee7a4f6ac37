"""Builds and merges with the code of a release, in a process of its own. See test_earlier_releases.py.

    python earlier_release.py CODE HOME STEP...

CODE: a checkout of that release. STEP: a number (the source gets the rows of that generation, and all models run),
``again`` (they run without new rows), ``twins`` (the same dimensions anew, from all generations so far), ``read``
(what only reads). Writes HOME/<step>.json after each: the results of dbt, and the rows of each table.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lab import Lab
from pyspark.sql import SparkSession
from sessions import FORMAT, session_settings, without_codegen

KEYS = 30
COLUMNS = "id int, name string, tier string, email string, city string, is_gone boolean"
CRM = (
    "'crm': {'relation': api.Relation.create(schema=target.schema, identifier='crm'), 'changed_at': 'changed_at', "
    "'loaded_at': 'loaded_at', 'deleted_when': 'is_gone', 'tie_break_by': 'loaded_at'}"
)
BUILT = (
    "{{ healing_tables.dimension(sources={%s}, attributes={'name': {'scd_type': 2}, 'tier': {'scd_type': 6}, "
    "'email': {'scd_type': 1}, 'city': {'scd_type': 3}}, surrogate_key={'name': 'sk', 'strategy': 'sequence'}) }}"
)
MERGED: dict[str, dict[str, Any]] = {
    "merged_log": {"attributes": {"name": 2, "tier": 6, "email": 1, "city": 3}, "change_log": "merged_log_changes"},
    "merged": {"attributes": {"name": 2, "tier": 2, "email": 1, "city": 0}},
    "merged_four": {"attributes": {"name": 4, "tier": 4, "email": 1, "city": 0}},
}
BUILDS = {"delta": {"built": "delta", "built_orc": "orc"}, "iceberg": {"built": "iceberg"}}[FORMAT]
if FORMAT == "delta":
    MERGED["merged_orc"] = MERGED["merged"]
LATE = {"merged_log"}  # those that take rows in any order


def rows_of(generation: int) -> Iterator[tuple[Any, ...]]:
    """Some keys change on the day of the generation, some keys end, some changes come two days late."""
    chosen = random.Random(generation)
    for key in range(KEYS + generation):
        if chosen.random() < 0.6:
            is_late = generation > 1 and chosen.random() < 0.3
            day = generation - 1 if is_late else generation + 1
            moment = f"2024-01-{day:02d} {generation:02d}:{key:02d}:00"
            values = [f"{word} {chosen.randrange(3)}" for word in ("Ann", "gold", "mail", "Bern")]
            yield (key, *values, chosen.random() < 0.15, moment, generation, is_late)


def load(lab: Lab, generation: int) -> None:
    values = ", ".join(
        f"({', '.join(str(value) if isinstance(value, (int, bool)) else repr(value) for value in row)})"
        for row in rows_of(generation)
    )
    lab.spark.sql(
        f"insert into {lab.schema}.crm select id, name, tier, email, city, is_gone, to_timestamp(concat(moment, 'Z')), "
        f"generation, is_late, timestamp '2024-02-01 00:00:00Z' + make_dt_interval(generation) from values {values} "
        "as v(id, name, tier, email, city, is_gone, moment, generation, is_late)"
    )


def models(lab: Lab, suffix: str, generation: int) -> list[str]:
    """Write the models, whose batches are those of the generation; their names."""
    for name, kind in BUILDS.items():
        heal = {"meta": {"healing_tables": {"mode": "heal"}}} if name == "built" else {}
        lab.model(name + suffix, BUILT % CRM, materialized="healing_table", unique_key="id", file_format=kind, **heal)
    for name, options in MERGED.items():
        given = options | {"deleted_when": "is_gone", "changed_at": "changed_at", "audit": {"actor": "night"}}
        if "change_log" in options:
            given["change_log"] = f"{name}{suffix}_changes"
        if name == "merged":
            given["surrogate_key"] = {"name": "sk", "strategy": "sequence"}
        lab.model(
            name + suffix,
            f"select id, name, tier, email, city, is_gone, changed_at from {lab.schema}.crm "
            f"where generation = {generation} {'' if name in LATE else 'and not is_late'}",
            materialized="healing_merge",
            unique_key="id",
            meta={"healing_tables": given},
            **({"file_format": "orc"} if name == "merged_orc" else {}),
        )
    lab.model(
        f"captured{suffix}",
        f"select id, name, tier from {lab.schema}.crm where generation = {generation} and not is_late",
        materialized="capture",
        unique_key="id",
    )
    return [name + suffix for name in [*BUILDS, *MERGED, "captured"]]


def run(lab: Lab, generation: int) -> dict[str, Any]:
    return lab.dbt("run", "--select", *models(lab, "", generation))


def run_twins(lab: Lab, newest: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for generation in range(newest + 1):
        names = models(lab, "_twin", generation)
        found |= lab.dbt("run", "--select", *(names if generation == newest else names[len(BUILDS) :]))
    return found


def tables(lab: Lab) -> dict[str, Any]:
    """The columns and the rows of each table of the schema."""
    found = {}
    for row in lab.spark.sql(f"show tables in {lab.schema}").collect():
        if not row.isTemporary:
            lab.spark.catalog.refreshTable(f"{lab.schema}.{row.tableName}")
            frame = lab.spark.table(f"{lab.schema}.{row.tableName}")
            found[row.tableName] = [json.loads(str(text)) for text in frame.toJSON().collect()]
    return found


def read(lab: Lab) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in [*BUILDS, *MERGED]:
        call = "select count(*) as n from ({{ healing_tables.%s }}) as t"
        table = f"api.Relation.create(schema=target.schema, identifier='{name}')"
        calls = [["run-operation", "healing_tables.history", "--args", json.dumps({"dimension": name})]]
        if name != "merged_four":  # it has no column that says from when to when
            calls += [["show", "--inline", call % f"current_versions({table})"]]
            calls += [["run-operation", "healing_tables.diagnose", "--args", json.dumps({"dimension": name})]]
            calls += [["show", "--inline", call % f"versions_at({table}, '2024-01-02 12:00:00')"]]
        for given in calls:
            lab.dbt(*given)
            found[" ".join(given)] = ["success" if lab.succeeded else "error", "\n".join(lab.log)[-2000:]]
    return found


def main(code: Path, home: Path, steps: list[str]) -> None:
    import healing_tables

    assert Path(healing_tables.__file__).is_relative_to(code), healing_tables.__file__
    settings = session_settings(home) | {"spark.driver.memory": "2g"}
    spark = SparkSession.builder.master("local[2]").config(map=settings).enableHiveSupport().getOrCreate()
    spark.sql("create database if not exists earlier")
    spark.sql(
        f"create table if not exists earlier.crm ({COLUMNS}, changed_at timestamp, generation int, is_late boolean, "
        f"loaded_at timestamp) using {FORMAT}"
    )
    project = home / "project"
    project.mkdir(exist_ok=True)
    lab = Lab(spark, project, schema="earlier")
    (project / "packages.yml").write_text(f"packages: [{{local: '{code}'}}]\n")
    link = project / "dbt_packages" / "healing_tables"
    link.unlink()
    link.symlink_to(code)
    with without_codegen(spark):
        for step in steps:
            newest = spark.sql("select max(generation) from earlier.crm").collect()[0][0]
            if step == "twins":
                found = run_twins(lab, newest)
            elif step == "read":
                found = read(lab)
            elif step == "again":
                found = run(lab, newest)
            else:
                load(lab, int(step))
                found = run(lab, int(step))
            (home / f"{step}.json").write_text(json.dumps({"results": found, "tables": tables(lab)}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
