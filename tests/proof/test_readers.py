"""Who reads while a build publishes sees the old or the new table, whole: on Delta and parquet, or on Iceberg."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from killed import FORMATS, KEYS, dimensions, generate
from lab import Lab

pytestmark = pytest.mark.usefixtures("interpreted")
GENERATIONS = 2
TABLES = [f"dim_{name}" for name in FORMATS]


def read(lab: Lab, table: str, enough: threading.Event) -> list[list[tuple[str, int]]]:
    """What a session of its own sees, over and over."""
    spark, seen = lab.spark.newSession(), []
    while not enough.wait(0.1):  # and the build gets its share of the machine
        spark.catalog.refreshTable(f"{lab.schema}.{table}")
        rows = spark.sql(f"select name, count(*) from {lab.schema}.{table} group by name")
        seen.append([(row[0], row[1]) for row in rows.collect()])
    return seen


def test_the_old_or_the_new_table(lab: Lab) -> None:
    dimensions(lab)
    generate(lab, 0)
    lab.dbt("run")
    assert lab.succeeded, lab.results
    enough = threading.Event()
    with ThreadPoolExecutor(len(TABLES)) as pool:
        readers = [pool.submit(read, lab, table, enough) for table in TABLES]
        try:
            for generation in range(1, GENERATIONS + 1):
                generate(lab, generation)
                lab.dbt("run")
                assert lab.succeeded, lab.results
        finally:
            enough.set()
    whole = [[(f"generation {number}", KEYS + number)] for number in range(GENERATIONS + 1)]
    for reader in readers:
        found = [whole.index(rows) for rows in reader.result()]
        assert found == sorted(found)  # never the old one again
        assert len(set(found)) > 1, "nothing was published while it was read: shows nothing"
