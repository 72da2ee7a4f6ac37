"""The rows of a merge for the audit of its dimension."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from healing_tables.definition.layout import Layout
from healing_tables.definition.spec import CAUSE, DimensionSpec
from healing_tables.plan.batch import key_names, key_values
from healing_tables.sql.identifiers import literal, quoted
from healing_tables.sql.instants import TIMESTAMP
from healing_tables.sql.row_text import row_text
from healing_tables.sql.values import JSON
from healing_tables.targets.naming import as_view
from healing_tables.targets.retry import retrying

if TYPE_CHECKING:
    from healing_tables.targets.sql_table import SqlTable


class Publish(NamedTuple):
    """What numbers a publish, and its moment, as SQL."""

    number: str
    at: str


AUDIT_COLUMNS = {
    "dimension": "string",
    "key": "string",
    "old_surrogate_key": "string",
    "new_surrogate_key": "string",
    "change_type": "string",
    "change_reason": "string",
    "changed_columns": "array<string>",
    "old_values": "string",
    "new_values": "string",
    "changed_at": TIMESTAMP,
    "actor": "string",
    "reason": "string",
    "source": "string",
    "batch_id": "string",
    "row_id": "string",
    "correlation_id": "string",
    "publish_no": "bigint",
    "published_at": TIMESTAMP,
}
# The columns that tell the publishes of a dimension apart
PUBLISH = ("publish_no", "published_at")
# Older audits lack these columns
ADDED_LATER = {*CAUSE, *PUBLISH}
NOT_PUBLISHED = Publish("cast(null as bigint)", f"cast(null as {TIMESTAMP})")


def audit_rows(
    plan: DataFrame,
    events: DataFrame,
    dimension: str,
    layout: Layout,
    spec: DimensionSpec,
    batch_id: str,
    publish: Publish = NOT_PUBLISHED,
    row_id: str = "uuid()",
) -> DataFrame:
    """The changes of a plan, in AUDIT_COLUMNS.

    Args:
        events: of the batch.
        dimension: its name.
        publish: without it, its columns are empty until the dimension has committed.
        row_id: SQL over the plan.
    """
    columns, added = layout.columns(spec), dict(layout.new_columns)
    stored = {name: kind for name, kind in columns.items() if name not in added}
    plan = with_causes(plan.where("action not in ('archive', 'absent')"), events, layout, spec)
    texts = row_text("stored", stored), row_text("new", columns)
    return plan.selectExpr(
        *audit_columns(dimension, layout, spec.audit or {}, batch_id, texts, publish=publish, row_id=row_id)
    )


def audit_columns(
    dimension: str,
    layout: Layout,
    audit: Mapping[str, str],
    batch_id: str,
    texts: tuple[str, str],
    *,
    publish: Publish = NOT_PUBLISHED,
    row_id: str,
) -> list[str]:
    """AUDIT_COLUMNS, as SQL over a plan.

    Args: audit: the options; texts: old and new values, as SQL; others: as of `audit_rows`.
    """

    def text(name: str) -> str:
        return literal(audit[name]) if audit.get(name) is not None else "cast(null as string)"

    def surrogate(row: str) -> str:
        return (
            "cast(null as string)" if layout.surrogate is None else f"cast({row}.{quoted(layout.surrogate)} as string)"
        )

    actor = text("actor") if audit.get("actor") is not None else "current_user"
    return [
        f"{literal(dimension)} as dimension",
        f"to_json(key, {JSON}) as key",
        f"{surrogate('stored')} as old_surrogate_key",
        f"{surrogate('new')} as new_surrogate_key",
        "action as change_type",
        "reason as change_reason",
        "changed_columns",
        f"{texts[0]} as old_values",
        f"{texts[1]} as new_values",
        "timestamp_micros(moment) as changed_at",
        f"{actor} as actor",
        f"coalesce(cause.change_reason, {text('reason')}) as reason",
        f"coalesce(cause.change_source, {text('source')}) as source",
        f"{literal(batch_id)} as batch_id",
        f"{row_id} as row_id",
        "cause.correlation_id as correlation_id",
        f"{publish.number} as publish_no",
        f"{publish.at} as published_at",
    ]


def append_statement(audit: SqlTable, rows: str, condition: str, moment: str) -> str:
    """The MERGE that adds the audit of one publish, with the next number.

    Args:
        rows: AUDIT_COLUMNS, as SQL for a ``from``.
        condition: on ``t`` and ``s``, for a row that is there already.
        moment: of the commit, as SQL.
    """
    # joined: in a MERGE, Delta reads no subquery of an expression
    number = f"select coalesce(max(publish_no), 0L) + 1 as number from {audit.sql_name}"
    numbered = f"select r.*, number, {moment} as moment from {rows} r cross join ({number})"
    values = {name: f"s.{name}" for name in AUDIT_COLUMNS} | {"publish_no": "s.number", "published_at": "s.moment"}
    return (
        f"merge into {audit.sql_name} t using ({numbered}) s on {condition} {audit.when_matched} "
        f"when not matched then insert ({', '.join(values)}) values ({', '.join(values.values())})"
    )


def row_id_of(publish: str, at: str) -> str:
    """The id of a row in the audit of a publish that either way may add, as SQL. Args: at: the start, as SQL."""
    return f"sha2(concat_ws('|', {literal(publish)}, to_json(key, {JSON}), cast({at} as string)), 256)"


def add_publish(audit: SqlTable, rows: DataFrame, batch_id: str, publish: str, moment: str) -> None:
    """Add the audit of one publish, once, whichever way adds it. Args: rows: AUDIT_COLUMNS; moment: of the commit."""
    spark = rows.sparkSession
    same = f"t.batch_id = {literal(batch_id)} and t.row_id = s.row_id and s.publish = {literal(publish)}"
    with as_view(rows.selectExpr("*", f"{literal(publish)} as publish")) as view:
        statement = append_statement(audit, view, same, moment)
        retrying(audit.name, partial(audit.run, spark, statement))
    audit.note_written_by(spark, publish)


def with_causes(plan: DataFrame, events: DataFrame, layout: Layout, spec: DimensionSpec) -> DataFrame:
    """The plan with the cause of each change, from the row of the batch at that moment, or else from its newest row."""
    if not spec.causes:
        return plan
    if spec.has_rules:  # several rows of one moment
        events = events.groupBy(*key_names(layout), "at").agg(f.expr("max(cause) as cause"))
    causes = events.groupBy(*key_names(layout)).agg(
        f.expr("map_from_entries(collect_list(struct(at, cause))) as causes"),
        f.expr("max_by(cause, at) as newest"),
    )
    values = zip(key_values(layout), layout.keys, strict=True)
    on = " and ".join(f"key.{quoted(key.name)} {layout.same} {value}" for value, key in values)
    found = "coalesce(if(action = 'insert', cause, try_element_at(causes, moment)), newest)"
    return plan.join(causes, f.expr(on), "left").withColumn("cause", f.expr(found))
