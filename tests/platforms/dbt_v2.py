"""dbt v2 on a server of Spark, as a command.

dbt v2 would download its driver for Spark. Instead, it finds one that the test has compiled (``spark_driver.c``), which
uses Spark Connect: what runs is dbt v2 with its own adapter, on another wire.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import yaml
from sessions import ROOT
from spark_servers import SparkServer

HERE = Path(__file__).parent
ENVIRONMENT = ROOT / ".environments" / "v2"
# the name of its driver, in a cache below HOME
DRIVER = ".cache/com.getdbt/adbc/x86_64-manylinux_2_17-linux-gnu/libadbc_driver_spark-0.21.0.dev+dbt0.1.2.so"
COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


@dataclass(frozen=True)
class DbtV2:
    """``home``: profiles.yml, and HOME of dbt."""

    home: Path
    server: SparkServer

    def __call__(self, project: Path, *args: str) -> subprocess.CompletedProcess[str]:
        places = {"--project-dir": project, "--profiles-dir": self.home, "--target-path": self.home / "target"}
        command = [str(ENVIRONMENT / "bin" / "dbt"), *args, *[str(part) for place in places.items() for part in place]]
        real = next(ENVIRONMENT.glob("lib/python*/site-packages/adbc_driver_spark/libadbc_driver_spark.so"))
        environment = {
            **os.environ,
            "HOME": str(self.home),
            "CONNECT_DRIVER": str(real),
            "CONNECT_URI": self.server.settings["spark.remote"],
            "STATEMENT_LOG": str(self.home / "statements.sql"),
            "DBT_ALLOW_EXPERIMENTAL_ADAPTERS": "true",
            "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
            "DBT_PROJECT_DIR": str(project),  # the examples read files below it
            "NO_COLOR": "1",
        }
        return subprocess.run(command, cwd=self.home, env=environment, capture_output=True, text=True, check=False)


def set_up(home: Path, server: SparkServer, profiles: dict[str, str]) -> DbtV2:
    """Args: profiles: the name of a profile to its schema."""
    subprocess.run([str(ROOT / "tests" / "environments" / "setup.sh"), "v2"], check=True)
    library = home / DRIVER
    library.parent.mkdir(parents=True)
    assert COMPILER is not None
    subprocess.run([COMPILER, "-shared", "-fPIC", "-o", str(library), str(HERE / "spark_driver.c"), "-ldl"], check=True)
    outputs = {
        profile: {"target": "dev", "outputs": {"dev": {"type": "spark", "schema": schema, **server.output}}}
        for profile, schema in profiles.items()
    }
    (home / "profiles.yml").write_text(yaml.safe_dump(outputs))
    return DbtV2(home, server)
