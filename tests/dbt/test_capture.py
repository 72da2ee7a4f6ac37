"""A source that only has its current state becomes a change log."""

from __future__ import annotations

import random
import re
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from damage import operation
from dbt.adapters.spark import session as dbt_session
from lab import Lab, scripted
from sessions import FORMAT

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("interpreted")]
COLUMNS = [["which", "string"], ["id", "int"], ["code", "string"], ["name", "string"]]
COLUMNS += [["amount", "double"]]
Rows = list[list[Any]]


def people(*rows: tuple[int | None, str | None]) -> Rows:
    return [[key, "x", name, 1.5] for key, name in rows]


def numbered(keys: range) -> Rows:
    return people(*[(key, "a") for key in keys])


def random_state(round_no: int) -> Rows:
    """Keys come, go and return, values change and change back; NULL, -0.0 and NaN are among them."""
    rng = random.Random(round_no)
    return [
        [key, code, rng.choice(("a", "b", None)), rng.choice((0.0, -0.0, float("nan"), None))]
        for key in range(30)
        for code in ("x", "X")
        if rng.random() < 0.7
    ]


# model: what the select gives in the first, second and third run
STATES: dict[str, list[Rows]] = {
    "plain": [
        people((1, "a"), (2, "b"), (3, None), (4, "d")),
        people((1, "a"), (2, "b2"), (3, "x"), (5, "e"), (None, "nobody")),
        people((1, "a"), (3, "x"), (4, "d"), (5, None)),
    ],
    "part": [people((1, "a"), (2, "b")), people((2, "c")), []],
    "odd": [people((1, "a"), (2, "b")), people((1, "a2")), people((1, "a2"))],
    "guard": [numbered(range(30)), numbered(range(16, 30)), []],
    "twice": [numbered(range(3)), numbered(range(9)) + numbered(range(1, 8)), numbered(range(3))],
    "wide": [people((1, "a"), (2, "b"))] * 3,
    "ahead": [people((1, "a")), [], people((1, "b"))],
    "random": [random_state(number) for number in range(4)],
}
ALLOW = ["--vars", "{max_removed_keys_ratio: 1}"]


def capture(lab: Lab, name: str, columns: str = "id, name", **config: Any) -> None:
    """Options of the package by their names, those of dbt beside them."""
    dbt = {key: config.pop(key) for key in list(config) if key in STANDARD}
    lab.model(
        f"cap_{name}",
        f"select {columns} from {{{{ source('raw', 'state') }}}} where which = '{name}'",
        materialized="capture",
        **({"unique_key": "id"} | dbt),
        **({"meta": {"healing_tables": config}} if config else {}),
    )


# the commits of an empty log with its clustering, and of each run that appends
EMPTY, APPEND = {"delta": (["CREATE TABLE AS SELECT", "CLUSTER BY"], "MERGE"), "iceberg": (["append"], "append")}[
    FORMAT
]
as_delta_refuses = pytest.mark.skipif(FORMAT != "delta", reason="runs the statement of an earlier run on the table")
STANDARD = ("unique_key", "on_schema_change", "persist_docs", "pre_hook", "alias", "tblproperties")


def run(lab: Lab, number: int, *args: str) -> None:
    rows = [[name, *row] for name, states in STATES.items() for row in (states[number] if number < len(states) else [])]
    lab.table("state", COLUMNS, rows)
    lab.dbt("run", *args)
    for name, (status, message) in lab.results.items():
        lab.notes[f"{name} {number}"] = [status, message]
    lab.notes[f"log {number}"] = lab.log


def versions(lab: Lab, name: str) -> list[str]:
    """Operations, oldest first."""
    return [operation for _, operation in lab.commits(f"cap_{name}")]


def told(lab: Lab, name: str, number: int) -> list[str]:
    start = f"capture {lab.schema}.cap_{name}: "
    lines = [t.removeprefix(start) for t in lab.notes[f"log {number}"] if t.startswith(start)]
    return [line for line in lines if not line.startswith("writing its row of ")]


def log_rows(
    lab: Lab, name: str, *columns: str, at: str = "captured_at", gone: str = "is_deleted"
) -> list[tuple[Any, ...]]:
    """Rows with the place of their moment among the moments of the log."""
    rows = lab.rows(f"cap_{name}", at, *columns, gone)
    moments = sorted({row[0] for row in rows})
    return sorted(((moments.index(row[0]), *row[1:]) for row in rows), key=repr)


def table_of_moments(lab: Lab) -> list[Any]:
    rows = lab.spark.sql(f"select distinct captured_at from {lab.schema}.cap_random order by 1")
    return [row[0] for row in rows.collect()]


