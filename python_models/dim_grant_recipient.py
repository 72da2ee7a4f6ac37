"""Organisations that receive grants: every attribute makes versions, which is the default (type 2)."""


def model(dbt, session):
    dbt.config(
        materialized="healing_merge",
        unique_key="recipient_id",
        meta={"healing_tables": {"changed_at": "changed_at"}},
    )
    columns = "recipient_id string, changed_at date, legal_name string, parent_org string, "
    columns += "status string, address string, risk_tier string"
    return session.read.csv(dbt.config.meta_get("batch"), columns, header=True, mode="FAILFAST")
