"""Tables that follow a dimension: the history of type 4, and the audit; and what a killed process has to leave behind.

A merge writes what they will get to ``<dimension>__pending`` before its commit, under an id that the commit carries.
After the commit the rows go on, once, and leave. Whoever merges next finishes what a killed process left: rows whose
commit is there go on, those of a commit that never came are dropped after a day.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from healing_tables.batch import named_keys
from healing_tables.hashing import ISO
from healing_tables.layout import Layout, find
from healing_tables.moments import TIMESTAMP, as_micros
from healing_tables.naming import by_name, literal, numbered, quoted
from healing_tables.retries import retrying
from healing_tables.spec import DimensionSpec
from healing_tables.targets.delta import DeltaTarget, as_view

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
}
JSON = f"map('timeZone', 'UTC', 'timestampFormat', '{ISO}XXX', 'ignoreNullFields', 'false')"
# Each merge adds a small file; Delta puts them together now and then
GROWING = {"delta.autoOptimize.autoCompact": "true"}
ABANDONED = "interval 1 day"
LOGGED = "logged"  # a mark: the change log has rows of this merge


@dataclass(frozen=True)
class Followers:
    """The history and the audit of one dimension; false if it has neither."""

    target: DeltaTarget
    layout: Layout
    spec: DimensionSpec

    def __bool__(self) -> bool:
        return self.layout.has_history or self.spec.audit is not None

    @property
    def pending(self) -> DeltaTarget:
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
        return replace(target, properties=GROWING)

    def prepare(self, spark: SparkSession) -> None:
        """Make the tables that are not there, and the columns that the history lacks."""
        fields = ", ".join(
            f"{quoted(name)}: {kind}"
            for name, kind in self.layout.history_columns(self.spec).items()
        )
        archived = {"archived": f"struct<{fields}>"} if self.layout.has_history else {}
        pending = {"merge_id": "string", "written_at": TIMESTAMP, **AUDIT_COLUMNS, **archived}
        self.pending.create(spark, pending)
        if archived:
            own = [*[key.name for key in self.layout.keys], "valid_from", "valid_to"]
            self.history.ensure(spark, self.layout.history_columns(self.spec), own, "history")
            self.widen(spark, self.history, "*")
            if "archived" in self.pending.rows(spark).columns:
                self.widen(spark, self.pending, "archived.*")
            else:  # no attribute was of type 4 before
                self.pending.add_columns(spark, list(archived.items()))
        if self.spec.audit is not None:
            self.audit.ensure(spark, AUDIT_COLUMNS, AUDIT_COLUMNS, "audit")

    def widen(self, spark: SparkSession, table: DeltaTarget, columns: str) -> None:
        """Add the attributes that were appended to the dimension."""
        present = table.rows(spark).select(columns).columns
        missing = [
            (name, kind)
            for name, kind in self.layout.history_columns(self.spec).items()
            if find(name, present) is None
        ]
        if missing:
            table.add_columns(spark, missing, columns.rstrip("*"))

    def past(self, spark: SparkSession) -> DataFrame | None:
        """Type 4: the rows of the history, as plan.changes takes them."""
        if not self.layout.has_history:
            return None
        kind = self.layout.moment_type
        state = [f"{quoted(column.name)} as a{n}" for n, column in by_name(self.layout)]
        # rows from before the history had the column: the value began no later than the row
        changed = [
            f"coalesce({as_micros(quoted(self.spec.added('changed_at', column.name)), kind)}, {as_micros('valid_from', kind)}) as a{n}"
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

    def announce(self, plan: DataFrame, merge_id: str, batch_id: str) -> None:
        """Write what the commit will bring, before it."""
        spark, audit = plan.sparkSession, self.spec.audit or {}

        def text(name: str) -> str:
            return literal(audit[name]) if audit.get(name) is not None else "cast(null as string)"

        surrogate = self.layout.surrogate
        actor = text("actor") if audit.get("actor") is not None else "current_user"
        rows = plan.where("action not in ('refuse', 'absent')").selectExpr(
            f"{literal(merge_id)} as merge_id",
            "now() as written_at",
            f"{literal(self.target.name)} as dimension",
            f"to_json(key, {JSON}) as key",
            f"{f'cast(stored.{quoted(surrogate)} as string)' if surrogate else 'cast(null as string)'} as old_surrogate_key",
            f"{f'cast(new.{quoted(surrogate)} as string)' if surrogate else 'cast(null as string)'} as new_surrogate_key",
            "action as change_type",
            "reason as change_reason",
            "changed_columns",
            f"to_json(stored, {JSON}) as old_values",
            f"to_json(new, {JSON}) as new_values",
            "timestamp_micros(moment) as changed_at",
            f"{actor} as actor",
            f"{text('reason')} as reason",
            f"{text('source')} as source",
            f"{literal(batch_id)} as batch_id",
            "uuid() as row_id",
            *([self.archived(spark)] if self.layout.has_history else []),
        )
        listed = ", ".join(quoted(name) for name in rows.columns)
        with as_view(rows) as view:
            spark.sql(f"insert into {self.pending.sql_name} ({listed}) select {listed} from {view}")

    def archived(self, spark: SparkSession) -> str:
        """The row for the history with its fields in the order of the pending table: a struct is written by position."""
        fields = self.pending.rows(spark).select("archived.*").columns
        listed = ", ".join(f"archived.{quoted(name)} as {quoted(name)}" for name in fields)
        return f"if(archived is null, null, struct({listed})) as archived"

    def withdraw(self, spark: SparkSession, merge_id: str) -> None:
        """The commit did not come about."""
        spark.sql(f"delete from {self.pending.sql_name} where merge_id = {literal(merge_id)}")

    def catch_up(self, spark: SparkSession) -> None:
        """Hand on the rows of every commit that is there; idempotent, and safe beside another process that does the same."""
        found = (
            self.pending.rows(spark)
            .where(f"change_type <> '{LOGGED}'")
            .selectExpr("merge_id", f"written_at < now() - {ABANDONED} as is_old")
            .distinct()
            .collect()
        )
        ids = [merge_id for merge_id, _ in found]
        committed = self.target.versions_of(spark, ids) if ids else {}
        for merge_id, is_old in found:
            if merge_id in committed:
                self.hand_on(spark, merge_id)
            elif is_old:
                retrying(self.pending.name, partial(self.withdraw, spark, merge_id))

    def hand_on(self, spark: SparkSession, merge_id: str) -> None:
        for table, statement in self.statements(merge_id):
            retrying(table.name, partial(run, spark, statement))
        retrying(self.pending.name, partial(self.withdraw, spark, merge_id))

    def mark(self, spark: SparkSession, merge_id: str) -> None:
        """Changes are about to go to the change log, and will have to reach the dimension."""
        run(
            spark,
            f"insert into {self.pending.sql_name} (merge_id, written_at, change_type) "
            f"values ({literal(merge_id)}, now(), '{LOGGED}')",
        )

    def marks(self, spark: SparkSession) -> list[str]:
        """What other merges have marked and not unmarked: they are under way, or were killed."""
        pending = self.pending.rows(spark).where(f"change_type = '{LOGGED}'")
        return [row[0] for row in pending.select("merge_id").distinct().collect()]

    def unmark(self, spark: SparkSession, merge_ids: Sequence[str]) -> None:
        """These changes have reached the dimension. Marks that nothing followed leave after a day."""
        listed = ", ".join(literal(merge_id) for merge_id in merge_ids)
        statement = (
            f"delete from {self.pending.sql_name} where change_type = '{LOGGED}' "
            f"and (merge_id in ({listed}) or written_at < now() - {ABANDONED})"
        )
        retrying(self.pending.name, partial(run, spark, statement))

    def statements(self, merge_id: str) -> list[tuple[DeltaTarget, str]]:
        """What hands on the rows of a merge, and where to."""
        mine = f"from {self.pending.sql_name} where merge_id = {literal(merge_id)}"
        found: list[tuple[DeltaTarget, str]] = []
        if self.layout.has_history:
            names = list(self.layout.history_columns(self.spec))
            on = " and ".join(
                f"t.{quoted(name)} = s.{quoted(name)}"
                for name in [*[key.name for key in self.layout.keys], "valid_from"]
            )
            statement = (
                f"merge into {self.history.sql_name} t using (select archived.* {mine} and change_type = 'archive') s "
                f"on {on} when not matched then insert ({', '.join(map(quoted, names))}) values ({', '.join(f's.{quoted(name)}' for name in names)})"
            )
            found.append((self.history, statement))
        if self.spec.audit is not None:
            values = {name: f"s.{name}" for name in AUDIT_COLUMNS}
            rows = self.with_numbers(f"select * {mine} and change_type <> 'archive'")
            statement = (
                f"merge into {self.audit.sql_name} t using ({rows}) s on t.row_id = s.row_id "
                f"when not matched then insert ({', '.join(values)}) values ({', '.join(values.values())})"
            )
            found.append((self.audit, statement))
        return found

    def with_numbers(self, rows: str) -> str:
        """The audit's rows with the integer keys that the MERGE has given: nobody knew them before."""
        if not self.layout.is_sequence:
            return rows
        names = ", ".join(f"k.{quoted(key.name)}" for key in self.layout.keys)
        same = [f"p.key = to_json(struct({names}), {JSON})"]
        if "valid_from" in self.layout.names:
            name = self.layout.names["valid_from"]
            path = literal("$['" + name + "']")
            stored = f"to_json(struct(k.{quoted(name)}), {JSON})"
            same.append(
                f"get_json_object(p.new_values, {path}) = get_json_object({stored}, {path})"
            )
        return (
            f"select p.* except (new_surrogate_key), if(p.new_values is null, null, "
            f"coalesce(p.new_surrogate_key, cast(k.{quoted(self.layout.surrogate or '')} as string))) as new_surrogate_key "
            f"from ({rows}) p left join {self.target.sql_name} k on {' and '.join(same)}"
        )


def run(spark: SparkSession, statement: str) -> None:
    spark.sql(statement).collect()
