"""null_keys: keep. The witness is the same dimension of keys in which a text stands for NULL."""

from __future__ import annotations

import random
from typing import Any

import pytest
from damage import operation, table_told
from lab import Lab
from sessions import FORMAT
from tables import plain_rows

from healing_tables import as_of

COLUMNS = "site string, code int, at timestamp, op string, name string, size int, loaded_at timestamp"
SETTINGS: dict[str, Any] = {"mode": "heal", "max_removed_keys_ratio": 1, "max_removed_versions_ratio": 1, "audit": {}}
CALL = """{{ healing_tables.dimension(
    sources={'feed': {'relation': %s, 'changed_at': 'at', 'deleted_when': "op = 'D'", 'loaded_at': 'loaded_at',
        'tie_break_by': ['name', 'size']}},
    key_columns=['site', 'code'], attributes={'name': 2, 'size': 1}, surrogate_key={'name': 'sk', 'strategy': '%s'},
    column_names={'key_hash': none}%s
) }}"""
NO_SITE, NO_CODE = "(none)", -1


def feed(seed: int, loads: int) -> list[list[str]]:
    """SQL of rows by load: four sites and codes, among them NULL."""
    choose = random.Random(seed)
    found: list[list[str]] = []
    for load in range(1, loads + 1):
        rows = []
        for _ in range(12):
            site = choose.choice(("null", "'a'", "'b'", "''"))
            code = choose.choice(("null", "1", "2"))
            at = f"timestamp '2024-01-{choose.randint(1, 28):02d} 00:00:00'"
            values = f"'{choose.choice('UUUD')}', '{choose.choice('xyz')}', {choose.randint(1, 5)}"
            rows.append(f"({site}, {code}, {at}, {values}, timestamp '2024-05-{load:02d} 00:00:00')")
        found.append(rows)
    return found


@pytest.fixture(scope="module")
def built(lab: Lab) -> Lab:
    """The dimension, and its witness, after a build and two heals."""
    lab.spark.sql(f"create table {lab.schema}.feed ({COLUMNS}) using {FORMAT}")
    lab.write("models/sources.yml", f"sources: [{{name: raw, schema: {lab.schema}, tables: [{{name: feed}}]}}]\n")
    columns = "at, op, name, size, loaded_at"
    filled = f"coalesce(site, '{NO_SITE}') as site, coalesce(code, {NO_CODE}) as code, {columns}"
    where = "where site is not null or code is not null"
    lab.model("filled", f"select {filled} from {{{{ source('raw', 'feed') }}}} {where}")
    key: dict[str, Any] = {"unique_key": ["site", "code"], "materialized": "healing_table"}
    keep = {**SETTINGS, "checks": {"no_gaps": False}}
    lab.model(
        "dim", CALL % ("source('raw', 'feed')", "hash", ", null_keys='keep'"), meta={"healing_tables": keep}, **key
    )
    lab.model("witness", CALL % ("ref('filled')", "hash", ""), meta={"healing_tables": keep}, **key)
    for number, rows in enumerate(feed(1, 3)):
        lab.spark.sql(f"insert into {lab.schema}.feed values {', '.join(rows)}")
        lab.dbt("run")
        assert lab.succeeded, lab.log
        assert lab.newest("dim")["mode"] == ("heal" if number else "rebuild"), lab.newest("dim")
        assert lab.rows("dim") == plain_rows(lab.select("dim")), number
        assert shown(lab, "dim") == shown(lab, "witness"), number
    return lab


def shown(lab: Lab, name: str) -> list[Any]:
    columns = [column for column in lab.spark.table(f"{lab.schema}.{name}").columns if column != "sk"]
    filled = [f"coalesce(site, '{NO_SITE}') as site", f"coalesce(code, {NO_CODE}) as code"]
    rows = lab.spark.table(f"{lab.schema}.{name}").selectExpr(
        *filled, *(c for c in columns if c not in ("site", "code"))
    )
    return sorted(map(tuple, rows.collect()), key=repr)


def test_builds_and_heals(built: Lab) -> None:
    dim = built.spark.table(f"{built.schema}.dim")
    assert dim.where("site is null and code = 1").count() and dim.where("site = 'a' and code is null").count()
    assert dim.where("site is null and code is null").isEmpty()
    first = built.spark.table(f"{built.schema}.feed").where(
        "loaded_at = '2024-05-01' and site is null and code is null"
    )
    log = built.spark.table(f"{built.schema}.healing_log").where("dimension = 'dim'").orderBy("finished_at")
    assert log.collect()[0]["rows_set_aside"] == first.count() > 0
    assert dim.select("sk").distinct().count() == dim.count()
    # a key is in the audit once for each of its versions
    audit = built.spark.table(f"{built.schema}.dim_audit")
    assert audit.where("change_type = 'insert'").select("row_id").distinct().count() >= dim.count()


def test_named_keys_are_healed(built: Lab) -> None:
    built.spark.sql(f"update {built.schema}.dim set name = 'wrong' where site is null and code = 1")
    built.dbt("run", "--select", "dim", "--vars", "{heal_keys: [{site: null, code: 1}]}")
    assert built.newest("dim")["rows_changed"] > 0
    assert shown(built, "dim") == shown(built, "witness")


