"""A rebuild in shards: what it stores and logs is what one statement gives; what it leaves, takes over and refuses."""

from __future__ import annotations

import re
from typing import Any

import pytest
from dying_dbt import dies_before
from lab import Lab, scripted
from sessions import FORMAT, with_settings

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("interpreted")]
SHARDS, KEYS = 2, 24
ALL = [1, 2]
MAPPED = " tblproperties ('delta.columnMapping.mode' = 'name')" if FORMAT == "delta" else ""
# equal keys in columns of different types; a source that deletes, and one of periods
CALL = """{{ healing_tables.dimension({
    'crm': {'relation': source('raw', 'crm'), 'changed_at': 'changed_at', 'deleted_when': 'gone',
        'on_tie': 'greatest'},
    'web': {'relation': source('raw', 'web'), 'valid_from': 'since', 'valid_to': 'until'}},
    attributes=['the name', 'mail'], exists_in=['crm'], surrogate_key={'name': 'sk', 'strategy': 'hash'}) }}"""
FIGURES = ["mode", "status", "publish", "rows_added", "rows_changed", "rows_removed", "rows_unchanged",
           "keys_affected", "rows_set_aside", "ties_resolved", "checks", "high_water_marks", "reason"]  # fmt: skip


def dim(lab: Lab, name: str, sql: str = CALL, shards: Any = SHARDS, **options: Any) -> None:
    config = options.pop("config", {})
    lab.model(
        name,
        sql,
        materialized="healing_table",
        unique_key="id",
        meta={"healing_tables": {"shards": shards} | options},
        **config,
    )


def pair(lab: Lab, *args: str, status: str = "success") -> dict[str, Any]:
    """Build the sharded and the unsharded dimension: the same rows and the same figures; returns these."""
    results = lab.dbt("run", "--select", "cut", "whole", *args)
    assert [results[name][0] for name in ("cut", "whole")] == [status] * 2, results
    found = [{name: lab.newest(table)[name] for name in FIGURES} for table in ("cut", "whole")]
    assert found[0] == found[1]
    assert lab.rows("cut") == lab.rows("whole")
    assert parts_beside(lab, "cut") == []
    return found[0]


def parts_beside(lab: Lab, name: str) -> list[str]:
    tables = lab.spark.sql(f"show tables in {lab.schema}").collect()
    return sorted(row["tableName"] for row in tables if row["tableName"].startswith(f"{name}__candidate_"))


def progress_lines(lab: Lab, name: str) -> list[str]:
    start = f"healing_table {lab.schema}.{name}: "
    return [text.removeprefix(start) for text in lab.log if text.startswith(start)]


def part_numbers(lab: Lab, name: str) -> list[int]:
    lines = [re.match(rf"part (\d+) of {SHARDS} \(", text) for text in progress_lines(lab, name)]
    return [int(line.group(1)) for line in lines if line]


def change(lab: Lab, key: int, name: str) -> None:
    lab.spark.sql(f"insert into {lab.schema}.crm values ({key}, '{name}', false, date '2024-03-01')")


@pytest.fixture(scope="module")
def built(lab: Lab) -> Lab:
    spark, schema = lab.spark, lab.schema
    spark.sql(f"create table {schema}.crm (id int, `the name` string, gone boolean, changed_at date) "
              f"using {FORMAT}{MAPPED}")  # fmt: skip
    spark.sql(f"create table {schema}.web (id bigint, mail string, since date, until date) using {FORMAT}")
    spark.sql(f"insert into {schema}.crm select cast(id as int), if(month = 1, 'a', 'b'), month = 2 and id = 5, "
              f"make_date(2024, month, 1) from range(1, {KEYS + 1}) cross join "
              "(select explode(array(1, 2)) as month)")  # fmt: skip
    spark.sql(f"insert into {schema}.crm values (null, 'nobody', false, date '2024-01-01'), "
              "(7, 'tie', false, date '2024-01-01'), (8, 'tie', false, date '2024-01-01')")  # fmt: skip
    spark.sql(f"insert into {schema}.web select id, concat(id, '@b.no'), date '2024-01-15', date '2024-02-15' "
              f"from range(1, {KEYS + 1}, 2)")  # fmt: skip
    lab.write(
        "models/sources.yml",
        f"sources: [{{name: raw, schema: {schema}, tables: [{{name: crm}}, {{name: web}}]}}]\n",
    )
    dim(lab, "cut")
    dim(lab, "whole", shards=1)
    lab.notes["first"] = [str(pair(lab))]
    lab.notes["told"] = progress_lines(lab, "cut")
    lab.notes["statements"] = [sql for _, sql in lab.statements]
    return lab


