"""docs/flows: the names in the drawings are defined where they say, and the pictures show what the pages say."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import pytest
from sessions import ROOT

FLOWS = sorted((ROOT / "docs" / "flows").glob("*.md"))
# the folder to which the paths in a drawing are relative: of the macros, first the one of its own files
FOLDERS = {"rebuild": "macros/build", "heal": "macros/heal", "capture": "macros/capture", "merge": "src/healing_tables"}


def source(page: Path) -> str:
    blocks = re.findall(r"^```mermaid\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)
    assert len(blocks) == 1
    return str(blocks[0])


def file_of(page: str, path: str) -> Path:
    own = ROOT / FOLDERS[page] / path
    return own if own.is_file() else ROOT / "macros" / path


def is_defined(name: str, file: Path) -> bool:
    if file.suffix == ".py":
        return re.search(rf"^ *(def|class) {name.rpartition('.')[2]}\b", file.read_text(), re.MULTILINE) is not None
    return re.search(rf"{{%-? *macro {name}\(", file.read_text()) is not None


@pytest.mark.parametrize("page", FLOWS, ids=lambda page: page.stem)
def test_names_are_defined_in_their_files(page: Path) -> None:
    named = re.findall(r"((?:[\w.]+, )*[\w.]+) \(([^)]+[.](?:py|sql))\)", source(page).replace("<br/>", "\n"))
    assert len(named) >= 10
    listed = [(name, path) for names, paths in named for name in names.split(", ") for path in re.split(r",\s", paths)]
    assert [each for each in listed if not file_of(page.stem, each[1]).is_file()] == []
    assert [(name, path) for name, path in listed if not is_defined(name, file_of(page.stem, path))] == []


@pytest.mark.parametrize("page", FLOWS, ids=lambda page: page.stem)
def test_the_picture_is_of_this_drawing(page: Path) -> None:
    """Run `make drawings` after a change to a drawing."""
    picture = page.with_suffix(".svg").read_text()
    shown = re.search(r"<metadata>(.*?)</metadata>", picture, re.DOTALL)
    assert shown is not None and unescape(shown[1]) == source(page)
    assert "foreignObject" not in picture and "<script" not in picture
    assert re.findall(r"""(?:href|src)=["'](?!#)|url\((?!#)|@import""", picture) == []


def test_the_list_of_flows() -> None:
    assert [page.stem for page in FLOWS] == sorted(FOLDERS)
