{#-
    The moment of the load that was the first to see a change: 12:00 UTC, and 1900 for what the first load saw.

    2022-10-16 13:00 -> 1900-01-01 00:00
    2022-10-18 09:00 -> 2022-10-18 12:00
-#}
{% macro loaded_at(moment) -%}
case
    when {{ moment }} <= timestamp '{{ var('first_load') }}' then timestamp '1900-01-01 00:00:00'
    -- half a day back, the loads are at midnight; a change at the moment of a load is in that load
    else date_trunc('day', {{ moment }} - interval '12' hour - interval '0.000001' second) + interval '36' hour
end
{%- endmacro %}
