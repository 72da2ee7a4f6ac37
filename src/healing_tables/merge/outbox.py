"""The outbox of a dimension: rows for its history (type 4), its audit and its change log, on their way there.

A merge stages these rows in ``<dimension>__pending`` under its id, then commits the dimension with that id, then
delivers them. The commit decides: rows of a merge that has not committed are discarded. Every merge first delivers
what an earlier one has left (docs/decisions/0014-outbox.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from healing_tables.definition.layout import Layout, by_name, numbered
from healing_tables.definition.spec import CAUSE, DimensionSpec
from healing_tables.errors import HealingTablesError, Mistake, TargetError
from healing_tables.merge.change_log import ChangeLog
from healing_tables.plan.batch import key_names, named_keys
from healing_tables.sql.identifiers import find, literal, quoted
from healing_tables.sql.instants import TIMESTAMP, as_micros
from healing_tables.sql.values import ISO
from healing_tables.targets.conflicts import StalePlan, is_conflict, raised
from healing_tables.targets.delta import CHANGE_LOG, DeltaTarget, as_view
from healing_tables.targets.merge_statement import stale_text
from healing_tables.targets.retry import retrying

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
JSON = f"map('timeZone', 'UTC', 'timestampFormat', '{ISO}XXX', 'ignoreNullFields', 'false')"
# Each merge adds a small file; Delta puts them together now and then
GROWING = {"delta.autoOptimize.autoCompact": "true"}
ABANDONED = "interval 1 day"
# base_version: of the dimension when the row was staged, so the commit of its merge is newer
OWN_COLUMNS = {"merge_id": "string", "staged_at": TIMESTAMP, "base_version": "bigint"}
# Destinations; each has a column of the outbox, a struct with the row
HISTORY, AUDIT, LOG = "history", "audit", "change_log"


@dataclass(frozen=True)
class Outbox:
    """Rows on their way to the history, the audit and the change log of one dimension; false if it has none of them."""

    target: DeltaTarget
    layout: Layout
    spec: DimensionSpec
    log: ChangeLog | None = None

    def __bool__(self) -> bool:
        return bool(self.destinations())

    @property
    def table(self) -> DeltaTarget:
        return self.target.beside("__pending")

    @property
    def history(self) -> DeltaTarget:
        name = self.spec.history
        target = self.target.beside("_history") if name is None else DeltaTarget(name)
        return replace(target, properties=GROWING)

    @property
    def audit(self) -> DeltaTarget:
        table = (self.spec.audit or {}).get("table")
        target = self.target.beside("_audit") if table is None else DeltaTarget(table)
        return replace(target, properties=GROWING, cluster_by=("changed_at",))

    def destinations(self) -> dict[str, dict[str, str]]:
        """Name to the columns of the table there, with their types."""
        found: dict[str, dict[str, str]] = {}
        if self.layout.has_history:
            found[HISTORY] = self.layout.history_columns(self.spec)
        if self.spec.audit is not None:
            found[AUDIT] = AUDIT_COLUMNS
        if self.log is not None:
            found[LOG] = self.log.columns()
        return found

    def prepare(self, spark: SparkSession) -> None:
        """Make the outbox, the history and the audit where they are not there, and add the columns that they lack."""
        structs = {}
        for name, columns in self.destinations().items():
            fields = ", ".join(f"{quoted(field)}: {kind}" for field, kind in columns.items())
            structs[name] = f"struct<{fields}>"
        present = self.table.ensure(spark, OWN_COLUMNS | structs, OWN_COLUMNS, "outbox").columns
        missing = [(name, kind) for name, kind in structs.items() if name not in present]
        if missing:
            self.table.add_columns(spark, missing)
        for name, columns in self.destinations().items():
            if name in present:
                self.widen(spark, self.table, columns, f"{name}.")
        if self.layout.has_history:
            own = [*[key.name for key in self.layout.keys], "valid_from", "valid_to"]
            self.history.ensure(spark, self.layout.history_columns(self.spec), own, "history")
            self.widen(spark, self.history, self.layout.history_columns(self.spec))
        if self.spec.audit is not None:
            own = [name for name in AUDIT_COLUMNS if name not in CAUSE]  # older ones lack some
            self.audit.ensure(spark, AUDIT_COLUMNS, own, "audit")
            self.widen(spark, self.audit, AUDIT_COLUMNS)

    def widen(self, spark: SparkSession, table: DeltaTarget, columns: Mapping[str, str], within: str = "") -> None:
        """Add the columns that a table lacks. Args: within: a struct column and a dot."""
        present = table.rows(spark).select(f"{within}*").columns
        missing = [(name, kind) for name, kind in columns.items() if find(name, present) is None]
        if missing:
            table.add_columns(spark, missing, within)

    def side_table_properties(self, spark: SparkSession) -> dict[str, str]:
        """What the dimension notes of its side tables, as properties."""
        return {} if self.log is None else {CHANGE_LOG: self.log.target.full_name(spark)}

    def history_rows(self, spark: SparkSession) -> DataFrame | None:
        """Type 4: the rows of the history, as plan.changes takes them."""
        if not self.layout.has_history:
            return None
        kind = self.layout.moment_type
        state = [f"{quoted(column.name)} as a{n}" for n, column in by_name(self.layout)]
        # rows from before the history had the column: the value began no later than the row
        changed = [
            f"coalesce({as_micros(quoted(self.spec.added('changed_at', column.name)), kind)}, "
            f"{as_micros('valid_from', kind)}) as a{n}"
            for n, column in numbered(self.layout, 1)
            if column.changed_at
        ]
        return self.history.rows(spark).selectExpr(
            *named_keys(self.layout),
            f"{as_micros('valid_from', kind)} as at",
            f"{as_micros('valid_to', kind)} as until",
            f"{as_micros('valid_to', kind)} as boundary",
            f"struct({', '.join(state)}) as state",
            f"struct({', '.join(changed) or 'true as none'}) as changed",
        )

    def side_table_rows(self, plan: DataFrame, events: DataFrame, batch_id: str) -> dict[str, DataFrame]:
        """What a plan brings to the history and to the audit. Args: events: of the batch."""
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
                f"{quoted(there) if there else 'null'} as {quoted(field)}"
                for field, there in zip(fields, given, strict=True)
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
        """Deliver what committed merges have left; idempotent, and safe beside another process that does the same.

        Returns: the merges whose rows are in the change log now, and whose keys have to be planned again.
        """
        found = (
            self.table.rows(spark)
            .groupBy("merge_id")
            .agg(
                f.expr("min(base_version) as base_version"),
                f.expr(f"max(staged_at) < now() - {ABANDONED} as is_old"),
                f.expr(f"{f'max({LOG} is not null)' if self.log else 'max(false)'} as has_log"),
            )
            .collect()
        )
        if not found:
            return []
        base = min(row["base_version"] for row in found)
        commits = self.target.commits_since(spark, base, [row["merge_id"] for row in found])
        committed = {commit.merge_id for commit in commits}
        # a merge that changed nothing in the dimension has no commit there
        logged = [row["merge_id"] for row in found if row["has_log"]]
        in_log = self.log.logged_merge_ids(spark, logged) if self.log is not None and logged else set()
        for merge_id, _, is_old, _ in found:
            if merge_id in committed:
                self.deliver(spark, merge_id)
            elif is_old and merge_id not in in_log:
                self.discard(spark, [merge_id])
        return [merge_id for merge_id in logged if merge_id in committed | in_log]

    def deliver(self, spark: SparkSession, merge_id: str, *, has_commit: bool = True) -> None:
        """Hand on the rows of a merge, once. Those for the change log stay in the outbox: see `left`.

        Args: has_commit: the dimension has committed them; without, the change log decides.
        Raises: StalePlan if another writer has said something else to the log; TargetError if a table refuses them.
        """
        for name, table, statement in self.statements(merge_id, has_commit):
            try:
                retrying(
                    table.name,
                    partial(run, spark, statement),
                    lambda: f"the rows for it wait in {self.table.name}, and the next merge delivers them",
                )
            except HealingTablesError:
                raise
            except Exception as error:
                if raised(error, stale_text(merge_id)):
                    raise StalePlan from error
                if is_conflict(error) or not has_commit:
                    raise
                raise self.delivery_error(name, table, error) from error
        retrying(
            self.table.name,
            partial(
                run,
                spark,
                f"delete from {self.table.sql_name} where merge_id = {literal(merge_id)}"
                + (f" and {LOG} is null" if self.log is not None else ""),
            ),
        )

    def delivery_error(self, name: str, table: DeltaTarget, error: Exception) -> TargetError:
        mistake = Mistake(
            table.name,
            f"the {name.replace('_', ' ')} of {self.target.name}, which takes its rows",
            str(error).strip().splitlines()[0],
            "make the table fit; the next merge delivers the rows",
        )
        return TargetError(
            f"the dimension has committed, and the rows for its {name.replace('_', ' ')} wait in {self.table.name}.",
            [mistake],
        )

    def discard(self, spark: SparkSession, merge_ids: Iterable[str]) -> None:
        """Remove all rows of these merges: they have no commit, or their keys are planned."""
        listed = ", ".join(literal(merge_id) for merge_id in merge_ids)
        statement = f"delete from {self.table.sql_name} where merge_id in ({listed})"
        retrying(self.table.name, partial(run, spark, statement))

    def staged_keys(self, spark: SparkSession, merge_ids: Sequence[str]) -> DataFrame:
        """``k1..n``, ``is_full``: what these merges have staged for the change log."""
        listed = ", ".join(literal(merge_id) for merge_id in merge_ids) or "null"
        rows = self.table.rows(spark).where(f"merge_id in ({listed}) and {LOG} is not null")
        return rows.select(f"{LOG}.*").selectExpr(*named_keys(self.layout), "is_full").distinct()

    def statements(self, merge_id: str, has_commit: bool) -> list[tuple[str, DeltaTarget, str]]:
        """What delivers the rows of a merge: destination, table, statement."""
        mine = f"from {self.table.sql_name} where merge_id = {literal(merge_id)} and"
        found: list[tuple[str, DeltaTarget, str]] = []
        if self.layout.has_history:
            names = list(self.layout.history_columns(self.spec))
            on = " and ".join(
                f"t.{quoted(name)} = s.{quoted(name)}"
                for name in [*[key.name for key in self.layout.keys], "valid_from"]
            )
            statement = (
                f"merge into {self.history.sql_name} t using (select {HISTORY}.* {mine} {HISTORY} is not null) s "
                f"on {on} when not matched then insert ({', '.join(map(quoted, names))}) values "
                f"({', '.join(f's.{quoted(name)}' for name in names)})"
            )
            found.append((HISTORY, self.history, statement))
        if self.spec.audit is not None:
            values = {name: f"s.{name}" for name in AUDIT_COLUMNS}
            rows = f"select {AUDIT}.* {mine} {AUDIT} is not null"
            statement = (
                f"merge into {self.audit.sql_name} t using ({rows}) s on t.row_id = s.row_id "
                f"when not matched then insert ({', '.join(values)}) values ({', '.join(values.values())})"
            )
            found.append((AUDIT, self.audit, statement))
        if self.log is not None:
            rows = f"select {LOG}.* {mine} {LOG} is not null"
            statement = self.log.append_statement(f"({rows})", merge_id, is_decided=has_commit)
            found.append((LOG, self.log.target, statement))
        return found


def run(spark: SparkSession, statement: str) -> None:
    spark.sql(statement).collect()
