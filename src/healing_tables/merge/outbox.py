"""A dimension in Delta or Iceberg, and the outbox that delivers rows to the tables beside it.

A merge stages these rows in ``<dimension>__pending`` under its id, then commits the dimension with that id, then
delivers them. The commit decides: rows of a merge that has not committed are discarded. Every merge first delivers
what an earlier one has left (docs/decisions/0014-outbox.md).
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as f

from healing_tables.definition.layout import Layout
from healing_tables.definition.spec import DimensionSpec
from healing_tables.errors import HealingTablesError, Mistake, TargetError
from healing_tables.merge.audit import append_statement
from healing_tables.merge.change import Change, Written
from healing_tables.merge.others import audit_others
from healing_tables.merge.sql_merges import complete_audit, merges_without_history, unpublished_merges
from healing_tables.merge.tables import AUDIT, HISTORY, LOG, DimensionTables
from healing_tables.plan.batch import named_keys
from healing_tables.plan.set_aside import ROW_ID
from healing_tables.sql.identifiers import find, literal, quoted
from healing_tables.sql.instants import TIMESTAMP
from healing_tables.sql.types import types_of
from healing_tables.targets.conflicts import StalePlan, is_conflict, raised
from healing_tables.targets.key_map import KeyMap
from healing_tables.targets.merge_statement import stale_text
from healing_tables.targets.naming import as_view
from healing_tables.targets.retry import retrying
from healing_tables.targets.sql_table import SqlTable, Unfinished
from healing_tables.targets.table import Snapshot, Table, missing_columns

ABANDONED = "interval 1 day"
# base_version: of the dimension when the row was staged, so the commit of its merge is newer
OWN_COLUMNS = {"merge_id": "string", "staged_at": TIMESTAMP, "base_version": "bigint"}
# Up to this number of rows, two of a changed key, the MERGE lists the buckets of its keys, and grows with them
FEW_ROWS = 20_000
# Types whose equal values have equal hashes; this is not so for floats and collated text
SIMPLE = re.compile("(tinyint|smallint|int|bigint|string|date|timestamp_[ln]tz|boolean|decimal.*)")


@dataclass(frozen=True)
class Outbox(DimensionTables[SqlTable]):
    """A dimension whose table commits alone. The outbox has a column per destination, a struct with the row."""

    target: SqlTable
    can_log_history = True

    @property
    def table(self) -> SqlTable:
        return self.target.beside("__pending")

    @property
    def log_table(self) -> SqlTable:
        assert self.log is not None and isinstance(self.log.target, SqlTable)
        return self.log.target

    def own_tables(self) -> dict[str, Table]:
        return super().own_tables() | {"its outbox": self.table}

    def prepare(self, spark: SparkSession) -> None:
        if not self.destinations():
            return
        structs = {}
        for name, columns in self.destinations().items():
            fields = ", ".join(f"{quoted(field)}: {kind}" for field, kind in columns.items())
            structs[name] = f"struct<{fields}>"
        present = self.table.ensure(spark, OWN_COLUMNS | structs, OWN_COLUMNS, "outbox")
        missing = [(name, kind) for name, kind in structs.items() if name not in present]
        if missing:
            self.table.add_columns(spark, missing)
        for name, columns in self.destinations().items():
            if name in present:
                self.widen(spark, self.table, columns, f"{name}.")
        super().prepare(spark)

    def widen(self, spark: SparkSession, table: SqlTable, columns: Mapping[str, str], within: str = "") -> None:
        """Add the columns that a table lacks, and change narrower types. Args: within: a struct column and a dot."""
        present = types_of(table.rows(spark).select(f"{within}*").schema)
        if missing := missing_columns(columns, present):
            table.add_columns(spark, missing, within)
        if narrower := self.narrower(columns, present):
            table.change_types(spark, narrower, within)

    def widen_dimension(self, spark: SparkSession) -> None:
        """Change the types of columns of the dimension, after those of the tables beside it.

        If a merge is killed in between, the next one finds the dimension as it was, and continues.
        """
        beside = self.after_widening()
        if beside.log is not None:
            beside.log.prepare(spark, self.target.full_name(spark))
        beside.prepare(spark)
        self.target.change_types(spark, self.layout.widened)

    def last_micro_batch(self, snapshot: Snapshot, mark: str) -> int | None:
        return self.target.newest_number(snapshot.rows.sparkSession, mark)

    def note_change_log(self, spark: SparkSession) -> None:
        for name, value in self.notes(spark).items():
            self.target.set_property(spark, name, value)
        self.target.add_version(spark)

    def seed(self, spark: SparkSession, stored: DataFrame) -> None:
        log = self.log
        if log is None or not log.target.rows(spark).isEmpty():
            return
        merge_id = f"seed-{uuid.uuid4()}"
        rows = log.first_rows(stored, merge_id, self.history.rows(spark) if self.layout.has_history else None)
        base_version = log.target.version(spark)
        with as_view(rows) as view:
            statement = self.append_to_log(view, merge_id, is_decided=False)
            self.log_table.commit(spark, statement, merge_id=merge_id, base_version=base_version)
        self.log_table.finish(spark, self.log_table.unfinished(spark))

    def publish(self, change: Change, written: Written) -> None:
        """Add the rows set aside, stage, MERGE, deliver."""
        if change.set_aside is not None:
            self.add_set_aside(change.set_aside)
            written.set_aside_in = self.set_aside.name
        plan, counts, keys, stored = change.plan, change.counts, change.keys, change.stored
        spark, merge_id, table = plan.sparkSession, change.merge_id, self.target
        if change.snapshot is None:
            columns = self.layout.columns(self.spec)
            base_version = table.begin(spark, columns, self.notes(spark))
        else:
            columns, base_version = change.snapshot.columns, change.snapshot.version
        if self.layout.widened:
            self.widen_dimension(spark)
        if self.layout.is_sequence and "insert" in counts:
            plan = KeyMap(self.key_map, self.layout, self.spec).with_numbers(plan, stored)
        has_changes = bool(counts)
        merged: DataFrame | None = plan if has_changes else None
        if counts and set(counts) <= {"archive", "absent"}:
            # keys that start and end in one batch: an unchanged row is written, so that there is a commit that
            # conflicts with other writers
            row = None if stored is None else any_row(stored, self.layout, self.spec)
            merged = None if row is None else plan.unionByName(row, allowMissingColumns=True)
            keys, counts = "", {}
        has_merge = merged is not None
        if not has_merge and self.layout.new_columns:
            table.add_columns(spark, self.layout.new_columns)
        rows = self.side_table_rows(plan, change.events, change.batch_id) if has_changes else {}
        if change.for_log is not None:
            rows[LOG] = change.for_log
        if rows:
            self.stage(spark, merge_id, base_version, rows)
        if merged is not None:
            if table.has_bucket_filter and stored is not None and 0 < sum(counts.values()) <= FEW_ROWS:
                keys = " and ".join(part for part in (keys, bucket_filter(plan, stored, self.layout)) if part)
            merging = replace(change, plan=merged, keys=keys)
            written.version = self.run_merge(merging, columns, base_version)
            written.rows.update(counts)
        if rows:
            try:
                self.deliver(spark, merge_id, written.version if has_merge else None)
            except StalePlan:
                self.discard(spark, [merge_id])
                raise
            written.is_logged = written.is_logged or change.for_log is not None
        if has_merge and change.for_log is None:
            self.target.finish(spark, [Unfinished(merge_id, is_committed=True, is_old=False)])
        if self.log is None and written.version is not None and table.may_lie_between(base_version, written.version):
            # another merge may have started a change log in between, without the rows of this one
            now = table.snapshot(spark)
            if now is not None:
                self.check_change_log(now)

    def add_set_aside(self, rows: DataFrame) -> None:
        """Add those of these rows that the table does not have. They need no outbox: they are the batch's own, whether
        the dimension commits or not, and the same batch adds none of them again."""
        table, spark = self.set_aside, rows.sparkSession
        names = ", ".join(map(quoted, rows.columns))
        values = ", ".join(f"s.{quoted(name)}" for name in rows.columns)
        with as_view(rows.localCheckpoint()) as view:
            statement = (
                f"merge into {table.sql_name} t using {view} s on t.{ROW_ID} = s.{ROW_ID} {table.when_matched} "
                f"when not matched then insert ({names}) values ({values})"
            )
            retrying(table.name, partial(table.run, spark, statement))

    def run_merge(self, change: Change, stored: Mapping[str, str], base_version: int) -> int | None:
        """Commit the dimension. If it is certain that there is no commit, the staged rows are discarded.

        Args: stored: the columns of the table.
        Returns: the version; None if nothing changed.
        """
        table, spark = self.target, change.plan.sparkSession
        try:
            with as_view(change.plan) as view:
                return table.apply(
                    spark,
                    view,
                    self.layout,
                    self.spec,
                    merge_id=change.merge_id,
                    base_version=base_version,
                    stored=stored,
                    keys=change.keys,
                    open_rows=change.open_rows,
                )
        except Exception as error:
            if self.destinations() and (is_conflict(error) or isinstance(error, TargetError)):
                self.discard(spark, [change.merge_id])
            raise

    def stage(
        self,
        spark: SparkSession,
        merge_id: str,
        base_version: int,
        rows: Mapping[str, DataFrame],
    ) -> None:
        """Write rows to the outbox, before the commit that they belong to. Args: rows: by destination."""
        parts = []
        for name, frame in rows.items():
            # the fields in the order of the outbox: a struct is written by position
            fields = self.table.rows(spark).select(f"{name}.*").columns
            given = [find(field, frame.columns) for field in fields]
            listed = ", ".join(
                f"{quoted(column) if column else 'null'} as {quoted(field)}"
                for field, column in zip(fields, given, strict=True)
            )
            parts.append(frame.selectExpr(f"struct({listed}) as {name}"))
        staged = parts[0]
        for part in parts[1:]:
            staged = staged.unionByName(part, allowMissingColumns=True)
        staged = staged.selectExpr(
            f"{literal(merge_id)} as merge_id",
            "now() as staged_at",
            f"{base_version}L as base_version",
            *rows,
        )
        listed = ", ".join(staged.columns)
        with as_view(staged) as view, self.table.named_errors():
            spark.sql(f"insert into {self.table.sql_name} ({listed}) select {listed} from {view}").collect()

    def recover(self, spark: SparkSession) -> list[str]:
        """Deliver what committed merges have left. Idempotent, and safe if another process does the same."""
        # before the staged rows: the rows of a merge are staged before it commits
        unfinished = self.target.unfinished(spark)
        found = self.staged(spark) if self.destinations() else []
        committed = self.target.committed(spark, {row["merge_id"]: row["base_version"] for row in found}, unfinished)
        # a merge that changed nothing in the dimension has no commit there
        logged = [row["merge_id"] for row in found if row["has_log"]]
        in_log = self.log.logged_merge_ids(spark, logged) if self.log is not None and logged else set()
        waiting = set()
        # in the order of their versions where these rise: the audit numbers them
        for row in sorted(found, key=lambda row: committed.get(row["merge_id"], 0)):
            merge_id = row["merge_id"]
            if merge_id in committed:
                self.deliver(spark, merge_id, committed[merge_id])
            elif row["is_old"] and merge_id not in in_log:
                self.discard(spark, [merge_id])
            else:
                waiting.add(merge_id)
        self.target.finish(spark, [merge for merge in unfinished if merge.merge_id not in waiting])
        audit_others(self, self.target, spark)
        recovered = [merge_id for merge_id in logged if merge_id in in_log.union(committed)]
        if self.log is not None:
            recovered += unpublished_merges(self.target, self.log_table, spark)
            if self.layout.has_history:
                recovered += merges_without_history(self.target, self.history, self.log_table, spark)
            complete_audit(self, self.target, spark)
        return recovered

    def staged(self, spark: SparkSession) -> list[Row]:
        """The merges with rows in the outbox: ``merge_id``, ``base_version``, ``is_old``, ``has_log``."""
        return (
            self.table.rows(spark)
            .groupBy("merge_id")
            .agg(
                f.expr("min(base_version) as base_version"),
                f.expr(f"max(staged_at) < now() - {ABANDONED} as is_old"),
                f.expr(f"{f'max({LOG} is not null)' if self.log else 'max(false)'} as has_log"),
            )
            .collect()
        )

    def deliver(self, spark: SparkSession, merge_id: str, version: int | None) -> None:
        """Deliver the rows of a merge, once. Those for the change log stay in the outbox until `forget`.

        Args: version: of the dimension that has committed them; if there is none, the change log decides.
        Raises: StalePlan if another writer has logged a different row; TargetError if a table refuses them.
        """
        has_commit = version is not None
        moment = self.target.moment(spark, version) if version is not None and self.spec.audit is not None else "now()"
        for name, table, statement in self.statements(merge_id, has_commit, moment):
            try:
                retrying(
                    table.name,
                    partial(table.run, spark, statement),
                    lambda: f"its rows are kept in {self.table.name}, and the next merge delivers them",
                )
            except HealingTablesError:
                raise
            except Exception as error:
                if raised(error, stale_text(merge_id)):
                    raise StalePlan from error
                if is_conflict(error) or not has_commit:
                    raise
                raise self.delivery_error(name, table, error) from error
        if set(self.destinations()) == {LOG}:
            return  # the statement below would delete nothing
        retrying(
            self.table.name,
            partial(
                self.table.run,
                spark,
                f"delete from {self.table.sql_name} where merge_id = {literal(merge_id)}"
                + (f" and {LOG} is null" if self.log is not None else ""),
            ),
        )

    def delivery_error(self, name: str, table: SqlTable, error: Exception) -> TargetError:
        mistake = Mistake(
            table.name,
            f"the {name.replace('_', ' ')} of {self.target.name}, which accepts its rows",
            str(error).strip().splitlines()[0],
            "change the table so that it accepts them; the next merge delivers the rows",
        )
        return TargetError(
            f"the dimension has committed; the rows for its {name.replace('_', ' ')} are kept in {self.table.name}.",
            [mistake],
        )

    def discard(self, spark: SparkSession, merge_ids: Iterable[str]) -> None:
        """Remove all rows of these merges: they have no commit, or their keys have been planned."""
        listed = ", ".join(literal(merge_id) for merge_id in merge_ids)
        statement = f"delete from {self.table.sql_name} where merge_id in ({listed})"
        retrying(self.table.name, partial(self.table.run, spark, statement))

    def staged_keys(self, spark: SparkSession, merge_ids: Sequence[str]) -> DataFrame:
        listed = ", ".join(literal(merge_id) for merge_id in merge_ids) or "null"
        rows = self.table.rows(spark).where(f"merge_id in ({listed}) and {LOG} is not null").select(f"{LOG}.*")
        columns = [*named_keys(self.layout), "is_full"]
        by_sql = self.log_table.rows(spark).where(f"merge_id in ({listed})")
        return rows.selectExpr(*columns).union(by_sql.selectExpr(*columns)).distinct()

    def check_log(self, spark: SparkSession, version: int, merge_ids: Sequence[str]) -> None:
        if self.log_table.has_rows_of_others(spark, version, merge_ids):
            raise StalePlan("another writer has added to the change log")

    def forget(self, spark: SparkSession, merge_ids: Sequence[str]) -> None:
        self.discard(spark, merge_ids)
        self.target.finish(spark, [Unfinished(merge_id, is_committed=True, is_old=False) for merge_id in merge_ids])

    def append_to_log(self, source: str, merge_id: str, *, is_decided: bool) -> Callable[[str], str]:
        """The MERGE into the change log, from the name of the table. Args: see `ChangeLog.append_statement`."""
        assert self.log is not None
        return partial(
            self.log.append_statement,
            source=source,
            merge_id=merge_id,
            is_decided=is_decided,
            when_matched=self.log_table.when_matched,
        )

    def statements(self, merge_id: str, has_commit: bool, moment: str) -> list[tuple[str, SqlTable, str]]:
        """The statements that deliver the rows of a merge: destination, table, statement.

        Args: moment: of the commit, as SQL.
        """
        mine = f"from {self.table.sql_name} where merge_id = {literal(merge_id)} and"
        found: list[tuple[str, SqlTable, str]] = []
        if self.layout.has_history:
            names = list(self.layout.history_columns(self.spec))
            on = " and ".join(
                f"t.{quoted(name)} {self.layout.same} s.{quoted(name)}"
                for name in [*[key.name for key in self.layout.keys], "valid_from"]
            )
            when_matched, is_there = self.history.when_matched, ""
            if self.log is not None:
                # a late change moves and removes rows of the history, too
                given = ", ".join(f"{quoted(name)} = s.{quoted(name)}" for name in names)
                when_matched = f"when matched and s.valid_to is null then delete when matched then update set {given}"
                is_there = "and s.valid_to is not null "
            statement = (
                f"merge into {self.history.sql_name} t using (select {HISTORY}.* {mine} {HISTORY} is not null) s "
                f"on {on} {when_matched} when not matched {is_there}"
                f"then insert ({', '.join(map(quoted, names))}) "
                f"values ({', '.join(f's.{quoted(name)}' for name in names)})"
            )
            found.append((HISTORY, self.history, statement))
        if self.spec.audit is not None:
            rows = f"(select {AUDIT}.* {mine} {AUDIT} is not null)"
            statement = append_statement(self.audit, rows, "t.row_id = s.row_id", moment)
            found.append((AUDIT, self.audit, statement))
        if self.log is not None:
            rows = f"select {LOG}.* {mine} {LOG} is not null"
            statement = self.append_to_log(f"({rows})", merge_id, is_decided=has_commit)(self.log_table.sql_name)
            found.append((LOG, self.log_table, statement))
        return found


def any_row(stored: DataFrame, layout: Layout, spec: DimensionSpec) -> DataFrame | None:
    """A row of a plan that rewrites a stored row unchanged; None if there is no row."""
    columns = ", ".join(
        (quoted(name) if find(name, stored.columns) else f"cast(null as {kind})") + f" as {quoted(name)}"
        for name, kind in layout.columns(spec).items()
    )
    keys = ", ".join(quoted(key.name) for key in layout.keys)
    row = stored.limit(1).selectExpr(
        "'update' as action",
        f"struct({keys}) as key",
        f"struct({columns}) as new",
        f"struct({columns}) as stored",
    )
    row = row.localCheckpoint()
    return None if row.isEmpty() else row


def bucket_filter(plan: DataFrame, stored: DataFrame, layout: Layout) -> str:
    """A condition on ``t``, the target, that holds for all keys of a plan and for few others, or nothing.

    Delta shuffles both the rows of a MERGE and the table; with this condition, only few rows of the table are shuffled.
    """
    types = types_of(stored.schema)
    if any(types.get(key.name) != key.type or not SIMPLE.fullmatch(key.type) for key in layout.keys):
        return ""

    def bucket(prefix: str) -> str:
        named = ", ".join(f"{prefix}.{quoted(key.name)}" for key in layout.keys)
        return f"pmod(xxhash64({named}), 65536)"

    found = plan.selectExpr(f"{bucket('key')} as bucket").distinct().collect()
    return f"{bucket('t')} in ({', '.join(str(row.bucket) for row in found)})"
