"""DAG: merges both batches into the dimensions in PostgreSQL, when both are new."""

from __future__ import annotations

from airflow.sdk import DAG
from retail_tasks import BATCHES, POSTGRES, S3, merge

with DAG("retail_to_postgres", schedule=list(BATCHES.values()), max_active_runs=1, tags=["retail"]):
    for side in BATCHES:
        # host, database, user and password come from the environment
        merge(side, f"postgresql:///?table=retail.dim_{side}", {**POSTGRES, **S3})
