"""Readers of tables and files: a row is a row of the source, with columns of the tool."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from healing_tables.readers.feed import Feed, check_columns
from healing_tables.sql.identifiers import find, quoted


def delta_changes(frame: DataFrame, *, column_names: Mapping[str, str] | None = None) -> DataFrame:
    """The change feed of a Delta table.

    Args:
        frame: of ``readChangeFeed``.
        column_names: other names for the columns that it adds.
    Raises: ArgumentError.
    """
    needed = ("_change_type", "_commit_version", "_commit_timestamp")
    check_columns(frame, "the change feed", needed)
    is_deleted = "_change_type in ('delete', 'update_preimage')"
    sequence = f"struct(_commit_version as version, if({is_deleted}, 0, 1) as part)"
    return Feed(needed, "_commit_timestamp", sequence, is_deleted).read(frame, column_names or {})


def iceberg_changes(
    frame: DataFrame, snapshots: DataFrame, *, column_names: Mapping[str, str] | None = None
) -> DataFrame:
    """A changelog view of an Iceberg table.

    Args:
        snapshots: the metadata table ``<table>.snapshots``.
        column_names: other names for the columns that it adds.
    Raises: ArgumentError.
    """
    needed = ("_change_type", "_change_ordinal", "_commit_snapshot_id")
    check_columns(frame, "the changelog view", needed)
    taken = snapshots.selectExpr("snapshot_id as healing_tables_snapshot", "committed_at as healing_tables_at")
    rows = frame.join(taken, f.expr("healing_tables_snapshot = _commit_snapshot_id"))
    is_deleted = "_change_type in ('DELETE', 'UPDATE_BEFORE')"
    sequence = f"struct(_change_ordinal as ordinal, if({is_deleted}, 0, 1) as part)"
    own = (*needed, *taken.columns)
    return Feed(own, "healing_tables_at", sequence, is_deleted).read(rows, column_names or {})


def fivetran(frame: DataFrame, *, column_names: Mapping[str, str] | None = None) -> DataFrame:
    """A table of Fivetran in history mode: a period that has ended ends a millisecond after its last one.

    Args: column_names: other names for the columns that it adds.
    Raises: ArgumentError.
    """
    needed = ("_fivetran_start", "_fivetran_end", "_fivetran_active")
    check_columns(frame, "Fivetran", needed)
    starts = "explode(if(coalesce(_fivetran_active, false), array(true), array(true, false)))"
    rows = frame.selectExpr("*", f"{starts} as healing_tables_starts")
    at = "if(healing_tables_starts, _fivetran_start, _fivetran_end + interval '0.001' second)"
    sequence = f"struct({at} as at, if(healing_tables_starts, 1, 0) as part)"
    hidden = "_fivetran_synced|_fivetran_batch|healing_tables_starts"
    return Feed(needed, at, sequence, "not healing_tables_starts", hidden).read(rows, column_names or {})


def airbyte(
    frame: DataFrame, changed_at: str | None = None, *, column_names: Mapping[str, str] | None = None
) -> DataFrame:
    """An append table of Airbyte: of a sync by change data capture, or of one with a cursor.

    Args:
        changed_at: the column of the cursor; None: the columns ``_ab_cdc_...``.
        column_names: other names for the columns that it adds.
    Raises: ArgumentError.
    """
    cdc = ("_ab_cdc_updated_at", "_ab_cdc_deleted_at")
    check_columns(frame, "Airbyte", ("_airbyte_extracted_at", *((changed_at,) if changed_at is not None else cdc)))
    order: list[str] = []
    if changed_at is None:
        # of PostgreSQL and SQL Server; of MySQL
        names = ("_ab_cdc_lsn", "_ab_cdc_event_serial_no", "_ab_cdc_log_file", "_ab_cdc_log_pos")
        order = [name for name in names if find(name, frame.columns) is not None]
    at = "cast(_ab_cdc_updated_at as timestamp)" if changed_at is None else quoted(changed_at)
    sequence = f"struct({', '.join([*(order or [f'{at} as at']), '_airbyte_extracted_at'])})"
    is_deleted = "_ab_cdc_deleted_at is not null" if changed_at is None else "false"
    return Feed((), at, sequence, is_deleted, "_airbyte_.*|_ab_cdc_.*").read(frame, column_names or {})


def dms(
    frame: DataFrame,
    changed_at: str,
    *,
    op: str = "Op",
    sequence: Sequence[str] = (),
    key_columns: Sequence[str] = (),
    before: str = "BI_",
    column_names: Mapping[str, str] | None = None,
) -> DataFrame:
    """Files or tables of AWS DMS.

    Args:
        changed_at: the column with the moment (the setting TimestampColumnName).
        op: the column with I, U or D; NULL and '' in rows of a full load, which come before others of their moment.
        sequence: columns that order rows besides, for example of AR_H_CHANGE_SEQ.
        key_columns: with columns of before images, a changed key is a deletion and an insertion.
        before: the prefix of before images.
        column_names: other names for the columns that it adds.
    Raises: ArgumentError.
    """
    images = [before + key for key in key_columns]
    needed = (op, changed_at, *sequence, *images)
    check_columns(frame, "DMS", needed)
    operation = f"upper(trim({quoted(op)}))"
    changes = " or ".join(f"{quoted(key)} <> {quoted(image)}" for key, image in zip(key_columns, images, strict=True))
    pieces = f"if({operation} = 'U' and ({changes or 'false'}), array(true, false), array(true))"
    rows = frame.selectExpr("*", f"explode({pieces}) as healing_tables_is_after")
    replaced = {
        key.lower(): f"if(healing_tables_is_after, {quoted(key)}, {quoted(image)})"
        for key, image in zip(key_columns, images, strict=True)
    }
    part = (
        f"if(coalesce({operation}, '') = '', 0, {'if(healing_tables_is_after, 2, 1)' if key_columns else '1'}) as part"
    )
    order = f"struct({', '.join([*map(quoted, sequence or [changed_at]), part])})"
    is_deleted = f"coalesce({operation} = 'D', false) or not healing_tables_is_after"
    hidden = "healing_tables_is_after" + (f"|{re.escape(before.lower())}.*" if before else "")
    return Feed(needed, quoted(changed_at), order, is_deleted, hidden, replaced).read(rows, column_names or {})
