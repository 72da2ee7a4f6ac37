"""What a dimension is, in slow and plain Python: the yardstick that the generated SQL is held against.

It follows semantics.md rule by rule, on lists and dicts, and knows nothing of Spark or of the macros.
Moments are aware datetimes in UTC; an end of None is the open end.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import pairwise, zip_longest
from typing import Any, Literal, TypeAlias

Value: TypeAlias = "None | bool | int | float | Decimal | str | bytes | dt.date | dt.datetime | tuple[str | float, ...]"
Row: TypeAlias = Mapping[str, Value]
Key: TypeAlias = tuple[Value, ...]
State: TypeAlias = Mapping[str, Value]
Changes: TypeAlias = list[tuple[dt.datetime, State | None]]

UTC = dt.timezone.utc
LAST_DAY = dt.datetime(9999, 12, 31, tzinfo=UTC)
DEFAULT_END = "9999-12-31 00:00:00"
STANDARD_COLUMNS = (
    "valid_from",
    "valid_to",
    "is_current",
    "version",
    "key_hash",
    "row_hash",
    "compressed_row_count",
)
OPTIONAL_COLUMNS = ("ended_by_delete", "last_updated", "change_reason", "change_source")
VERSIONED = (2, 6)
DBT_META = ("dbt_scd_id", "dbt_updated_at", "dbt_valid_from", "dbt_valid_to", "dbt_is_deleted")


class UnresolvedTieError(Exception):
    def __init__(self, source: str, key: Key, moment: dt.datetime) -> None:
        super().__init__(f"source {source}, key {key}, moment {moment}: rows differ")
        self.source = source


class OverlapError(Exception):
    def __init__(self, source: str, key: Key) -> None:
        super().__init__(f"source {source}, key {key}: periods overlap")
        self.source = source


@dataclass(frozen=True)
class Condition:
    """A boolean expression over a row: once as SQL, once as Python."""

    sql: str
    columns: tuple[str, ...]
    holds: Callable[[Row], bool]


@dataclass(frozen=True)
class Source:
    """One relation. ``keys`` maps a key column of the dimension to the source's own column."""

    name: str
    kind: Literal["changes", "snapshots", "periods"]
    columns: Mapping[str, str]
    rows: Sequence[Row]
    keys: Mapping[str, str]
    moments: tuple[str, ...]
    deleted_when: Condition | None = None
    where: Condition | None = None
    tie_break_by: tuple[str, ...] = ()
    on_tie: Literal["error", "greatest"] = "error"
    on_absence: Literal["delete", "ignore"] = "delete"
    calendar: Sequence[Value] | None = None
    since: str | None = None
    until: str | None = None
    is_dbt_snapshot: bool = False
    ignore_nulls: Literal[True] | tuple[str, ...] = ()
    unchanged_value: Mapping[str, Value] = field(default_factory=dict)
    sequence_by: tuple[str, ...] = ()
    truncated_when: Condition | None = None
    within: tuple[str, ...] = ()

    @property
    def has_cdc_rules(self) -> bool:
        return bool(self.ignore_nulls or self.unchanged_value or self.sequence_by or self.truncated_when)

    def can_leave_out(self, column: str) -> bool:
        return self.ignore_nulls is True or column in self.ignore_nulls or column in self.unchanged_value

    def has_sent(self, row: Row, column: str) -> bool:
        ignores = self.ignore_nulls is True or column in self.ignore_nulls
        if column in self.unchanged_value and not differ(row[column], self.unchanged_value[column]):
            return False
        return not (ignores and row[column] is None)


@dataclass(frozen=True)
class Attribute:
    name: str
    origins: tuple[tuple[str, str], ...]
    rule: str = "first_non_null"
    scd_type: int = 2
    changed_at: bool = False


@dataclass(frozen=True)
class Dimension:
    """``attributes`` of None stands for every column that the sources contribute, as type 2."""

    keys: tuple[str, ...]
    sources: tuple[Source, ...]
    attributes: tuple[Attribute, ...] | None
    exists_in: tuple[str, ...] | None = None
    column_names: Mapping[str, str | None] = field(default_factory=dict)
    valid_to_current: str | None = DEFAULT_END
    current_values: tuple[Value, Value] = (True, False)
    valid_from_first: str | Mapping[str, str] | None = None
    surrogate_key: str | None = None
    deleted_rows: bool = False


@dataclass(frozen=True)
class Held:
    """What a source says about a key, and since when: as a row, and column by column."""

    state: State
    since: dt.datetime
    value_since: Mapping[str, dt.datetime]


