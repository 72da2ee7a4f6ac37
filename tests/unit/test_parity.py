"""Rules that live in SQL and in Python, each against one table of examples."""

from __future__ import annotations

import dataclasses
import datetime as dt
import hashlib
import inspect
import re
import uuid
from types import SimpleNamespace

import pytest
from hash_examples import HASHED
from instant_examples import INSTANTS
from near_names import NEAR, OPTIONS
from pyspark.sql import types as t
from rendering import Project
from type_examples import (
    COMMON,
    HOLDS,
    HOLDS_IN_AUDITS,
    IN_ICEBERG,
    IN_JSON,
    IN_ROW_TEXT,
    PLAIN,
    QUOTED,
    WITHOUT_EQUALITY,
)

from healing_tables import DimensionSpec, Mistake, SpecError, as_of
from healing_tables.as_of import known_columns
from healing_tables.definition.generated import GENERATED
from healing_tables.definition.layout import Column, Layout
from healing_tables.definition.options import nearest_name
from healing_tables.definition.stored_layout import fits
from healing_tables.merge import erased
from healing_tables.plan.batch import reason
from healing_tables.plan.validation import GUARDED_FROM
from healing_tables.sql import hashing, instants, row_text, types, values
from healing_tables.targets import iceberg
from healing_tables.targets.delta import MAINTENANCE
from healing_tables.targets.retry import ATTEMPTS

MACROS = Project({}).macros


def in_python(text: str) -> str | None:
    try:
        micros = instants.micros(text)
    except ValueError:
        return None
    moment = instants.EPOCH + dt.timedelta(microseconds=micros)
    fraction = f"{moment:.%f}".rstrip("0").rstrip(".")
    return f"{moment:%Y-%m-%d %H:%M:%S}".rjust(19, "0") + fraction


@pytest.mark.parametrize(("text", "moment"), INSTANTS.items())
def test_moments(text: str, moment: str | None) -> None:
    found = MACROS._parse_instant(text)
    assert (None if found is None else " ".join(found)) == moment
    assert in_python(text) == moment


@pytest.mark.parametrize(("kind", "_", "text"), HASHED.values(), ids=HASHED)
def test_hash_text(kind: str, _: str, text: str) -> None:
    """Both write the same SQL; what it gives is tested with Spark."""
    in_library = re.sub(r"\btimestamp\b", instants.TIMESTAMP, kind)
    assert MACROS._hash_text("c", kind) == hashing.hash_text("c", in_library)


@pytest.mark.parametrize("kind", IN_ROW_TEXT)
def test_row_text(kind: str) -> None:
    """Both write the same SQL; what it gives is tested with Spark."""
    in_library = re.sub(r"(?<=[<:,])timestamp(?=[,>])|^timestamp$", instants.TIMESTAMP, kind)
    columns, same = {"a b": kind, "c": "int"}, {"a b": in_library, "c": "int"}
    assert MACROS._row_text("r", columns) == row_text.row_text("r", same)
    assert MACROS._parsed_row("t", columns) == row_text.parsed_row("t", same)
    assert MACROS._as_json("v", kind, back=True) == row_text.as_json("v", in_library, back=True)


@pytest.mark.parametrize("kind", WITHOUT_EQUALITY)
def test_types_without_equality(kind: str) -> None:
    assert MACROS._has_no_equality(kind) is WITHOUT_EQUALITY[kind]
    assert types.has_no_equality(kind) is WITHOUT_EQUALITY[kind]


@pytest.mark.parametrize(("left", "right"), COMMON)
def test_common_type(left: str, right: str) -> None:
    wanted = COMMON[left, right]
    for one, other in ((left, right), (right, left)):
        assert MACROS._common_type([one, other]) == (wanted or "mixed")
        assert types.common_type(one, other) == wanted


@pytest.mark.parametrize(("new", "old"), HOLDS)
def test_types_that_hold_others(new: str, old: str) -> None:
    """A rebuild and a merge widen a column, or refuse to, alike."""
    assert MACROS._type_holds(new, old) is HOLDS[new, old]
    assert fits(old, new) is HOLDS[new, old]


@pytest.mark.parametrize(("new", "old"), [*HOLDS, *HOLDS_IN_AUDITS])
def test_types_of_audits_that_hold_others(new: str, old: str) -> None:
    wanted = {**HOLDS, **HOLDS_IN_AUDITS}[new, old]
    assert MACROS._type_holds(new, old) is wanted
    assert known_columns.holds(new, old) is wanted


