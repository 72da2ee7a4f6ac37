"""dbt v2 on a Spark server: builds, captures, facts, tests, operations and the SQL examples, with the rows of dbt-core.

What v2 cannot do (pages, which need the Python library) is refused, and the error names the other way.
"""

from __future__ import annotations

import platform
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from dbt_v2 import COMPILER, DbtV2, set_up
from on_server import MODELS, OPERATIONS, ROWS, Rows, last_operations, now, run_merges, write_project
from people import MERGED, PEOPLE, check_merges, check_people
from pyspark.sql import SparkSession
from sessions import ROOT
from spark_servers import jars_of, thrift_and_connect

KEY = "{arguments: {key_columns: id}}"
TESTS = f"""
version: 2
models:
  - name: dim_person
    data_tests:
      - healing_tables.temporal_integrity: {KEY}
      - healing_tables.single_current: {KEY}
      - healing_tables.no_overlaps: {KEY}
      - healing_tables.no_gaps: {KEY}
      - healing_tables.valid_order: {KEY}
      - healing_tables.no_consecutive_duplicates: {{arguments: {{key_columns: id, tracked_columns: [name, city]}}}}
      - healing_tables.matches_rebuild
  - name: dim_files
    data_tests: [healing_tables.temporal_integrity, healing_tables.matches_rebuild]
  - name: fct_visits
    data_tests:
      - healing_tables.facts_covered:
          arguments: {{dimension: ref('dim_person'), key_columns: id, at: visited_at, columns: person_key}}
unit_tests:
  - name: a_change
    model: dim_person
    overrides: {{vars: {{healing_tables: {{}}}}}}
    given:
      - input: ref('person_changes')
        format: sql
        rows: |
          select 7 as id, 'Ann' as name, 'Oslo' as city, timestamp '2024-01-01 00:00:00' as changed_at,
            now() as loaded_at
          union all select 7, 'Bea', 'Oslo', timestamp '2024-02-01 00:00:00', now()
    expect:
      rows:
        - {{id: 7, name: Ann, is_current: false, version: 1}}
        - {{id: 7, name: Bea, is_current: true, version: 2}}
"""
FILES = MODELS["dim_person"].replace(
    "materialized='healing_table'", "materialized='healing_table', file_format='parquet'"
)
SOFT = """
{{ config(materialized='healing_table', unique_key='id') }}
{{ healing_tables.dimension(
    sources={'changes': {'relation': ref('soft_two'), 'changed_at': 'changed_at'}},
    key_columns='id', attributes=['name', 'city'],
    column_types={'changes': {'id': 'int', 'name': 'string', 'city': 'string', 'changed_at': 'timestamp'}}
) }}
"""
MORE = {
    "dim_files": FILES.replace("'mode': 'heal', 'audit': {}", "'mode': 'rebuild'"),
    "soft_one": "{{ config(materialized='ephemeral') }} select * from {{ ref('person_changes') }}\n",
    "soft_two": (
        "{{ config(materialized='ephemeral') }} select id, name, city, changed_at from {{ ref('soft_one') }}\n"
    ),
    "dim_soft": SOFT,
}
MORE_OPERATIONS = {
    "generate_model": "{sources: person_changes, key: id}",
    "generate_yml": "{dimension: dim_person}",
    "adopt": "{relation: dim_person, key: id}",
}
BUILT = ["batch", "person_changes", "dim_person", "dim_forgotten", "dim_files"]
IN_BATCH = {1: ["visits", "fct_visits", "person_states"], 2: ["person_states"], 3: []}


@dataclass(frozen=True)
class Answer:
    """What dbt v2 has done: whether each run succeeded, and what it printed."""

    runs: dict[str, tuple[bool, str]]
    rows: dict[str, list[list[str]]]

    def text(self, run: str) -> str:
        return self.runs[run][1]


def runs_of(dbt: DbtV2, home: Path) -> dict[str, tuple[bool, str]]:
    project = write_project(home)
    (project / "models" / "tests.yml").write_text(TESTS)
    for name, sql in MORE.items():
        (project / "models" / f"{name}.sql").write_text(sql.lstrip())
    found = {}

    def run(name: str, where: Path, *args: str) -> None:
        answer = dbt(where, *args)
        found[name] = (answer.returncode == 0, answer.stdout + answer.stderr)

    known_at = ""
    for batch, more in IN_BATCH.items():
        run(f"batch {batch}", project, "run", "--vars", f"{{batch: {batch}}}", "--select", *BUILT, *more)
        known_at = known_at or now()
    run("no news", project, "run", "--select", "dim_person", "dim_files")
    run("ephemeral models", project, "run", "--select", "dim_soft")
    for batch in (1, 2, 3):
        merged = ["batch", "dim_merged", "dim_newest"]
        run(f"merge {batch}", project, "run", "--vars", f"{{batch: {batch}}}", "--select", *merged)
    run("refused", project, "run", "--select", "dim_refused")
    for name, arguments in {**OPERATIONS, **MORE_OPERATIONS, **last_operations(known_at)}.items():
        given = arguments if isinstance(arguments, str) else repr(arguments)
        run(name, project, "run-operation", f"healing_tables.{name}", "--args", given)
    run("compare soft", project, "run-operation", "healing_tables.compare", "--args", "{dimension: dim_soft}")
    run("test", project, "test")  # the facts are correct after rekey_facts
    run("page", project, "run-operation", "healing_tables.report", "--args", "{html: page.html}")
    run("examples", ROOT, "build", "--select", "+dim_customer", "+dim_legislator", "+dim_runway")
    run("examples again", ROOT, "run", "--select", "dim_customer", "dim_runway")
    return found


