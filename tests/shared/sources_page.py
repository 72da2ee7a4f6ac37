"""docs/sources.md as a project: its files, and the settings of its profile."""

from __future__ import annotations

import os

import yaml
from jinja2 import Environment
from pages import blocks_of
from sessions import ROOT


def files_of_the_page() -> dict[str, str]:
    """Path to text: the blocks whose first line is a path."""
    found = {}
    for block in blocks_of((ROOT / "docs/sources.md").read_text()):
        mark, _, path = block.lines[0].partition(" ") if block.lines else ("", "", "")
        if block.kind in ("sql", "yaml") and mark in ("#", "--"):
            found[path] = "\n".join(block.lines) + "\n"
    return found


def page_settings(files: dict[str, str]) -> dict[str, str]:
    text = Environment().from_string(files["profiles.yml"]).render(env_var=lambda name: os.environ[name])
    settings: dict[str, str] = yaml.safe_load(text)["my_project"]["outputs"]["dev"]["server_side_parameters"]
    return settings
