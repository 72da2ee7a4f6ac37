"""What a rebuild publishes: the rows that differ, all of them, or nothing; and what it refuses to publish."""

from __future__ import annotations

from typing import Any

import pytest
from lab import Lab

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("interpreted")]
COLUMNS = [
    ["dim", "string"],
    ["id", "int"],
    ["changed_at", "date"],
    ["op", "string"],
    ["name", "string"],
    ["region", "string"],
    ["points", "int"],
]
Rows = list[list[Any]]


def history(dim: str, keys: int) -> Rows:
    """Two versions of each key, the first one closed."""
    return [
        [dim, key, f"2024-0{month}-01", "U", name, "north" if key <= 15 else "south", key]
        for key in range(1, keys + 1)
        for month, name in ((1, "a"), (2, "b"))
    ]


def deleted(dim: str, keys: int, gone: int) -> Rows:
    return history(dim, keys) + [[dim, key, "2024-03-01", "D", None, None, None] for key in range(1, gone + 1)]


def returned(dim: str, keys: int, gone: int, back: int) -> Rows:
    return deleted(dim, keys, gone) + [[dim, key, "2024-04-01", "U", "b", "north", key] for key in range(1, back + 1)]


def few(dim: str) -> Rows:
    """Of 30 keys: 1 changes, the first value of 2 was wrong, 3 never was, a late row of 4 arrives."""
    rows = [row for row in history(dim, 30) if row[1] != 3]
    corrected = [[*row[:4], "a2", *row[5:]] if row[1] == 2 and row[4] == "a" else row for row in rows]
    return [
        *corrected,
        [dim, 1, "2024-03-01", "U", "c", "north", 1],
        [dim, 4, "2024-01-15", "U", "x", "north", 4],
    ]


# name: rows of the first run, rows of the second
DIMS: dict[str, tuple[Rows, Rows]] = {
    "few": (history("few", 30), few("few")),
    "over": (history("over", 30), few("over")),
    "all": (history("all", 3), [[*row[:4], "z" + row[4], *row[5:]] for row in history("all", 3)]),
    "wide": (history("wide", 3), history("wide", 3)),
    "fixed": (history("fixed", 3), history("fixed", 3)),
    "kept": (history("kept", 3), history("kept", 3)),
    "grown": (history("grown", 3), history("grown", 3)),
    "narrowed": (history("narrowed", 3), history("narrowed", 3)),
    "no_rows": ([], []),
    # all keys are there, with their newest values from their first moments on; all history is gone
    "wiped": (
        history("wiped", 30),
        [[*row[:4], "b", *row[5:]] for row in history("wiped", 30) if row[4] == "a"],
    ),
    "ended": (history("ended", 30), deleted("ended", 30, 16)),
    "half": (history("half", 30), deleted("half", 30, 15)),
    # the version with the largest key goes
    "seq": (history("seq", 3), history("seq", 3)[:-1]),
    "seq_parquet": (history("seq_parquet", 3), history("seq_parquet", 3)[:-1]),
    "small": (history("small", 19), deleted("small", 19, 18)),
    "emptied_parquet": (history("emptied_parquet", 3), []),
    # of three that have ended two return: of one row per key, no version is lost
    "back": (deleted("back", 30, 3), returned("back", 30, 3, 2)),
}
REFUSED = {
    "wiped": ["max_removed_versions_ratio", "0.1 of the closed", "30 of 30 (1.00)"],
    "ended": ["max_removed_keys_ratio", "0.5 of the current keys", "16 of 30 (0.53)"],
    "emptied_parquet": ["3 of 3 (1.00), since the candidate is empty", "max_removed_versions"],
}
SEQUENCE = ["sk", "id", "version", "is_current"]
KEYS = {
    "healing_tables": {
        "surrogate_key": {"name": "sk", "strategy": "sequence"},
        "publish": "merge",
    }
}
ALLOW = "{max_removed_keys_ratio: 1, max_removed_versions_ratio: 1}"


def dim(lab: Lab, name: str, attributes: Any = ("name", "region"), **config: Any) -> None:
    source = (
        f"'relation': source('raw', 'crm'), 'changed_at': 'changed_at', 'where': \"dim = '{name}'\", "
        "'deleted_when': \"op = 'D'\""
    )
    wanted = list(attributes) if isinstance(attributes, tuple) else attributes
    lab.model(
        f"dim_{name}",
        f"{{{{ healing_tables.dimension({{'crm': {{{source}}}}}, attributes={wanted}) }}}}",
        materialized="healing_table",
        unique_key="id",
        **config,
    )


