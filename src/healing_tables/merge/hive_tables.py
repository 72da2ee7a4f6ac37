"""A dimension in a Hive table, and the tables beside it.

A merge writes to new folders: the rows of the dimension, and the new rows of its history, audit,
change log and key map. Its commit names all of them. The tables beside the dimension add a folder as a partition, named
by the merge: a call that can be repeated.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession

from healing_tables.merge.change import Change, Written
from healing_tables.merge.folder_tables import FIRST_ROWS, WRITES_ROWS, FolderTables
from healing_tables.merge.tables import LOG
from healing_tables.plan.batch import key_values
from healing_tables.sql.identifiers import in_quotes, literal, quoted
from healing_tables.targets.buckets import bucket_folders, bucket_of, is_in_buckets
from healing_tables.targets.conflicts import StalePlan
from healing_tables.targets.hive import HiveSnapshot, HiveTarget, short
from healing_tables.targets.hive_commits import Commit
from healing_tables.targets.hive_table import HiveSideTable
from healing_tables.targets.table import CHANGE_LOG, Snapshot, Table


@dataclass(frozen=True)
class HiveTables(FolderTables[HiveSideTable]):
    """A dimension in a Hive table."""

    target: HiveTarget

    def own_tables(self) -> dict[str, Table]:
        return super().own_tables() | {"its commits": self.target.commits.table}

    @property
    def noted_in(self) -> str:
        return self.target.commits.table.sql_name

    def last_micro_batch(self, snapshot: Snapshot, mark: str) -> int | None:
        assert isinstance(snapshot, HiveSnapshot)
        return snapshot.micro_batches.get(mark)

    def note_change_log(self, spark: SparkSession) -> None:
        """Add a commit without other changes, so that merges that have planned without the log fail."""
        snapshot = self.target.snapshot(spark)
        if snapshot is None:
            raise StalePlan
        self.note(spark, is_new=False)
        merge_id = str(uuid.uuid4())
        commit = Commit.unchanged(
            snapshot.version + 1, merge_id, snapshot.location, snapshot.key_buckets, snapshot.micro_batches
        )
        self.target.commits.add(spark, commit, self.target.new_folder(spark, f"{short(merge_id)}/commit"))
        self.target.finish(spark, commit)

    def note(self, spark: SparkSession, *, is_new: bool) -> None:
        """Record the change log for later merges. Args: is_new: the dimension is new, so it has no other log."""
        commits, wanted = self.target.commits, self.notes(spark)
        commits.ensure(spark)
        noted = commits.properties(spark)
        for name, value in wanted.items():
            if noted.get(name) != value:
                commits.table.set_property(spark, name, value)
        if is_new and CHANGE_LOG in noted and CHANGE_LOG not in wanted:
            spark.sql(f"alter table {commits.table.sql_name} unset tblproperties ({in_quotes(CHANGE_LOG)})")

    def seed(self, spark: SparkSession, stored: DataFrame) -> None:
        log = self.log
        if log is None or not log.target.rows(spark).isEmpty():
            return
        folder = self.target.new_folder(spark, f"{short(str(uuid.uuid4()))}/{LOG}")
        self.target.write(log.first_rows(stored, FIRST_ROWS).drop("merge_id"), folder)
        partition = f"partition (merge_id = {literal(FIRST_ROWS)})"
        spark.sql(f"alter table {log.target.sql_name} add if not exists {partition} location {in_quotes(folder)}")

    def publish(self, change: Change, written: Written) -> None:
        spark, snapshot, counts = change.plan.sparkSession, change.snapshot, change.counts
        assert snapshot is None or isinstance(snapshot, HiveSnapshot)
        version = self.next_version(spark, snapshot)
        plan, rows = self.rows_to_write(change, version)
        if LOG in rows:
            rows[LOG] = rows[LOG].drop("merge_id")  # the name of the partition
        is_new_state = snapshot is None or snapshot.has_late_rows or bool(WRITES_ROWS & set(counts))
        if not is_new_state and not rows and not self.layout.new_columns:
            return
        tables = self.side_tables()
        folder = self.target.new_folder(spark, short(change.merge_id))
        for name, frame in rows.items():
            self.target.write(frame, f"{folder}/{name}")
        location = snapshot.location if snapshot is not None and not is_new_state else ""
        location = location or self.write_state(plan, snapshot, f"{folder}/rows")
        commit = Commit(
            version=version,
            is_finished=False,
            is_old=False,
            merge_id=change.merge_id,
            location=location,
            base_location=None if snapshot is None else snapshot.location,
            base_files=None if snapshot is None else snapshot.files,
            key_buckets=self.target.key_buckets if snapshot is None else snapshot.key_buckets,
            # Hive creates the folder of a new table; `finish` then sets the location of its buckets
            create_table=self.create_statement(f"{folder}/empty" if is_in_buckets(location) else location)
            if snapshot is None
            else None,
            add_columns="\n".join(json.dumps(column) for column in self.layout.new_columns),
            side_tables={tables[name].sql_name: f"{folder}/{name}" for name in rows},
            micro_batches={} if snapshot is None else snapshot.micro_batches,
        )
        self.note(spark, is_new=snapshot is None)
        if snapshot is not None:
            self.target.check_unchanged(spark, snapshot)
        self.target.commits.add(spark, commit, f"{folder}/commit")
        try:
            self.target.finish(spark, commit)
        except StalePlan:
            raise
        except Exception:
            written.version = commit.version
            raise
        written.version = commit.version
        written.rows.update(counts)
        written.is_logged = written.is_logged or change.for_log is not None
        self.target.expire(spark, commit.version)

    def next_version(self, spark: SparkSession, snapshot: HiveSnapshot | None) -> int:
        """Raises: StalePlan if a new table already exists."""
        if snapshot is not None:
            return snapshot.version + 1
        newest = self.target.commits.newest(spark)
        if self.target.described(spark) is not None or (newest is not None and not newest.is_finished):
            raise StalePlan
        return 1 if newest is None else newest.version + 1

    def create_statement(self, location: str) -> str:
        return self.target.new_table_statement(self.layout.columns(self.spec), location)

    def rows_for(self, snapshot: Snapshot | None, events: DataFrame, is_full: bool) -> DataFrame | None:
        """For a table in buckets, the rows of the buckets with keys of the batch."""
        if is_full or not isinstance(snapshot, HiveSnapshot) or snapshot.key_buckets is None:
            return super().rows_for(snapshot, events, is_full)
        touched = numbers(events, bucket_of(key_values(self.layout), snapshot.key_buckets))
        return self.rows_of_buckets(events.sparkSession, snapshot, touched)

    def rows_of_buckets(self, spark: SparkSession, snapshot: HiveSnapshot, touched: Sequence[int]) -> DataFrame:
        folders = bucket_folders(snapshot.location)
        read = [folders[number] for number in touched if number in folders]
        schema = snapshot.rows.schema
        if not read:
            return spark.createDataFrame([], schema)
        return replace(self.target, file_format=snapshot.file_format).load(spark, schema, read, ())

    def write_state(self, plan: DataFrame, snapshot: HiveSnapshot | None, folder: str) -> str:
        """Write the rows after a plan. Returns: their location."""
        spark, columns = plan.sparkSession, list(self.layout.columns(self.spec))
        buckets, stored, target = self.target.key_buckets, None, self.target
        partitions: Sequence[str] = target.partition_columns
        if snapshot is not None:
            columns = [*snapshot.columns, *[name for name, _ in self.layout.new_columns]]
            buckets, stored, partitions = snapshot.key_buckets, snapshot.rows, snapshot.partitions
            target = replace(target, file_format=snapshot.file_format)
        if buckets is None:
            target.write(self.new_state(plan, stored, columns), folder, partitions)
            return folder
        names = [quoted(key.name) for key in self.layout.keys]
        old: dict[int, str] = {}
        if snapshot is not None:
            old = bucket_folders(snapshot.location)
            of_key = bucket_of([f"key.{name}" for name in names], buckets)
            touched = numbers(plan.where(f"action in ({', '.join(map(literal, sorted(WRITES_ROWS)))})"), of_key)
            stored = self.rows_of_buckets(spark, snapshot, touched)
            old = {number: place for number, place in old.items() if number not in touched}
        state = self.new_state(plan, stored, columns)
        return target.write_buckets(state, bucket_of(names, buckets), folder, old)


def numbers(rows: DataFrame, expression: str) -> list[int]:
    return sorted(row[0] for row in rows.selectExpr(f"{expression} as number").distinct().collect())
