"""Recognizes conflicts with other writers by exception class and error condition."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from pyspark.errors import AnalysisException, IllegalArgumentException

CONFLICTS = (
    "DELTA_CONCURRENT_",
    "DELTA_METADATA_CHANGED",
    "DELTA_PROTOCOL_CHANGED",
    "DELTA_VERSIONS_NOT_CONTIGUOUS",
    # the table was dropped, replaced or changed while it was read
    "DELTA_SCHEMA_CHANGE",
    # two first merges create the table, or two merges add a column to a side table
    "TABLE_OR_VIEW_ALREADY_EXISTS",
    "FIELD_ALREADY_EXISTS",
    # two new versions of a key match a row that another writer has inserted since
    "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE",
)
# Delta's exceptions, in Java and in Python; not all of them have a condition in all versions
CLASSES = (
    "ConcurrentAppendException",
    "ConcurrentDeleteReadException",
    "ConcurrentDeleteDeleteException",
    "ConcurrentTransactionException",
    "ConcurrentWriteException",
    "MetadataChangedException",
    "ProtocolChangedException",
)
# Iceberg's, which have no condition
ICEBERG_CLASSES = (
    "org.apache.iceberg.exceptions.AlreadyExistsException",
    "org.apache.iceberg.exceptions.CommitFailedException",
    # it may have committed: a merge checks that, and deliveries can be repeated
    "org.apache.iceberg.exceptions.CommitStateUnknownException",
    "org.apache.iceberg.exceptions.ValidationException",
)


class StalePlan(Exception):
    """The input of the plan has changed since it was read: read and plan again."""

    def __init__(self, why: str = "another writer has committed since the table was read") -> None:
        super().__init__(why)


def is_conflict(error: BaseException) -> bool:
    """Whether an error is a conflict with another writer, so that reading and planning again helps."""
    if isinstance(error, StalePlan) or type(error).__name__ in CLASSES:
        return True
    if any(condition.startswith(CONFLICTS) for condition in conditions(error)):
        return True
    found = java_classes(error)
    return any(name in ICEBERG_CLASSES or name.rpartition(".")[2] in CLASSES for name in found)


def java_classes(error: BaseException) -> list[str]:
    """The classes of the Java exceptions behind an error, outermost first."""
    found = [str(cause.getClass().getName()) for cause in java_causes(error)]
    if not found:  # Connect puts the class of an exception without a condition before its message
        match = re.match(r"(?:Runtime Error\s+)*\(([a-z][\w.]*\.[A-Z][\w$]*)\)", str(error))
        # or makes it one of Python
        is_argument = isinstance(error, IllegalArgumentException)
        found = [match[1]] if match else ["java.lang.IllegalArgumentException"] if is_argument else []
    return found


def conditions(error: BaseException) -> list[str]:
    """The conditions of an error and its causes, such as DELTA_CONCURRENT_APPEND; on Connect, there are no causes."""
    # Spark's Python classes do not know the conditions of Delta: the Java ones do
    found = [condition_of(cause) for cause in java_causes(error)]
    if not found:
        found = [condition_of(error)]
    return [condition for condition in found if condition]


def has_condition(error: BaseException, *wanted: str) -> bool:
    return any(condition in wanted for condition in conditions(error))


def condition_of(error: Any) -> str:
    for ask in ("getCondition", "getErrorClass"):  # the second one in Spark 3.5
        with suppress(Exception):  # it has no such method, or Spark's list of conditions lacks this one
            return str(getattr(error, ask)() or "")
    return ""


def java_causes(error: BaseException) -> Iterator[Any]:
    """The Java exceptions behind an error of the classic PySpark, outermost first; nothing on Connect."""
    cause = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    for _ in range(20):
        if cause is None:
            return
        yield cause
        cause = cause.getCause()


def raised(error: BaseException, text: str) -> bool:
    """Whether `raise_error` with this text made a statement fail. An analysis error contains the statement
    itself."""
    if isinstance(error, AnalysisException):
        return False
    messages = [str(error), *[str(cause.getMessage()) for cause in java_causes(error)]]
    return any(text in message for message in messages)
