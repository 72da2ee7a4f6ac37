"""`healing-tables merge`: a batch merged from the command line, without dbt and without a program."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, parse_qs, urlencode, urlsplit

from pyspark.sql import DataFrame, SparkSession

from healing_tables.definition.spec import DimensionSpec
from healing_tables.errors import ArgumentError, HealingTablesError, SpecError
from healing_tables.merge.dry_run import DryRun, dry_run
from healing_tables.merge.merge import merge
from healing_tables.targets.files import FilesTarget
from healing_tables.targets.naming import is_path, name_parts
from healing_tables.targets.postgres import PostgresTarget

DONE, REFUSED, WRONG_CALL = 0, 1, 2
# The Delta that belongs to a Spark, for a session that this command starts
DELTA = {
    "3.5": "delta-spark_2.12:3.3.2",
    "4.0": "delta-spark_2.13:4.0.0",
    "4.1": "delta-spark_2.13:4.1.0",
    "4.2": "delta-spark_4.2_2.13:4.4.0",
}
DELTA_SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
FORMATS = {".csv": "csv", ".json": "json", ".orc": "orc", ".parquet": "parquet"}
EPILOG = """\
examples:
  healing-tables merge --spec buyer.yml --batch buyers.csv --target /data/dim_buyer --dry-run
  healing-tables merge --spec buyer.yml --batch staging.buyers --target sales.dim_buyer --at '2024-03-01 02:00'
  healing-tables merge --spec buyer.yml --batch s3a://lake/buyers.parquet \\
    --target 'postgresql://healer@db.example.com/shop?table=public.dim_buyer'
  healing-tables merge --spec buyer.yml --batch buyers.csv --target 's3a://lake/dim_buyer?file_format=parquet'

exit codes: 0 merged, or nothing to change; 1 refused, nothing was written unless the message says so; 2 a wrong call

The command uses the Spark of SPARK_REMOTE or of spark-defaults.conf (SPARK_CONF_DIR). If neither is set, it starts a
local Spark with Delta. Put secrets into the environment or into spark-defaults.conf: other users of this machine can
read the arguments of a command.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    options = parser().parse_args(arguments)
    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stderr)
    if options.verbose:
        logging.getLogger("healing_tables").setLevel(logging.INFO)
    try:
        spec = read_spec(options.spec)
        spark = session(options.conf)
        target = target_of(options.target)
        if isinstance(target, str):
            check_is_kept(spark, target)
        say(f"{options.target}: {'comparing with' if options.dry_run else 'merging'} {options.batch} ...")
        batch = read_batch(spark, options.batch, options.schema)
        if options.dry_run:
            show(dry_run(batch, target, spec, at=options.at))
        else:
            say(f"{options.target}: {merge(batch, target, spec, at=options.at)}")
    except (ArgumentError, SpecError) as error:
        print(error, file=sys.stderr)
        return WRONG_CALL
    except HealingTablesError as error:
        print(error, file=sys.stderr)
        return REFUSED
    return DONE


def parser() -> argparse.ArgumentParser:
    plain = argparse.RawDescriptionHelpFormatter
    whole = argparse.ArgumentParser(prog="healing-tables", description="Slowly changing dimensions on Spark.")
    commands = whole.add_subparsers(dest="command", required=True)
    text = "Merge a batch into a dimension, in one commit."
    command = commands.add_parser("merge", help=text, description=text, epilog=EPILOG, formatter_class=plain)
    command.add_argument("--spec", required=True, help="YAML file with the options of DimensionSpec")
    command.add_argument("--batch", required=True, help="a table, or a path: .parquet, .orc, .csv, .json, a folder")
    command.add_argument("--target", required=True, help="a table, a path, or postgresql://...")
    command.add_argument("--at", help="the moment of the batch, UTC unless it has an offset; default: now")
    command.add_argument("--schema", help="of a CSV or JSON batch: 'id int, name string'; default of CSV: all string")
    command.add_argument("--dry-run", action="store_true", help="show what would change; write nothing")
    command.add_argument(
        "--conf", action="append", default=[], metavar="NAME=VALUE", help="a setting of Spark, for the session"
    )
    command.add_argument("--verbose", action="store_true", help="also show the log of the merge")
    return whole


def read_spec(path: str) -> DimensionSpec:
    """Raises: ArgumentError if there is no such file; SpecError."""
    if not Path(path).is_file():
        raise ArgumentError.one("the call", "--spec", "a YAML file", f"{path}, which is not a file", "correct the path")
    return DimensionSpec.from_yaml(path)