def test_a_first_build(built: Lab) -> None:
    """Equal to the build with one statement, part by part; no part shuffles or sorts twice."""
    assert built.spark.table(f"{built.schema}.cut").where("mail is not null").count() > 0
    assert [text[:11] for text in built.notes["told"] if text.startswith("part ")] == [
        f"part {number} of {SHARDS}" for number in range(1, SHARDS + 1)
    ]
    parts = [sql for sql in built.notes["statements"] if "_rows_parts" in sql and "pmod(xxhash64" in sql]
    assert len(parts) == SHARDS
    select = re.split(r"rows_parts(?: using .*? as)?\n", scripted(parts[0]), maxsplit=1, flags=re.DOTALL)[1]
    with with_settings(built.spark, {"spark.sql.adaptive.enabled": "false"}):
        plan = str(built.spark.sql("explain " + select).collect()[0][0])
    assert re.findall(r"Exchange (\w+)", plan) == ["hashpartitioning"], plan
    published = next(sql for sql in built.notes["statements"] if re.search(r"create or replace table \S+\.cut\s", sql))
    assert "_rows_parts where not is_end" in published and "xxhash64" not in published


def test_news_are_merged(built: Lab) -> None:
    change(built, 3, "c")
    change(built, KEYS + 1, "new")
    row = pair(built)
    assert (row["publish"], row["rows_added"], row["rows_changed"]) == ("merge", 2, 1)
    assert (row["rows_set_aside"], row["ties_resolved"]) == (1, 2)
    assert part_numbers(built, "cut") == ALL


def test_nothing_has_changed(built: Lab) -> None:
    row = pair(built)
    assert (row["status"], row["rows_added"], row["keys_affected"]) == ("unchanged", 0, 0)


def test_all_rows_are_replaced(built: Lab) -> None:
    """A column comes: figures from the changes by shard, then the rows by shard; an equal table again after it."""
    for name, shards in {"cut": SHARDS, "whole": 1}.items():
        dim(built, name, CALL.replace("'mail']", "'mail', 'gone']"), shards)
    row = pair(built)
    assert row["publish"] == "overwrite"
    assert part_numbers(built, "cut") == ALL * 2
    for name, shards in {"cut": SHARDS, "whole": 1}.items():
        dim(built, name, CALL, shards, config={"on_schema_change": "sync_all_columns"})
    pair(built)


def test_stored_keys_of_another_type(built: Lab) -> None:
    """The key becomes bigint in the web shop and is int in the table: still the same shard."""
    for name, shards in {"cut": SHARDS, "whole": 1}.items():
        built.spark.sql(f"create or replace table {built.schema}.{name} using {FORMAT}{MAPPED} as "
                        f"select * except (id), cast(id as string) as id from {built.schema}.{name}")  # fmt: skip
        dim(built, name, CALL, shards, config={"on_schema_change": "sync_all_columns"})
    row = pair(built)
    assert (row["publish"], row["rows_added"], row["rows_removed"]) == ("overwrite", 0, 0)


