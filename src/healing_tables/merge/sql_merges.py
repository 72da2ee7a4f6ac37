"""Merges that dbt has run as SQL (macros/merge/sql): what their commits say, and the audit that a stopped one lacks."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from pyspark.sql import DataFrame, SparkSession

from healing_tables.errors import HealingTablesError
from healing_tables.merge.attempt import changes_by_log
from healing_tables.merge.audit import add_publish, audit_rows, row_id_of
from healing_tables.merge.change_log import ChangeLog
from healing_tables.merge.erased import keys_not_erased
from healing_tables.merge.tables import DimensionTables
from healing_tables.plan.batch import named_keys
from healing_tables.sql.identifiers import literal, quoted
from healing_tables.sql.instants import as_micros
from healing_tables.targets.key_map import KeyMap
from healing_tables.targets.sql_table import SqlTable

logger = logging.getLogger("healing_tables")

# The ids of such merges in the commits of a change log
SQL_MERGE = re.compile("sql-[0-9a-f-]{36}")
# The tag in a commit of the dimension, URL-encoded with ~ for %: see macros/build/_commit_tag.sql
TAG = re.compile("~7B~22(?:base|id)~22~3A[A-Za-z0-9._~/-]+~7D")


def read_tag(parameters: str) -> dict[str, Any] | None:
    """The tag of a commit. Args: parameters: of its operation, as the history shows them."""
    found = TAG.search(parameters)
    if found is None:
        return None
    tag: dict[str, Any] = json.loads(unquote(found[0].replace("~", "%")))
    return tag


def newest_tag(table: SqlTable, spark: SparkSession) -> tuple[int, dict[str, Any]] | None:
    """The version and the tag of the newest commit that has one of a merge."""
    for version, parameters in table.newest_commits(spark):
        tag = read_tag(parameters)
        if tag is not None and "changes" in tag["marks"]:
            return version, tag
    return None


def unpublished_merges(target: SqlTable, log_table: SqlTable, spark: SparkSession) -> list[str]:
    """The ids of merges whose rows are in the log, but perhaps not in the dimension.

    They add to the log first; their commit of the dimension names the version of the log that it has.
    """

    def published() -> int | None:
        found = newest_tag(target, spark)
        version: int | None = None if found is None else found[1]["marks"]["changes"]["version"]
        return version

    return log_table.merges_since(spark, SQL_MERGE, published)


def merges_without_history(target: SqlTable, history: SqlTable, log_table: SqlTable, spark: SparkSession) -> list[str]:
    """Of type 4, the ids of merges whose keys may not be in the history as the newest merge has left the dimension.

    A merge as SQL writes the history after the dimension, whose tag names the commit of the history.
    """
    found = newest_tag(target, spark)
    wanted = None if found is None else found[1]["marks"]["changes"].get("history")
    if found is None or wanted is None or history.was_written_by(spark, wanted):
        return []
    if not found[1]["marks"]["changes"]["is_whole"]:
        return [f"sql-{found[1]['id']}"]
    return [str(row[0]) for row in log_table.rows(spark).select("merge_id").distinct().collect()]


def complete_audit(tables: DimensionTables[SqlTable], target: SqlTable, spark: SparkSession) -> None:
    """Add the audit of the newest merge, once, if it was stopped between its commit and that.

    As the macro `_complete_audit`: its changes are computed from the log as that commit has it, and the version before.
    """
    log = tables.log
    if log is None or tables.spec.audit is None or (found := newest_tag(target, spark)) is None:
        return
    version, tag = found
    marks, audit, publish = tag["marks"]["changes"], tables.audit, f"{tag['id']}/{version}"
    if not marks.get("is_audited") or audit.was_written_by(spark, publish):
        return
    if not audit.rows(spark).where(f"batch_id = {literal(tag['id'])}").isEmpty():
        return
    try:
        add_audit(tables, log, target, version, tag, spark)
    except Exception as error:
        if isinstance(error, HealingTablesError):
            raise
        reason = str(error).strip().splitlines()[0]
        text = "%s: version %s has no audit: its merge was stopped, and the version before cannot be read: %s"
        logger.warning(text, target.name, version, reason)


def add_audit(
    tables: DimensionTables[SqlTable],
    log: ChangeLog,
    target: SqlTable,
    version: int,
    tag: Mapping[str, Any],
    spark: SparkSession,
) -> None:
    """The audit of one commit. Args: version, tag: of `newest_tag`."""
    layout, spec, publish = tables.layout, tables.spec, f"{tag['id']}/{version}"
    base = target.version_before(version, tag["base"])
    before = None if base is None else target.rows(spark, base)
    logged = log.read(spark, tag["marks"]["changes"]["version"])
    keys = keys_not_erased(differing_keys(tables, before, target.rows(spark, version)), target, layout)
    keys = keys.selectExpr("*", "false as is_full")
    plan = changes_by_log(
        logged.where("false"),
        logged,
        before,
        log,
        0,
        is_full=False,
        full_at=None,
        others=keys.localCheckpoint(),
        history=tables.history.rows(spark) if layout.has_history else None,
    ).plan
    if layout.is_sequence:
        plan = KeyMap(tables.key_map, layout, spec).with_numbers(plan, before)
    start = "null"
    if "valid_from" in layout.names:
        column = quoted(layout.names["valid_from"])
        start = as_micros(f"coalesce(new.{column}, stored.{column})", layout.moment_type)
    rows = audit_rows(
        plan,
        logged.where(f"merge_id = {literal('sql-' + tag['id'])} and not is_full"),
        target.name,
        layout,
        spec,
        tag["id"],
        row_id=row_id_of(publish, start),
    )
    add_publish(tables.audit, rows, tag["id"], publish, target.moment(spark, version))


def differing_keys(tables: DimensionTables[SqlTable], before: DataFrame | None, after: DataFrame) -> DataFrame:
    """``k1..n``: the keys of rows that two versions of the dimension do not share."""
    if before is None:
        return after.selectExpr(*named_keys(tables.layout)).distinct()
    after = after.select(*map(quoted, before.columns))
    rows = before.subtract(after).unionByName(after.subtract(before))
    return rows.selectExpr(*named_keys(tables.layout)).distinct()
