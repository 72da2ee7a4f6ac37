{#- Tags of commits in Iceberg, which SQL cannot put into a snapshot: they are table properties. -#}

{#-
    The commits that the history still lists, with their tags:

    healing_tables.build.<snapshot>        set before the snapshot is published; ignored if it never is
    healing_tables.build.after.<snapshot>  set by the statement that makes the table: of the first snapshot without a
                                           parent after this one (`none`: after nothing)
-#}
{% macro _iceberg_newest_commits(relation, limit=none) -%}
    {%- set commits, tagged = healing_tables._iceberg_commits_since(relation, none), [] -%}
    {%- set properties = healing_tables._iceberg_tags(relation) -%}
    {%- for commit in commits -%}
        {%- set base = commits[loop.index].version if not loop.last else none -%}
        {%- set tag = properties.get(healing_tables._iceberg_tag_property(base, commit.version))
            or (properties.get(healing_tables._iceberg_tag_property(base, none)) if commit.parent is none) -%}
        {%- do tagged.append(dict(commit, parameters=commit.parameters ~ ' ' ~ (tag or ''))) -%}
    {%- endfor -%}
    {{- return(tagged) -}}
{%- endmacro %}

{% macro _iceberg_tag_property(base, version) -%}
    {{- return('healing_tables.build.' ~ ('after.' ~ (base or 'none') if version is none else version)) -}}
{%- endmacro %}

{#- The tags of a table, {property: tag}. -#}
{% macro _iceberg_tags(relation) -%}
    {%- set tags = {} -%}
    {%- for row in run_query('show tblproperties ' ~ relation).rows if row[0].startswith('healing_tables.build.') -%}
        {%- do tags.update({row[0]: row[1]}) -%}
    {%- endfor -%}
    {{- return(tags) -}}
{%- endmacro %}

{#- Tag a snapshot. Returns the properties of earlier tags, as literals. -#}
{% macro _iceberg_set_tag(relation, version, tag) -%}
    {%- set name, earlier = healing_tables._iceberg_tag_property(none, version), [] -%}
    {%- for property in healing_tables._iceberg_tags(relation) if property != name -%}
        {%- do earlier.append(healing_tables._string_literal(property)) -%}
    {%- endfor -%}
    {%- do healing_tables._iceberg_alter(relation, 'set ' ~ healing_tables._properties_clause({name: tag})) -%}
    {{- return(earlier) -}}
{%- endmacro %}
