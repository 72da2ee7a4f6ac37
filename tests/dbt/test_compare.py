"""A stored dimension beside a rebuild, or beside another table: what compare prints, what matches_rebuild returns."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from lab import Lab
from sessions import FORMAT
from tables import plain_rows

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("interpreted")]
COLUMNS = [["id", "int"], ["at", "date"], ["op", "string"], ["name", "string"], ["city", "string"]]
ROWS = [
    [1, "2024-01-01", "U", "Ann", "Oslo"],
    [1, "2024-02-01", "U", "Ann", "Rome"],
    [2, "2024-01-01", "U", "Bea", "Oslo"],
    [2, "2024-03-01", "U", None, "Oslo"],
    [3, "2024-01-01", "U", "Cid", "Bern"],
    [3, "2024-02-01", "D", None, None],
    [9, "2024-01-01", "U", "no", "body"],
]
# Every way to get at rows: a source, a view, an ephemeral model on another one, a CTE before the call, two kinds of
# variables, and `this`.
MODEL = """
{% set limit = var('limit') %}
with known as (
    select * from {{ ref('passed') }}
    where id < {{ limit }} and id < {{ var('also') }} and '{{ this.identifier }}' = '{{ this.name }}' -- ids
)
{{ healing_tables.dimension(
    {'crm': {'relation': 'known', 'changed_at': 'at', 'deleted_when': "op = 'D'"}},
    attributes=['name', 'city'],
    column_types={'id': 'int', 'at': 'date', 'name': 'string', 'city': 'string'}
) }}
"""
PLAIN = """
{{ healing_tables.dimension(
    {'crm': {'relation': source('raw', 'crm'), 'changed_at': 'at', 'deleted_when': "op = 'D'", 'where': 'id < 9'}},
    attributes=['name', 'city']) }}
