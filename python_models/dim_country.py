"""Countries: names and regions are overwritten (type 1); last_updated says when a row last changed."""


def model(dbt, session):
    dbt.config(
        materialized="healing_merge",
        unique_key="country_code",
        meta={
            "healing_tables": {
                "changed_at": "changed_at",
                "attributes": {"*": 1},
                "surrogate_key": {"name": "country_key"},
                "column_names": {"last_updated": "last_updated", "change_reason": "change_reason"},
            }
        },
    )
    columns = "country_code string, changed_at date, country_name string, region string"
    return session.read.csv(dbt.config.meta_get("batch"), columns, header=True, mode="FAILFAST")
