"""Whatever was done to the stored table, and to the sources, a rebuild stores what its select gives.

Its row in the log has the counts of a full comparison, made here of the rows as they are.
"""

from __future__ import annotations

import os
import random
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

import pytest
from lab import Lab
from sessions import FORMAT
from tables import plain_rows

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("interpreted")]
SEED = int(os.environ.get("HEALING_TABLES_SEED", "0"))
KEYS = range(1, 41)
CALL = """{{ healing_tables.dimension({
    'crm': {'relation': source('raw', 'crm'), 'changed_at': 'changed_at', 'deleted_when': 'gone',
            'tie_break_by': ['seq']},
    'erp': {'relation': source('raw', 'erp'), 'changed_at': 'changed_at', 'tie_break_by': ['seq']}
}, attributes={
    'name': {'from': ['crm']}, 'phone': {'from': ['crm', 'erp'], 'scd_type': 1}, 'credit': {'from': ['erp']}
}, exists_in=['crm'], surrogate_key={'name': 'sk', 'strategy': 'hash'}) }}"""
# {key}: any key; {day}: any day
DAMAGE = [
    "delete from {dim} where id % 7 = {key} % 7",
    "delete from {dim} where id = {key} and is_current",
    "insert into {dim} select * from {dim} where id = {key}",
    "insert into {dim} by name select * except (id), id + 1000 as id from {dim} where id = {key}",
    "insert into {dim} by name select * except (id), cast(null as int) as id from {dim} where id = {key}",
    "update {dim} set name = 'x' where id = {key}",
    "update {dim} set phone = null where id % 5 = {key} % 5",
    "update {dim} set credit = credit + 0.01 where id = {key}",
    "update {dim} set is_current = not is_current where id = {key}",
    "update {dim} set is_current = null where id = {key}",
    "update {dim} set valid_to = date '{day}' where id = {key}",
    "update {dim} set valid_to = null where id = {key}",
    "update {dim} set valid_from = date '{day}' where id = {key}",
    "update {dim} set valid_from = null where id = {key}",
    "update {dim} set version = version + 1 where id % 3 = {key} % 3",
    "update {dim} set row_hash = 'x', key_hash = null, sk = '' where id = {key}",
    "update {dim} set id = id + 1 where id = {key}",
    "restore table {dim} to version as of 0",
]
NEWS = [
    "insert into {crm} select id, concat(name, '+'), phone, false, seq + 1, date '{day}' from {crm} where id = {key}",
    "insert into {crm} select id, name, phone, true, seq + 1, date '{day}' from {crm} where id % 9 = {key} % 9",
    "insert into {erp} select id, '0', credit + 1, seq + 1, date '{day}' from {erp} where id % 4 = {key} % 4",
    "delete from {crm} where id = {key}",
    "delete from {erp} where id = {key} and seq = 1",
    "update {crm} set changed_at = date '{day}' where id = {key} and seq = 1",
    "update {crm} set name = null where id = {key}",
]


@pytest.fixture(scope="module")
def built(lab: Lab) -> Lab:
    crm, erp = f"{lab.schema}.crm", f"{lab.schema}.erp"
    lab.spark.sql(
        f"create table {crm} using {FORMAT} as select cast(id as int) as id, concat('n', id) as name, "
        f"concat('t', id % 3) as phone, false as gone, seq, date_add(date '2024-01-01', cast(30 * seq as int)) as "
        f"changed_at from range({KEYS.start}, {KEYS.stop}) lateral view explode(array(1, 2, 3)) as seq"
    )
    lab.spark.sql(
        f"create table {erp} using {FORMAT} as select cast(id as int) as id, cast(null as string) as phone, "
        f"cast(id as decimal(9,2)) as credit, seq, date_add(date '2024-01-11', cast(30 * seq as int)) as changed_at "
        f"from range({KEYS.start}, {KEYS.stop}) lateral view explode(array(1, 2)) as seq"
    )
    lab.write(
        "models/sources.yml",
        f"sources: [{{name: raw, schema: {lab.schema}, tables: [{{name: crm}}, {{name: erp}}]}}]\n",
    )
    lab.model("dim", CALL, materialized="healing_table", unique_key="id")
    lab.dbt("run")
    return lab


@pytest.mark.parametrize(
    "number", [*range(4), *[pytest.param(number, marks=pytest.mark.slow) for number in range(4, 24)]]
)
def test_a_rebuild_of_a_damaged_table(built: Lab, number: int) -> None:
    luck = random.Random(f"{SEED} {number}")
    done = spoil(built, luck)
    stored = built.rows("dim")
    select = built.select("dim")
    wanted = plain_rows(select)
    built.dbt("run", "--select", "dim", "--vars", "{max_removed_keys_ratio: 1, max_removed_versions_ratio: 1}")
    assert built.results["dim"][0] == "success", (done, built.results)
    assert built.rows("dim") == wanted, done
    log = built.spark.table(f"{built.schema}.healing_log").orderBy("finished_at").tail(1)[0].asDict()
    counts = compared(stored, wanted, select.columns)
    for what in ("added", "removed", "changed", "unchanged"):
        most = counts[what] + (counts["either"] if what.endswith("changed") else 0)
        assert counts[what] <= log[f"rows_{what}"] <= most, (what, counts, done)
    assert log["rows_changed"] + log["rows_unchanged"] == len(wanted) - counts["added"]


def spoil(lab: Lab, luck: random.Random) -> list[str]:
    """A few statements on the stored table, on the sources, or on both."""
    chosen = luck.choices(DAMAGE, k=luck.randint(0, 4)) + luck.choices(NEWS, k=luck.randint(0, 2))
    luck.shuffle(chosen)
    tables = {name: f"{lab.schema}.{name}" for name in ("dim", "crm", "erp")}
    done = []
    for statement in chosen:
        day = f"2024-0{luck.randint(1, 9)}-{luck.randint(10, 28)}"
        done.append(statement.format(key=luck.choice(KEYS), day=day, **tables))
        lab.spark.sql(done[-1])
    return done


def compared(stored: list[tuple[Any, ...]], wanted: list[tuple[Any, ...]], columns: list[str]) -> Counter[str]:
    """Rows added, changed, removed and unchanged: rows are the same ones where key and start are."""
    place = (columns.index("id"), columns.index("valid_from"))

    def by_start(rows: Iterable[tuple[Any, ...]]) -> dict[tuple[Any, ...], list[tuple[Any, ...]]]:
        found = defaultdict(list)
        for row in rows:
            found[tuple(row[position] for position in place)].append(row)
        return found

    old, new = by_start(stored), by_start(wanted)
    counts: Counter[str] = Counter()
    for start in old.keys() | new.keys():
        # the select has one row for a key and start; it is compared with one of the stored ones, whichever it is
        kept = min(len(old[start]), len(new[start]))
        same = [row in new[start] for row in old[start]] if kept else []
        counts["added"] += len(new[start]) - kept
        counts["removed"] += len(old[start]) - kept
        counts["changed"] += kept if not any(same) else 0
        counts["unchanged"] += kept if all(same) else 0
        counts["either"] += kept if any(same) and not all(same) else 0
    return counts
