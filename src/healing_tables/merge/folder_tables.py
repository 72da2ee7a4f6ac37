"""A dimension for which a merge writes the new version, and the new rows of the tables beside it, to new folders.

One commit names all of these folders. Subclasses define what a commit is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from healing_tables.merge.audit import Publish
from healing_tables.merge.change import Change
from healing_tables.merge.tables import AUDIT, HISTORY, LOG, SET_ASIDE, DimensionTables
from healing_tables.plan.set_aside import ROW_ID
from healing_tables.sql.identifiers import quoted
from healing_tables.targets.key_map import COLUMNS as KEY_MAP_COLUMNS
from healing_tables.targets.key_map import numbered, stored_numbers, version_of
from healing_tables.targets.table import Beside, SideTable

KEYS = "keys"
FIRST_ROWS = "seed"  # the merge id of the first rows of a change log
WRITES_ROWS = {"insert", "close", "update", "remove"}


@dataclass(frozen=True)
class FolderTables(DimensionTables[Beside]):
    """A dimension whose merges write new folders."""

    def side_tables(self) -> dict[str, SideTable]:
        """The name of each table in `rows_to_write`, to the table."""
        found: dict[str, SideTable] = {
            KEYS: self.key_map,
            HISTORY: self.history,
            AUDIT: self.audit,
            SET_ASIDE: self.set_aside,
        }
        return found if self.log is None else {**found, LOG: self.log.target}

    def prepare(self, spark: SparkSession) -> None:
        super().prepare(spark)
        if self.layout.is_sequence:
            self.key_map.ensure(spark, KEY_MAP_COLUMNS, KEY_MAP_COLUMNS, "key map")

    def rows_to_write(self, change: Change, version: int) -> tuple[DataFrame, dict[str, DataFrame]]:
        """The plan with the numbers of its new rows, and the new rows of each table beside the dimension.

        Args: version: of the commit.
        """
        plan, rows, counts = change.plan, {}, change.counts
        if self.layout.is_sequence and "insert" in counts:
            plan, rows[KEYS] = self.with_numbers(plan, change.stored)
        if counts:
            publish = Publish(f"{version}L", "now()")
            beside = self.side_table_rows(plan, change.events, change.batch_id, publish)
            rows |= {name: frame for name, frame in beside.items() if name == AUDIT or "archive" in counts}
        if change.for_log is not None:
            rows[LOG] = self.new_in_log(change.for_log)
        if change.set_aside is not None:
            there = self.set_aside.rows(plan.sparkSession).select(ROW_ID)
            new = change.set_aside.join(there, ROW_ID, "left_anti").localCheckpoint()
            if not new.isEmpty():
                rows[SET_ASIDE] = new
        return plan, rows

    def new_state(self, plan: DataFrame, stored: DataFrame | None, columns: Sequence[str]) -> DataFrame:
        """The rows after a plan. Args: stored: at least those of the keys in the batch; columns: of the table."""
        new = plan.where("action in ('insert', 'close', 'update')").selectExpr("new.*")
        state = new if stored is None else self.without_old(stored, plan).unionByName(new, allowMissingColumns=True)
        return state.select(*map(quoted, columns))

    def without_old(self, stored: DataFrame, plan: DataFrame) -> DataFrame:
        """The stored rows that a plan leaves as they are."""
        named = [f"key.{quoted(key.name)} as healing_tables_k{n}" for n, key in enumerate(self.layout.keys)]
        same = [
            f"t.{quoted(key.name)} {self.layout.same} s.healing_tables_k{n}" for n, key in enumerate(self.layout.keys)
        ]
        if "valid_from" in self.layout.names:
            start = quoted(self.layout.names["valid_from"])
            named.append(f"stored.{start} as healing_tables_start")
            same.append(f"t.{start} <=> s.healing_tables_start")
        changed = plan.where("action in ('close', 'update', 'remove')").selectExpr(*named)
        return stored.alias("t").join(changed.alias("s"), f.expr(" and ".join(same)), "left_anti")

    def with_numbers(self, plan: DataFrame, stored: DataFrame | None) -> tuple[DataFrame, DataFrame]:
        """The plan with the numbers of its new rows, and the rows that its key map does not have yet."""
        layout, spec, columns = self.layout, self.spec, list(KEY_MAP_COLUMNS)
        in_map = self.key_map.rows(plan.sparkSession).select(*columns)
        given = in_map
        if stored is not None:
            # a number that another writer has put there is reserved, too
            in_table = stored_numbers(stored, layout, spec).where("surrogate_key is not null")
            in_table = in_table.groupBy("key", "valid_from").agg(f.expr("max(surrogate_key) as surrogate_key"))
            given = in_map.unionByName(in_table.join(in_map, ["key", "valid_from"], "left_anti"))
        given = given.localCheckpoint()
        key, start = version_of(layout, spec, "new.")
        new = plan.where("action = 'insert'").selectExpr(
            f"{key} as key", f"{start} as valid_from", "key as key_columns"
        )
        largest = given.agg(f.expr("coalesce(max(surrogate_key), 0L) as largest"))
        fresh = (
            new.distinct()
            .join(given, ["key", "valid_from"], "left_anti")
            .crossJoin(f.broadcast(largest))
            .selectExpr(
                "key",
                "valid_from",
                "largest + dense_rank() over (order by key_columns, valid_from) as surrogate_key",
            )
        )
        all_numbers = given.unionByName(fresh).localCheckpoint()
        return numbered(plan, all_numbers, layout, spec), all_numbers.join(in_map, ["key", "valid_from"], "left_anti")

    def new_in_log(self, rows: DataFrame) -> DataFrame:
        """Those of these rows that the change log does not have."""
        assert self.log is not None
        own = self.log.generated()
        names = [name for name in self.log.columns() if name not in own]
        there = self.log.target.rows(rows.sparkSession)
        same = [f"s.{quoted(name)} <=> t.{quoted(name)}" for name in [*names, "changed_at", "is_deleted", "is_full"]]
        return rows.alias("s").join(there.alias("t"), f.expr(" and ".join(same)), "left_anti")
