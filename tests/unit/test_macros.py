"""What a compiler would say about the macros: names that nobody defines, private macros that nobody calls."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from jinja2 import nodes
from rendering import ROOT, environment

FILES = sorted((ROOT / "macros").rglob("*.sql"))
# What dbt gives to macros, see dbt's documentation, "dbt Jinja functions"; macros of dbt itself that are called by
# name.
DBT = {
    *("adapter", "api", "builtins", "config", "context", "database", "dbt_version", "exceptions", "execute"),
    *("flags", "fromjson", "fromyaml", "graph", "hooks", "invocation_args_dict", "invocation_id", "load_result"),
    *("local_md5", "log", "model", "modules", "post_hooks", "pre_hooks", "print", "project_name", "ref", "render"),
    *("return", "run_query", "source", "sql", "statement", "target", "this", "tojson", "var", "compiled_code"),
    *("noop_statement", "run_hooks", "apply_grants", "should_revoke", "should_full_refresh", "load_relation"),
    *("env_var",),
    *("persist_constraints", "get_assert_columns_equivalent", "get_select_subquery", "options_clause"),
    *("partition_cols", "clustered_cols", "location_clause", "comment_clause"),
    *("varargs", "kwargs", "caller", "loop", "dict", "range", "namespace"),
    *("healing_tables", "healing_tables_rendering"),
}  # fmt: skip


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_every_name_is_defined(file: Path) -> None:
    unknown = {}
    for macro in environment().parse(file.read_text()).find_all(nodes.Macro):
        names = list(macro.find_all(nodes.Name))
        known = {name.name for name in names if name.ctx in ("store", "param")}
        unknown[macro.name] = {name.name for name in names if name.ctx == "load"} - known - DBT
    assert not any(unknown.values()), unknown


def test_every_macro_is_defined_and_every_private_one_is_used() -> None:
    text = "\n".join(file.read_text() for file in FILES)
    defined = set(re.findall(r"{%-? *(?:macro|test) +(\w+)", text))
    called = set(re.findall(r"\bhealing_tables\.(\w+)(?=\()", text))
    assert called <= defined
    used = set(re.findall(r"\bhealing_tables\.(\w+)", text))
    found_by_name = r"\w+___platform"
    private = {name for name in defined if name.startswith("_") and not re.fullmatch(found_by_name, name)}
    assert private <= used


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_layout(file: Path) -> None:
    text = file.read_text()
    assert not [line for line in text.splitlines() if len(line) > 120 or line != line.rstrip() or "\t" in line]
    assert text.endswith("\n")
    assert not text.endswith("\n\n")
