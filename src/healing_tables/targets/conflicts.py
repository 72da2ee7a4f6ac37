"""Which errors say that another writer was faster."""

from __future__ import annotations

from pyspark.errors import AnalysisException

from healing_tables.targets.merge_statement import STALE

CONFLICTS = (
    STALE,
    "DELTA_CONCURRENT_",
    "DELTA_METADATA_CHANGED",
    "DELTA_PROTOCOL_CHANGED",
    "DELTA_VERSIONS_NOT_CONTIGUOUS",
    # two first merges make the table, or two merges add a column
    "ALREADY_EXISTS",
    # two new versions of a key meet a row that another writer has put there since
    "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE",
    "ConcurrentAppendException",
    "ConcurrentDeleteReadException",
    "ConcurrentDeleteDeleteException",
    "ConcurrentTransactionException",
    "ConcurrentWriteException",
    "MetadataChangedException",
    "ProtocolChangedException",
)


def is_conflict(error: BaseException) -> bool:
    """Whether another writer was faster, so that reading and planning again helps."""
    text = f"{type(error).__name__}: {error}"
    if isinstance(error, AnalysisException):
        # it shows the plan, and in the plan stands what we would raise
        text = text.splitlines()[0].replace(STALE, "").replace("COLUMN_ALREADY_EXISTS", "")
    return any(mark in text for mark in CONFLICTS)
