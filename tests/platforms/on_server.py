"""A process of dbt that uses a server of Spark: what every server has to do. See test_servers.py.

    python on_server.py HOME

HOME has profiles.yml, with the profiles `healing_tables` and `people`. Writes HOME/answer.json: `runs`, name to
{succeeded, results, lines}, and `rows`, the name of a table to its rows.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dbt.cli.main import dbtRunner
from merge_lists import differences, last_batch, write_models
from sessions import ROOT, install_package

Rows = list[list[str]]
PROJECT = """
name: {name}
version: 1.0.0
profile: people
model-paths: [models]
flags: {{send_anonymous_usage_stats: false}}
"""
TESTS = """
version: 2
models:
  - name: dim_person
    data_tests: [{healing_tables.temporal_integrity: {arguments: {key_columns: id}}}]
"""
MODELS = {
    "batch": """
{% set rows = {
    1: "(1, 'Ann', 'Oslo', '2024-01-01'), (2, 'B|a', 'Rome', '2024-01-01')",
    2: "(1, 'Ann', 'Bern', '2024-02-01'), (3, 'Cid', 'Rome', '2024-02-01')",
    3: "(1, 'Anne', 'Oslo', '2024-01-15')"} %}
select id, name, city, cast(changed_at as timestamp) as changed_at
from values {{ rows[var('batch', 1)] }} as rows (id, name, city, changed_at)
""",
    "person_changes": """
{{ config(materialized='incremental', incremental_strategy='append', file_format='delta') }}
select *, current_timestamp() as loaded_at from {{ ref('batch') }}
""",
    "dim_person": """
{{ config(materialized='healing_table', unique_key='id', meta={'healing_tables': {'mode': 'heal', 'audit': {}}}) }}
{{ healing_tables.dimension(
    sources={'changes': {'relation': ref('person_changes'), 'changed_at': 'changed_at', 'loaded_at': 'loaded_at'}},
    key_columns='id', attributes=['name', 'city'], surrogate_key='person_key'
) }}
""",
    "dim_forgotten": """
{{ config(materialized='healing_table', unique_key='id', meta={'healing_tables': {'audit': {}}}) }}
{{ healing_tables.dimension(
    sources={'changes': {'relation': ref('person_changes'), 'changed_at': 'changed_at'}},
    key_columns='id', attributes=['name', 'city']
) }}
""",
    "visits": """
select id, cast(visited_at as timestamp) as visited_at
from values (1, '2024-01-20'), (1, '2024-03-01') as rows (id, visited_at)
""",
    "fct_visits": """
{{ config(materialized='table', file_format='delta') }}
{{ healing_tables.as_of(ref('visits'), ref('dim_person'), 'id', 'visited_at', 'person_key') }}
""",
    "person_states": """
{{ config(materialized='capture', unique_key='id') }}
select id, name, city from {{ ref('batch') }}
""",
    "dim_merged": """
{{ config(materialized='healing_merge', unique_key='id', meta={'healing_tables': {
    'attributes': ['name', 'city'], 'changed_at': 'changed_at', 'change_reason': 'why', 'audit': {'actor': 'night'},
    'surrogate_key': {'name': 'person_key', 'strategy': 'sequence'}}}) }}
select *, 'batch {{ var('batch', 1) }}' as why from {{ ref('batch') }}
""",
    "dim_newest": """
{{ config(materialized='healing_merge', unique_key='id', meta={'healing_tables': {
    'attributes': {'*': 4}, 'changed_at': 'changed_at', 'audit': {}}}) }}
select * from {{ ref('batch') }}
""",
    "dim_refused": """
{{ config(materialized='healing_table', unique_key='id', meta={'healing_tables': {'tracked_columns': 'name'}}) }}
select id, timestamp '2024-01-01' as valid_from, timestamp '9999-12-31' as valid_to, true as is_current, name
from values (1, 'Ann'), (1, 'Bea') as rows (id, name)
""",
    "dim_tied": """
{{ config(materialized='healing_table', unique_key='id') }}
with people as (
    select id, timestamp '2024-01-01' as changed_at, name from values (1, 'Ann'), (1, 'Bea') as rows (id, name)
)
{{ healing_tables.dimension(
    {'people': {'relation': 'people', 'changed_at': 'changed_at'}}, 'id', ['name'],
    column_types={'id': 'int', 'name': 'string', 'changed_at': 'timestamp'}
) }}
""",
}
OPERATIONS: dict[str, dict[str, Any]] = {
    "check_setup": {},
    "compare": {"dimension": "dim_person"},
    "diagnose": {"dimension": "dim_person"},
    "explain": {"dimension": "dim_person", "key": 1},
    "history": {"dimension": "dim_person"},
    "health": {},
    "repair": {"dimension": "dim_person"},
    "maintain": {"dimension": "dim_person"},
    "drop_candidates": {},
    "rekey_facts": {
        "facts": "fct_visits",
        "dimension": "dim_person",
        "key_columns": "id",
        "at": "visited_at",
        "columns": "person_key",
    },
}
# Of a dimension that is as dim_person: back to what it was after the first batch, then without key 1
LAST_OPERATIONS: dict[str, dict[str, Any]] = {
    "undo": {"dimension": "dim_forgotten", "run": True},
    "erase": {"dimension": "dim_forgotten", "keys": [1], "run": True},
    "erased": {"dimension": "dim_forgotten"},
}
ROWS = {
    "dim_forgotten": "id, name, city, valid_from",
    "forgotten_audit": "publish_no, key, change_type from {s}.dim_forgotten_audit",
    "dim_person": "id, name, city, valid_from",
    "person_audit": "publish_no, key, change_type, change_reason from {s}.dim_person_audit",
    "hashes": "id, name, city, key_hash, row_hash from {s}.dim_person",
    "dim_merged": "id, name, city, valid_from, change_reason",
    "merged_keys": "count(distinct person_key) from {s}.dim_merged",
    "merged_audit": "key, change_type, change_reason, reason from {s}.dim_merged_audit",
    "dim_newest": "id, name, city, last_updated",
    "newest_history": "id, name, city, valid_from, valid_to from {s}.dim_newest_history",
    "newest_audit": "key, change_type, change_reason from {s}.dim_newest_audit",
    "person_states": "id, name, city, is_deleted",
    "correct_visits": (
        "f.visited_at, d.name from {s}.fct_visits f join {s}.dim_person d on d.person_key = f.person_key"
    ),
}


class Runs:
    """The runs of dbt in this process, with what they have printed."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.found: dict[str, Any] = {}
        self.lines: list[str] = []

    def listen(self, event: Any) -> None:
        self.lines.append(str(getattr(event.info, "msg", "")))

    def invoke(self, project: Path, *args: str) -> Any:
        self.lines = []
        target = ["--target-path", str(self.home / f"target_{project.name}"), "--log-path", str(self.home / "logs")]
        where = ["--project-dir", str(project), "--profiles-dir", str(self.home), "--no-use-colors", *target]
        return dbtRunner(callbacks=[self.listen]).invoke([*args, *where])

    def run(self, name: str, project: Path, *args: str) -> None:
        outcome = self.invoke(project, *args)
        results = getattr(outcome.result, "results", None) or []
        self.found[name] = {
            "succeeded": outcome.success and outcome.exception is None,
            "results": {
                result.node.name: [str(result.status), result.message or ""]
                for result in results
                if hasattr(result, "node")  # an operation has none
            },
            "lines": [*self.lines, str(outcome.exception or "")],
        }

    def rows(self, project: Path, query: str) -> list[list[str]]:
        outcome = self.invoke(project, "show", "--inline", query, "--limit", "100", "--quiet")
        assert outcome.success, self.lines
        table = outcome.result.results[0].agate_table
        return sorted([str(cell) for cell in row] for row in table.rows)


