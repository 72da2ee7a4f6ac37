"""DAG: copies user and user_trx from PostgreSQL to S3, and splits them into the batches of buyers and sellers."""

from __future__ import annotations

from airflow.sdk import DAG
from retail_tasks import BATCHES, POSTGRES, S3, script

with DAG("retail_split", schedule="0 12 * * *", catchup=False, max_active_runs=1, tags=["retail"]):
    # what Airbyte would do
    copy = script("copy_to_s3", {**POSTGRES, **S3})
    copy >> script("split", S3, outlets=list(BATCHES.values()))