def merges_of(dbt: DbtV2, home: Path, spark: SparkSession) -> tuple[dict[str, tuple[bool, str]], dict[str, Rows]]:
    """The runs of the list of merges, and what they leave: see `run_merges`."""
    runs = {}

    def run(name: str, project: Path, *args: str) -> None:
        answer = dbt(project, *args)
        runs[name] = (answer.returncode == 0, answer.stdout + answer.stderr)

    def rows(_: Path, query: str) -> Rows:
        # a session that has read a table of files keeps its folder until then
        for table in set(re.findall(r"\bpeople\.\w+", query)):
            spark.sql(f"refresh table {table}")
        return [[str(cell) for cell in row] for row in spark.sql(query).collect()]

    return runs, run_merges(home, run, rows)


def rows_of(spark: SparkSession) -> dict[str, list[list[str]]]:
    found = {}
    for name, query in {**ROWS, "dim_files": ROWS["dim_person"], "dim_soft": ROWS["dim_person"]}.items():
        sql = f"select {query}" if " from " in query else f"select {query} from {{s}}.{name}"
        found[name] = sorted([str(cell) for cell in row] for row in spark.sql(sql.format(s="people")).collect())
    return found


@pytest.fixture(scope="module")
def answer(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Answer:
    if COMPILER is None:
        pytest.skip("no C compiler, which the driver of dbt v2 needs: apt-get install gcc libc6-dev")
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        pytest.skip("dbt v2 looks for a driver of another name on this machine")
    from pyspark.sql.connect.session import SparkSession as Remote

    home = tmp_path_factory.mktemp("v2")
    with thrift_and_connect(home, jars_of(spark)) as server:
        dbt = set_up(home, server, {"people": "people", "healing_tables": "warehouse"})
        runs = runs_of(dbt, home)
        client: Any = Remote.builder.remote(server.settings["spark.remote"]).create()
        more_runs, merges = merges_of(dbt, home, client)
        rows = rows_of(client) | merges
        client.client.close()
    return Answer(runs | more_runs, rows)


def test_all_runs_succeed_that_should(answer: Answer) -> None:
    failed = {name: text[-3000:] for name, (succeeded, text) in answer.runs.items() if not succeeded}
    # health finds the refused build
    wanted = {"refused", "page", "health"}
    assert set(failed) == wanted, {name: text for name, text in failed.items() if name not in wanted}


def test_rows(answer: Answer) -> None:
    check_people(answer.rows, dim_files=PEOPLE, dim_soft=PEOPLE, **MERGED)
    check_merges(answer.rows)


def test_batches_are_healed_once(answer: Answer) -> None:
    assert "rebuild from 1 source, nothing is stored yet" in answer.text("batch 1")
    for batch, keys in ((2, "2 changed keys"), (3, "1 changed key")):
        assert f"healing_table people.dim_person: heal from 1 source, stored version {batch - 2}, {keys};" in (
            answer.text(f"batch {batch}")
        ), answer.text(f"batch {batch}")
        assert answer.text(f"batch {batch}").count("dim_person: published in one commit") == 1
    assert answer.text("no news").count("unchanged, nothing to publish") == 2
    assert answer.text("batch 1").count("capture people.person_states: appended in one commit") == 1
    assert answer.text("examples again").count("unchanged, nothing to publish") == 2


def test_tests(answer: Answer) -> None:
    passed = re.findall(r"Passed .* (?:test|unit_test) +(\S+)", answer.text("test"))
    assert len(passed) == 11, answer.text("test")


def test_operations_print_what_they_print_elsewhere(answer: Answer) -> None:
    for run, wanted in {
        "explain": "Anne",
        "history": "heal",
        "compare": "5 rows stored, 5 rows rebuilt, no difference",
        "compare soft": "5 rows stored, 5 rows rebuilt, no difference",
        "diagnose": "nothing found",
        "repair": "nothing to repair, nothing was written",
        "rekey_facts": "2 facts changed in one commit",
        "health": "people.dim_refused is refused",
        "check_setup": "this set-up works",
        "generate_model": "'person_changes': {'relation': ref('person_changes'), 'changed_at': 'changed_at'",
        "generate_yml": "From changes. Type 2: the value at that time.",
        "adopt": "{'history': {'relation': 'history', 'valid_from': 'valid_from', 'valid_to': 'valid_to'}}",
        "drop_candidates": "dropped 0 candidates",
        "erase": "dim_forgotten",
        "erased": "dim_forgotten",
    }.items():
        assert wanted in answer.text(run), answer.text(run)[-3000:]


def test_refusals(answer: Answer) -> None:
    assert "the target is unchanged" in answer.text("refused")
    assert "single_current: 1 failing, in keys such as id = 1" in answer.text("refused")
    assert "dbt v2, which has no plugins" in answer.text("page")


def test_names_of_tables_have_no_backticks(answer: Answer) -> None:
    own = ("healing_table", "capture ", "     wanted:", "     got:")
    lines = [line for _, text in answer.runs.values() for line in text.splitlines() if line.startswith(own)]
    assert len(lines) > 20
    assert [line for line in lines if "`people`" in line or "`warehouse`" in line] == []
