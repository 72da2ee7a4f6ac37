"""A folder on S3 or on a local disk, for files that are written once, by obstore.

Spark writes the rows. Commits are small files, which must be created only if they do not exist; Spark cannot do that.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

from pyspark.sql import SparkSession

from healing_tables.errors import TargetError
from healing_tables.targets.paths import is_s3, split

if TYPE_CHECKING:
    from obstore.store import LocalStore, S3Store

# Setting of Spark (spark.hadoop.fs.s3a.<name>) to what obstore calls it; AWS_* in the environment give the others
SETTINGS = {
    "access.key": "access_key_id",
    "secret.key": "secret_access_key",
    "session.token": "session_token",
    "endpoint": "endpoint",
    "endpoint.region": "region",
}
STYLE = ("path.style.access", "connection.ssl.enabled")
LONGEST_CALL = timedelta(seconds=20)


@dataclass(frozen=True)
class ObjectStore:
    """The files below one folder, by names relative to it."""

    path: str
    remote: S3Store | None = None

    @property
    def store(self) -> LocalStore | S3Store | None:
        """None if there is no such folder on the local disk."""
        from obstore.store import LocalStore

        if self.remote is not None:
            return self.remote
        return LocalStore(self.path) if os.path.isdir(self.path) else None

    def names(self, folder: str) -> list[str]:
        """The names of the files in a folder, sorted."""
        found = self.listed(folder)["objects"]
        return sorted(str(file["path"]).rpartition("/")[2] for file in found)

    def folders(self, folder: str) -> list[str]:
        """The names of the folders in a folder, sorted."""
        found = self.listed(folder)["common_prefixes"]
        return sorted(name.rstrip("/").rpartition("/")[2] for name in found)

    def listed(self, folder: str) -> Any:
        with named_errors(self.path):
            store = self.store
            return store.list_with_delimiter(folder or None) if store else {"objects": [], "common_prefixes": []}

    def files(self, folder: str) -> dict[str, datetime]:
        """The files in a folder and below, with the moment of their last change by the clock of the store."""
        with named_errors(self.path):
            chunks = list(self.store.list(folder or None)) if self.store else []
        return {str(file["path"]): file["last_modified"] for chunk in chunks for file in chunk}

    def get(self, name: str) -> Any:
        """The JSON in a file; None if there is no such file."""
        with named_errors(self.path):
            store = self.store
            try:
                return None if store is None else json.loads(bytes(store.get(name).bytes()))
            except FileNotFoundError:
                return None

    def create(self, name: str, content: Any) -> bool:
        """Write JSON to a new file. False if the file exists: of several writers, only one creates it."""
        from obstore.exceptions import AlreadyExistsError
        from obstore.store import LocalStore

        with named_errors(self.path):
            try:
                (self.store or LocalStore(self.path, mkdir=True)).put(name, text_of(content), mode="create")
            except AlreadyExistsError:
                return False
        return True

    def replace(self, name: str, content: Any) -> None:
        """Replace the JSON in an existing file. Readers see the old content or the new content."""
        with named_errors(self.path):
            if self.store:
                self.store.put(name, text_of(content))

    def delete(self, names: Iterable[str]) -> None:
        """Delete files; it is no error if a file does not exist."""
        with named_errors(self.path):
            store = self.store
            for name in names:
                with suppress(FileNotFoundError):
                    if store:
                        store.delete(name)


def text_of(content: Any) -> bytes:
    return json.dumps(content, indent=1, ensure_ascii=False).encode()


def open_store(spark: SparkSession, path: str) -> ObjectStore:
    """The store of a path, as `checked_path` gives it.

    On S3, access follows the settings of the session for ``s3a``, then the environment (AWS_ACCESS_KEY_ID, ...).
    Raises: TargetError without obstore.
    """
    try:
        from obstore.store import S3Store
    except ImportError as error:
        remedy = "pip install obstore"
        raise TargetError.one("the target", path, "obstore", "it is not installed", remedy) from error
    if not is_s3(path):
        return ObjectStore(path)
    root, folder = split(path)
    bucket = root.removeprefix("s3a://")
    given = {name: s3a_setting(spark, bucket, name) for name in (*SETTINGS, *STYLE)}
    settings: dict[str, Any] = {key: given[name] for name, key in SETTINGS.items() if given[name]}
    if given["path.style.access"] is not None:
        settings["virtual_hosted_style_request"] = given["path.style.access"].lower() != "true"
    endpoint = str(settings.get("endpoint") or os.environ.get("AWS_ENDPOINT_URL", ""))
    if endpoint and "://" not in endpoint:
        is_plain = (given["connection.ssl.enabled"] or "true").lower() == "false"
        settings["endpoint"] = endpoint = f"{'http' if is_plain else 'https'}://{endpoint}"
    with named_errors(path):
        store = S3Store(
            bucket,
            prefix=folder.strip("/"),
            config=cast(Any, settings),
            client_options={"allow_http": endpoint.startswith("http://")},
            retry_config={"max_retries": 5, "retry_timeout": LONGEST_CALL},
        )
    return ObjectStore(path, store)


def s3a_setting(spark: SparkSession, bucket: str, name: str) -> str | None:
    """A setting of the session for s3a. A setting for the bucket takes precedence."""
    for prefix_ in (f"fs.s3a.bucket.{bucket}.", "fs.s3a."):
        for key in (f"spark.hadoop.{prefix_}{name}", f"{prefix_}{name}"):
            value = spark.conf.get(key, None)
            if value is not None:
                return value
    return None


@contextmanager
def named_errors(path: str) -> Iterator[None]:
    """Raises: TargetError if the store refuses a call."""
    from obstore.exceptions import BaseError

    try:
        yield
    except (BaseError, OSError, ValueError) as error:  # ValueError: a file that is no JSON
        first = str(error).strip().splitlines()[0]
        remedy = "check the path, and the access keys in the settings of Spark or in the environment"
        raise TargetError.one("the target", path, "a store that can be read and written", first, remedy) from error
