"""How long the select of a dimension takes, as a ratio to a fair floor, and beside the same select in DuckDB.

    python benchmarks/rebuild.py --rows 5000000 --sources 3 --attributes 10 --repeat 3

select      the select that dimension() writes, to parquet
sources     read the sources, shuffle them by key, sort them, write nothing
write       read the finished dimension, hash its rows, write them to parquet
floor       sources and write together: what any engine has to do that shuffles
DuckDB      its own SQL, written by hand, from the same files to parquet (`pip install duckdb`)
range join  slices from the union of all change points, each source joined by key and period (the usual way)

All runs share one process; each figure is the median of ``--repeat`` runs, taken in turns.
"""

from __future__ import annotations

import argparse
import platform
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "shared"))
RULES = ("first_non_null", "first_present", "most_recent_row", "most_recent_value")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=1_000_000, help="change rows over all sources")
    parser.add_argument("--sources", type=int, default=3)
    parser.add_argument("--attributes", type=int, default=10)
    parser.add_argument("--changes-per-key", type=int, default=20)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--rules", choices=["one", "all"], default="one", help="ownership rules to use")
    parser.add_argument("--range-join", action="store_true", help="also run the slow comparison")
    parser.add_argument("--memory", default="10g", help="heap of the one JVM")
    parser.add_argument("--show-plan", action="store_true")
    options = parser.parse_args()
    in_temporary_folder(run, options)


def in_temporary_folder(run: Callable[[argparse.Namespace, Path], None], options: argparse.Namespace) -> None:
    """Run a benchmark in a folder that is removed afterwards."""
    home = Path(tempfile.mkdtemp(prefix="healing_tables_bench_"))
    try:
        run(options, home)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def run(options: argparse.Namespace, home: Path) -> None:
    from lab import Lab

    spark = session(home, options.memory)
    lab = Lab(spark, home, schema="bench")
    names = [f"s{i}" for i in range(1, options.sources + 1)]
    for number, name in enumerate(names):
        make_source(spark, options, number).write.saveAsTable(f"bench.{name}", format="parquet")
    sql = compiled(lab, options, names)
    if options.show_plan:
        spark.sql("explain formatted " + sql).show(truncate=False)
    built = home / "dimension"
    runs: dict[str, Callable[[], object]] = {
        "select": lambda: spark.sql(sql).write.mode("overwrite").parquet(str(built)),
        "sources": lambda: shuffled(spark, names).write.format("noop").mode("overwrite").save(),
        "write": lambda: (
            hashed(spark.read.parquet(str(built)).drop("key_hash", "row_hash"), options)
            .write.mode("overwrite")
            .parquet(str(home / "written"))
        ),
    }
    if options.rules == "one" and find_spec("duckdb"):
        runs["DuckDB"] = lambda: in_duckdb(home, options, names)
    if options.range_join:
        runs["range join"] = lambda: (
            range_join(spark, options, names).write.mode("overwrite").parquet(str(home / "joined"))
        )
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(options.repeat + 1):
        for name, work in runs.items():
            started = time.perf_counter()
            work()
            if turn:  # the first is to warm up: JIT, file cache, generated code
                seconds[name].append(time.perf_counter() - started)
    if "DuckDB" in runs:
        assert summary(spark, built) == summary(spark, home / "duckdb.parquet"), "DuckDB made other rows"
    report(options, spark, built, {name: statistics.median(values) for name, values in seconds.items()})
    spark.stop()


def session(home: Path, memory: str) -> SparkSession:
    return (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.memory", memory)
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.warehouse.dir", str(home / "warehouse"))
        .config("spark.sql.catalogImplementation", "in-memory")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "16")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )


def columns_of(options: argparse.Namespace, number: int) -> list[str]:
    """The attributes spread over the sources in turn; the first attribute is in every source."""
    return ["a0"] + [f"a{i}" for i in range(1, options.attributes) if i % options.sources == number]


