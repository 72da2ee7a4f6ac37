"""A dimension and the tables beside it: history (type 4), audit, change log. Their rows; not how these are written."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Generic

from pyspark.sql import DataFrame, SparkSession

from healing_tables.definition.layout import Layout, by_name, numbered
from healing_tables.definition.spec import DimensionSpec
from healing_tables.definition.stored_layout import fits, wider_columns
from healing_tables.errors import Mistake, TargetError, counted
from healing_tables.merge.audit import ADDED_LATER, AUDIT_COLUMNS, NOT_PUBLISHED, Publish, audit_rows
from healing_tables.merge.change import Change, Reading, Written
from healing_tables.merge.change_log import ChangeLog
from healing_tables.plan.batch import named_keys
from healing_tables.plan.set_aside import GENERATED as ROWS_SET_ASIDE
from healing_tables.plan.stored_ends import spec_of_rows
from healing_tables.plan.validation import current_keys
from healing_tables.sql.identifiers import find, quoted
from healing_tables.sql.instants import as_micros
from healing_tables.targets.table import CHANGE_LOG, Beside, DimensionTable, SideTable, Snapshot, Table, missing_columns

if TYPE_CHECKING:
    from typing_extensions import Self

# Destinations of rows beside the dimension
HISTORY, AUDIT, LOG, SET_ASIDE = "history", "audit", "change_log", "set_aside"


@dataclass(frozen=True)
class DimensionTables(ABC, Generic[Beside]):
    """A dimension with the tables beside it; a subclass per kind of table defines how they are written."""

    target: DimensionTable[Beside]
    layout: Layout
    spec: DimensionSpec
    log: ChangeLog | None = None
    # type 4 with a change log: late changes change rows of the history
    can_log_history: ClassVar[bool] = False

    @classmethod
    def keeps_log(cls, layout: Layout, spec: DimensionSpec) -> bool:
        """Whether a new dimension has a change log although its definition names none."""
        # a log places late changes, so none is set aside
        is_wanted = spec.changed_at is not None and spec.on_late == "error"
        return is_wanted and (cls.can_log_history or not layout.has_history)

    @staticmethod
    def as_rows_show(
        table: DimensionTable[Beside], snapshot: Snapshot, layout: Layout, spec: DimensionSpec
    ) -> tuple[DimensionSpec, bool]:
        """The definition with the open end and the flags of the stored rows, and whether a row is open.

        Raises: TargetError if they disagree, or the definition names others.
        """
        return spec_of_rows(snapshot.rows, layout, spec)

    @property
    def history(self) -> Beside:
        table = self.side_table(self.spec.history, "_history").growing()
        return table.ordered([key.name for key in self.layout.keys], self.layout.history_columns(self.spec))

    @property
    def audit(self) -> Beside:
        table = self.side_table((self.spec.audit or {}).get("table"), "_audit").growing()
        return table.ordered(["changed_at"], AUDIT_COLUMNS)

    @property
    def set_aside(self) -> Beside:
        """The table of the rows that were set aside; it is made when there is such a row."""
        return self.side_table(None, "__set_aside").growing()

    @property
    def key_map(self) -> Beside:
        return self.side_table(None, "__keys").growing(is_append_only=True)

    def side_table(self, name: str | None, suffix: str) -> Beside:
        return self.target.beside(suffix) if name is None else self.target.named(name)

    def own_tables(self) -> dict[str, Table]:
        """The name of each table in messages, to the table."""
        found: dict[str, Table] = {"the dimension": self.target, "its rows set aside": self.set_aside}
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
        wanted: list[tuple[SideTable, Mapping[str, str], list[str], str]] = []
        if self.layout.has_history:
            own = [*[key.name for key in self.layout.keys], "valid_from", "valid_to"]
            wanted.append((self.history, self.layout.history_columns(self.spec), own, "history"))
        if self.spec.audit is not None:
            own = [name for name in AUDIT_COLUMNS if name not in ADDED_LATER]
            wanted.append((self.audit, AUDIT_COLUMNS, own, "audit"))
        for table, columns, own, what in wanted:
            present = table.ensure(spark, columns, own, what)
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
        present = table.ensure(spark, columns, ROWS_SET_ASIDE, "table of the rows set aside")
        wider = [
            (name, kind)
            for name, kind in wider_columns(columns, present)
            if table.can_widen(spark, present[name], kind)
        ]
        mistakes = [
            Mistake(
                f"{table.name}.{name}",
                f"the type {kind}, which the column has in the batch",
                present[stored],
                "rename or drop that table; the next merge makes a new one",
            )
            for name, kind in columns.items()
            if (stored := find(name, present)) is not None
            and not fits(kind, present[stored])
            and (stored, kind) not in wider
        ]
        if mistakes:
            raise TargetError(counted("the table of the rows set aside", mistakes), mistakes)
        if missing := missing_columns(columns, present):
            table.add_columns(spark, missing)
        if wider:
            table.change_types(spark, wider)

    def read(self, spark: SparkSession, snapshot: Snapshot | None, events: DataFrame, is_full: bool) -> Reading:
        """What is stored of the keys of a batch; all rows for a full one. Args: events: of the batch."""
        past = self.history_rows(self.history.rows(spark)) if self.layout.has_history else None
        return Reading(self.rows_for(snapshot, events, is_full), past)

    def rows_for(self, snapshot: Snapshot | None, events: DataFrame, is_full: bool) -> DataFrame | None:
        """The stored rows that may have keys of a batch; all rows for a full one."""
        return None if snapshot is None else snapshot.rows

    def current_keys(self, snapshot: Snapshot) -> int:
        """The number of keys with a version that has not ended."""
        return current_keys(snapshot.rows, self.layout, self.spec)

    def recover(self, spark: SparkSession) -> list[str]:
        """Finish the work of earlier merges that have committed.

        Returns: the merges whose rows are in the change log now, and whose keys have to be planned again.
        """
        return []

    @abstractmethod
    def last_micro_batch(self, snapshot: Snapshot, mark: str) -> int | None:
        """The number of a stream's newest micro-batch in the dimension. Args: mark: see `MicroBatch.mark`."""

    @abstractmethod
    def publish(self, change: Change, written: Written) -> None:
        """Write a change: the dimension in one commit, and the tables beside it.

        Raises: what `conflicts.is_conflict` recognizes, on a concurrent commit; TargetError.
        """

    # --- the change log; a kind of table without one refuses it

    def note_change_log(self, spark: SparkSession) -> None:
        """Record the change log: from now on, every merge must use it."""

    def notes(self, spark: SparkSession) -> dict[str, str]:
        """What the dimension records about the tables beside it, as properties."""
        return {} if self.log is None else {CHANGE_LOG: self.log.target.full_name(spark)}

    def seed(self, spark: SparkSession, stored: DataFrame) -> None:
        """Fill an empty change log from the stored rows."""

    def staged_keys(self, spark: SparkSession, merge_ids: Sequence[str]) -> DataFrame:
        """``k1..n``, ``is_full``: what these merges, of `recover`, have added to the change log."""
        columns = ", ".join(f"{quoted(key.name)} {key.type}" for key in self.layout.keys)
        rows = spark.createDataFrame([], f"{columns}, is_full boolean")
        return rows.selectExpr(*named_keys(self.layout), "is_full")

    def check_log(self, spark: SparkSession, version: int, merge_ids: Sequence[str]) -> None:
        """Raises: StalePlan if another writer than these merges has added to the change log since this version.

        Not where every writer of the log commits to the dimension: the commit has checked it.
        """

    def forget(self, spark: SparkSession, merge_ids: Sequence[str]) -> None:
        """Remove the staged rows of these merges, of `recover`: their keys have been planned."""

    # --- their rows

    def history_rows(self, past: DataFrame) -> DataFrame:
        """Type 4: rows of the history, as plan.changes takes them."""
        kind = self.layout.moment_type
        state = [f"cast({quoted(column.name)} as {column.type}) as a{n}" for n, column in by_name(self.layout)]
        # rows from before the history had the column: the value started no later than the row
        changed = [
            f"coalesce({as_micros(quoted(self.spec.added('changed_at', column.name)), kind)}, "
            f"{as_micros('valid_from', kind)}) as a{n}"
            for n, column in numbered(self.layout, 1)
            if column.changed_at
        ]
        return past.selectExpr(
            *named_keys(self.layout),
            f"{as_micros('valid_from', kind)} as at",
            f"{as_micros('valid_to', kind)} as until",
            f"{as_micros('valid_to', kind)} as boundary",
            f"struct({', '.join(state)}) as state",
            f"struct({', '.join(changed) or 'true as none'}) as changed",
        )

    def side_table_rows(
        self, plan: DataFrame, events: DataFrame, batch_id: str, publish: Publish = NOT_PUBLISHED
    ) -> dict[str, DataFrame]:
        """The rows of a plan for the history and the audit. Args: events: of the batch; publish: see `audit_rows`."""
        found = {}
        if self.layout.has_history:
            found[HISTORY] = plan.where("action = 'archive'").selectExpr("archived.*")
        if self.spec.audit is not None:
            found[AUDIT] = audit_rows(plan, events, self.target.name, self.layout, self.spec, batch_id, publish)
        return found
