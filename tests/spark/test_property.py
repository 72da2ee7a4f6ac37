"""Random small histories: the dimension is what the plain-Python reference says, however it is fed.

Every domain is tiny, so that ties, gaps, returns, A-B-A, bad rows and look-alike values are the rule.
A scenario is a seed: rerun one with ``-k s17``.
"""

from __future__ import annotations

import datetime as dt
import os
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache, reduce
from itertools import pairwise
from typing import Any, Literal, TypeAlias

import pytest
import reference as ref
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t
from reference import Attribute, Condition, Dimension, Row, Source, Value
from rendered import Rendered
from tables import spark_type

# as many as it takes to have each kind of key twice
SEEDS = range(26)
ABROAD_SEEDS = SEEDS[1::3]
VARIED = SEEDS[::8]
DEFAULT_ENGINE_SEEDS = VARIED[::2]
FURTHER_SEEDS = range(26, 26 + int(os.environ.get("HEALING_TABLES_SEEDS", "18")))
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
ZONE = "spark.sql.session.timeZone"
PLAIN = {ZONE: "UTC", "spark.sql.ansi.enabled": "false"}
ABROAD = PLAIN | {ZONE: "America/New_York"}
STRICT = PLAIN | {"spark.sql.ansi.enabled": "true"}
ELSEWHERE = STRICT | {
    ZONE: "America/New_York",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.ansi.doubleQuotedIdentifiers": "true",
}
QUICK = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
Change: TypeAlias = Callable[[Sequence[Row], random.Random], list[Sequence[Row]]]


# --- what histories are made of -------------------------------------------------------------------


@dataclass(frozen=True)
class KeyColumn:
    name: str
    domains: Mapping[str, Sequence[Value]]


@dataclass(frozen=True)
class Family:
    """Types that may feed one attribute, with their values."""

    domains: Mapping[str, Sequence[Value]]


OTHERS = ("ignore_nulls", "unchanged_value", "sequence_by", "truncated_when", "within")


def utc(text: str) -> dt.datetime:
    return ref.moment_of(text).replace(tzinfo=dt.timezone.utc)


WHOLE = (0, 1, 42)
KEYS = (
    (KeyColumn("id", {"int": WHOLE}),),
    (KeyColumn("id", {"string": ("A", "a", "A ", "")}),),
    (KeyColumn("id", {"int": WHOLE, "string": ("0", "1", "42", "0042")}),),
    (KeyColumn("id", {"int": WHOLE, "bigint": WHOLE}),),
    (KeyColumn("id", {"int": WHOLE, "decimal(10,2)": (Decimal("1.00"), Decimal("42.50"))}),),
    (
        KeyColumn(
            "id",
            {
                "decimal(12,8)": (Decimal(0), Decimal("1.5")),
                "string": ("0.00000000", "1.50000000", "1.5"),
            },
        ),
    ),
    (
        KeyColumn("left", {"string": ("x", "x|", "x\\")}),
        KeyColumn("right", {"string": ("y", "|y", "")}),
    ),
    (
        KeyColumn("town", {"string": ("x", "^^NULL^^")}),
        KeyColumn("no", {"int": WHOLE, "string": ("1",)}),
    ),
    (KeyColumn("id", {"double": (0.0, -0.0, 1e20)}),),
    (KeyColumn("id", {"double": (0.0, -0.0, 1.5), "string": ("0.0", "1.5", "1.50")}),),
    (KeyColumn("id", {"boolean": (True, False)}),),
    (KeyColumn("id", {"timestamp": (utc("2024-03-10 07:30"), utc("1899-12-31 23:59:59.5"))}),),
    (KeyColumn("id", {"date": (dt.date(2024, 3, 10), dt.date(1899, 12, 31))}),),
)
FAMILIES = (
    Family({"string": ("a", "b", "", "A|B", "A", "B|", "^^NULL^^", "\\|", "é", "a ")}),
    Family({"int": WHOLE, "bigint": (0, 42, 2**40)}),
    Family(
        {
            "decimal(10,2)": (Decimal("0.00"), Decimal("1.50"), Decimal("-2.25")),
            "decimal(18,8)": (Decimal("0E-8"), Decimal("1.5"), Decimal("-0.00000012")),
        }
    ),
    Family({"double": (0.0, -0.0, float("nan"), 1.5, 1e20, -0.00025, float("inf"), 12345678.9)}),
    Family({"boolean": (True, False)}),
    Family({"date": (dt.date(2024, 3, 10), dt.date(1900, 2, 28), dt.date(9999, 12, 31))}),
    Family(
        {
            "timestamp": (
                utc("2024-03-10"),
                utc("2024-03-10 07:30:00.000001"),
                utc("2024-11-03 05:30"),
            ),
        }
    ),
    Family({"binary": (b"", b"\x00\xff", b"|")}),
    Family({"array<double>": ((0.0,), (-0.0,), (1.5, -0.0))}),
    Family({"array<string>": ((), ("a",), ("a|", 'b"'))}),
)
NAMES = ("name", "Zone", "tier", "amount 2", "é")
INSTANTS = tuple(
    utc(text)
    for text in (
        "1880-06-01 12:00",
        "1969-12-31 23:59:59.999999",
        "2024-01-01",
        "2024-01-02",
        "2024-01-02 00:00:00.000001",
        "2024-01-02 12:00:00.5",
        "2024-03-10 02:30",
        "2024-03-10 07:30",
        "2024-11-03 05:30",
        "2024-11-03 06:30",
        "2150-01-01",
    )
)
BEYOND = (
    utc("9999-12-31"),
    utc("9999-12-31 23:59:59"),
    utc("9999-12-31 23:59:59.999999"),
    utc("2999-01-01"),
)