@dataclass(frozen=True)
class Slice:
    start: dt.datetime
    end: dt.datetime | None
    held: Mapping[str, Held | None]
    changed: tuple[str, ...]
    values: Mapping[str, Value]
    is_deleted: bool = False


# --- values ---------------------------------------------------------------------------------------


def identity(value: Value) -> Any:
    """Equal for values that `<=>` calls equal, and only for those."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return value


def rank(value: Value) -> tuple[Any, ...]:
    """Ascending order: NULL first, NaN last."""
    if value is None:
        return (0,)
    if isinstance(value, float) and math.isnan(value):
        return (2,)
    return (1, value)


def differ(left: Value, right: Value) -> bool:
    return bool(identity(left) != identity(right))


def instant(value: Value) -> dt.datetime | None:
    """A moment in UTC; a date is its midnight, a moment without a zone is UTC already."""
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    if isinstance(value, dt.date):
        return dt.datetime(value.year, value.month, value.day, tzinfo=UTC)
    return None


def decimal_parts(kind: str) -> tuple[int, int]:
    """Precision and scale of a whole or decimal type."""
    if kind in ("int", "bigint"):
        return (10, 0) if kind == "int" else (20, 0)
    found = re.fullmatch(r"decimal\((\d+),(\d+)\)", kind)
    assert found, kind
    return int(found[1]), int(found[2])


def common_type(kinds: Iterable[str]) -> str:
    wanted = set(kinds)
    if len(wanted) == 1:
        return wanted.pop()
    if "string" in wanted:
        return "string"
    if wanted <= {"int", "bigint"}:
        return "bigint"
    if wanted <= {"date", "timestamp", "timestamp_ntz"}:
        return "timestamp"
    parts = [decimal_parts(kind) for kind in wanted]
    scale = max(scale for _, scale in parts)
    return f"decimal({max(size - own for size, own in parts) + scale},{scale})"


def as_type(value: Value, kind: str, wanted: str) -> Value:
    if value is None:
        return None
    if wanted == "string":
        return text(value, kind)
    if wanted.startswith("decimal"):
        assert isinstance(value, int | Decimal)
        return Decimal(value).quantize(Decimal(1).scaleb(-decimal_parts(wanted)[1]))
    if wanted == "timestamp":
        return instant(value)
    if isinstance(value, tuple):
        return tuple(part + 0.0 if isinstance(part, float) else part for part in value)
    return value + 0.0 if isinstance(value, float) else value


# --- hashes ---------------------------------------------------------------------------------------


def double_text(value: float) -> str:
    """As Java prints it."""
    if math.isnan(value) or math.isinf(value):
        return "NaN" if math.isnan(value) else ("-" if value < 0 else "") + "Infinity"
    if value == 0:
        return "0.0"
    if 1e-3 <= abs(value) < 1e7:
        plain = format(Decimal(repr(value)), "f")
        return plain if "." in plain else plain + ".0"
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int)
    head, *tail = map(str, digits)
    power = exponent + len(tail)
    return f"{'-' * sign}{head}.{''.join(tail) or '0'}E{power}"


def moment_text(moment: dt.datetime) -> str:
    whole = moment.strftime("%Y-%m-%d %H:%M:%S").zfill(19)
    fraction = f".{moment.microsecond:06d}".rstrip("0") if moment.microsecond else ""
    return whole + fraction


def text(value: Value, kind: str) -> str:
    """A value that is not NULL, as hashes write it, before escaping."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return double_text(value)
    if isinstance(value, Decimal):
        return format(value.quantize(Decimal(1).scaleb(-decimal_parts(kind)[1])), "f")
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, tuple):
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    if isinstance(value, dt.datetime):
        moment = instant(value)
        assert moment is not None
        return moment_text(moment)
    if isinstance(value, dt.date):
        return value.isoformat()
    return str(value)


def escaped(value: Value, kind: str) -> str:
    if value is None:
        return "^^NULL^^"
    return re.sub(r"([\\|^])", r"\\\1", text(value, kind))


def hex_digest(joined: str) -> str:
    return hashlib.sha256(joined.encode()).hexdigest()


def hash_of(values: Sequence[Value], kinds: Sequence[str]) -> str:
    return hex_digest("|".join(map(escaped, values, kinds)))


# --- the shape of a dimension ---------------------------------------------------------------------


