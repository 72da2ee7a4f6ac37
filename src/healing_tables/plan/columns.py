"""From versions to the row changes of a plan: every column's new value, and what differs from the stored row."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from healing_tables.definition.attributes import VERSIONED
from healing_tables.definition.generated import MARK_OF_DELETED
from healing_tables.definition.layout import Layout, by_name, numbered
from healing_tables.definition.spec import DimensionSpec
from healing_tables.plan.batch import key_values
from healing_tables.sql import instants
from healing_tables.sql.hashing import sha256
from healing_tables.sql.identifiers import find, literal, quoted
from healing_tables.sql.instants import as_moment, as_text
from healing_tables.sql.types import is_text

EMPTY_PARTITION = "an empty text in a column that the table is partitioned by"
# The end of a version in microseconds, NULL if it is open: its own end, or the start of the batch's next version
UNTIL = "coalesce(ended_at, next_from)"
# The kind of an item of the timeline, and of the version that it begins: a row of the history of type 4, a stored row,
# an event of the batch
PAST, STORED, EVENT = -1, 0, 1
IS_PAST, IS_STORED, IS_EVENT = (f"kind = {kind}" for kind in (PAST, STORED, EVENT))
IS_IN_TABLE = f"kind < {EVENT}"  # in the table or in its history
IS_FIRST = "stored_rows = 0 and new_number = 1"
# The latest moment in the batch that changed the row
TOUCHED = (
    f"greatest(if({IS_EVENT}, at, null), touched_at, if(moved_at > 0, moved_at, null), "
    f"if({UNTIL} <=> stored_until, null, {UNTIL}))"
)


def new_values(versions: DataFrame, layout: Layout, spec: DimensionSpec) -> DataFrame:
    """The plan's rows (see plan.plan) from the rows of plan.versions."""
    values = expressions(layout, spec)
    if layout.has_history:
        return with_archive(versions, layout, spec, values)
    closes = f"{UNTIL} is not null and stored_until is null"
    reason = (
        f"case when {IS_EVENT} then {change_reason(layout)} "
        f"when {closes} then if(ended_at is not null, 'deleted', 'changed') "
        "when stored_until is not null and is_present then 'reopened' else 'overwritten' end"
    )
    action = f"case when {IS_EVENT} then 'insert' when {closes} then 'close' else 'update' end"
    ends_key = f"is_last and {UNTIL} is not null and was_open"
    return as_plan(versions, layout, spec, values, action=action, reason=reason, ends_key=ends_key)


def as_plan(
    rows: DataFrame,
    layout: Layout,
    spec: DimensionSpec,
    values: dict[str, str],
    *,
    action: str,
    reason: str,
    ends_key: str,
    moment: str = TOUCHED,
    cause: str = "cause",
    used: str = "coalesce(rows, 0L)",
    refused_at: str = "refused_at",
    new: str = "true",
) -> DataFrame:
    """The plan's rows. Args: values: column to expression; ``used``: see plan.plan; ``new``: whether there is a new
    row."""
    columns = ", ".join(f"{expression} as {quoted(name)}" for name, expression in values.items())
    changed = ", ".join(f"if(new.{quoted(name)} <=> row.{quoted(name)}, null, {literal(name)})" for name in values)
    types = layout.columns(spec)
    empty = " or ".join(
        f"new.{quoted(name)} = ''" for name in layout.partitions if is_text(types.get(find(name, types) or "", ""))
    )
    return (
        with_columns(
            rows.selectExpr("*", f"if({new}, struct({columns}), null) as new"),
            refusal=f"if(refusal is null and ({empty or 'false'}), {literal(EMPTY_PARTITION)}, refusal)",
        )
        .selectExpr(
            f"if(refusal is null, {action}, 'refuse') as action",
            f"coalesce(refusal, {reason}) as reason",
            key_struct(layout),
            f"if(refusal is null or refusal = {literal(EMPTY_PARTITION)}, {moment}, {refused_at}) as moment",
            f"{cause} as cause",
            f"{used} as rows",
            f"if(row is null, null, array_compact(array({changed}))) as changed_columns",
            "new",
            "row as stored",
            "last_from",
            f"{ends_key} as ends_key",
        )
        .where("action in ('insert', 'remove', 'refuse') or size(changed_columns) > 0")
    )


def with_columns(frame: DataFrame, **expressions: str) -> DataFrame:
    """The frame with these columns added or replaced; the SQL expressions refer to the columns before that."""
    return frame.withColumns({name: f.expr(expression) for name, expression in expressions.items()})


