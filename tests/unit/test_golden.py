"""The generated SQL is part of the product: `make golden` rewrites the files; review the diff like code.

So is the list of macros that dbt's own docs leave out.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from calls import CALLS, CATALOGUE
from rendering import Project
from sessions import ROOT

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("name", CALLS)
def test_golden(name: str) -> None:
    sql = Project(CATALOGUE, name=name).render(f"{{{{ {CALLS[name]} }}}}").strip() + "\n"
    golden = GOLDEN / f"{name}.sql.golden"  # dbt takes a .sql file here for a test
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(sql)
    assert sql == golden.read_text()
    # dbt-glue puts SQL into a string of Python, which drops a backslash; what a call knows of itself is a comment
    assert "\\" not in re.sub(r"/\*.*?\*/", "", sql, flags=re.DOTALL)


def test_dbt_docs_show_the_public_macros_only() -> None:
    texts = [file.read_text() for file in (ROOT / "macros").rglob("*.sql")]
    names = sorted(name for text in texts for name in re.findall(r"{%-? *macro +((?:\w+__)?_\w+)", text))
    lines = [f"  - {{name: {name}, docs: {{show: false}}}}\n" for name in names]
    listed = "# Private macros, which are left out of the docs of dbt. `make golden` writes this list.\n"
    listed += "version: 2\nmacros:\n"
    listed += "".join(lines)
    private = ROOT / "macros" / "_private.yml"
    if os.environ.get("UPDATE_GOLDEN"):
        private.write_text(listed)
    assert listed == private.read_text()
