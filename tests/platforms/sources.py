"""A process with the settings of docs/sources.md: jars have to be there when the JVM starts. See test_sources.py.

    python sources.py HOME

Builds the models of the page, changes the sources, builds again, and writes what it has seen to HOME/seen.json.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from lab import Lab
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from sessions import session_settings, without_codegen
from shop import new_day, say_password
from sources_page import files_of_the_page, page_settings

from healing_tables import DeltaTarget, DimensionSpec, cli, merge

QUERIES = {
    "dim_user": "select user_id, `Full Name`, cast(balance as string), extra, ref, cast(local_at as string), address, "
    "unix_micros(valid_from) from warehouse.dim_user order by user_id, valid_from",
    "builds": "select mode, status from warehouse.healing_log where dimension = 'dim_user' order by started_at",
    "accounts": "select account_id, `Full Name`, cast(balance as string), is_deleted from warehouse.account_changes "
    "order by captured_at, account_id",
    "dim_account": "select account_id, `Full Name`, is_current from warehouse.dim_account order by 1, valid_from",
    "dim_phone": "select user_id, phone, is_current from warehouse.dim_phone order by 1",
    # the hour that comes twice
    "autumn": "select user_id from pg.shop.users where loaded_at > timestamp '2024-11-03 05:15:00Z' "
    "and loaded_at < timestamp '2024-11-03 06:15:00Z'",
}
PLACES = [
    "select user_id from secret.shop.users",
    "select * from wrong.shop.users",
    "select * from secret.shop.nothing",
    "describe table extended secret.shop.users",
    "show create table secret.shop.users",
    "explain extended select * from secret.shop.users",
    "set",
]


def start(home: Path, settings: dict[str, Any]) -> SparkSession:
    ours = session_settings(home)
    for name in ("spark.jars.packages", "spark.jars.excludes"):
        del ours[name]
    java = "spark.driver.extraJavaOptions"
    settings = settings | ours | {java: f"{settings[java]} {ours[java]}"}
    settings["spark.sql.session.timeZone"] = "Asia/Tokyo"
    # a password as a setting, which the page does not advise: `wrong` is another one
    for name, password in (("secret", os.environ["SHOP_PASSWORD"]), ("wrong", os.environ["SHOP_PASSWORD"][:-1])):
        catalog = f"spark.sql.catalog.{name}"
        settings |= {key.replace(".catalog.pg", f".catalog.{name}"): settings[key] for key in settings if ".pg" in key}
        settings[f"{catalog}.password"] = password
    return SparkSession.builder.master("local[2]").config(map=settings).enableHiveSupport().getOrCreate()


def rows(spark: SparkSession, query: str) -> list[list[Any]]:
    return [list(row) for row in spark.sql(query).collect()]


def answer(spark: SparkSession, query: str) -> str:
    """The rows as text, or the error with the stack trace of the JVM."""
    try:
        return str(rows(spark, query))
    except PySparkException as error:
        return f"{error}\n{getattr(error, '_stackTrace', '')}"


def build_twice(spark: SparkSession, home: Path, files: dict[str, str], lake: str) -> dict[str, Any]:
    """The models of the page, before and after new rows; then with a wrong password."""
    seen = dict[str, Any]()
    address = "{} as user_id, '{}' as address, timestamp '{}' as changed_at, timestamp '{}' as loaded_at"
    first = spark.sql("select " + address.format(1, "Oslo", "2024-02-01 00:00:00.000001Z", "2024-03-01 00:00:00Z"))
    first.write.parquet(f"{lake}/addresses")
    phones = [(1, '+47 "1"\nnext line'), (2, None)]
    spark.createDataFrame(phones, "user_id int, phone string").coalesce(1).write.csv(
        f"{lake}/phones", header=True, escape='"'
    )

    (home / "lab").mkdir()
    lab = Lab(spark, home / "lab", schema="warehouse")
    for path, text in files.items():
        if path != "profiles.yml":
            lab.write(path, text.replace("my_project", "lab"))
    log = []
    seen["first"] = lab.dbt("build")
    log += lab.log
    seen["types"] = dict(spark.table("pg.shop.users").dtypes)
    new_day()
    second = spark.sql("select " + address.format(2, "Rome", "2024-11-03 05:45:00Z", "2024-11-03 05:45:00Z"))
    second.write.mode("append").parquet(f"{lake}/addresses")
    seen["second"] = lab.dbt("build")
    log += lab.log
    seen |= {name: rows(spark, query) for name, query in QUERIES.items()}
    say_password("wrong")
    seen["wrong"] = lab.dbt("run", "--select", "dim_account", "dim_user")
    log += lab.log
    say_password(os.environ["SHOP_PASSWORD"])
    seen["log"] = "\n".join(log)
    return seen


def look_at_places(spark: SparkSession) -> dict[str, Any]:
    return {"places": {place: answer(spark, place) for place in PLACES}}


def write_to_s3(spark: SparkSession, home: Path, lake: str) -> dict[str, Any]:
    seen = dict[str, Any]()
    target, spec = DeltaTarget(f"{lake}/dim_account"), DimensionSpec(key_columns="account_id", attributes=["name"])
    for day, name in enumerate(("A", "B"), start=1):
        merge(spark.sql(f"select 1 as account_id, '{name}' as name"), target, spec, at=f"2024-01-0{day}")
    stored = spark.read.format("delta").load(f"{lake}/dim_account").orderBy("valid_from")
    seen["on_s3"] = [[row.name, str(row.valid_from), row.is_current] for row in stored.collect()]
    (home / "spec.yml").write_text("KEYS: [user_id]\n")
    call = [
        "merge",
        "--spec",
        str(home / "spec.yml"),
        "--batch",
        f"{lake}/addresses",
        "--target",
        "warehouse.by_command",
    ]
    seen["by_command"] = cli.main(call)
    seen["addresses"] = rows(spark, "select address from warehouse.by_command order by user_id")
    return seen


def main(home: Path) -> None:
    files = files_of_the_page()
    spark = start(home, page_settings(files))
    with without_codegen(spark):
        seen = build_twice(spark, home, files, os.environ["LAKE"]) | look_at_places(spark)
        seen |= write_to_s3(spark, home, os.environ["LAKE"])
    (home / "seen.json").write_text(json.dumps(seen))
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
