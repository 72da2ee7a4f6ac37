"""A dimension and the tables beside it: history (type 4), audit, change log. Their rows; not how these are written."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from healing_tables.definition.layout import Layout, by_name, numbered
from healing_tables.definition.spec import CAUSE, DimensionSpec
from healing_tables.definition.stored_layout import fits, wider_columns
from healing_tables.errors import NOTHING_WRITTEN, Mistake, TargetError, counted
from healing_tables.merge.change_log import ChangeLog
from healing_tables.plan.batch import key_names, named_keys
from healing_tables.plan.set_aside import GENERATED as ROWS_SET_ASIDE
from healing_tables.plan.stored_ends import spec_of_rows
from healing_tables.plan.validation import current_keys
from healing_tables.sql.identifiers import find, literal, quoted
from healing_tables.sql.instants import TIMESTAMP, as_micros
from healing_tables.sql.types import types_of
from healing_tables.sql.values import JSON
from healing_tables.targets.table import CHANGE_LOG, Snapshot, Table, missing_columns

if TYPE_CHECKING:
    from typing_extensions import Self

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
}
# Destinations of rows beside the dimension
HISTORY, AUDIT, LOG, SET_ASIDE = "history", "audit", "change_log", "set_aside"


@dataclass
class Written:
    """What the attempts of one merge have written so far.

    Attributes:
        rows: that were changed, by action.
        version: of the last commit; None if there was none.
        is_logged: whether the change log has the batch.
        set_aside_in: the table that has the rows of the batch that were set aside.
        unchanged: rows of the batch that changed nothing; None with a change log.
        set_aside: rows of the batch that were set aside.
    """

    rows: Counter[str] = field(default_factory=Counter)
    version: int | None = None
    is_logged: bool = False
    set_aside_in: str | None = None
    unchanged: int | None = None
    set_aside: int = 0

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
        snapshot: what the plan was made from; None if there is no dimension yet.
        events: of the batch.
        batch_id: stored in the audit.
        for_log: the rows for the change log.
        open_rows: of a full batch, or if no row is open; see `merge_statement`.
        set_aside: of set_aside.rows; None if there are none.
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
    merge_id: str = field(default_factory=lambda: str(uuid.uuid4()))

    @property
    def stored(self) -> DataFrame | None:
        return None if self.snapshot is None else self.snapshot.rows


@dataclass(frozen=True)
class DimensionTables:
    """A dimension with the tables beside it; a subclass per kind of table defines how they are written."""

    target: Table
    layout: Layout
    spec: DimensionSpec
    log: ChangeLog | None = None

    @staticmethod
    def as_stored(table: Table, schema: StructType) -> StructType:
        """The schema in the types that a table of this kind stores."""
        return schema

    @staticmethod
    def as_rows_show(table: Any, snapshot: Snapshot, layout: Layout, spec: DimensionSpec) -> tuple[DimensionSpec, bool]:
        """The definition with the open end and the flags of the stored rows, and whether a row is open.

        Raises: TargetError if they disagree, or the definition names others.
        """
        return spec_of_rows(snapshot.rows, layout, spec)

    @staticmethod
    def recorded_log(table: Any, spark: SparkSession) -> str | None:
        """The change log that a dimension records; None if it records none."""
        found: str | None = table.table_property(spark, CHANGE_LOG)
        return found

    @property
    def history(self) -> Table:
        raise NotImplementedError

    @property
    def audit(self) -> Table:
        raise NotImplementedError

    @property
    def set_aside(self) -> Table:
        """The table of the rows that were set aside; it is made when there is such a row."""
        raise NotImplementedError

    def own_tables(self) -> dict[str, Table]:
        """The name of each table in messages, to the table."""
        found = {"the dimension": self.target, "its rows set aside": self.set_aside}
        if self.layout.has_history:
            found["its history"] = self.history
        if self.spec.audit is not None:
            found["audit.table"] = self.audit
        if self.log is not None:
            found["change_log"] = self.log.target
        return found

    def destinations(self) -> dict[str, dict[str, str]]:
        """Destination to the columns of its table, with their types."""
        found: dict[str, dict[str, str]] = {}
        if self.layout.has_history:
            found[HISTORY] = self.layout.history_columns(self.spec)
        if self.spec.audit is not None:
            found[AUDIT] = AUDIT_COLUMNS
        if self.log is not None:
            found[LOG] = self.log.columns()
        return found

    def check_change_log(self, snapshot: Snapshot) -> bool:
        """Whether the dimension already records its change log.

        Raises: TargetError if it records one that this merge does not name.
        """
        noted = snapshot.properties.get(CHANGE_LOG)
        named = None if self.log is None else self.log.target.full_name(snapshot.rows.sparkSession)
        if noted is not None and noted != named:
            mistake = Mistake(
                "change_log",
                f"{noted}, the change log of this dimension",
                "no change log" if named is None else named,
                f"leave change_log out, or set it to {noted}; if the log was renamed: "
                f"{self.set_property_text(CHANGE_LOG, '<its name>')}; "
                f"to stop using it: {self.set_property_text(CHANGE_LOG, None)}, and drop it",
            )
            raise TargetError(counted("the spec", [mistake]), [mistake])
        return noted is not None

    @property
    def noted_in(self) -> str:
        """The table whose properties hold `notes`."""
        return self.target.sql_name

    def set_property_text(self, name: str, value: str | None) -> str:
        """How a user sets a property of `notes`, or removes it, for messages."""
        if value is None:
            return f"ALTER TABLE {self.noted_in} UNSET TBLPROPERTIES ('{name}')"
        return f"ALTER TABLE {self.noted_in} SET TBLPROPERTIES ('{name}' = '{value}')"

    def prepare(self, spark: SparkSession) -> None:
        """Create missing tables beside the dimension, and add missing columns."""
        raise NotImplementedError

    def prepare_side_tables(self, spark: SparkSession) -> None:
        """`prepare` for the history and the audit."""
        wanted: list[tuple[Table, Mapping[str, str], list[str], str]] = []
        if self.layout.has_history:
            own = [*[key.name for key in self.layout.keys], "valid_from", "valid_to"]
            wanted.append((self.history, self.layout.history_columns(self.spec), own, "history"))
        if self.spec.audit is not None:
            own = [name for name in AUDIT_COLUMNS if name not in CAUSE]  # older audits lack some
            wanted.append((self.audit, AUDIT_COLUMNS, own, "audit"))
        for table, columns, own, what in wanted:
            present = types_of(table.ensure(spark, columns, own, what).schema)
            if missing := missing_columns(columns, present):
                table.add_columns(spark, missing)
            if narrower := self.narrower(columns, present):
                table.change_types(spark, narrower)

    def narrower(self, wanted: Mapping[str, str], present: Mapping[str, str]) -> list[tuple[str, str]]:
        """The columns of a table beside the dimension whose types are to be changed, with the new ones.

        They follow the dimension. While its own columns are narrower, none: a batch that is refused changes no type.
        """
        return [] if self.layout.widened else wider_columns(wanted, present)

    def after_widening(self) -> Self:
        """These tables, once the dimension has the types of the layout."""
        layout = replace(self.layout, widened=())
        return replace(self, layout=layout, log=None if self.log is None else replace(self.log, layout=layout))

    def prepare_set_aside(self, spark: SparkSession, columns: Mapping[str, str]) -> None:
        """Create the table of the rows set aside, or add missing columns and change narrower types.

        Args: columns: of set_aside.columns. Raises: TargetError if a column has a type that cannot be changed to that.
        """
        table = self.set_aside
        present = types_of(table.ensure(spark, columns, ROWS_SET_ASIDE, "table of the rows set aside").schema)
        wider = [
            (name, kind)
            for name, kind in wider_columns(columns, present)
            if table.can_widen(spark, present[name], kind)
        ]
        mistakes = [
            Mistake(
                f"{table.name}.{name}",
                f"the type {kind}, which the column has in the batch",
                present[there],
                "rename or drop that table; the next merge makes a new one",
            )
            for name, kind in columns.items()
            if (there := find(name, present)) is not None
            and not fits(kind, present[there])
            and (there, kind) not in wider
        ]
        if mistakes:
            raise TargetError(counted("the table of the rows set aside", mistakes), mistakes)
        if missing := missing_columns(columns, present):
            table.add_columns(spark, missing)
        if wider:
            table.change_types(spark, wider)

    def rows_for(self, snapshot: Snapshot | None, events: DataFrame, is_full: bool) -> DataFrame | None:
        """The stored rows that may have keys of a batch; all rows for a full one. Args: events: of the batch."""
        return None if snapshot is None else snapshot.rows

    def current_keys(self, snapshot: Snapshot) -> int:
        """The number of keys with a version that has not ended."""
        return current_keys(snapshot.rows, self.layout, self.spec)

    def recover(self, spark: SparkSession) -> list[str]:
        """Finish the work of earlier merges that have committed.

        Returns: the merges whose rows are in the change log now, and whose keys have to be planned again.
        """
        raise NotImplementedError

    def last_micro_batch(self, snapshot: Snapshot, mark: str) -> int | None:
        """The number of a stream's newest micro-batch in the dimension. Args: mark: see `MicroBatch.mark`."""
        raise NotImplementedError

    def note_change_log(self, spark: SparkSession) -> None:
        """Record the change log: from now on, every merge must use it."""
        raise NotImplementedError

    def seed(self, spark: SparkSession, stored: DataFrame) -> None:
        """Fill an empty change log from the stored rows."""
        raise NotImplementedError

    def publish(self, change: Change, written: Written) -> None:
        """Write a change: the dimension in one commit, and the tables beside it.

        Raises: what `conflicts.is_conflict` recognizes, on a concurrent commit; TargetError.
        """
        raise NotImplementedError

    def staged_keys(self, spark: SparkSession, merge_ids: Sequence[str]) -> DataFrame:
        """``k1..n``, ``is_full``: what these merges, of `recover`, have added to the change log."""
        raise NotImplementedError

    def check_log(self, spark: SparkSession, version: int, merge_ids: Sequence[str]) -> None:
        """Raises: StalePlan if another writer than these merges has added to the change log since this version."""

    def forget(self, spark: SparkSession, merge_ids: Sequence[str]) -> None:
        """Remove the staged rows of these merges, of `recover`: their keys have been planned."""

    def notes(self, spark: SparkSession) -> dict[str, str]:
        """What the dimension records about the tables beside it, as properties."""
        return {} if self.log is None else {CHANGE_LOG: self.log.target.full_name(spark)}

    def history_rows(self, spark: SparkSession) -> DataFrame | None:
        """Type 4: the rows of the history, as plan.changes takes them."""
        if not self.layout.has_history:
            return None
        kind = self.layout.moment_type
        state = [f"cast({quoted(column.name)} as {column.type}) as a{n}" for n, column in by_name(self.layout)]
        # rows from before the history had the column: the value started no later than the row
        changed = [
            f"coalesce({as_micros(quoted(self.spec.added('changed_at', column.name)), kind)}, "
            f"{as_micros('valid_from', kind)}) as a{n}"
            for n, column in numbered(self.layout, 1)
            if column.changed_at
        ]
        return self.history_frame(spark).selectExpr(
            *named_keys(self.layout),
            f"{as_micros('valid_from', kind)} as at",
            f"{as_micros('valid_to', kind)} as until",
            f"{as_micros('valid_to', kind)} as boundary",
            f"struct({', '.join(state)}) as state",
            f"struct({', '.join(changed) or 'true as none'}) as changed",
        )

    def history_frame(self, spark: SparkSession) -> DataFrame:
        return self.history.rows(spark)

    def side_table_rows(self, plan: DataFrame, events: DataFrame, batch_id: str) -> dict[str, DataFrame]:
        """The rows of a plan for the history and the audit. Args: events: of the batch."""
        found = {}
        if self.layout.has_history:
            found[HISTORY] = plan.where("action = 'archive'").selectExpr("archived.*")
        if self.spec.audit is not None:
            plan = plan.where("action not in ('archive', 'absent')")
            found[AUDIT] = self.audit_rows(self.with_causes(plan, events), batch_id)
        return found

    def with_causes(self, plan: DataFrame, events: DataFrame) -> DataFrame:
        """The plan with the cause of each change: that of the batch's row of that moment, or else of its newest row."""
        if not self.spec.causes:
            return plan
        said = events.groupBy(*key_names(self.layout)).agg(
            f.expr("map_from_entries(collect_list(struct(at, cause))) as causes"),
            f.expr("max_by(cause, at) as newest"),
        )
        names = zip(key_names(self.layout), self.layout.keys, strict=True)
        on = " and ".join(f"key.{quoted(key.name)} = {name}" for name, key in names)
        found = "coalesce(if(action = 'insert', cause, try_element_at(causes, moment)), newest)"
        return plan.join(said, f.expr(on), "left").withColumn("cause", f.expr(found))

    def audit_rows(self, plan: DataFrame, batch_id: str) -> DataFrame:
        """Args: plan: of `with_causes`."""
        audit = self.spec.audit or {}

        def text(name: str) -> str:
            return literal(audit[name]) if audit.get(name) is not None else "cast(null as string)"

        surrogate = self.layout.surrogate
        actor = text("actor") if audit.get("actor") is not None else "current_user"
        return plan.selectExpr(
            f"{literal(self.target.name)} as dimension",
            f"to_json(key, {JSON}) as key",
            f"{f'cast(stored.{quoted(surrogate)} as string)' if surrogate else 'cast(null as string)'} as "
            "old_surrogate_key",
            f"{f'cast(new.{quoted(surrogate)} as string)' if surrogate else 'cast(null as string)'} as "
            "new_surrogate_key",
            "action as change_type",
            "reason as change_reason",
            "changed_columns",
            f"to_json(stored, {JSON}) as old_values",
            f"to_json(new, {JSON}) as new_values",
            "timestamp_micros(moment) as changed_at",
            f"{actor} as actor",
            f"coalesce(cause.change_reason, {text('reason')}) as reason",
            f"coalesce(cause.change_source, {text('source')}) as source",
            f"{literal(batch_id)} as batch_id",
            "uuid() as row_id",
            "cause.correlation_id as correlation_id",
        )
