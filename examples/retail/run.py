"""`make retail`: starts the services and Airflow, runs three nights, compares what they have made, stops all."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from airflow_home import EXAMPLE, prepare_airflow
from generate_days import LOADS
from scheduler import Airflow, running_airflow
from services import MissingProgramError, services
from spark_settings import write_settings

CONSUMERS = ["retail_to_postgres", "retail_to_s3", "retail_rebuild"]
# what a task prints and a reader wants to see
TELLING = (" rows copied", " rows, valid from ", " rows in the batch: ", "healing_table retail.dim_", "Done. PASS=")


class FailedRunError(RuntimeError):
    """A run of a DAG failed."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stay", action="store_true", help="wait before all is stopped, to look at Airflow")
    stay = parser.parse_args().stay
    started = time.monotonic()
    try:
        with services() as found:
            spark = write_settings(Path(found["RETAIL_HOME"]))
            say(f"PostgreSQL at port {found['PGPORT']}, S3 at {found['AWS_ENDPOINT_URL']}, in {found['RETAIL_HOME']}")
            with running_airflow(prepare_airflow(found, spark)) as airflow:
                say(f"Airflow at {airflow.url}")
                for number, load in enumerate(LOADS, start=1):
                    night(airflow, found, number, load.isoformat())
                if stay:
                    input(f"\nAirflow: {airflow.url}, user admin, password {airflow.password}. Enter stops all. ")
            say("\nThree nights, three places")
            done = run("compare", found, {"SPARK_CONF_DIR": str(spark)})
    except (MissingProgramError, FailedRunError) as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    say(f"\nAll of it took {time.monotonic() - started:.0f} s.")
    return done


def night(airflow: Airflow, services: Mapping[str, str], number: int, load: str) -> None:
    """A day of the stream, the producer, and the consumers that it triggers. Raises: FailedRunError."""
    say(f"\nNight {number}, {load}")
    run("stream", services, {}, "--load", load)
    airflow.trigger("retail_split", load)
    for dag in ["retail_split", *CONSUMERS]:
        show(airflow, dag, number)


def run(script: str, services: Mapping[str, str], others: Mapping[str, str], *arguments: str) -> int:
    """A script of the example, with the services in its environment; its exit code."""
    environment = {**os.environ, **services, **others, "SPARK_LOCAL_IP": "127.0.0.1"}
    command = [sys.executable, str(EXAMPLE / f"{script}.py"), *arguments]
    # Spark starts with pages of messages
    with (Path(services["RETAIL_HOME"]) / f"{script}.log").open("w+") as log:
        done = subprocess.run(command, check=False, env=environment, stderr=log).returncode
        log.seek(0)
        if done != 0:
            print(log.read()[-3000:], file=sys.stderr)
    return done


def show(airflow: Airflow, dag: str, number: int) -> None:
    """Waits for a run and prints what its tasks say. Raises: FailedRunError with the log of the task that failed."""
    found = airflow.wait_for_run(dag, number)
    say(f"  {dag}: {found['run_type']}, {found['state']}")
    for task in airflow.tasks(found):
        lines = airflow.log(dag, found["dag_run_id"], task)
        if found["state"] != "success":
            say("\n".join(lines[-60:]))
        for line in lines:
            if any(text in line for text in TELLING):
                say(f"    {line}")
    if found["state"] != "success":
        raise FailedRunError(f"{dag}: run {number} failed; its log is above.")


def say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
