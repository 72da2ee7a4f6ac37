"""A micro-batch of a stream, as the id of its merge names it."""

from __future__ import annotations

import uuid
from dataclasses import dataclass


@dataclass(frozen=True)
class MicroBatch:
    """A micro-batch of a stream. The id of its merge contains both, and the commit contains that id."""

    stream: str
    number: int

    @property
    def mark(self) -> str:
        """The part of a merge id, after the merge's own part, that names this stream."""
        return f"@{self.stream}:"

    def new_merge_id(self) -> str:
        return f"{uuid.uuid4()}{self.mark}{self.number}"
