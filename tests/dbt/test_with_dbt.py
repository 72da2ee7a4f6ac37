"""The rest of dbt goes on working: odd names, unit tests, --empty, parsing offline, state, other packages."""

from __future__ import annotations

import json
import shutil
from importlib.metadata import version
from pathlib import Path

import pytest
from lab import Lab
from sessions import SPARK

ODD = [
    "select",
    "a b",
    "a.b",
    "it's",
    'say "x"',
    "back`tick",
    "größe",
    "日本",
    "a,b;{c}(d)=e" if SPARK >= (4, 0) else "a;{c}(d)=e",  # of Spark 3.5, the metastore refuses the comma
    "null",
]
HOSTILE = [
    "it's",
    'say "x"',
    "back\\slash",
    "a|b^c",
    "{{ braces }}",
    "*/ drop /*",
    "tab\there",
    "line\nbreak",
    "-- no",
    "",
]


def relation(name: str) -> str:
    return f"'relation': source('raw', '{name}')"


@pytest.fixture(scope="module")
def project(lab: Lab) -> Lab:
    lab.writes_artifacts = True
    columns = [
        ["the key", "string"],
        ["changed at", "timestamp"],
        *([name, "string"] for name in ODD),
    ]
    lab.table(
        "odd",
        columns,
        [[f"k{i}", "2024-01-01 00:00:00", *(HOSTILE[(i + j) % 10] for j in range(10))] for i in range(10)],
    )
    lab.table(
        "crm",
        [["id", "int"], ["at", "timestamp"], ["name", "string"]],
        [[1, "2024-01-01 00:00:00", "Ann"]],
    )
    lab.write(
        "models/sources.yml",
        f"version: 2\nsources: [{{name: raw, schema: {lab.schema}, tables: [{{name: odd}}, {{name: crm}}]}}]",
    )
    crm = f"{{{relation('odd')}, 'changed_at': 'changed at', 'where': \"`it's` <> 'no*/ne'\"}}"
    call = f"{{{{ healing_tables.dimension(sources={{'the crm': {crm}}}, key_columns=['the key']) }}}}"
    lab.model("odd_delta", call, materialized="healing_table")
    lab.model("odd_parquet", call, materialized="healing_table", file_format="parquet")
    lab.model("stg_crm", "select * from {{ source('raw', 'crm') }}")
    dim = "{{ healing_tables.dimension(sources={'crm': {'relation': ref('stg_crm'), 'changed_at': 'at'}}) }}"
    lab.model("dim_crm", dim, materialized="healing_table", unique_key="id")
    lab.write(
        "models/unit.yml",
        """
version: 2
unit_tests:
  - name: a_change_opens_a_version
    model: dim_crm
    given: &given
      - input: ref('stg_crm')
        rows:
          - {id: 1, at: '2024-01-01 00:00:00', name: Ann}
          - {id: 1, at: '2024-02-01 00:00:00', name: Bea}
    expect: &expect
      rows:
        - {id: 1, name: Ann, version: 1, is_current: false}
        - {id: 1, name: Bea, version: 2, is_current: true}
  - name: with_overrides
    model: dim_crm
    overrides:
      vars: {healing_tables: {key_columns: id, column_types: {crm: {id: int, at: timestamp, name: string}}}}
    given: *given
    expect: *expect
""",
    )
    lab.dbt("run")
    return lab


@pytest.mark.parametrize("name", ["odd_delta", "odd_parquet"])
def test_any_column_name_and_any_text(project: Lab, name: str) -> None:
    assert project.results[name][0] == "success", project.results[name][1]
    table = project.spark.table(f"{project.schema}.{name}")
    assert table.columns[: len(ODD) + 1] == ["the key", *ODD]
    found = {row[0]: list(row[1 : len(ODD) + 1]) for row in table.collect()}
    assert found == {f"k{i}": [HOSTILE[(i + j) % 10] for j in range(10)] for i in range(10)}


def test_unit_tests_of_a_model(project: Lab) -> None:
    found = project.dbt("test", "--select", "test_type:unit")
    assert {name: status for name, (status, _) in found.items()} == {
        "a_change_opens_a_version": "pass",
        "with_overrides": "pass",
    }, found


@pytest.mark.slow
def test_empty_builds_no_rows(project: Lab) -> None:
    models = ["run", "--select", "stg_crm", "dim_crm"]
    found = project.dbt(*models, "--empty", "--vars", "{allow_sample: true}")
    assert {status for status, _ in found.values()} == {"success"}, found
    assert project.rows("dim_crm") == []
    project.dbt(*models)
    assert len(project.rows("dim_crm")) == 1


@pytest.mark.slow
def test_a_comment_that_dbt_appends(project: Lab) -> None:
    settings = project.home / "dbt_project.yml"
    before = settings.read_text()
    settings.write_text(before + "\nquery-comment: {comment: by dbt, append: true}\n")
    call = (
        "{{ healing_tables.dimension({'crm': {'relation': source('raw', 'crm'), 'changed_at': 'at', "
        "'where': 'id < ' ~ var('below', 9)}}) }}"
    )
    how = {"materialized": "healing_table", "unique_key": "id"}
    project.model("dim_appended", call, meta={"healing_tables": {"publish": "merge"}}, **how)
    project.model("dim_parts", call, file_format="parquet", partition_by="is_current", **how)
    try:
        for below in (0, 9):
            project.dbt(
                "run",
                "--select",
                "dim_appended",
                "dim_parts",
                "--vars",
                f"{{below: {below}, max_removed_keys_ratio: 1}}",
            )
            for name in ("dim_appended", "dim_parts"):
                assert project.results[name][0] == "success", project.results[name]
        assert any("by a merge" in text for text in project.log), project.log
        assert len(project.rows("dim_parts")) == 1
    finally:
        settings.write_text(before)


