-- A tenth of the runways of the world as a public list had them, healed night after night. Decisions:
--   the outage   of 2025-01-31 deletes nothing: 4,635 deletions that were taken back twelve hours later are left out.
--                Without that line each runway would have a gap of half a day, and the guard (max_removed_keys_ratio) would
--                refuse the build on the evening of the outage.
--   versioned    is what a pilot would notice: the airport, length, width, surface, light, closing, the painted numbers.
--   corrected    are coordinates, elevations, headings and thresholds: they are measured again and entered with more digits
--                more often than a runway moves (type 1).
--   news         A row comes with the commit that it is dated by, so changed_at is its loaded_at as well.
{{ config(materialized='healing_table', unique_key='runway_id', meta={'healing_tables': {'mode': 'heal'}}) }}

{%- set corrected = {} -%}
{%- for end in ['le', 'he'] -%}
    {%- for column in ['latitude_deg', 'longitude_deg', 'elevation_ft', 'heading_degT', 'displaced_threshold_ft'] -%}
        {%- do corrected.update({end ~ '_' ~ column: {'from': ['log'], 'scd_type': 1}}) -%}
    {%- endfor -%}
{%- endfor %}

{{ healing_tables.dimension(
    sources={
        'log': {
            'relation': ref('stg_ourairports_runways'), 'changed_at': 'changed_at', 'loaded_at': 'changed_at',
            'deleted_when': "op = 'D'", 'where': 'not is_outage'
        }
    },
    attributes=dict({
        'airport_ref': {'from': ['log']},
        'airport_ident': {'from': ['log']},
        'length_ft': {'from': ['log']},
        'width_ft': {'from': ['log']},
        'surface': {'from': ['log']},
        'is_lighted': {'from': ['log']},
        'is_closed': {'from': ['log']},
        'le_ident': {'from': ['log']},
        'he_ident': {'from': ['log']}
    }, **corrected)
) }}
