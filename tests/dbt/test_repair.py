"""repair: what it leaves of damaged tables, what it sets aside, and that it does nothing twice."""

from __future__ import annotations

import datetime as dt
import random
import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from damage import (
    COLUMNS,
    FOUND,
    HEALTHY,
    MENDED,
    OPEN,
    ROWS,
    SET_ASIDE,
    commits,
    operation,
    stored,
    table_told,
    tables,
)
from dbt.adapters.spark import session as dbt_session
from lab import Lab
from pages import blocks_of, table_of
from sessions import FORMAT, ROOT
from tables import plain_rows

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("interpreted")]
CREATED, MERGED, UPDATED = {
    "delta": ("CREATE OR REPLACE TABLE AS SELECT", "MERGE", "UPDATE"),
    "iceberg": ("overwrite", "overwrite", "overwrite"),
}[FORMAT]

# The same table as others name it: two key columns, timestamps, 'Y' and 'N', another end, a hash and a map.
ODD_COLUMNS = [
    ["shop `x`", "string"],
    ["order", "int"],
    ["it's a name", "string"],
    ["from", "timestamp"],
    ["valid to", "timestamp"],
    ["scd active", "string"],
    ["no.", "bigint"],
    ["row_hash", "string"],
]
ODD_END = "2999-12-31 12:00:00"
ODD: dict[str, Any] = {
    "key_columns": ["shop `x`", "order"],
    "valid_from": "from",
    "valid_to": "valid to",
    "is_current": "scd active",
    "version": "no.",
    "tracked_columns": ["it's a name"],
    "current_values": ["Y", "N"],
    "valid_to_current": ODD_END,
}
# A table with neither flag nor version, whose open end is NULL.
BARE_COLUMNS = COLUMNS[:4]
BARE: dict[str, Any] = {
    "key_columns": "id",
    "valid_to_current": None,
    "tracked_columns": ["name"],
}
# Built by hand from the rules: what there is to find where flag and version are not there.
BARE_FOUND = {kind: row for kind, row in FOUND.items() if kind not in (
    "null_end", "no_current", "wrong_flag", "wrong_version")}  # fmt: skip
BARE_FOUND |= {"several_current": ("2 keys", "id = 2; id = 5")}


# With current_while_deleted the last version keeps its flag when it ends, others do not.
KEPT = [
    [1, "a", "2024-01-01", "2024-03-01", True, 1],
    [2, "a", "2024-01-01", "2024-03-01", True, 1],
    [2, "b", "2024-03-01", OPEN, True, 2],
]


def as_odd(row: list[Any]) -> list[Any]:
    at = [value and {OPEN: ODD_END}.get(value, f"{value} 06:30:00.000001") for value in row[2:4]]
    flag = {True: "Y", False: "N", None: None}[row[4]]
    return ["north", row[0], row[1], *at, flag, row[5], f"h{row[1]}"]


def as_bare(row: list[Any]) -> list[Any]:
    return [*row[:3], None if row[3] == OPEN else row[3]]


# A random table: 300 keys of 1 to 5 versions, half of them damaged.
RANDOM_COLUMNS = [["a", "int"], ["b", "string"], *COLUMNS[1:], ["sk", "bigint"]]
Row = list[Any]


def good_key(choose: random.Random, key: int, sk: int) -> list[Row]:
    days = sorted(choose.sample(range(1, 300), choose.randint(2, 6)))
    rows: list[Row] = []
    for first, last in pairwise(days):
        if rows and choose.random() < 0.15:
            continue  # a gap
        name = choose.choice([n for n in "abc" if not rows or n != rows[-1][2]])
        rows.append([key % 5, f"k{key}", name, day(first), day(last), False, len(rows) + 1, 0])
    if choose.random() < 0.8:
        rows[-1][4:6] = [OPEN, True]
    for number, row in enumerate(rows):
        row[7] = sk + number
    return rows


LIVE = """
{{ healing_tables.dimension({
    'live': {'relation': api.Relation.create(schema=target.schema, identifier='live'), 'changed_at': 'at'}}) }}
"""


def day(number: int) -> str:
    return str(dt.date(2024, 1, 1) + dt.timedelta(days=number))


