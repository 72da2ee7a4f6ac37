"""One pass: what it reads and how it is planned, what it looks at before, and what it leaves where it refuses."""

from __future__ import annotations

import re

import pytest
from lab import Lab, scripted
from sessions import FORMAT, HAS_SCRIPTS, with_settings

pytestmark = pytest.mark.usefixtures("interpreted")
COLUMNS = "id int, name string, gone boolean, changed_at date, loaded_at timestamp"
CALL = (
    "{{ healing_tables.dimension({'crm': {'relation': source('raw', 'crm'), 'changed_at': 'changed_at', "
    "'deleted_when': 'gone', 'loaded_at': 'loaded_at'}}, attributes=['name'], "
    "surrogate_key={'name': 'sk', 'strategy': 'hash'}) }}"
)
# two rows that overlap and are both current; one that ends before it begins
FAULTY = """
select 1 as id, 'a' as row_hash, date '2024-01-01' as valid_from, date '9999-12-31' as valid_to, true as is_current
union all select 1, 'b', date '2024-02-01', date '9999-12-31', true
union all select 2, 'b', date '2024-02-01', date '2024-01-01', false
"""


def add(lab: Lab, *rows: str) -> None:
    lab.spark.sql(f"insert into {lab.schema}.crm values {', '.join(rows)}")


def own_statements(lab: Lab, name: str) -> list[str]:
    """Those of the materialization, without those that dbt and dimension() itself need, and without settings."""
    texts = [
        re.sub(r"^/\*.*?\*/\s*", "", sql, flags=re.DOTALL).strip() for _, sql in lab.statements if f".{name}" in sql
    ]
    others = ("show databases", "show table extended", "explain select 1", f"describe table {lab.schema}.crm", "set")
    return [text for text in texts if not text.startswith(others)]


@pytest.fixture(scope="module")
def built(lab: Lab) -> Lab:
    lab.spark.sql(f"create table {lab.schema}.crm ({COLUMNS}) using {FORMAT}")
    add(
        lab,
        *[
            f"({key}, '{name}', false, date '2024-0{month}-01', timestamp '2024-05-01 00:00:00Z')"
            for key in range(1, 31)
            for month, name in ((1, "a"), (2, "b"))
        ],
    )
    lab.write("models/sources.yml", f"sources: [{{name: raw, schema: {lab.schema}, tables: [{{name: crm}}]}}]\n")
    lab.model("dim", CALL, materialized="healing_table", unique_key="id")
    lab.model("healed", CALL, materialized="healing_table", unique_key="id", meta={"healing_tables": {"mode": "heal"}})
    lab.model("faulty", FAULTY, materialized="healing_table", unique_key="id")
    lab.dbt("run")
    return lab


def test_a_rebuild_with_few_changes(built: Lab) -> None:
    """One Exchange for the source, one for the stored rows, whose hashes are not read; few statements."""
    add(built, "(1, 'c', false, date '2024-03-01', timestamp '2024-05-02 00:00:00Z')")
    row = built.build("dim")
    assert (row["publish"], row["rows_added"], row["rows_changed"], row["rows_removed"]) == ("merge", 1, 1, 0)
    statements = own_statements(built, "dim")
    changes = next(sql for sql in statements if sql.startswith("create table") and "_changes using" in sql)
    with with_settings(
        built.spark,
        {
            "spark.sql.adaptive.enabled": "false",
            "spark.sql.requireAllClusterKeysForCoPartition": "false",
            "spark.sql.codegen.wholeStage": "true",
        },
    ):
        plan = str(built.spark.sql("explain " + changes.split(" as ", 1)[1]).collect()[0][0])
    assert len(re.findall(r"SortMergeJoin .*FullOuter", plan)) == 1, plan
    assert re.findall(r"Exchange (\w+)", plan) == ["hashpartitioning"] * 2, plan
    assert len(re.findall(r"[+:]- \*?(?:\(\d+\) )?Sort \[", plan)) == 2, plan
    stored = next(line for line in plan.splitlines() if "FileScan" in line and "valid_to" in line)
    assert not {"key_hash", "row_hash", "sk"} & set(re.findall(r"\w+", stored.split("ReadSchema")[1])), stored
    kinds = [" ".join(sql.split()[:2]) for sql in statements]
    assert kinds.count("create table") == 1 and kinds.count("describe history") == 2, kinds
    # the table, its history, the pass, its figures, the MERGE, the tables beside it, the history, the log
    most = 14 if FORMAT != "delta" else 8 if HAS_SCRIPTS else 9
    assert "describe query" not in kinds and len(statements) <= most, statements
    assert FORMAT != "delta" or not [sql for sql in statements if "healing_log where" in sql], statements


