"""Copies a Hive table that cannot be switched to new files by one call to an external one, which merges can write."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import SparkSession

from healing_tables.errors import ArgumentError, Mistake, TargetError, counted
from healing_tables.sql.identifiers import find, in_quotes, quoted
from healing_tables.sql.types import DECLARED, types_of
from healing_tables.targets.buckets import bucket_of, is_in_buckets
from healing_tables.targets.hive import HiveTarget, short
from healing_tables.targets.hive_commits import Commit
from healing_tables.targets.hive_metastore import files_in
from healing_tables.targets.naming import name_beside

# Set by the metastore itself
OWN_PROPERTIES = ("transient_lastDdlTime", "numFiles", "numRows", "rawDataSize", "totalSize", "bucketing_version")


def convert_table(
    spark: SparkSession,
    name: str,
    *,
    key_buckets: int | None = None,
    key_columns: Sequence[str] | str = (),
    location: str | None = None,
) -> str:
    """Copy a Hive table to an external one of the same name, in the same format, and keep the old one.

    For tables that `merge` refuses: managed ones, and those whose partitions each have a location. The new table has
    the columns, the comments and the properties of the old one, and its partition columns unless it gets buckets; its
    partitions are read from the names of its folders. Grants are not copied. Between two renames, the table does not
    exist for readers.

    Args:
        key_buckets: store the rows in that many folders by a hash of their key, as ``HiveTarget(key_buckets=...)``.
        key_columns: the key; required with ``key_buckets``.
        location: the folder for the data of the table. Default: next to the files of the old one.
    Returns: the new name of the old table; drop it once you have checked the new one.
    Raises: ArgumentError, TargetError: the table is unchanged.
    """
    target = HiveTarget(name, key_buckets=key_buckets, location=location)
    described = target.described(spark)
    if described is None:
        mistake = Mistake(name, "a table in parquet or ORC", "no such table", "correct the name")
        raise TargetError(counted("the table", [mistake]), [mistake])
    rows = target.rows(spark)
    keys = [key_columns] if isinstance(key_columns, str) else list(key_columns)
    found = [find(key, rows.columns) for key in keys]
    if (key_buckets is None) != (not keys) or None in found:
        wanted = "columns of the table, together with key_buckets" if key_buckets else "none without key_buckets"
        mistake = Mistake(
            "key_columns", wanted, ", ".join(keys) or "none", "give both key_columns and key_buckets, or neither"
        )
        raise ArgumentError(counted("the call", [mistake]), [mistake])

    merge_id = str(uuid.uuid4())
    partitions = () if key_buckets else described.partitions
    target = replace(target, file_format=described.file_format, partition_by=partitions, comment=described.comment)
    folder = target.new_folder(spark, short(merge_id))
    before = files_in(spark, [described.location])
    if key_buckets is None:
        place = f"{folder}/rows"
        target.write(rows, place, partitions)
    else:
        place = target.write_buckets(rows, bucket_of(list(map(quoted, keys)), key_buckets), f"{folder}/rows", {})
    if files_in(spark, [described.location]) != before:
        mistake = Mistake(name, "no other writer while it is copied", "other files than before", "convert it again")
        raise TargetError(counted("the table", [mistake]), [mistake])

    columns = {}
    for field, kind in zip(rows.schema, types_of(rows.schema).values(), strict=True):
        comment = field.metadata.get("comment")
        columns[field.name] = field.metadata.get(DECLARED, kind) + (f" comment {in_quotes(comment)}" if comment else "")
    given = {key: value for key, value in described.properties.items() if key not in OWN_PROPERTIES}
    first = f"{folder}/empty" if is_in_buckets(place) else place
    statement = target.new_table_statement(columns, first, given)
    kept = name_beside(name, f"__before_{dt.datetime.now(dt.timezone.utc):%Y%m%d%H%M%S}")
    with target.session(spark):
        newest = target.commits.newest(spark)
    version = 1 if newest is None else newest.version + 1
    commit = replace(Commit.unchanged(version, merge_id, place, key_buckets, {}), create_table=statement)
    spark.sql(f"alter table {name} rename to {kept}")
    try:
        with target.session(spark):
            target.commits.add(spark, commit, f"{folder}/commit")
            target.finish(spark, commit)
    except BaseException:
        if target.described(spark) is None:
            spark.sql(f"alter table {kept} rename to {name}")
        raise
    return kept
