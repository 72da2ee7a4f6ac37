"""Slot machines: versions (type 2), the newest manufacturer (1), the first serial number (0)."""


def model(dbt, session):
    dbt.config(materialized="healing_merge", unique_key="machine_id")  # more: dim_machine.yml
    columns = "machine_id string, changed_at date, game_title string, denomination decimal(10,2), "
    columns += "location string, manufacturer string, serial_number string, is_removed boolean"
    return session.read.csv(dbt.config.meta_get("batch"), columns, header=True, mode="FAILFAST")