def damaged_key(choose: random.Random, rows: list[Row]) -> list[Row]:
    rows = [list(row) for row in rows]
    for _ in range(choose.randint(1, 3)):
        row = choose.choice(rows)
        kind = choose.randrange(9)
        if kind == 0:
            row[4:6] = [OPEN, True]
        elif kind == 1:
            rows.append(list(row))
        elif kind == 2:
            row[4] = day(choose.randint(0, 300))
        elif kind == 3:
            row[3] = choose.choice([None, day(choose.randint(0, 300))])
        elif kind == 4:
            row[5] = choose.choice([None, not row[5]])
        elif kind == 5:
            row[6] = choose.choice([None, 0, 9])
        elif kind == 6:
            row[4] = None
        elif kind == 7:
            rows.append([*row[:2], "z", *row[3:7], row[7] + 50])
        else:
            row[2] = choose.choice("abc")
    return rows


def random_rows(seed: int) -> tuple[list[Row], dict[Any, list[Row]]]:
    """All rows, and those of the keys that nobody has touched."""
    choose = random.Random(seed)
    rows: list[Row] = []
    healthy: dict[Any, list[Row]] = {}
    for key in range(300):
        mine = good_key(choose, key, 100 * key)
        if choose.random() < 0.5:
            healthy[key % 5, f"k{key}"] = mine
        else:
            mine = damaged_key(choose, mine)
        rows += mine
    rows += [[None, "k", *row[2:]] for row in rows[:3]]
    return rows, healthy


def is_open(end: str | None) -> bool:
    return end is None or end >= OPEN


def can_stay(row: Row) -> bool:
    if None in row[:2] or row[3] is None or is_open(row[3]):
        return False
    return row[4] is None or row[3] < row[4]


def place(row: Row) -> tuple[Any, ...]:
    """Of rows with one start the last one by this stays."""
    values = [row[5] is True, is_open(row[4]), row[4], row[6], *row]
    return tuple((value is not None, value) for value in values)


def mend(rows: list[Row]) -> tuple[list[Row], list[Row]]:
    """The rules of a repair, slowly: the rows that stay, as they will be, and those set aside."""
    after: list[Row] = []
    aside: list[Row] = []
    keys: dict[Any, list[Row]] = {}
    for row in rows:
        mine = keys.setdefault((row[0], row[1]), [])
        if row not in mine:
            mine.append(row)
    for mine in keys.values():
        aside += [row for row in mine if not can_stay(row)]
        versions: list[Row] = []
        starts: dict[str, list[Row]] = {}
        for row in filter(can_stay, mine):
            starts.setdefault(row[3], []).append(row)
        for start, following in zip(sorted(starts), [*sorted(starts)[1:], None], strict=False):
            *others, stays = sorted(starts[start], key=place)
            aside += others
            end = min(stays[4] or OPEN, following or OPEN)
            last = versions[-1] if versions else None
            if last and last[4] == start and last[2] == stays[2]:
                last[4] = end
                aside.append(stays)
            else:
                versions.append([*stays[:4], end, *stays[5:]])
        for number, row in enumerate(versions, start=1):
            row[5:7] = [is_open(row[4]), number]
        after += versions
    return after, aside


RANDOM: dict[str, Any] = {"key_columns": ["a", "b"], "tracked_columns": ["name"]}


# A model with names of its own and integer keys.
SEQUENCE = "select 1 as id, 'a' as name, date '2024-01-01' as since, date '2024-02-01' as until, 'N' as active"
SEQUENCE += " union all select 1, 'b', date '2024-02-01', null, 'Y'"
SEQUENCE_CONFIG: dict[str, Any] = {
    "unique_key": "id",
    "meta": {
        "healing_tables": {
            "column_names": {
                "valid_from": "since",
                "valid_to": "until",
                "is_current": "active",
                "version": None,
                "key_hash": None,
                "row_hash": None,
                "compressed_row_count": None,
            },
            "valid_to_current": None,
            "current_values": ["Y", "N"],
            "tracked_columns": ["name"],
            "surrogate_key": {"name": "sk", "strategy": "sequence"},
        }
    },
}

# The example of docs/operations.md: the table before and after.
PAGE = (ROOT / "docs" / "operations.md").read_text()
DOCUMENTED = [
    table_of(block) for block in blocks_of(PAGE) if block.kind == "table" and block.lines[0].startswith("| player_id")
]
DOC_COLUMNS = [["player_id", "int"], ["tier", "string"], *COLUMNS[2:]]


def typed(cell: str) -> Any:
    return {"true": True, "false": False}.get(cell, int(cell) if cell.isdigit() else cell)


def overtaken(lab: Lab, pattern: str, change: str) -> Callable[..., None]:
    """dbt's way to run a statement, with another writer before the first one that the pattern finds."""
    execute, changes = dbt_session.Cursor.execute, [change]

    def after_another_writer(cursor: Any, sql: str, *parameters: Any) -> None:
        if changes and re.search(pattern, sql):
            lab.spark.sql(changes.pop())
        execute(cursor, sql, *parameters)

    return after_another_writer


