"""`make release`, in a repository of its own: all steps of RELEASE.md that change or make files."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

from archive import archive_of


def test_a_release(tmp_path: Path) -> None:
    """`make release` in a clone: two commits, of which the second names the first, and files with the version."""
    with tarfile.open(archive_of(tmp_path)) as archive:
        archive.extractall(tmp_path, filter="data")
    home = tmp_path / "healing-tables-0"
    (home / "CHANGELOG.md").write_text(
        "# Changelog\n\n## Unreleased\n\n- New.\n\n## 0.1.0 (2026-11-27)\n\nThe first.\n"
    )
    names = {f"GIT_{who}_{what}": "test" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, **names}
        return subprocess.run(command, cwd=home, env=environment, text=True, capture_output=True, check=False)

    def release(version: str) -> subprocess.CompletedProcess[str]:
        return run(sys.executable, "scripts/release.py", version)

    for command in ("init --quiet", "add .", "commit --quiet -m package"):
        run("git", *command.split())
    assert "wanted a version such as 0.2.0" in release("v9.1.0").stderr
    (home / "LICENSE").rename(home / "LICENCE")
    assert "wanted a clean working tree" in release("9.1.0").stderr
    (home / "LICENCE").rename(home / "LICENSE")
    done = release("9.1.0")
    assert done.returncode == 0, done.stdout + done.stderr
    assert run("git", "log", "--format=%s").stdout.splitlines() == [
        "README: the commit of version 9.1.0",
        "Version 9.1.0",
        "package",
    ]
    assert run("git", "show", "--format=", "--name-only", "HEAD").stdout.split() == ["README.md"]
    assert f"    revision: {run('git', 'rev-parse', 'HEAD~1').stdout}```" in (home / "README.md").read_text()
    changelog = (home / "CHANGELOG.md").read_text()
    assert re.search(r"^# Changelog\n\n## 9[.]1[.]0 [(]\d{4}-\d\d-\d\d[)]\n\n- New[.]\n\n## 0[.]1[.]0 ", changelog), (
        changelog
    )
    files = {file.name: file for file in (home / "target" / "release").iterdir()}
    wheel, sdist, package = (
        "dbt_healing_tables-9.1.0-py3-none-any.whl",
        "dbt_healing_tables-9.1.0.tar.gz",
        "healing-tables-9.1.0.tar.gz",
    )
    assert set(files) == {wheel, sdist, package}
    metadata = zipfile.ZipFile(files[wheel]).read("dbt_healing_tables-9.1.0.dist-info/METADATA").decode()
    assert "\nVersion: 9.1.0\n" in metadata
    with tarfile.open(files[package]) as archive:
        assert {name.split("/")[0] for name in archive.getnames()} == {"healing-tables-9.1.0"}
        project = archive.extractfile("healing-tables-9.1.0/dbt_project.yml")
        assert project is not None and b"\nversion: 9.1.0\n" in project.read()
    assert "CHANGELOG.md has a section 9.1.0" in release("9.1.0").stderr
    assert "CHANGELOG.md: wanted one place" in release("9.2.0").stderr  # nothing has changed since