"""
NAMED = {
    "column_names": {"valid_from": "since", "valid_to": "until `x`", "version": None},
    "valid_to_current": None,
    "surrogate_key": {"name": "sk", "strategy": "sequence"},
}
DIMS = ["good", "damaged", "seq", "filtered", "macro"]


def schema_of(name: str) -> dict[str, object]:
    config = {"store_failures": True, "alias": f"{name}_rows"}
    if name == "filtered":
        config["where"] = "id = 1"
    test: dict[str, object] = {"name": f"t_{name}", "config": config}
    if name == "damaged":
        test["arguments"] = {"key_columns": ["id"]}
    tests: dict[str, object] = {"data_tests": [{"healing_tables.matches_rebuild": test}]}
    if name == "seq":  # it may stand under a column
        tests = {"columns": [{"name": "id", **tests}]}
    return {"name": f"dim_{name}", **tests}


@pytest.fixture(scope="module")
def built(lab: Lab, interpreted: None) -> Lab:
    lab.write(
        "dbt_project.yml",
        (lab.home / "dbt_project.yml").read_text() + "vars: {also: 100, lab: {limit: 9}}\n",
    )
    lab.table("crm", COLUMNS, ROWS)
    lab.model("stg", "select * from {{ source('raw', 'crm') }}")
    lab.model("first", "select * from {{ ref('stg') }}", materialized="ephemeral")
    lab.model(
        "passed",
        "with a as (select * from {{ ref('first') }})\nselect * from a",
        materialized="ephemeral",
    )
    for name in ("good", "damaged"):
        lab.model(f"dim_{name}", MODEL, materialized="table", file_format=FORMAT, unique_key="id")
    since = {"healing_tables": {"column_names": {"valid_from": "since"}}}
    lab.model(
        "dim_filtered",
        PLAIN,
        materialized="table",
        file_format=FORMAT,
        unique_key="id",
        meta=since,
    )
    lab.write("macros/mine.sql", "{% macro mine() %}1{% endmacro %}")
    with_macro = PLAIN.replace("id < 9", "id < 9 and ' ~ mine() ~ ' = 1")
    lab.model("dim_macro", with_macro, materialized="table", file_format=FORMAT, unique_key="id")
    lab.model("dim_config", PLAIN + "-- {{ config.get('x') }}", unique_key="id")
    lab.model(
        "dim_seq",
        PLAIN,
        materialized="healing_table",
        unique_key="id",
        meta={"healing_tables": NAMED},
    )
    for version in (1, 2):
        lab.model(f"dim_two_v{version}", PLAIN, materialized="table", unique_key="id")
    versioned = {
        "name": "dim_two",
        "latest_version": 2,
        "config": {"file_format": FORMAT},
        "versions": [{"v": 1}, {"v": 2}],
    }
    schema = {
        "sources": [{"name": "raw", "schema": lab.schema, "tables": [{"name": "crm"}]}],
        "models": [*[schema_of(name) for name in DIMS], versioned],
    }
    lab.write("models/schema.yml", json.dumps({"version": 2} | schema))
    found = lab.dbt("run")
    assert {status for status, _ in found.values()} == {"success"}, found
    damage(lab)
    return lab


def damage(lab: Lab) -> None:
    """Five faults in four keys: a value, a NULL, a row lost, a row too many, a start moved (one lost, one too many)."""
    for name in ("damaged", "filtered"):
        table = f"{lab.schema}.dim_{name}"
        lab.spark.sql(f"update {table} set name = 'Anne', city = null where id = 1 and version = 2")
        start = "since" if name == "filtered" else "valid_from"
        lab.spark.sql(f"update {table} set {start} = date '2024-01-02' where id = 2 and version = 1")
        lab.spark.sql(f"insert into {table} select * from {table} where id = 2 and version = 2")
        lab.spark.sql(f"delete from {table} where id = 3")


def compare(lab: Lab, **arguments: object) -> list[str]:
    lab.dbt(
        "run-operation",
        "healing_tables.compare",
        "--args",
        json.dumps(arguments),
    )
    lines = [line for text in lab.log for line in text.split("\n")]
    start = next((n for n, line in enumerate(lines) if line.startswith("healing_tables compare:")), None)
    assert start is not None, lab.log
    found = []
    for line in lines[start:]:
        if line and not line.startswith(("healing_tables compare:", "  ")):
            break
        found.append(line)
    return found


DAMAGED = """
healing_tables compare: {0}.dim_damaged against a rebuild by model dim_damaged: 5 rows stored, 5 rows rebuilt, \
2 missing, 2 superfluous, 1 different

  column | rows that differ
  ------ | ----------------
  name   | 1
  city   | 1

  how         | id | valid_from | column | stored | rebuilt
  ----------- | -- | ---------- | ------ | ------ | -------
  missing     | 2  | 2024-01-01 |        |        |
  missing     | 3  | 2024-01-01 |        |        |
  superfluous | 2  | 2024-01-02 |        |        |
  superfluous | 2  | 2024-03-01 |        |        |
  different   | 1  | 2024-02-01 | name   | Anne   | Ann
  different   | 1  | 2024-02-01 | city   | NULL   | Rome
"""


MARKDOWN = r"""
### {0}.dim_damaged against a rebuild by model dim_damaged

| stored | rebuilt | missing | superfluous | different | keys |
| --- | --- | --- | --- | --- | --- |
| 5 | 5 | 2 | 2 | 1 | 3 |

| column | rows that differ |
| --- | --- |
| name | 1 |
| city | 1 |