@pytest.fixture(scope="module")
def mended(lab: Lab, interpreted: None) -> dict[str, Any]:
    """What was said and what there was, by name."""
    seen: dict[str, Any] = {}

    def look(name: str, table: str, **arguments: Any) -> None:
        seen[name] = operation(lab, "repair", dimension=f"{lab.schema}.{table}", **arguments)
        seen[f"{name} commits"] = commits(lab, table)
        seen[f"{name} tables"] = tables(lab)

    plain: dict[str, Any] = {"key_columns": ["id"], "tracked_columns": ["name"]}
    stored(lab, "dim_plain", COLUMNS, ROWS, partitioned="partitioned by (is_current)")
    look("dry", "dim_plain", **plain)
    look("plain", "dim_plain", **plain, dry_run=False)
    look("again", "dim_plain", **plain, dry_run=False)

    stored(lab, "dim_odd", ODD_COLUMNS, [as_odd(row) for row in ROWS])
    look("odd", "dim_odd", **ODD, dry_run=False)

    stored(lab, "dim_bare", BARE_COLUMNS, [as_bare(row) for row in ROWS])
    look("bare", "dim_bare", **BARE, dry_run=False)

    stored(lab, "dim_kept", COLUMNS, KEPT)
    seen["kept"] = operation(
        lab,
        "repair",
        "--vars",
        "{healing_tables: {current_while_deleted: true}}",
        dimension=f"{lab.schema}.dim_kept",
        **plain,
        dry_run=False,
    )

    for name, seed in (("dim_random", None), ("dim_shuffled", 1)):
        rows, _ = random_rows(7)
        if seed is not None:
            random.Random(seed).shuffle(rows)
        stored(lab, name, RANDOM_COLUMNS, rows)
        look(name, name, **RANDOM, dry_run=False)
    look("random again", "dim_random", **RANDOM, dry_run=False)

    before, _ = DOCUMENTED
    stored(lab, "dim_doc", DOC_COLUMNS, [[typed(cell) for cell in row] for row in before.rows])
    look("doc", "dim_doc", key_columns="player_id", tracked_columns="tier", dry_run=False)

    lab.model("dim_seq", SEQUENCE, materialized="healing_table", **SEQUENCE_CONFIG)
    lab.table("live", [["id", "int"], ["at", "date"], ["name", "string"]], [[1, "2024-01-01", "a"]])
    lab.model("dim_live", LIVE, materialized="healing_table", unique_key="id")
    lab.dbt("run")
    lab.spark.sql(f"insert into {lab.schema}.dim_live select * from {lab.schema}.dim_live")
    seen["live"] = operation(lab, "repair", dimension="dim_live")
    seen["seq built"] = found(lab, "dim_seq", "sk", "id", "name", "until")
    lab.spark.sql(
        f"insert into {lab.schema}.dim_seq select 9, id, 'c', until, since, active "
        f"from {lab.schema}.dim_seq where name = 'a'"
    )
    seen["seq"] = operation(lab, "repair", dimension="dim_seq", dry_run=False)
    seen["seq keys"] = lab.rows("dim_seq__keys", "key", "surrogate_key")

    lab.table("dim_parquet", COLUMNS, ROWS)
    seen["parquet"] = operation(lab, "repair", dimension=f"{lab.schema}.dim_parquet", **plain, dry_run=False)
    stored(lab, "dim_raced", COLUMNS, ROWS)
    with pytest.MonkeyPatch.context() as patch:
        change = f"update {lab.schema}.dim_raced set name = 'new' where id = 2 and version = 2"
        patch.setattr(dbt_session.Cursor, "execute", overtaken(lab, r"merge into \S+\.dim_raced[ .]", change))
        look("raced", "dim_raced", **plain, dry_run=False)
    seen["raced aside"] = len(lab.rows("dim_raced__set_aside"))
    look("after the race", "dim_raced", **plain, dry_run=False)
    swapped = [[key, "a", day(1), OPEN, True, 1] for key in range(20)]
    stored(lab, "dim_swapped", COLUMNS, swapped)
    look(
        "swapped",
        "dim_swapped",
        key_columns="id",
        valid_from="valid_to",
        valid_to="valid_from",
        dry_run=False,
    )
    return seen


def shown(rows: list[list[Any]]) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in rows), key=repr)


