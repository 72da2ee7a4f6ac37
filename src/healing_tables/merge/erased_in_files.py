"""Keys are erased from a dimension in files: a new state has its tables without their rows.

Older states have the rows until they expire.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession

from healing_tables.merge.erased_places import Condition, Places
from healing_tables.merge.keys_to_erase import ERASED_COLUMNS, Event, KeysToErase, is_key_map
from healing_tables.targets.conflicts import StalePlan
from healing_tables.targets.files import FilesSnapshot, FilesTarget
from healing_tables.targets.files_commits import DATA, Commit, StoredTable
from healing_tables.targets.key_map import COLUMNS as KEY_MAP_COLUMNS
from healing_tables.targets.paths import absolute


@dataclass(frozen=True)
class FilesPlaces(Places):
    """In files."""

    target: FilesTarget

    def base(self, spark: SparkSession) -> Commit:
        """The newest state. Raises: StalePlan if the dimension was dropped."""
        snapshot = self.target.snapshot(spark)
        if not isinstance(snapshot, FilesSnapshot):
            raise StalePlan("the dimension was dropped")
        return snapshot.commit

    def with_keys(
        self, spark: SparkSession, tables: Mapping[str, StoredTable], condition: Condition
    ) -> Iterator[tuple[str, DataFrame, str, int]]:
        """Of each table that has keys: its name in a commit, its rows, the condition, how many rows fulfil it."""
        for part, stored in tables.items():
            rows = self.target.load(spark, stored)
            where = condition(rows.columns)
            if where is not None:
                yield part, rows, where, rows.where(where).count()

    def numbers(self, spark: SparkSession, tables: Mapping[str, StoredTable], condition: Condition) -> dict[str, int]:
        return {self.name_of(part): number for part, _, _, number in self.with_keys(spark, tables, condition)}

    def count(self, spark: SparkSession, keys: KeysToErase) -> dict[str, int]:
        return self.numbers(spark, self.base(spark).tables, keys.condition)

    def remove(self, spark: SparkSession, keys: KeysToErase, events: Sequence[Event]) -> dict[str, int]:
        base, found, changed = self.base(spark), dict[str, int](), dict[str, StoredTable]()
        for part, rows, where, number in self.with_keys(spark, base.tables, keys.condition):
            found[self.name_of(part)] = number
            if number:
                kept, stored = rows.where(f"not {where}"), base.tables[part]
                if is_key_map(rows.columns):
                    kept = kept.unionByName(reserved(rows, where))
                folder = f"{DATA}/{folder_of(stored)}/{uuid.uuid4().hex}"
                changed[part] = self.target.write(kept, folder, stored.file_format)
        self.commit(spark, base, changed, events)
        return found

    def add_events(self, spark: SparkSession, events: Sequence[Event]) -> None:
        self.commit(spark, self.base(spark), {}, events)

    def commit(
        self, spark: SparkSession, base: Commit, changed: Mapping[str, StoredTable], events: Sequence[Event]
    ) -> None:
        """Args: base: the newest commit; changed: its tables with other rows."""
        register, tables = self.target.beside("__erased"), {**base.tables, **changed}
        if events:
            register.ensure(spark, ERASED_COLUMNS, ERASED_COLUMNS, "table of erased keys")
            ddl = ", ".join(f"{name} {kind}" for name, kind in ERASED_COLUMNS.items())
            folder = f"{DATA}/erased/{uuid.uuid4().hex}"
            new = self.target.write(spark.createDataFrame(list(events), ddl), folder, register.file_format)
            present = tables.get(register.part)
            tables[register.part] = new if present is None else replace(new, folders=(*present.folders, folder))
        if tables != base.tables:
            commit = replace(base, version=base.version + 1, merge_id=str(uuid.uuid4()), tables=tables)
            self.target.commits(spark).add(commit)

    def search(self, spark: SparkSession, condition: Condition) -> dict[str, int]:
        commits = self.target.commits(spark)
        states = [commit for version in commits.versions() if (commit := commits.read(version)) is not None]
        every: dict[str, StoredTable] = {}
        for state in states:
            for part, stored in state.tables.items():
                seen = every[part].folders if part in every else ()
                every[part] = replace(stored, folders=tuple(dict.fromkeys((*seen, *stored.folders))))
        return self.numbers(spark, every, condition)

    def name_of(self, part: str) -> str:
        return absolute(part, self.target.path)


def reserved(numbers: DataFrame, condition: str) -> DataFrame:
    """The largest number of a key map, without its version, if that is removed: it is not given again."""
    largest = numbers.selectExpr("max(surrogate_key) as number", f"max(if({condition}, surrogate_key, null)) as gone")
    empty = [f"cast(null as {KEY_MAP_COLUMNS[name]}) as {name}" for name in ("key", "valid_from")]
    return largest.where("gone = number").selectExpr(*empty, "number as surrogate_key")


def folder_of(stored: StoredTable) -> str:
    """The kind of the folders of a table, in the folder of the data."""
    first = stored.folders[0] if stored.folders else ""
    return first.split("/")[1] if first.startswith(f"{DATA}/") else "rows"
