"""The generated SQL is part of the product: `make golden` rewrites the files; review the diff like code.

So is the list of macros that dbt's own docs leave out.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from calls import CALLS, CATALOGUE
from golden import check
from pyspark.sql import types as t
from rendering import Project
from sessions import ROOT

from healing_tables import DimensionSpec
from healing_tables.definition.resolve_layout import resolve
from healing_tables.sql.instants import TIMESTAMP
from healing_tables.targets.merge_statement import merge_statement


def golden(name: str) -> Path:
    return Path(__file__).parent / "golden" / f"{name}.sql.golden"  # dbt takes a .sql file here for a test


@pytest.mark.parametrize("name", CALLS)
def test_golden(name: str) -> None:
    sql = Project(CATALOGUE, name=name).render(f"{{{{ {CALLS[name]} }}}}").strip() + "\n"
    check(golden(name), sql)
    # dbt-glue puts SQL into a string of Python, which drops a backslash; what a call knows of itself is a comment
    assert "\\" not in re.sub(r"/\*.*?\*/", "", sql, flags=re.DOTALL)


JSON_NAMES = {"int": "integer", "bigint": "long", "timestamp_ltz": "timestamp"}
# what the merge is of: its spec, a full batch
MERGES = {
    "merge_versions": (DimensionSpec(key_columns="id", changed_at="at"), False),
    "merge_full_batch": (DimensionSpec(key_columns="id", full_batch=True), True),
    "merge_current_rows": (DimensionSpec(key_columns="id", attributes={"*": 1}), False),
    "merge_new_column": (DimensionSpec(key_columns="id", on_schema_change="append_new_columns"), False),
}


@pytest.mark.parametrize("name", MERGES)
def test_merge_statement(name: str) -> None:
    """The MERGE of the library, on Delta and Iceberg."""
    spec, is_full = MERGES[name]
    batch = t.StructType().add("id", "integer").add("city", "string").add("at", "timestamp")
    stored = resolve(spec, batch, None, moment_type=TIMESTAMP).columns(spec)
    if spec.on_schema_change != "fail":
        batch = batch.add("phone", "string")
    table = t.StructType()
    for column, kind in stored.items():
        table.add(column, JSON_NAMES.get(kind, kind))
    layout = resolve(spec, batch, table, moment_type=TIMESTAMP)
    sql = merge_statement(
        "db.dim",
        "plan",
        layout,
        spec,
        merge_id="ffffffff",
        stored=stored,
        keys="t.`id` >= 1 and t.`id` <= 9",
        open_rows=(2, 77) if is_full else None,
    )
    check(golden(name), sql.strip() + "\n")


def test_dbt_docs_show_the_public_macros_only() -> None:
    texts = [file.read_text() for file in (ROOT / "macros").rglob("*.sql")]
    names = sorted(name for text in texts for name in re.findall(r"{%-? *macro +((?:\w+__)?_\w+)", text))
    lines = [f"  - {{name: {name}, docs: {{show: false}}}}\n" for name in names]
    listed = "# Private macros, which are left out of the docs of dbt. `make golden` writes this list.\n"
    listed += "version: 2\nmacros:\n"
    listed += "".join(lines)
    check(ROOT / "macros" / "_private.yml", listed)
