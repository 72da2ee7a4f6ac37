"""A newcomer follows the section *Install in your project* of the README: an empty folder, dbt as a command, its own
JVM."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pages import Block, blocks_of, difference, table_of
from sessions import ROOT

README = (ROOT / "README.md").read_text()
SECTION = README[README.index("## Install in your project") :].split("\n## ", 1)[0]
BLOCKS = blocks_of(SECTION)
FILES = {
    re.sub("^(#|--) ", "", block.lines[0]): "\n".join(block.lines) for block in BLOCKS if block.kind in ("yaml", "sql")
}
PROJECT = """
name: my_project
version: 1.0.0
profile: my_project
flags: {send_anonymous_usage_stats: false}
"""


def commands_of(blocks: list[Block]) -> list[list[str]]:
    lines = [line for block in blocks if block.kind == "sh" for line in block.lines]
    return [line.split("#")[0].split() for line in lines if line.startswith("dbt ")]


def cell(value: object) -> str:
    """A value of `dbt show --output json` as the README shows it."""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return re.sub(r"^([0-9-]{10})T([0-9:]{8})(\.0+)?$", r"\1 \2", text)


def test_the_section_is_complete() -> None:
    assert list(FILES)[:2] == ["packages.yml", "profiles.yml"]
    assert [command[:2] for command in commands_of(BLOCKS)] == [
        ["dbt", "deps"],
        ["dbt", "build"],
        ["dbt", "show"],
    ]


def test_the_revision_is_a_commit_of_this_repository() -> None:
    revision = re.search(r"revision: ([0-9a-f]{40})$", FILES["packages.yml"], re.MULTILINE)
    assert revision
    known = subprocess.run(
        ["git", "-C", str(ROOT), "cat-file", "-t", revision[1]],
        check=False,
        text=True,
        capture_output=True,
    )
    if (ROOT / ".git").exists():
        assert known.stdout.strip() == "commit", known.stderr


@pytest.mark.proof
def test_the_first_dimension(tmp_path: Path) -> None:
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    (tmp_path / "dbt_project.yml").write_text(PROJECT)
    (tmp_path / "packages.yml").write_text(f"packages: [{{local: '{ROOT}'}}]\n")
    output = ""
    for command in commands_of(BLOCKS):
        more = ["--output", "json", "--limit", "-1", "--quiet"] if command[1] == "show" else []
        done = subprocess.run(
            [str(Path(sys.executable).with_name("dbt")), *command[1:], *more, "--no-use-colors"],
            check=False,
            cwd=tmp_path,
            env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
            text=True,
            capture_output=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        output = done.stdout
    shown = json.loads(output[output.index("{") : output.rindex("}") + 1])["show"]
    expected = next(table_of(block) for block in BLOCKS if block.kind == "table")
    rows = [[cell(row[name]) for name in expected.header] for row in shown]
    assert difference(expected, rows) == {}
