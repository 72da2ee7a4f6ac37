"""Paths of folders on S3 and on local disks, as users write them and as commits store them."""

from __future__ import annotations

import posixpath
import re

from healing_tables.errors import ArgumentError
from healing_tables.targets.naming import is_path

S3 = ("s3", "s3a")
# Spark reads these characters as a pattern
PATTERN = re.compile(r"[*?\[\]{}\\]")


def checked_path(path: object) -> str:
    """A path in one spelling: ``/folder`` or ``s3a://bucket/folder``. Raises: ArgumentError for any other text."""
    wanted = "a folder such as 's3a://bucket/dim_buyer' or '/data/dim_buyer'"

    def bad(got: str, remedy: str) -> ArgumentError:
        return ArgumentError.one("the target", "path", wanted, got, remedy)

    if not isinstance(path, str) or not path.strip():
        raise bad(repr(path), "give the path as a text")
    text = path.strip()
    if PATTERN.search(text):
        raise bad(repr(path), r"choose a name without * ? [ ] { } and \, which Spark reads as a pattern")
    scheme, separator, rest = text.partition("://")
    if separator and scheme in S3:
        bucket, _, folder = rest.partition("/")
        if "@" in bucket:
            remedy = "put them into the environment (AWS_ACCESS_KEY_ID, ...) or the settings of Spark"
            raise bad("a URL with access keys", remedy)
        if not bucket or not folder.strip("/"):
            raise bad(repr(path), "name a bucket and a folder in it")
        return f"s3a://{bucket}/{folder.strip('/')}"
    if text.startswith("/") or re.match("file:/", text):
        text = posixpath.normpath("/" + text.removeprefix("file:").strip("/"))
        if text == "/":
            raise bad(repr(path), "name a folder")
        return text
    if is_path(text):
        raise bad(repr(path), "on other stores use a DeltaTarget")
    raise bad(repr(path), "write the whole path of the folder; a table has a name: use a DeltaTarget or a HiveTarget")


def is_s3(path: str) -> bool:
    return path.startswith("s3a://")


def split(path: str) -> tuple[str, str]:
    """The bucket with its scheme, or nothing; and the path in it."""
    if not is_s3(path):
        return "", path
    bucket, _, rest = path.removeprefix("s3a://").partition("/")
    return f"s3a://{bucket}", f"/{rest}"


def relative(path: str, base: str) -> str:
    """A path as seen from a folder, so that both can be moved; unchanged if it is in another bucket."""
    (bucket, rest), (base_bucket, base_rest) = split(path), split(base)
    return posixpath.relpath(rest, base_rest) if bucket == base_bucket else path


def absolute(path: str, base: str) -> str:
    """The inverse of `relative`."""
    if is_path(path):
        return path
    bucket, rest = split(base)
    return bucket + posixpath.normpath(posixpath.join(rest, path))
