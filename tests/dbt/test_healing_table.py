"""The materialization: checks before publishing, one step, and what dbt's own table honours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from jinja2 import Template
from lab import Lab

COLUMNS = [["id", "int"], ["changed_at", "timestamp"], ["name", "string"]]
ROWS: list[list[Any]] = [
    [1, "2024-01-01 00:00:00", "Ann"],
    [1, "2024-02-01 00:00:00", "Bea"],
    [2, "2024-01-05 12:00:00.5", "Cid"],
]
MORE_ROWS: list[list[Any]] = [
    *ROWS,
    [2, "2024-03-01 00:00:00", "Dan"],
    [3, "2024-03-02 00:00:00", "Eve"],
]
TIES: list[list[Any]] = [
    *ROWS,
    [2, "2024-01-05 12:00:00.5", "Dan"],
    [None, "2024-01-01 00:00:00", "x"],
    [3, None, "y"],
    [3, "9999-12-31 00:00:00", "z"],
]
BAD = " union all ".join(
    f"select {key} as id, '{name}' as name, timestamp '2024-{start} 00:00:00Z' as valid_from, "
    f"timestamp '{end} 00:00:00Z' as valid_to, {current} as is_current, '{name}' as row_hash"
    for key, name, start, end, current in [
        (1, "a", "01-01", "2024-02-01", "false"),
        (1, "b", "01-15", "9999-12-31", "true"),
        (1, "c", "03-01", "9999-12-31", "true"),
        (2, "d", "03-01", "2024-03-01", "true"),
    ]
)

GAPS = """
with log as (
    select * from values (1, date '2024-01-01', 'a'), (1, date '2024-01-02', 'x'), (1, date '2024-01-03', 'c')
    as log(id, at, status)
)
{{ healing_tables.dimension(
    {'s': {'relation': 'log', 'changed_at': 'at', 'deleted_when': "status = 'x' -- left", 'where': 'id > 0 -- all'}},
    'id', ['status'], exists_in=['S'], column_types={'id': 'int', 'at': 'date', 'status': 'string'}) }}