def test_a_refused_build(built: Lab) -> None:
    """Guards and checks count over all shards; then the allowed build takes the parts of the refused one."""
    built.spark.sql(f"delete from {built.schema}.crm where id > 10")
    results = built.dbt("run", "--select", "cut", "whole")
    rows = [built.newest(name) for name in ("cut", "whole")]
    assert [status for status, _ in results.values()] == ["error"] * 2
    assert rows[0]["status"] == "refused" and rows[0]["reason"] == rows[1]["reason"] != ""
    (kept,) = parts_beside(built, "cut")
    assert kept in results["cut"][1].lower() and kept.endswith("_changes_parts")
    pair(built, "--vars", "{max_removed_keys_ratio: 1, max_removed_versions_ratio: 1}")
    assert part_numbers(built, "cut") == ALL, "the rows; the changes were there"
    for left in parts_beside(built, "whole"):
        built.spark.sql(f"drop table {built.schema}.{left}")


@pytest.mark.parametrize("stored", [False, True])
def test_checks_count_over_all_shards(built: Lab, stored: bool) -> None:
    """Each of the keys has a gap between its versions of a deletion and a return."""
    built.spark.sql(f"create or replace table {built.schema}.gaps using {FORMAT} as select cast(id as int) as id, "
                    "'a' as name, make_date(2024, month, 1) as at, month = 2 as gone from range(12) cross join "
                    "(select explode(array(1, 2, 3)) as month)")  # fmt: skip
    relation = f"api.Relation.create(schema='{built.schema}', identifier='gaps')"
    call = f"{{'crm': {{'relation': {relation}, 'changed_at': 'at', 'deleted_when': 'gone'}}}}, attributes=['name']"
    for name, shards in {"cut_gaps": SHARDS, "whole_gaps": 1}.items():
        checks = {"no_gaps": not stored}
        dim(built, name, f"{{{{ healing_tables.dimension({call}) }}}}", shards, checks=checks)
    names = ["cut_gaps", "whole_gaps"]
    if stored:
        built.dbt("run", "--select", *names)
        assert built.succeeded, built.results
        for name, shards in {"cut_gaps": SHARDS, "whole_gaps": 1}.items():
            dim(built, name, f"{{{{ healing_tables.dimension({call}) }}}}", shards, checks={"no_gaps": True})
    results = built.dbt("run", "--select", *names)
    rows = [built.newest(name) for name in names]
    assert [status for status, _ in results.values()] == ["error"] * 2
    assert rows[0]["status"] == "refused"
    assert rows[0]["checks"] == rows[1]["checks"] and rows[0]["checks"]["no_gaps"] == 12
    for name in names:
        assert "no_gaps: 12 failing, in keys such as id = " in results[name][1], results[name][1]
        built.spark.sql(f"drop table if exists {built.schema}.{name}")
        for left in parts_beside(built, name):
            built.spark.sql(f"drop table {built.schema}.{left}")


def test_a_killed_build_is_continued(built: Lab) -> None:
    change(built, 1, "d")
    with dies_before(r"insert into \S+cut__candidate_\w+_changes_parts"):
        assert built.dbt("run", "--select", "cut")["cut"][0] == "error"
    (left,) = parts_beside(built, "cut")
    pair(built)
    lines = progress_lines(built, "cut")
    assert part_numbers(built, "cut") == [2]
    assert any("was killed or is running" in line and left in line for line in lines), lines
    assert f"continues with the 1 of 2 parts in {built.schema}.{left}, which another run has left" in lines
    assert f"dropped {built.schema}.{left}, which another run has left" in lines


@pytest.mark.parametrize("what", ["sources", "definition", "stored table"])
def test_parts_are_not_used_once_something_has_changed(built: Lab, what: str) -> None:
    change(built, 2, what)
    with dies_before(r"insert into \S+cut__candidate_\w+_changes_parts"):
        assert built.dbt("run", "--select", "cut")["cut"][0] == "error"
    (left,) = parts_beside(built, "cut")
    if what == "sources":
        change(built, 4, "e")
    elif what == "definition":
        for name, shards in {"cut": SHARDS, "whole": 1}.items():
            dim(built, name, CALL.replace("'gone',", "'coalesce(gone, false)',"), shards)
    else:
        built.spark.sql(f"delete from {built.schema}.cut where id = 6 and is_current")
        built.spark.sql(f"delete from {built.schema}.whole where id = 6 and is_current")
    pair(built)
    assert part_numbers(built, "cut") == ALL
    # of a table that another writer has changed, the statement compares all columns: it is another definition, too
    assert any(f"the 1 parts in {built.schema}.{left}" in line and line.endswith(f"the {what} changed since")
               for line in progress_lines(built, "cut")), progress_lines(built, "cut")  # fmt: skip


