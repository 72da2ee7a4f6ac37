"""Another writer acts between two statements of a heal: the result is that of some order of the two, or a refusal.

A hook in dbt's cursor, no sleep: the other writer acts right before the n-th statement of the build. The next build
always equals a rebuild.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from dbt.adapters.spark import session as dbt_session
from healed import arrive, healed_dimension
from lab import Lab
from sessions import FORMAT
from tables import plain_rows

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("interpreted")]
DIM = "{schema}.dim_healed"
FAULTS = {
    "a row of the same key": f"update {DIM} set name = 'other' where id = 1",
    "OPTIMIZE": f"optimize {DIM}"
    if FORMAT == "delta"
    else f"call system.rewrite_data_files(table => '{DIM}', options => map('rewrite-all', 'true'))",
    "a row of another key": f"insert into {DIM} (id, name, valid_from, valid_to, is_current) "
    "values (999, 'other', timestamp '2024-01-01 00:00:00Z', null, true)",
    "RESTORE": "",  # to the first version
    "a column": f"alter table {DIM} add columns (extra string)",
    "DROP": f"drop table {DIM}",
    # loaded after all others: heals rely on it
    "a commit to the source": "insert into {schema}.changes select 1, 'late', false, "
    "timestamp '2025-01-01 00:00:00Z', max(loaded_at) + interval '1' hour from {schema}.changes",
}
CHANGES_NO_ROWS = ("OPTIMIZE",)
steps = count(3)


class OtherWriter:
    """Counts the statements of a build, acts once before the n-th, and notes what follows."""

    def __init__(self, lab: Lab, *, at: int | str | None = None, fault: str | None = None) -> None:
        self.lab, self.at, self.fault = lab, at, fault
        self.statements: list[str] = []
        self.acted = -1

    def run(self) -> tuple[str, str]:
        """Status and message of a build that meets this writer."""
        execute = dbt_session.Cursor.execute
        writer = self

        def meanwhile(cursor: Any, sql: str, *parameters: Any) -> None:
            writer.before(sql)
            execute(cursor, sql, *parameters)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(dbt_session.Cursor, "execute", meanwhile)
            return self.lab.dbt("run", "--select", "dim_healed")["dim_healed"]

    def before(self, sql: str) -> None:
        number = len(self.statements)
        is_here = self.at in sql if isinstance(self.at, str) else number == self.at
        if is_here and self.acted < 0 and self.fault is not None:
            self.acted = number
            if self.fault == "RESTORE":
                self.lab.restore("dim_healed", self.lab.commits("dim_healed")[0][0])
            else:
                self.lab.spark.sql(FAULTS[self.fault].format(schema=self.lab.schema))
        self.statements.append(sql)

    @property
    def is_before_publishing(self) -> bool:
        dim = DIM.format(schema=self.lab.schema)
        publishing = (f"merge into {dim} as t", f"table {dim}\n", "fast_forward")
        return any(text in sql for sql in self.statements[self.acted :] for text in publishing)


@pytest.fixture(scope="module")
def healed(lab: Lab, interpreted: None) -> Lab:
    healed_dimension(lab)
    path = lab.home / "models" / "dim_healed.sql"
    path.write_text(path.read_text().replace("config(", "config(on_schema_change='sync_all_columns', ", 1))
    for step in range(3):
        arrive(lab, step)
    lab.dbt("run")
    assert lab.succeeded, lab.results
    return lab


def rows_of_a_rebuild(lab: Lab) -> list[tuple[Any, ...]]:
    return plain_rows(lab.select("anew"))


def stored(lab: Lab) -> list[tuple[Any, ...]] | None:
    lab.spark.catalog.clearCache()
    if not lab.spark.catalog.tableExists(f"{lab.schema}.dim_healed"):
        return None
    return lab.rows("dim_healed")


def disturbed(lab: Lab, *, at: int | str, fault: str) -> None:
    arrive(lab, next(steps))
    before = rows_of_a_rebuild(lab)
    writer = OtherWriter(lab, at=at, fault=fault)
    status, message = writer.run()
    place = f"{fault} before statement {writer.acted} of {len(writer.statements)}: {message}"
    if isinstance(at, int) and writer.acted < 0:
        return  # a build that finds less to do has fewer statements than the one that was counted
    assert writer.acted >= 0, f"{fault}: the build has no statement {at}"
    after = rows_of_a_rebuild(lab)
    # in Iceberg, a new column is no commit: this build leaves it, the next one with news removes it
    is_seen = not (FORMAT == "iceberg" and fault == "a column")
    if status == "success" and is_seen and (writer.is_before_publishing or fault in CHANGES_NO_ROWS):
        assert stored(lab) in (before, after), place
    if not is_seen:
        arrive(lab, next(steps))
        after = rows_of_a_rebuild(lab)
    lab.dbt("run", "--select", "dim_healed")
    assert lab.succeeded, (place, lab.results["dim_healed"])
    assert stored(lab) == after, place


@pytest.mark.parametrize(
    "at, fault",
    [
        ("create table {dim}__candidate", "RESTORE"),
        ("merge into {dim}", "a row of the same key"),
        pytest.param("merge into {dim}", "DROP", marks=pytest.mark.slow),
        pytest.param("insert into {log}", "a row of another key", marks=pytest.mark.slow),
    ],
)
def test_another_writer_before_a_statement(healed: Lab, at: str, fault: str) -> None:
    names = {"dim": DIM.format(schema=healed.schema), "log": f"{healed.schema}.healing_log"}
    disturbed(healed, at=at.format(**names), fault=fault)


def places() -> Iterator[tuple[int, str]]:
    """Each statement with one fault, and each fault with many statements."""
    names = list(FAULTS)
    for number in range(70):
        yield number, names[number % len(names)]


@pytest.mark.slow
def test_another_writer_between_any_two_statements(healed: Lab) -> None:
    arrive(healed, next(steps))
    counted = OtherWriter(healed)
    counted.run()
    last = len(counted.statements)
    # what comes after the publishing statement must not count as part of the build
    after = [(number, "a row of the same key") for number in range(last - 8, last)]
    for number, fault in [*after, *places()]:
        if number < last:
            disturbed(healed, at=number, fault=fault)
