"""A throw-away dbt project that installs the package the way users do, and runs in this process."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, cast

from dbt.artifacts.resources.base import FileHash
from dbt.cli.main import dbtRunner
from dbt.contracts.graph.manifest import ManifestStateCheck
from dbt.parser.manifest import ManifestLoader
from pyspark.sql import DataFrame, SparkSession
from sessions import FORMAT, install_package
from tables import Tables, plain_rows

PROFILE = """
lab:
  target: dev
  outputs:
    dev: {type: spark, method: session, host: localhost, schema: %s, threads: 2}
"""
PROJECT = """
name: lab
version: 1.0.0
profile: lab
model-paths: [models]
flags: {send_anonymous_usage_stats: false, require_generic_test_arguments_property: true} # the default from dbt 1.11 on
"""

_state_check: Callable[[ManifestLoader], ManifestStateCheck] = ManifestLoader.build_manifest_state_check


def state_check(loader: ManifestLoader) -> ManifestStateCheck:
    """dbt parses all macros anew where variables or the schema differ: seconds, each time.

    No model of a lab asks for them where dbt reads its configuration, so what was parsed holds.
    """
    found = _state_check(loader)
    if loader.root_project.project_name == "lab":
        found.vars_hash = found.profile_hash = FileHash.from_contents("")
    return found


setattr(ManifestLoader, "build_manifest_state_check", state_check)  # noqa: B010


def scripted(script: str) -> str:
    """The statement that a script of `_run_script` runs, and the handlers before it."""
    return script[: script.rindex(";", 0, script.rindex(";"))]


class Lab(Tables):
    """Write models, run dbt, read tables.

    ``results`` maps a node's name to ``(status, message)`` of the newest run that had it; ``succeeded`` is what the
    exit code of the newest run says; ``statements`` are those of that run, with their seconds. ``parsed`` is what dbt
    has kept of parsing an empty lab, if it has been.
    """

    parsed: ClassVar[Path | None] = None

    def __init__(self, spark: SparkSession, home: Path, *, schema: str) -> None:
        super().__init__(spark, schema=schema)
        self.home = home
        self.results: dict[str, tuple[str, str]] = {}
        self.succeeded = True
        self.writes_artifacts = True  # manifest.json, run_results.json
        self.log: list[str] = []
        self.statements: list[tuple[float, str]] = []
        self.notes: dict[str, list[str]] = {}  # what a fixture has seen for its tests
        (home / "models").mkdir(exist_ok=True)
        install_package(home)
        (home / "profiles.yml").write_text(PROFILE % schema)
        (home / "dbt_project.yml").write_text(PROJECT)
        if self.parsed is not None:
            (home / "target").mkdir(exist_ok=True)
            shutil.copy(self.parsed, home / "target")

    def model(self, name: str, sql: str, *, materialized: str = "view", **config: Any) -> None:
        settings = {"materialized": materialized, **config}
        if FORMAT != "delta" and materialized in ("healing_table", "healing_merge", "capture", "table"):
            settings.setdefault("file_format", FORMAT)
        (self.home / "models" / f"{name}.sql").write_text(f"{{{{ config(**{settings!r}) }}}}\n{sql}\n")

    def write(self, path: str, text: str) -> None:
        target = self.home / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def listen(self, event: Any) -> None:
        self.log.append(str(getattr(event.info, "msg", "")))
        if event.info.name == "SQLQuery":
            self.end_statement()
            self.statements.append((time.perf_counter(), event.data.sql))

    def end_statement(self) -> None:
        """The seconds of a statement end when the next one begins: with the fetch of its rows."""
        if self.statements:
            started, sql = self.statements[-1]
            self.statements[-1] = (time.perf_counter() - started, sql)

    def build(self, name: str, *args: str) -> dict[str, Any]:
        """Build one dimension: its newest row in the log. What is stored is what the select gives."""
        results = self.dbt("run", "--select", name, *args)
        assert results[name][0] == "success", results
        assert self.rows(name) == plain_rows(self.select(name)), name
        return self.newest(name)

    def newest(self, name: str) -> dict[str, Any]:
        """The newest row of a dimension in the log."""
        log = self.spark.table(f"{self.schema}.healing_log").where(f"dimension = '{name}'").orderBy("finished_at")
        return log.tail(1)[0].asDict(recursive=True)

    def select(self, name: str) -> DataFrame:
        """What the compiled SQL of a model gives."""
        return self.spark.sql((self.home / "target/compiled/lab/models" / f"{name}.sql").read_text())

    def dbt(self, *args: str) -> dict[str, tuple[str, str]]:
        """Run dbt; returns the results of this run by node name."""
        self.log, self.statements = [], []
        runner = dbtRunner(callbacks=[self.listen])
        where = ["--project-dir", str(self.home), "--write-json" if self.writes_artifacts else "--no-write-json"]
        if "--profiles-dir" not in args:
            where += ["--profiles-dir", str(self.home)]
        outcome = runner.invoke([*args, *where, "--no-use-colors"])
        if outcome.exception is not None:
            raise outcome.exception
        self.end_statement()
        self.succeeded = outcome.success
        results = getattr(outcome.result, "results", None) or []
        found = {
            result.node.name: (str(result.status), result.message or "")
            for result in results
            if hasattr(result, "node")
        }
        self.results.update(found)
        return found

    def listed(self, *args: str) -> list[str]:
        """What `dbt ls` prints."""
        where = ["--project-dir", str(self.home), "--profiles-dir", str(self.home)]
        outcome = dbtRunner().invoke([*args, *where, "--quiet"])
        if outcome.exception is not None:
            raise outcome.exception
        return list(cast(list[str], outcome.result))