def test_a_source_of_which_nobody_can_tell(built: Lab) -> None:
    built.spark.sql(f"create or replace view {built.schema}.seen as select id, `the name`, changed_at "
                    f"from {built.schema}.crm where id is not null")  # fmt: skip
    relation = f"api.Relation.create(schema='{built.schema}', identifier='seen')"
    call = f"{{'crm': {{'relation': {relation}, 'changed_at': 'changed_at', 'on_tie': 'greatest'}}}}"
    dim(built, "seen_dim", f"{{{{ healing_tables.dimension({call}) }}}}")
    with dies_before(r"insert into \S+seen_dim__candidate_\w+_rows_parts"):
        assert built.dbt("run", "--select", "seen_dim")["seen_dim"][0] == "error"
    built.build("seen_dim")
    assert part_numbers(built, "seen_dim") == ALL
    assert any(line.endswith("anew: it is not known whether source crm has changed")
               for line in progress_lines(built, "seen_dim")), progress_lines(built, "seen_dim")  # fmt: skip


def test_mistakes(built: Lab) -> None:
    """All in one error, before any table is looked at."""
    relation = f"api.Relation.create(schema='{built.schema}', identifier='crm')"
    call = f"healing_tables.dimension({{'crm': {{'relation': {relation}, 'changed_at': 'changed_at'}}}})"
    cte = "with c as (select * from {{ source('raw', 'crm') }}) {{ healing_tables.dimension({'c': {'relation': 'c', "
    cte += "'changed_at': 'changed_at'}}, attributes=['gone'], column_names={'key_hash': none, 'row_hash': none}, "
    cte += "column_types={'gone': 'boolean', 'changed_at': 'date'}) }}"
    sequence = {"surrogate_key": {"name": "nr", "strategy": "sequence"}}
    wrong: dict[str, tuple[dict[str, Any], list[str]]] = {
        "text": ({"shards": "16"}, ["shards", "a whole number from 1 to 1024", "the text '16'"]),
        "none_at_all": ({"shards": 0}, ["from 1 to 1024", "got:    0"]),
        "yes": ({"shards": True}, ["from 1 to 1024", "got:    True"]),
        "many": ({"shards": 1025, "publish": "now"}, ["got:    1025", "publish", "2 mistakes"]),
        "files": ({"config": {"file_format": "orc"}}, ["a table in delta", "got:    orc"]),
        "more": ({"sql": f"{{{{ {call} }}}} where true"}, ["more than call dimension()", "reads the dimension"]),
        "other": ({"sql": f"select * from {{{{ {relation} }}}}"}, ["a select without dimension()"]),
        "counted": (sequence, ["strategy: sequence", "surrogate_key.strategy: hash"]),
        "unknown": ({"sql": cte}, ["key columns with a known type", "id, whose type", "column_types"]),
    }
    for name, (options, _) in wrong.items():
        dim(built, f"wrong_{name}", **({"sql": f"{{{{ {call} }}}}"} | options))
    results = built.dbt("run", "--select", *[f"wrong_{name}" for name in wrong])
    for name, (_, parts) in wrong.items():
        status, message = results[f"wrong_{name}"]
        assert status == "error"
        for part in [*parts, "nothing was written"]:
            assert part in message, (name, message)


def test_a_heal_has_no_parts(built: Lab) -> None:
    dim(built, "healed", mode="heal")
    assert built.build("healed")["mode"] == "rebuild"
    assert part_numbers(built, "healed") == ALL
    row = built.build("healed")
    assert (row["mode"], row["status"]) == ("heal", "unchanged")