def test_keys_of_dbt_utils(lab: Lab, built: Lab) -> None:
    """They tell (a, NULL) from (NULL, a)."""
    rows = "select string({}) as site, string({}) as code, date '2024-01-01' as at, 'n' as name"
    call = """{{ healing_tables.dimension(sources={'rows': {'relation': ref('pairs'), 'changed_at': 'at'}},
        key_columns=['site', 'code'], surrogate_key={'name': 'sk', 'strategy': 'dbt_utils'}, null_keys='keep') }}"""
    lab.model("pairs", rows.format("'x'", "null") + " union all " + rows.format("null", "'x'"))
    for kind in ("table", "healing_table"):
        lab.model(f"twins_{kind}", call, materialized=kind, unique_key=["site", "code"])
    lab.dbt("run", "--select", "pairs", "twins_table", "twins_healing_table")
    for kind in ("table", "healing_table"):
        found = lab.spark.table(f"{lab.schema}.twins_{kind}").selectExpr(
            "sk",
            "md5(concat_ws('-', coalesce(site, '_dbt_utils_surrogate_key_null_'), "
            "coalesce(code, '_dbt_utils_surrogate_key_null_'), cast(valid_from as string))) as wanted",
        )
        assert found.count() == 2 and found.where("sk = wanted").count() == 2, kind


def test_captures(lab: Lab) -> None:
    """Each key with NULL has entries of its own; a row without any key is left out, a second row of a key refused."""
    state = "select string(site) as site, int(code) as code, name from values %s as s (site, code, name)"
    config: dict[str, Any] = {"unique_key": ["site", "code"], "materialized": "capture"}
    for number, rows in enumerate(
        (
            "('a', null, 'x'), (null, 1, 'y'), ('a', 1, 'z'), (null, null, 'nobody')",
            "('a', null, 'x2'), ('a', 1, 'z'), (null, 2, 'w')",
        ),
        start=1,
    ):
        meta = {"null_keys": "keep", "at": f"2024-01-0{number} 00:00:00", "max_removed_keys_ratio": 1}
        lab.model("desks", state % rows, meta={"healing_tables": meta}, **config)
        lab.dbt("run", "--select", "desks")
        assert lab.succeeded and lab.newest("desks")["rows_set_aside"] == (number == 1), lab.log
    columns = ["day(captured_at)", "site", "code", "name", "is_deleted"]
    found = map(tuple, lab.spark.table(f"{lab.schema}.desks").selectExpr(*columns).collect())
    assert sorted(found, key=repr) == [
        (1, "a", 1, "z", False),
        (1, "a", None, "x", False),
        (1, None, 1, "y", False),
        (2, "a", None, "x2", False),
        (2, None, 1, "y", True),
        (2, None, 2, "w", False),
    ]
    lab.model(
        "desks", state % "(null, 2, 'w'), (null, 2, 'v')", meta={"healing_tables": {"null_keys": "keep"}}, **config
    )
    assert "site = NULL, code = 2" in lab.dbt("run", "--select", "desks")["desks"][1]


def test_facts(built: Lab) -> None:
    """A fact with such a key has its version, by both ways and in Python; one without any key has none."""
    facts = "select * from values (1, null, 1, date '2024-02-01'), (2, 'a', null, date '2024-02-01'), "
    facts += "(3, null, null, date '2024-02-01'), (4, 'a', 2, date '2024-02-01') as f (sale, site, code, sold_on)"
    built.model("facts", facts)
    arguments = "ref('facts'), ref('%s'), ['site', 'code'], 'sold_on', ['name'], unknown='?'"
    for way in ("many", "few"):
        call = f"healing_tables.as_of({arguments % 'dim'}, versions_per_key='{way}', null_keys='keep')"
        built.model(f"sold_{way}", f"select sale, name from ({{{{ {call} }}}})")
    filled = f"select sale, coalesce(site, '{NO_SITE}') as site, coalesce(code, {NO_CODE}) as code, sold_on"
    built.model("filled_facts", f"{filled} from {{{{ ref('facts') }}}}")
    call = f"healing_tables.as_of({arguments % 'witness'})".replace("ref('facts')", "ref('filled_facts')")
    built.model("sold", f"select sale, name from ({{{{ {call} }}}})")
    results = built.dbt("run", "--select", "facts", "filled_facts", "sold", "sold_many", "sold_few")
    assert built.succeeded, results
    wanted = sorted(plain_rows(built.spark.table(f"{built.schema}.sold")))
    assert wanted[2] == (3, "?") and [row for row in wanted if row[1] != "?"]
    for way in ("many", "few"):
        assert sorted(plain_rows(built.spark.table(f"{built.schema}.sold_{way}"))) == wanted
        found = as_of(
            built.spark.table(f"{built.schema}.facts"),
            built.spark.table(f"{built.schema}.dim"),
            ["site", "code"],
            "sold_on",
            "name",
            "?",
            versions_per_key=way,
            null_keys="keep",
        )
        assert sorted(map(tuple, found.select("sale", "name").collect())) == wanted


def test_diagnose(built: Lab) -> None:
    told = table_told(operation(built, "diagnose", dimension="dim"))
    assert "null_key" not in told, told


def test_erase(built: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEALING_TABLES_SECRET", "of tests, as long as it has to be")
    before = built.spark.table(f"{built.schema}.dim")
    others = before.where("not (site is null and code = 1)").count()
    operation(built, "erase", dimension="dim", keys=[{"site": None, "code": 1}], run=True)
    dim = built.spark.table(f"{built.schema}.dim")
    assert dim.where("site is null and code = 1").isEmpty() and dim.count() == others
    built.dbt("run", "--select", "dim", "--full-refresh")
    dim = built.spark.table(f"{built.schema}.dim")
    assert dim.where("site is null and code = 1").isEmpty() and dim.count() == others
