"""Tables in S3, as parquet files.

The environment has the endpoint and the keys: AWS_ENDPOINT_URL, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION.
"""

from __future__ import annotations

import datetime as dt
import os

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

BUCKET = "retail"
FOLDER = "%Y%m%dT%H%M"


def store() -> fs.S3FileSystem:
    """The store of AWS_ENDPOINT_URL, or Amazon's if there is none; it may create the bucket."""
    return fs.S3FileSystem(endpoint_override=os.environ.get("AWS_ENDPOINT_URL"), allow_bucket_creation=True)


def folder_of(load: dt.datetime) -> str:
    """The name of a load's folder. Raises: ValueError for a moment without a zone."""
    if load.tzinfo is None:
        raise ValueError(f"--load: wanted a moment with a zone; got {load}; write {load.isoformat()}+00:00")
    return load.astimezone(dt.timezone.utc).strftime(FOLDER)


def first_load() -> dt.datetime:
    """The moment of the oldest copy. Raises: FileNotFoundError if there is none."""
    folders = store().get_file_info(fs.FileSelector(f"{BUCKET}/raw"))
    oldest = min(folder.base_name for folder in folders)
    return dt.datetime.strptime(oldest, FOLDER).replace(tzinfo=dt.timezone.utc)


def read(path: str) -> pa.Table:
    return pq.read_table(path, filesystem=store())


def write(table: pa.Table, path: str) -> None:
    """Replaces the file; readers see the old one or the new one."""
    pq.write_table(table, path, filesystem=store())
