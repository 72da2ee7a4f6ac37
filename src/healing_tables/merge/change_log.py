"""The change log of a dimension: every row of every batch, kept in an append-only table.

The versions of a key in a batch are computed from its rows in the log and in the batch. So the order in which changes
arrive does not matter. Rows are added to the log by the outbox, once the dimension has committed
(docs/decisions/0015-change-log.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from healing_tables.definition.layout import Layout, by_name, numbered
from healing_tables.definition.spec import DimensionSpec
from healing_tables.definition.stored_layout import wider_columns
from healing_tables.errors import Mistake, TargetError, counted
from healing_tables.plan.batch import (
    cause,
    distinct_rows,
    first_starts,
    key_names,
    key_values,
    named_keys,
    one_per_moment,
    part_of_stored,
    presence,
)
from healing_tables.plan.feed import NO_KEY, check_has_log, sent_conditions
from healing_tables.plan.seed_events import seeds, with_history
from healing_tables.plan.timeline import with_kept_values
from healing_tables.plan.validation import check_stored
from healing_tables.sql.identifiers import find, literal, quoted
from healing_tables.sql.instants import TIMESTAMP
from healing_tables.sql.types import types_of
from healing_tables.targets.merge_statement import stale
from healing_tables.targets.table import DIMENSION, DimensionTable, SideTable, missing_columns

# Columns besides the keys, the attributes and the tie breakers
GENERATED = {
    "changed_at": TIMESTAMP,
    "is_deleted": "boolean",
    # not a change, but the moment of a full batch; with a key: this batch has only later rows of the key
    "is_full": "boolean",
    "is_seed": "boolean",  # copied from a stored version
    "merge_id": "string",
    "logged_at": TIMESTAMP,
}
# Of a row that may leave values out; rows that were logged without this column are complete
PARTIAL = "is_partial"
# What a row is a part of (`within`), or for what a full batch is complete; NULL: for all
PART = "within_values"
# From when on a row says that its key exists
FIRST_START = "valid_from_first"


@dataclass(frozen=True)
class ChangeLog:
    """The log of one dimension.

    Attributes:
        ties: the tie breakers, or the columns of ``sequence_by``, with their types.
    """

    target: SideTable
    layout: Layout
    spec: DimensionSpec
    ties: Mapping[str, str]

    @classmethod
    def of(
        cls, table: DimensionTable[Any], layout: Layout, spec: DimensionSpec, batch: Mapping[str, str]
    ) -> ChangeLog | None:
        """The log of a dimension; None if it has none. Args: table: the dimension; batch: columns with their types.

        Raises: SpecError for rules that need one.
        """
        check_has_log(spec)
        if not isinstance(spec.change_log, str):
            return None
        ties = {name: batch[find(name, batch) or name] for name in spec.order_by}
        keys = {column.name: column.type for column in layout.keys}  # its first columns
        return cls(table.named(spec.change_log).ordered(list(keys), keys), layout, spec, ties)

    def extra_tie_breakers(self) -> dict[str, str]:
        """The tie breakers that are neither keys nor attributes."""
        others = {column.name: "" for column in (*self.layout.keys, *self.layout.attributes)}
        return {name: kind for name, kind in self.ties.items() if find(name, others) is None}

    def generated(self) -> dict[str, str]:
        """Its own columns, with their types."""
        flags = {PARTIAL: "boolean"} if self.spec.is_partial else {}
        flags |= {PART: "string"} if self.spec.within else {}
        flags |= {FIRST_START: TIMESTAMP} if self.spec.first_start_column is not None else {}
        return GENERATED | dict.fromkeys(self.spec.causes, "string") | flags

    def columns(self) -> dict[str, str]:
        """Name to type. Raises: TargetError if a name is taken."""
        given = {column.name: column.type for column in (*self.layout.keys, *self.layout.attributes)}
        given |= self.extra_tie_breakers()
        own = self.generated()
        mistakes = [
            Mistake(
                name,
                f"a name other than the change log's own: {', '.join(own)}",
                "a column of the batch",
                "rename it in the batch; or set change_log to False, and merge in the order of the moments",
            )
            for name in given
            if find(name, own) is not None
        ]
        if mistakes:
            raise TargetError(counted("the change log", mistakes), mistakes)
        return given | own

    def prepare(self, spark: SparkSession, dimension: str) -> None:
        """Create the table if it does not exist; add missing columns, and let its newest version have them.

        Args: dimension: the full name of its dimension.
        Raises: TargetError if it is not the change log of this dimension.
        """
        wanted = self.columns()
        present = self.target.ensure(spark, wanted, GENERATED, "change log", own_properties={DIMENSION: dimension})
        owner = self.target.table_property(spark, DIMENSION)
        if owner is None:  # an older log, without the property
            self.target.set_property(spark, DIMENSION, dimension)
        elif owner != dimension:
            mistake = Mistake(
                self.target.name,
                f"the change log of {dimension}, or no table yet",
                f"the change log of {owner}: two dimensions cannot share one",
                "name another table in change_log, or False for none; if the dimension was renamed: "
                f"ALTER TABLE {self.target.sql_name} SET TBLPROPERTIES ('{DIMENSION}' = '{dimension}')",
            )
            raise TargetError(counted("the change log", [mistake]), [mistake])
        if missing := missing_columns(wanted, present):
            self.target.add_columns(spark, missing)
        narrower = wider_columns(wanted, present)
        if narrower and not self.layout.widened:  # see `DimensionTables.narrower`
            self.target.change_types(spark, narrower)
        self.target.recover(spark)

    def first_rows(self, stored: DataFrame, merge_id: str, history: DataFrame | None = None) -> DataFrame:
        """The first rows of a new log. Args: history: of type 4, its rows.

        Raises: TargetError if the stored dimension is damaged.
        """
        layout, spec = self.layout, self.spec
        if history is not None:
            stored, layout = with_history(stored, history, layout, spec)
            spec = replace(spec, valid_to_current=None)
        check_stored(stored, layout, spec)
        return self.rows(seeds(stored, layout, spec, self.ties), merge_id, is_seed=True)

    def logged_merge_ids(self, spark: SparkSession, merge_ids: Sequence[str]) -> set[str]:
        """Those of these merges that have rows in the log."""
        listed = ", ".join(literal(merge_id) for merge_id in merge_ids)
        rows = self.target.rows(spark).where(f"merge_id in ({listed})")
        return {str(row[0]) for row in rows.select("merge_id").distinct().collect()}

    def read(self, spark: SparkSession, version: int, keys: str = "") -> DataFrame:
        """Its rows, as `as_events` returns them. Args: version: of the table; keys: a condition on ``t``, the table."""
        return self.as_events(self.target.rows(spark, version).alias("t").where(keys or "true"))

    def preview(self, spark: SparkSession, stored: DataFrame | None, history: DataFrame | None = None) -> DataFrame:
        """What `read` would return after `prepare`: for a new log, the stored rows. Nothing is written.

        Raises: TargetError if the stored dimension is damaged.
        """
        table = self.target.read(spark)
        if stored is not None and (table is None or table.isEmpty()):
            table = self.first_rows(stored, "dry run", history)
        columns = self.columns()
        if table is None:
            ddl = ", ".join(f"{quoted(name)} {kind}" for name, kind in columns.items())
            return self.as_events(spark.createDataFrame([], ddl))
        missing = missing_columns(columns, types_of(table.schema))
        return self.as_events(
            table.selectExpr("*", *(f"cast(null as {kind}) as {quoted(name)}" for name, kind in missing))
        )

    def as_events(self, rows: DataFrame) -> DataFrame:
        """Its rows with the columns of `batch.events` and ``is_full``, ``is_seed``, ``merge_id``."""
        values = [
            f"cast({quoted(attribute.name)} as {attribute.type}) as a{number}"
            for number, attribute in by_name(self.layout)
        ]
        ties = [f"{quoted(name)} as t{n}" for n, name in enumerate(self.ties, start=1)]
        rules = self.spec.has_rules
        return rows.selectExpr(
            *named_keys(self.layout),
            "unix_micros(changed_at) as at",
            "is_deleted",
            f"if(is_deleted, null, struct({', '.join(values) or 'true as present'})) as state",
            f"struct({', '.join(ties) or 'true as none'}) as tie",
            f"{cause({name: name for name in self.spec.causes})} as cause",
            "true as is_logged",
            "is_full",
            "is_seed",
            "merge_id",
            *([f"coalesce({PARTIAL if self.spec.is_partial else 'false'}, false) as is_partial"] if rules else []),
            *([f"{PART} as part"] if self.spec.within else []),
            *([f"unix_micros({FIRST_START}) as first_start"] if self.spec.first_start_column is not None else []),
        )

    def changes(self, logged: DataFrame, touched: DataFrame, batch: DataFrame, full_at: int | None) -> DataFrame:
        """The rows of log and batch for the keys in the batch, as `batch.events` returns them; also all truncations.

        Args:
            logged: of `read`.
            touched: ``k1..n``.
            batch: events.
            full_at: the moment of a full batch.
        """
        keys, has_rules = key_names(self.layout), self.spec.has_rules
        columns = [*keys, "at", "is_deleted", "state", "tie", "cause", "is_logged"]
        columns += ["is_partial"] if has_rules else []
        columns += ["part"] if self.spec.within else []
        columns += first_starts(batch)
        mine = logged.where("not is_full").join(touched, keys, "left_semi")
        if self.spec.truncated_when is not None:
            mine = mine.unionByName(logged.where(f"not is_full and {NO_KEY}"))
        if self.layout.keeps_values:
            items = mine.selectExpr(*columns, "0 as kind").unionByName(batch.selectExpr(*columns, "1 as kind"))
            order = "tie, at" if self.spec.sequence_by else "at"
            batch = with_kept_values(items, self.layout, order).where("kind = 1")
        if full_at is not None and self.spec.changed_at is not None:
            order = "struct(at, tie, is_deleted, state)" if has_rules else "at"
            batch = batch.select(columns).unionByName(presence(batch, self.layout, full_at, order).select(columns))
        news = batch.join(self.seed_rows(mine), [*keys, "at"], "left")
        is_known = f"coalesce({self.agrees()}, false)"
        if first_starts(batch):
            is_known += " and not (state <=> seed and coalesce(first_start < at, false))"
        fresh = news.where(f"not ({is_known})")
        found = mine.select(columns).unionByName(fresh.select(columns))
        return (distinct_rows if has_rules else one_per_moment)(found, self.layout, self.spec)

    def keys_with_later_rows(self, batch: DataFrame, full_at: int | None) -> DataFrame:
        """``k1..n``, ``at``: keys for which a full batch has only later rows."""
        if full_at is None or self.spec.changed_at is None:
            return batch.limit(0).select(*key_names(self.layout), "at")
        first = batch.where(f"not ({NO_KEY})").groupBy(*key_names(self.layout)).agg(f.expr("min(at) as first_at"))
        return first.where(f"first_at > {full_at}L").selectExpr(*key_names(self.layout), f"{full_at}L as at")

    def with_absences(
        self,
        changes: DataFrame,
        full: DataFrame,
        present: DataFrame,
        full_at: int | None,
        parts: DataFrame | None = None,
    ) -> DataFrame:
        """The changes, and the end of each key that the next full batch lacks.

        Args: full: rows of full batches; parts: ``part``, those of the batch, with ``within``.
        """
        keys = key_names(self.layout)
        order = ", tie, is_deleted" if self.spec.has_rules else ""
        taken = full.groupBy().agg(f.expr("collect_set(at) as taken"))
        present = present.unionByName(full.where(f"not ({NO_KEY})").select(*keys, "at"))
        present = present.groupBy(*keys).agg(f.expr("collect_set(at) as present_at"))
        if full_at is not None:
            taken = taken.selectExpr(f"array_union(taken, array({full_at}L)) as taken")
        moments = "taken"
        if self.spec.within:
            marks = full.where(NO_KEY).select("part", "at")
            if parts is not None:
                marks = marks.unionByName(parts.selectExpr("part", f"{full_at}L as at"))
            taken = marks.groupBy().agg(f.expr("collect_set(struct(part, at)) as taken"))
            stored = part_of_stored(self.layout, self.spec)
            changes = changes.withColumn("part", f.expr(f"coalesce(part, {stored})" if stored else "part"))
            # a full batch without parts is complete for all
            is_of = "filter(taken, mark -> coalesce(mark.part = part, mark.part is null))"
            moments = f"transform({is_of}, mark -> mark.at)"
        absent = (
            changes.crossJoin(f.broadcast(taken))
            .join(present, keys, "left")
            .selectExpr(
                *keys,
                "is_deleted",
                f"array_min(filter(array_except({moments}, coalesce(present_at, array())), moment -> moment > at)) "
                "as next_taken",
                f"lead(at) over (partition by {', '.join(keys)} order by at{order}) as next_at",
            )
            .where("not is_deleted and next_taken < coalesce(next_at, next_taken + 1)")
            .selectExpr(*keys, "next_taken as at", "true as is_deleted")
        )
        return changes.unionByName(absent, allowMissingColumns=True)

    def has_full_batch(self, full: DataFrame, present: DataFrame, full_at: int, parts: DataFrame | None = None) -> bool:
        """Whether the log has a full batch at this moment, its parts, and its keys with later rows only."""
        same = full.where(f"at = {full_at}L")
        if parts is not None and not parts.subtract(same.where(NO_KEY).select("part")).isEmpty():
            return False
        new = present.join(same, key_names(self.layout), "left_anti")
        return not same.isEmpty() and new.isEmpty()

    def seed_rows(self, logged: DataFrame) -> DataFrame:
        """``k1..n``, ``at``, ``seed`` (a state), ``is_last``: the versions that were the first rows of the log."""
        keys = key_names(self.layout)
        return logged.where("is_seed and not is_deleted").selectExpr(
            *keys,
            "at",
            "state as seed",
            f"lead(at) over (partition by {', '.join(keys)} order by at) is null as is_last",
        )

    def agrees(self) -> str:
        """Whether a stored version may come from this change; it lacks first values, and old ones of types 1 and 3."""
        sent = sent_conditions(self.layout, self.spec)
        same = []
        for n, attribute in numbered(self.layout, 1, 2, 3, 4, 6):
            others = [f"not {sent[n]}"] if n in sent else []
            others += ["not is_last"] if attribute.scd_type in (1, 3) else []
            same.append(f"({' or '.join([*others, f'state.a{n} <=> seed.a{n}'])})")
        return " and ".join(["seed is not null", "not is_deleted", *same])

    def rows(
        self,
        changes: DataFrame,
        merge_id: str,
        *,
        is_seed: bool = False,
        full_at: int | None = None,
        present: DataFrame | None = None,
        parts: DataFrame | None = None,
    ) -> DataFrame:
        """Rows for the log, in its columns.

        Args:
            changes: ``k1..n``, ``at``, ``is_deleted``, ``state``, ``tie``, ``cause``.
            full_at: the moment of a full batch, which gets a row without a key; or one for each of the ``parts``.
            present: of `keys_with_later_rows`; each key gets a row, too.
        """
        changes = changes.withColumn("is_full", f.lit(False))
        if full_at is not None:
            marks = changes.sparkSession.range(1).drop("id") if parts is None else parts
            mark = marks.selectExpr("*", f"{full_at}L as at", "false as is_deleted", "true as is_full")
            if present is not None:
                mark = mark.unionByName(
                    present.selectExpr("*", "false as is_deleted", "true as is_full"),
                    allowMissingColumns=True,
                )
            changes = changes.unionByName(mark, allowMissingColumns=True)
        columns = dict(zip([key.name for key in self.layout.keys], key_values(self.layout), strict=True))
        columns |= {attribute.name: f"state.a{n}" for n, attribute in by_name(self.layout)}
        for n, name in enumerate(self.ties, start=1):
            # a row that ends its key has no attributes, but still needs its tie breakers
            found = find(name, columns)
            if found is None:
                columns[name] = f"tie.t{n}"
            elif columns[found].startswith("state."):
                columns[found] = f"if(is_deleted, tie.t{n}, {columns[found]})"
        columns |= {
            "changed_at": "timestamp_micros(at)",
            "is_deleted": "is_deleted",
            "is_full": "is_full",
            "is_seed": literal(is_seed),
            "merge_id": literal(merge_id),
            "logged_at": "now()",
        }
        columns |= {name: f"cause.{name}" for name in self.spec.causes}
        if self.spec.is_partial:  # seeds are complete
            columns[PARTIAL] = "is_partial" if "is_partial" in changes.columns else "false"
        if self.spec.within:
            columns[PART] = "part" if "part" in changes.columns else "cast(null as string)"
        if self.spec.first_start_column is not None:
            found_starts = "first_start" if first_starts(changes) else "cast(null as bigint)"
            columns[FIRST_START] = f"timestamp_micros({found_starts})"
        return changes.selectExpr(*[f"{value} as {quoted(name)}" for name, value in columns.items()])

    def append_statement(self, table: str, source: str, merge_id: str, *, is_decided: bool, when_matched: str) -> str:
        """The MERGE that adds the missing rows.

        Args:
            table: the log, or a branch of it.
            source: a view, or a query in parentheses.
            is_decided: the dimension has committed these rows. Otherwise the statement fails if another writer has
                added a different row for a key and moment.
            when_matched: see `SqlTable.when_matched`.
        """
        keys = [key.name for key in self.layout.keys]
        state = ["is_deleted", *[attribute.name for attribute in self.layout.attributes]]
        same = dict.fromkeys([*keys, *self.ties, "is_full"])
        place = " and ".join(f"t.{quoted(name)} <=> s.{quoted(name)}" for name in same)
        if self.spec.within:
            place += f" and (not s.is_full or t.{PART} <=> s.{PART})"
        equal = " and ".join(f"t.{quoted(name)} <=> s.{quoted(name)}" for name in state)
        on = f"s.merge_id = {literal(merge_id)} and t.changed_at = s.changed_at and {place}"
        is_by_state = is_decided or self.spec.on_tie == "greatest"
        if self.spec.first_start_column is not None:  # a row that comes again with an earlier start is logged again
            other = "" if is_by_state else f" or not ({equal})"
            on += f" and (s.{FIRST_START} is null or t.{FIRST_START} <= s.{FIRST_START}{other})"
        if is_by_state:
            on += f" and {equal}"
        else:
            key = self.layout.keys[0]
            key_text = f"cast(s.{quoted(key.name)} as string)"
            when_matched = (
                f"when matched and not ({equal}) then update set {quoted(key.name)} = {stale(key, key_text, merge_id)}"
            )
        names = [quoted(name) for name in self.columns()]
        return f"""
merge into {table} t
using {source} s
on {on}
{when_matched}
when not matched then insert ({", ".join(names)}) values ({", ".join(f"s.{name}" for name in names)})"""
