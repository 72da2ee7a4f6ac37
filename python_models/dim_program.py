"""Grant programs: the threshold as it was, as it is, and as it was before (type 6): dim_program.yml."""


def model(dbt, session):
    dbt.config(materialized="healing_merge", unique_key="program_id")
    columns = "program_id string, changed_at date, eligibility_threshold decimal(18,2), "
    columns += "funding_cap_usd decimal(18,2), program_status string, "
    columns += "current_program_name string, current_admin_agency string"
    return session.read.csv(dbt.config.meta_get("batch"), columns, header=True, mode="FAILFAST")