def default_attributes(sources: Sequence[Source], opened_by: Mapping[str, str] | None = None) -> tuple[Attribute, ...]:
    found = []
    for source in sources:
        conditions = [one for one in (source.deleted_when, source.truncated_when) if one]
        taken = {
            *source.keys.values(),
            *source.moments,
            *source.tie_break_by,
            *source.sequence_by,
            *source.within,
            *([opened_by[source.name]] if opened_by and source.name in opened_by else []),
            *(column for condition in conditions for column in condition.columns),
            *(DBT_META if source.is_dbt_snapshot else ()),
        }
        found += [Attribute(column, ((source.name, column),)) for column in source.columns if column not in taken]
    return tuple(found)


def attributes_of(dim: Dimension) -> tuple[Attribute, ...]:
    first = dim.valid_from_first
    opened_by = None if isinstance(first, str) else first
    return default_attributes(dim.sources, opened_by) if dim.attributes is None else dim.attributes


def attribute_type(dim: Dimension, attribute: Attribute) -> str:
    columns = {source.name: source.columns for source in dim.sources}
    return common_type(columns[source][column] for source, column in attribute.origins)


def key_types(dim: Dimension) -> list[str]:
    return [common_type(source.columns[source.keys[key]] for source in dim.sources) for key in dim.keys]


def used_columns(dim: Dimension, source: Source) -> tuple[str, ...]:
    named = {column for attribute in attributes_of(dim) for name, column in attribute.origins if name == source.name}
    return tuple(sorted(named))


def has_dates(dim: Dimension) -> bool:
    """Whether moments are days throughout, those of cuts too."""
    cuts = [configured(cut) for source in dim.sources for cut in (source.since, source.until)]
    return all(cut is None or cut.time() == dt.time() for cut in cuts) and all(
        source.columns[moment] == "date" for source in dim.sources for moment in source.moments
    )


def moment_of(text: str) -> dt.datetime:
    whole, point, fraction = text.partition(".")
    return dt.datetime.fromisoformat(f"{whole}.{fraction:0<6}" if point else whole)  # Python 3.10 wants all six digits


def configured(moment: str | None) -> dt.datetime | None:
    return None if moment is None else instant(moment_of(moment))


def end_of_time(dim: Dimension) -> dt.datetime:
    """The first moment that counts as the open end."""
    end = configured(dim.valid_to_current)
    return LAST_DAY if end is None else min(end, LAST_DAY)


# --- sources to change points ---------------------------------------------------------------------


def key_of(dim: Dimension, source: Source, row: Row) -> Key:
    columns = [source.keys[key] for key in dim.keys]
    return tuple(
        as_type(row[column], source.columns[column], wanted)
        for column, wanted in zip(columns, key_types(dim), strict=True)
    )


def reason_to_set_aside(dim: Dimension, source: Source, row: Row) -> str | None:
    moments = [instant(row[column]) for column in source.moments]
    if None in key_of(dim, source, row) and not is_truncation(source, row):
        return "key is NULL"
    if moments[0] is None:
        return "moment is NULL"
    if moments[0] >= end_of_time(dim):
        return "moment is at or after the end of time"
    if source.kind == "periods" and moments[1] is not None and moments[1] <= moments[0]:
        return "period is empty or inverted"
    return None


def is_deletion(source: Source, row: Row) -> bool:
    """A row of a dbt snapshot that says that the key is gone."""
    return source.is_dbt_snapshot and row.get("dbt_is_deleted") == "True"


def is_truncation(source: Source, row: Row) -> bool:
    return source.truncated_when is not None and source.truncated_when.holds(row)


def rows_in_question(source: Source) -> list[Row]:
    return [
        row for row in source.rows if (source.where is None or source.where.holds(row)) and not is_deletion(source, row)
    ]


def set_aside(dim: Dimension, source: Source) -> list[tuple[Row, str]]:
    reasons = [(row, reason_to_set_aside(dim, source, row)) for row in rows_in_question(source)]
    return [(row, reason) for row, reason in reasons if reason is not None]


def rows_by_key(dim: Dimension, source: Source) -> dict[Key, list[Row]]:
    found: dict[Key, list[Row]] = {}
    for row in rows_in_question(source):
        if reason_to_set_aside(dim, source, row) is None and not is_truncation(source, row):
            found.setdefault(tuple(map(identity, key_of(dim, source, row))), []).append(row)
    return found


def state_of(source: Source, row: Row, used: Sequence[str]) -> State | None:
    if source.deleted_when is not None and source.deleted_when.holds(row):
        return None
    return {column: row[column] for column in used}


def same_state(left: State | None, right: State | None) -> bool:
    if left is None or right is None:
        return left is right
    return not any(differ(left[column], right[column]) for column in left)


