"""The steps, one by one: each against its picture, and chained against dimension()."""

from __future__ import annotations

import pytest
from hash_examples import HASHED
from rendered import Rendered
from tables import plain_rows

SETUP = """
with crm as (
    select * from values
        (1, date '2024-01-01', 'Ann', false, 1), (1, date '2024-01-03', 'Ann', false, 2),
        (1, date '2024-01-05', 'Bea', false, 3), (1, date '2024-01-05', 'Bee', false, 4),
        (1, date '2024-01-08', null, true, 5), (1, date '2024-01-09', 'Bee', false, 6),
        (2, date '2024-01-02', 'Cid', true, 7), (2, date '2024-01-04', 'Cid', false, 8),
        (null, date '2024-01-04', 'Nil', false, 9), (3, null, 'Nul', false, 10)
    as crm(id, changed_on, name, gone, seq)
), web as (
    select * from values
        (1, date '2024-01-02', 'a@x'), (2, date '2024-01-02', 'c@x'), (1, date '2024-01-04', 'a@x'),
        (1, date '2024-01-06', 'b@x'), (2, date '2024-01-06', 'c@x')
    as web(id, snapshot_on, email)
), taken as (
    select * from values (date '2024-01-02'), (date '2024-01-04'), (date '2024-01-06'), (date '2024-01-07')
    as taken(snapshot_on)
), terms as (
    select * from values
        (1, date '2024-01-01', date '2024-01-04', 'x'), (1, date '2024-01-04', date '9999-12-31', 'y'),
        (2, date '2024-01-03', date '2024-01-05', 'z'), (2, date '2024-01-08', cast(null as date), 'z'),
        (3, date '2024-01-08', date '2024-01-08', 'empty')
    as terms(id, start, end, office)
)
"""
EFFECTIVITY = {
    "crm": "healing_tables.effectivity('crm', 'id', 'changed_on', ['name'], 'seq', 'gone')",
    "web": "healing_tables.snapshot_effectivity('web', ['id'], 'snapshot_on', ['email'], calendar='taken')",
    "terms": "healing_tables.period_effectivity('terms', ['id'], 'start', 'end', ['office'])",
}
SOURCES = """{
    'crm': {'relation': 'crm', 'changed_at': 'changed_on', 'tie_break_by': 'seq', 'deleted_when': 'gone'},
    'web': {'relation': 'web', 'snapshot_at': 'snapshot_on', 'calendar': 'taken'},
    'terms': {'relation': 'terms', 'valid_from': 'start', 'valid_to': 'end'}
}"""
ATTRIBUTES = "{'name': {'from': ['crm']}, 'email': {'from': ['web']}, 'office': {'from': ['terms']}}"
NO_HASH = "column_names={'key_hash': none, 'row_hash': none}"


@pytest.fixture(scope="module")
def steps(rendered: Rendered) -> Rendered:
    for name, call in EFFECTIVITY.items():
        rendered.model(f"eff_{name}", f"{SETUP}{{{{ {call} }}}}")
    rendered.model(
        "slices_crm",
        f"{SETUP}, eff as ({{{{ {EFFECTIVITY['crm']} }}}}) {{{{ healing_tables.time_slices('eff', 'id', ['name']) }}}}",
    )
    chain = ", ".join(f"eff_{name} as ({{{{ {call} }}}})" for name, call in EFFECTIVITY.items())
    named = "{" + ", ".join(f"'{name}': 'eff_{name}'" for name in EFFECTIVITY) + "}"
    rendered.model(
        "chained",
        f"{SETUP}, {chain}, slices as ({{{{ healing_tables.unified_timeline({named}, ['id'], {ATTRIBUTES}, "
        f"exists_in=['crm', 'terms']) }}}}) "
        "{{ healing_tables.compress('slices', ['id'], ['name', 'email', 'office']) }}",
    )
    rendered.model(
        "whole",
        f"{SETUP}{{{{ healing_tables.dimension({SOURCES}, ['id'], {ATTRIBUTES}, exists_in=['crm', 'terms'], {NO_HASH}) "
        f"}}}}",
    )
    rendered.model("aside", f"{SETUP}{{{{ healing_tables.set_aside('crm', ['id'], 'changed_on') }}}}")
    rendered.model(
        "aside_terms",
        f"{SETUP}{{{{ healing_tables.set_aside('terms', ['id'], 'start', valid_to='end') }}}}",
    )
    values = ", ".join(f"{value} as {name}" for name, (_, value, _) in HASHED.items())
    types = {name: kind for name, (kind, _, _) in HASHED.items()}
    rendered.model(
        "hashed",
        f"select {{{{ healing_tables.row_hash({list(types)!r}, {types!r}) }}}} as row_hash, "
        f"{{{{ healing_tables.key_hash(['whole', 'day'], {types!r}) }}}} as key_hash from (select {values})",
    )
    return rendered


