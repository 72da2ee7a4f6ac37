"""The pages of explain and report: where things are in the picture, hostile texts, nothing to load."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from dbt_common.exceptions import DbtRuntimeError
from page_content import HOSTILE, LONG, explained, logged

from dbt_healing_tables.pages.explain import NARROW, WIDTH, explain_page
from dbt_healing_tables.pages.report import BUILDS, HEIGHT, LISTED, report_page
from dbt_healing_tables.pages.write import render_page, write_page

# 2 days, 4 days, a gap of 6 days, and an open end as long as their mean
EDGES = [0, 128, 356, 684, 912]
PAGES = {
    "explain": explained(3),
    "explain 300": explained(300),
    "explain hostile": explained(3, text=HOSTILE + LONG),
    "explain nothing": explained(3) | {"slices": [], "versions": [], "rows": []},
    "report": logged(40),
    "report nothing": logged(0) | {"tables": []},
}


def page(name: str) -> str:
    return render_page(name.split()[0], PAGES[name])


def test_bars_dots_rings_and_blocks() -> None:
    shown = explain_page(explained(3))
    assert shown["edges"] == EDGES
    assert EDGES[-1] == 4 * NARROW + WIDTH
    crm, erp = shown["lines"]
    assert crm["bars"] == [[0, 356], [684, 912]]
    assert (crm["dots"], crm["rings"]) == ([0, 128, 684], [356])
    assert erp["bars"] == [[128, 356], [684, 912]]
    assert (erp["dots"], erp["rings"]) == ([128, 684], [356])
    assert shown["blocks"] == [
        {"version": 1, "start": 0, "end": 128},
        {"version": 2, "start": 128, "end": 356},
        {"version": None, "start": 356, "end": 684},
        {"version": 3, "start": 684, "end": 912},
    ]


def test_versions_as_they_were_known() -> None:
    first, second = explain_page(explained(3))["publishes"]
    middle = (EDGES[1] + EDGES[2]) // 2  # 2024-01-05 is between 2024-01-03 and 2024-01-07
    places = [[(block["start"], block["end"], block["is_new"]) for block in line["blocks"]] for line in (first, second)]
    assert places == [[(0, EDGES[-1], True)], [(0, middle, True), (middle, EDGES[-1], True)]]
    assert "What was known" in page("explain")
    assert "What was known" not in render_page("explain", explained(3) | {"published": []})


def test_moments_that_python_has_no_date_for() -> None:
    content = explained(3)
    content["slices"][0]["valid_from"] = "+12345-01-01 00:00:00"
    assert explain_page(content)["edges"][1] > NARROW


def test_changes_have_the_value_before() -> None:
    shown = explain_page(explained(3))["slices"]
    assert [(each["old"], each["is_new"]) for each in shown[1]["changes"]] == [("Oslo 0", False), (None, False)]
    assert all(each["is_new"] for each in shown[3]["changes"])  # after the gap
    assert [each["ended"] for each in shown] == [[], [], ["crm", "erp"], []]


def test_overruled_values_are_among_the_changes() -> None:
    row = re.search(r'<tr id="from-2">.*?</tr>', page("explain"), re.DOTALL)
    assert row is not None
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", row[0]))
    assert "name = erp Oslo, erp.label, overruled by crm (a rule)" in text
    assert "no value changes" not in text


def test_builds_of_a_table() -> None:
    customer, player = report_page(logged(70))["tables"]
    assert (customer["built"], customer["refused"], customer["retried"]) == (70, 0, 0)
    assert (player["built"], player["refused"], player["retried"], player["listed"]) == (69, 1, 1, 70)
    assert "retried" not in {bar["build"]["status"] for bar in player["rows_bars"]}
    assert (len(customer["builds"]), len(customer["rows_bars"])) == (LISTED, BUILDS)
    assert player["rows_bars"][-1]["is_refused"]  # the newest is on the right
    for bar in customer["rows_bars"]:
        assert sum(part["height"] for part in bar["parts"]) <= HEIGHT + 0.2
        assert all(part["y"] >= -0.2 for part in bar["parts"])


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_alone_and_shows_texts_as_they_are(name: str) -> None:
    text = page(name)
    assert "<script" not in text and "{{" not in text
    assert re.findall(r"""(?:src|href)=["'](?!#)""", text) == [] and "url(" not in text
    assert set(re.findall(r'href="#([^"]+)"', text)) <= set(re.findall(r'\bid="([^"]+)"', text))


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    assert write_page("report", logged(3), str(file)) == str(file)
    assert file.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    with pytest.raises(DbtRuntimeError, match="a folder that exists.*No such file"):
        write_page("report", logged(3), str(tmp_path / "none" / "page.html"))
