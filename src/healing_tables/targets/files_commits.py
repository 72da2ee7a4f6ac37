"""The commits of a dimension in files: a file per state, which is created once. See files.py."""

from __future__ import annotations

import logging
import posixpath
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta, timezone

from pyspark.sql.types import DataType, StructType

from healing_tables.errors import ArgumentError, TargetError
from healing_tables.sql.identifiers import find
from healing_tables.targets.conflicts import StalePlan
from healing_tables.targets.object_store import ObjectStore
from healing_tables.targets.paths import is_s3
from healing_tables.targets.retry import retrying

log = logging.getLogger("healing_tables")

COMMITS, DATA = "_commits", "_data"
LAYOUT = 1  # of these files
# A query may still read the files of a state that was replaced
KEPT = timedelta(hours=1)


@dataclass(frozen=True)
class StoredTable:
    """A table of a commit.

    Attributes:
        folders: with its rows, relative to the path of the dimension.
        schema: as Spark writes it to JSON.
    """

    folders: tuple[str, ...]
    file_format: str
    schema: Mapping[str, object]

    def with_columns(self, columns: Mapping[str, str | DataType]) -> StoredTable:
        """The table with these columns added, as far as it does not have them."""
        schema = StructType.fromJson(dict(self.schema))
        for name, kind in columns.items():
            if find(name, schema.names) is None:
                schema = schema.add(name, kind)
        return replace(self, schema=schema.jsonValue())


@dataclass(frozen=True)
class Commit:
    """A state of a dimension and of the tables beside it.

    Attributes:
        table_id: the same for all commits of a dimension.
        tables: path of each table, relative to the dimension, to what it holds.
        micro_batches: stream to the number of its newest micro-batch.
    """

    version: int
    table_id: str
    merge_id: str
    tables: Mapping[str, StoredTable] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)
    micro_batches: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of_json(cls, path: str, found: Mapping[str, object]) -> Commit:
        """Raises: TargetError for a layout of a later version of this package."""
        values = dict(found)
        layout = values.pop("layout")
        values.pop("committed_at")
        if layout != LAYOUT:
            remedy = "install a newer version of dbt-healing-tables"
            raise TargetError.one("the target", path, f"files of layout {LAYOUT}", f"layout {layout}", remedy)
        tables: Mapping[str, dict[str, object]] = values.pop("tables")  # type: ignore[assignment]
        stored = {name: StoredTable(**{**table, "folders": tuple(table["folders"])}) for name, table in tables.items()}  # type: ignore[arg-type]
        return cls(tables=stored, **values)  # type: ignore[arg-type]

    def to_json(self) -> dict[str, object]:
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        return {"layout": LAYOUT, "committed_at": now, **asdict(self)}


@dataclass(frozen=True)
class Commits:
    """The commits in the folder of a dimension."""

    store: ObjectStore

    @property
    def path(self) -> str:
        return self.store.path

    def versions(self) -> list[int]:
        """The numbers of the commits that are kept, oldest first."""
        return numbers(self.store.names(COMMITS))

    def newest(self) -> Commit | None:
        """None if there is no commit. Raises: TargetError if it is always deleted before it can be read."""
        for _ in range(10):  # a writer that is far ahead may delete the commit between the two calls
            kept = self.versions()
            found = self.read(kept[-1]) if kept else None
            if found is not None or not kept:
                return found
        raise TargetError.one("the target", self.path, "commits that stay for an hour", "none", "read it again")

    def read(self, version: int) -> Commit | None:
        """None if this commit is not kept."""
        found = self.store.get(commit_file(version))
        return None if found is None else Commit.of_json(self.path, found)

    def kept(self, version: int) -> Commit:
        """Raises: ArgumentError if this commit is not kept."""
        found = self.read(version)
        if found is None:
            wanted = f"a version that is kept: {', '.join(map(str, self.versions())) or 'none'}"
            raise ArgumentError.one(
                "the call",
                "version",
                wanted,
                str(version),
                "read one that is kept; more are kept with a larger keep_versions",
            )
        return found

    def add(self, commit: Commit) -> None:
        """Create the commit. Raises: StalePlan if another writer has committed first; TargetError."""
        name, content = commit_file(commit.version), commit.to_json()
        try:
            is_mine = self.store.create(name, content)
        except TargetError:
            if not self.is_there(commit):
                raise
            is_mine = True
        if not is_mine and not self.is_there(commit):
            raise StalePlan
        if commit.version == 1 and is_s3(self.path) and self.store.create(name, content):
            log.warning(
                "%s: this store overwrites existing files instead of refusing to create them; "
                "run only one merge at a time",
                self.path,
            )
        if self.versions()[-1] > commit.version:
            # the number was used before, so long ago that its file is deleted
            self.store.delete([name])
            raise StalePlan

    def is_there(self, commit: Commit) -> bool:
        """Whether the file of a commit is this one: a response of the store may have been lost or repeated."""
        found = self.read(commit.version)
        return found is not None and found.merge_id == commit.merge_id

    def amend(self, change: Callable[[Commit], Commit]) -> None:
        """Add a commit that writes no rows.

        Args: change: of the newest commit; returns the same commit if there is no need.
        Raises: TargetError if there is no commit.
        """

        def attempt() -> None:
            newest = self.newest()
            if newest is None:
                raise TargetError.one("the target", self.path, "a dimension", "no commit", "merge into it first")
            changed = change(newest)
            if changed != newest:
                self.add(replace(changed, version=newest.version + 1, merge_id=str(uuid.uuid4())))

        retrying(self.path, attempt)

    def expire(self, keep_versions: int) -> None:
        """Delete states that are neither among the last ones nor recent, and what killed merges have left."""
        changed = {name.rpartition("/")[2]: moment for name, moment in self.store.files(COMMITS).items()}
        versions = numbers(changed)
        moments = [changed[posixpath.basename(commit_file(version))] for version in versions]
        now = moments[-1]
        # a state was read until the next one was committed
        old = [
            version
            for version, replaced in zip(versions, moments[1:], strict=False)
            if version <= versions[-1] - keep_versions and replaced < now - KEPT
        ]
        self.store.delete(commit_file(version) for version in old)
        used: set[str] = set()
        for version in versions[len(old) :]:
            commit = self.read(version)
            if commit is None:
                return  # another writer is deleting commits, too
            used |= {folder for table in commit.tables.values() for folder in table.folders}
        for folder in sorted(set(self.data_folders()) - used):
            files = self.store.files(folder)
            # a merge that is based on the newest commit has written after it
            if all(moment < now - KEPT for moment in files.values()):
                self.store.delete(files)

    def data_folders(self) -> list[str]:
        store = self.store
        return [f"{DATA}/{kind}/{name}" for kind in store.folders(DATA) for name in store.folders(f"{DATA}/{kind}")]


def commit_file(version: int) -> str:
    return f"{COMMITS}/{version:020}.json"


def numbers(names: Iterable[str]) -> list[int]:
    """The numbers of commits, from the names of their files, sorted."""
    return sorted(int(name.split(".")[0]) for name in names if name.endswith(".json"))