def test_a_rebuild_without_changes_writes_no_row(built: Lab) -> None:
    built.build("dim")
    before = built.spark.sql(f"describe history {built.schema}.dim").count()
    row = built.build("dim")
    assert row["status"] == "unchanged" and row["rows_unchanged"] == built.spark.table(f"{built.schema}.dim").count()
    assert built.spark.sql(f"describe history {built.schema}.dim").count() == before
    assert not [sql for sql in own_statements(built, "dim") if "merge into" in sql]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("attributes=['name']", "attributes=['name'], valid_from_first='1900-01-01'"),
        ("'loaded_at'}", "'loaded_at', 'since': '2024-01-15 12:00:00'}"),
    ],
)
def test_a_start_that_is_not_the_moment_of_the_timeline(built: Lab, old: str, new: str) -> None:
    """Stored rows meet the rows of the query by valid_from, not by that moment."""
    assert CALL.count(old) == 1
    built.model("moved", CALL.replace(old, new), materialized="healing_table", unique_key="id")
    built.build("moved")
    row = built.build("moved")
    assert (row["status"], row["rows_unchanged"]) == ("unchanged", len(built.rows("moved", "id"))), row
    built.spark.sql(f"drop table {built.schema}.moved")


@pytest.mark.slow
def test_a_source_column_of_another_type(built: Lab) -> None:
    """The text of the select is the same: what its columns are has to be looked up again."""
    lab = built
    lab.spark.sql(
        f"create table {lab.schema}.sizes using {FORMAT} as select 1 as id, 1 as size, date '2024-01-01' as at"
    )
    call = f"'relation': api.Relation.create(schema='{lab.schema}', identifier='sizes'), 'changed_at': 'at'"
    select = f"{{{{ healing_tables.dimension({{'sizes': {{{call}}}}}, attributes=['size']) }}}}"
    lab.model("sized", select, materialized="healing_table", unique_key="id")
    lab.build("sized")
    lab.spark.sql(f"create or replace table {lab.schema}.sizes using {FORMAT} as "
                  "select 1 as id, 3000000000L as size, date '2024-01-01' as at")  # fmt: skip
    lab.build("sized")
    assert lab.rows("sized", "size") == [(3000000000,)]
    assert dict(lab.spark.table(f"{lab.schema}.sized").dtypes)["size"] == "bigint"


@pytest.mark.slow
@pytest.mark.parametrize("column", ["row_hash", "key_hash", "sk"])
def test_a_hash_that_somebody_else_changed_is_corrected(built: Lab, column: str) -> None:
    built.build("dim")
    built.spark.sql(f"update {built.schema}.dim set {column} = 'x' where id = 7 and is_current")
    assert built.build("dim")["rows_changed"] == 1


@pytest.mark.slow
def test_rows_of_one_start_that_somebody_else_added_go(built: Lab) -> None:
    built.build("dim")
    built.spark.sql(f"insert into {built.schema}.dim select * from {built.schema}.dim where id = 8")
    assert built.build("dim")["publish"] == "overwrite"


@pytest.mark.slow
def test_a_value_that_moves_to_another_place_differs(built: Lab) -> None:
    """Rows are compared value by value, and NULL is one."""
    table = f"{built.schema}.shifted"
    built.spark.sql(
        f"create table {table} using {FORMAT} as select 1 as id, date '2024-01-01' as at, 'x' as a, "
        "cast(null as string) as b, array(null, 1) as c, named_struct('e', 'x', 'f', cast(null as string)) as d"
    )
    source = "api.Relation.create(schema=target.schema, identifier='shifted')"
    call = f"dimension({{'crm': {{'relation': {source}, 'changed_at': 'at'}}}}, ['id'], ['a', 'b', 'c', 'd'])"
    built.model("dim_shifted", f"{{{{ healing_tables.{call} }}}}", materialized="healing_table", unique_key="id")
    built.build("dim_shifted")
    moves = ("a = null, b = 'x'", "c = array(1, null)", "d = named_struct('e', cast(null as string), 'f', 'x')")
    for move in moves:
        built.spark.sql(f"update {table} set {move}")
        row = built.build("dim_shifted")
        assert (row["status"], row["rows_changed"]) == ("published", 1), (move, row)


@pytest.mark.slow
def test_a_heal_without_news_looks_and_ends(built: Lab) -> None:
    built.build("healed")
    row = built.build("healed")
    assert (row["mode"], row["status"], row["keys_affected"]) == ("heal", "unchanged", 0)
    assert row["rows_unchanged"] == built.spark.table(f"{built.schema}.healed").count()
    statements = own_statements(built, "healed")
    assert not [sql for sql in statements if sql.startswith(("create", "merge", "drop"))], statements
    # the table, its history, the source, its history, a row for the log; without tags also the log and the table's id
    assert len(statements) <= (5 if FORMAT == "delta" else 6), statements