def make_source(spark: SparkSession, options: argparse.Namespace, number: int) -> DataFrame:
    rows = options.rows // options.sources
    keys = max(options.rows // options.changes_per_key, 1)
    frame = spark.range(0, rows, numPartitions=8).select(
        f.pmod(f.xxhash64("id", f.lit(number)), f.lit(keys)).alias("customer_id"),
        f.timestamp_micros(
            f.lit(1_577_836_800_000_000)
            + f.pmod(f.xxhash64("id", f.lit(number + 100)), f.lit(94_608_000)) * 1_000_000
            + f.col("id") % 1_000_000
        ).alias("updated_at"),
        *[
            f.concat(
                f.lit(column + "-"),
                f.pmod(f.xxhash64("id", f.lit(column)), f.lit(500)).cast("string"),
            ).alias(column)
            for column in columns_of(options, number)
        ],
    )
    return frame


def compiled(lab: object, options: argparse.Namespace, names: list[str]) -> str:
    from lab import Lab

    assert isinstance(lab, Lab)
    sources = {name: {"changed_at": "updated_at"} for name in names}
    listed = ", ".join(
        f"'{name}': {{'relation': api.Relation.create(schema='bench', identifier='{name}'), 'changed_at': "
        f"'updated_at'}}"
        for name in sources
    )
    attributes: dict[str, dict[str, object]] = {}
    rules = RULES if options.rules == "all" else RULES[:1]
    for number, name in enumerate(names):
        for position, column in enumerate(columns_of(options, number)):
            if column not in attributes:
                attributes[column] = {
                    "from": names if column == "a0" else [name],
                    "rule": rules[position % len(rules)] if column != "a0" else rules[-1],
                }
    lab.model(
        "dim_bench",
        f"{{{{ healing_tables.dimension(sources={{{listed}}}, key_columns=['customer_id'], attributes={attributes!r}) "
        f"}}}}",
    )
    lab.dbt("compile")
    return next((lab.home / "target" / "compiled").rglob("dim_bench.sql")).read_text()


def shuffled(spark: SparkSession, names: list[str]) -> DataFrame:
    frames = [spark.table(f"bench.{name}") for name in names]
    union = frames[0]
    for frame in frames[1:]:
        union = union.unionByName(frame, allowMissingColumns=True)
    return in_order(union, "updated_at")


def in_order(frame: DataFrame, moment: str) -> DataFrame:
    return frame.repartition("customer_id").sortWithinPartitions("customer_id", moment)


def hashed(rows: DataFrame, options: argparse.Namespace) -> DataFrame:
    """The hashes of docs/concepts.md over the attributes of the benchmark, which are all text."""
    values = []
    for name in sorted(f"a{number}" for number in range(options.attributes)):
        escaped = name
        for mark in ("\\\\", "|", "^"):
            escaped = f"replace({escaped}, '{mark}', '\\\\{mark}')"
        values.append(f"coalesce({escaped}, '^^NULL^^')")
    return rows.withColumns(
        {
            "key_hash": f.expr("sha2(cast(customer_id as string), 256)"),
            "row_hash": f.expr(f"sha2(concat_ws('|', {', '.join(values)}), 256)"),
        }
    )


def in_duckdb(home: Path, options: argparse.Namespace, names: list[str]) -> None:
    """The same rows: as-of windows over the union of the sources, hashes, one parquet file."""
    import duckdb  # type: ignore[import-not-found,unused-ignore]

    columns = {name: columns_of(options, number) for number, name in enumerate(names)}
    states = {name: ", ".join(f"{column} := {column}" for column in columns[name]) for name in names}
    events = " union all by name ".join(
        f"select customer_id, updated_at, struct_pack({states[name]}) as {name} "
        f"from read_parquet('{home}/warehouse/bench.db/{name}/*.parquet')"
        for name in names
    )
    attributes = sorted({column for found in columns.values() for column in found})
    values = ", ".join(
        f"coalesce({', '.join(f'{name}.{column}' for name in names if column in columns[name])}) as {column}"
        for column in attributes
    )
    texts = []
    for column in attributes:
        escaped = f"replace(replace(replace({column}, '\\', '\\\\'), '|', '\\|'), '^', '\\^')"
        texts.append(f"coalesce({escaped}, '^^NULL^^')")
    listed = ", ".join(attributes)
    query = f"""
with events as ({events}),
filled as (
    select customer_id, updated_at, lead(updated_at) over in_order as next_at,
        {", ".join(f"last_value({name} ignore nulls) over until_now as {name}" for name in names)}
    from events
    window in_order as (partition by customer_id order by updated_at),
        until_now as (partition by customer_id order by updated_at rows between unbounded preceding and current row)
),
slices as (
    select customer_id, updated_at as valid_from, {values} from filled where updated_at is distinct from next_at
),
compared as (
    select *, row_number() over in_order as slice, count(*) over (partition by customer_id) as slices,
        lag(row({listed})) over in_order is distinct from row({listed}) as begins
    from slices
    window in_order as (partition by customer_id order by valid_from)
)
select customer_id, {listed}, valid_from,
    coalesce(lead(valid_from) over in_order, timestamp '9999-12-31') as valid_to,
    lead(valid_from) over in_order is null as is_current,
    cast(row_number() over in_order as int) as version,
    coalesce(lead(slice) over in_order, slices + 1) - slice as compressed_row_count,
    sha256(cast(customer_id as varchar)) as key_hash,
    sha256(concat_ws('|', {", ".join(texts)})) as row_hash
from compared where begins
window in_order as (partition by customer_id order by valid_from)
"""
    with duckdb.connect() as connection:
        connection.execute("set threads = 2; set preserve_insertion_order = false")
        connection.execute(f"copy ({query}) to '{home}/duckdb.parquet' (format parquet)")


def summary(spark: SparkSession, rows: Path) -> tuple[int, int]:
    """The number of rows, and a sum over their hashes."""
    frame = spark.read.parquet(str(rows))
    moments = {name: f.col(name).cast("timestamp") for name in ("valid_from", "valid_to")}
    columns = sorted(frame.columns)
    found = frame.withColumns(moments).select(f.xxhash64(*columns).cast("decimal(38)").alias("hash"))
    count, total = found.agg(f.count("*"), f.sum("hash")).collect()[0]
    return int(count), int(total)


def range_join(spark: SparkSession, options: argparse.Namespace, names: list[str]) -> DataFrame:
    """Slices from all change points, then each source's own periods joined by key and range."""
    points = " union ".join(f"select customer_id, updated_at from bench.{name}" for name in names)
    end = "timestamp '9999-12-31 00:00:00'"
    lead = "lead(updated_at) over (partition by customer_id order by updated_at)"
    joins = " ".join(
        f"left join (select *, coalesce({lead}, {end}) as until from bench.{name}) {name} "
        f"on {name}.customer_id = p.customer_id and {name}.updated_at <= p.updated_at and p.updated_at < {name}.until"
        for name in names
    )
    own = [
        f"{name}.{column}"
        for number, name in enumerate(names)
        for column in columns_of(options, number)
        if column != "a0"
    ]
    shared = f"coalesce({', '.join(f'{name}.a0' for name in names)}) as a0"
    values = ["a0", *[column.split(".")[1] for column in own]]
    text = ", '|', ".join(f"coalesce({column}, '^^NULL^^')" for column in sorted(values))
    return spark.sql(
        f"select *, sha2(cast(customer_id as string), 256) as key_hash, sha2(concat({text}), 256) as row_hash from ("
        f"select p.customer_id, {shared}, {', '.join(own)}, p.updated_at as valid_from, "
        f"coalesce({lead.replace('updated_at', 'p.updated_at').replace('by customer_id', 'by p.customer_id')}, {end}) "
        "as valid_to "
        f"from ({points}) p {joins})"
    )


def report(options: argparse.Namespace, spark: SparkSession, built: Path, median: dict[str, float]) -> None:
    versions = spark.read.parquet(str(built)).count()
    size = sum(file.stat().st_size for file in built.rglob("*.parquet"))
    floor = median["sources"] + median["write"]
    print(f"{platform.machine()}, {platform.system()}, 2 cores, Python {platform.python_version()}")
    print(
        f"{options.rows:,} change rows, {options.sources} sources, {options.attributes} attributes, rules: "
        f"{options.rules}"
    )
    print(
        f"{versions:,} versions, {size / 1e6:,.0f} MB; medians of {options.repeat} runs, seconds (ratio to the floor); "
        f"{versions / median['select']:,.0f} versions per second"
    )
    for name, value in (median | {"floor": floor}).items():
        print(f"{name:20} {value:8.1f}  ({value / floor:.2f})")


if __name__ == "__main__":
    main()
