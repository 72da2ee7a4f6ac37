"""A dimension in files, and the tables beside it: one commit names the folders of all of them."""

from __future__ import annotations

import logging
import uuid
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from healing_tables.definition.stored_layout import wider_columns
from healing_tables.errors import TargetError
from healing_tables.merge.change import Change, Written
from healing_tables.merge.folder_tables import FIRST_ROWS, WRITES_ROWS, FolderTables
from healing_tables.merge.tables import LOG
from healing_tables.sql.types import types_of
from healing_tables.targets.conflicts import StalePlan
from healing_tables.targets.files import ROWS, FilesSnapshot, FilesTarget
from healing_tables.targets.files_commits import DATA, Commit, StoredTable
from healing_tables.targets.files_table import FilesSideTable
from healing_tables.targets.table import Snapshot, micro_batches_after

log = logging.getLogger("healing_tables")

# A table beside a dimension gets a folder per merge; at this number, they are combined into one
MOST_FOLDERS = 50


@dataclass(frozen=True)
class FilesTables(FolderTables[FilesSideTable]):
    """A dimension in files."""

    target: FilesTarget

    def set_property_text(self, name: str, value: str | None) -> str:
        return f"FilesTarget({self.target.path!r}).set_property(spark, {name!r}, {value!r})"

    def last_micro_batch(self, snapshot: Snapshot, mark: str) -> int | None:
        assert isinstance(snapshot, FilesSnapshot)
        return snapshot.commit.micro_batches.get(mark)

    def note_change_log(self, spark: SparkSession) -> None:
        snapshot, commits, notes = self.target.snapshot(spark), self.target.commits(spark), self.notes(spark)
        if snapshot is not None and snapshot.version == 0:  # files that no merge has written
            commits.add(replace(snapshot.commit, version=1, merge_id=str(uuid.uuid4())))
        commits.amend(lambda commit: replace(commit, properties={**commit.properties, **notes}))

    def seed(self, spark: SparkSession, stored: DataFrame) -> None:
        log = self.log
        if log is None or not log.target.rows(spark).isEmpty():
            return
        assert isinstance(log.target, FilesSideTable)
        part = log.target.part
        rows = self.target.write(log.first_rows(stored, FIRST_ROWS), f"{DATA}/{LOG}/{uuid.uuid4().hex}", "parquet")

        def change(commit: Commit) -> Commit:
            present = commit.tables.get(part)
            return commit if present and present.folders else replace(commit, tables={**commit.tables, part: rows})

        self.target.commits(spark).amend(change)

    def publish(self, change: Change, written: Written) -> None:
        spark, snapshot, counts = change.plan.sparkSession, change.snapshot, change.counts
        assert snapshot is None or isinstance(snapshot, FilesSnapshot)
        base = self.base(spark) if snapshot is None else snapshot.commit
        plan, rows = self.rows_to_write(change, base.version + 1)
        is_new_state = snapshot is None or bool(WRITES_ROWS & set(counts))
        has_new_schema = bool(self.layout.new_columns or self.layout.widened)
        if not is_new_state and not rows and not has_new_schema:
            return
        new, tables = uuid.uuid4().hex, dict(base.tables)
        for name, frame in rows.items():
            side = self.side_tables()[name]
            assert isinstance(side, FilesSideTable)
            tables[side.part] = self.append(spark, side, base, frame, f"{DATA}/{name}/{new}")
        if is_new_state or has_new_schema:
            tables[ROWS] = self.write_state(plan, snapshot, f"{DATA}/rows/{new}")
        commits = self.target.commits(spark)
        commit = Commit(
            version=base.version + 1,
            table_id=base.table_id,
            merge_id=change.merge_id,
            tables=tables,
            properties={**base.properties, **self.notes(spark)},
            micro_batches=micro_batches_after(base.micro_batches, change.merge_id),
        )
        commits.add(commit)
        written.version = commit.version
        written.rows.update(counts)
        written.is_logged = written.is_logged or change.for_log is not None
        try:
            commits.expire(self.target.keep_versions)
        except TargetError as error:  # the commit is done; a later merge tries again
            log.warning("%s: old versions were not deleted: %s", self.target.path, error.mistakes[0].got)

    def base(self, spark: SparkSession) -> Commit:
        """The base of the first version of a dimension. Raises: StalePlan if the dimension exists by now."""
        if self.target.commits(spark).newest() is not None:
            raise StalePlan
        return Commit(0, str(uuid.uuid4()), "")

    def append(
        self, spark: SparkSession, side: FilesSideTable, base: Commit, rows: DataFrame, folder: str
    ) -> StoredTable:
        """Write new rows of a table beside the dimension; all of its rows if they are in many folders, or if the new
        rows have wider types."""
        present = side.stored(spark, base)
        if present is not None and (len(present.folders) >= MOST_FOLDERS or has_wider_types(rows, present)):
            rows = self.target.load(spark, present).unionByName(rows, allowMissingColumns=True)
            return self.target.write(rows, folder, side.file_format)
        new = self.target.write(rows, folder, side.file_format)
        if present is None:
            return new
        wider = present.with_columns({column.name: column.dataType for column in rows.schema})
        return replace(wider, folders=(*present.folders, folder))

    def write_state(self, plan: DataFrame, snapshot: FilesSnapshot | None, folder: str) -> StoredTable:
        if snapshot is None:
            state = self.new_state(plan, None, list(self.layout.columns(self.spec)))
            return self.target.write(state, folder, self.target.file_format)
        columns = [*snapshot.columns, *[name for name, _ in self.layout.new_columns]]
        state = self.new_state(plan, snapshot.rows, columns)
        return self.target.write(state, folder, snapshot.commit.tables[ROWS].file_format)


def has_wider_types(rows: DataFrame, table: StoredTable) -> bool:
    """Whether rows have a column of a wider type than the files of a table."""
    return bool(wider_columns(types_of(rows.schema), types_of(StructType.fromJson(dict(table.schema)))))