def commits(lab: Lab, name: str) -> list[str]:
    """Operations, oldest first."""
    rows = lab.spark.sql(f"describe history {lab.schema}.dim_{name}").collect()
    return [row["operation"] for row in reversed(rows)]


def southern_files(lab: Lab) -> list[str]:
    rows = lab.spark.sql(f"select distinct _metadata.file_path from {lab.schema}.dim_few where region = 'south'")
    return sorted(row[0] for row in rows.collect())


def told(lab: Lab, name: str) -> list[str]:
    start = f"healing_table {lab.schema}.dim_{name}: "
    lines = [text.removeprefix(start) for text in lab.log if text.startswith(start)]
    return [line for line in lines if not line.startswith("writing its row of ")]


@pytest.fixture(scope="module")
def built(lab: Lab, interpreted: None) -> Lab:
    """Three runs: the first state, the second one, and the second one again with the guards off."""
    lab.write(
        "models/schema.yml",
        f"version: 2\nsources: [{{name: raw, schema: {lab.schema}, tables: [{{name: crm}}]}}]\n"
        "models: [{name: dim_few, description: Who, columns: [{name: name, description: Called}]}]\n",
    )
    for name in DIMS:
        dim(lab, name)
    dim(
        lab,
        "few",
        partition_by="region",
        tblproperties={"delta.enableChangeDataFeed": "true"},
        persist_docs={"relation": True, "columns": True},
    )
    dim(lab, "over", meta={"healing_tables": {"publish": "overwrite"}})
    dim(lab, "all", meta={"healing_tables": {"publish": "merge"}})
    dim(lab, "emptied_parquet", file_format="parquet")
    dim(lab, "back", {"name": 1})
    dim(lab, "seq", meta=KEYS)
    dim(lab, "seq_parquet", meta=KEYS, file_format="parquet")
    dim(lab, "grown", ("points",))
    dim(lab, "narrowed", {"points": {"from": ["crm"], "type": "bigint"}})
    run(lab, 0)
    lab.notes["no_rows first"] = list(lab.results["dim_no_rows"])
    lab.notes["south"] = southern_files(lab)

    dim(lab, "wide", ("name", "points"), on_schema_change="sync_all_columns")
    dim(lab, "kept", ("name", "points"))
    dim(lab, "grown", {"points": {"from": ["crm"], "type": "bigint"}, "name": 2})
    dim(lab, "narrowed", ("points",))
    dim(lab, "fixed", ("name", "points"), on_schema_change="fail")
    run(lab, 1)
    for name, (status, message) in lab.results.items():
        lab.notes[f"{name} second"] = [status, message]
    lab.notes["told"] = told(lab, "few")
    lab.notes["told_wide"] = told(lab, "wide")
    lab.notes["few"] = commits(lab, "few")
    run(lab, 1, "--full-refresh", "--select", "dim_ended")
    lab.notes["dim_ended in full"] = list(lab.results["dim_ended"])

    bigint = {"points": {"from": ["crm"], "type": "bigint"}}
    dim(lab, "wide", bigint, on_schema_change="sync_all_columns")
    for name in ("seq", "seq_parquet"):
        lab.notes[name] = [str(row) for row in lab.rows(f"dim_{name}", *SEQUENCE)]
        DIMS[name][1].append([name, 1, "2024-03-01", "U", "c", "north", 1])
    dim(lab, "seq", ("name", "points"), meta=KEYS, on_schema_change="sync_all_columns")
    run(
        lab,
        1,
        "--vars",
        ALLOW,
        "--exclude",
        "dim_over",
        "dim_all",
        "dim_half",
        "dim_small",
        "dim_back",
    )
    return lab


def run(lab: Lab, state: int, *args: str) -> None:
    lab.table("crm", COLUMNS, [row for states in DIMS.values() for row in states[state]])
    lab.dbt("run", *args)