def test_effectivity_keeps_real_changes_only(steps: Rendered) -> None:
    found = [(row[0], row[1], row[2].isoformat()[-2:], row[3]) for row in plain_rows(steps.made("eff_crm"))]
    assert found == [
        (1, "Ann", "01", False),
        (1, "Bee", "05", False),
        (1, "Bee", "09", False),
        (1, None, "08", True),
        (2, "Cid", "04", False),
    ]


def test_snapshots_end_where_a_key_is_missing(steps: Rendered) -> None:
    found = [(row[0], row[1], row[2].isoformat()[-2:], row[3]) for row in plain_rows(steps.made("eff_web"))]
    assert found == [
        (1, "a@x", "02", False),
        (1, "b@x", "06", False),
        (1, None, "07", True),
        (2, "c@x", "02", False),
        (2, "c@x", "06", False),
        (2, None, "04", True),
        (2, None, "07", True),
    ]


def test_periods_start_and_end(steps: Rendered) -> None:
    found = [(row[0], row[1], row[2].isoformat()[-2:], row[3]) for row in plain_rows(steps.made("eff_terms"))]
    assert found == [
        (1, "x", "01", False),
        (1, "y", "04", False),
        (2, "z", "03", False),
        (2, "z", "08", False),
        (2, None, "05", True),
    ]


def test_time_slices_leave_deleted_stretches_out(steps: Rendered) -> None:
    found = [(*row[:2], str(row[2]), str(row[3]), row[4]) for row in plain_rows(steps.made("slices_crm"))]
    assert found == [
        (1, "Ann", "2024-01-01", "2024-01-05", False),
        (1, "Bee", "2024-01-05", "2024-01-08", False),
        (1, "Bee", "2024-01-09", "9999-12-31", True),
        (2, "Cid", "2024-01-04", "9999-12-31", True),
    ]


def test_chained_steps_give_the_dimension(steps: Rendered) -> None:
    columns = [
        "id",
        "name",
        "email",
        "office",
        "valid_from",
        "valid_to",
        "is_current",
        "compressed_row_count",
    ]
    chained = plain_rows(steps.made("chained"), columns)
    assert len(chained) > 8
    assert chained == plain_rows(steps.made("whole"), columns)
    assert steps.made("whole").schema["valid_from"].dataType.simpleString() == "date"


def test_rows_without_a_place_are_listed_with_the_reason(steps: Rendered) -> None:
    assert [row[-2:] for row in plain_rows(steps.made("aside"))] == [
        (10, "NULL moment in changed_on"),
        (9, "NULL in key column id"),
    ]
    assert [row[-2:] for row in plain_rows(steps.made("aside_terms"))] == [
        ("empty", "period that does not end after it starts")
    ]


@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_hashes_are_the_published_recipe_in_every_session(steps: Rendered, ansi: str, zone: str) -> None:
    import hashlib

    row_text = "|".join(HASHED[name][2] for name in sorted(HASHED))
    spark = steps.spark
    before = {key: spark.conf.get(key) for key in ("spark.sql.ansi.enabled", "spark.sql.session.timeZone")}
    try:
        spark.conf.set("spark.sql.ansi.enabled", ansi)
        spark.conf.set("spark.sql.session.timeZone", zone)
        found = steps.made("hashed").collect()[0]
    finally:
        for key, value in before.items():
            spark.conf.set(key, str(value))
    assert found["row_hash"] == hashlib.sha256(row_text.encode()).hexdigest()
    assert found["key_hash"] == hashlib.sha256(b"-12|1789-03-04").hexdigest()
