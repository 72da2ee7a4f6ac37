"""Runs the compiled code of a Python model in dbt's own process."""

from __future__ import annotations

import linecache
import os
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbt.adapters.base.impl import PythonJobHelper
from dbt.adapters.contracts.connection import AdapterResponse
from dbt_common.exceptions import DbtRuntimeError

from dbt_healing_tables.progress import progress_of

# frames that tell a user nothing about the model
INNER = ("/pyspark/", "/py4j/", "/dbt_healing_tables/")


@dataclass
class MergeResponse(AdapterResponse):
    """The figures of a merge, for ``run_results.json``."""

    rows_in_batch: int | None = None
    inserted: int | None = None
    closed: int | None = None
    updated: int | None = None
    set_aside: int | None = None
    attempts: int | None = None
    commit_version: int | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class Source:
    """Code whose line numbers are those of the file that the user wrote, as far as ``last_line``."""

    filename: str
    code: str
    last_line: int


class SessionJob(PythonJobHelper):
    """dbt creates one for each model that it submits."""

    def __init__(self, project: str, packages: str, parsed_model: dict[str, Any], credentials: Any) -> None:
        self.folders = [Path(project), Path(project, packages, parsed_model["package_name"])]
        self.model = parsed_model
        self.credentials = credentials

    def submit(self, compiled_code: str) -> Any:
        """Run the code; returns the figures of a merge, or None.

        Raises: DbtRuntimeError with the library's own message, or with the traceback of the user's lines.
        """
        source = source_of(self.model, compiled_code, self.folders)
        lines = source.code.splitlines(keepends=True)
        # no time of change: the entry stays what it is when the file is edited during the run
        linecache.cache[source.filename] = (len(source.code), None, lines, source.filename)
        # functions for workers are pickled by value from __main__, and from no other name
        namespace: dict[str, Any] = {"__name__": "__main__", "spark": self.spark()}
        with progress_of(str(self.model["config"].get("materialized"))):
            try:
                code = compile(source.code, source.filename, "exec", dont_inherit=True)
                exec(code, namespace)  # noqa: S102 - what this class is for
            except Exception as error:
                raise DbtRuntimeError(message_of(error, source)) from error
        return namespace.get("healing_tables_response")

    def spark(self) -> Any:
        """The session that dbt-spark's own statements use; a Connect session with SPARK_REMOTE."""
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.enableHiveSupport()
        for name, value in self.credentials.server_side_parameters.items():
            builder = builder.config(name, value)
        return builder.getOrCreate()


def source_of(model: dict[str, Any], compiled_code: str, folders: list[Path]) -> Source:
    """The code with the line numbers of the model's file, since dbt removes blank lines from its beginning.

    Args:
        folders: where the file may be, the project before an installed package.
    """
    if model.get("language") != "python":
        return Source(f"<{model['name']}>", compiled_code, 0)
    raw_code = model["raw_code"]
    path = model["original_file_path"]
    blank = 0
    for folder in folders:
        file = folder / path
        text = file.read_text(encoding="utf-8") if file.is_file() else ""
        if text.strip() == raw_code.strip():
            path = os.path.relpath(file, folders[0])
            blank = text[: len(text) - len(text.lstrip())].count("\n")
            break
    before, found, after = compiled_code.partition(raw_code)
    if not found or before.strip():
        return Source(path, compiled_code, sys.maxsize)
    return Source(path, "\n" * blank + raw_code + after, blank + len(raw_code.splitlines()))


def message_of(error: Exception, source: Source) -> str:
    library = sys.modules.get("healing_tables")
    if library is not None and isinstance(error, library.HealingTablesError):
        return str(error)
    report = traceback.TracebackException.from_exception(error)
    part: traceback.TracebackException | None = report
    while part is not None:
        part.stack = traceback.StackSummary.from_list([frame for frame in part.stack if is_users(frame, source)])
        part = part.__cause__ or part.__context__
    lines = report.format() if report.stack or report.__cause__ else report.format_exception_only()
    # a Connect server appends its own stack
    return "".join(lines).partition("JVM stacktrace:")[0].strip()


def is_users(frame: traceback.FrameSummary, source: Source) -> bool:
    if frame.filename == source.filename:
        return (frame.lineno or 0) <= source.last_line
    return frame.filename != __file__ and not any(part in frame.filename for part in INNER)