def test_rows_that_differ_are_merged_in_one_commit(built: Lab) -> None:
    # 1: one ends, one begins; 2: one corrected; 3: two go; 4: one ends early, one begins, one has another version
    # number
    assert built.notes["told"][-1].endswith("by a merge: 2 rows inserted, 4 updated, 2 deleted, 54 as they were")
    assert built.notes["few"].count("MERGE") == 1
    assert built.notes["few"][-1] == "MERGE"
    rows = built.rows("dim_few", "id", "name", "valid_from", "is_current", "version")
    assert [(row[0], row[1], str(row[2]), *row[3:]) for row in rows if row[0] <= 4] == [
        (1, "a", "2024-01-01", False, 1),
        (1, "b", "2024-02-01", False, 2),
        (1, "c", "2024-03-01", True, 3),
        (2, "a2", "2024-01-01", False, 1),
        (2, "b", "2024-02-01", True, 2),
        (4, "a", "2024-01-01", False, 1),
        (4, "b", "2024-02-01", True, 3),
        (4, "x", "2024-01-15", False, 2),
    ]
    assert built.rows("dim_few") == built.rows("dim_over")
    # only rows of the keys that differ are shuffled
    merge = built.spark.sql(f"describe history {built.schema}.dim_few").where("operation = 'MERGE'")
    assert "xxhash64" in merge.collect()[0]["operationParameters"]["predicate"]


def test_a_merge_leaves_other_files_and_tells_readers_what_changed(built: Lab) -> None:
    assert southern_files(built) == built.notes["south"]
    version = len(built.notes["few"]) - 1
    changes = built.spark.sql(
        f"select _change_type, count(*) from table_changes('{built.schema}.dim_few', {version}) group by 1"
    )
    assert dict(changes.collect()) == {
        "insert": 2,
        "delete": 2,
        "update_preimage": 4,
        "update_postimage": 4,
    }
    before = built.spark.sql(f"select count(*) from {built.schema}.dim_few version as of 0")
    assert before.collect()[0][0] == 60


def test_nothing_to_change_is_no_commit(built: Lab) -> None:
    assert commits(built, "few") == built.notes["few"]
    assert built.results["dim_few"] == ("success", "unchanged")
    assert told(built, "few")[-1].startswith("unchanged, nothing to publish: 0 rows inserted")


def test_the_way_can_be_chosen(built: Lab) -> None:
    assert commits(built, "over") == ["CREATE OR REPLACE TABLE AS SELECT"] * 2
    assert commits(built, "all") == ["CREATE OR REPLACE TABLE AS SELECT", "MERGE"]


@pytest.mark.parametrize("name", REFUSED)
def test_what_removes_too_much_is_refused(built: Lab, name: str) -> None:
    status, message = built.notes[f"dim_{name} second"]
    assert status == "error"
    for part in ["the target is unchanged", "wanted:", "got:", "--vars '{max_", *REFUSED[name]]:
        assert part in message, message
    assert "__candidate_" in message
    # and was published by the third run, which allows it
    assert built.results[f"dim_{name}"][0] == "success"
    after = [row[1] for row in DIMS[name][1] if row[3] != "D"]
    assert sorted(row[0] for row in built.rows(f"dim_{name}", "id")) == sorted(after)


def test_a_full_refresh_has_the_same_guards(built: Lab) -> None:
    status, message = built.notes["dim_ended in full"]
    assert status == "error" and "16 of 30 (0.53)" in message, message


@pytest.mark.parametrize("name", ["half", "small", "back"])
def test_what_the_guards_let_pass(built: Lab, name: str) -> None:
    assert built.notes[f"dim_{name} second"][0] == "success", built.notes[f"dim_{name} second"]


def test_columns_that_come_go_and_change(built: Lab) -> None:
    assert "column points (int) is new: added to all versions" in built.notes["told_wide"]
    assert "column region (string) is removed" in built.notes["told_wide"]
    assert "column points becomes bigint, it was int" in told(built, "wide")
    assert sorted(built.rows("dim_wide", "id", "points")) == [(1, 1), (2, 2), (3, 3)]
    status, message = built.results["dim_fixed"]
    assert status == "error"
    for part in ["on_schema_change: fail", "column points (int) is new", "column region"]:
        assert part in message


def test_by_default_no_column_and_no_value_is_lost(built: Lab) -> None:
    assert built.results["dim_grown"][0] == "success", built.results["dim_grown"]
    columns = {field.name: field.dataType for field in built.spark.table(f"{built.schema}.dim_grown").schema}
    assert columns["points"].simpleString() == "bigint" and "name" in columns
    for name, part in {
        "kept": "column region (string) is removed",
        "narrowed": "column points becomes int, it was bigint",
    }.items():
        status, message = built.results[f"dim_{name}"]
        assert status == "error", name
        for wanted in [part, "the target is unchanged", "sync_all_columns", "--full-refresh"]:
            assert wanted in message, message
    assert len(built.rows("dim_kept", "region")) == 6
    built.dbt("run", "--full-refresh", "--select", "dim_kept")
    assert built.results["dim_kept"][0] == "success", built.results["dim_kept"]
    assert len(built.rows("dim_kept", "points")) == 6


