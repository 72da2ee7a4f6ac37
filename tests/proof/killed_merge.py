"""A process with a JVM of its own that merges batches into path tables, until it is killed. See test_kill_jvm.py.

    python killed_merge.py HOME FIRST LAST [compare]

Prints ``ready``, then the number of each batch that is merged. With ``compare`` it also merges all batches into other
tables, undisturbed, and prints ``equal`` if those hold the same.
"""

from __future__ import annotations

import sys
from pathlib import Path

from kill_batches import SPECS, compare, job, merge_here
from pyspark.sql import SparkSession
from sessions import session_settings, without_codegen


def main(home: Path, first: int, last: int, to_compare: bool) -> None:
    settings = session_settings(home) | {"spark.driver.memory": "1g"}
    spark = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    with without_codegen(spark):
        print("ready", flush=True)
        for number in range(first, last + 1):
            merge_here(spark, job(str(home / "dim"), SPECS["type4"], number))
            print(number, flush=True)
        if to_compare:
            for number in range(last + 1):
                merge_here(spark, job(str(home / "undisturbed"), SPECS["type4"], number))
            compare(spark, f"delta.`{home}/dim%s`", f"delta.`{home}/undisturbed%s`", SPECS["type4"])
            print("equal", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:] == ["compare"])
