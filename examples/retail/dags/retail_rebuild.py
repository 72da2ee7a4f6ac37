"""DAG: rebuilds both dimensions with dbt, from the archive of the stream, when both batches are new."""

from __future__ import annotations

from airflow.sdk import DAG
from retail_tasks import BATCHES, BIN, EXAMPLE, S3, command

PROJECT = f"--project-dir {EXAMPLE}/dbt --profiles-dir {EXAMPLE}/dbt"

with DAG("retail_rebuild", schedule=list(BATCHES.values()), max_active_runs=1, tags=["retail"]):
    text = f"{BIN}/dbt --quiet deps {PROJECT} && {BIN}/dbt build --no-use-colors {PROJECT}"
    command("dbt_build", text, S3, pool="spark")