def test_a_first_build_without_rows_is_refused_unless_allowed(built: Lab) -> None:
    status, message = built.notes["no_rows first"]
    assert status == "error"
    for part in ["a candidate with rows", "--vars '{max_removed_keys_ratio: 1}'"]:
        assert part in message, message
    # the third run allows it; then an empty table stays empty
    assert built.results["dim_no_rows"][0] == "success", built.results["dim_no_rows"]
    assert built.dbt("run", "--select", "dim_no_rows")["dim_no_rows"] == ("success", "unchanged")


@pytest.mark.parametrize("name", ["seq", "seq_parquet"])
def test_integer_keys_stay_and_are_never_given_again(built: Lab, name: str) -> None:
    first = [(1, 1, 1, False), (2, 1, 2, True), (3, 2, 1, False), (4, 2, 2, True)]
    assert built.notes[name] == [str(row) for row in [*first, (5, 3, 1, True)]]
    # 6 was given to a version that is gone
    last = [(2, 1, 2, False), (3, 2, 1, False), (4, 2, 2, True), (5, 3, 1, True), (7, 1, 3, True)]
    assert built.rows(f"dim_{name}", *SEQUENCE) == [first[0], *last]


def test_integer_keys_survive_a_merge_and_an_overwrite(built: Lab) -> None:
    overwrite = "CREATE OR REPLACE TABLE AS SELECT"
    assert commits(built, "seq") == [overwrite, "MERGE", overwrite]


@pytest.mark.parametrize("name", ["seq", "seq_parquet"])
def test_integer_keys_survive_a_drop_and_numbers_of_others_are_not_given(built: Lab, name: str) -> None:
    table = f"{built.schema}.dim_{name}"
    before = built.rows(f"dim_{name}", *SEQUENCE)
    built.spark.sql(f"drop table {table}")
    built.dbt("run", "--select", f"dim_{name}")
    assert built.rows(f"dim_{name}", *SEQUENCE) == before
    if name == "seq":
        columns = ", ".join(field.name for field in built.spark.table(table).schema if field.name != "sk")
        built.spark.sql(f"insert into {table} select 20 as sk, {columns} from {table} where sk = 5")
    built.table(
        "crm",
        COLUMNS,
        [row for states in DIMS.values() for row in states[1]] + [[name, 9, "2024-03-01", "U", "n", "north", 1]],
    )
    built.dbt("run", "--select", f"dim_{name}", "--vars", ALLOW)
    assert built.results[f"dim_{name}"][0] == "success", built.results
    new = 21 if name == "seq" else 8
    assert built.rows(f"dim_{name}", *SEQUENCE) == sorted([*before, (new, 9, 1, True)], key=repr)


@pytest.mark.slow
def test_integer_keys_stay_where_key_and_moment_get_another_type(built: Lab) -> None:
    """Midnight in UTC is no midnight in Berlin; '01' is not 1."""
    source = f"'relation': api.Relation.create(schema='{built.schema}', identifier='zoned')"
    call = f"{{'crm': {{{source}, 'changed_at': 'at'}}}}, key_columns=['id'], attributes=['name']"
    built.model(
        "dim_zoned",
        f"{{{{ healing_tables.dimension({call}) }}}}",
        materialized="healing_table",
        unique_key="id",
        meta=KEYS,
    )
    name = ["name", "string"]
    built.table("zoned", [["id", "int"], ["at", "date"], name], [[1, "2024-01-01", "a"]])
    built.dbt("run", "--select", "dim_zoned")
    rows = [[key, "2024-01-01T00:00:00", "a"] for key in ("01", "1")]
    built.table("zoned", [["id", "string"], ["at", "timestamp"], name], rows)
    before = built.spark.conf.get("spark.sql.session.timeZone")
    built.spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        built.dbt("run", "--select", "dim_zoned")
    finally:
        built.spark.conf.set("spark.sql.session.timeZone", str(before))
    assert built.rows("dim_zoned", "id", "sk") == [("01", 2), ("1", 1)]


def test_empty_builds_without_the_guard(built: Lab) -> None:
    allowed = ["--vars", "{allow_sample: true}"]
    built.dbt("run", "--empty", "--select", "dim_few", *allowed)
    assert built.results["dim_few"][0] == "success", built.results["dim_few"]
    assert built.rows("dim_few") == []
