"""Names and texts that try to be SQL, in every public macro that gives a select, and in every generic test.

Spark's own lexer has to find the same kinds of tokens in the SQL as for the same call with plain names and texts.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import SparkSession
from rendering import Project, Rows
from sessions import ROOT
from spark_tokens import tokens

from healing_tables.sql.identifiers import quoted

COUNT = int(os.environ.get("HEALING_TABLES_NAMES", "4"))  # calls of each macro
SEED = int(os.environ.get("HEALING_TABLES_SEED", "1"))
PIECES = [
    *("`", "``", "'", "''", '"', "\\", "\\'", ";", "--", "/*", "*/", "#", "$", "%", "@", "?", "!", "&", "|", "~", "^"),
    *(" ", "  ", "\t", "\n", "\r\n", ".", ",", ":", "::", "=", "<=>", "->", "(", ")", "[", "]", "<", ">", "{", "}"),
    *("{{", "}}", "{%", "%}", "{#", "#}", "$$", "%s", "%(a)s", "{0}", "\\u0027", "\\x27", "\\n", "&#39;", "%27"),
    *("null", "true", "select", "from", "x", "1", "1e3", "é", "ß", "İ", "日本", "🙂", "\u200b", "\u2028", "\u00a0"),
    *("' or 1 = 1 --", "`; drop table db.log; --", "*/ drop table db.log /*", "' as x from db.log --"),
    *("`) union all select * from db.log --", "\\' union select 1 --", "end; drop table db.log; begin"),
]
MESSAGE = ("key", "c1")  # the columns of one
Call = tuple[str, dict[str, Any]]  # a macro and its arguments
Columns = dict[str, dict[str, str]]


class Words:
    """The names and texts of a call, by what they are for; the same one each time.

    Args: chosen: of hostile ones; none: plain ones.
    """

    def __init__(self, chosen: random.Random | None) -> None:
        self.chosen, self.given = chosen, dict[str, str]()

    def __call__(self, role: str) -> str:
        if role not in self.given:
            number = len(self.given)  # no two names are equal, whatever their case
            pieces = self.chosen.choices(PIECES, k=self.chosen.randrange(1, 5)) if self.chosen else ["plain"]
            self.given[role] = re.sub(r"[$]+[{]+", "$", "".join([*pieces, str(number)]))  # ${ is refused
        return self.given[role]

    def list(self, *roles: str) -> list[str]:
        return [self(role) for role in roles]


def relation(name: str) -> Any:
    return Project.relation(name)


def catalogue(w: Words) -> Columns:
    keys = {w("key"): "int", w("second key"): "string"}
    columns = {w(name): "string" for name in ("c1", "c2", "c3", "c4", "count")}
    moments = {w("at"): "timestamp", w("until"): "timestamp"}
    generated = {w("current"): "boolean", w("version"): "int", w("loaded"): "timestamp", w("gone"): "boolean"}
    tables = ("log", "snapshots", "periods", "facts", "dim", "model")
    airbyte = {f"_ab_cdc_{name}": "string" for name in ("updated_at", "deleted_at", "lsn")}
    of_tools = {
        "fivetran": {"_fivetran_start": "timestamp", "_fivetran_end": "timestamp", "_fivetran_active": "boolean"},
        "airbyte": {"_airbyte_extracted_at": "timestamp", **airbyte},
        "delta": {"_change_type": "string", "_commit_version": "bigint", "_commit_timestamp": "timestamp"},
        "iceberg": {"_change_type": "string", "_change_ordinal": "int", "_commit_snapshot_id": "bigint"},
        "dms": {w("op"): "string", w("at"): "timestamp", w("before") + w("key"): "int"},
    }
    effectivity = {"changed_at": "timestamp", "is_deleted": "boolean"}
    return {
        **{f"db.{name}": keys | columns | moments | generated for name in tables},
        **{f"db.{name}": keys | columns | kept for name, kept in of_tools.items()},
        "db.effectivity": keys | columns | effectivity,
        "db.slices": keys | columns | {"valid_from": "timestamp", "valid_to": "timestamp", "is_current": "boolean"},
        "db.texts": columns,
        "db.calendar": {w("at"): "timestamp"},
        "db.snapshots_of_iceberg": {"snapshot_id": "bigint", "committed_at": "timestamp"},
        "db.messages": {w("payload"): "string"},
    }


def dimension(w: Words) -> Call:
    types = {"c1": 2, "c2": 1, "c3": 3, "c4": 6}
    sources = {
        w("crm"): {
            "relation": relation("log"),
            "changed_at": w("at"),
            "tie_break_by": w("count"),
            "loaded_at": w("loaded"),
            "unchanged_value": {w(name): w("unchanged") for name in types},
        },
        w("shop"): {"relation": relation("snapshots"), "snapshot_at": w("at"), "calendar": relation("calendar")},
        w("erp"): {"relation": relation("periods"), "valid_from": w("at"), "valid_to": w("until")},
    }
    attributes = {
        w(f"renamed {name}"): {
            "from": [{"source": source, "column": w(name)} for source in sources],
            "scd_type": number,
            "rule": "first_present",
        }
        for name, number in types.items()
    }
    names = ["valid_from", "valid_to", "is_current", "version", "row_hash", "key_hash", "ended_by_delete"]
    names += ["last_updated", "change_reason", "change_source"]
    return "dimension", {
        "sources": sources,
        "key_columns": w.list("key", "second key"),
        "attributes": attributes,
        "exists_in": w.list("crm", "erp"),
        "column_names": {name: w(f"named {name}") for name in names},
        "current_values": w.list("yes", "no"),
        "surrogate_key": {"name": w("surrogate")},
    }


def of_versions(w: Words) -> dict[str, Any]:
    return {"key_columns": w.list("key", "second key"), "valid_from": w("at"), "valid_to": w("until")}


def filled(w: Words, arguments: dict[str, Any]) -> dict[str, Any]:
    """Those that are functions of the words, with these words."""
    return {name: value(w) if callable(value) else value for name, value in arguments.items()}


def of_test(name: str, **more: Any) -> Callable[[Words], Call]:
    return lambda w: (f"test_{name}", {"model": relation("model"), **of_versions(w), **filled(w, more)})


def reader(name: str, table: str, **more: Any) -> Callable[[Words], Call]:
    return lambda w: (
        f"read_{name}",
        {
            "relation": relation(table),
            **filled(w, more),
            "column_names": {each: w(f"named {each}") for each in ("_changed_at", "_is_deleted")},
        },
    )


def ddl(w: Words) -> str:
    """The columns of a message, as text."""
    return ", ".join(f"{quoted(w(name))} string" for name in MESSAGE)


def keyed(name: str, table: str, **more: Any) -> Callable[[Words], Call]:
    """A macro of a relation with key columns."""
    return lambda w: (
        name,
        {
            "relation": relation(table),
            "key_columns": w.list("key", "second key"),
            **filled(w, more),
        },
    )


def word(role: str) -> Callable[[Words], str]:
    return lambda w: w(role)


def words(*roles: str) -> Callable[[Words], list[str]]:
    return lambda w: w.list(*roles)


CALLS: dict[str, Callable[[Words], Call]] = {
    "dimension": dimension,
    "effectivity": keyed(
        "effectivity", "log", changed_at=word("at"), tracked_columns=words("c1", "c2"), tie_break_by=word("count")
    ),
    "snapshot_effectivity": keyed(
        "snapshot_effectivity", "snapshots", snapshot_at=word("at"), tracked_columns=words("c1")
    ),
    "period_effectivity": keyed(
        "period_effectivity", "periods", valid_from=word("at"), valid_to=word("until"), tracked_columns=words("c1")
    ),
    "time_slices": keyed("time_slices", "effectivity", tracked_columns=words("c1", "c2")),
    "unified_timeline": lambda w: (
        "unified_timeline",
        {
            "sources": {w("a"): relation("effectivity"), w("b"): relation("effectivity")},
            "key_columns": w.list("key", "second key"),
            "attributes": {
                w("c1"): {"from": w.list("a", "b")},
                w("new"): {"from": [{"source": w("b"), "column": w("c2")}]},
            },
            "exists_in": w.list("a"),
        },
    ),
    "compress": keyed("compress", "slices", tracked_columns=words("c1", "c2"), count_column=word("count")),
    "set_aside": keyed("set_aside", "log", changed_at=word("at")),
    "key_hash": lambda w: (
        "key_hash",
        {
            "columns": w.list("key", "second key"),
            "column_types": dict(zip(w.list("key", "second key"), ("int", "string"), strict=True)),
        },
    ),
    "row_hash": lambda w: ("row_hash", {"columns": relation("texts")}),
    "as_of": lambda w: (
        "as_of",
        {
            "facts": relation("facts"),
            "dimension": relation("dim"),
            **of_versions(w),
            "at": w("at"),
            "columns": {w("then"): w("c1"), w("then 2"): w("c2")},
            "unknown": w("unknown"),
            "versions_per_key": "many",
        },
    ),
    "changes_between": keyed(
        "changes_between",
        "dim",
        since="2024-01-01",
        until="2024-02-01",
        tracked_columns=words("c1", "c2"),
        valid_from=word("at"),
        valid_to=word("until"),
    ),
    "current_versions": lambda w: (
        "current_versions",
        {"relation": relation("dim"), "is_current": w("c1"), "current_value": w("yes"), "valid_to": w("until")},
    ),
    "versions_at": lambda w: (
        "versions_at",
        {"relation": relation("dim"), "at": "2024-01-01", "valid_from": w("at"), "valid_to": w("until")},
    ),
    "inferred_members": lambda w: (
        "inferred_members",
        {
            "facts": relation("facts"),
            "known": relation("dim"),
            "key_columns": {w("key"): w("c1")},
            "at": w("at"),
            "valid_from": w("until"),
        },
    ),
    "read_fivetran": reader("fivetran", "fivetran"),
    "read_airbyte": reader("airbyte", "airbyte"),
    "read_airbyte, of states": reader("airbyte", "airbyte", changed_at=word("c1")),
    "read_delta_changes": reader("delta_changes", "delta", columns=words("key", "c1")),
    "read_iceberg_changes": reader("iceberg_changes", "iceberg", snapshots=relation("snapshots_of_iceberg")),
    "read_dms": reader(
        "dms",
        "dms",
        changed_at=word("at"),
        op=word("op"),
        sequence=words("count"),
        key_columns=words("key"),
        before=word("before"),
    ),
    "read_goldengate": reader("goldengate", "messages", payload=word("payload"), schema=ddl, key_columns=words("key")),
    "read_debezium": reader("debezium", "messages", payload=word("payload"), schema=ddl),
    "no_overlaps": of_test("no_overlaps"),
    "no_gaps": of_test("no_gaps"),
    "valid_order": of_test("valid_order"),
    "single_current": of_test("single_current", is_current=word("c1"), current_value=word("yes")),
    "no_consecutive_duplicates": of_test("no_consecutive_duplicates", tracked_columns=words("c1", "c2")),
    "no_consecutive_duplicates, by hash": of_test("no_consecutive_duplicates", row_hash=word("c1")),
    "temporal_integrity": of_test(
        "temporal_integrity", is_current=word("c1"), current_value=word("yes"), row_hash=word("c2")
    ),
    "facts_covered": lambda w: (
        "test_facts_covered",
        {
            "model": relation("facts"),
            "dimension": relation("dim"),
            **of_versions(w),
            "at": w("at"),
            "columns": {w("c3"): w("c1"), w("c4"): w("c2")},
            "unknown": w("unknown"),
        },
    ),
}
# Not here: what answers with rows that only a warehouse has
ELSEWHERE = {"known_versions", "matches_rebuild"}


class Described(Project):
    """Its warehouse knows the columns of messages, too."""

    def __init__(self, w: Words) -> None:
        super().__init__(catalogue(w))
        self.message = Rows((w(name), "string", None) for name in MESSAGE)

    def answer(self, query: str) -> Rows:
        return self.message if query.startswith("describe query select row.*") else super().answer(query)


def rendered(call: Callable[[Words], Call], w: Words) -> str:
    macro, arguments = call(w)
    return str(getattr(Described(w).macros, macro)(**arguments))


@pytest.mark.parametrize("name", CALLS)
def test_a_name_stays_a_name(spark: SparkSession, name: str) -> None:
    wanted = tokens(spark, rendered(CALLS[name], Words(None)))
    assert len(wanted) > 10
    for number in range(COUNT):
        hostile = Words(random.Random(f"{SEED} {name} {number}"))
        sql = rendered(CALLS[name], hostile)
        assert tokens(spark, sql) == wanted, (list(hostile.given.values()), sql)


def test_every_public_macro() -> None:
    texts = "\n".join(path.read_text() for path in (ROOT / "macros").rglob("*.sql"))
    operations = {path.stem for path in (ROOT / "macros" / "operations").glob("*.sql")}
    public = set(re.findall(r"{%-? *(?:macro|test) +((?!_|\w+__)\w+)", texts)) - operations - ELSEWHERE
    assert {name.partition(",")[0] for name in CALLS} == public
