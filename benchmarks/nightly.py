"""How long a night of small dimensions takes as users run it, as a ratio to dbt's own `table` of the same selects.

    python benchmarks/nightly.py --dimensions 12 --rows 2000
    python benchmarks/nightly.py --code-cache 100              # classes, Spark's default; the profile has 1000
    python benchmarks/nightly.py --server                      # a Thrift server that has run the same before
    python benchmarks/nightly.py --java -XX:TieredStopAtLevel=4   # both compilers of Java; the profile has the first

table            models with materialized='table'
first            healing_tables that do not exist yet
rebuild          healing_tables after two rows were added to each source
unchanged        the same again, when nothing differs
heal             as rebuild, with mode: heal
heal, no change  the same again, when no source has a new row

Each figure is one `dbt run` as a process of its own, with the profile of this package (profiles.yml) and Spark inside
it, or with a server: seconds from start to exit. They are taken in turns; the best of ``--repeat`` counts. Each
dimension has three sources and nine attributes with names of its own, so that no code made for one serves another.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from rebuild import ROOT, in_temporary_folder

sys.path.insert(0, str(ROOT / "tests" / "shared"))

# what is measured: the tag of its models
WORK = {
    "table": "plain",
    "first": "first",
    "rebuild": "rebuilt",
    "unchanged": "rebuilt",
    "heal": "healed",
    "heal, no change": "healed",
}
# what is run before it, so that it finds no news
NEWS_FIRST = {"unchanged": "rebuild", "heal, no change": "heal"}
SOURCES = {"crm": ("name", "city", "tier"), "erp": ("terms", "ceiling", "risk"), "web": ("mail", "phone", "language")}
KINDS: dict[str, dict[str, Any]] = {
    "plain": {"materialized": "table", "file_format": "delta"},
    "first": {"materialized": "healing_table"},
    "rebuilt": {"materialized": "healing_table"},
    "healed": {"materialized": "healing_table", "meta": {"healing_tables": {"mode": "heal"}}},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--dimensions", type=int, default=12)
    parser.add_argument("--rows", type=int, default=2000, help="change rows of a dimension, over its three sources")
    parser.add_argument("--changes-per-key", type=int, default=10)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--only", nargs="+", choices=list(WORK), default=list(WORK))
    parser.add_argument("--code-cache", type=int, help="classes that Spark keeps; default: as in the profile")
    parser.add_argument("--java", nargs=argparse.REMAINDER, default=[], help="options of the JVM; the last argument")
    parser.add_argument("--server", action="store_true", help="over a Thrift server, after a round to warm it up")
    options = parser.parse_args()
    needed = {*options.only, *(NEWS_FIRST.get(work) for work in options.only)}
    options.only = [work for work in WORK if work in needed]
    in_temporary_folder(run, options)


def run(options: argparse.Namespace, home: Path) -> None:
    write_project(options, home)
    with connection(options, home) as output:
        profile = {"night": {"target": "dev", "outputs": {"dev": output}}}
        (home / "profiles.yml").write_text(yaml.safe_dump(profile))
        dbt_run(home, "source", turn=0)
        for tag in sorted({WORK[work] for work in options.only} - {"first"}):
            dbt_run(home, tag, turn=0)
        seconds: dict[str, list[float]] = {work: [] for work in options.only}
        first_turn = 0 if options.server else 1
        for turn in range(first_turn, options.repeat + 1):
            dbt_run(home, "source", turn=turn + 1)
            for work in options.only:
                taken = dbt_run(home, WORK[work], turn=turn + 1)
                if turn > 0:  # turn 0 is to warm up a server
                    seconds[work].append(taken)
    report(options, seconds)


def write_project(options: argparse.Namespace, home: Path) -> None:
    models = home / "models"
    models.mkdir()
    (home / "dbt_packages").mkdir()
    (home / "dbt_packages" / "healing_tables").symlink_to(ROOT)
    (home / "packages.yml").write_text(yaml.safe_dump({"packages": [{"local": str(ROOT)}]}))
    shutil.copy(ROOT / "log4j2.properties", home)
    project = {"name": "night", "version": "1.0.0", "profile": "night", "vars": {"turn": 0}}
    (home / "dbt_project.yml").write_text(yaml.safe_dump(project))
    for number in range(options.dimensions):
        for source in SOURCES:
            (models / f"{source}{number}.sql").write_text(source_model(options, number, source))
        for kind, config in KINDS.items():
            (models / f"{kind}{number}.sql").write_text(dimension_model(number, kind, config))


def source_model(options: argparse.Namespace, number: int, source: str) -> str:
    """A table to which every turn adds two rows."""
    rows = options.rows // len(SOURCES)
    keys = max(options.rows // options.changes_per_key, 1)
    place = list(SOURCES).index(source)
    key = f"pmod(xxhash64(id, {number}, {place}), {keys}) as key{number}"
    columns = [f"concat('{name} ', pmod(xxhash64(id, '{name}'), 50)) as {name}{number}" for name in SOURCES[source]]
    news = [f"concat('{name} ', id, ' of ', {{{{ var('turn') }}}}) as {name}{number}" for name in SOURCES[source]]
    # the moment of a turn is after all those of before, and in the past: every heal reads rows with a later loaded_at
    turn = "1750000000000000 + {{ var('turn') }} * 86400000000"
    return f"""{{{{ config(materialized='incremental', file_format='delta', tags=['source']) }}}}
{{% if is_incremental() %}}
select {key}, timestamp_micros({turn} + id * 1000 + {place}) as changed_at, {", ".join(news)},
    timestamp_micros({turn}) as loaded_at