@pytest.fixture(scope="module")
def built(lab: Lab, interpreted: None) -> Lab:
    lab.write(
        "models/schema.yml",
        f"version: 2\nsources: [{{name: raw, schema: {lab.schema}, tables: [{{name: state}}]}}]\n"
        "models: [{name: cap_plain, description: Who, columns: [{name: name, description: Called}]}]\n",
    )
    for name in STATES:
        capture(lab, name)
    capture(
        lab,
        "plain",
        persist_docs={"relation": True, "columns": True},
        pre_hook=f"create or replace view {lab.schema}.hooked as select 1 as a",
        tblproperties={"delta.enableChangeDataFeed": "true"},
    )
    capture(lab, "part", on_absence="ignore")
    odd = "id as `a key`, code as `select`, name as `na``me`, name as key_1, 1 as state"
    capture(lab, "odd", odd, unique_key=["a key", "select"], captured_at="seen at", deleted="gone?")
    capture(lab, "random", "id, code, name, amount", unique_key=["id", "code"])
    run(lab, 0)

    capture(lab, "wide", "id, name, amount as `an amount`")
    run(lab, 1)

    capture(lab, "wide", "id, id as name, amount", on_schema_change="fail")
    lab.spark.sql(f"insert into {lab.schema}.cap_ahead values (1, 'a', timestamp '2999-01-01', false)")
    run(lab, 2, *ALLOW)
    lab.notes["plain"] = [repr(row) for row in log_rows(lab, "plain", "id", "name")]

    # as if the third run had been killed before its commit, and the first one of `part` before its first
    lab.notes["part"] = versions(lab, "part")
    lab.restore("cap_plain", before_append(lab, "plain"))
    lab.restore("cap_part", lab.commits("cap_part")[0][0])
    STATES["plain"].append(STATES["plain"][2])
    STATES["part"].append(STATES["part"][0])
    run(lab, 3, "--select", "cap_plain", "cap_part", "cap_random", *ALLOW)
    return lab


def before_append(lab: Lab, name: str) -> int:
    """The version before the newest commit that appended rows."""
    commits = lab.commits(f"cap_{name}")
    return commits[max(at for at, (_, operation) in enumerate(commits) if operation == APPEND) - 1][0]


def test_what_is_new_changed_or_gone_is_appended(built: Lab) -> None:
    assert log_rows(built, "plain", "id", "name") == [
        (0, 1, "a", False),
        (0, 2, "b", False),
        (0, 3, None, False),
        (0, 4, "d", False),
        (1, 2, "b2", False),
        (1, 3, "x", False),
        (1, 4, "d", True),
        (1, 5, "e", False),
        (2, 2, "b2", True),
        (2, 4, "d", False),
        (2, 5, None, False),
    ]
    assert told(built, "plain", 1)[-1].endswith("Z: 1 new, 2 changed, 1 gone")
    table = built.spark.table(f"{built.schema}.cap_plain")
    assert table.columns == ["id", "name", "captured_at", "is_deleted"]
    assert dict(table.dtypes)["captured_at"] == "timestamp"


def test_each_run_is_one_commit_and_none_if_nothing_is_new(built: Lab) -> None:
    assert built.notes["part"] == [*EMPTY, APPEND, APPEND]
    assert built.notes["cap_part 2"] == ["success", "unchanged"]
    assert told(built, "part", 2)[-1] == "unchanged, nothing to append: 0 new, 0 changed, 0 gone"
    assert built.notes["cap_odd 2"] == ["success", "unchanged"]


def test_each_run_has_a_row_in_the_log_of_builds(built: Lab) -> None:
    found = built.spark.sql(
        "select mode, status, rows_added, rows_changed, rows_removed, rows_unchanged, rows_set_aside "
        f"from {built.schema}.healing_log where dimension = 'cap_plain' order by finished_at"
    )
    # appended, rows that the log had before, set aside; the last run repeats the third, whose commit was undone
    counts = [(4, 0, 0), (4, 4, 1), (3, 8, 0), (3, 8, 0)]
    assert [tuple(row) for row in found.collect()] == [
        ("capture", "published", added, 0, 0, before, aside) for added, before, aside in counts
    ]
    unchanged = built.spark.sql(
        "select rows_added, rows_unchanged "
        f"from {built.schema}.healing_log where dimension = 'cap_odd' and status = 'unchanged'"
    )
    assert [tuple(row) for row in unchanged.collect()] == [(0, 4)]


