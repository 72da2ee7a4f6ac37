"""Real data, healed as it came: dim_runway is one rebuild, and what the monthly files say; what an outage does.

HEALING_TABLES_MONTHS=1 takes every runway of the file and one instalment a month; otherwise one in six, and three
instalments.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import pytest
from dbt.cli.main import dbtRunner
from lab import PROFILE, Lab
from pyspark.sql import DataFrame
from sessions import ROOT

EVERYTHING = "HEALING_TABLES_MONTHS" in os.environ
SAMPLE = "true" if EVERYTHING else "pmod(runway_id, 60) = 7"
START, END = "2022-01-01 00:00:00", "2026-09-01 00:00:00"
OUTAGE, NIGHT, MENDED = "2025-01-31 12:40:18", "2025-01-31 20:00:00", "2025-02-01 01:18:01"
MONTHS = [f"{2022 + month // 12}-{month % 12 + 1:02}-01 00:00:00" for month in range(57)]
# up to but not including; one ends in the outage
INSTALMENTS = sorted({*MONTHS, NIGHT, END} if EVERYTHING else {START, NIGHT, END})
VERSIONED = {
    "airport_ref": "bigint",
    "airport_ident": "string",
    "length_ft": "int",
    "width_ft": "int",
    "surface": "string",
    "le_ident": "string",
    "he_ident": "string",
}
FLAGS = {"is_lighted": "lighted", "is_closed": "closed"}
ATTRIBUTES = {name: {"from": ["seen"]} for name in [*VERSIONED, *FLAGS]}
SOURCES = {
    "monthly": "'snapshot_at': 'snapshot_at', 'calendar': ref('taken')",
    "monthly_ignored": "'snapshot_at': 'snapshot_at', 'calendar': ref('taken'), 'on_absence': 'ignore'",
    "log_as_found": "'changed_at': 'changed_at', 'deleted_when': \"op = 'D'\"",
}


def project(lab: Lab, *args: str) -> Any:
    """Run this checkout's own project in the schema of the test."""
    folders = ["--project-dir", str(ROOT), "--profiles-dir", str(lab.home)]
    folders += ["--target-path", str(lab.home / "own"), "--log-path", str(lab.home / "logs")]
    outcome = dbtRunner().invoke([*args, *folders])
    assert outcome.success, outcome.exception or outcome.result
    result: Any = outcome.result
    return result.results


def until(lab: Lab, view: str, column: str, moment: str) -> None:
    """Only what had been seen before ``moment`` (UTC), for a reader of ``view``."""
    lab.spark.sql(
        f"create or replace view {lab.schema}.{view} as select * from {lab.schema}.all_{view} "
        f"where {column} < timestamp'{moment}Z'"
    )


def log(lab: Lab, name: str) -> list[Any]:
    rows = lab.spark.table(f"{lab.schema}.healing_log").where(f"dimension = '{name}'")
    return list(rows.orderBy("finished_at").collect())


def differences(left: DataFrame, right: DataFrame) -> list[list[Any]]:
    """Rows of one side only, up to three of each."""
    both = [left.exceptAll(right), right.exceptAll(left)]
    return [frame.limit(3).collect() for frame in both]


def runways(lab: Lab) -> int:
    return int(lab.spark.table(f"{lab.schema}.all_seen").select("runway_id").distinct().count())


@dataclass
class Healed:
    lab: Lab
    log: list[Any]
    rebuilt: DataFrame


@pytest.fixture(scope="module")
def files(lab: Lab) -> Lab:
    """Views over the files of this checkout; ``seen`` are the monthly files, typed like the change log."""
    typed = [f"cast(nullif({name}, '') as {kind}) as {name}" for name, kind in VERSIONED.items()]
    typed += [f"{raw} = '1' as {name}" for name, raw in FLAGS.items()]
    folder = ROOT / "data" / "ourairports"
    lab.spark.sql(
        f"create view {lab.schema}.all_seen as select * from (select cast(id as bigint) as runway_id, "
        f"snapshot_at, {', '.join(typed)} from parquet.`{folder}/runways_snapshots.parquet`) where {SAMPLE}"
    )
    calendar = "from_csv(value, 'source string, at string, rows int')"
    lab.spark.sql(
        f"create view {lab.schema}.all_calendar as select cast(concat(file.at, 'Z') as timestamp) as taken_at "
        f"from (select {calendar} as file from text.`{folder}/runways_snapshots_calendar.csv` "
        "where value not like 'source,%')"
    )
    return lab


@pytest.fixture(scope="module")
def healed(files: Lab) -> Healed:
    lab = files
    lab.write("profiles.yml", PROFILE.replace("lab:", "healing_tables:") % lab.schema)
    log_view = "stg_ourairports_runways"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DBT_PROJECT_DIR", str(ROOT))
        project(lab, "run", "--select", log_view)
        lab.spark.sql(f"alter view {lab.schema}.{log_view} rename to {lab.schema}.all_rows")
        lab.spark.sql(f"create view {lab.schema}.all_{log_view} as select * from {lab.schema}.all_rows where {SAMPLE}")
        for moment in INSTALMENTS:
            until(lab, log_view, "changed_at", moment)
            (result,) = project(lab, "run", "--select", "dim_runway")
        project(lab, "test", "--select", "dim_runway")
    lab.write("profiles.yml", PROFILE % lab.schema)
    return Healed(lab, log(lab, "dim_runway"), lab.spark.sql(result.node.compiled_code))