@pytest.mark.parametrize("kind", IN_JSON)
def test_types_in_texts_of_rows(kind: str) -> None:
    assert MACROS._type_in_text(kind) == known_columns.type_in_text(kind) == IN_JSON[kind]


@pytest.mark.parametrize("kind", PLAIN)
def test_types_of_plain_text(kind: str) -> None:
    """What is read is SQL of that type; a test with Spark has values."""
    assert MACROS._plain_type(kind) == types.plain_type(kind) == PLAIN[kind]
    assert MACROS._normalized_value("c", kind) == values.normal("c", kind)
    assert (values.normal("c", kind) == "c") == (PLAIN[kind] == kind and "double" not in kind)


@pytest.mark.parametrize("kind", QUOTED)
def test_names_of_fields_are_quoted(kind: str) -> None:
    assert MACROS._type_name(kind) == QUOTED[kind]


def data_type(kind: str) -> t.DataType:
    """Spark's own parser needs a session."""
    if match := re.fullmatch(r"array<(.*)>", kind):
        return t.ArrayType(data_type(match[1]))
    if match := re.fullmatch(r"map<([^,]*),(.*)>", kind):
        return t.MapType(data_type(match[1]), data_type(match[2]))
    if match := re.fullmatch(r"struct<(.*)>", kind):
        fields = re.findall(r"(\w+):((?:[^,<>]|<.*>)+)", match[1])
        return t.StructType([t.StructField(name, data_type(inner)) for name, inner in fields])
    if match := re.fullmatch(r"(char|varchar)\((\d+)\)", kind):
        return {"char": t.CharType, "varchar": t.VarcharType}[match[1]](int(match[2]))
    if match := re.fullmatch(r"decimal\((\d+),(\d+)\)", kind):
        return t.DecimalType(int(match[1]), int(match[2]))
    simple = (t.ByteType(), t.ShortType(), t.IntegerType(), t.TimestampNTZType())
    return next(found for found in simple if found.simpleString() == kind)


@pytest.mark.parametrize("kind", IN_ICEBERG)
def test_types_that_iceberg_stores(kind: str) -> None:
    assert MACROS._iceberg_type(kind) == IN_ICEBERG[kind]
    assert data_type(kind).simpleString() == kind
    assert iceberg.as_stored(data_type(kind)).simpleString() == IN_ICEBERG[kind]


def test_reasons_for_which_rows_are_set_aside() -> None:
    """A build and a merge give the same words."""
    source = {"key_columns": [{"column": "id"}, {"column": "region"}], "moment": "at", "types": {"at": "timestamp"}}
    in_sql = MACROS._set_aside_reason({"valid_to_current": None}, source)
    layout = Layout((Column("id", "id", "int"), Column("region", "region", "int")), (), {}, instants.TIMESTAMP)
    in_library = reason(["id", "region"], "at", layout, DimensionSpec(key_columns=["id", "region"], changed_at="at"))
    wanted = [
        "NULL in key column id",
        "NULL in key column region",
        "NULL moment in at",
        "moment at or after the end of time in at",
    ]
    assert re.findall("then '([^']*)'", in_sql) == re.findall("then '([^']*)'", in_library) == wanted


def test_options_of_a_merge() -> None:
    """Kinds of tables, places of logs, on_schema_change and full refreshes are settings of dbt's own; the moment of a
    batch is an argument of `merge`."""
    in_library = {field.name for field in dataclasses.fields(DimensionSpec)} - {"on_schema_change"}
    of_dbt = {"allow_full_refresh", "key_buckets", "cluster_by", "log_schema", "at"}
    assert set(MACROS._known_options("healing_merge")) - of_dbt == in_library


def test_defaults() -> None:
    spec = DimensionSpec(key_columns="id")
    assert MACROS._valid_to_current() == spec.valid_to_current
    ratios = MACROS._removal_ratios([])
    assert ratios["max_removed_keys_ratio"] == spec.max_removed_keys_ratio
    names = MACROS._generated_names([], {})
    assert list(names) == list(GENERATED)
    # a rebuild knows of how many slices a row is made; no batch does
    shown = {name for name, column in names.items() if column is not None}
    assert shown - {"compressed_row_count"} == {name for name, is_shown in GENERATED.items() if is_shown}


def test_commits_of_others() -> None:
    """Which operations of Delta change no rows; how often a build and a merge try again."""
    assert tuple(MACROS._delta_maintenance_operations()) == MAINTENANCE
    assert MACROS._max_attempts() == ATTEMPTS
    assert MACROS._iceberg_attempts() == iceberg.RETRIES