def settle(source: Source, key: Key, moment: dt.datetime, rows: Sequence[Row], used: Sequence[str]) -> State | None:
    """The one state that rows of one key and moment leave."""
    order = [tuple(rank(row[column]) for column in source.tie_break_by) for row in rows]
    last = [row for row, place in zip(rows, order, strict=True) if place == max(order)]
    states: list[State | None] = []
    for row in last:
        state = state_of(source, row, used)
        if not any(same_state(state, other) for other in states):
            states.append(state)
    if len(states) == 1:
        return states[0]
    if source.on_tie == "error":
        raise UnresolvedTieError(source.name, key, moment)
    living = [state for state in states if state is not None]
    if len(living) < len(states):
        return None
    return max(living, key=lambda state: [rank(state[column]) for column in used])


def read_moments(source: Source, moments: Iterable[dt.datetime]) -> dict[dt.datetime, dt.datetime]:
    """The moments that a cut source is asked about, each with its place: one before `since` moves there."""
    since, until = configured(source.since), configured(source.until)
    inside = sorted(moment for moment in moments if until is None or moment < until)
    if since is None:
        return {moment: moment for moment in inside}
    last = max((moment for moment in inside if moment <= since), default=since)
    return {moment: max(moment, since) for moment in inside if moment >= last}


def ended(source: Source, states: Mapping[dt.datetime, State | None]) -> dict[dt.datetime, State | None]:
    until = configured(source.until)
    return {**states, **({} if until is None else {until: None})}


def states_by_moment(
    source: Source, key: Key, rows: Sequence[Row], used: Sequence[str]
) -> dict[dt.datetime, State | None]:
    by_moment: dict[dt.datetime, list[Row]] = {}
    for row in rows:
        moment = instant(row[source.moments[0]])
        assert moment is not None
        by_moment.setdefault(moment, []).append(row)
    return {
        place: settle(source, key, moment, by_moment[moment], used)
        for moment, place in read_moments(source, by_moment).items()
    }


# --- change data capture --------------------------------------------------------------------------


@dataclass(frozen=True)
class Event:
    """A row of a key, or a truncation.

    Attributes:
        place: among the rows of the key.
        sent: the columns that the row says something of; None if the key ends.
    """

    moment: dt.datetime
    place: tuple[Any, ...]
    sent: State | None
    is_truncation: bool = False


def place_of(source: Source, row: Row, moment: dt.datetime) -> tuple[Any, ...]:
    columns = source.sequence_by or source.tie_break_by
    return (() if source.sequence_by else (moment,), tuple(rank(row[column]) for column in columns))


def rank_of_sent(used: Sequence[str], source: Source, sent: State | None) -> tuple[Any, ...]:
    """Which of two rows with the same place counts last."""
    if sent is None:
        return (1,)
    values = []
    for column in used:
        value: Any = rank(sent[column]) if column in sent else None
        values.append(value if not source.can_leave_out(column) else (0,) if value is None else (1, value))
    return (0, tuple(values))


def cdc_events(source: Source, key: Key, rows: Sequence[Row], used: Sequence[str]) -> list[Event]:
    """The rows of a key in their order; equal ones are one."""
    by_place: dict[tuple[Any, ...], list[Event]] = {}
    for row in rows:
        moment, state = instant(row[source.moments[0]]), state_of(source, row, used)
        assert moment is not None
        sent = None if state is None else {name: value for name, value in state.items() if source.has_sent(row, name)}
        place = place_of(source, row, moment)
        by_place.setdefault(place, []).append(Event(moment, place, sent))
    found: list[Event] = []
    for place in sorted(by_place):
        events = by_place[place]
        newest = max(event.moment for event in events)
        ranked = {rank_of_sent(used, source, event.sent): event for event in events}
        if len(ranked) > 1 and source.on_tie == "error":
            raise UnresolvedTieError(source.name, key, newest)
        found += [Event(newest, place, ranked[one].sent) for one in sorted(ranked)]
    return found


def truncations(dim: Dimension, source: Source) -> list[Event]:
    found = []
    for row in rows_in_question(source):
        if is_truncation(source, row) and reason_to_set_aside(dim, source, row) is None:
            moment = instant(row[source.moments[0]])
            assert moment is not None
            found.append(Event(moment, place_of(source, row, moment), None, is_truncation=True))
    return found


def sent_flag(column: str) -> str:
    return f"{column} was sent"


