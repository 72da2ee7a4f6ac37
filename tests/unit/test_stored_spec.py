"""What the rows of a stored dimension show about its open end and its flags."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from pathlib import Path
from typing import Any

import pytest
from open_end_examples import DEFAULT, EXAMPLES
from rendering import Project

from healing_tables import DimensionSpec, SpecError, TargetError
from healing_tables.definition.layout import Column, Layout
from healing_tables.definition.spec import OPEN_END, is_named
from healing_tables.definition.stored_spec import RowGroup, as_stored
from healing_tables.sql.instants import TIMESTAMP, micros

END = "9999-12-31 00:00:00"


def layout_of(flag: str | None, **more: str) -> tuple[Layout, dict[str, str]]:
    """Args: flag: the type of is_current; more: name of a generated column to its type."""
    types = {"valid_from": TIMESTAMP, "valid_to": TIMESTAMP, **({"is_current": flag} if flag else {}), **more}
    key, name = Column("id", "id", "int"), Column("name", "name", "string")
    return Layout((key,), (name,), {column: column for column in types}, TIMESTAMP), types


def group_of(kind: str, low: str | None, high: str | None, flag: Any, rows: int, deleted: Any = None) -> RowGroup:
    ends = [None if end is None else micros(end) for end in (low, high)]
    return RowGroup(kind, ends[0], ends[1], flag, rows, deleted)


def options_of(given: dict[str, Any]) -> dict[str, Any]:
    named = {"valid_to_current": given["end"], "current_values": given["flags"]}
    found = {name: value for name, value in named.items() if value != DEFAULT}
    return {**found, "current_while_deleted": given["while_deleted"]}


@pytest.mark.parametrize("given", EXAMPLES.values(), ids=EXAMPLES)
def test_what_rows_show(given: dict[str, Any]) -> None:
    layout, types = layout_of(given["type"])
    spec = DimensionSpec(key_columns="id", **options_of(given))
    groups = [group_of(*group) for group in given["groups"]]
    if given["refuses"]:
        with pytest.raises(TargetError) as refused:
            as_stored(spec, layout, types, groups)
        assert [text for text in given["refuses"] if text not in str(refused.value)] == []
        assert "nothing was written" in str(refused.value)
        return
    found, _ = as_stored(spec, layout, types, groups)
    end, *flags = given["shows"]
    wanted = None if end is None else micros(OPEN_END if end == DEFAULT else end)
    assert (None if found.valid_to_current is None else micros(found.valid_to_current)) == wanted
    assert list(found.current_values) == [
        value if value != DEFAULT else index == 0 for index, value in enumerate(flags)
    ]


@pytest.mark.parametrize("given", EXAMPLES.values(), ids=EXAMPLES)
def test_what_rows_show_in_sql(given: dict[str, Any]) -> None:
    """Of diagnose, repair, and the tests of a model that merges."""
    groups = [
        {"kind": kind, "low": shown_end(low), "high": shown_end(high), "flag": flag, "rows": rows}
        for kind, low, high, flag, rows in given["groups"]
    ]
    request = {
        "is_current": None if given["type"] is None else "is_current",
        "flag_type": given["type"],
        "to_type": "timestamp",
        "end": given["end"],
        "flags": None if given["flags"] == DEFAULT else given["flags"],
        "while_deleted": given["while_deleted"],
    }
    mistakes: list[dict[str, str]] = []
    macros = Project({}).macros
    end = macros._end_of_groups(mistakes, groups, request)
    flags = [DEFAULT, DEFAULT]
    if given["type"] is not None:
        flags = macros._flags_of_groups(mistakes, groups, request, end)
    if given["refuses"]:
        assert [mistake["argument"] for mistake in mistakes] == [given["refuses"][0]]
        return
    assert mistakes == []
    wanted, *wanted_flags = given["shows"]
    assert shown_end(end if end != DEFAULT else END) == shown_end(wanted if wanted != DEFAULT else END)
    assert flags == wanted_flags


def shown_end(end: str | None) -> str | None:
    return None if end is None else end if len(end) > 10 else f"{end} 00:00:00"


def test_without_ends_the_flag_shows_what_is_open() -> None:
    layout = dataclasses.replace(layout_of("string")[0], names={"is_current": "is_current"})
    types = {"is_current": "string"}

    def found(*flags: str, **options: Any) -> tuple[Any, ...]:
        groups = [RowGroup("none", None, None, flag, 1) for flag in flags]
        spec, _ = as_stored(DimensionSpec(key_columns="id", **options), layout, types, groups)
        return tuple(spec.current_values)

    assert found("Y", "N") == found("N", "Y") == found("Y") == ("Y", "N")
    assert found("X", current_values=["X", "Z"]) == ("X", "Z")
    for flags, options in ((("Y", "A"), {}), (("Y", "A"), {"current_values": ["Y", "N"]}), (("A", "B", "C"), {})):
        with pytest.raises(TargetError, match="current_values"):
            found(*flags, **options)


def test_values_of_ended_by_delete() -> None:
    layout, types = layout_of("boolean", ended_by_delete="string")

    def found(opened: str | None, *ended: str, **options: Any) -> tuple[Any, ...]:
        groups = [group_of("open", None, None, True, 2, opened)] if opened else []
        groups += [group_of("past", "2020-01-01", "2020-01-01", False, 1, value) for value in ended]
        spec, _ = as_stored(DimensionSpec(key_columns="id", **options), layout, types, groups)
        return tuple(spec.deleted_values)

    assert found("N", "N", "Y") == found("N", "N") == ("Y", "N")
    assert found("alive", "alive", "dead") == ("dead", "alive")
    assert found("N", "Y", deleted_values=["Y", "N"]) == ("Y", "N")
    with pytest.raises(TargetError, match="deleted_values"):
        found("F", "T", deleted_values=["Y", "N"])
    with pytest.raises(TargetError, match="ended_by_delete"):
        found(None)  # an empty table with texts


def test_a_type_that_holds_no_flag() -> None:
    layout, types = layout_of("double")
    with pytest.raises(TargetError, match="is_current"):
        as_stored(DimensionSpec(key_columns="id"), layout, types, [])


def test_a_moment_after_the_year_9999() -> None:
    """The last second of 9999 in New York."""
    layout, types = layout_of("boolean")
    late = micros("9999-12-31 23:59:59") + 5 * 3600 * 1_000_000
    spec, _ = as_stored(DimensionSpec(key_columns="id"), layout, types, [RowGroup("open", late, late, True, 2)])
    assert micros(spec.valid_to_current or "") == late
    with pytest.raises(TargetError, match="outside the years"):
        named = DimensionSpec(key_columns="id", valid_to_current=END)
        as_stored(named, layout, types, [RowGroup("open", late, late, True, 2)])


def test_a_day_is_the_end_of_dates() -> None:
    layout, types = layout_of("boolean")
    layout = dataclasses.replace(layout, moment_type="date")
    types = {name: "date" if kind == TIMESTAMP else kind for name, kind in types.items()}
    spec = DimensionSpec(key_columns="id", valid_to_current="2999-12-31 23:59:59")
    found, _ = as_stored(spec, layout, types, [group_of("open", "2999-12-31", "2999-12-31", True, 2)])
    assert found.valid_to_current == "2999-12-31 23:59:59"


def test_a_default_is_not_a_name(tmp_path: Path) -> None:
    plain = DimensionSpec(key_columns="id")
    (tmp_path / "spec.yml").write_text("key_columns: id\nvalid_to_current: null\n")
    for spec in (
        plain,
        DimensionSpec.from_dict({"key_columns": "id"}),
        dataclasses.replace(plain, full_batch=True),
        DimensionSpec.from_dict(dataclasses.asdict(plain)),
        copy.deepcopy(plain),
        pickle.loads(pickle.dumps(plain)),
    ):
        assert not is_named(spec.valid_to_current)
        assert not is_named(spec.current_values)
        assert not is_named(spec.deleted_values)
        assert f"valid_to_current='{END}', current_values=(True, False), deleted_values=(True, False)" in repr(spec)
    for given in ({"valid_to_current": END}, {"valid_to_current": None}, {"current_values": [True, False]}):
        spec = DimensionSpec.from_dict({"key_columns": "id", **given})
        assert is_named(getattr(spec, next(iter(given))))
    assert is_named(DimensionSpec.from_yaml(tmp_path / "spec.yml").valid_to_current)
    with pytest.raises(SpecError):
        DimensionSpec(key_columns="id", valid_to_current=2999)  # type: ignore[arg-type]
