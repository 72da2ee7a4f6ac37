"""Players of a casino: types 0, 1, 2 and 3 in one row. Which attribute has which: dim_player.yml."""


def model(dbt, session):
    dbt.config(materialized="healing_merge", unique_key="player_id")
    columns = "player_id string, changed_at timestamp, birth_date date, email string, phone string, "
    columns += "tier string, home_property string, risk_score int, marketing_consent boolean"
    return session.read.csv(dbt.config.meta_get("batch"), columns, header=True, mode="FAILFAST")