@pytest.mark.slow
@pytest.mark.skipif(FORMAT != "delta", reason="the log decides where commits have no tags")
def test_news_without_effect_are_remembered_by_the_table(built: Lab) -> None:
    """Such a heal changes no row, but sets the tag. The next one finds there how far the sources were read."""
    built.build("healed")
    add(built, "(4, 'b', false, date '2024-02-01', timestamp '2024-05-03 00:00:00Z')")  # known since February
    row = built.build("healed")
    assert (row["status"], row["keys_affected"]) == ("unchanged", 0), row
    assert any(sql.startswith("create table") for sql in own_statements(built, "healed"))
    commits = built.commits("healed")
    row = built.build("healed")
    assert (row["mode"], row["status"]) == ("heal", "unchanged"), row
    statements = own_statements(built, "healed")
    assert not [sql for sql in statements if sql.startswith(("create table", "alter")) or "healing_log where" in sql]
    assert built.commits("healed") == commits


@pytest.mark.slow
@pytest.mark.skipif(FORMAT != "delta", reason="a commit has no tag")
def test_a_commit_of_another_writer_is_compared_once(built: Lab) -> None:
    """Rows that are as they should be need no commit of rows, but the table gets a tag."""
    table = f"{built.schema}.dim"
    built.build("dim")
    built.spark.sql(f"update {table} set name = name where id = 5")
    assert built.build("dim")["status"] == "unchanged"
    assert built.spark.sql(f"describe history {table} limit 1").collect()[0]["operation"] == "SET TBLPROPERTIES"
    assert built.build("dim")["status"] == "unchanged"
    assert not [sql for sql in own_statements(built, "dim") if "healing_log where" in sql or sql.startswith("alter")]


@pytest.mark.slow
@pytest.mark.skipif(FORMAT != "delta", reason="a commit has no tag")
def test_an_older_table_is_not_taken_for_what_the_log_describes(built: Lab) -> None:
    """A table that comes back under the name has the tag of the build that made it, with marks older than the log's."""
    schema = built.schema
    built.build("healed")
    built.spark.sql(f"alter table {schema}.healed rename to {schema}.kept")
    built.build("healed")
    add(built, "(6, 'meanwhile', false, date '2024-03-01', timestamp '2024-05-04 00:00:00Z')")
    assert built.build("healed")["mode"] == "heal"
    built.spark.sql(f"drop table {schema}.healed")
    built.spark.sql(f"alter table {schema}.kept rename to {schema}.healed")
    row = built.build("healed")
    assert (row["mode"], row["rows_added"]) == ("heal", 1), row


@pytest.mark.slow
def test_a_row_that_comes_late_is_healed_once(built: Lab) -> None:
    add(built, "(31, 'new', false, date '2024-03-01', timestamp '2024-06-01 00:00:00Z')")
    built.build("healed")
    # loaded before the newest row, committed after the heal
    add(built, "(2, 'late', false, date '2024-03-01', timestamp '2024-05-31 23:30:00Z')")
    row = built.build("healed")
    assert (row["mode"], row["rows_added"]) == ("heal", 1)
    assert built.build("healed")["keys_affected"] == 0


@pytest.mark.slow
def test_a_row_with_a_loaded_at_to_come_is_healed(built: Lab) -> None:
    add(built, "(3, 'ahead', false, date '2024-03-01', now() + interval 1 hour)")
    row = built.build("healed")
    assert (row["mode"], row["rows_added"]) == ("heal", 1)
    built.spark.sql(f"update {built.schema}.crm set loaded_at = timestamp '2024-06-01 00:00:00Z' where name = 'ahead'")


def test_a_first_build_that_violates_checks_leaves_nothing(built: Lab) -> None:
    status, message = built.results["faulty"]
    assert status == "error"
    for part in (
        "3 of 4 checks failed; the target is unchanged",
        "single_current: 1 failing, in keys such as id = 1",
        "no_overlaps: 1 failing, in keys such as id = 1",
        "valid_order: 1 failing, in keys such as id = 2",
        "dbt show --select faulty",
    ):
        assert part in message, message
    assert not built.spark.catalog.tableExists(f"{built.schema}.faulty")
    row = built.newest("faulty")
    assert (row["status"], row["reason"]) == ("refused", "failed single_current, no_overlaps, valid_order")
    assert row["checks"] == {
        "single_current": 1,
        "no_overlaps": 1,
        "valid_order": 1,
        "no_consecutive_duplicates": 0,
    }


@pytest.mark.skipif(not HAS_SCRIPTS, reason="without SQL scripts, the checks are a statement of their own")
def test_a_first_build_sorts_once(built: Lab) -> None:
    """The checks read the rows in the order in which the timeline makes them."""
    lab = built
    lab.model("first", CALL, materialized="healing_table", unique_key="id")
    lab.build("first")
    created = next(sql for _, sql in lab.statements if "create or replace table" in sql and ".first" in sql)
    select = scripted(created).split(" as\n", 1)[1]
    assert "is_covered_for_ever" in select, "the checks are a part of it"
    with with_settings(lab.spark, {"spark.sql.adaptive.enabled": "false"}):
        plan = str(lab.spark.sql("explain " + select).collect()[0][0])
    assert re.findall(r"Exchange (\w+)", plan) == ["hashpartitioning"], plan
    assert len(re.findall(r"[+:]- \*?(?:\(\d+\) )?Sort \[", plan)) == 1, plan
