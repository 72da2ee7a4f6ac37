"""A stranger's project installs the package from a folder, a git URL and a tarball, and uses it on its own models.

The project names dbt_utils as users do; see third_party.py for what the tests put in its place.
"""

from __future__ import annotations

import functools
import http.server
import os
import shutil
import subprocess
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from dbt.cli.main import dbtRunner
from pyspark.sql import SparkSession
from sessions import ROOT
from third_party import dbt_utils

DBT_UTILS = f"  - local: '{dbt_utils()}'\n"
KEPT = ("macros", "models", "python_models", "tests", "dbt_project.yml", "packages.yml")


def invoke(home: Path, *args: str) -> object:
    where = ["--project-dir", str(home)] + ([] if args[0] == "deps" else ["--profiles-dir", str(home)])
    outcome = dbtRunner().invoke([*args, *where, "--quiet"])
    assert outcome.success, outcome.exception or outcome.result
    return outcome.result


@pytest.fixture
def project(tmp_path: Path) -> Path:
    home = tmp_path / "acme_shop"
    shutil.copytree(
        ROOT / "integration_tests",
        home,
        ignore=shutil.ignore_patterns("dbt_packages", "target", "logs"),
    )
    packages = (home / "packages.yml").read_text()
    from_hub = '  - package: dbt-labs/dbt_utils\n    version: [">=1.3.0", "<2.0.0"]\n'
    assert from_hub in packages
    (home / "packages.yml").write_text(packages.replace(from_hub, DBT_UTILS))  # the hub is not asked
    return home


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """The package as it is in this checkout, without what git ignores."""
    home = tmp_path / "healing_tables-0.1.0"
    home.mkdir()
    for name in KEPT:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, home / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, home / name)
    return home


@pytest.fixture
def tarball_url(tmp_path: Path, package: Path) -> Iterator[str]:
    """A loopback server that has the package as a tarball."""
    (tmp_path / "served").mkdir()
    with tarfile.open(tmp_path / "served" / "healing_tables.tar.gz", "w:gz") as archive:
        archive.add(package, arcname=package.name)
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(tmp_path / "served"))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/healing_tables.tar.gz"
    server.shutdown()
    server.server_close()


def test_local_path_builds_and_passes(spark: SparkSession, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEALING_TABLES_PACKAGE", str(ROOT))
    invoke(project, "deps")
    result = invoke(project, "build")
    statuses = {item.node.name: str(item.status) for item in result.results}  # type: ignore[attr-defined]
    assert set(statuses.values()) <= {"success", "pass"}, statuses
    assert len(statuses) == 11
    rows = spark.sql(
        "select product_id, product_name, category, cast(price as string), cast(valid_from as string), is_current "
        "from acme.dim_product order by product_id, valid_from"
    ).collect()
    assert [tuple(row) for row in rows] == [
        ("1", "Tea", "drinks", "3.50", "2024-01-01 08:00:00", "N"),
        ("1", "Green tea", "drinks", "3.50", "2024-02-01 08:00:00", "N"),
        ("1", "Green tea", "drinks", "3.90", "2024-03-01 00:00:00", "Y"),
        ("2", "Mug", "kitchen", "8.00", "2024-01-05 08:00:00", "N"),
    ]


@pytest.mark.slow
def test_git_url(project: Path, package: Path) -> None:
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@localhost", "-C", str(package)]
    for command in (
        ["init", "--quiet"],
        ["add", "."],
        ["commit", "--quiet", "-m", "package"],
        ["tag", "v0.1.0"],
    ):
        subprocess.run([*git, *command], check=True)
    (project / "packages.yml").write_text(f"packages:\n  - git: 'file://{package}'\n    revision: v0.1.0\n{DBT_UTILS}")
    assert_installs(project)


@pytest.mark.slow
def test_tarball(project: Path, tarball_url: str) -> None:
    (project / "packages.yml").write_text(
        f"packages:\n  - tarball: '{tarball_url}'\n    name: healing_tables\n{DBT_UTILS}"
    )
    assert_installs(project)


def assert_installs(project: Path) -> None:
    invoke(project, "deps")
    assert (project / "dbt_packages" / "healing_tables" / "macros" / "dimension.sql").exists()
    assert "acme_shop.dim_product" in invoke(project, "ls")  # type: ignore[operator]


def test_installing_adds_nothing_to_a_project(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEALING_TABLES_PACKAGE", str(ROOT))
    for name in ("models/dim_product.sql", "models/dim_product.yml", "tests/same_keys_as_dbt_utils.sql"):
        os.remove(project / name)
    (project / "packages.yml").rename(project / "later.yml")
    before = invoke(project, "ls")
    (project / "later.yml").rename(project / "packages.yml")
    invoke(project, "deps")
    assert invoke(project, "ls") == before