def moment_as(kind: str, moment: dt.datetime | None) -> Value:
    if moment is None or kind == "timestamp":
        return moment
    return moment.date() if kind == "date" else moment.replace(tzinfo=None)


class Maker:
    """One random dimension with its sources; the same seed gives the same one."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.seed = seed

    def likely(self, chance: float) -> bool:
        return self.rng.random() < chance

    def some(self, values: Sequence[Any], most: int | None = None) -> list[Any]:
        return self.rng.sample(list(values), self.rng.randint(1, min(len(values), most or len(values))))

    def dimension(self) -> Dimension:
        rng = self.rng
        days = self.likely(0.2)
        keys = KEYS[self.seed % len(KEYS)]
        names = self.some(("erp", "crm", "web"))
        moments = rng.sample(INSTANTS, rng.randint(5, 8))
        columns: dict[str, dict[str, Sequence[Value]]] = {name: {} for name in names}
        attributes = self.attributes(names, columns)
        sources = tuple(self.source(name, keys, columns[name], moments, days=days) for name in names)
        bare = len(sources) == 1 and self.likely(0.5)
        sources = tuple(
            self.cut(self.in_parts(self.as_cdc(self.as_dbt_snapshot(source))), moments) for source in sources
        )
        first = self.openers(sources)
        return Dimension(
            keys=tuple(key.name for key in keys),
            sources=tuple(self.opening(source, moments, first) for source in sources),
            attributes=None if bare else attributes,
            exists_in=tuple(self.some(names)) if self.likely(0.3) else None,
            column_names=self.column_names(),
            valid_to_current=rng.choice([ref.DEFAULT_END] * 3 + [None, "2999-01-01 00:00:00"]),
            current_values=rng.choice([(True, False)] * 3 + [("Y", "N")]),
            valid_from_first=rng.choice([None, None, "1900-01-01", "2024-01-02"]) if not first else first,
            surrogate_key="sk" if self.likely(0.5) else None,
            deleted_rows=random.Random(f"deleted rows {self.seed}").random() < 0.3,
        )

    def attributes(self, names: Sequence[str], columns: dict[str, dict[str, Sequence[Value]]]) -> tuple[Attribute, ...]:
        """Also notes in ``columns`` what each source has to bring, with the values to draw from."""
        rng = self.rng
        found = []
        wanted = self.some(NAMES, 4)
        for place, name in enumerate(wanted):
            family = rng.choice(FAMILIES)
            idle = [source for source in names if not columns[source]]
            givers = self.some(names)
            if place + 1 == len(wanted):
                givers += [source for source in idle if source not in givers]
            origins = []
            for source in givers:
                for column in (name, f"{name} too") if self.likely(0.15) else (name,):
                    column = column if self.likely(0.6) else f"{column} of {source}"
                    kind = rng.choice(list(family.domains))
                    columns[source][f"{column}:{kind}"] = self.some(family.domains[kind], 3)
                    origins.append((source, column))
            scd_type = rng.choice((0, 1, 2, 2, 2, 3, 6))
            found.append(
                Attribute(
                    name=name,
                    origins=tuple(origins),
                    rule=rng.choice(("first_non_null", "first_present", "most_recent_row", "most_recent_value")),
                    scd_type=scd_type,
                    changed_at=scd_type in (1, 3) and self.likely(0.5),
                )
            )
        return tuple(found)

    def column_names(self) -> dict[str, str | None]:
        names: dict[str, str | None] = {name: name for name in ref.OPTIONAL_COLUMNS if self.likely(0.7)}
        if self.likely(0.2):
            names |= {"valid_from": "effective_from", "is_current": "active", "key_hash": None}
        return names

    def source(
        self,
        name: str,
        keys: Sequence[KeyColumn],
        offered: Mapping[str, Sequence[Value]],
        moments: Sequence[dt.datetime],
        *,
        days: bool,
    ) -> Source:
        rng = self.rng
        kind = rng.choice(("changes", "changes", "snapshots", "periods"))
        clock = "date" if days else rng.choice(("timestamp", "timestamp", "date", "timestamp_ntz"))
        columns: dict[str, str] = {}
        domains: dict[str, Sequence[Value]] = {}
        renamed = {}
        for key in keys:
            own = f"{key.name}_no" if self.likely(0.3) else key.name
            renamed[key.name] = own
            columns[own] = rng.choice(list(key.domains))
            domains[own] = key.domains[columns[own]]
        for column, domain in offered.items():
            label, _, of_type = column.rpartition(":")
            columns[label], domains[label] = of_type, domain
        times = {
            "changes": ("changed_at",),
            "snapshots": ("snapshot_at",),
            "periods": ("since", "until"),
        }[kind]
        columns |= dict.fromkeys(times, clock)
        base = Source(name, kind, columns, (), renamed, times)  # type: ignore[arg-type]
        if self.likely(0.2):
            base = self.with_where(base, domains)
        if kind == "changes":
            return self.change_log(base, domains, moments)
        if kind == "snapshots":
            return self.snapshots(base, domains, moments)
        return self.periods(base, domains, moments)

    def with_where(self, source: Source, domains: dict[str, Sequence[Value]]) -> Source:
        column = f"region_{source.name}"
        domains[column] = ("north", "north", "south", None)
        where = Condition(f"{column} = 'north'", (column,), lambda row: row[column] == "north")
        return replace(source, columns={**source.columns, column: "string"}, where=where)

    def cut(self, source: Source, moments: Sequence[dt.datetime]) -> Source:
        """With dice of its own: the other choices are those of a source that is not cut."""
        rng = random.Random(f"cuts {self.seed} {source.name}")
        days = source.columns[source.moments[0]] == "date" and rng.random() < 0.8
        since, until = sorted(rng.sample(sorted(moments)[1:], 2))
        options = {
            name: ref.moment_text(moment)[: 10 if days else None]
            for name, moment in (("since", since), ("until", until))
            if rng.random() < 0.3
        }
        if len(set(options.values())) < len(options):
            del options["until"]
        return replace(source, since=options.get("since"), until=options.get("until"))

    def in_parts(self, source: Source) -> Source:
        """Snapshots that are complete for one of two parts only."""
        rng = random.Random(f"parts {self.seed} {source.name}")
        if source.kind != "snapshots" or source.on_absence == "ignore" or source.calendar or rng.random() < 0.3:
            return source
        rows = [{**row, "part": rng.choice(("a", "a", "b", None))} for row in source.rows]
        return replace(source, columns={**source.columns, "part": "string"}, rows=rows, within=("part",))

    def openers(self, sources: Sequence[Source]) -> dict[str, str]:
        """Sources with a column that gives the first start of a key; all their rows are read."""
        rng = random.Random(f"openers {self.seed}")
        names = [one.name for one in sources if not (one.is_dbt_snapshot or one.since or one.until)]
        return (
            dict.fromkeys(rng.sample(names, min(len(names), rng.choice((1, 2)))), "born") if rng.random() < 0.4 else {}
        )

    def opening(self, source: Source, moments: Sequence[dt.datetime], first: Mapping[str, str]) -> Source:
        if source.name not in first:
            return source
        rng = random.Random(f"born {self.seed} {source.name}")
        kind = rng.choice(("timestamp", "date", "timestamp_ntz"))
        rows = [{**row, "born": moment_as(kind, rng.choice((None, *moments)))} for row in source.rows]
        return replace(source, columns={**source.columns, "born": kind}, rows=rows)

    def as_cdc(self, source: Source) -> Source:
        """A change log in the shape of a feed: it leaves values out, has a sequence, or truncations."""
        rng = random.Random(f"cdc {self.seed} {source.name}")
        if source.kind != "changes" or rng.random() < 0.4:
            return source
        taken = {*source.keys.values(), "changed_at", "op", "seq", f"region_{source.name}"}
        values = [column for column in source.columns if column not in taken]
        rows = [dict(row) for row in source.rows]
        if rng.random() < 0.7:
            choices: tuple[Literal[True] | tuple[str, ...], ...] = (True, tuple(values[:1]))
            source = replace(source, ignore_nulls=rng.choice(choices))
        if rng.random() < 0.5:
            plain = [column for column in values if source.columns[column] in ("string", "int", "boolean")]
            marks = {column: next((row[column] for row in rows if row[column] is not None), None) for column in plain}
            source = replace(source, unchanged_value={name: mark for name, mark in marks.items() if mark is not None})
        columns = dict(source.columns)
        if rng.random() < 0.5:
            columns["lsn"] = "int"
            for row in rows:
                row["lsn"] = rng.choice((None, *range(12)))
            source = replace(source, tie_break_by=(), sequence_by=("lsn",))
        if rng.random() < 0.5:
            columns["kind"] = "string"
            for row in rows:
                row["kind"] = rng.choice(("t", *("c",) * 7, None))
                if row["kind"] == "t" and rng.random() < 0.7:
                    row |= dict.fromkeys(source.keys.values())
            is_all = Condition("kind = 't'", ("kind",), lambda row: row["kind"] == "t")
            source = replace(source, truncated_when=is_all)
        return replace(source, columns=columns, rows=rows)

    def as_dbt_snapshot(self, source: Source) -> Source:
        """A source of periods in the shape of a dbt snapshot, perhaps with rows for deletions."""
        rng = random.Random(f"dbt {self.seed} {source.name}")
        if source.kind != "periods" or rng.random() < 0.5:
            return source
        names = dict(zip(source.moments, ref.DBT_META[2:4], strict=True))
        meta = {"dbt_scd_id": "string", "dbt_updated_at": "timestamp"}
        if rng.random() < 0.6:
            meta["dbt_is_deleted"] = "string"
        return replace(
            source,
            columns={names.get(name, name): kind for name, kind in source.columns.items()} | meta,
            rows=[
                {names.get(name, name): value for name, value in row.items()}
                | {name: rng.choice(("True", "False", None)) for name in meta}
                | {"dbt_updated_at": rng.choice(INSTANTS)}
                for row in source.rows
            ],
            moments=tuple(names.values()),
            is_dbt_snapshot=True,
        )

    def values(self, source: Source, domains: Mapping[str, Sequence[Value]]) -> dict[str, Value]:
        """A row but for its moments; keys are seldom NULL, the rest often."""
        keys = set(source.keys.values())
        return {
            column: None if self.likely(0.03 if column in keys else 0.25) else self.rng.choice(domain)
            for column, domain in domains.items()
        }

    def moment(self, moments: Sequence[dt.datetime]) -> dt.datetime | None:
        if self.likely(0.04):
            return None
        return self.rng.choice(BEYOND if self.likely(0.05) else moments)

    def change_log(self, source: Source, domains: dict[str, Sequence[Value]], moments: Sequence[dt.datetime]) -> Source:
        columns = dict(source.columns)
        clock = columns["changed_at"]
        if self.likely(0.7):
            columns["op"], domains["op"] = "string", ("D", "U", "U")
            gone = Condition("op = 'D'", ("op",), lambda row: row["op"] == "D")
            source = replace(source, deleted_when=gone)
        if self.likely(0.6):
            columns["seq"], domains["seq"] = "int", (1, 2, 10)
            source = replace(source, tie_break_by=("seq",))
        rows = [
            {
                **self.values(source, domains),
                "changed_at": moment_as(clock, self.moment(moments)),
            }
            for _ in range(self.rng.randint(10, 24))
        ]
        return replace(source, columns=columns, rows=rows)

    def snapshots(self, source: Source, domains: dict[str, Sequence[Value]], moments: Sequence[dt.datetime]) -> Source:
        """With a calendar, some of the snapshots it names have no rows at all."""
        clock = source.columns["snapshot_at"]
        calendar, filled = None, moments
        if self.likely(0.5):
            calendar = [moment_as(clock, self.moment(moments)) for _ in range(len(moments))]
            filled = moments[: len(moments) // 2]
        rows = [
            {
                **self.values(source, domains),
                "snapshot_at": moment_as(clock, self.moment(filled)),
            }
            for _ in range(self.rng.randint(8, 16))
        ]
        choices: tuple[Literal["delete", "ignore"], ...] = ("delete", "delete", "ignore")
        on_absence = self.rng.choice(choices)
        return replace(source, rows=rows, calendar=calendar, on_absence=on_absence)

    def periods(self, source: Source, domains: dict[str, Sequence[Value]], moments: Sequence[dt.datetime]) -> Source:
        """Periods of one key never overlap: each key walks through the moments once."""
        clock = source.columns["since"]
        stops = sorted({ref.instant(moment_as(clock, moment)) for moment in moments}, key=str)
        stops.sort()
        seen: dict[ref.Key, int] = {}
        rows: list[Row] = []
        shape = Dimension(tuple(source.keys), (source,), ())
        for _ in range(self.rng.randint(6, 16)):
            values = self.values(source, domains)
            bad = {**values, **dict.fromkeys(source.moments)}
            key = tuple(map(ref.identity, ref.key_of(shape, source, bad)))
            start = seen.get(key, 0) + (1 if self.likely(0.3) else 0)
            end = start + self.rng.randint(1, 2)
            if start >= len(stops) or self.likely(0.08):
                since, until = self.rng.choice(
                    [(None, None), (BEYOND[0], None), (stops[0], stops[0]), (stops[-1], stops[0])]
                )
                rows.append({**values, "since": moment_as(clock, since), "until": moment_as(clock, until)})
                continue
            seen[key] = end
            until = stops[end] if end < len(stops) else self.rng.choice((None, *BEYOND[:3]))
            rows.append(
                {
                    **values,
                    "since": moment_as(clock, stops[start]),
                    "until": moment_as(clock, until),
                }
            )
            if self.likely(0.15):
                again = self.rng.choice((None, *BEYOND[:3])) if end >= len(stops) else until
                rows.append({**rows[-1], "until": moment_as(clock, again)})
        return replace(source, rows=rows)


def resolved(dim: Dimension) -> tuple[Dimension, list[dict[str, Value]]]:
    """The dimension with ``on_tie: greatest`` where its rows need it, and its rows."""
    while True:
        try:
            return dim, ref.dimension_rows(dim)
        except ref.UnresolvedTieError as tie:
            dim = replace(
                dim,
                sources=tuple(
                    replace(source, on_tie="greatest") if source.name == tie.source else source
                    for source in dim.sources
                ),
            )


@dataclass(frozen=True)
class Scenario:
    name: str
    dim: Dimension
    expected: list[dict[str, Value]]


@cache
def scenario(seed: int) -> Scenario:
    dim, expected = resolved(Maker(seed).dimension())
    return Scenario(f"s{seed}", dim, expected)


def refused(name: str, kind: str, columns: Mapping[str, str], rows: Sequence[Sequence[Any]]) -> Scenario:
    moments = ("since", "until") if kind == "periods" else ("changed_at",)
    listed = [dict(zip(columns, row, strict=True)) for row in rows]
    source = Source("shop", kind, columns, listed, {"id": "id"}, moments)  # type: ignore[arg-type]
    return Scenario(name, Dimension(("id",), (source,), None), [])


REFUSED = (
    refused(
        "unresolved_tie",
        "changes",
        {"id": "int", "changed_at": "timestamp", "city": "string"},
        [
            (1, utc("2024-01-01"), "a"),
            (4711, utc("2024-01-01"), "a"),
            (4711, utc("2024-01-01"), None),
        ],
    ),
    refused(
        "overlapping_periods",
        "periods",
        {"id": "int", "since": "date", "until": "date", "city": "string"},
        [
            (1, dt.date(2024, 1, 1), None, "a"),
            (4711, dt.date(2024, 1, 1), dt.date(2024, 1, 3), "a"),
            (4711, dt.date(2024, 1, 2), dt.date(2024, 1, 4), "a"),
        ],
    ),
)


# --- a scenario as a model -------------------------------------------------------------------------


def relation(table: str) -> str:
    return f"api.Relation.create(schema='global_temp', identifier={table!r})"


def source_options(source: Source, table: str) -> str:
    options: dict[str, Any] = {"key_columns": dict(source.keys)}
    for name in ("since", "until"):
        if (cut := getattr(source, name)) is not None:
            options[name] = cut
    if source.is_dbt_snapshot:
        options["dbt_snapshot"] = True
    elif source.kind == "periods":
        options |= {"valid_from": "since", "valid_to": "until"}
    else:
        options[source.moments[0]] = source.moments[0]
    if source.kind == "snapshots":
        options["on_absence"] = source.on_absence
    for name in ("deleted_when", "truncated_when"):
        if (condition := getattr(source, name)) is not None:
            options[name] = condition.sql
    if source.ignore_nulls:
        options["ignore_nulls"] = source.ignore_nulls if source.ignore_nulls is True else list(source.ignore_nulls)
    if source.unchanged_value:
        options["unchanged_value"] = dict(source.unchanged_value)
    if source.within:
        options["within"] = list(source.within)
    if source.sequence_by:
        options["sequence_by"] = list(source.sequence_by)
    if source.where is not None:
        options["where"] = source.where.sql
    if source.tie_break_by:
        options["tie_break_by"] = list(source.tie_break_by)
    if source.on_tie != "error":
        options["on_tie"] = source.on_tie
    listed = [f"'relation': {relation(table)}", *(f"{k!r}: {v!r}" for k, v in options.items())]
    if source.calendar is not None:
        listed.append(f"'calendar': {relation(table + '_calendar')}")
    return "{" + ", ".join(listed) + "}"


def attribute_options(attribute: Attribute) -> dict[str, Any]:
    options: dict[str, Any] = {
        "from": [{"source": source, "column": column} for source, column in attribute.origins],
        "rule": attribute.rule,
        "scd_type": attribute.scd_type,
    }
    return options | ({"changed_at": True} if attribute.changed_at else {})


def model_sql(name: str, dim: Dimension) -> str:
    sources = ", ".join(f"{source.name!r}: {source_options(source, f'{name}_{source.name}')}" for source in dim.sources)
    options: dict[str, Any] = {
        "key_columns": list(dim.keys),
        "column_names": dict(dim.column_names),
        "valid_to_current": dim.valid_to_current,
        "current_values": list(dim.current_values),
    }
    if dim.attributes is not None:
        options["attributes"] = {one.name: attribute_options(one) for one in dim.attributes}
    if dim.exists_in is not None:
        options["exists_in"] = list(dim.exists_in)
    if dim.valid_from_first is not None:
        options["valid_from_first"] = dim.valid_from_first
    if dim.deleted_rows:
        options["deleted_rows"] = True
    if dim.surrogate_key is not None:
        options["surrogate_key"] = {"name": dim.surrogate_key, "strategy": "hash"}
    listed = ",\n    ".join(f"{key}={value!r}" for key, value in options.items())
    return f"{{{{ healing_tables.dimension(sources={{{sources}}},\n    {listed}) }}}}"


def cell(value: Any) -> str:
    """A value as text that tells types, signs of zero and NULL apart."""
    if isinstance(value, dt.datetime):
        return f"instant {value:%Y-%m-%d %H:%M:%S.%f}"
    if isinstance(value, Decimal):
        return f"decimal {value.normalize()}"
    if isinstance(value, bytearray):
        value = bytes(value)
    return repr(tuple(value) if isinstance(value, list) else value)


def bag(rows: Sequence[Row]) -> Counter[tuple[tuple[str, str], ...]]:
    return Counter(tuple((name, cell(row[name])) for name in sorted(row)) for row in rows)


def assert_shape(frame: DataFrame, one: Scenario) -> None:
    """The columns that the reference has; keys and attributes also of its types."""
    types = dict(frame.dtypes)
    wanted = dict(zip(one.dim.keys, ref.key_types(one.dim), strict=True))
    wanted |= {a.name: ref.attribute_type(one.dim, a) for a in ref.attributes_of(one.dim)}
    assert {name: types.get(name) for name in wanted} == wanted
    assert set(types) == set(one.expected[0])


def rows_of(frame: DataFrame) -> list[dict[str, Value]]:
    """Rows with instants in UTC, whatever the session's zone."""
    moments = {field.name for field in frame.schema if field.dataType == t.TimestampType()}
    plain = frame.select(
        *(f.unix_micros(f"`{name}`").alias(name) if name in moments else f"`{name}`" for name in frame.columns)
    )
    return [
        {
            name: EPOCH + dt.timedelta(microseconds=value) if name in moments and value is not None else value
            for name, value in row.asDict().items()
        }
        for row in plain.collect()
    ]