def test_health_of_captures(built: Lab) -> None:
    capture(built, "grows", "id, name")
    found = []
    for keys in (20, 25, 25, 60):
        built.table("state", COLUMNS, [["grows", key, "x", "a", 1.5] for key in range(keys)])
        built.dbt("run", "--select", "cap_grows")
        lines = operation(built, "health", max_age_hours=1000)
        (line,) = (line for line in lines if line.strip().startswith(f"{built.schema}.cap_grows ") and "|" in line)
        found.append([cell.strip() for cell in line.split("|")][2:])
    assert [(status, rows, finding) for status, _, rows, finding in found] == [
        ("published", "20", ""),
        ("published", "25", ""),
        ("unchanged", "25", ""),
        ("published", "60", "growing"),
    ]
    assert any("is growing" in line for line in lines) and any("at most 0.5 of 25 rows" in line for line in lines)


def test_rows_without_a_key_are_set_aside_and_counted(built: Lab) -> None:
    assert any("1 row of the select set aside" in text for text in built.notes["log 1"])


def test_a_select_of_some_rows_says_nothing_of_the_others(built: Lab) -> None:
    assert told(built, "part", 1)[-1].endswith("Z: 0 new, 1 changed, 0 gone")


def test_any_column_name_works(built: Lab) -> None:
    rows = log_rows(built, "odd", "a key", "select", "na``me", "key_1", "state", at="seen at", gone="gone?")
    assert rows == [
        (0, 1, "x", "a", "a", 1, False),
        (0, 2, "x", "b", "b", 1, False),
        (1, 1, "x", "a2", "a2", 1, False),
        (1, 2, "x", "b", "b", 1, True),
    ]


