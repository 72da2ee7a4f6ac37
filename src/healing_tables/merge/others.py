"""What other programs have changed in a dimension: rows of its audit, with an unknown actor, before the next merge.

The macro `_audit_others` (macros/merge/sql/_audited_merge.sql) does the same, with the same ids, so either way adds
them once.
"""

from __future__ import annotations

import logging

from pyspark.sql import DataFrame, SparkSession

from healing_tables.definition.layout import Layout
from healing_tables.definition.spec import DimensionSpec
from healing_tables.errors import HealingTablesError
from healing_tables.merge.audit import add_publish, audit_columns, row_id_of
from healing_tables.merge.erased import keys_not_erased
from healing_tables.merge.tables import DimensionTables
from healing_tables.plan.batch import key_names, named_keys
from healing_tables.plan.columns import key_struct, with_columns
from healing_tables.plan.stored_rows import row_period
from healing_tables.sql.identifiers import find, literal, quoted
from healing_tables.sql.row_text import row_text
from healing_tables.sql.types import types_of
from healing_tables.targets.sql_table import RowCommit, SqlTable

logger = logging.getLogger("healing_tables")


def audit_others(tables: DimensionTables[SqlTable], target: SqlTable, spark: SparkSession) -> None:
    """Add what was changed since the newest publish in the audit. An audit without one begins with the next merge."""
    if tables.spec.audit is None:
        return
    commits = target.row_commits(spark)
    if not commits or commits[0].is_ours:
        return
    audit, is_known = tables.audit, False
    if audit.rows(spark).where("publish_no is not null").isEmpty():
        return
    missing: list[tuple[RowCommit, str]] = []
    for commit in commits:
        moment = target.moment(spark, commit.version)
        is_known = (
            commit.is_ours
            or audit.was_written_by(spark, publish_of(commit))
            or not audit.rows(spark).where(f"published_at = {moment}").isEmpty()
        )
        if is_known:
            break
        missing.insert(0, (commit, moment))
    if not is_known:
        text = "%s: its audit lacks versions %s to %s, since older ones may be gone"
        logger.warning(text, target.name, missing[0][0].version, missing[-1][0].version)
        return
    for commit, moment in missing:
        logger.info("%s: adding to its audit version %s, which is of another writer", target.name, commit.version)
        try:
            add_commit(tables, target, commit, moment, spark)
        except Exception as error:
            if isinstance(error, HealingTablesError):
                raise
            reason = str(error).strip().splitlines()[0]
            text = "%s: its audit lacks version %s of another writer: it, or the version before, cannot be read: %s"
            logger.warning(text, target.name, commit.version, reason)


def publish_of(commit: RowCommit) -> str:
    """The id of such a commit in the audit."""
    return f"others/{commit.version}/{commit.version}"


def add_commit(
    tables: DimensionTables[SqlTable], target: SqlTable, commit: RowCommit, moment: str, spark: SparkSession
) -> None:
    """The audit of one commit. Args: moment: of it, as SQL."""
    layout, publish = tables.layout, publish_of(commit)
    after = target.rows(spark, commit.version)
    before = after.limit(0) if commit.before is None else target.rows(spark, commit.before)
    changes = differences(before, after, layout, tables.spec)
    kept = keys_not_erased(changes.select(*key_names(layout)).distinct(), target, layout)
    rows = changes.join(kept, key_names(layout), "left_semi").selectExpr(
        *audit_columns(
            target.name,
            layout,
            {"actor": "unknown"},
            f"others/{commit.version}",
            (row_text("stored", types_of(before.schema)), row_text("new", types_of(after.schema))),
            row_id=row_id_of(publish, "at"),
        )
    )
    add_publish(tables.audit, rows, f"others/{commit.version}", publish, moment)


def differences(before: DataFrame, after: DataFrame, layout: Layout, spec: DimensionSpec) -> DataFrame:
    """The rows that differ between two versions of a table, by key and start, in the columns that an audit reads.

    Returns: ``k1..n``, ``at`` (the start), and ``key``, ``action``, ``reason``, ``moment``, ``changed_columns``,
        ``stored``, ``new``, ``cause`` of `plan.plan`.
    """
    types = {**types_of(before.schema), **types_of(after.schema)}
    sides = {"stored": before, "new": after}
    frames = []
    for side, frame in sides.items():
        period, columns = row_period(layout, spec), ", ".join(map(quoted, frame.columns))
        frames.append(
            frame.selectExpr(
                *named_keys(layout),
                f"{period.start} as at",
                f"struct({columns}) as {side}",
                f"{period.alive} as {side}_alive",
                f"{period.until} as {side}_until",
                f"{literal(True)} as is_{side}",
            )
        )
    keys = key_names(layout)
    joined = frames[0].join(frames[1], [*keys, "at"], "full_outer")
    same = {name: " <=> ".join(value_in(side, name, frame) for side, frame in sides.items()) for name in types}
    changed = ", ".join(f"if({condition}, null, {literal(name)})" for name, condition in same.items())
    rows = joined.selectExpr("*", f"array_compact(array({changed})) as changed_columns")
    rows = rows.where("is_stored is null or is_new is null or size(changed_columns) > 0")
    over = f"over (partition by {', '.join(keys)}"
    rows = rows.selectExpr(
        "*",
        "case when is_stored is null then 'insert' when is_new is null then 'remove' "
        "when stored_alive and not new_alive then 'close' else 'update' end as action",
        f"max(is_stored) {over}) is not null as has_stored",
        f"lead(if(is_new is null, null, at)) ignore nulls {over} order by at) as next_at",
    )
    rows = rows.selectExpr(
        "*",
        "case action when 'insert' then if(has_stored, 'changed', 'new') when 'remove' then 'replaced' "
        "when 'close' then if(new_until <=> next_at, 'changed', 'deleted') "
        "else if(new_alive and not stored_alive, 'reopened', 'overwritten') end as reason",
        "if(action = 'close', coalesce(new_until, at), at) as moment",
        key_struct(layout),
    )
    return with_columns(
        rows,
        changed_columns="if(action = 'insert', null, changed_columns)",
        cause="cast(null as struct<change_reason: string, change_source: string, correlation_id: string>)",
    )


def value_in(side: str, name: str, frame: DataFrame) -> str:
    """A column of a row, NULL if the table did not have it. Args: side: stored or new."""
    found = find(name, frame.columns)
    return "null" if found is None else f"{side}.{quoted(found)}"