def found(lab: Lab, name: str, *columns: str) -> list[tuple[Any, ...]]:
    """Rows of a table with dates as text."""
    frame = lab.spark.table(f"{lab.schema}.`{name}`")
    kinds = dict(frame.dtypes)
    picked = [
        frame[f"`{column}`"].cast("string" if kinds[column] == "date" else kinds[column])
        for column in columns or frame.columns
    ]
    return plain_rows(frame.select(*picked))


def test_a_dry_run_tells_and_writes_nothing(mended: dict[str, Any]) -> None:
    assert {kind: row[:2] for kind, row in table_told(mended["dry"]).items()} == FOUND
    text = "\n".join(mended["dry"])
    assert "would change 10 rows and remove 7, of which 6 set aside, in 13 keys" in text
    assert "no_overlaps 0, valid_order 0, no_consecutive_duplicates 0, no_gaps 1" in text
    assert "nothing was written" in text
    assert mended["dry commits"] == [CREATED]
    assert mended["dry tables"] == ["dim_plain"]


def test_every_kind_is_mended_in_one_commit(lab: Lab, mended: dict[str, Any]) -> None:
    assert found(lab, "dim_plain") == shown(MENDED + HEALTHY)
    assert mended["plain commits"] == [CREATED, MERGED]
    text = "\n".join(mended["plain"])
    assert "changes 10 rows and removes 7, of which 6 set aside, in 13 keys" in text
    before, after = (version for version, _ in lab.commits("dim_plain"))
    assert f"status published, version {before} -> {after}" in text
    assert mended["plain tables"] == ["dim_plain", "dim_plain__set_aside", "healing_log"]


def test_a_repair_leaves_a_row_in_the_log(lab: Lab, mended: dict[str, Any]) -> None:
    rows = lab.spark.sql(
        "select status, rows_changed, rows_removed, keys_affected, version_before, version_after "
        f"from {lab.schema}.healing_log where dimension = 'dim_plain' and mode = 'repair' order by finished_at"
    ).collect()
    before, after = (version for version, _ in lab.commits("dim_plain"))
    assert [tuple(row) for row in rows] == [
        ("published", 10, 7, 13, before, after),
        ("unchanged", 0, 0, 0, after, after),
    ]


def test_rows_taken_out_are_kept_with_the_reason(lab: Lab, mended: dict[str, Any]) -> None:
    rows = lab.spark.table(f"{lab.schema}.dim_plain__set_aside").collect()
    assert {(row["id"], row["name"]): row["set_aside_reason"] for row in rows} == SET_ASIDE
    assert len(rows) == len(SET_ASIDE)
    assert all(row["set_aside_at"] and len(row["set_aside_by"]) == 36 for row in rows)
    lost = next(row for row in rows if row["id"] == 9)
    assert (lost["valid_from"], str(lost["valid_to"]), lost["version"]) == (None, "2024-03-01", 1)


def test_a_second_repair_does_nothing(mended: dict[str, Any]) -> None:
    for first, again in (("plain", "again"), ("dim_random", "random again")):
        assert mended[f"{first} commits"] == mended[f"{again} commits"]
        text = "\n".join(mended[again])
        assert "nothing to repair, nothing was written" in text
        assert "status unchanged" in text
        assert set(table_told(["  a | b | c | d", *mended[again]])) <= {
            "gap",
            "kind",
        }


def test_names_types_and_values_of_others(lab: Lab, mended: dict[str, Any]) -> None:
    expected = lab.frame(ODD_COLUMNS, [as_odd(row) for row in MENDED + HEALTHY])
    assert lab.rows("dim_odd") == plain_rows(expected)
    assert len(lab.rows("dim_odd__set_aside")) == len(SET_ASIDE)
    assert mended["odd commits"][1:] == [MERGED]
    bare = [as_bare(row) for row in MENDED + HEALTHY]
    assert found(lab, "dim_bare") == shown(bare)
    told = {kind: row[:2] for kind, row in table_told(mended["bare"]).items()}
    assert told == BARE_FOUND
    text = "\n".join(mended["bare"])
    assert "missing or not named: no_current, wrong_flag, wrong_version" in text


def test_the_last_version_may_keep_its_flag(lab: Lab, mended: dict[str, Any]) -> None:
    told = {kind: row[:2] for kind, row in table_told(mended["kept"]).items()}
    assert told == {
        "several_current": ("1 key", "id = 2"),
        "wrong_flag": ("1 row", "id = 2"),
    }
    second = [2, "a", "2024-01-01", "2024-03-01", False, 1]
    assert found(lab, "dim_kept") == shown([KEPT[0], second, KEPT[2]])