| how | id | valid\_from | column | stored | rebuilt |
| --- | --- | --- | --- | --- | --- |
| missing | 2 | 2024-01-01 |  |  |  |
| missing | 3 | 2024-01-01 |  |  |  |
| superfluous | 2 | 2024-01-02 |  |  |  |
| superfluous | 2 | 2024-03-01 |  |  |  |
| different | 1 | 2024-02-01 | name | Anne | Ann |
| different | 1 | 2024-02-01 | city | NULL | Rome |
"""


def as_markdown(lab: Lab, dimension: str) -> str:
    """What is printed with --quiet."""
    lab.dbt(
        "--quiet",
        "run-operation",
        "healing_tables.compare",
        "--args",
        json.dumps({"dimension": dimension, "markdown": True}),
    )
    assert lab.succeeded, lab.log
    return next(text for text in lab.log if text.startswith("###"))


def test_a_comment_for_a_pull_request(built: Lab) -> None:
    assert as_markdown(built, "dim_damaged") == MARKDOWN.strip().format(built.schema)


OWN_FACTS = (
    "(0, date '2024-01-03', 1), (1, date '2024-02-01', 1), (3, date '2024-03-01', 1), (7, date '2024-03-01', -1)"
)
OWN_KEYS = {"key_columns": "id", "at": "sold_on", "columns": {"then": "version"}, "unknown": -1}


@pytest.fixture
def own_facts(built: Lab) -> Iterator[None]:
    """Facts with keys of dim_own, and facts that are not built yet."""
    select = f"select * from values {OWN_FACTS} as facts(id, sold_on, then)"
    test = {"healing_tables.facts_covered": {"arguments": OWN_KEYS | {"dimension": "ref('dim_own')"}}}
    for name in ("fct_own", "fct_new"):
        built.model(name, select, materialized="table", file_format=FORMAT)
    covered = [{"name": name, "data_tests": [test]} for name in ("fct_own", "fct_new")]
    built.write("models/own.yml", json.dumps({"version": 2, "models": covered}))
    yield
    for name in ("own.yml", "fct_own.sql", "fct_new.sql"):
        (built.home / "models" / name).unlink()


@pytest.mark.usefixtures("own_facts")
def test_its_numbers_are_those_of_the_publication(built: Lab) -> None:
    rows = [[key, "2024-01-01", "U", "Ann", "Oslo"] for key in range(4)]
    built.table("own", COLUMNS, rows)
    source = "api.Relation.create(schema=target.schema, identifier='own')"
    model = (
        f"{{{{ healing_tables.dimension({{'own': {{'relation': {source}, 'changed_at': 'at'}}}}, attributes=['name'])"
        " }}"
    )
    built.model("dim_own", model, materialized="healing_table", unique_key="id")
    built.dbt("run", "--select", "dim_own", "fct_own")
    moved = [[0, "2024-01-05", "U", "Ann", "Oslo"], [1, "2024-01-01", "U", "Bea", "Oslo"], *rows[2:]]
    built.table("own", COLUMNS, [*moved, [3, "2024-02-01", "U", "Eve", "Oslo"], [7, "2024-02-01", "U", "Fay", "Oslo"]])
    lines = as_markdown(built, "dim_own").split("\n")
    assert lines[4] == "| 4 | 6 | 3 | 1 | 2 | 4 |"
    assert [re.sub(r"[\\ ]", "", line) for line in lines[-4:]] == [
        "|facts|movedtoanotherversion|resolvedfromunknown|becameunknown|",
        "|---|---|---|---|",
        f"|{built.schema}.fct_new|notcompared:thetabledoesnotexist|||",
        f"|{built.schema}.fct_own|1|1|1|",
    ]
    built.dbt("run", "--select", "dim_own")
    log = built.spark.table(f"{built.schema}.healing_log").where("relation like '%dim_own'").orderBy("finished_at")
    last = log.tail(1)[0]
    assert (last.rows_added, last.rows_removed, last.rows_changed) == (3, 1, 2)
    arguments = json.dumps({"facts": "fct_own", "dimension": "dim_own"} | OWN_KEYS)
    built.dbt("run-operation", "healing_tables.rekey_facts", "--args", arguments)
    start = f"healing_tables.rekey_facts {built.schema}.fct_own: "
    told = [re.sub(" +", " ", text.removeprefix(start).strip()) for text in built.log if text.startswith(start)]
    assert told[1:4] == ["moved to another version | 1", "resolved from unknown | 1", "became unknown | 1"], told


def test_the_faults_of_a_damaged_table_are_printed_and_fail_on_request(built: Lab) -> None:
    assert compare(built, dimension="dim_damaged") == DAMAGED.strip().format(built.schema).split("\n")
    assert built.succeeded
    before = built.commits("dim_damaged")
    compare(built, dimension="lab.dim_damaged", fail=True)
    assert not built.succeeded
    text = "\n".join(built.log)
    assert "dim_damaged differs in 5 rows." in text and "remedy: dbt run --select dim_damaged" in text
    assert built.commits("dim_damaged") == before
    names = [row["tableName"] for row in built.spark.sql(f"show tables in {built.schema}").collect()]
    assert [name for name in names if "candidate" in name] == []


def test_no_difference_is_said_and_integer_keys_are_left_out(built: Lab) -> None:
    assert compare(built, dimension="dim_good", fail=True) == [
        (
            f"healing_tables compare: {built.schema}.dim_good against a rebuild by model dim_good: "
            "5 rows stored, 5 rows rebuilt, no difference"
        )
    ]
    assert built.succeeded
    assert compare(built, dimension="dim_seq", fail=True)[1:] == [
        "  not compared, integer keys, which only a build assigns: sk"
    ]
    assert built.succeeded


def test_a_version_is_asked_by_its_name(built: Lab) -> None:
    built.spark.sql(f"delete from {built.schema}.dim_two_v1 where id = 1")
    for name, table, told in (
        ("dim_two.v1", "dim_two_v1", "2 missing"),
        ("dim_two.v2", "dim_two_v2", "no difference"),
        ("lab.dim_two", "dim_two_v2", "no difference"),
    ):
        line = compare(built, dimension=name)[0]
        assert f"{built.schema}.{table} against" in line
        assert told in line


def test_the_test_is_shown_and_knows_a_part(built: Lab) -> None:
    built.dbt("show", "--select", "t_damaged")
    assert built.succeeded
    assert any("superfluous" in text and "2024-03-01" in text for text in built.log), built.log
    # what --empty has built is no rebuild
    found = built.dbt("build", "--empty", "--select", "t_damaged", "t_good")
    assert {name: status for name, (status, _) in found.items()} == {
        "t_damaged": "pass",
        "t_good": "pass",
    }


def test_the_test_returns_a_row_per_row_that_differs(built: Lab) -> None:
    found = built.dbt("test")
    audit = f"{built.schema}_dbt_test__audit"
    assert {name: status for name, (status, _) in found.items()} == {
        "t_good": "pass",
        "t_seq": "pass",
        "t_damaged": "fail",
        "t_filtered": "fail",
        "t_macro": "error",
    }
    columns = [["id", "int"], ["since", "date"], ["how", "string"], ["columns", "string"]]
    changed = [1, "2024-02-01", "different", "name, city"]
    others = [
        [2, "2024-01-01", "missing", ""],
        [2, "2024-01-02", "superfluous", ""],
        [2, "2024-03-01", "superfluous", ""],
        [3, "2024-01-01", "missing", ""],
    ]
    for name, rows in {"damaged": [changed, *others], "filtered": [changed]}.items():
        expected = plain_rows(built.frame(columns, rows))
        assert plain_rows(built.spark.table(f"{audit}.{name}_rows")) == expected
    assert built.spark.table(f"{audit}.good_rows").columns == ["id", "valid_from", "how", "columns"]
    assert "calls no macro but those of healing_tables" in found["t_macro"][1]
    assert "macro.lab.mine" in found["t_macro"][1]


def test_an_operation_knows_the_macros_of_the_project(built: Lab) -> None:
    assert compare(built, dimension="dim_macro")[0].endswith("5 rows rebuilt, no difference")


def test_a_model_that_has_changed_since_its_build(built: Lab) -> None:
    """City is no attribute any more: 1 has one version from its first day on instead of two."""
    path = built.home / "models" / "dim_seq.sql"
    before = path.read_text()
    path.write_text(before.replace("['name', 'city']", "['name']"))
    lines = compare(built, dimension="dim_seq", fail=True)
    path.write_text(before)
    assert lines[0].endswith("5 rows stored, 4 rows rebuilt, 0 missing, 1 superfluous, 4 different")
    assert lines[1:3] == [
        "  not compared, integer keys, which only a build assigns: sk",
        "  not compared, only stored: city",
    ]
    rows = [[cell.strip() for cell in line.split("|")] for line in lines]
    assert ["row_hash", "4"] in rows
    assert ["superfluous", "1", "2024-02-01", "", "", ""] in rows
    assert ["different", "1", "2024-01-01", "until `x`", "2024-02-01", "NULL"] in rows
    assert not built.succeeded
    assert any("differs in 5 rows and in its columns" in text for text in built.log)


def test_a_column_without_equality_is_told_and_is_no_difference(built: Lab) -> None:
    period = "date '2024-01-01' as valid_from, date '9999-12-31' as valid_to, true as is_current"
    built.model(
        "dim_map",
        f"select 1 as id, {period}, 'a' as name, map('k', 1) as extra",
        materialized="healing_table",
        unique_key="id",
        meta={
            "healing_tables": {
                "tracked_columns": "name",
                "column_names": {"version": None, "row_hash": None},
            }
        },
    )
    built.dbt("run", "--select", "dim_map")
    lines = compare(built, dimension="dim_map", fail=True)
    assert lines[0].endswith("1 row rebuilt, no difference")
    assert lines[1] == "  not compared, of a type without equality: extra (map<string,int>)"
    assert built.succeeded


def test_against_a_copy_with_another_open_end(built: Lab) -> None:
    built.spark.sql(
        f"create table {built.schema}.`2024_copy` using parquet as select * except (valid_to, version, name), "
        "if(is_current, null, valid_to) as valid_to, 'x' as more, "
        f"if(id = 3, 'Sid', name) as name from {built.schema}.dim_good"
    )
    lines = compare(built, dimension="dim_good", against="2024_copy")
    assert lines[0].endswith(": 5 rows stored, 5 rows other, 0 missing, 0 superfluous, 1 different")
    assert lines[1:] == [
        "  not compared, only stored: version",
        "  not compared, only other: more",
        "",
        "  column | rows that differ",
        "  ------ | ----------------",
        "  name   | 1",
        "",
        "  how       | id | valid_from | column | stored | other",
        "  --------- | -- | ---------- | ------ | ------ | -----",
        "  different | 3  | 2024-01-01 | name   | Cid    | Sid",
    ]


def test_against_the_table_of_a_dbt_snapshot(built: Lab) -> None:
    """Its moments are timestamps; the change of 1 in February was never seen, the end of 3 is a row of its own."""
    columns = [
        ["id", "int"],
        ["name", "string"],
        ["city", "string"],
        ["dbt_scd_id", "string"],
        ["dbt_valid_from", "timestamp"],
        ["dbt_valid_to", "timestamp"],
        ["dbt_is_deleted", "string"],
    ]
    rows: list[list[Any]] = [
        [1, "Ann", "Oslo", "a", "2024-01-01", None, "False"],
        [2, "Bea", "Oslo", "b", "2024-01-01", "2024-03-01", "False"],
        [2, None, "Oslo", "c", "2024-03-01", None, "False"],
        [3, "Cid", "Bern", "d", "2024-01-01", "2024-02-01", "False"],
        [3, "Cid", "Bern", "e", "2024-02-01", None, "True"],
    ]
    built.table("old_snapshot", columns, rows)
    lines = compare(built, dimension="dim_good", against=f"{built.schema}.old_snapshot", fail=True)
    assert lines[0].endswith("5 rows stored, 4 rows other, 0 missing, 1 superfluous, 1 different")
    found = [[cell.strip() for cell in line.split("|")] for line in lines]
    assert ["superfluous", "1", "2024-02-01 00:00:00", "", "", ""] in found
    assert [row for row in found if row[0] == "different"] == [
        [
            "different",
            "1",
            "2024-01-01 00:00:00",
            "valid_to",
            "2024-02-01 00:00:00",
            "9999-12-31 00:00:00",
        ],
        ["different", "1", "2024-01-01 00:00:00", "is_current", "false", "true"],
    ]
    assert not built.succeeded


@pytest.mark.parametrize(
    "arguments, words",
    [
        (
            {"dimension": "dim_nowhere"},
            ["one SQL model", "dim_nowhere", "dim_damaged, dim_filtered, dim_good"],
        ),
        ({"dimension": "dim_good", "against": "nowhere"}, ["against", "a table or view that exists", "nowhere"]),
        ({"dimension": "dim_config"}, ["does not read its own config", "dim_config"]),
    ],
    ids=lambda value: str(value.get("dimension")) if isinstance(value, dict) else "",
)
def test_what_cannot_be_compared_is_refused(built: Lab, arguments: dict[str, str], words: list[str]) -> None:
    built.dbt(
        "run-operation",
        "healing_tables.compare",
        "--args",
        json.dumps(arguments),
    )
    assert not built.succeeded
    assert [word for word in words if not any(word in text for text in built.log)] == []