def assert_same(got: Sequence[Row], expected: Sequence[Row], one: Scenario) -> None:
    found, wanted = bag(got), bag(expected)
    if found == wanted:
        return
    missing = [dict(row) for row in (wanted - found).elements()]
    extra = [dict(row) for row in (found - wanted).elements()]
    columns = sorted({name for row in missing + extra for name in row})
    told = [
        name
        for name in columns
        if name in (*one.dim.keys, "valid_from", "effective_from")
        or Counter(row.get(name) for row in missing) != Counter(row.get(name) for row in extra)
    ]
    lines = [f"{one.name}: {model_sql(one.name, one.dim)}"]
    for title, rows in (("missing   ", missing), ("unexpected", extra)):
        lines += sorted(f"{title} {[(name, row.get(name)) for name in told]}" for row in rows)
    pytest.fail("\n".join(lines), pytrace=False)


# --- feeding and running --------------------------------------------------------------------------


def frame_of(spark: SparkSession, columns: Mapping[str, str], rows: Sequence[Row]) -> DataFrame:
    schema = t.StructType([t.StructField(name, spark_type(kind)) for name, kind in columns.items()])
    return spark.createDataFrame([tuple(row[name] for name in columns) for row in rows], schema)


def in_order(rows: Sequence[Row], _: random.Random) -> list[Sequence[Row]]:
    return [rows]