def test_branches_in_iceberg() -> None:
    """Neither a build nor a merge takes a branch of the other for its own."""
    run = uuid.uuid4()
    project = Project({})
    project.context["invocation_id"] = str(run)
    of_build, of_merge = project.macros._iceberg_own_branch(), f"{iceberg.PREFIX}1700000000_42_{run}"
    pattern = re.compile(project.macros._iceberg_branch_pattern())
    assert pattern.fullmatch(of_build)
    assert not pattern.fullmatch(of_merge)
    assert iceberg.BRANCH.fullmatch(of_merge)
    assert not of_build.startswith(iceberg.PREFIX)


def test_the_method_of_a_look_up() -> None:
    """SQL counts the versions of a table; it does not count those of a view, and Python not those of a DataFrame."""
    assert inspect.signature(as_of).parameters["versions_per_key"].default is None
    project = Project({})
    project.context["load_relation"] = lambda relation: SimpleNamespace(is_view=True)
    assert project.macros._has_few_versions("db.versions", []) is False


def test_guards_begin_at_the_same_number_of_keys() -> None:
    def refused(current_keys: int) -> bool:
        project = Project({})
        run = {"settings": {"ratios": project.macros._removal_ratios([])}, "mode": "rebuild"}
        figures = {
            "candidate_versions": 1,
            "current_keys": current_keys,
            "ended_keys": current_keys,
            "closed_versions": 0,
            "lost_versions": 0,
        }
        mistakes: list[object] = []
        project.context["healing_tables"].replace("_refuse", lambda run, found, candidate: mistakes.extend(found))
        project.macros._check_guards(run, figures, None)
        return bool(mistakes)

    assert (refused(GUARDED_FROM - 1), refused(GUARDED_FROM)) == (False, True)


@pytest.mark.parametrize("scd_type", range(-1, 8))
def test_scd_types(scd_type: int) -> None:
    """Type 4 is a pair of tables: a merge keeps it, a select cannot."""
    mistakes: list[object] = []
    MACROS._attribute_options(mistakes, "name", scd_type)
    assert (not mistakes) == (scd_type in (0, 1, 2, 3, 6))
    if scd_type in (0, 1, 2, 3, 4, 6):
        assert DimensionSpec(key_columns="id", attributes={"name": scd_type}).key_columns
    else:
        with pytest.raises(SpecError, match="scd_type"):
            DimensionSpec(key_columns="id", attributes={"name": scd_type})


@pytest.mark.parametrize(("name", "meant"), NEAR.items())
def test_near_names(name: str, meant: str | None) -> None:
    assert MACROS._nearest_name(name, list(OPTIONS)) == meant
    assert nearest_name(name, OPTIONS) == meant


def test_keyed_hash_of_erased_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both derive the same from the secret, and write the same SQL."""
    text = "correct horse battery staple"
    monkeypatch.setenv(erased.SECRET, text)
    secret, mistakes = erased.Secret.of(text), list[dict[str, str]]()
    assert MACROS._erasure_secret(mistakes) == secret._asdict()
    assert secret.inner == hashlib.md5(b"healing_tables inner correct horse battery staple").hexdigest()
    assert len({*secret}) == 3 and text not in "".join(secret)
    assert MACROS._keyed_hash(secret._asdict(), "h") == erased.keyed_hash(secret, "h")
    assert not mistakes
    monkeypatch.setenv(erased.SECRET, text[: erased.SHORTEST - 1])
    assert MACROS._erasure_secret(mistakes) is None and len(mistakes) == 1


@pytest.mark.parametrize(
    ("keys", "got"),
    [
        (["id = 1 at 2024-01-02", "id = 10 at 2024-01-02"], "2 keys: {1} at 2024-01-02; {10} at 2024-01-02"),
        (["id = 10", "id = 1"], "2 keys: {10}; {1}"),
        (["id = 1"], "{1}"),
        ([], "3 of 20 (0.15)"),
    ],
)
def test_mistakes_in_the_log(keys: list[str], got: str) -> None:
    """They name no keys, but their hashes."""
    mistakes: list[dict[str, str]] = []
    text = got.replace("{1}", "id = 1").replace("{10}", "id = 10")
    MACROS._mistake(mistakes, "keys", "one row", text, "look", keys="; ".join(keys) or None)
    hashed = {number: f"key {hashlib.md5(f'id = {number}'.encode()).hexdigest()}" for number in (1, 10)}
    wanted = "keys: " + got.replace("{1}", hashed[1]).replace("{10}", hashed[10])
    assert MACROS._logged_mistake(mistakes[0]) == wanted
    named = tuple(key.split(" at ")[0] for key in keys)
    assert Mistake("keys", "one row", text, "look", named).logged == wanted
