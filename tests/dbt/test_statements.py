"""Every statement of a build, a heal, a capture and a repair, in their order: what a change costs shows in a diff.

`make golden` writes the files anew, and those of Iceberg; they are reviewed like code. Each has a title, what is run,
the rows that are new in the source, and the statements.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest
from golden import check
from lab import Lab
from sessions import FORMAT, SPARK

pytestmark = [
    pytest.mark.usefixtures("interpreted"),
    pytest.mark.skipif(SPARK != (4, 2 if FORMAT == "delta" else 1), reason="the files are those of one Spark"),
]
GOLDEN = Path(__file__).parent / "golden"
FORMATS = ["delta", "parquet"] if FORMAT == "delta" else [FORMAT]
KEYS = 24  # the guards are off below 20

DIMENSION = """{{ healing_tables.dimension({
    'crm': {'relation': source('raw', 'crm'), 'changed_at': 'changed_at', 'deleted_when': 'gone',
        'loaded_at': 'loaded_at'}
}, attributes=['name']) }}"""
STATE = """select id, max_by(name, changed_at) as name
from {{ source('raw', 'crm') }} group by id having not max_by(gone, changed_at)"""


# Ids of runs, tables, snapshots and definitions; moments of runs; folders
CHANGING = {
    r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}": "<id>",
    r"[0-9a-f]{32}": "<id>",
    r"file:[^']*/warehouse/": "file:<warehouse>/",
    r"(?<='healing_tables.parts' = ')[^']*": "<state>",
    r"(\b|(?<=~20))\d{17,19}\b": "<number>",
    r"\b\d{16}\b": "<now>",
    r"(?<=timestamp_ltz ')[^']*": "<now>",
    r"(?<=\d at )\d{4}-[-:. \d]*": "<now>",
    r"(?<=~20at~20)\d{4}[-.~\w]*?(?=~22)": "<now>",
}


class Scenario(NamedTuple):
    """Rows that are added to the source, as SQL, and the run that follows."""

    name: str
    title: str
    args: str
    rows: str = ""
    is_refused: bool = False
    formats: tuple[str, ...] = ("delta", "iceberg", "parquet")


def rows(name: str, day: int, keys: str, *, gone: bool = False) -> str:
    return (
        f"select cast(id as int), '{name}', {str(gone).lower()}, date '2024-01-{day:02}', "
        f"timestamp '2024-01-{day:02} 12:00:00Z' from range({keys})"
    )


WITH_COMMITS = ("delta", "iceberg")
SCENARIOS = [
    Scenario("first_build", "The first build of a dimension", "run --select dim"),
    Scenario("news", "A rebuild with a few rows that differ", "run --select dim", rows("Bea", 2, "1, 3")),
    Scenario("unchanged", "A rebuild without news", "run --select dim"),
    Scenario("heal", "A heal of the keys with news", "run --select healed"),
    Scenario("heal_unchanged", "A heal without news", "run --select healed"),
    Scenario("shards", "A rebuild in two shards, with news", "run --select cut", formats=("delta",)),
    Scenario("overwrite", "A rebuild that changes most rows", "run --select dim", rows("Ida", 3, f"1, {KEYS + 1}")),
    Scenario(
        "refused",
        "A rebuild that would end most keys",
        "run --select dim",
        rows("", 4, f"1, {KEYS}", gone=True),
        is_refused=True,
    ),
    Scenario("capture", "The first rows of a capture", "run --select state", formats=WITH_COMMITS),
    Scenario(
        "capture_news", "A capture with changes", "run --select state", rows("Zoe", 5, "5, 7"), formats=WITH_COMMITS
    ),
    Scenario(
        "repair",
        "A repair of a table with two current versions of a key",
        "run-operation healing_tables.repair --args {dimension: broken, key_columns: [id], dry_run: false}",
        formats=WITH_COMMITS,
    ),
]


def prepare(lab: Lab, file_format: str) -> None:
    """A source with one version of each key, the models of a format, and a damaged table."""
    dimension = {"materialized": "healing_table", "unique_key": "id", "file_format": file_format}
    lab.write("models/sources.yml", f"sources: [{{name: raw, schema: {lab.schema}, tables: [{{name: crm}}]}}]\n")
    lab.model("dim", DIMENSION, **dimension)
    lab.model("healed", DIMENSION, **dimension, meta={"healing_tables": {"mode": "heal"}})
    lab.model("cut", DIMENSION, **dimension, meta={"healing_tables": {"shards": 2}})
    lab.model("state", STATE, materialized="capture", unique_key="id", file_format=file_format)
    for table in ("crm", "dim", "healed", "cut", "state", "healing_log", "broken"):
        lab.spark.sql(f"drop table if exists {lab.schema}.{table}")
    lab.spark.sql(
        f"create table {lab.schema}.crm (id int, name string, gone boolean, changed_at date, loaded_at timestamp) "
        f"using {FORMAT}"
    )
    lab.spark.sql(f"insert into {lab.schema}.crm {rows('Ada', 1, f'1, {KEYS + 1}')}")
    lab.spark.sql(
        f"create table {lab.schema}.broken using {FORMAT} as select 1 as id, 'Ada' as name, "
        "date '2024-01-01' as valid_from, date '9999-12-31' as valid_to, true as is_current "
        "union all select 1, 'Bea', date '2024-02-01', date '9999-12-31', true"
    )
    lab.spark.conf.unset("spark.sql.requireAllClusterKeysForCoPartition")  # a build sets it where it is not set
    lab.dbt("run", "--select", "healed", *(["cut"] if file_format == "delta" else []))


def statements(lab: Lab) -> str:
    """Those of the newest run, with names for what differs from run to run."""
    found = []
    for _, sql in lab.statements:
        text = re.sub(r"^\s*/\*.*?\*/\s*", "", sql, count=1, flags=re.DOTALL).strip()
        for pattern, name in CHANGING.items():
            text = re.sub(pattern, name, text)
        found.append(text.replace(lab.schema, "lab"))
    return ";\n\n".join(found) + ";\n"


@pytest.fixture(scope="module", params=FORMATS)
def seen(lab: Lab, request: pytest.FixtureRequest) -> tuple[str, dict[str, str]]:
    """The format, and the text of each scenario."""
    texts = {}
    prepare(lab, request.param)
    for scenario in SCENARIOS:
        if request.param not in scenario.formats:
            continue
        if scenario.rows:
            lab.spark.sql(f"insert into {lab.schema}.crm {scenario.rows}")
        lab.dbt(*re.findall(r"{.*}|\S+", scenario.args))
        assert lab.succeeded is not scenario.is_refused, lab.results
        head = f"-- {scenario.title}\n-- dbt {scenario.args}\n"
        head += f"-- with new rows: {scenario.rows}\n" if scenario.rows else ""
        texts[scenario.name] = f"{head}\n{statements(lab)}"
    return request.param, texts


def test_statements(seen: tuple[str, dict[str, str]]) -> None:
    file_format, texts = seen
    for name, text in texts.items():
        check(GOLDEN / file_format / f"{name}.sql.golden", text)
