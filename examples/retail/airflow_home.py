"""An Airflow of its own: its database (SQLite) in the temporary folder, the connections in Airflow's store."""

from __future__ import annotations

import base64
import json
import os
import secrets
import subprocess
from collections.abc import Mapping
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parent
AIRFLOW = EXAMPLE.parents[1] / ".airflow" / "venv" / "bin" / "airflow"


def prepare_airflow(services: Mapping[str, str], spark: Path) -> dict[str, str]:
    """The environment of Airflow, without the passwords of the services: those are in its store, encrypted.

    Args: services: as `services()` gives it. spark: the folder of spark-defaults.conf.
    """
    home = Path(services["RETAIL_HOME"]) / "airflow"
    home.mkdir(mode=0o700)
    environment = {**os.environ, **settings(home), "SPARK_CONF_DIR": str(spark), "SPARK_LOCAL_IP": "127.0.0.1"}
    dbt = home / "dbt"
    environment |= {"DBT_TARGET_PATH": str(dbt), "DBT_LOG_PATH": str(dbt), "DBT_PACKAGES": str(dbt / "packages")}
    # modules of another environment
    environment.pop("PYTHONPATH", None)
    run_airflow(environment, "db", "migrate")
    run_airflow(environment, "pools", "set", "spark", "1", "tasks that start Spark, one at a time")
    store_connections(environment, home, services)
    return environment


def settings(home: Path) -> dict[str, str]:
    return {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(EXAMPLE / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
        "AIRFLOW__CORE__FERNET_KEY": base64.urlsafe_b64encode(secrets.token_bytes(32)).decode(),
        "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_urlsafe(64),
    }


def store_connections(environment: Mapping[str, str], home: Path, services: Mapping[str, str]) -> None:
    """From a file that only this user can read: other users can read the arguments of a command."""
    connections = {
        "retail_postgres": {
            "conn_type": "postgres",
            "host": services["PGHOST"],
            "port": int(services["PGPORT"]),
            "schema": services["PGDATABASE"],
            "login": services["PGUSER"],
            "password": services["PGPASSWORD"],
        },
        "retail_s3": {
            "conn_type": "aws",
            "login": services["AWS_ACCESS_KEY_ID"],
            "password": services["AWS_SECRET_ACCESS_KEY"],
            "extra": json.dumps({"endpoint_url": services["AWS_ENDPOINT_URL"], "region_name": services["AWS_REGION"]}),
        },
    }
    file = home / "connections.json"
    file.touch(mode=0o600)
    file.write_text(json.dumps(connections))
    run_airflow(environment, "connections", "import", str(file))
    file.unlink()


def run_airflow(environment: Mapping[str, str], *arguments: str) -> str:
    """What the command prints. Raises: RuntimeError with it, if the command fails."""
    done = subprocess.run(
        [str(AIRFLOW), *arguments],
        check=False,
        env=dict(environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode != 0:
        raise RuntimeError(f"airflow {' '.join(arguments)} failed:\n{done.stdout}")
    return done.stdout