@pytest.mark.skipif(
    version("dbt-spark").startswith(("1.9.", "1.10.")), reason="its catalog leaves out the columns of Delta tables"
)
def test_docs_and_lineage(project: Lab) -> None:
    project.dbt("docs", "generate")
    catalog = json.loads((project.home / "target" / "catalog.json").read_text())
    assert "valid_from" in catalog["nodes"]["model.lab.dim_crm"]["columns"]
    manifest = json.loads((project.home / "target" / "manifest.json").read_text())
    assert manifest["parent_map"]["model.lab.dim_crm"] == ["model.lab.stg_crm"]


def test_state_modified_sees_a_changed_spec(project: Lab) -> None:
    state = project.home / "state"
    state.mkdir(exist_ok=True)
    shutil.copy(project.home / "target" / "manifest.json", state / "manifest.json")
    model = project.home / "models" / "dim_crm.sql"
    before = model.read_text()
    arguments = (
        "ls",
        "--select",
        "state:modified",
        "--state",
        str(state),
        "--resource-types",
        "model",
    )
    try:
        assert project.listed(*arguments) == []
        model.write_text(before.replace("'changed_at': 'at'", "'changed_at': 'at', 'where': 'id > 0'"))
        assert project.listed(*arguments) == ["lab.dim_crm"]
    finally:
        model.write_text(before)


def test_parsing_needs_no_connection(project: Lab, tmp_path: Path) -> None:
    """A profile that leads nowhere is enough for parse, ls and deps."""
    nowhere = (
        "lab:\n  target: dev\n  outputs:\n    dev: {type: spark, method: session, host: localhost, schema: nowhere, "
        "server_side_parameters: {spark.master: 'nonsense'}}\n"
    )
    (tmp_path / "profiles.yml").write_text(nowhere)
    project.dbt("parse", "--profiles-dir", str(tmp_path))
    assert any("Performance info" in text or "parse" in text for text in project.log)


def test_compile_without_introspection(project: Lab) -> None:
    found = project.dbt("compile", "--no-introspect", "--select", "dim_crm", "odd_delta")
    assert {status for status, _ in found.values()} == {"success"}, found
    compiled = next((project.home / "target" / "compiled").rglob("dim_crm.sql")).read_text()
    assert "compile without --no-introspect" in compiled


@pytest.mark.slow
def test_what_is_not_built_compiles(lab: Lab, tmp_path: Path) -> None:
    """`dbt compile` and `dbt docs generate` say what to build; `dbt run` and `dbt test` refuse."""
    project = Lab(lab.spark, tmp_path, schema="lab_not_built")
    project.model("stg", "select 1 as id, 'Ann' as name, timestamp '2024-01-01 00:00:00Z' as at")
    project.model("facts", "select 1 as id, timestamp '2024-01-01 00:00:00Z' as at, '' as customer_sk")
    source = "{'crm': {'relation': ref('stg'), 'changed_at': 'at', 'where': 'id > 0'}}"
    calls = {
        "dim": f"dimension(sources={source}, key_columns='id')",
        "steps": "effectivity(ref('stg'), 'id', 'at')",
        "aside": "set_aside(ref('stg'), 'id', 'at')",
        "looked_up": "as_of(ref('facts'), ref('dim'), 'id', 'at', ['name'])",
        "newest": "current_versions(ref('dim'))",
    }
    for name, call in calls.items():
        project.model(name, f"{{{{ healing_tables.{call} }}}}", unique_key="id")
    project.model("hashed", "select {{ healing_tables.row_hash(ref('stg')) }} as h from {{ ref('stg') }}")
    project.write(
        "models/dim.yml",
        """
version: 2
models:
  - name: dim
    data_tests:
      - healing_tables.matches_rebuild
      - healing_tables.temporal_integrity: {arguments: {key_columns: id}}
  - name: facts
    data_tests:
      - healing_tables.facts_covered:
          arguments: {dimension: ref('dim'), key_columns: id, at: at, columns: {customer_sk: key_hash}}
""",
    )
    for command in (["compile"], ["docs", "generate"]):
        found = project.dbt(*command)
        assert {status for status, _ in found.values()} <= {"success"}, found
    for name in calls:
        compiled = (project.home / f"target/compiled/lab/models/{name}.sql").read_text()
        assert "not built yet" in compiled
        assert f"dbt run --select +{name}" in compiled
    for command in (["run", "--select", "dim"], ["test", "--select", "test_name:facts_covered"]):
        ((status, message),) = project.dbt(*command).values()
        assert status == "error"
        assert "wanted: a table or view that exists" in message
    found = project.dbt("build", "--exclude", "test_name:facts_covered")
    assert {status for status, _ in found.values()} <= {"success", "pass"}, found


def test_installing_adds_nothing(project: Lab, lab: Lab) -> None:
    """Nothing of the package shows in the lists of a project that has it."""
    listed = project.listed("ls")
    assert listed
    assert [name for name in listed if "healing_tables" in name] == []
    manifest = json.loads((project.home / "target" / "manifest.json").read_text())
    own = [
        key
        for part in ("nodes", "sources", "exposures", "metrics")
        for key in manifest[part]
        if ".healing_tables." in key
    ]
    assert own == []
    overrides = [
        key
        for key, macro in manifest["macros"].items()
        if macro["package_name"] == "healing_tables"
        and not key.startswith(("macro.healing_tables.test_", "macro.healing_tables.materialization_healing_"))
        and macro["name"]
        in {other["name"] for other in manifest["macros"].values() if other["package_name"] in ("dbt", "dbt_spark")}
    ]
    assert overrides == []