def test_random_damage_is_mended_and_healthy_keys_stay(lab: Lab, mended: dict[str, Any]) -> None:
    rows, healthy = random_rows(7)
    after = [list(row) for row in found(lab, "dim_random")]
    aside = [list(row[:8]) for row in found(lab, "dim_random__set_aside")]
    keys: dict[Any, list[Row]] = {}
    for row in after:
        keys.setdefault((row[0], row[1]), []).append(row)
    expected = mend(rows)
    assert shown(after) == shown(expected[0])
    assert shown(aside) == shown(expected[1])
    assert len(healthy) > 100
    for key, mine in healthy.items():
        assert shown(keys[key]) == shown(mine)
    for key, mine in keys.items():
        assert None not in key
        mine.sort(key=lambda row: row[3])
        assert [row[6] for row in mine] == list(range(1, len(mine) + 1))
        assert [row[5] for row in mine] == [row[4] == OPEN for row in mine]
        assert all(row[3] < row[4] for row in mine)
        for one, two in pairwise(mine):
            assert one[4] <= two[3]
            assert not (one[4] == two[3] and one[2] == two[2])
    # nothing is lost: key, name, start and surrogate key of each row that was there
    kept = {tuple(row[:4] + row[7:8]) for row in after + aside}
    assert kept == {tuple(row[:4] + row[7:8]) for row in rows}
    distinct = {tuple(row) for row in rows}
    assert len(after) + len(aside) == len(distinct)
    assert {tuple(row) for row in aside} <= distinct


def test_the_order_of_rows_does_not_matter(lab: Lab, mended: dict[str, Any]) -> None:
    assert lab.rows("dim_random") == lab.rows("dim_shuffled")
    columns = [name for name, _ in RANDOM_COLUMNS] + ["set_aside_reason"]
    assert lab.rows("dim_random__set_aside", *columns) == lab.rows("dim_shuffled__set_aside", *columns)


def test_another_writer_is_seen_and_a_dead_run_is_taken_up(lab: Lab, mended: dict[str, Any]) -> None:
    assert "another writer" in "\n".join(mended["raced"])
    assert mended["raced commits"] == [CREATED, UPDATED]
    assert mended["raced aside"] == len(SET_ASIDE)
    # what the dead run had set aside is there once
    assert len(lab.rows("dim_raced__set_aside")) == len(SET_ASIDE)
    renamed = [[*row[:1], "new", *row[2:]] if row[:2] == [2, "b"] else row for row in MENDED]
    assert found(lab, "dim_raced") == shown(renamed + HEALTHY)


def test_a_model_brings_its_names_and_integer_keys_are_not_given_twice(lab: Lab, mended: dict[str, Any]) -> None:
    text = "\n".join(mended["seq"])
    assert "key id; valid_from since, valid_to until, is_current active (Y); open end NULL" in text
    assert "status published" in text and "rebuilds the table" not in text  # its model does not call dimension()
    assert len(mended["seq built"]) == 2
    assert found(lab, "dim_seq", "sk", "id", "name", "until") == mended["seq built"]
    # 9 left with its row, and stays taken
    assert mended["seq keys"] == [("1", 1), ("1", 2), (None, 9)]


def test_a_model_that_can_rebuild_its_table_is_named(lab: Lab, mended: dict[str, Any]) -> None:
    text = "\n".join(mended["live"])
    assert "dbt run --select dim_live --full-refresh rebuilds the table from them" in text


def test_the_example_of_the_documentation(lab: Lab, mended: dict[str, Any]) -> None:
    _, after = DOCUMENTED
    assert found(lab, "dim_doc") == shown([[typed(cell) for cell in row] for row in after.rows])
    printed = [line for line in mended["doc"] if line.startswith("  ") and " | " in line]
    assert "\n".join(printed) in PAGE


def test_what_cannot_be_repaired_is_refused(lab: Lab, mended: dict[str, Any]) -> None:
    if FORMAT == "delta":  # a catalog of Iceberg has no parquet tables
        text = "\n".join(mended["parquet"])
        assert "wanted: a table in delta or iceberg, which takes a repair in one commit" in text
        assert "has 1 mistake;" in text and "using delta" in text
    text = "\n".join(mended["swapped"])
    assert "got:    20 of 20" in text and "max_removed_keys_ratio: 1" in text
    assert "status refused" in text
    assert mended["swapped commits"] == [CREATED]
