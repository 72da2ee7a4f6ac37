"""Users in a Hive table without transactions, in ORC: types 1 and 2, integer keys. The names are in dim_user.yml."""


def model(dbt, session):
    dbt.config(materialized="healing_merge", unique_key="login", file_format="orc")
    columns = "login string, changed_at timestamp, name string, surname string, "
    columns += "year_of_birth int, premium_user boolean, address string, phone string"
    return session.read.csv(dbt.config.meta_get("batch"), columns, header=True, mode="FAILFAST")
