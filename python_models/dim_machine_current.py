"""Slot machines on the floor, one row each; earlier rows are in dim_machine_current_history (type 4)."""


def model(dbt, session):
    dbt.config(
        materialized="healing_merge",
        unique_key="machine_id",
        meta={
            "healing_tables": {
                "changed_at": "changed_at",
                "deleted_when": "is_removed",
                "attributes": {"game_title": 4, "denomination": 4, "location": 4},
            }
        },
    )
    columns = "machine_id string, changed_at date, game_title string, denomination decimal(10,2), "
    columns += "location string, manufacturer string, serial_number string, is_removed boolean"
    return session.read.csv(dbt.config.meta_get("batch"), columns, header=True, mode="FAILFAST")