def key_struct(layout: Layout) -> str:
    names = zip(key_values(layout), layout.keys, strict=True)
    return f"struct({', '.join(f'{name} as {quoted(key.name)}' for name, key in names)}) as key"


def with_archive(versions: DataFrame, layout: Layout, spec: DimensionSpec, values: dict[str, str]) -> DataFrame:
    """Type 4: the newest state of a key is kept; earlier ones go to the history with their bounds."""
    kept_rows = with_columns(versions.where("is_last and (is_present or last_row is not null)"), row="last_row")
    action = "case when not is_present then 'remove' when row is null then 'insert' else 'update' end"
    reason = (
        "case when not is_present then 'deleted' when row is null then 'new' "
        f"when {IS_EVENT} then 'changed' else 'overwritten' end"
    )
    current = as_plan(
        kept_rows, layout, spec, values, action=action, reason=reason, ends_key="not is_present", new="is_present"
    )
    kind = layout.moment_type
    values = values | {
        "valid_from": as_moment("at", kind),
        "valid_to": as_moment(UNTIL, kind),
        "history_id": hash_id(layout, "at"),
        "change_reason": "coalesce(until_cause.change_reason, if(is_present, 'changed', 'deleted'))",
    }
    archived = ", ".join(f"{values[name]} as {quoted(name)}" for name in layout.history_columns(spec))
    history = versions.where(f"{UNTIL} is not null").selectExpr(
        "'archive' as action",
        "if(is_last, 0L, coalesce(rows, 0L)) as rows",  # the rows of the last version are counted with its key
        "if(is_present, 'changed', 'deleted') as reason",
        key_struct(layout),
        f"{UNTIL} as moment",
        f"struct({archived}) as archived",
    )
    absent = versions.where("is_last and not is_present and last_row is null").selectExpr(
        "if(refusal is null, 'absent', 'refuse') as action",
        "coalesce(refusal, 'deleted') as reason",
        key_struct(layout),
        "if(refusal is null, at, refused_at) as moment",
        "coalesce(rows, 0L) as rows",
    )
    return current.unionByName(absent, allowMissingColumns=True).unionByName(history, allowMissingColumns=True)


def change_reason(layout: Layout) -> str:
    """The reason if the batch has none; see `reasons`."""
    deleted = when_deleted(layout)
    return (
        f"case when {IS_FIRST} then 'new' when {deleted.format('state')} then 'deleted' "
        f"when not was_present or {deleted.format('before')} then 'returned' else 'changed' end"
    )


def when_deleted(layout: Layout) -> str:
    """Whether the key is deleted in a state, as SQL with a place for that state; see deleted_rows.py."""
    mark = next((n for n, item in numbered(layout, 2) if item.name == layout.names.get(MARK_OF_DELETED)), None)
    return "false" if mark is None else f"coalesce({{}}.a{mark}, false)"


def reasons(layout: Layout) -> tuple[str, ...]:
    """Why a version began, if no batch says it."""
    return ("new", "returned", "changed", *(["deleted"] if layout.has_deleted_rows else []))


def expressions(layout: Layout, spec: DimensionSpec) -> dict[str, str]:
    """Column of the dimension to its new value."""
    kind = layout.moment_type
    found: dict[str, str] = {}
    keys = list(zip(key_values(layout), layout.keys, strict=True))
    start = first_start(spec)
    key_hash = hash_of_key(layout)
    if layout.surrogate is not None:
        # with type 4, the one row of a key keeps the surrogate key of its first arrival
        origin = first_start(spec, "first_at", "true") if layout.has_history else start
        made = "cast(null as bigint)" if layout.is_sequence else surrogate_key(layout, origin)
        is_new = "row is null" if layout.has_history else IS_EVENT
        found[layout.surrogate] = f"if({is_new}, {made}, row.{quoted(layout.surrogate)})"
    for name, key in keys:
        found[key.name] = name
    for number, attribute in numbered(layout, 0, 1, 2, 3, 4, 6):
        shown = {0: "first_state", 1: "newest"}.get(attribute.scd_type, "state")
        if layout.has_history and attribute.scd_type == 1:
            shown = "state"  # an archived row has the value at its end
        found[attribute.name] = f"{shown}.a{number}"
        if attribute.scd_type == 6:
            found[spec.added("current", attribute.name)] = f"newest.a{number}"
            previous = spec.added("previous", attribute.name)
            found[previous] = stored_or_new(previous, f"before.a{number}")
        if attribute.scd_type == 3:
            found[spec.added("previous", attribute.name)] = f"previous_{number}"
        if attribute.changed_at:
            found[spec.added("changed_at", attribute.name)] = as_moment(f"changed_{number}", kind)
    generated = generated_expressions(layout, spec, start, key_hash)
    for name, column in layout.names.items():
        if name != MARK_OF_DELETED:  # an attribute of the events, see deleted_rows.py
            found[column] = generated[name]
    return {name: found[name] for name in layout.columns(spec)}


