-- Plays as the floor system sends them, one file a load. Some come weeks late.
select row.*
from (
    select from_csv(
        if(value like 'play_id,%', null, value), -- the header, whatever is evaluated first
        'play_id int, player_id string, played_at timestamp, coin_in decimal(12,2), coin_out decimal(12,2)',
        map('mode', 'FAILFAST')
    ) as row
    from {{ source('facts', 'slot_plays') }}
    where value not like 'play_id,%'
)
