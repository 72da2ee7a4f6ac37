{#- Check the option `shards`, and whether the model can be built in shards. Returns 1 if there is a mistake. -#}
{% macro _checked_shards(mistakes, call, metadata) -%}
    {%- set shards = healing_tables._option('shards', none, 1) -%}
    {%- if shards is not integer or shards is boolean or shards < 1 or shards > 1024 -%}
        {%- do healing_tables._mistake(
            mistakes, 'shards', 'a whole number from 1 to 1024', healing_tables._display_value(shards),
            'choose in how many statements the dimension is built, e.g. 16; 1 is all at once') -%}
        {{- return(1) -}}
    {%- elif shards == 1 -%} {{ return(1) }}
    {%- endif -%}
    {%- set format = healing_tables._format() -%}
    {%- set without = '; or leave shards out (shards: 1 in this model where the project sets it)' -%}
    {%- if format is not none and not format.can_shard -%}
        {%- set able = healing_tables._formats_with('can_shard') -%}
        {%- do healing_tables._mistake(
            mistakes, 'shards', 'a table in ' ~ (able | join(' or ')), format.name,
            'set file_format: ' ~ able[0] ~ without) -%}
    {%- endif -%}
    {%- if call is none or healing_tables._is_more_than_call(call) -%}
        {%- do healing_tables._mistake(
            mistakes, 'shards', 'a model that is a call of dimension(), so that keys can be built one by one',
            'a select without dimension()' if call is none else 'a model that does more than call dimension()',
            'put the rest into a model that reads the dimension' ~ without) -%}
        {{- return(1) -}}
    {%- endif -%}
    {%- if metadata.get('sequence') is not none -%}
        {%- do healing_tables._mistake(
            mistakes, 'shards', 'surrogate keys that are hashes, which a key has by itself',
            'integer keys (strategy: sequence), counted over all new versions',
            'set surrogate_key.strategy: hash' ~ without) -%}
    {%- endif -%}
    {%- for key in metadata.key_columns if metadata.types.get(key) is none -%}
        {%- do healing_tables._mistake(
            mistakes, 'shards', 'key columns with a known type, so that equal keys of all sources are in one shard',
            key ~ ', whose type is not known in a source that is a CTE or an ephemeral model',
            'name it in column_types, e.g. {' ~ key ~ ': bigint}' ~ without) -%}
    {%- endfor -%}
    {{- return(shards if not mistakes else 1) -}}
{%- endmacro %}