def hash_of_key(layout: Layout) -> str:
    names = zip(key_values(layout), layout.keys, strict=True)
    return sha256([(name, key.type) for name, key in names])


def surrogate_key(layout: Layout, at: str) -> str:
    """The surrogate key of a version, computed from its columns. Args: at: its start, in microseconds.

    As in the macro `_version_key`. With `dbt_utils`, casts to text depend on the session, as in generate_surrogate_key.
    """
    if layout.strategy == "hash":
        return hash_id(layout, at)
    texts = [f"cast({value} as string)" for value in [*key_values(layout), as_moment(at, layout.moment_type)]]
    if layout.has_null_keys:
        texts = [f"coalesce({text}, '_dbt_utils_surrogate_key_null_')" for text in texts]
    return f"md5(concat_ws('-', {', '.join(texts)}))"


def hash_id(layout: Layout, at: str) -> str:
    """The id of a row, computed only from its key and its start. Args: at: in microseconds."""
    text = as_text(as_moment(at, layout.moment_type), layout.moment_type)
    return f"substr(sha2(concat({hash_of_key(layout)}, '|', {text}), 256), 1, 32)"


def stored_or_new(column: str, made: str) -> str:
    """A stored row keeps its value; a new row gets ``made``."""
    return f"if({IS_EVENT}, {made}, row.{quoted(column)})"


def first_start(spec: DimensionSpec, at: str = "at", is_first: str = IS_FIRST) -> str:
    """A start in microseconds: that of a key's first version may be given by ``valid_from_first``."""
    first = spec.valid_from_first
    if first is None:
        return at
    given = "first_start" if isinstance(first, Mapping) else f"{instants.micros(first)}L"
    return f"if({is_first}, least({given}, {at}), {at})"  # least() skips NULL


def generated_expressions(layout: Layout, spec: DimensionSpec, start: str, key_hash: str) -> dict[str, str]:
    kind = layout.moment_type
    names = {
        name: layout.names.get(name, "")
        for name in (
            "valid_from",
            "valid_to",
            "is_current",
            "compressed_row_count",
            "ended_by_delete",
            "change_reason",
            "change_source",
            "key_hash",
            "row_hash",
        )
    }
    same_end = f"{IS_STORED} and {UNTIL} <=> stored_until"
    open_end = (
        "null" if spec.valid_to_current is None else as_moment(f"{instants.micros(spec.valid_to_current)}L", kind)
    )
    yes, no = (literal(value) for value in spec.current_values)
    deleted, not_deleted = (literal(value) for value in spec.deleted_values)
    is_before_deleted = when_deleted(layout).format("next_state")
    by_delete = f"if({UNTIL} is not null and (ended_at is not null or {is_before_deleted}), {deleted}, {not_deleted})"
    is_current = f"{UNTIL} is null" + (" or (is_last and ended_at is not null)" if spec.current_while_deleted else "")
    versioned = [item for item in by_name(layout) if item[1].scd_type in VERSIONED]
    source = literal((spec.audit or {}).get("source")) if (spec.audit or {}).get("source") else "cast(null as string)"
    updated = f"greatest(updated, {TOUCHED})"
    return {
        "valid_from": stored_or_new(names["valid_from"], as_moment(start, kind)),
        "valid_to": f"if({same_end}, row.{quoted(names['valid_to'])}, coalesce({as_moment(UNTIL, kind)}, {open_end}))",
        "is_current": f"if({same_end} and is_last, row.{quoted(names['is_current'])}, if({is_current}, {yes}, {no}))",
        "version": f"cast(if({IS_EVENT}, coalesce(last_version, 0) + new_number, version) as int)",
        # a merge does not count repeated rows
        "compressed_row_count": stored_or_new(names["compressed_row_count"], "1L"),
        "ended_by_delete": f"if({same_end}, row.{quoted(names['ended_by_delete'])}, {by_delete})",
        "last_updated": as_moment("at" if layout.has_history else updated, kind),
        "change_reason": stored_or_new(
            names["change_reason"], f"coalesce(cause.change_reason, {change_reason(layout)})"
        ),
        "change_source": stored_or_new(names["change_source"], f"coalesce(cause.change_source, {source})"),
        "key_hash": stored_or_new(names["key_hash"], key_hash),
        "row_hash": stored_or_new(
            names["row_hash"],
            sha256([(f"state.a{number}", attribute.type) for number, attribute in versioned]),
        ),
    }
