"""The documentation as `make site` builds it, its pages opened as files in Chromium."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from sessions import ROOT


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What on_site.py has seen: `pages` by path and width, `searches` by path."""
    site = tmp_path_factory.mktemp("site")
    for name in ("site", "browser"):
        subprocess.run([ROOT / "tests" / "environments" / "setup.sh", name], check=True)
    mkdocs = str(ROOT / ".environments" / "site" / "bin" / "mkdocs")
    build = [mkdocs, "build", "--quiet", "--strict", "--site-dir", str(site)]
    subprocess.run(build, check=True, cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})
    program = Path(__file__).with_name("on_site.py")
    subprocess.run([ROOT / ".environments" / "browser" / "bin" / "python", program, site], check=True)
    found: dict[str, dict[str, Any]] = json.loads((site / "answer.json").read_text())
    assert len(found["pages"]) > 2 * len(list((ROOT / "docs").rglob("*.md")))
    return found


def test_nothing_is_loaded_from_elsewhere(seen: dict[str, dict[str, Any]]) -> None:
    assert {page: facts["problems"] for page, facts in seen["pages"].items() if facts["problems"]} == {}


def test_code_wraps_and_printed_tables_scroll(seen: dict[str, dict[str, Any]]) -> None:
    assert {page: facts for page, facts in seen["pages"].items() if facts["cut"] or facts["wider"]} == {}


@pytest.mark.parametrize("page", ["index.html", "reference/as_of.html"])
def test_search_finds_pages(seen: dict[str, dict[str, Any]], page: str) -> None:
    found = seen["searches"][page]
    assert found["problems"] == []
    assert any("reference/drop_candidates.html" in result for result in found["results"]), found["results"]
    assert found["title"] == "drop_candidates - Healing Tables"
