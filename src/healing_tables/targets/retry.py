"""Retries after a commit of another writer."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from healing_tables.errors import NOTHING_WRITTEN, ConflictError
from healing_tables.targets.conflicts import is_conflict

ATTEMPTS = 30
SHORTEST_WAIT, LONGEST_WAIT = 0.1, 5.0  # seconds


def retrying(what: str, work: Callable[[], object], written: Callable[[], str] = lambda: NOTHING_WRITTEN) -> int:
    """Repeat a function until there is no conflict with another writer; returns the number of attempts.

    One attempt of a merge may contain others with a limit of their own: of the key map and of deliveries.

    Args:
        what: the table, for the message.
        work: reads all of its input in each attempt.
        written: what has been written after the last attempt, for the message.
    Raises: ConflictError at the limit.
    """
    for attempt in range(1, ATTEMPTS + 1):
        try:
            work()
            return attempt
        except Exception as error:
            if not is_conflict(error):
                raise
            if attempt == ATTEMPTS:
                raise ConflictError(
                    f"{what}: {ATTEMPTS} attempts found a commit of another writer; {written()}. "
                    "Merge again when fewer writers change the same keys, or give them batches of disjoint keys.",
                    written=None,
                ) from error
            # exponential backoff with full jitter
            time.sleep(random.uniform(0, min(LONGEST_WAIT, SHORTEST_WAIT * 2**attempt)))
    raise AssertionError("the last attempt returns or raises")
