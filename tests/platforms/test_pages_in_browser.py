"""The pages of explain and report in Chromium: light and dark, wide and narrow, 3 and 300 versions, by keyboard."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from page_content import HOSTILE, LONG, explained, logged
from sessions import ROOT

from dbt_healing_tables.pages.write import write_page

VERSIONS = {"few": 3, "many": 300, "hostile": 3}


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, ...], Any]:
    """What on_browser.py has seen, by page, colour scheme and width."""
    folder = tmp_path_factory.mktemp("pages")
    for name, versions in VERSIONS.items():
        text = HOSTILE + LONG if name == "hostile" else "Oslo"
        write_page("explain", explained(versions, text=text), f"{folder}/{name}.html")
    write_page("report", logged(40), f"{folder}/report.html")
    subprocess.run([ROOT / "tests" / "environments" / "setup.sh", "browser"], check=True)
    program = Path(__file__).with_name("on_browser.py")
    subprocess.run([ROOT / ".environments" / "browser" / "bin" / "python", program, folder], check=True)
    found = {tuple(key.split()): facts for key, facts in json.loads((folder / "answer.json").read_text()).items()}
    assert len(found) == 4 * (len(VERSIONS) + 1)
    return found


def test_nothing_is_loaded_and_nothing_runs(seen: dict[tuple[str, ...], Any]) -> None:
    assert {key: facts["problems"] for key, facts in seen.items() if facts["problems"]} == {}


def test_colours_follow_the_scheme(seen: dict[tuple[str, ...], Any]) -> None:
    colours = {(scheme, facts["background"], facts["color"]) for (_, scheme, _), facts in seen.items()}
    assert colours == {
        ("light", "rgb(255, 255, 255)", "rgb(29, 36, 48)"),
        ("dark", "rgb(20, 24, 31)", "rgb(230, 233, 239)"),
    }


def test_everything_fits(seen: dict[tuple[str, ...], Any]) -> None:
    """Pictures and tables scroll by themselves, never the page; no label is cut or covers another."""
    wrong = {key: facts for key, facts in seen.items() if facts["overflow"] or facts["clipped"] or facts["covered"]}
    assert wrong == {}
    for (name, *_), facts in seen.items():
        if name in VERSIONS:
            assert facts["links"] == VERSIONS[name] + 1  # and the gap
            assert facts["numbers"] == [str(number) for number in range(1, VERSIONS[name] + 1)]


def test_by_keyboard(seen: dict[tuple[str, ...], Any]) -> None:
    """The picture scrolls, and its second column leads to what changes there."""
    for (name, _, width), facts in seen.items():
        if name not in VERSIONS:
            continue
        assert facts["has_scroll"] == (name == "many" or width == "400")
        assert (facts["scrolled"] > 0) == facts["has_scroll"]
        assert facts["label"] == "slice 2, version 2, from 2024-01-03 to 2024-01-07"
        assert facts["hash"] == "#from-2" and facts["in_view"]
        assert facts["row"].startswith("2024-01-03\t2024-01-07\t2\t2") and "was NULL" in facts["row"]
