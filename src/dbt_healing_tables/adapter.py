"""dbt-spark's adapter, able to run Python models on the session that it already has."""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from typing import Any

from dbt.adapters.base.meta import available
from dbt.adapters.contracts.connection import AdapterResponse
from dbt.adapters.spark.impl import SparkAdapter as StockAdapter
from dbt_common.exceptions import DbtRuntimeError

from dbt_healing_tables.session import MergeResponse, SessionJob
from dbt_healing_tables.stacks import with_short_errors

SESSION = "session"


def with_session_models(stock: type[StockAdapter]) -> type[StockAdapter]:
    """``stock`` with a submission method ``session`` and short errors; itself if it is ours already."""
    if hasattr(stock, "healing_tables_obstacle"):
        return stock

    # dbt goes by the name of the class
    class SparkAdapter(stock):  # type: ignore[misc, valid-type]
        ConnectionManager = with_short_errors(stock.ConnectionManager)

        @available
        def healing_tables_obstacle(self, submission_method: str | None) -> dict[str, str] | None:
            """Why a model of healing_merge cannot run here; None if it can."""
            method = str(self.config.credentials.method)
            chosen = submission_method or self.default_python_submission_method
            if chosen != SESSION:
                got = f"submission_method {chosen}" if submission_method else f"method {method}"
                return {
                    "wanted": "the method session of dbt-spark, since the merge runs in dbt's own process",
                    "got": got,
                    "remedy": "set method: session in profiles.yml (with SPARK_REMOTE for a Spark Connect server) "
                    "and no other submission_method",
                }
            if find_spec("healing_tables") is None:
                return {
                    "wanted": "the Python library healing_tables",
                    "got": "an environment of dbt without it",
                    "remedy": "install the Python library again in dbt's environment, see docs/merging.md",
                }
            return None

        @available
        def healing_tables_convert(
            self, table: str, key_buckets: int | None, key_columns: list[str], location: str | None
        ) -> str:
            """`healing_tables.convert_table` on the session of dbt; the name that the old table has now."""
            from pyspark.sql import SparkSession

            from healing_tables import HealingTablesError, convert_table

            spark = SparkSession.builder.getOrCreate()
            try:
                return convert_table(spark, table, key_buckets=key_buckets, key_columns=key_columns, location=location)
            except HealingTablesError as error:
                raise DbtRuntimeError(str(error)) from error

        @available
        def healing_tables_try(self, statement: str, classes: list[str]) -> str | None:
            """Run a statement; which of these Java exceptions has ended it, None if none has."""
            try:
                self.execute(statement)
            except Exception as error:  # dbt-spark wraps some of what Spark raises
                from healing_tables.targets.conflicts import java_classes

                found = [name for source in (error, error.__context__) if source for name in java_classes(source)]
                caught = next((name for name in classes if name in found), None)
                if caught is None:
                    raise
                return caught
            return None

        @property
        def default_python_submission_method(self) -> str:
            if SESSION in self.python_submission_helpers:
                return SESSION
            return str(super().default_python_submission_method)

        @property
        def python_submission_helpers(self) -> dict[str, Any]:
            helpers: dict[str, Any] = super().python_submission_helpers
            if str(self.config.credentials.method) != SESSION or SESSION in helpers:
                return helpers  # another connection, or a dbt-spark that can do it by itself
            folders = [self.config.project_root, self.config.packages_install_path]
            return {**helpers, SESSION: partial(SessionJob, *folders)}

        def generate_python_submission_response(self, submission_result: Any) -> AdapterResponse:
            if isinstance(submission_result, MergeResponse):
                return submission_result
            stock_response: AdapterResponse = super().generate_python_submission_response(submission_result)
            return stock_response

    return SparkAdapter
