"""Amounts from which cash has to be reported: old filings need the amount of their day (type 2)."""


def model(dbt, session):
    dbt.config(
        materialized="healing_merge",
        unique_key="threshold_type",
        meta={
            "healing_tables": {
                "changed_at": "changed_at",
                "attributes": ["amount_usd"],
                "surrogate_key": {"name": "threshold_key"},
            }
        },
    )
    columns = "threshold_type string, changed_at date, amount_usd decimal(12,2)"
    return session.read.csv(dbt.config.meta_get("batch"), columns, header=True, mode="FAILFAST")
