"""The generated SQL is part of the product: `make golden` rewrites the files; review the diff like code."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from calls import CALLS, CATALOGUE
from rendering import Project

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