from range(2)
{{% else %}}
select {key}, timestamp_micros(1700000000000000 + id * 60000000 + {place}) as changed_at, {", ".join(columns)},
    timestamp_micros(1700000000000000) as loaded_at
from range({rows})
{{% endif %}}
"""


def dimension_model(number: int, kind: str, config: dict[str, Any]) -> str:
    options = [f"{name}={value!r}" for name, value in {**config, "tags": [kind]}.items()]
    if config["materialized"] == "healing_table":
        options.append(f"unique_key='key{number}'")
    if kind == "first":
        options.append(f"alias='first{number}_' ~ var('turn')")  # a new table in each turn
    sources = ", ".join(
        f"'{source}': {{'relation': ref('{source}{number}'), 'changed_at': 'changed_at', 'loaded_at': 'loaded_at'}}"
        for source in SOURCES
    )
    call = f"healing_tables.dimension({{{sources}}}, 'key{number}')"
    return f"{{{{ config({', '.join(options)}) }}}}\n{{{{ {call} }}}}\n"


@contextmanager
def connection(options: argparse.Namespace, home: Path) -> Iterator[dict[str, Any]]:
    """The connection for profiles.yml: as in this package, or to a Thrift server."""
    text = (ROOT / "profiles.yml").read_text().replace("{{ env_var('DBT_PROJECT_DIR', '.') }}", str(home))
    output = yaml.safe_load(text)["healing_tables"]["outputs"]["dev"]
    output |= {"schema": "night", "threads": options.threads}
    settings = output["server_side_parameters"]
    if options.code_cache:
        settings["spark.sql.codegen.cache.maxEntries"] = str(options.code_cache)
    java = "spark.driver.extraJavaOptions"
    settings[java] = " ".join([settings[java], *options.java])
    if not options.server:
        yield output
        return
    from spark_servers import thrift

    jars = sorted((Path.home() / ".ivy2.5.2" / "jars").glob("io.delta_delta-s*.jar"))
    if not jars:
        raise SystemExit("the jars of Delta are not downloaded yet: run this once without --server")
    cache = "spark.sql.codegen.cache.maxEntries"
    with thrift(home, [str(jar) for jar in jars], {cache: settings[cache]}) as server:
        yield {**server.output, "type": "spark", "schema": "night", "threads": options.threads}


def dbt_run(home: Path, tag: str, *, turn: int) -> float:
    """Run the models of a tag in a process of its own. Returns: its seconds."""
    return dbt_command(home, "run", "--select", f"tag:{tag}", "--vars", f"{{turn: {turn}}}")


def dbt_command(home: Path, *args: str) -> float:
    """Run a command of dbt in a process of its own. Returns: its seconds."""
    dbt = Path(sys.executable).with_name("dbt")
    command = [str(dbt), "--quiet", *args]
    environment = os.environ | {
        "DBT_PROJECT_DIR": str(home),
        "DBT_PROFILES_DIR": str(home),
        "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PATH": f"{dbt.parent}{os.pathsep}{os.environ['PATH']}",
    }
    started = time.perf_counter()
    done = subprocess.run(command, cwd=home, env=environment, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - started
    if done.returncode:
        raise SystemExit(f"dbt {' '.join(args)} failed:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    return seconds


def report(options: argparse.Namespace, seconds: dict[str, list[float]]) -> None:
    print(f"{platform.machine()}, {platform.system()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    print(
        f"{options.dimensions} dimensions of {options.rows:,} change rows, {options.threads} threads, "
        + ("a Thrift server" if options.server else "a cold process for each figure")
    )
    print(f"the best of {options.repeat} runs: seconds (ratio to table); all seconds")
    best = {work: min(runs) for work, runs in seconds.items()}
    for work, value in best.items():
        ratio = f"({value / best['table']:.2f})" if "table" in best else ""
        print(f"{work:16} {value:8.1f}  {ratio:7}  {' '.join(f'{each:.1f}' for each in seconds[work])}")


if __name__ == "__main__":
    main()
