"""Which parts of other runs a sharded build takes over, and what a shard of a source is; without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from rendering import Project, Rows

STATE = {"definition": "d1", "stored table": "t1"}
MINE = "d1 t1 s1"


def begin(left: Mapping[str, tuple[str, list[int]]], unknown: list[str]) -> tuple[dict[str, Any], list[str], list[str]]:
    """What _begin_parts returns, its statements and its lines. `left`: table to its property and complete parts."""
    project = Project({})
    statements: list[str] = []
    lines: list[str] = []
    project.context["run_query"] = lambda query: Rows(
        [("delta.x", "y"), ("healing_tables.parts", left[query.split()[-1]][0])]
    )
    fakes = {
        "_parts_of_other_runs": lambda *_: list(left),
        "_complete_parts": lambda table: left[table][1],
        "_state_of_sources": lambda _: {"state": "s1", "unknown": unknown},
        "_run": statements.append,
        "_log_progress": lambda _, text: lines.append(text),
    }
    for name, fake in fakes.items():
        project.macros.replace(name, returning(project, fake))
    delta = {"name": "delta", "properties": {"for_columns": lambda *_: {}}}
    run = {"target": "dim", "format": delta, "settings": {"shards": 4}}
    return project.macros._begin_parts(run, {"columns": {"id": "int"}}, "own", "changes", STATE), statements, lines


def returning(project: Project, function: Any) -> Any:
    return lambda *args: project.context["return"](function(*args))


def test_nothing_is_left() -> None:
    begun, statements, lines = begin({}, [])
    assert begun["parts"] == [] and not statements and not lines
    assert begun["create"] == f"create table own using delta tblproperties ('healing_tables.parts' = '{MINE}') as"


def test_the_most_parts_are_copied() -> None:
    begun, statements, lines = begin({"a": (MINE, [0]), "b": (MINE, [0, 2]), "c": (MINE, [1])}, [])
    assert begun["parts"] == [0, 2]
    assert statements == [begun["create"] + " select * from b where part in (0, 2)"]
    assert lines == ["continues with the 2 of 4 parts in b, which another run has left"]


@pytest.mark.parametrize(
    ("then", "unknown", "reason"),
    [
        ("d0 t1 s1", [], "the definition changed since"),
        ("d1 t0 s0", [], "the stored table and the sources changed since"),
        ("", [], "the definition and the stored table and the sources changed since"),
        (MINE, ["crm"], "it is not known whether source crm has changed"),
    ],
)
def test_parts_that_are_not_used(then: str, unknown: list[str], reason: str) -> None:
    begun, statements, lines = begin({"a": (then, [0, 1])}, unknown)
    assert begun["parts"] == [] and not statements
    assert lines == [f"the 2 parts in a, which another run has left, are computed anew: {reason}"]


def test_equal_keys_of_two_types_are_in_one_shard() -> None:
    catalogue = {
        "db.crm": {"id": "int", "at": "date", "name": "string"},
        "db.erp": {"id": "bigint", "at": "date", "mail": "string"},
    }
    project = Project(catalogue)
    call = ", ".join(f"'{name}': {{'relation': relation('{name}'), 'changed_at': 'at'}}" for name in ("crm", "erp"))
    sql = project.render(f"{{{{ healing_tables.dimension({{{call}}}, 'id') }}}}")
    parsed = project.macros._parse_call(sql)
    settings = {"metadata": parsed["metadata"], "key_columns": ["id"], "shards": 4}
    run, candidate = {"settings": settings}, {"query": sql, "columns": {"id": "bigint"}}
    cut = project.macros._of_shard(project.macros._cut_to_shard(run, candidate)["query"], 3, 2)
    assert "where cast(pmod(xxhash64(cast(`id` as bigint)), 4) as int) = 3" in cut
    assert "where cast(pmod(xxhash64(`id`), 4) as int) = 3" in cut
    # stored in a third type: both sides are compared, and so cut, as text
    cut = project.macros._of_shard(project.macros._cut_to_shard(run, candidate, {"id": "string"})["query"], 3, 2)
    assert "xxhash64(cast((cast(`id` as bigint)) as string))" in cut and "xxhash64(cast((`id`) as string))" in cut
