"""Reading a dimension: what is current, what was in force, and the changes that lead from one state to another."""

from __future__ import annotations

import datetime as dt
import random
from itertools import pairwise
from typing import Any

import pytest
from rendered import Rendered
from tables import plain_rows

DIM = "api.Relation.create(schema='global_temp', identifier='dim_{}')"
COLUMNS = [
    ["id", "int"],
    ["city", "string"],
    ["tier", "int"],
    ["valid_from", "timestamp"],
    ["valid_to", "timestamp"],
    ["is_current", "boolean"],
]
KINDS = {"timestamp": "timestamp", "date": "date", "local": "timestamp_ntz", "named": "timestamp"}
# Boundaries, moments beside them, and the end of time.
MOMENTS = [
    "2023-12-31",
    "2024-01-03",
    "2024-01-04 12:00",
    "2024-01-06 23:59:59.999999",
    "2024-01-07",
    "2024-01-09",
    "9999-12-31 23:59:59",
]
NAMED = "valid_from='began', valid_to='ended'"
# name: (call, what the error has to say)
REFUSED = {
    "at": ("versions_at({}, 'yesterday')", ["at", "yesterday", "2024-01-31"]),
    "no_day": ("versions_at({}, '2023-02-29')", ["at", "got:    2023-02-29"]),
    "no_hour": ("versions_at({}, '2024-02-29 24:00')", ["at", "got:    2024-02-29 24:00"]),
    "flag": ("current_versions({}, 'is_curent')", ["is_current", "got:    is_curent"]),
    "changes": (
        "changes_between({}, ['idd'], '2024-02-01', '2024-01-01', 'town', valid_to='id')",
        ["4 mistakes", "idd", "town", "a moment before until", "moment column id"],
    ),
    "no_key": ("changes_between({}, [], none, '2024-01-01')", ["key_columns", "since"]),
}


def versions() -> list[list[Any]]:
    """Versions at midnights that touch, leave gaps, end or stay open; a city may repeat."""
    choose, rows = random.Random(3), list[list[Any]]()
    for key in range(30):
        days = sorted(choose.sample(range(1, 11), choose.randint(1, 6)))
        for first, last in zip(days, [*days[1:], None], strict=True):
            if last is not None and choose.random() < 0.3:
                continue  # a gap
            is_open = last is None and choose.random() < 0.7
            closed = f"2024-01-{last or 20:02}"
            end = choose.choice(["9999-12-31", None]) if is_open else closed
            row = [key, choose.choice("ab"), choose.randint(1, 2), f"2024-01-{first:02}", end]
            rows.append([*row, is_open])
    return rows


def in_force(at: str) -> list[list[Any]]:
    moment = dt.datetime.fromisoformat(at)
    return [
        row
        for row in versions()
        if dt.datetime.fromisoformat(row[3]) <= moment and (row[5] or moment < dt.datetime.fromisoformat(row[4]))
    ]


@pytest.fixture(scope="module")
def built(rendered: Rendered) -> Rendered:
    for name, kind in KINDS.items():
        columns = [[one, kind if one.startswith("valid") else other] for one, other in COLUMNS]
        if name == "named":
            columns = [[{"valid_from": "began", "valid_to": "ended"}.get(a, a), b] for a, b in columns]
        rendered.view(f"dim_{name}", columns, versions())
        renamed = f", {NAMED}" if name == "named" else ""
        for number, at in enumerate(MOMENTS):
            rendered.model(f"at_{name}_{number}", call(f"versions_at({{}}, '{at}'{renamed})", name))
            if name in ("timestamp", "named"):
                text = f"changes_between({{}}, 'id', '{MOMENTS[1]}', '{at}'{renamed})"
                rendered.model(f"since_{name}_{number}", call(text, name)) if number else None
    rendered.model("current_flag", call("current_versions({})", "date"))
    rendered.model("current_no", call("current_versions({}, current_value=false)", "date"))
    rendered.model("current_end", call("current_versions({}, none)", "date"))
    rendered.model(
        "tracked",
        call(f"changes_between({{}}, 'id', '{MOMENTS[0]}', '2024-01-20', 'city')", "date"),
    )
    rendered.model(
        "cte",
        "with dims as (select * from global_temp.dim_local), "
        "state as ({{ healing_tables.versions_at('dims', '2024-01-07') }}) "
        "{{ healing_tables.changes_between('state', 'id', '2023-01-01', '2024-02-01') }}",
    )
    return rendered


