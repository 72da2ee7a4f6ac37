"""Key buckets: the rows of a table in one folder per hash of their key, and one location for all of these folders.

The location is a pattern, ``root/{a/rows/ht_b=0,b/rows/ht_b=1}``, which Spark and Hive resolve when they list the files
of the table. So one `alter table ... set location` replaces some of the folders with new ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

MOST_BUCKETS = 64  # the location of the table names their folders, and has at most 4,000 characters


def bucket_of(keys: Sequence[str], buckets: int) -> str:
    """The number of the bucket of a key, as SQL. Args: keys: its columns."""
    return f"cast(pmod(xxhash64({', '.join(keys)}), {buckets}) as int)"


def is_in_buckets(location: str) -> bool:
    return location.endswith("}")


def folders_of(location: str) -> list[str]:
    """The folders that a location names: one, or one per bucket (``root/{a/ht_b=0,b/ht_b=1}``)."""
    match = re.fullmatch(r"(.*/)\{([^{}]*)\}", location)
    return [location] if match is None else [match[1] + part for part in match[2].split(",")]


def bucket_folders(location: str) -> dict[int, str]:
    """Bucket to its folder."""
    return {int(folder.rpartition("=")[2]): folder for folder in folders_of(location)}


def location_of(root: str, folders: Iterable[str]) -> str:
    """The inverse of `folders_of`. Args: root: ends with a slash, and all folders begin with it."""
    return f"{root}{{{','.join(folder.removeprefix(root) for folder in folders)}}}"
