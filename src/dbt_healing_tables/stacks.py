"""Errors of Spark without the stacks of Java, which hide the sentence that says what is wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import DbtRuntimeError

# on a Connect server, a place is `(Name.scala:-1)` or `(:-1)`
PLACE = r"Native Method|Unknown Source|(?:[^()]+\.(?:java|scala))?(?::-?\d+)?"
FRAME = re.compile(rf"\s*(?:at [^\s(]+\((?:{PLACE})\)|\.{{3}} \d+ more)")
CAUSE = re.compile(r"\s*(?:Caused by: |JVM stacktrace:|Driver stacktrace:)")
CLASS = re.compile(r"(?:[a-z]\w*\.)+[A-Z][\w$]*(?:: |$)")
CALL = re.compile(r"An error occurred while calling \w+\.\w+\.\n: ")


def without_stack(text: str) -> str:
    """The text without the frames of Java, and without causes that repeat what is above them.

    Every other line stays, so a stack in a form that is not known here is shown as it is.

    Args: text: of an error. On a Thrift server it contains the stack of the server, in a session that of the JVM.
    """
    lines = text.splitlines()
    kept = [line for line in lines if not FRAME.fullmatch(line)]
    if len(kept) == len(lines):
        return text
    parts: list[list[str]] = [[]]
    for line in kept:
        if CAUSE.match(line):
            parts.append([])
        parts[-1].append(line)
    found = CALL.sub("", "\n".join(parts[0]).rstrip())
    for part in parts[1:]:
        cause = "\n".join(part).rstrip()
        says = CAUSE.sub("", cause, count=1).strip().partition("\n")[0]
        message = CLASS.sub("", says, count=1) or (says if "Caused by: " in cause else "")
        if message not in found:
            found += "\n" + cause
    return found


@contextmanager
def short_errors() -> Iterator[None]:
    """Raise the errors of the block without stacks. The whole error is in dbt's log file."""
    try:
        yield
    except DbtRuntimeError as error:  # dbt-spark has logged the whole one; what it was made of stays its context
        if isinstance(error.msg, str):
            error.msg = without_stack(error.msg)
        raise
    except Exception as error:  # of a fetch, which dbt-spark does not wrap
        whole = str(error)
        short = without_stack(whole)
        if short == whole:
            raise
        AdapterLogger("Spark").debug(whole)
        raise DbtRuntimeError(short) from error


def with_short_errors(stock: type[Any]) -> type[Any]:
    """``stock``, the connection manager of an adapter, with short errors for each way to run a statement."""

    class SparkConnectionManager(stock):  # type: ignore[misc]
        def add_query(self, *args: Any, **options: Any) -> Any:
            with short_errors():
                return super().add_query(*args, **options)

        def execute(self, *args: Any, **options: Any) -> Any:
            with short_errors():
                return super().execute(*args, **options)

    return SparkConnectionManager