REFUSED = {
    "guard": ["max_removed_keys_ratio", "0.5 of the current keys", "16 of 30 (0.53)", "--vars"],
    "ahead": ["1 of 1 (1.00), since the candidate is empty", "--vars"],
    "twice": [
        "one row per key",
        "7 keys with several rows",
        "id = 1; id = 2; id = 3; id = 4; id = 5",
    ],
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_right_is_refused_before_anything_is_written(built: Lab, name: str) -> None:
    status, message = built.notes[f"cap_{name} 1"]
    assert status == "error"
    for part in [f"capture {built.schema}.cap_{name}: refused", "remedy:", *REFUSED[name]]:
        assert part in message, message
    assert "id = 6" not in message


def test_the_guard_is_opened_for_one_run(built: Lab) -> None:
    assert built.notes["cap_guard 2"][0] == "success", built.notes["cap_guard 2"]
    gone = [(1, key, True) for key in range(30)]
    assert [row for row in log_rows(built, "guard", "id") if row[0]] == sorted(gone, key=repr)


def test_columns_that_come_are_added_and_none_is_lost(built: Lab) -> None:
    assert log_rows(built, "wide", "id", "name", "an amount") == [
        (0, 1, "a", None, False),
        (0, 2, "b", None, False),
        (1, 1, "a", 1.5, False),
        (1, 2, "b", 1.5, False),
    ]
    status, message = built.notes["cap_wide 2"]
    assert status == "error"
    for part in [
        "select cast(null as double) as `an amount`",
        "the type in the log, string",
        "on_schema_change: fail",
        "new columns amount",
    ]:
        assert part in message, message


def test_a_log_that_is_ahead_of_the_clock_is_refused(built: Lab) -> None:
    status, message = built.notes["cap_ahead 2"]
    assert status == "error"
    for part in ["captured_at", "2999-01-01 00:00:00.000000Z", "the clock of the warehouse"]:
        assert part in message


def test_a_run_that_was_killed_is_made_good_by_the_next(built: Lab) -> None:
    assert [repr(row) for row in log_rows(built, "plain", "id", "name")] == built.notes["plain"]
    first = [(0, 1, "a", False), (0, 2, "b", False)]
    assert [row for row in log_rows(built, "part", "id", "name") if not row[0]] == first


def test_dbt_does_what_it_always_does(built: Lab) -> None:
    described = built.spark.sql(f"describe table extended {built.schema}.cap_plain").collect()
    comments = {row[0]: row[2] for row in described[:4]}
    assert comments["name"] == "Called"
    assert ("Comment", "Who") in [(row[0], row[1]) for row in described]
    assert built.spark.table(f"{built.schema}.hooked").count() == 1
    properties = built.spark.sql(f"show tblproperties {built.schema}.cap_plain").collect()
    assert ("delta.enableChangeDataFeed", "true") in [tuple(row) for row in properties]
    tables = [row[1] for row in built.spark.sql(f"show tables in {built.schema}").collect()]
    left = {name.split("__")[0] for name in tables if "__candidate_" in name}
    assert left == {"cap_guard", "cap_ahead", "cap_twice", "cap_wide"}


def test_a_dimension_from_the_log_is_that_of_full_snapshots(built: Lab) -> None:
    """Byte for byte, hashes included; the calendar knows every capture."""
    moments = table_of_moments(built)
    assert len(moments) == len(STATES["random"])
    rows = [(*row, moment) for state, moment in zip(STATES["random"], moments, strict=True) for row in state]
    kinds = "id int, code string, name string, amount double, at timestamp"
    for name, data, schema in (
        ("snaps", rows, kinds),
        ("days", [(moment,) for moment in moments], "at timestamp"),
    ):
        frame = built.spark.createDataFrame(data, schema)
        frame.write.mode("overwrite").saveAsTable(f"{built.schema}.{name}", format="parquet")
    raw = "api.Relation.create(schema=target.schema, identifier='%s')"
    options = {
        "log": f"{{'relation': {raw % 'cap_random'}, 'changed_at': 'captured_at', 'deleted_when': 'is_deleted'}}",
        "snapshots": f"{{'relation': {raw % 'snaps'}, 'snapshot_at': 'at', 'calendar': {raw % 'days'}}}",
    }
    for name, source in options.items():
        built.model(
            f"dim_{name}",
            f"{{{{ healing_tables.dimension({{'s': {source}}}, ['id', 'code']) }}}}",
            materialized="table",
            file_format="parquet",
        )
    built.dbt("run", "--select", "dim_log", "dim_snapshots")
    log, snapshots = (built.rows(f"dim_{name}") for name in options)
    assert len(log) > 60
    assert [repr(row) for row in log] == [repr(row) for row in snapshots]


# --- two captures at once -------------------------------------------------------------------------


def merge_text(lab: Lab, name: str, state: str) -> str:
    """The statement of the newest run, as of now, over another state; without the script around it."""
    sql = (lab.home / "target" / "run" / "lab" / "models" / f"cap_{name}.sql").read_text()
    sql = scripted(sql)
    sql = sql[sql.index("merge into") :]
    return re.sub(rf"{lab.schema}[.]`?cap_{name}__candidate_\w+`?", f"({state})", sql)


def up_to_date(lab: Lab, name: str, sql: str) -> str:
    newest = lab.spark.sql(f"select unix_micros(max(captured_at)) from {lab.schema}.cap_{name}").collect()[0][0]
    sql = re.sub(r"newest <=> \w+", f"newest <=> {newest}", sql)
    return re.sub(r"timestamp_micros\(\d+\)", f"timestamp_micros({newest + 1})", sql)


@as_delta_refuses
def test_a_capture_that_was_overtaken_appends_nothing(built: Lab) -> None:
    before = log_rows(built, "plain", "id", "name")
    sql = merge_text(built, "plain", "select 1 as id, 'stale' as name")
    built.spark.sql(sql)
    assert log_rows(built, "plain", "id", "name") == before


@as_delta_refuses
def test_two_captures_at_once_do_not_double_rows(built: Lab) -> None:
    pause = "java_method('java.lang.Thread', 'sleep', 1500L)"
    slow = f"select cast(id as int) as id, concat('slow', coalesce(left({pause}, 0), '')) as name from range(1, 3)"
    sql = up_to_date(built, "part", merge_text(built, "part", slow))

    def attempt(_: int) -> str:
        try:
            built.spark.sql(sql)
        except Exception as error:  # noqa: BLE001 - what the loser is told is what is tested
            return str(error)
        return ""

    started = time.monotonic()
    with ThreadPoolExecutor(2) as pool:
        ends = sorted(pool.map(attempt, range(2)))
    assert time.monotonic() - started > 1.5
    assert ends[0] == ""
    assert "ConcurrentAppend" in ends[1] or "CONCURRENT" in ends[1], ends
    appended = [row for row in log_rows(built, "part", "id", "name") if row[2] == "slow"]
    assert appended == [(1, 1, "slow", False), (1, 2, "slow", False)]


@pytest.mark.parametrize("statement", ["from {}__candidate", "merge into {}"])
def test_a_capture_that_is_overtaken_begins_again(built: Lab, monkeypatch: pytest.MonkeyPatch, statement: str) -> None:
    """The other one was committed after this one had read the log: the state is compared with its rows too."""
    which = f"raced_{statement.split()[0]}"
    capture(built, which, "id, name")
    log = f"{built.schema}.cap_{which}"
    for name in ("Ann", "Bea"):
        built.table("state", COLUMNS, [[which, 1, "x", name, 1.5]])
        if name == "Ann":
            built.dbt("run", "--select", f"cap_{which}")
    execute = dbt_session.Cursor.execute
    others: list[str] = []

    def meanwhile(self: Any, sql: str, *parameters: Any) -> None:
        if statement.format(log) in sql and not others:
            others.append(sql)
            built.spark.sql(f"insert into {log} (id, name, captured_at, is_deleted) values (1, 'other', now(), false)")
        execute(self, sql, *parameters)

    monkeypatch.setattr(dbt_session.Cursor, "execute", meanwhile)
    status, message = built.dbt("run", "--select", f"cap_{which}")[f"cap_{which}"]
    monkeypatch.undo()
    assert status == "success", message
    assert sum("attempt 1 found a commit of another writer" in text for text in built.log) == 1, built.log
    assert log_rows(built, which, "name") == [
        (0, "Ann", False),
        (1, "other", False),
        (2, "Bea", False),
    ]


# --- runs that are not like the others --------------------------------------------------------------


def test_a_full_refresh_wants_permission_and_empty_runs_delete_nothing(built: Lab) -> None:
    built.table("state", COLUMNS, [])
    before = log_rows(built, "twice", "id")
    capture(built, "wide", allow_full_refresh=True)
    built.dbt("run", "--full-refresh", "--select", "cap_twice", "cap_wide")
    status, message = built.results["cap_twice"]
    assert status == "error"
    assert "allow_full_refresh" in message
    assert built.results["cap_wide"] == ("success", "unchanged"), built.results["cap_wide"]
    assert log_rows(built, "wide", "id", "name") == []
    built.dbt("run", "--empty", "--select", "cap_twice")
    assert built.results["cap_twice"] == ("success", "unchanged"), built.results["cap_twice"]
    assert log_rows(built, "twice", "id") == before


def test_all_mistakes_come_together(built: Lab) -> None:
    built.table("not_a_log", [["id", "int"]], [])
    built.model(
        "not_a_log",
        "select 1 as id",
        materialized="capture",
        file_format="parquet",
        on_schema_change="sync_all_columns",
        meta={"healing_tables": {"on_absence": "close", "max_removed_keys_ratio": 2, "at": "x", "on_late": "x"}},
    )
    built.dbt("run", "--select", "not_a_log")
    message = built.results["not_a_log"][1]
    wanted = ["unique_key", "on_absence", "max_removed_keys_ratio", "meta.healing_tables.on_late", ". at\n"]
    for part in [*wanted, "file_format", "on_schema_change", "not_a_log, ", "8 mistakes"]:
        assert part in message.replace("the table lab_test_capture.not_a_log", "not_a_log, "), message


def test_a_select_that_is_complete_for_some_values(built: Lab) -> None:
    """Absent keys end only there; a key that moves there has no gap. NULL is a value."""
    lab, log = built, f"{built.schema}.cap_parts"

    def model(**options: Any) -> None:
        config = {"unique_key": "id", "meta": {"healing_tables": options}}
        lab.model("cap_parts", f"select * from {lab.schema}.extract", materialized="capture", **config)

    def captured(*rows: tuple[int, str | None, str]) -> list[tuple[Any, ...]]:
        """The rows that a run appends."""
        before = lab.spark.table(log).collect() if lab.spark.catalog.tableExists(log) else []
        lab.table("extract", [["id", "int"], ["country", "string"], ["name", "string"]], [list(row) for row in rows])
        lab.dbt("run", "--select", "cap_parts", *ALLOW)
        assert lab.succeeded, lab.results
        return sorted(
            (row.id, row.country, row.name, row.is_deleted)
            for row in lab.spark.table(log).collect()
            if row not in before
        )

    model(within="Country")
    rows = [(1, "NO", "a"), (2, "NO", "b"), (3, "SE", "c"), (4, None, "d")]
    assert captured(*rows) == [(*row, False) for row in rows]
    assert captured((1, "NO", "a")) == [(2, "NO", "b", True)]
    assert captured((1, "SE", "a")) == [(1, "SE", "a", False), (3, "SE", "c", True)]
    assert captured((5, None, "e")) == [(4, None, "d", True), (5, None, "e", False)]
    for options, wanted in (({"within": "land"}, "within"), ({"within": "id", "on_absence": "ignore"}, "remove one")):
        model(**options)
        status, message = lab.dbt("run", "--select", "cap_parts")["cap_parts"]
        assert status == "error" and wanted in message, message