def cdc_states(
    dim: Dimension, source: Source, key: Key, rows: Sequence[Row], used: Sequence[str]
) -> dict[dt.datetime, State | None]:
    """The state from each moment on. Of columns that type 0 reads, it also says whether they were sent."""
    until = configured(source.until)
    first = {
        column
        for attribute in attributes_of(dim)
        for name, column in attribute.origins
        if attribute.scd_type == 0 and name == source.name and source.can_leave_out(column)
    }
    events = truncations(dim, source)
    if until is not None and not source.sequence_by:
        rows = [row for row in rows if (moment := instant(row[source.moments[0]])) is not None and moment < until]
        events = [event for event in events if event.moment < until]
    # at one place, a truncation comes first; at one place and moment of two of them, the order is of no consequence
    events = sorted(events, key=lambda event: (event.place, event.moment)) + cdc_events(source, key, rows, used)
    states: dict[dt.datetime, State | None] = {}
    newest: dt.datetime | None = None
    carried: State | None = None
    for event in sorted(events, key=lambda event: (event.place, not event.is_truncation)):
        if event.is_truncation and carried is None:
            continue
        newest = max(newest or event.moment, event.moment) if source.sequence_by else event.moment
        carried = None if event.sent is None else {**(carried or {}), **event.sent}
        states[newest] = None
        if carried is not None:
            flags = {sent_flag(column): column in carried for column in first}
            states[newest] = {column: carried.get(column) for column in used} | flags
    return {place: states[moment] for moment, place in read_moments(source, states).items()}


def real_changes(states: Mapping[dt.datetime, State | None]) -> Changes:
    changes: Changes = []
    current: State | None = None
    for moment in sorted(states):
        if not same_state(states[moment], current):
            current = states[moment]
            changes.append((moment, current))
    return changes


def taken_moments(dim: Dimension, source: Source) -> set[dt.datetime]:
    rows = [row for row in source.rows if source.where is None or source.where.holds(row)]
    seen = [*(source.calendar or ()), *(row[source.moments[0]] for row in rows)]
    moments = {instant(value) for value in seen}
    return {moment for moment in moments if moment is not None and moment < end_of_time(dim)}


def snapshot_states(
    dim: Dimension, source: Source, key: Key, rows: Sequence[Row], used: Sequence[str]
) -> dict[dt.datetime, State | None]:
    if source.on_absence == "ignore":
        return states_by_moment(source, key, rows, used)
    if source.within:
        return states_within(dim, source, key, rows, used)
    places = read_moments(source, taken_moments(dim, source))
    read = [row for row in rows if instant(row[source.moments[0]]) in places]
    states = states_by_moment(source, key, read, used)
    return {place: states.get(place) for place in places.values()}


def part_of(source: Source, row: Row) -> tuple[Any, ...]:
    return tuple(identity(row[column]) for column in source.within)


def states_within(
    dim: Dimension, source: Source, key: Key, rows: Sequence[Row], used: Sequence[str]
) -> dict[dt.datetime, State | None]:
    """Each row holds until the next snapshot that has its part, or until another row of the key."""
    taken: dict[tuple[Any, ...], set[dt.datetime]] = {}
    for row in source.rows:
        moment = instant(row[source.moments[0]])
        if (source.where is None or source.where.holds(row)) and moment is not None and moment < end_of_time(dim):
            taken.setdefault(part_of(source, row), set()).add(moment)
    since, until = configured(source.since), configured(source.until)
    by_moment: dict[dt.datetime, list[Row]] = {}
    for row in rows:
        moment = instant(row[source.moments[0]])
        assert moment is not None
        end = min((other for other in taken[part_of(source, row)] if other > moment), default=None)
        if (until is None or moment < until) and (since is None or end is None or end > since):
            by_moment.setdefault(moment, []).append(row)
    starts: dict[dt.datetime, State | None] = {}
    ends: dict[dt.datetime, dt.datetime | None] = {}
    for moment in sorted(by_moment):
        order = {id(row): tuple(rank(row[column]) for column in source.tie_break_by) for row in by_moment[moment]}
        last = [row for row in by_moment[moment] if order[id(row)] == max(order.values())]

        def end_of(row: Row, moment: dt.datetime = moment) -> dt.datetime | None:
            return min((other for other in taken[part_of(source, row)] if other > moment), default=None)

        said = {(tuple(identity(row[column]) for column in used), end_of(row)) for row in last}
        if len(said) > 1 and source.on_tie == "error":
            raise UnresolvedTieError(source.name, key, moment)
        row = max(last, key=lambda row: [rank(row[column]) for column in (*used, *source.within)])
        place = moment if since is None else max(moment, since)
        starts[place], ends[place] = state_of(source, row, used), end_of(row)
    states: dict[dt.datetime, State | None] = dict(starts)
    for place, end in ends.items():
        if end is not None and end < min((other for other in starts if other > place), default=LAST_DAY):
            states[end] = None
    return states


