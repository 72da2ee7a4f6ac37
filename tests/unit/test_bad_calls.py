"""Calls that are wrong: one error with everything that is wrong in it, before any SQL runs."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from rendering import SCHEMA, CompilerError, Project

from healing_tables import DimensionSpec, SpecError
from healing_tables.definition.options import unknown_options

CATALOGUE = {
    "db.crm": {"id": "int", "at": "timestamp", "name": "string", "seq": "int"},
    "db.erp": {"cust_no": "string", "at": "timestamp", "name": "string"},
    "db.flags": {"id": "boolean", "at": "timestamp", "flag": "boolean"},
    "db.maps": {"id": "int", "at": "string", "tags": "map<string,string>", "version": "int"},
    "db.periods": {"id": "int", "start": "date", "until": "date", "name": "string"},
    "db.twins": {"id": "int", "at": "timestamp", "name": "string", "NAME": "string"},
}
CRM = "'relation': relation('crm'), 'changed_at': 'at'"
ERP = "'relation': relation('erp'), 'changed_at': 'at', 'key_columns': {'id': 'cust_no'}"
# name: (arguments of dimension(), what the error has to say)
CALLS = {
    "no_sources": ("sources={}", ["sources", "at least one source"]),
    "not_a_map": ("sources={'crm': relation('crm')}", ["sources.crm", "a map"]),
    "no_relation": ("sources={'crm': {'changed_at': 'at'}}", ["sources.crm.relation"]),
    "no_moment": (
        "sources={'crm': {'relation': relation('crm')}}",
        ["sources.crm", "no moment"],
    ),
    "two_moments": (
        f"sources={{'crm': {{{CRM}, 'snapshot_at': 'at'}}}}",
        ["changes and snapshots"],
    ),
    "half_a_period": (
        "sources={'p': {'relation': relation('periods'), 'valid_from': 'start'}}",
        ["valid_from and valid_to"],
    ),
    "misspelt_moment": (
        "sources={'crm': {'relation': relation('crm'), 'changed_at': 'updated'}}",
        ["sources.crm.changed_at", "got:    updated", "id, at, name, seq"],
    ),
    "misspelt_key": (
        f"sources={{'crm': {{{CRM}, 'key_columns': {{'id': 'idd'}}}}}}",
        ["sources.crm.key_columns", "idd"],
    ),
    "key_of_another_name": (
        "sources={'erp': {'relation': relation('erp'), 'changed_at': 'at'}}",
        ["sources.erp.key_columns", "'key_columns': {'id': '<column>'}; its columns are cust_no, at, name"],
    ),
    "unknown_option": (
        f"sources={{'crm': {{{CRM}, 'tie_breaker': 'seq'}}}}",
        ["sources.crm.tie_breaker", "tie_break_by"],
    ),
    "unknown_rule": (
        f"sources={{'crm': {{{CRM}}}}}, attributes={{'name': {{'rule': 'newest'}}}}",
        ["attributes.name.rule", "most_recent_row", "choose one of them"],
    ),
    "misspelt_rule": (
        f"sources={{'crm': {{{CRM}}}}}, attributes={{'name': {{'rule': 'most_recent_rows'}}}}",
        ["got:    most_recent_rows", "did you mean most_recent_row?"],
    ),
    "misspelt_origins": (
        f"sources={{'crm': {{{CRM}}}}}, attributes={{'name': {{'from': ['cmr.name', {{'source': 'CRM'}}]}}}}",
        [
            "got:    cmr.name\n     remedy: did you mean crm?",
            "got:    {'source': 'CRM'}\n     remedy: did you mean crm?",
        ],
    ),
    "unknown_type": (
        f"sources={{'crm': {{{CRM}}}}}, attributes={{'name': 5}}",
        ["attributes.name.scd_type", "0, 1, 2, 3, 6"],
    ),
    "type_as_text": (
        f"sources={{'crm': {{{CRM}}}}}, attributes={{'name': '2', 'city': {{'scd_type': '1'}}}}",
        ["got:    the text '2'", "the numbers 0, 1, 2, 3, 6", "got:    the text '1'"],
    ),
    "type_four": (f"sources={{'crm': {{{CRM}}}}}, attributes={{'name': 4}}", ["pair of tables"]),
    "unknown_source": (
        f"sources={{'crm': {{{CRM}}}}}, attributes={{'name': {{'from': ['cmr']}}}}",
        ["attributes.name.from", "cmr", "did you mean crm?"],
    ),
    "unknown_attribute": (
        f"sources={{'crm': {{{CRM}}}}}, attributes=['nam']",
        ["attributes.nam", "nam", "did you mean name?"],
    ),
    "unknown_exists_in": (f"sources={{'crm': {{{CRM}}}}}, exists_in=['web']", ["exists_in", "web", "correct the name"]),
    "misspelt_exists_in": (f"sources={{'crm': {{{CRM}}}}}, exists_in=['cmr']", ["exists_in", "did you mean crm?"]),
    "misspelt_tie": (f"sources={{'crm': {{{CRM}, 'on_tie': 'greates'}}}}", ["did you mean greatest?"]),
    "unknown_tie": (
        f"sources={{'crm': {{{CRM}, 'on_tie': 'last'}}}}",
        ["sources.crm.on_tie", "greatest"],
    ),
    "ownerless": (
        f"sources={{'crm': {{{CRM}}}, 'erp': {{{ERP}}}}}",
        ["attributes.name", "crm and erp", "rule"],
    ),
    "columns_that_differ_by_case": (
        "sources={'t': {'relation': relation('twins'), 'changed_at': 'at'}}",
        ["sources.t.relation", "differ by more than their case", "id, at, name, NAME"],
    ),
    "taken_name": (
        "sources={'m': {'relation': relation('maps'), 'changed_at': 'at'}}, attributes=['version']",
        ["column version", "generated column version", "attribute", "cast it in the source"],
    ),
    "map_attribute": (
        "sources={'m': {'relation': relation('maps'), 'changed_at': 'at'}}, attributes=['tags']",
        ["attributes.tags", "map<string,string>", "moment column at"],
    ),
    "mixed_keys": (
        (
            f"sources={{'crm': {{{CRM}}}, 'f': {{'relation': relation('flags'), 'changed_at': 'at'}}}}, "
            "attributes=['name', 'flag']"
        ),
        ["key_columns.id", "int, boolean"],
    ),
    "wrong_kind_of_option": (
        f"sources={{'crm': {{{CRM}, 'calendar': relation('erp')}}}}",
        ["sources.crm.calendar", "snapshots"],
    ),
    "wrong_kinds_of_maps": (
        f"sources={{'crm': {{{CRM}}}}}, column_names=['version'], surrogate_key=true, column_types=['id']",
        ["3 mistakes", "column_names", "surrogate_key", "column_types"],
    ),
    "yaml_booleans": (
        f"sources={{'crm': {{{CRM}}}}}, column_names={{'version': false, 'ended_by_delete': true}}",
        ["2 mistakes", "column_names.version", "none to leave the column out", "got:    True"],
    ),
    "names_that_differ_by_case": (
        f"sources={{'crm': {{{CRM}}}, 'CRM': {{{CRM}}}}}, attributes={{'name': {{'from': ['crm']}}}}",
        ["sources.CRM", "differ by more than their case"],
    ),
    "bad_end": (
        f"sources={{'crm': {{{CRM}}}}}, valid_to_current='forever'",
        ["valid_to_current", "forever"],
    ),
    "two_types_of_a_flag": (
        f"sources={{'crm': {{{CRM}}}}}, current_values=['Y', 0]",
        ["current_values", "two values of one type that differ", "got:    ['Y', 0]"],
    ),
    "empty_value": (
        f"sources={{'crm': {{{CRM}, 'on_tie': ''}}}}",
        ["sources.crm.on_tie", "got:    ''"],
    ),
    "setting_in_a_name": (
        f"sources={{'crm': {{{CRM}}}}}, column_names={{'valid_from': '${{from}}'}}",
        ["column ${from}", "a name without ${"],
    ),
    "bad_column_name": (
        f"sources={{'crm': {{{CRM}}}}}, column_names={{'valid_form': 'x'}}",
        ["column_names.valid_form"],
    ),
    "untyped": (
        "sources={'c': {'relation': 'crm', 'changed_at': 'at'}}, attributes=['name']",
        ["column_types.name", "column_types.id", "cannot be looked up"],
    ),
    "two_orders": (
        f"sources={{'crm': {{{CRM}, 'tie_break_by': 'seq', 'sequence_by': 'seq'}}}}",
        ["sources.crm.sequence_by", "this option, or tie_break_by", "got:    both"],
    ),
    "no_sequence": (
        f"sources={{'crm': {{{CRM}, 'sequence_by': 'lsn', 'ignore_nulls': ['nam'], 'unchanged_value': ['name']}}}}",
        ["sources.crm.sequence_by", "got:    lsn", "sources.crm.ignore_nulls", "a map from column to value"],
    ),
    "mark_of_another_type": (
        f"sources={{'crm': {{{CRM}, 'unchanged_value': {{'seq': 'none', 'name': 'x'}}}}}}",
        ["1 mistake", "sources.crm.unchanged_value.seq", "a value of type int"],
    ),
    "feed_of_snapshots": (
        (
            "sources={'crm': {'relation': relation('crm'), 'snapshot_at': 'at', 'ignore_nulls': true, "
            "'truncated_when': 'seq = 1', 'sequence_by': 'seq'}}"
        ),
        ["sources.crm.ignore_nulls", "sources.crm.truncated_when", "sources.crm.sequence_by", "a source of changes"],
    ),
    "parts_of_changes": (
        f"sources={{'crm': {{{CRM}, 'within': 'name'}}}}",
        ["sources.crm.within", "an option of a source of snapshots"],
    ),
    "parts_that_stay": (
        "sources={'crm': {'relation': relation('crm'), 'snapshot_at': 'at', 'on_absence': 'ignore', 'within': 'name'}}",
        ["sources.crm.within", "on_absence: ignore"],
    ),
    "first_start": (
        f"sources={{'crm': {{{CRM}}}}}, valid_from_first={{'crm': 'name', 'cmr': 'at'}}",
        ["valid_from_first.crm", "a date or a timestamp", "valid_from_first.cmr", "did you mean crm?"],
    ),
    "nameless_deletions": (
        f"sources={{'crm': {{{CRM}}}}}, deleted_rows=true, column_names={{'is_deleted': none}}",
        ["column_names.is_deleted", "deleted_rows"],
    ),
    "several": (
        (
            f"sources={{'crm': {{{CRM}, 'wher': '1'}}}}, attributes={{'nam': 2, 'name': 9}}, exists_in='x', "
            "valid_from_first='soon'"
        ),
        [
            "5 mistakes",
            "sources.crm.wher",
            "attributes.nam",
            "attributes.name.scd_type",
            "exists_in",
            "valid_from_first",
        ],
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_refused(name: str) -> None:
    arguments, parts = CALLS[name]
    config = {"materialized": "healing_table", "unique_key": "id"}
    project = Project(CATALOGUE, config=config, name=f"bad_{name}")
    with pytest.raises(CompilerError) as error:
        project.render(f"{{{{ healing_tables.dimension({arguments}) }}}}")
    for part in [f"bad_{name}", "nothing was written", "wanted:", "got:", "remedy:", *parts]:
        assert part in str(error.value)


def test_a_mistake_in_several_sources_is_reported_once() -> None:
    sources = f"{{'crm': {{{CRM}}}, 'erp': {{{ERP}}}}}"
    project = Project({**CATALOGUE, "db.erp": {**CATALOGUE["db.erp"], "name": "date"}}, config={"unique_key": "id"})
    with pytest.raises(CompilerError, match="1 mistake;") as error:
        project.render(
            f"{{{{ healing_tables.dimension({sources}, attributes={{'*': {{'rule': 'first_present'}}}}) }}}}"
        )
    assert str(error.value).count("one type over all sources") == 1


@pytest.mark.parametrize(
    "given, wanted, got",
    [
        (["no_gaps"], "a map from check to its arguments", "no_gaps"),
        ({"no_gap": False}, "no_gaps", "no_gap"),
        ({"holes": False}, "single_current, no_overlaps, valid_order, no_consecutive_duplicates, no_gaps", "holes"),
        ({"no_gaps": {"tolerence": "1 day"}}, "tolerance", "tolerence"),
        ({"no_gaps": {"x": "1 day"}}, "one of allowed_gaps, tolerance", "x"),
        ({"valid_order": {"tolerance": "1 day"}}, "no argument", "tolerance"),
        ({"no_overlaps": "off"}, "true, false or a map of arguments", "off"),
        ({"no_overlaps": None}, "true, false or a map of arguments", "None"),
    ],
)
def test_checks_that_nobody_knows(given: object, wanted: str, got: str) -> None:
    project = Project(CATALOGUE)
    mistakes: list[dict[str, str]] = []
    project.macros._configured_checks(mistakes, given, {"no_gaps": {}})
    assert len(mistakes) == 1
    assert wanted in mistakes[0]["wanted"] and got in str(mistakes[0]["got"])


@pytest.mark.parametrize("kind", ["healing_table", "healing_merge", "capture"])
def test_options_in_the_wrong_place(kind: str) -> None:
    """In config() itself, nothing would read them; other names there are dbt's or the user's."""
    config = {
        "materialized": kind,
        "key_columns": ["id"],
        "tags": ["x"],
        "unique_key": "id",
        "my_own": 1,
        "column_types": {},
    }
    mistakes: list[dict[str, str]] = []
    Project(CATALOGUE, config=config).macros._check_model_options(mistakes)
    assert [(mistake["argument"], mistake["remedy"]) for mistake in mistakes] == [
        ("key_columns", "write meta={'healing_tables': {'key_columns': ...}}")
    ]
    mistakes = []
    Project(CATALOGUE, config={**config, "materialized": "view"}).macros._check_model_options(mistakes)
    assert mistakes == []


def test_operations_that_need_a_sql_model() -> None:
    """A Python model is named as one; another name is answered with the models that have sources."""

    def node(name: str, language: str, materialized: str) -> dict[str, object]:
        config = {"materialized": materialized}
        own = {"name": name, "unique_id": f"model.lab.{name}", "language": language, "config": config}
        return {"resource_type": "model", "raw_code": "", "package_name": "lab", **own}

    nodes = {"a": node("dim_player", "python", "healing_merge"), "b": node("dim_crm", "sql", "healing_table")}
    project = Project(CATALOGUE)
    project.context["graph"] = {"nodes": nodes}
    for name, wanted in {"dim_player": "dim_player, a Python model", "dim_other": "one of dim_crm"}.items():
        with pytest.raises(CompilerError, match=wanted):
            project.macros._find_sql_model("compare", name)


def test_known_options_are_listed_once() -> None:
    """For the first one that is similar to none of them; the same in both languages."""
    given, known = ["colour", "max_row", "zebra"], ["mode", "max_rows", "checks"]
    mistakes: list[dict[str, str]] = []
    Project(CATALOGUE).macros._check_options(mistakes, "options", given, known)
    wanted = ["one of mode, max_rows, checks", "max_rows", "one of the options listed above"]
    remedies = ["correct or remove it", "did you mean max_rows?", "correct or remove it"]
    assert [mistake["wanted"] for mistake in mistakes] == wanted
    assert [mistake["remedy"] for mistake in mistakes] == remedies
    found = unknown_options("options.", given, known)
    assert [mistake.wanted for mistake in found] == wanted
    assert [mistake.remedy for mistake in found] == remedies


def test_an_adapter_that_is_not_for_spark() -> None:
    """One sentence, before any statement."""
    project = Project(CATALOGUE)
    del project.context["options_clause"]
    project.context["adapter"].type = lambda: "duckdb"
    call = "{{ healing_tables.dimension({'crm': {'relation': relation('log'), 'changed_at': 'at'}}, 'id') }}"
    for render in (lambda: project.render(call), project.macros._session_settings):
        with pytest.raises(
            CompilerError, match="runs on Spark.*target unit uses the adapter duckdb. Nothing was written"
        ):
            render()
    assert project.queries == []


def test_a_wrong_attribute_lists_the_columns() -> None:
    source = "{'crm': {'relation': relation('log'), 'changed_at': 'at'}}"
    project = Project({f"{SCHEMA}.log": {"id": "int", "at": "date", "city": "string"}})
    with pytest.raises(CompilerError, match="did you mean city\\?; the columns are id, at, city"):
        project.render(f"{{{{ healing_tables.dimension({source}, 'id', ['cyti']) }}}}")


def test_checks_are_changed_by_what_is_given() -> None:
    given = {"no_gaps": {"tolerance": "1 day"}, "valid_order": False, "no_overlaps": True, "single_current": True}
    defaults = {"no_gaps": {}, "valid_order": {}, "single_current": {"at_most_one": True}}
    assert Project(CATALOGUE).macros._configured_checks([], given, defaults) == {
        "no_gaps": {"tolerance": "1 day"},
        "no_overlaps": {},
        "single_current": {"at_most_one": True},
    }


@pytest.mark.parametrize(
    ("begins", "is_refused"),
    [
        ("", True),
        ("{% set within = 1 %}", True),
        ("With Stg_CRM as (select * from x) ", False),
        ("with {{ ctes() }} ", False),
    ],
)
def test_a_text_where_a_ref_is_meant(begins: str, is_refused: bool) -> None:
    call = (
        "{{ healing_tables.dimension({'crm': {'relation': 'stg_crm', 'changed_at': 'at'}}, 'id', ['name'], "
        "column_types={'id': 'int', 'at': 'date', 'name': 'string'}) }}"
    )
    project = Project(CATALOGUE)
    node = SimpleNamespace(
        name="stg_crm",
        package_name="unit",
        resource_type="model",
        get={"package_name": "unit"}.get,
        latest_version=None,
    )
    project.context["graph"]["nodes"]["model.unit.stg_crm"] = node
    project.context["model"]["raw_code"] = begins + call
    if is_refused:
        with pytest.raises(CompilerError, match=r"the text stg_crm, which is a model\n.*write ref\('stg_crm'\)"):
            project.render(call)
    else:
        assert "from stg_crm" in project.render(call)


def test_values_and_columns_that_the_library_takes_for_others() -> None:
    with pytest.raises(SpecError) as error:
        DimensionSpec(
            key_columns="id",
            attributes={"name": 3},
            on_tie="greatst",
            on_schema_change="append",
            surrogate_key={"name": "k", "strategy": "hsah"},
            column_names={"previous_nam": "before"},
        )
    remedies = {mistake.where: mistake.remedy for mistake in error.value.mistakes}
    assert remedies == {
        "on_tie": "did you mean greatest?",
        "on_schema_change": "choose one of them",
        "surrogate_key.strategy": "did you mean hash?",
        "column_names.previous_nam": "did you mean previous_name?",
    }


@pytest.mark.parametrize(
    ("kind", "shown"), [("model", "model dim"), ("test", "data test dim"), ("unit_test", "unit test dim")]
)
def test_an_error_names_what_has_the_mistake(kind: str, shown: str) -> None:
    project = Project(CATALOGUE)
    project.context["model"]["resource_type"] = kind
    with pytest.raises(CompilerError, match=rf"healing_tables.dimension\(\) in {shown} has"):
        project.render("{{ healing_tables.dimension({}, 'id') }}")
