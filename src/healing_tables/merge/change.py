"""What a merge reads, is about to write, and has written."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame

from healing_tables.errors import NOTHING_WRITTEN
from healing_tables.targets.table import Snapshot


@dataclass(frozen=True)
class Reading:
    """The stored rows that a plan is made from.

    Attributes:
        rows: of the dimension, at least those with keys of the batch; None if there is no dimension yet.
        past: of its history, in the columns of `DimensionTables.history_rows`; None without type 4.
    """

    rows: DataFrame | None
    past: DataFrame | None


@dataclass
class Written:
    """What the attempts of one merge have written so far.

    Attributes:
        rows: that were changed, by action.
        version: of the last commit; None if there was none.
        is_logged: whether the change log has the batch.
        set_aside_in: the table that has the rows of the batch that were set aside.
        unchanged: rows of the batch that changed nothing; None with a change log.
        set_aside: rows of the batch that were set aside; ``moved``: rows that ``sequence_by`` moved.
    """

    rows: Counter[str] = field(default_factory=Counter)
    version: int | None = None
    is_logged: bool = False
    set_aside_in: str | None = None
    unchanged: int | None = None
    set_aside: int = 0
    moved: int = 0

    @property
    def is_empty(self) -> bool:
        return self.version is None and not self.is_logged and self.set_aside_in is None

    def __str__(self) -> str:
        parts = []
        if self.version is not None:
            parts.append(f"the MERGE has committed as version {self.version}")
        if self.is_logged:
            parts.append("the change log has the batch, and the next merge plans its keys again")
        if self.set_aside_in is not None:
            parts.append(f"rows that were set aside are in {self.set_aside_in}")
        return "; ".join(parts) or NOTHING_WRITTEN


@dataclass
class Change:
    """What a merge is about to write.

    Attributes:
        plan: of plan.plan, checked.
        counts: its rows by action.
        keys: a condition on ``t``, the target, that holds for all keys of the plan.
        snapshot: of the dimension, before; None if there is no dimension yet.
        events: of the batch.
        batch_id: stored in the audit.
        for_log: the rows for the change log.
        open_rows: of a full batch, or if no row is open; see `merge_statement`.
        set_aside: of set_aside.rows; None if there are none.
        reading: what the plan was made from; None with a change log, which has all rows of its keys.
    """

    plan: DataFrame
    counts: Mapping[str, int]
    keys: str
    snapshot: Snapshot | None
    events: DataFrame
    batch_id: str
    for_log: DataFrame | None = None
    open_rows: tuple[int, int] | None = None
    set_aside: DataFrame | None = None
    reading: Reading | None = None
    merge_id: str = field(default_factory=lambda: str(uuid.uuid4()))

    @property
    def stored(self) -> DataFrame | None:
        return None if self.snapshot is None else self.snapshot.rows
