"""A dimension with the column names, flags, keys and end of time of its warehouse: dim_sales.yml."""


def model(dbt, session):
    dbt.config(materialized="healing_merge", unique_key="DimId")
    columns = "DimId string, changed_at date, Col1 string, Col2 string, Col3 string"
    columns += ", is_deleted boolean"
    return session.read.csv(dbt.config.meta_get("batch"), columns, header=True, mode="FAILFAST")
