"""What a code host reads: workflows call commands that exist, and an archive of a commit has only the package."""

from __future__ import annotations

import json
import re
import tarfile
from pathlib import Path

import yaml
from archive import archive_of
from sessions import ROOT

GITHUB = ROOT / ".github"


def test_workflows_call_what_exists() -> None:
    texts = {path.name: path.read_text() for path in (GITHUB / "workflows").glob("*.yml")}
    jobs = {name: next(iter(yaml.safe_load(text)["jobs"].values())) for name, text in texts.items()}
    assert sorted(jobs) == ["ci.yml", "nightly.yml"]
    assert jobs["ci.yml"]["steps"][-1] == {"run": ".ci/run"}
    assert jobs["nightly.yml"]["steps"][-1] == {"run": "make ${{ matrix.tests }}"}
    matrix = jobs["nightly.yml"]["strategy"]["matrix"]
    called = [*matrix["tests"], *(each["tests"] for each in matrix["include"])]
    assert set(called) <= set(re.findall(r"^(\w+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for text in texts.values():
        assert all(re.fullmatch(r"actions/[\w-]+@v\d+", used) for used in re.findall(r"uses: (\S+)", text))


def test_the_versions_of_python_of_the_nightly_tests() -> None:
    """Those that tests/environments asks for are installed."""
    wanted = [
        match[1]
        for path in (ROOT / "tests" / "environments").glob("*.txt")
        if (match := re.search(r"^# python (\S+)$", path.read_text(), re.MULTILINE))
    ]
    job = yaml.safe_load((GITHUB / "workflows" / "nightly.yml").read_text())["jobs"]["tests"]
    installed = next(step["with"]["python-version"] for step in job["steps"] if "setup-python" in step.get("uses", ""))
    assert wanted and set(wanted) <= set(installed.split())


def test_issue_forms() -> None:
    for path in (GITHUB / "ISSUE_TEMPLATE").glob("*.yml"):
        form = yaml.safe_load(path.read_text())
        assert {"name", "description", "body"} <= set(form)
        assert len({field["id"] for field in form["body"]}) == len(form["body"])
    assert "healing_tables.check_setup" in (GITHUB / "ISSUE_TEMPLATE" / "bug.yml").read_text()


def test_the_dev_container_has_versions_that_setup_accepts() -> None:
    container = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text())
    assert container["postCreateCommand"] == "make setup"
    assert re.search(r"python:3[.]1[0-3]\b", container["image"])
    assert [int(feature["version"]) for feature in container["features"].values()] == [17]


def test_an_archive_has_only_the_package(tmp_path: Path) -> None:
    with tarfile.open(archive_of(tmp_path)) as archive:
        names = {name.split("/")[1] for name in archive.getnames() if "/" in name}
    assert {"dbt_project.yml", "macros", "src", "README.md"} <= names
    assert names & {".ci", ".devcontainer", ".editorconfig", ".github", "benchmarks", "tests"} == set()
