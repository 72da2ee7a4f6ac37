"""Keys that were erased stay out of a merge. The macros have the same rules in macros/spec/_erased_keys.sql."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from healing_tables.definition.layout import Layout
from healing_tables.definition.spec import DimensionSpec
from healing_tables.errors import Mistake, TargetError, counted
from healing_tables.plan.batch import key_values, value
from healing_tables.sql.hashing import sha256
from healing_tables.sql.identifiers import find, quoted
from healing_tables.sql.instants import as_micros, now
from healing_tables.targets.table import DimensionTable

logger = logging.getLogger(__name__)

SECRET = "HEALING_TABLES_SECRET"
SHORTEST = 16  # characters
HASH, AFTER = "healing_tables_hash", "healing_tables_after"


class Secret(NamedTuple):
    """Two keys for hashes and a name, derived from the secret as the macro `_erasure_secret` derives them."""

    inner: str
    outer: str
    name: str

    @classmethod
    def of(cls, text: str) -> Secret:
        derived = [hashlib.md5(f"healing_tables {use} {text}".encode()).hexdigest() for use in cls._fields]
        return cls(derived[0], derived[1], derived[2][:8])


def keyed_hash(secret: Secret, key_hash: str) -> str:
    """The keyed hash of a key, as SQL: nested as in HMAC. Args: key_hash: its hash, as SQL."""
    return f"sha2(concat('{secret.outer}', sha2(concat('{secret.inner}', {key_hash}), 256)), 256)"


def own_secret() -> Secret:
    """Of the environment. Raises: TargetError if it is not set, or too short to resist guessing."""
    text = os.environ.get(SECRET, "")
    if len(text) < SHORTEST:
        raise TargetError.one(
            "the environment",
            SECRET,
            f"at least {SHORTEST} characters",
            str(len(text)) if text else "none",
            "set it to a random text that you keep as long as the dimension: openssl rand -hex 32",
        )
    return Secret.of(text)


def erased_keys(
    table: DimensionTable[Any], key_columns: Sequence[str], spark: SparkSession
) -> tuple[DataFrame, Secret] | None:
    """``healing_tables_hash``, ``healing_tables_after`` (microseconds, NULL: no row is in again) of the keys that were
    erased from a dimension, and the secret; None if nothing was erased.

    Raises: TargetError without the secret of these keys, or if the dimension has other key columns.
    """
    stored = table.beside("__erased").read(spark)
    if stored is None:
        return None
    events = stored.selectExpr(
        "key_hash", "key_columns", "secret_hash", "event_at", "unix_micros(readmitted_after) as after"
    ).localCheckpoint()
    kinds = [tuple(row) for row in events.select("key_columns", "secret_hash").distinct().collect()]
    if not kinds:
        return None
    keys, text = [name.lower() for name in key_columns], os.environ.get(SECRET, "")
    names = ", ".join(sorted({name for _, name in kinds}))
    secret, name, mistakes = Secret.of(text), f"{table.name}__erased", []
    if len(text) < SHORTEST or names != secret.name:
        mistake = Mistake(
            f"the environment variable {SECRET}",
            f"the secret of the erased keys in {name}, whose name is {names}",
            "none" if not text else f"one whose name is {secret.name}",
            "set the secret with which these keys were erased",
        )
        mistakes.append(mistake)
    others = sorted({", ".join(json.loads(kind)) for kind, _ in kinds if [k.lower() for k in json.loads(kind)] != keys})
    if others:
        mistake = Mistake(
            name,
            f"keys of the columns {', '.join(keys)}",
            f"erased keys of the columns {'; '.join(others)}",
            "erase these keys again under the new columns, and delete their rows from this table",
        )
        mistakes.append(mistake)
    if mistakes:
        raise TargetError(counted("the erased keys", mistakes), mistakes)
    newest = events.groupBy(f.col("key_hash").alias(HASH)).agg(f.expr(f"max_by(after, event_at) as {AFTER}"))
    return newest, secret


def without_erased(
    batch: DataFrame, table: DimensionTable[Any], layout: Layout, spec: DimensionSpec, at: int | None
) -> DataFrame:
    """The rows of a batch whose keys were not erased. Says how many it leaves out.

    Args: at: the moment of the batch in microseconds, for rows without one of their own; None: now.
    Raises: as `erased_keys`.
    """
    moment = f"{now() if at is None else at}L"
    if spec.changed_at is not None and (column := find(spec.changed_at, batch.columns)):
        moment = as_micros(quoted(column), batch.schema[column].dataType.simpleString())
    keys = [(value(key), key.type) for key in layout.keys]
    found = join_erased(batch, table, layout, keys, moment)
    if found is None:
        return batch
    kept, left_out = found
    if number := left_out.count():
        rows = "row" if number == 1 else "rows"
        logger.info("%s: %s %s of the batch left out: their keys were erased", table.name, number, rows)
    return kept


def keys_not_erased(keys: DataFrame, table: DimensionTable[Any], layout: Layout) -> DataFrame:
    """``k1..n`` of keys that were not erased. Args: keys: ``k1..n``."""
    named = list(zip(key_values(layout), (key.type for key in layout.keys), strict=True))
    found = join_erased(keys, table, layout, named, "cast(null as bigint)")
    return keys if found is None else found[0]


def join_erased(
    rows: DataFrame, table: DimensionTable[Any], layout: Layout, keys: list[tuple[str, str]], moment: str
) -> tuple[DataFrame, DataFrame] | None:
    """Rows that are kept, and those that are left out; None if nothing was erased. Args: keys: (expression, type)."""
    erased = erased_keys(table, [key.name for key in layout.keys], rows.sparkSession)
    if erased is None:
        return None
    newest, secret = erased
    condition = f.expr(f"{keyed_hash(secret, sha256(keys))} = {HASH} and coalesce({moment} <= {AFTER}, true)")
    return rows.join(newest, condition, "left_anti"), rows.join(newest, condition, "left_semi")