def period_states(
    dim: Dimension, source: Source, key: Key, rows: Sequence[Row], used: Sequence[str]
) -> dict[dt.datetime, State | None]:
    periods: list[tuple[dt.datetime, dt.datetime | None, State]] = []
    for row in rows:
        start, end = (instant(row[column]) for column in source.moments)
        assert start is not None
        open_end = None if end is None or end >= end_of_time(dim) else end
        since, until = configured(source.since), configured(source.until)
        if (until is not None and start >= until) or (since and open_end and open_end <= since):
            continue
        start = max(start, since) if since else start
        open_end = min(open_end or until, until) if until else open_end
        state: State = {column: row[column] for column in used}
        if not any((start, open_end) == known[:2] and same_state(state, known[2]) for known in periods):
            periods.append((start, open_end, state))
    periods.sort(key=lambda period: period[0])
    states: dict[dt.datetime, State | None] = {}
    for (_, end, _), (following, _, _) in pairwise(periods):
        if end is None or end > following:
            raise OverlapError(source.name, key)
    for since, until, held in periods:
        states[since] = held
        if until is not None:
            states[until] = None
    return states


def change_points(dim: Dimension, source: Source) -> dict[Key, Changes]:
    used = used_columns(dim, source)
    found: dict[Key, Changes] = {}
    for key, rows in rows_by_key(dim, source).items():
        if source.has_cdc_rules:
            states = cdc_states(dim, source, key, rows, used)
        elif source.kind == "changes":
            states = states_by_moment(source, key, rows, used)
        elif source.kind == "snapshots":
            states = snapshot_states(dim, source, key, rows, used)
        else:
            states = period_states(dim, source, key, rows, used)
        found[key] = real_changes(ended(source, states))
    return found


# --- change points to slices ----------------------------------------------------------------------


def held_at(changes: Changes, moment: dt.datetime) -> Held | None:
    held: Held | None = None
    for at, state in changes:
        if at > moment:
            break
        if state is None:
            held = None
        elif held is None:
            held = Held(state, at, dict.fromkeys(state, at))
        else:
            moved = {column for column in state if differ(state[column], held.state[column])}
            since = dict(held.value_since) | dict.fromkeys(moved, at)
            held = Held(state, at, since)
    return held


def owned_value(dim: Dimension, attribute: Attribute, held: Mapping[str, Held | None]) -> Value:
    """The value that the attribute's rule picks from what the sources hold."""
    kinds = {source.name: source.columns for source in dim.sources}
    wanted = attribute_type(dim, attribute)
    present = [(name, column, held[name]) for name, column in attribute.origins]
    offers: list[tuple[Value, dt.datetime, dt.datetime]] = [
        (
            as_type(own.state[column], kinds[name][column], wanted),
            own.since,
            own.value_since[column],
        )
        for name, column, own in present
        if own is not None
    ]
    if attribute.rule == "first_present":
        return offers[0][0] if offers else None
    filled = [offer for offer in offers if offer[0] is not None]
    if not filled:
        return None
    if attribute.rule == "most_recent_row":
        return max(filled, key=lambda offer: offer[1])[0]
    if attribute.rule == "most_recent_value":
        return max(filled, key=lambda offer: offer[2])[0]
    return filled[0][0]


def slices_of(dim: Dimension, changes: Mapping[str, Changes]) -> list[Slice]:
    """The stretches in which the key exists, in order; a gap leaves its mark as end < next start."""
    deciding = dim.exists_in or tuple(source.name for source in dim.sources)
    starts = sorted({at for points in changes.values() for at, _ in points})
    found = []
    for start, end in zip_longest(starts, starts[1:]):
        held = {name: held_at(points, start) for name, points in changes.items()}
        if any(held[name] is not None for name in deciding):
            moved = tuple(name for name, points in changes.items() if start in [at for at, _ in points])
            values = {attribute.name: owned_value(dim, attribute, held) for attribute in attributes_of(dim)}
            found.append(Slice(start, end, held, moved, values))
        elif dim.deleted_rows and found:
            moved = tuple(name for name, points in changes.items() if start in [at for at, _ in points])
            found.append(Slice(start, end, held, moved, found[-1].values, is_deleted=True))
    return found


# --- slices to versions ---------------------------------------------------------------------------


def versions_of(dim: Dimension, slices: Sequence[Slice]) -> list[list[int]]:
    """Which slices each version is made of, by position."""
    versioned = [a.name for a in attributes_of(dim) if a.scd_type in VERSIONED]
    if not versioned and not dim.deleted_rows:
        return [list(range(len(slices)))]
    found = [[0]]
    for here in range(1, len(slices)):
        before, after = slices[here - 1], slices[here]
        touch = before.end == after.start and before.is_deleted == after.is_deleted
        if touch and not any(differ(before.values[n], after.values[n]) for n in versioned):
            found[-1].append(here)
        else:
            found.append([here])
    return found


