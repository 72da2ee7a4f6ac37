"""Accounts: the manager, the one before, and since when (type 3). Two changes ago is forgotten."""


def model(dbt, session):
    dbt.config(materialized="healing_merge", unique_key="account_id")  # more: dim_reference.yml
    columns = "account_id string, changed_at date, account_manager string"
    return session.read.csv(dbt.config.meta_get("batch"), columns, header=True, mode="FAILFAST")