"""


def call(table: str, more: str = "") -> str:
    crm = f"{{'relation': source('raw', '{table}'), 'changed_at': 'changed_at'{more}}}"
    return f"{{{{ healing_tables.dimension(sources={{'crm': {crm}}}) }}}}"


def dim(lab: Lab, name: str, sql: str | None = None, **config: Any) -> None:
    lab.model(name, sql or call("crm"), materialized="healing_table", unique_key="id", **config)


@pytest.fixture(scope="module")
def raw(lab: Lab) -> Lab:
    lab.table("crm", COLUMNS, ROWS)
    lab.table("ties", COLUMNS, TIES)
    lab.write(
        "models/sources.yml",
        f"version: 2\nsources: [{{name: raw, schema: {lab.schema}, tables: [{{name: crm}}, {{name: ties}}]}}]",
    )
    return lab


@pytest.fixture(scope="module")
def twice(raw: Lab) -> Lab:
    """Every format built from part of ROWS, from ROWS, from MORE_ROWS, then from the same once more."""
    dim(raw, "dim_delta")
    dim(raw, "dim_parquet", file_format="parquet")
    dim(raw, "dim_parts", file_format="orc", partition_by=["is_current"], tags=["parts"])
    for rows in (ROWS[:2], ROWS, MORE_ROWS, MORE_ROWS):
        raw.table("crm", COLUMNS, rows)
        raw.dbt("run", "--select", "dim_delta", "dim_parquet", "dim_parts")
        assert {status for status, _ in raw.results.values()} == {"success"}, raw.results
        raw.notes.setdefault("folders", []).append(details(raw, "dim_parquet")["Location"])
        raw.notes["log"] = list(raw.log)
    raw.table("crm", COLUMNS, ROWS)
    return raw


def details(lab: Lab, name: str) -> dict[str, str]:
    rows = lab.spark.sql(f"describe table extended {lab.schema}.{name}").collect()
    return {row[0]: row[1] for row in rows}


def leftovers(lab: Lab, name: str) -> list[str]:
    rows = lab.spark.sql(f"show tables in {lab.schema} like '{name}__candidate_*'").collect()
    return [row["tableName"] for row in rows]


@pytest.mark.parametrize("name", ["dim_delta", "dim_parquet", "dim_parts"])
def test_every_format_holds_the_newest_dimension(twice: Lab, name: str) -> None:
    found = twice.rows(name, "id", "name", "valid_from", "is_current")
    assert found == [
        (1, "Ann", "2024-01-01 00:00:00", False),
        (1, "Bea", "2024-02-01 00:00:00", True),
        (2, "Cid", "2024-01-05 12:00:00.5", False),
        (2, "Dan", "2024-03-01 00:00:00", True),
        (3, "Eve", "2024-03-02 00:00:00", True),
    ]
    assert leftovers(twice, name) == []


def test_delta_publishes_in_one_commit(twice: Lab) -> None:
    history = twice.spark.sql(f"describe history {twice.schema}.dim_delta").collect()
    # one row of two is new, then three of three differ; the last build finds nothing to change
    assert [(row["version"], row["operation"].split()[0]) for row in reversed(history)] == [
        (0, "CREATE"),
        (1, "MERGE"),
        (2, "CREATE"),
    ]
    before = twice.spark.sql(f"select count(*) from {twice.schema}.dim_delta version as of 1").collect()[0][0]
    assert before == len(ROWS)


def test_parquet_moves_to_a_new_folder_and_empties_the_one_before_last(twice: Lab) -> None:
    folders = [Path(place.removeprefix("file:")) for place in twice.notes["folders"]]
    assert len(set(folders)) == 3 and folders[2] == folders[3]
    rows = [twice.spark.read.parquet(str(folder)).count() for folder in folders[1:3]]
    assert rows == [3, 5]
    assert twice.spark.read.parquet(str(folders[0])).columns == ["emptied"]


def test_what_is_the_same_stays_in_its_folder(twice: Lab) -> None:
    folder = Path(details(twice, "dim_parquet")["Location"].removeprefix("file:"))
    assert len(list(folder.parent.iterdir())) == 4
    (own,) = [
        place
        for place in folder.parent.iterdir()
        if str(place) not in [note.removeprefix("file:") for note in twice.notes["folders"]]
    ]
    assert twice.spark.read.parquet(str(own)).columns == ["emptied"]
    for name in ("dim_parquet", "dim_parts"):
        assert any(f"{name}: unchanged" in text for text in twice.notes["log"]), name


def test_progress_is_told(twice: Lab) -> None:
    told = [text for text in twice.notes["log"] if text.startswith("healing_table ") and "dim_delta:" in text]
    assert [
        part in text
        for part, text in zip(
            [
                ": looking at 1 source",
                "rebuild from 1 source, stored version ",
                "computed 5 versions, compared with 5 stored rows: 0 keys differ (",
                "passed single_current",
                "unchanged",
                f"writing its row of {twice.schema}.healing_log",
            ],
            told,
            strict=True,
        )
    ] == [True] * 6
    assert told[1].endswith("; computing")


DESCRIBED = """
version: 2
models:
{% for name in ("said_parquet", "said_orc", "said_delta") %}
  - name: {{ name }}
    description: "It's one row for each version."
    columns:
      - {name: "#tag", description: "a 'tag'"}
      - {name: name, description: "{{ said }}"}
      - {name: is_current, description: The flag.}
{% endfor %}
"""


def comments(lab: Lab, name: str) -> tuple[str, dict[str, str]]:
    """Of the table, and of those columns that have one."""
    rows = [tuple(row) for row in lab.spark.sql(f"describe table extended {lab.schema}.{name}").collect()]
    end = next(place for place, row in enumerate(rows) if not row[1])  # titles of sections have no type
    of_table = next(row[1] for row in rows[end:] if row[0] == "Comment")
    return of_table, {row[0]: row[2] for row in rows[:end] if row[2]}


def test_comments_of_every_format(raw: Lab) -> None:
    """Also of columns after one that is named like a title of `describe`, and of partition columns."""
    raw.table("odd", [["id", "int"], ["#tag", "string"], ["changed_at", "date"], ["name", "string"]],
              [[1, "x", "2024-01-01", "Ann"], [1, "y", "2024-02-01", "Bea"]])  # fmt: skip
    sql = call("crm").replace("source('raw', 'crm')", f"api.Relation.create(schema='{raw.schema}', identifier='odd')")
    persisted = {"relation": True, "columns": True}
    dim(raw, "said_parquet", sql, file_format="parquet", persist_docs=persisted)
    dim(raw, "said_orc", sql, file_format="orc", partition_by=["is_current"], persist_docs=persisted)
    dim(raw, "said_delta", sql, persist_docs=persisted)
    names = ["said_parquet", "said_orc", "said_delta"]
    for said in ("The name.", "The name now.", "The name now."):
        raw.write("models/said.yml", Template(DESCRIBED).render(said=said))
        results = raw.dbt("run", "--select", *names)
        assert {status for status, _ in results.values()} == {"success"}, results
        for name in names:
            assert comments(raw, name) == (
                "It's one row for each version.",
                {"#tag": "a 'tag'", "name": said, "is_current": "The flag."},
            ), name
    assert not [statement for _, statement in raw.statements if " comment " in statement.lower()]


@pytest.fixture(scope="module")
def refused(twice: Lab) -> Lab:
    """dim_delta and dim_parquet meet a candidate that fails; dim_ties, dim_tied and dim_gaps meet odd rows."""
    for name, form in (("dim_delta", "delta"), ("dim_parquet", "parquet")):
        dim(twice, name, BAD, file_format=form, on_schema_change="sync_all_columns")
    dim(
        twice,
        "dim_allowed",
        BAD,
        meta={
            "healing_tables": {
                "checks": {
                    "no_overlaps": False,
                    "single_current": False,
                    "valid_order": False,
                    "no_consecutive_duplicates": False,
                }
            }
        },
    )
    dim(twice, "dim_ties", call("ties", ", 'on_tie': 'greatest'"))
    dim(twice, "dim_tied", call("ties"))
    dim(twice, "dim_gaps", GAPS)
    twice.dbt("run", "--select", "dim_delta", "dim_parquet", "dim_allowed", "dim_ties", "dim_tied", "dim_gaps")
    return twice


@pytest.mark.parametrize("name", ["dim_delta", "dim_parquet"])
def test_a_failed_check_leaves_the_target_alone(refused: Lab, name: str) -> None:
    status, message = refused.results[name]
    assert status == "error"
    for part in [
        "3 of 4 checks failed; the target is unchanged",
        "single_current: 1 failing, in keys such as id = 1",
        "no_overlaps: 2 failing, in keys such as id = 1",
        "valid_order: 1 failing, in keys such as id = 2",
        "'single_current': false",
    ]:
        assert part in message, message
    assert leftovers(refused, name) == []
    assert f"dbt show --select {name} shows the candidate" in message
    assert len(refused.rows(name)) == 5


def test_checks_can_be_turned_off(refused: Lab) -> None:
    assert refused.results["dim_allowed"][0] == "success"
    assert len(refused.rows("dim_allowed")) == 4


def test_rows_set_aside_and_ties_are_counted(refused: Lab) -> None:
    assert refused.results["dim_ties"][0] == "success"
    warnings = [text for text in refused.log if "dim_ties" in text and ("set aside" in text or "resolved" in text)]
    assert any("3 rows of source crm set aside" in text for text in warnings)
    assert any("1 tie in source crm resolved by on_tie: greatest" in text for text in warnings)
    assert (2, "Dan") in refused.rows("dim_ties", "id", "name")


def test_a_gap_of_a_source_named_in_another_case(refused: Lab) -> None:
    """A source that can delete leaves gaps, which are no mistake."""
    assert refused.results["dim_gaps"][0] == "success", refused.results["dim_gaps"]
    assert len(refused.rows("dim_gaps")) == 2


def test_an_unresolved_tie_names_source_moment_and_key(refused: Lab) -> None:
    status, message = refused.results["dim_tied"]
    assert status == "error"
    for part in [
        "unresolved tie in source crm",
        "dim_tied",
        "id = 2",
        "2024-01-05 12:00:00.5 UTC",
        "remedy: ",
    ]:
        assert part in message
    assert leftovers(refused, "dim_tied") == []


@pytest.fixture(scope="module")
def configured(raw: Lab) -> Lab:
    root = raw.home / "elsewhere"
    dim(
        raw,
        "dim_full",
        alias="dim_other_name",
        schema="marts",
        partition_by=["is_current"],
        location_root=str(root),
        tblproperties={"delta.enableChangeDataFeed": "true"},
        persist_docs={"relation": True, "columns": True},
        post_hook="insert into {{ target.schema }}.hooked select '{{ this.identifier }}'",
        pre_hook="create table if not exists {{ target.schema }}.hooked (name string) using parquet",
    )
    dim(raw, "dim_contract", contract={"enforced": True})
    dim(raw, "dim_broken_contract", contract={"enforced": True})
    dim(raw, "dim_constrained", contract={"enforced": True})
    dim(raw, "dim_csv", file_format="csv")
    generated = (
        "{name: valid_from, data_type: timestamp}, {name: valid_to, data_type: timestamp}, {name: is_current, "
        "data_type: boolean}, "
        "{name: version, data_type: int}, {name: compressed_row_count, data_type: bigint}, {name: key_hash, data_type: "
        "string}, {name: row_hash, data_type: string}"
    )
    raw.write(
        "models/dims.yml",
        "version: 2\nmodels:\n"
        "  - {name: dim_full, description: 'Who they are, ${spark.app.id}', columns: [{name: name, description: What "
        "they are called}]}\n"
        f"  - {{name: dim_contract, columns: [{{name: id, data_type: int}}, {{name: name, data_type: string}}, "
        f"{generated}]}}\n"
        "  - name: dim_constrained\n"
        "    constraints: [{type: check, name: few, expression: id < 2}]\n"
        f"    columns: [{{name: id, data_type: int}}, {{name: name, data_type: string}}, {generated}]\n"
        f"  - {{name: dim_broken_contract, columns: [{{name: id, data_type: string}}, {{name: name, data_type: "
        f"string}}, {generated}]}}\n",
    )
    raw.spark.sql(f"create or replace view {raw.schema}.dim_was_view as select 1 as x")
    dim(raw, "dim_was_view")
    contracts = ["dim_contract", "dim_broken_contract", "dim_constrained"]
    raw.dbt("run", "--select", "dim_full", *contracts, "dim_was_view", "dim_csv")
    return raw


@pytest.mark.slow
def test_what_table_honours_is_honoured(configured: Lab) -> None:
    assert configured.results["dim_full"][0] == "success", configured.results["dim_full"]
    name = f"{configured.schema}_marts.dim_other_name"
    about = {row[0]: row[1] for row in configured.spark.sql(f"describe table extended {name}").collect()}
    assert about["Provider"] == "delta"
    assert about["Location"].endswith("elsewhere/dim_other_name")
    assert about["Comment"] == "Who they are, ${spark.app.id}"
    assert "delta.enableChangeDataFeed=true" in about["Table Properties"]
    partitions = configured.spark.sql(f"describe detail {name}").collect()[0]["partitionColumns"]
    assert partitions == ["is_current"]
    comments = {field.name: field.metadata.get("comment") for field in configured.spark.table(name).schema}
    assert comments["name"] == "What they are called"
    assert configured.rows("hooked") == [("dim_other_name",)]


@pytest.mark.slow
def test_contracts(configured: Lab) -> None:
    assert configured.results["dim_contract"][0] == "success", configured.results["dim_contract"]
    status, message = configured.results["dim_broken_contract"]
    assert status == "error"
    assert "enforced contract" in message
    status, message = configured.results["dim_constrained"]
    assert status == "error" and "wanted: rows that satisfy " in message and "1 row in violation" in message, message
    assert not configured.spark.catalog.tableExists(f"{configured.schema}.dim_constrained")


@pytest.mark.slow
def test_formats(configured: Lab) -> None:
    status, message = configured.results["dim_csv"]
    assert status == "error"
    assert "wanted: one of delta, iceberg, orc, parquet" in message and "got:    csv" in message, message


@pytest.mark.slow
def test_a_view_of_the_same_name_makes_way(configured: Lab) -> None:
    assert configured.results["dim_was_view"][0] == "success", configured.results["dim_was_view"]
    assert len(configured.rows("dim_was_view")) == len(ROWS)
