"""Forms of Jinja that dbt v2 evaluates differently from dbt-core 1.x, or not at all: the macros have none of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from jinja2 import nodes
from rendering import ROOT, Project, environment

FILES = sorted((ROOT / "macros").rglob("*.sql"))
CHANGING = {"append", "clear", "discard", "extend", "insert", "pop", "remove", "setdefault", "update"}
# `context` cannot be changed in v2: these two macros ask for the version first
CHANGE_CONTEXT = {"_in_model_context", "_be_model", "_defer"}
MISSING = {
    "healing_tables.get": "a macro cannot be looked up by its name",
    "context.update": "the context cannot be changed",
    "context.pop": "the context cannot be changed",
    "adapter.check_schema_exists": "it reads an information_schema, which Spark does not have",
}


def changed_in(body: list[nodes.Node]) -> Iterator[str]:
    """The names whose values statements change: assignments, fields of namespaces, methods of lists and maps."""
    for node in (node for statement in body for node in [statement, *statement.find_all(nodes.Node)]):
        if isinstance(node, nodes.NSRef) or (isinstance(node, nodes.Name) and node.ctx == "store"):
            yield node.name
        elif isinstance(node, nodes.Call) and isinstance(node.node, nodes.Getattr):
            of, method = node.node.node, node.node.attr
            if isinstance(of, nodes.Name) and method in CHANGING:
                yield of.name
            elif isinstance(of, nodes.Name) and of.name == "healing_tables" and method == "_mistake":
                yield from (argument.name for argument in node.args[:1] if isinstance(argument, nodes.Name))


def names_in(node: nodes.Node | None) -> set[str]:
    found = [] if node is None else [node, *node.find_all(nodes.Name)]
    return {name.name for name in found if isinstance(name, nodes.Name)}


def faults(text: str) -> list[str]:
    found: list[str] = []
    whole: set[str] = set()  # names of the results of fullmatch
    for loop in (tree := environment().parse(text)).find_all(nodes.For):
        # v2 evaluates the filter for all items before the first one is used
        for name in sorted((names_in(loop.test) - names_in(loop.target)) & set(changed_in(loop.body))):
            found.append(f"line {loop.lineno}: the filter of a loop reads {name}, which the loop changes")
        if isinstance(loop.iter, nodes.Name) and loop.iter.name == "healing_tables":
            found.append(f"line {loop.lineno}: a loop over the macros of the package has no items")
    for used in tree.find_all(nodes.Filter):
        if used.name == "sum" and used.kwargs:
            found.append(f"line {used.lineno}: sum(attribute=...): v2 sums numbers only, use map(attribute=...) | sum")
    for assign in tree.find_all(nodes.Assign):
        calls = [call.node for call in assign.find_all(nodes.Call) if isinstance(call.node, nodes.Getattr)]
        if isinstance(assign.target, nodes.Name) and any(call.attr == "fullmatch" for call in calls):
            whole.add(assign.target.name)
    for macro in tree.find_all(nodes.Macro):
        for get in macro.find_all(nodes.Getattr):
            name = f"{get.node.name}.{get.attr}" if isinstance(get.node, nodes.Name) else ""
            if name in MISSING and not (name.startswith("context.") and macro.name in CHANGE_CONTEXT):
                found.append(f"line {get.lineno}: {name}: {MISSING[name]}")
            if get.attr in ("group", "groups") and isinstance(get.node, nodes.Name) and get.node.name in whole:
                found.append(f"line {get.lineno}: .{get.attr}() of a fullmatch, a list in v2: use re.match('^...$')")
            if get.attr == "dict" and name != "self.dict":
                found.append(f"line {get.lineno}: .dict() of a row is empty, use _row_map()")
    return found


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_forms(file: Path) -> None:
    assert faults(file.read_text()) == []


@pytest.mark.parametrize(
    "text",
    [
        "{% for n in range(9) if not done %}{% do done.append(n) %}{% endfor %}",
        "{% for n in range(9) if at.id %}{% set at.id = none %}{% endfor %}",
        "{% for n in range(9) if not mistakes %}{% do healing_tables._mistake(mistakes, n) %}{% endfor %}",
        "{% for name in healing_tables %}{% endfor %}",
        "{{ healing_tables.get('_format_' ~ name) }}",
        "{% do context.update({}) %}",
        "{{ run_query('x').rows[0].dict() }}",
        "{{ done | sum(attribute='n') }}",
        "{% set found = modules.re.fullmatch('(a)', name) %}{{ found.group(1) }}",
    ],
)
def test_forms_that_are_found(text: str) -> None:
    assert faults(f"{{% macro _m(done, at, mistakes, name) %}}{text}{{% endmacro %}}")


class Moment(dict[str, int]):
    """In v2, a datetime `is mapping`."""

    def __str__(self) -> str:
        return "2024-01-01 00:00:00+00:00"


def test_a_moment_in_the_log() -> None:
    macros = Project({}).macros
    assert macros._log_value("timestamp_ltz", Moment()) == "timestamp_ltz '2024-01-01 00:00:00+00:00'"
    assert macros._log_value("map<string,bigint>", {"a": 1}) == "map('a', cast(1 as bigint))"
    empty: dict[str, int] | None
    for empty in ({}, None):
        assert macros._log_value("map<string,bigint>", empty) == "cast(null as map<string,bigint>)"


@pytest.mark.parametrize(("version", "scripts", "name"), [("1.12.0", True, "`a`.`b`"), ("2.0.0", False, "a.b")])
def test_what_depends_on_the_version(version: str, scripts: bool, name: str) -> None:
    """v2 tears SQL scripts apart at each semicolon, and puts the names of Spark's tables into backticks."""
    project = Project({})
    project.context["dbt_version"] = version
    macros = project.macros
    assert macros._has_scripts({"spark.sql.scripting.enabled": "true"}) == scripts
    assert macros._plain_names("healing_table `a`.`b`: column `c`") == f"healing_table {name}: column `c`"
