"""Run the tests of `make test` that need Spark with each set of versions, and print what came of it as a table.

    python scripts/matrix.py [NAME ...]

A set is a file tests/environments/spark-<version>.txt or newest.txt; .venv is one as well. Without names all run, one
after the other.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parents[1]
CORE = ["tests/dbt", "tests/spark"]
# Delta has no jar for these: Hive tables, files, PostgreSQL, and what a select does
SPARK = ["as_of", "cases", "erase_keys", "feeds", "files", "first_violation", "hive", "options", "plan", "postgres"]
SPARK += ["property", "reading", "row_text", "steps", "timeline_steps"]
DBT = ["bad_input", "checks", "column_names", "with_dbt"]
WITHOUT_DELTA = {
    "spark-4.3": [*(f"tests/dbt/test_{name}.py" for name in DBT), *(f"tests/spark/test_{name}.py" for name in SPARK)]
}
NOT_INSTALLED = 3  # exit code of setup.sh: this machine has no such Python
VERSIONS = """
import json, platform, sys
from importlib.metadata import version
sys.path.insert(0, "src")
from healing_tables.cli import DELTA
spark = version("pyspark")
print(json.dumps([spark, DELTA.get(".".join(spark.split(".")[:2]), ":none").split(":")[1], version("dbt-core"),
    version("dbt-spark"), ".".join(platform.python_version_tuple()[:2])]))
"""
HEADER = ["Spark", "Delta", "dbt-core", "dbt-spark", "Python", "tests"]


def environments() -> list[str]:
    names = sorted(path.stem for path in (ROOT / "tests" / "environments").glob("spark-*.txt"))
    return [*names, ".venv", "newest"]


def tests_of(name: str) -> list[str]:
    return WITHOUT_DELTA.get(name, CORE)


def python_of(name: str) -> Path:
    """The interpreter of a set, which is made where it is not there."""
    if name == ".venv":
        return ROOT / ".venv" / "bin" / "python"
    subprocess.run([ROOT / "tests" / "environments" / "setup.sh", name], cwd=ROOT, check=True)
    return ROOT / ".environments" / name / "bin" / "python"


def settings_of(python: Path) -> dict[str, str]:
    """Environment variables of a set's tests: this checkout's library, and the interpreter of Spark's workers."""
    settings = {"PYTHONPATH": str(ROOT / "src"), "PYSPARK_PYTHON": str(python), "SPARK_LOCAL_IP": "127.0.0.1"}
    return settings | ({"HEALING_TABLES_FORMAT": "parquet"} if python.parts[-3] in WITHOUT_DELTA else {})


def run(name: str) -> tuple[list[str], bool]:
    """A row of the table, and whether all tests passed."""
    python, results = python_of(name), ROOT / "target" / f"matrix_{name}.xml"
    asked = subprocess.run([str(python), "-c", VERSIONS], cwd=ROOT, check=True, capture_output=True, text=True)
    command = [str(python), "-m", "pytest", "-n", "2", "--dist", "loadfile", f"--junitxml={results}"]
    command += tests_of(name)
    results.unlink(missing_ok=True)
    subprocess.run(command, cwd=ROOT, env=os.environ | settings_of(python), check=False)
    counts = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
    for suite in ElementTree.parse(results).getroot().iter("testsuite"):
        for count in counts:
            counts[count] += int(suite.get(count, 0))
    failed = counts["failures"] + counts["errors"]
    passed = counts["tests"] - failed - counts["skipped"]
    summary = f"{passed} passed" + "".join(
        f", {count} {word}" for count, word in ((failed, "failed"), (counts["skipped"], "not for it")) if count
    )
    return [*json.loads(asked.stdout), summary], failed == 0 and passed > 0


def table(rows: list[list[str]]) -> str:
    lines = [HEADER, ["---"] * len(HEADER), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def main(names: list[str]) -> int:
    found = [run(name) for name in names or environments()]
    print(table([row for row, _ in found]))
    return 0 if all(is_passed for _, is_passed in found) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