@pytest.fixture(scope="module")
def refused(built: Rendered) -> Rendered:
    for name, (text, _) in REFUSED.items():
        built.model(f"bad_{name}", call(text, "timestamp"))
    return built


def call(text: str, name: str) -> str:
    return f"{{{{ healing_tables.{text.format(DIM.format(name))} }}}}"


def found(rendered: Rendered, name: str, *columns: str) -> list[tuple[Any, ...]]:
    return plain_rows(rendered.made(name), columns)


def rows_of(rows: list[list[Any]]) -> list[tuple[Any, ...]]:
    return sorted((tuple(row[:3]) for row in rows), key=repr)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("name", KINDS)
def test_the_state_at_a_moment(built: Rendered, name: str) -> None:
    sizes = set()
    for number, at in enumerate(MOMENTS):
        wanted = rows_of(in_force(at))
        assert found(built, f"at_{name}_{number}", "id", "city", "tier") == wanted, at
        sizes.add(len(wanted))
    assert len(sizes) > 4


@pytest.mark.usefixtures("interpreted")
def test_the_current_rows(built: Rendered) -> None:
    current = rows_of([row for row in versions() if row[5]])
    assert found(built, "current_flag", "id", "city", "tier") == current
    assert found(built, "current_end", "id", "city", "tier") == current
    others = rows_of([row for row in versions() if not row[5]])
    assert found(built, "current_no", "id", "city", "tier") == others


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("name", ["timestamp", "named"])
def test_changes_lead_from_one_state_to_the_other(built: Rendered, name: str) -> None:
    reasons = set()
    for number in range(1, len(MOMENTS)):
        state = {row[0]: tuple(row[:3]) for row in in_force(MOMENTS[1])}
        changes = built.made(f"since_{name}_{number}").collect()
        for change in sorted(changes, key=lambda row: row["changed_at"]):
            before, after = change["before"], change["after"]
            assert (tuple(before)[:3] if before else None) == state.pop(change["id"], None)
            assert (before is None) == (change["change_reason"] in ("new", "returned"))
            if after:
                state[change["id"]] = tuple(after)[:3]
            reasons.add(change["change_reason"])
        assert sorted(state.values(), key=repr) == rows_of(in_force(MOMENTS[number]))
    assert reasons == {"new", "changed", "returned", "ended"}


@pytest.mark.usefixtures("interpreted")
def test_only_what_is_tracked_counts(built: Rendered) -> None:
    rows = built.made("tracked").collect()
    changed = [row for row in rows if row["change_reason"] == "changed"]
    assert changed
    assert all(row["before"] != row["after"] for row in changed)
    assert {tuple(row["after"].asDict()) for row in changed} == {("city",)}
    ordered = [[*row[:3], row[3], row[4] or "9999-12-31"] for row in versions()]
    wanted = sum(one[0] == two[0] and one[4] == two[3] and one[1] != two[1] for one, two in pairwise(ordered))
    assert len(changed) == wanted


@pytest.mark.usefixtures("interpreted")
def test_ctes_can_be_read(built: Rendered) -> None:
    assert {row[2] for row in found(built, "cte", "id", "changed_at", "change_reason")} <= {
        "new",
        "ended",
    }
    assert len(found(built, "cte")) > len(in_force("2024-01-07"))


@pytest.mark.parametrize("name", REFUSED)
def test_refused(refused: Rendered, name: str) -> None:
    message = refused.errors[f"bad_{name}"]
    for part in REFUSED[name][1]:
        assert part in message