def shuffled(rows: Sequence[Row], rng: random.Random) -> list[Sequence[Row]]:
    return [rng.sample(rows, len(rows))]


def split(rows: Sequence[Row], rng: random.Random) -> list[Sequence[Row]]:
    """Three relations, the last rows first; any of them may be empty."""
    one, two = sorted(rng.randint(0, len(rows)) for _ in range(2))
    return [rows[two:], rows[one:two], rows[:one]]


def duplicated(rows: Sequence[Row], _: random.Random) -> list[Sequence[Row]]:
    return [rows, rows]


def feed(spark: SparkSession, one: Scenario, change: Change = in_order) -> None:
    """Put every table of the scenario, as changed, where its model looks for it."""
    rng = random.Random(one.name)
    for source in one.dim.sources:
        tables = {f"{one.name}_{source.name}": (source.columns, source.rows)}
        if source.calendar is not None:
            moment = source.moments[0]
            days = [{moment: value} for value in source.calendar]
            tables[f"{one.name}_{source.name}_calendar"] = ({moment: source.columns[moment]}, days)
        for table, (columns, rows) in tables.items():
            parts = [frame_of(spark, columns, part) for part in change(rows, rng)]
            reduce(DataFrame.unionAll, parts).createOrReplaceGlobalTempView(table)


