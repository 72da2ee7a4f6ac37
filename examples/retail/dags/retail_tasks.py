"""What the DAGs share: the two assets, the connections as variables of the environment, the commands.

A task gets the connections in its environment, where the commands of the example expect them: no command line and no
log has a password. The templates name entries of Airflow's own store, which are read when the task starts.
"""

from __future__ import annotations

from pathlib import Path

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import Asset

EXAMPLE = Path(__file__).resolve().parents[1]
# the project's own environment: Airflow and dbt do not go into one
BIN = EXAMPLE.parents[1] / ".venv" / "bin"

BATCHES = {side: Asset(name=f"{side}_batch", uri=f"s3://retail/batches/{side}.parquet") for side in ("buyer", "seller")}
POSTGRES = {
    "PGHOST": "{{ conn.retail_postgres.host }}",
    "PGPORT": "{{ conn.retail_postgres.port }}",
    "PGDATABASE": "{{ conn.retail_postgres.schema }}",
    "PGUSER": "{{ conn.retail_postgres.login }}",
    "PGPASSWORD": "{{ conn.retail_postgres.password }}",
}
S3 = {
    "AWS_ENDPOINT_URL": "{{ conn.retail_s3.extra_dejson.endpoint_url }}",
    "AWS_REGION": "{{ conn.retail_s3.extra_dejson.region_name }}",
    "AWS_ACCESS_KEY_ID": "{{ conn.retail_s3.login }}",
    "AWS_SECRET_ACCESS_KEY": "{{ conn.retail_s3.password }}",
}


def command(task_id: str, text: str, environment: dict[str, str], **options: object) -> BashOperator:
    return BashOperator(task_id=task_id, bash_command=text, env=environment, append_env=True, **options)


def script(name: str, environment: dict[str, str], **options: object) -> BashOperator:
    """A script of the example, for the load at the moment of the run."""
    text = f"{BIN}/python {EXAMPLE}/{name}.py --load '{{{{ logical_date.isoformat() }}}}'"
    return command(name, text, environment, **options)


def merge(side: str, target: str, environment: dict[str, str]) -> BashOperator:
    """The batch of a side into its dimension."""
    text = (
        f"{BIN}/healing-tables merge --spec {EXAMPLE}/{side}.yml "
        f'--batch s3a://retail/batches/{side}.parquet --target "{target}"'
    )
    # of the pool's tasks, one runs at a time: each has a Spark of its own
    return command(f"merge_{side}", text, environment, pool="spark")