def write_project(home: Path) -> Path:
    project = home / "people"
    for name, text in {
        "dbt_project.yml": PROJECT.format(name="people"),
        "models/tests.yml": TESTS,
        **{f"models/{name}.sql": sql.lstrip() for name, sql in MODELS.items()},
    }.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    install_package(project)
    return project


def write_merges(home: Path) -> Path:
    project = home / "merges"
    project.mkdir()
    (project / "dbt_project.yml").write_text(PROJECT.format(name="merges"))
    install_package(project)
    return project


def now() -> str:
    """In UTC, as an operation reads it."""
    return dt.datetime.now(dt.timezone.utc).strftime("%Y-%m-%d %H:%M:%S.%f")


def last_operations(known_at: str) -> dict[str, dict[str, Any]]:
    """They change the rows. Args: known_at: after the first batch."""
    os.environ["HEALING_TABLES_SECRET"] = "of tests, as long as it has to be"
    return {**LAST_OPERATIONS, "undo": {**LAST_OPERATIONS["undo"], "known_at": known_at}}


def run_people(runs: Runs, project: Path) -> dict[str, list[list[str]]]:
    """The runs of the project `people`; what its tables hold then."""
    known_at = ""
    for batch in (1, 2, 3):
        names = ["batch", "person_changes", "dim_person", "dim_forgotten"]
        names += {1: ["visits", "fct_visits", "person_states"], 2: ["person_states"]}.get(batch, [])
        runs.run(f"batch {batch}", project, "run", "--vars", f"{{batch: {batch}}}", "--select", *names)
        merged = ["batch", "dim_merged", "dim_newest"]
        runs.run(f"merge {batch}", project, "run", "--vars", f"{{batch: {batch}}}", "--select", *merged)
        known_at = known_at or now()
    runs.run("test", project, "test", "--select", "dim_person")
    runs.run("no news", project, "run", "--select", "dim_person")
    for operation, arguments in {**OPERATIONS, **last_operations(known_at)}.items():
        runs.run(operation, project, "run-operation", f"healing_tables.{operation}", "--args", json.dumps(arguments))
    runs.run("refused", project, "run", "--select", "dim_refused")
    rows = {}
    for name, columns in ROWS.items():
        query = "select " + (columns.format(s="people") if " from " in columns else f"{columns} from people.{name}")
        rows[name] = runs.rows(project, query)
    return rows


def run_merges(home: Path, run: Callable[..., None], rows: Callable[[Path, str], Rows]) -> dict[str, Rows]:
    """The list of merges (merge_lists.py); what differs from the rows that are right, by batch.

    Args: run, rows: as of `Runs`.
    """
    project, found = write_merges(home), {}
    for batch in range(last_batch() + 1):
        write_models(project / "models", batch)
        run(f"merges, batch {batch}", project, "run", "--vars", f"{{batch: {batch}}}")
        if query := differences("people", batch):
            found[f"merges, batch {batch}"] = rows(project, query)
    return found


def main(home: Path) -> None:
    runs = Runs(home)
    rows = run_people(runs, write_project(home))
    rows |= run_merges(home, runs.run, runs.rows)
    runs.run("tied", home / "people", "run", "--select", "dim_tied")
    os.environ["DBT_PROJECT_DIR"] = str(ROOT)
    runs.run("examples", ROOT, "build", "--select", "+dim_customer", "+dim_legislator")
    runs.run("examples again", ROOT, "run", "--select", "dim_customer")
    runs.run("example of a merge", ROOT, "run", "--select", "dim_player")
    (home / "answer.json").write_text(json.dumps({"runs": runs.found, "rows": rows}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