@contextmanager
def session(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    before = {name: str(spark.conf.get(name)) for name in settings}
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


def assert_integrity(rows: Sequence[Mapping[str, Any]], dim: Dimension) -> None:
    """The checks; gaps and keys that ended only where a source can end a key."""
    start, end, current = (dim.column_names.get(name, name) for name in ("valid_from", "valid_to", "is_current"))
    if start is None or end is None:
        return
    can_end = any(
        source.deleted_when is not None
        or source.truncated_when is not None
        or source.until is not None
        or source.kind == "periods"
        or (source.kind == "snapshots" and source.on_absence == "delete")
        for source in dim.sources
        if dim.exists_in is None or source.name in dim.exists_in
    )
    can_end = can_end and not dim.deleted_rows
    versioned = [a.name for a in ref.attributes_of(dim) if a.scd_type in ref.VERSIONED]
    versioned += ["is_deleted"] * dim.deleted_rows
    by_key: dict[tuple[Any, ...], list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        by_key[tuple(ref.identity(row[name]) for name in dim.keys)].append(row)
    for key, versions in by_key.items():
        versions.sort(key=lambda row: row[start])
        if current is not None:
            told = [row[current] == dim.current_values[0] for row in versions]
            assert told in ([False] * (len(told) - 1) + [last] for last in (True, not can_end)), key
        for row in versions:
            assert row[end] is None or row[start] < row[end], row
        for before, after in pairwise(versions):
            assert before[end] is not None and before[end] <= after[start], (before, after)
            if before[end] == after[start]:
                assert any(ref.differ(before[n], after[n]) for n in versioned), (before, after)
            else:
                assert can_end, (before, after)


def check(rendered: Rendered, one: Scenario, settings: Mapping[str, str] = PLAIN | QUICK) -> None:
    """Run the scenario's statement as a session with these settings would."""
    with session(rendered.spark, settings):
        frame = rendered.made(one.name)
        if one.expected:
            assert_shape(frame, one)
        rows = rows_of(frame)
        assert_same(rows, one.expected, one)
    assert_integrity(rows, one.dim)


# --- the tests ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def built(rendered: Rendered) -> Rendered:
    """Every scenario, rendered over its inputs; the tests run the statements under the settings they choose."""
    for seed in SEEDS:
        begin(rendered, seed)
    for one in REFUSED:
        feed(rendered.spark, one)
        rendered.model(one.name, model_sql(one.name, one.dim))
    return rendered


def begin(rendered: Rendered, seed: int) -> None:
    feed(rendered.spark, scenario(seed))
    rendered.model(f"s{seed}", model_sql(f"s{seed}", scenario(seed).dim))


@pytest.mark.parametrize("seed", SEEDS, ids="s{}".format)
def test_dimension_equals_the_reference(built: Rendered, seed: int) -> None:
    one = scenario(seed)
    check(built, one)


@pytest.mark.slow
@pytest.mark.parametrize("seed", FURTHER_SEEDS, ids="s{}".format)
def test_further_histories(built: Rendered, seed: int) -> None:
    begin(built, seed)
    check(built, scenario(seed))


@pytest.mark.parametrize("seed", ABROAD_SEEDS, ids="s{}".format)
def test_another_session_changes_nothing(built: Rendered, seed: int) -> None:
    one = scenario(seed)
    check(built, one, QUICK | ELSEWHERE)


@pytest.mark.parametrize("settings", [ABROAD, pytest.param(STRICT, marks=pytest.mark.slow)], ids=["zone", "ansi"])
@pytest.mark.parametrize("seed", DEFAULT_ENGINE_SEEDS, ids="s{}".format)
def test_neither_alone_does(built: Rendered, seed: int, settings: Mapping[str, str]) -> None:
    """With the engine's own settings: generated code, adaptive execution."""
    one = scenario(seed)
    check(built, one, settings)


@pytest.mark.parametrize("change", [shuffled, split, duplicated])
@pytest.mark.parametrize("seed", VARIED, ids="s{}".format)
def test_arrival_changes_nothing(built: Rendered, seed: int, change: Change) -> None:
    one = scenario(seed)
    try:
        feed(built.spark, one, change)
        check(built, one)
    finally:
        feed(built.spark, one)


def test_the_scenarios_are_worth_running() -> None:
    """Each kind of event that the rules speak of happens, and more than once."""
    seen: Counter[str] = Counter()
    for seed in SEEDS:
        dim, rows = scenario(seed).dim, scenario(seed).expected
        assert rows
        types = {attribute.scd_type for attribute in ref.attributes_of(dim)}
        seen["a deleted row"] += any(row.get("is_deleted") is True for row in rows)
        seen["first start of a source"] += isinstance(dim.valid_from_first, dict)
        seen["no versioned attribute"] += types.isdisjoint(ref.VERSIONED)
        for attribute in ref.attributes_of(dim):
            seen[f"type {attribute.scd_type}"] += 1
            seen[attribute.rule] += len(attribute.origins) > 1
        for source in dim.sources:
            seen[source.kind] += 1
            seen[f"{source.kind}, {source.columns[source.moments[0]]}"] += 1
            seen[f"tie: {source.on_tie}"] += bool(source.rows)
            seen[f"on_absence: {source.on_absence}"] += source.kind == "snapshots"
            seen["calendar"] += source.calendar is not None
            seen["dbt snapshot"] += source.is_dbt_snapshot
            for option in OTHERS:
                seen[option] += bool(getattr(source, option))
            for cut in ("since", "until"):
                seen[f"{cut}, {source.kind}"] += getattr(source, cut) is not None
            for _, reason in ref.set_aside(dim, source):
                seen[reason] += 1
        for row in rows:
            seen["reason: " + str(row.get("change_reason"))] += 1
            seen["deleted: " + str(row.get("ended_by_delete"))] += 1
            seen["compressed"] += row["compressed_row_count"] != 1
    kinds = ("changes", "snapshots", "periods")
    wanted = {
        *(f"type {number}" for number in (0, 1, 2, 3, 6)),
        *("first_non_null", "first_present", "most_recent_row", "most_recent_value"),
        *(f"{kind}, {clock}" for kind in kinds for clock in ("date", "timestamp", "timestamp_ntz")),
        *("tie: error", "tie: greatest", "on_absence: delete", "on_absence: ignore", "calendar"),
        *("key is NULL", "moment is NULL", "moment is at or after the end of time"),
        *(
            "period is empty or inverted",
            "compressed",
            "no versioned attribute",
            "deleted: True",
            "deleted: False",
        ),
        *("reason: new", "reason: changed", "reason: returned", "dbt snapshot"),
        *(f"{cut}, {kind}" for kind in kinds for cut in ("since", "until")),
        *OTHERS,
        "first start of a source",
        "a deleted row",
    }
    assert {event: seen[event] for event in wanted if seen[event] < 3} == {}


def test_the_statement_is_the_same_when_compiled_in_another_zone(built: Rendered) -> None:
    names = [f"s{seed}" for seed in VARIED]
    before = {name: built.statement(name) for name in names}
    with session(built.spark, ABROAD):
        for seed in VARIED:
            built.model(f"s{seed}", model_sql(f"s{seed}", scenario(seed).dim))
    assert {name: built.statement(name) for name in names} == before


@pytest.mark.parametrize("one", REFUSED, ids=lambda one: one.name)
def test_what_has_no_answer_is_refused_by_name(built: Rendered, one: Scenario) -> None:
    with pytest.raises((ref.UnresolvedTieError, ref.OverlapError)):
        ref.dimension_rows(one.dim)
    with pytest.raises(Exception, match="shop.*4711"):
        check(built, one)