def test_instalments_are_healed(healed: Healed) -> None:
    rows = healed.log
    assert [row["mode"] for row in rows] == ["rebuild"] + ["heal"] * (len(INSTALMENTS) - 1)
    night = rows[INSTALMENTS.index(NIGHT)]
    assert night["status"] == "published"
    # of all the others the deletions say nothing
    assert 0 < night["keys_affected"] < (150 if EVERYTHING else runways(healed.lab) * 2 / 3)
    assert sum(row["rows_removed"] for row in rows[1:]) == 0


def test_heals_are_one_rebuild(healed: Healed) -> None:
    stored = healed.lab.spark.table(f"{healed.lab.schema}.dim_runway")
    assert stored.columns == healed.rebuilt.columns
    assert differences(stored, healed.rebuilt) == [[], []]


def states(lab: Lab, dimension: str) -> DataFrame:
    """What a dimension says at the moment of each monthly file, as the files say it."""
    columns = ", ".join(f"d.{name}" for name in [*VERSIONED, *FLAGS])
    return lab.spark.sql(
        f"select d.runway_id, c.taken_at, {columns} from {lab.schema}.{dimension} as d "
        f"join {lab.schema}.all_calendar as c on c.taken_at >= d.valid_from and c.taken_at < d.valid_to "
        f"where c.taken_at <> timestamp'{OUTAGE}Z'"
    )


@pytest.fixture(scope="module")
def monthly(healed: Healed) -> Lab:
    """Dimensions of the monthly files and of the log with the outage as found: before, on its night, and after it."""
    lab = healed.lab
    lab.model("seen", f"select * from {lab.schema}.seen_so_far")
    lab.model("taken", f"select taken_at as snapshot_at from {lab.schema}.calendar")
    lab.model("log", f"select * from {lab.schema}.stg_ourairports_runways")
    for name, options in SOURCES.items():
        relation = "log" if name == "log_as_found" else "seen"
        lab.model(
            f"dim_{name}",
            "{{ healing_tables.dimension("
            f"sources={{'seen': {{'relation': ref('{relation}'), {options}}}}}, attributes={ATTRIBUTES}) }}}}",
            materialized="healing_table",
            unique_key="runway_id",
        )
    lab.spark.sql(f"create view {lab.schema}.all_seen_so_far as select * from {lab.schema}.all_seen")
    for step, moment in enumerate(("2025-01-31 12:00:00", NIGHT, END)):
        until(lab, "seen_so_far", "snapshot_at", moment)
        until(lab, "calendar", "taken_at", moment)
        until(lab, "stg_ourairports_runways", "changed_at", moment)
        selected = ["--select", "dim_*"] if step else []  # the views stay as they are
        for name, (status, message) in lab.dbt("run", *selected).items():
            lab.notes[f"{name} {step}"] = [status, message]
    return lab


@pytest.mark.parametrize("dimension", ["dim_runway", "dim_monthly", "dim_monthly_ignored"])
def test_states_are_those_of_the_monthly_files(monthly: Lab, dimension: str) -> None:
    """A month's changes between two files are in the log only; at the moment of a file both know the same."""
    wanted = monthly.spark.table(f"{monthly.schema}.all_seen").withColumnRenamed("snapshot_at", "taken_at")
    found = states(monthly, dimension)
    wanted = wanted.select(found.columns)
    if dimension == "dim_monthly_ignored":  # it never hears that a runway has gone
        assert wanted.exceptAll(found).limit(3).collect() == []
        assert found.exceptAll(wanted).limit(1).count() == 1
    else:
        assert differences(found, wanted) == [[], []]


@pytest.mark.parametrize("name", ["dim_monthly", "dim_log_as_found"])
def test_the_guard_refuses_the_night_of_the_outage(monthly: Lab, name: str) -> None:
    before, night, after = (monthly.notes[f"{name} {step}"] for step in range(3))
    assert (before[0], night[0], after[0]) == ("success", "error", "success")
    assert "max_removed_keys_ratio" in night[1]


def test_without_on_absence_an_empty_file_says_nothing(monthly: Lab) -> None:
    statuses = [monthly.notes[f"dim_monthly_ignored {step}"] for step in range(3)]
    assert [status for status, _ in statuses] == ["success"] * 3
    assert log(monthly, "dim_monthly_ignored")[1]["status"] == "unchanged"


@pytest.mark.parametrize("name", ["dim_monthly", "dim_log_as_found"])
def test_taken_at_its_word_the_outage_is_a_gap_of_each_runway(monthly: Lab, name: str) -> None:
    spark, schema = monthly.spark, monthly.schema
    gone = spark.sql(f"select runway_id from {schema}.{name} where valid_to = timestamp'{OUTAGE}Z'")
    back = spark.sql(f"select runway_id from {schema}.{name} where valid_from = timestamp'{MENDED}Z'")
    listed = spark.sql(f"select runway_id from {schema}.all_seen where snapshot_at = timestamp'{MENDED}Z'")
    assert listed.count() > 0.9 * runways(monthly)
    assert differences(gone, listed) == [[], []]
    assert differences(back, listed) == [[], []]
    assert spark.sql(f"select 1 from {schema}.dim_runway where valid_to = timestamp'{OUTAGE}Z'").isEmpty()
