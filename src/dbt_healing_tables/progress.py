"""Passes the log records of the library to dbt's log while a model runs."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from dbt_common.events.base_types import EventLevel
from dbt_common.events.functions import fire_event
from dbt_common.events.types import Note

_running = threading.local()  # the model of each of dbt's threads


def to_dbt(record: logging.LogRecord) -> bool:
    """A filter: passes the log records of a model's thread to dbt, and prevents that they are printed twice."""
    label = getattr(_running, "label", None)
    if label is None:
        return True
    if record.levelno >= logging.INFO:
        level = EventLevel.WARN if record.levelno >= logging.WARNING else EventLevel.INFO
        fire_event(Note(msg=f"{label} {record.getMessage()}"), level=level)
    return False


@contextmanager
def progress_of(label: str) -> Iterator[None]:
    """Hand the library's records of this thread, which name their table, to dbt, each behind ``label``."""
    logger = logging.getLogger("healing_tables")
    logger.addFilter(to_dbt)  # once, however often it is added
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.INFO)
    _running.label = label
    try:
        yield
    finally:
        _running.label = None