def known_since(slices: Sequence[Slice], name: str, last: int) -> int:
    """Position of the slice where the value shown in slice ``last`` began; gaps do not count."""
    here = last
    while here > 0 and not differ(slices[here - 1].values[name], slices[last].values[name]):
        here -= 1
    return here


def first_taken(slices: Sequence[Slice], attribute: Attribute) -> int | None:
    """Position of the first slice in which a source of the attribute has the key, and has sent the column."""

    def has_sent(held: Held | None, column: str) -> bool:
        return held is not None and held.state.get(sent_flag(column), True) is True

    return next(
        (
            i
            for i, one in enumerate(slices)
            if any(has_sent(one.held[name], column) for name, column in attribute.origins)
        ),
        None,
    )


def attribute_columns(
    attribute: Attribute, slices: Sequence[Slice], version: Sequence[int], before: int | None
) -> dict[str, Value]:
    """The attribute and its companions in one version; ``before``: last slice of the version before."""
    name, last = attribute.name, version[-1]
    newest = len(slices) - 1
    columns: dict[str, Value] = {}
    if attribute.scd_type == 0:
        taken = first_taken(slices, attribute)
        columns[name] = None if taken is None else slices[taken].values[name]
    elif attribute.scd_type == 1:
        columns[name] = slices[newest].values[name]
    else:
        columns[name] = slices[last].values[name]
    if attribute.scd_type == 3:
        since = known_since(slices, name, last)
        columns[f"previous_{name}"] = slices[since - 1].values[name] if since else None
    if attribute.scd_type == 6:
        columns[f"current_{name}"] = slices[newest].values[name]
        columns[f"previous_{name}"] = None if before is None else slices[before].values[name]
    if attribute.changed_at:
        shown = newest if attribute.scd_type == 1 else last
        columns[f"{name}_changed_at"] = slices[known_since(slices, name, shown)].start
    return columns


def reopening(slices: Sequence[Slice]) -> list[dt.datetime]:
    return [after.start for before, after in pairwise(slices) if before.end != after.start]


def last_updated(dim: Dimension, slices: Sequence[Slice], version: Sequence[int]) -> dt.datetime:
    newest, last = len(slices) - 1, version[-1]
    moments = [slices[version[0]].start]
    end = slices[last].end
    if end is not None:
        moments.append(end)
    for attribute in attributes_of(dim):
        if attribute.scd_type in (1, 6):
            moments.append(slices[known_since(slices, attribute.name, newest)].start)
        elif attribute.scd_type == 3:
            moments.append(slices[known_since(slices, attribute.name, last)].start)
        elif attribute.scd_type == 0:
            taken = first_taken(slices, attribute)
            moments += [] if taken is None else [slices[taken].start]
    if not any(attribute.scd_type in VERSIONED for attribute in attributes_of(dim)) and not dim.deleted_rows:
        moments += reopening(slices)
    return max(moments)


def change_reason(slices: Sequence[Slice], version: Sequence[int]) -> str:
    first = version[0]
    if first == 0:
        return "new"
    if slices[first].is_deleted or slices[first - 1].is_deleted:
        return "deleted" if slices[first].is_deleted else "returned"
    return "changed" if slices[first - 1].end == slices[first].start else "returned"


def ended_by_delete(slices: Sequence[Slice], version: Sequence[int]) -> bool:
    last = version[-1]
    end = slices[last].end
    if last + 1 < len(slices) and slices[last + 1].is_deleted:
        return True
    return end is not None and (last + 1 == len(slices) or slices[last + 1].start != end)


# --- the rows -------------------------------------------------------------------------------------


def first_start(dim: Dimension, key: Key, start: dt.datetime) -> dt.datetime:
    if dim.valid_from_first is None or isinstance(dim.valid_from_first, str):
        wanted = configured(dim.valid_from_first)
        return start if wanted is None else min(wanted, start)
    given = [
        instant(row[dim.valid_from_first[source.name]])
        for source in dim.sources
        if source.name in dim.valid_from_first
        for row in rows_by_key(dim, source).get(tuple(map(identity, key)), [])
    ]
    return min([start, *(moment for moment in given if moment is not None)])


def shown_moment(dim: Dimension, moment: dt.datetime | None) -> Value:
    return moment.date() if moment is not None and has_dates(dim) else moment