def target_of(text: str) -> FilesTarget | PostgresTarget | str:
    """What ``--target`` names; a table, or a path, as it is.

    ``postgresql://user@host/database?table=schema.table``, and ``s3a://bucket/folder?file_format=csv`` for plain files.
    """
    url = urlsplit(text)
    if url.scheme in ("postgresql", "postgres"):
        return postgres_target(url)
    if is_path(text) and url.query.startswith("file_format="):
        return FilesTarget(text[: -len(url.query) - 1], url.query.removeprefix("file_format="))
    return text


def postgres_target(url: SplitResult) -> PostgresTarget:
    """Raises: ArgumentError for a URL with a password, or without a table."""
    if url.password is not None:
        raise ArgumentError.one(
            "the call",
            "--target",
            "a URL without a password",
            "one with a password",
            "set PGPASSWORD, or use ~/.pgpass",
        )
    # urlunsplit would drop the slashes of a URL without a host, which the environment gives
    place = f"{url.scheme}://{url.netloc}{url.path}"
    given = parse_qs(url.query)
    if len(given.get("table", [])) != 1:
        raise ArgumentError.one(
            "the call", "--target", f"{place}?table=schema.table", "a URL without a table", "name the table"
        )
    (name,) = given.pop("table")
    return PostgresTarget(name, f"{place}?{urlencode(given, doseq=True)}" if given else place)


def session(settings: Sequence[str]) -> SparkSession:
    """The session of this command. Raises: ArgumentError for a setting that is none."""
    given = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals or not name.startswith("spark."):
            raise ArgumentError.one(
                "the call",
                "--conf",
                "NAME=VALUE, with a name that begins with spark.",
                setting,
                "write --conf spark.sql.shuffle.partitions=4",
            )
        given[name] = value
    active = SparkSession.getActiveSession()
    builder = SparkSession.builder.appName("healing-tables")
    is_remote = "SPARK_REMOTE" in os.environ or "spark.remote" in given
    if active is None and not is_remote and "SPARK_CONF_DIR" not in os.environ and "spark.jars" not in given:
        given = local_settings() | given
    for name, value in given.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    if active is None and not is_remote:
        spark.sparkContext.setLogLevel("ERROR")
    return spark


def local_settings() -> dict[str, str]:
    """The settings of a session on this machine, with Delta if the package has a jar for this version of Spark."""
    import pyspark

    found = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "8",
        "spark.databricks.delta.snapshotPartitions": "2",
    }
    delta = DELTA.get(".".join(pyspark.__version__.split(".")[:2]))
    return found if delta is None else {**found, **DELTA_SETTINGS, "spark.jars.packages": f"io.delta:{delta}"}


def check_is_kept(spark: SparkSession, target: str) -> None:
    """Raises: ArgumentError for a table in a catalog that ends with the session."""
    if is_path(target) or len(name_parts(target)) > 2 or not hasattr(spark, "_jsc"):
        return
    is_own_catalog = spark.catalog.currentCatalog() == "spark_catalog"
    if is_own_catalog and spark.conf.get("spark.sql.catalogImplementation") == "in-memory":
        remedy = "name the path of a Delta table, or a session with a metastore: SPARK_REMOTE, spark-defaults.conf, "
        remedy += "or --conf spark.sql.catalogImplementation=hive"
        raise ArgumentError.one(
            "the call",
            "--target",
            "a table that is kept after the session",
            f"{target}, in a catalog that ends with this command",
            remedy,
        )


def read_batch(spark: SparkSession, batch: str, schema: str | None) -> DataFrame:
    """A table, or files. Raises: ArgumentError if Spark cannot read it."""
    ending = Path(batch.rstrip("/")).suffix.lower()
    reader: Any = spark.read if schema is None else spark.read.schema(schema)
    try:
        if ending in FORMATS:
            options = {"header": "true"} if ending == ".csv" else {}
            return reader.format(FORMATS[ending]).options(**options).load(batch)  # type: ignore[no-any-return]
        if "/" in batch:
            return reader.parquet(batch)  # type: ignore[no-any-return]
        return spark.table(batch)
    except Exception as error:  # each kind of source has errors of its own
        first = str(error).strip().splitlines()[0]
        raise ArgumentError.one(
            "the call",
            "--batch",
            "a table, or a file that Spark can read",
            f"{batch}: {first}",
            "name a table as schema.table, or a file by its path",
        ) from error


def show(found: DryRun) -> None:
    say(str(found))
    for line in found.lines:
        print(line)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
