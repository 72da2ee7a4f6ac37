"""A newcomer follows the section *Install in your project* of the README: an empty folder, dbt as a command, its own
JVM."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import threading
import zipfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from archive import archive_of
from lab import Lab
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


def test_an_archive_of_a_commit_is_small(tmp_path: Path) -> None:
    """What `tarball:` installs: no tests of this repository, and none of the large data."""
    file = archive_of(tmp_path)
    assert file.stat().st_size < 1_000_000
    with tarfile.open(file) as opened:
        names = {name.removeprefix("healing-tables-0/") for name in opened.getnames()}
    assert {"dbt_project.yml", "macros/dimension.sql", "src/healing_tables/__init__.py"} <= names
    assert not [name for name in names if name.startswith(("tests", "data/congress"))]


def test_an_archive_of_a_commit_has_the_generic_tests(lab: Lab, tmp_path: Path) -> None:
    """The first example of the README with the package from an archive on a server."""
    folder = archive_of(tmp_path).parent
    shutil.rmtree(lab.home / "dbt_packages")
    for path in ("models/supplier_changes.sql", "models/dim_supplier.sql", "models/dim_supplier.yml"):
        lab.write(path, FILES[path])
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever).start()
        address = f"http://127.0.0.1:{server.server_port}/healing-tables.tar.gz"
        lab.write("packages.yml", f"packages: [{{tarball: '{address}', name: healing_tables}}]\n")
        lab.dbt("deps")
        server.shutdown()
    assert not (lab.home / "dbt_packages" / "healing_tables" / "tests").exists()
    results = lab.dbt("build")
    assert lab.succeeded, results
    assert {status for status, _ in results.values()} == {"success", "pass"}
    assert len(results) == 3, results


def run_in(folder: Path, command: list[str]) -> str:
    """What a command that succeeds prints, in a folder and a JVM of its own."""
    done = subprocess.run(
        command,
        check=False,
        cwd=folder,
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
        text=True,
        capture_output=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_first_dimension(tmp_path: Path) -> None:
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    (tmp_path / "dbt_project.yml").write_text(PROJECT)
    (tmp_path / "packages.yml").write_text(f"packages: [{{local: '{ROOT}'}}]\n")
    output = ""
    for command in commands_of(BLOCKS):
        more = ["--output", "json", "--limit", "-1", "--quiet"] if command[1] == "show" else []
        output = run_in(tmp_path, [str(Path(sys.executable).with_name("dbt")), *command[1:], *more, "--no-use-colors"])
    shown = json.loads(output[output.index("{") : output.rindex("}") + 1])["show"]
    expected = next(table_of(block) for block in BLOCKS if block.kind == "table")
    rows = [[cell(row[name]) for name in expected.header] for row in shown]
    assert difference(expected, rows) == {}


@pytest.mark.slow
def test_pyspark_without_dbt(tmp_path: Path) -> None:
    """The Python code of docs/install.md, in an empty folder and its own JVM."""
    blocks = [block for block in blocks_of((ROOT / "docs" / "install.md").read_text()) if block.kind == "python"]
    assert len(blocks) == 1
    output = run_in(tmp_path, [sys.executable, "-c", "\n".join(blocks[0].lines)])
    assert "1 row in the batch: 1 inserted, 1 closed, 0 updated; 1 attempt, commit 2" in output
    rows = [line.strip("|").split("|") for line in output.splitlines() if line.startswith("|")]
    assert [[cell.strip() for cell in row] for row in rows[1:]] == [
        ["1", "basic", "2024-01-01", "2024-02-01", "false"],
        ["1", "gold", "2024-02-01", "9999-12-31", "true"],
    ]


@pytest.mark.slow
def test_the_distributions(tmp_path: Path) -> None:
    """What an index would get: complete, with types and the command, and the same from both distributions."""
    build = [sys.executable, "-m", "hatchling", "build", "-d", str(tmp_path)]
    subprocess.run(build, check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
    wheel, sdist = next(tmp_path.glob("*.whl")), next(tmp_path.glob("*.tar.gz"))
    subprocess.run([str(ROOT / "tests" / "environments" / "setup.sh"), "publish"], check=True)
    twine = ROOT / ".environments" / "publish" / "bin" / "twine"
    checked = subprocess.run([twine, "check", "--strict", wheel, sdist], text=True, capture_output=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    names = zipfile.ZipFile(wheel).namelist()
    files = {"healing_tables/py.typed", "dbt_healing_tables/py.typed", "dbt_healing_tables/pages/explain.html"}
    assert files <= set(names)
    assert [name for name in names if not name.startswith(("healing_tables/", "dbt_healing_tables"))] == []
    with tarfile.open(sdist) as archive:
        assert any(name.endswith("/LICENSE") for name in archive.getnames())
    from_sdist = tmp_path / "from_sdist"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    run_in(tmp_path, [*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", str(from_sdist), str(sdist)])
    assert zipfile.ZipFile(next(from_sdist.glob("*.whl"))).namelist() == names
    python = environment_with(tmp_path / "environment", wheel)
    code = "import healing_tables, dbt_healing_tables; print(healing_tables.__file__, dbt_healing_tables.__file__)"
    shown = subprocess.run([python, "-c", code], text=True, capture_output=True, check=True).stdout
    assert shown.count(str(tmp_path)) == 2, shown
    usage = subprocess.run([python.with_name("healing-tables"), "--help"], text=True, capture_output=True, check=True)
    assert "merge" in usage.stdout


def environment_with(home: Path, wheel: Path) -> Path:
    """The interpreter of a new environment with the wheel; what the wheel depends on comes from this one."""
    subprocess.run([sys.executable, "-m", "venv", home], check=True)
    python = home / "bin" / "python"
    install = ["-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--disable-pip-version-check"]
    subprocess.run([python, *install, wheel], check=True)
    own, shared = (
        subprocess.run(
            [each, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
            text=True,
            capture_output=True,
            check=True,
        ).stdout.strip()
        for each in (python, sys.executable)
    )
    (Path(own) / "shared.pth").write_text(f"{shared}\n")
    return python
