-- Plays with the version of the player that was in force at their moment. After each load the hook re-keys the plays
-- whose version has moved since: players change late, and some are known only after their first play.
{{ config(
    materialized='incremental', incremental_strategy='merge', unique_key='play_id', file_format='delta',
    post_hook="{{ healing_tables.rekey_facts(
        this, ref('dim_player'), 'player_id', 'played_at', 'player_key', unknown=-1,
        valid_from='effective_from', valid_to='effective_to') }}"
) }}

{{ healing_tables.as_of(
    ref('stg_slot_plays'), ref('dim_player'), 'player_id', 'played_at', 'player_key', unknown=-1,
    valid_from='effective_from', valid_to='effective_to'
) }}
