"""Moments are microseconds since 1970-01-01 00:00 UTC, so that the session time zone does not affect them."""

from __future__ import annotations

import datetime as dt
import re

UTC = dt.timezone.utc
EPOCH = dt.datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = dt.timedelta(microseconds=1)
DAY = 86_400_000_000
TIMESTAMP = "timestamp_ltz"  # plain timestamp depends on spark.sql.timestampType
TEXT = re.compile(r"(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d)(:\d\d(?:\.\d{1,6})?)?(Z|[+-]\d\d:\d\d)?)?")


class Micros(int):
    """A moment of a stored row, in microseconds: it may be after the year 9999, which other types cannot hold."""


def micros(moment: dt.datetime | dt.date | str | Micros) -> int:
    """A moment as microseconds. A date is its midnight; without an offset it is UTC.

    Raises: ValueError if a text is not a moment.
    """
    if isinstance(moment, Micros):
        return int(moment)
    if isinstance(moment, str):
        match = TEXT.fullmatch(moment.strip())
        if match is None:
            raise ValueError(f"{moment!r} is not a moment such as 2024-01-31 or 2024-01-31 10:00:00")
        day, minutes, seconds, zone = match.groups()
        whole, _, fraction = (seconds or ":00").partition(".")
        text = f"{day}T{minutes or '00:00'}{whole}.{fraction:0<6}{'+00:00' if zone in (None, 'Z') else zone}"
        moment = dt.datetime.fromisoformat(text)
    elif not isinstance(moment, dt.datetime):
        moment = dt.datetime(moment.year, moment.month, moment.day)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - EPOCH) // MICROSECOND


# In a stored dimension, an end from this moment on is open: nobody plans an end there
FAR = micros("2200-01-01")


def moment_text(moment: int) -> str:
    """Microseconds as a text in messages."""
    try:
        shown = EPOCH + moment * MICROSECOND
    except OverflowError:
        return f"a moment outside the years 1 to 9999 ({moment} microseconds after 1970)"
    return f"{shown:%Y-%m-%d %H:%M:%S}{f'.{shown:%f}' if shown.microsecond else ''} UTC"


def is_date(moment: dt.datetime | dt.date | str | None) -> bool:
    """Whether a moment was written as a day, without a time."""
    if isinstance(moment, str):
        return len(moment.strip()) == 10
    return isinstance(moment, dt.date) and not isinstance(moment, dt.datetime)


def now() -> int:
    return (dt.datetime.now(UTC) - EPOCH) // MICROSECOND


def of(at: dt.datetime | dt.date | str | None, kind: str) -> int:
    """The moment of a batch in microseconds: the one given, or now; its midnight where moments are dates."""
    return floored(now() if at is None else micros(at), kind)


def floored(moment: int, kind: str) -> int:
    return moment - moment % DAY if kind == "date" else moment


def open_from(end: dt.datetime | dt.date | str | Micros | None, kind: str) -> int:
    """From this moment on, an end is open: the configured one, or 9999-12-31 if that is earlier. For dates, it is a
    day."""
    latest = micros("9999-12-31")
    return floored(latest if end is None else min(latest, micros(end)), kind)


def as_micros(expression: str, kind: str) -> str:
    """A column of type date, timestamp_ltz or timestamp_ntz (read as UTC), as a bigint."""
    if kind == "date":
        return f"unix_date({expression}) * {DAY}"
    if kind == "timestamp_ntz":
        return f"unix_micros(cast(concat(cast({expression} as string), 'Z') as {TIMESTAMP}))"
    return f"unix_micros({expression})"


def as_moment(expression: str, kind: str) -> str:
    """The inverse of `as_micros`: a date, a timestamp, or a timestamp_ntz in UTC."""
    if kind == "timestamp_ntz":
        return f"(timestamp_ntz '1970-01-01 00:00:00' + ({expression}) * interval '0.000001' second)"
    if kind == "date":
        return f"date_from_unix_date(cast(({expression} - pmod({expression}, {DAY})) div {DAY} as int))"
    return f"timestamp_micros({expression})"


def as_text(expression: str, kind: str) -> str:
    """A moment as text, as in hashes: UTC, no trailing zeros."""
    if kind == "date":
        return f"cast({expression} as string)"
    instant = f"timestamp_ntz '1970-01-01 00:00:00' + {as_micros(expression, kind)} * interval '0.000001' second"
    return f"cast({instant} as string)"
