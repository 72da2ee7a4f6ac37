"""How long a merge takes over a Thrift server, as SQL, as a ratio to what a user writes by hand for the same.

    python benchmarks/merge_over_thrift.py --rows 200
    python benchmarks/merge_over_thrift.py --rows 10000 --keys 1000000

Both read the same batch, in which 10 % of the keys have changed. By hand: the rows that differ become a table, the
changed versions are closed by a MERGE, the new ones are inserted, without checks, a log, or late changes. A merge is
the time of its model in `dbt run`. They are taken in turns; the best of ``--repeat`` rounds counts, after two to warm
up.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from pathlib import Path
from typing import Any

from nightly import connection, dbt_command
from rebuild import ROOT, in_temporary_folder

WARM_UP = 2
OPTIONS = {"attributes": {"name": 2, "tier": 2}, "changed_at": "changed_at"}
STATES = """select id, timestamp '2024-01-01' + make_dt_interval({turn}) as changed_at,
    concat('name ', id, if({changed}, ' of {turn}', '')) as name, pmod(id, 7) as tier
from range({keys}) where pmod(id, {every}) = 0"""
BY_HAND = """
drop table if exists news;
create table news using parquet as
    select b.*, d.id is not null as is_stored
    from batch b left join by_hand d on b.id = d.id and d.is_current
    where d.id is null or not (b.name <=> d.name and b.tier <=> d.tier);
merge into by_hand t using (select * from news where is_stored) s on t.id = s.id and t.is_current
    when matched then update set valid_to = s.changed_at, is_current = false;
insert into by_hand select id, name, tier, changed_at, timestamp '9999-12-31', true from news
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=200, help="of each batch")
    parser.add_argument("--keys", type=int, help="of the dimension; default: those of the batch")
    parser.add_argument("--repeat", type=int, default=4)
    parser.add_argument("--code-cache", type=int, help="spark.sql.codegen.cache.maxEntries")
    parser.add_argument("--java", nargs="*", default=[], help="more options of Java")
    options = parser.parse_args()
    options.keys = max(options.keys or options.rows, options.rows)
    options.server, options.threads = True, 1
    in_temporary_folder(run, options)


def run(options: argparse.Namespace, home: Path) -> None:
    (home / "models").mkdir()
    config = f"materialized='healing_merge', unique_key='id', meta={{'healing_tables': {OPTIONS!r}}}"
    (home / "models" / "dim.sql").write_text(f"{{{{ config({config}) }}}}\nselect * from night.batch\n")
    (home / "packages.yml").write_text(f"packages: [{{local: '{ROOT}'}}]\n")
    (home / "dbt_project.yml").write_text("{name: thrift, version: 1.0.0, profile: thrift, model-paths: [models]}\n")
    with connection(options, home) as output:
        profile = {"thrift": {"target": "dev", "outputs": {"dev": output}}}
        (home / "profiles.yml").write_text(json.dumps(profile))
        dbt_command(home, "deps")
        cursor = cursor_of(output)
        cursor.execute("create database if not exists night")
        cursor.execute("use night")
        every = options.keys // options.rows
        figures: dict[str, list[float]] = {"by hand": [], "merge": []}
        for turn in range(options.repeat + WARM_UP + 1):
            rows = {"turn": turn, "keys": options.keys, "every": every if turn else 1}
            rows["changed"] = f"pmod(id div {every}, 10) = {turn % 10}" if turn else "false"
            cursor.execute("drop table if exists batch")
            cursor.execute("create table batch using parquet as " + STATES.format(**rows))
            seconds = {"by hand": by_hand(cursor, turn), "merge": merged(home)}
            for name, taken in seconds.items():
                if turn > WARM_UP:
                    figures[name].append(taken)
    print(f"{platform.machine()}, {platform.system()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    print(f"batches of {options.rows:,} rows into {options.keys:,} keys; the best of {options.repeat} warm rounds")
    for name, found in figures.items():
        ratio = min(found) / min(figures["by hand"])
        print(f"{name:8} {min(found):6.2f} ({ratio:.2f})   {' '.join(f'{taken:.2f}' for taken in found)}")


def cursor_of(output: dict[str, Any]) -> Any:
    from pyhive import hive  # type: ignore[import-untyped]

    return hive.connect(host=output["host"], port=output["port"], auth=output.get("auth")).cursor()


def by_hand(cursor: Any, turn: int) -> float:
    started = time.perf_counter()
    if turn == 0:
        cursor.execute(
            "create table by_hand using delta as select id, name, tier, changed_at as valid_from, "
            "timestamp '9999-12-31' as valid_to, true as is_current from batch"
        )
    else:
        for statement in BY_HAND.split(";"):
            cursor.execute(statement)
    return time.perf_counter() - started


def merged(home: Path) -> float:
    """The seconds of the model in a run of dbt."""
    dbt_command(home, "run")
    results = json.loads((home / "target" / "run_results.json").read_text())["results"]
    return float(results[0]["execution_time"])


if __name__ == "__main__":
    main()