def in_output(dim: Dimension, columns: Mapping[str, Value]) -> dict[str, Value]:
    """Generated columns under the names asked for."""
    found: dict[str, Value] = {}
    for name, value in columns.items():
        wanted = dim.column_names.get(name, name if name in STANDARD_COLUMNS else None)
        if wanted is not None:
            found[wanted] = value
    return found


def version_row(
    dim: Dimension, key: Key, slices: Sequence[Slice], versions: Sequence[Sequence[int]], at: int
) -> dict[str, Value]:
    version = versions[at]
    before = versions[at - 1][-1] if at else None
    row: dict[str, Value] = dict(zip(dim.keys, key, strict=True))
    for attribute in attributes_of(dim):
        row |= {
            name: shown_moment(dim, value)
            if name == f"{attribute.name}_changed_at" and isinstance(value, dt.datetime)
            else value
            for name, value in attribute_columns(attribute, slices, version, before).items()
        }
    start, end = slices[version[0]].start, slices[version[-1]].end
    start = start if at else first_start(dim, key, start)
    hashed = [(a.name, attribute_type(dim, a)) for a in attributes_of(dim) if a.scd_type in VERSIONED]
    if dim.deleted_rows:
        name = dim.column_names.get("is_deleted") or "is_deleted"
        row[name] = slices[version[0]].is_deleted
        hashed.append((name, "boolean"))
    hashed.sort()
    key_hash = hash_of(key, key_types(dim))
    generated: dict[str, Value] = {
        "valid_from": shown_moment(dim, start),
        "valid_to": shown_moment(dim, configured(dim.valid_to_current) if end is None else end),
        "is_current": dim.current_values[0 if end is None else 1],
        "version": at + 1,
        "key_hash": key_hash,
        "row_hash": hash_of([row[name] for name, _ in hashed], [kind for _, kind in hashed]),
        "compressed_row_count": len(version),
        "ended_by_delete": ended_by_delete(slices, version),
        "last_updated": shown_moment(dim, last_updated(dim, slices, version)),
        "change_reason": change_reason(slices, version),
        "change_source": ",".join(slices[version[0]].changed),
    }
    row |= in_output(dim, generated)
    if dim.surrogate_key is not None:
        kind = "date" if has_dates(dim) else "timestamp"
        row[dim.surrogate_key] = hex_digest(f"{key_hash}|{text(generated['valid_from'], kind)}")[:32]
    return row


def dimension_rows(dim: Dimension) -> list[dict[str, Value]]:
    """Every row of the dimension, by column name.

    Raises: UnresolvedTieError, OverlapError.
    """
    points = {source.name: change_points(dim, source) for source in dim.sources}
    keys = sorted({key for found in points.values() for key in found}, key=repr)
    rows = []
    for key in keys:
        slices = slices_of(dim, {name: found.get(key, []) for name, found in points.items()})
        if slices:
            versions = versions_of(dim, slices)
            rows += [version_row(dim, key, slices, versions, at) for at in range(len(versions))]
    return rows


# --- type 4 ---------------------------------------------------------------------------------------


def current_and_history(dim: Dimension) -> tuple[list[Row], list[Row]]:
    """Type 4: the newest row of each key that exists, and the rows before it, by column name.

    A row begins with a change of a type 4 attribute or with the arrival of its key. It shows of types 1 and 4 what held
    at its end, and of type 0 the first value that the key ever had.
    """
    (source,) = dim.sources
    current: list[Row] = []
    history: list[Row] = []
    for key, changes in sorted(change_points(dim, source).items(), key=repr):
        slices = slices_of(dim, {source.name: changes})
        rows: list[list[int]] = []
        for here in range(len(slices)):
            before, after = slices[here - 1], slices[here]
            moved = any(
                differ(before.values[a.name], after.values[a.name]) for a in attributes_of(dim) if a.scd_type == 4
            )
            if here and before.end == after.start and not moved:
                rows[-1].append(here)
            else:
                rows.append([here])
        for row in rows:
            first, last = slices[row[0]], slices[row[-1]]
            columns: dict[str, Value] = dict(zip(dim.keys, key, strict=True))
            for a in attributes_of(dim):
                columns[a.name] = slices[0 if a.scd_type == 0 else row[-1]].values[a.name]
                if a.changed_at:
                    since = slices[known_since(slices, a.name, row[-1])].start
                    columns[f"{a.name}_changed_at"] = shown_moment(dim, since)
            start, end = shown_moment(dim, first.start), last.end
            if end is None:
                current.append(columns | {"last_updated": start})
            else:
                bounds = {"valid_from": start, "valid_to": shown_moment(dim, end)}
                history.append(columns | bounds)
    return current, history
