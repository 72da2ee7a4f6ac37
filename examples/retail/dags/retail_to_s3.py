"""DAG: merges both batches into the dimensions in S3, when both are new."""

from __future__ import annotations

from airflow.sdk import DAG
from retail_tasks import BATCHES, S3, merge

with DAG("retail_to_s3", schedule=list(BATCHES.values()), max_active_runs=1, tags=["retail"]):
    for side in BATCHES:
        merge(side, f"s3a://retail/dimensions/dim_{side}?file_format=parquet", S3)
