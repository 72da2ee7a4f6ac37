"""A constant of Python as SQL, in the type of a column."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal

from healing_tables.errors import Mistake
from healing_tables.sql import instants
from healing_tables.sql.identifiers import literal
from healing_tables.sql.types import FLOATING, MOMENTS, is_exact, is_text, size


def constant(value: object, kind: str, where: str, mistakes: list[Mistake]) -> str:
    """The value as SQL of that type, independent of the session; a value of another type is a mistake."""
    if value is None:
        return "null"
    is_number = isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)
    if is_text(kind) and (isinstance(value, str) or is_number):
        return literal(str(value))
    if kind == "boolean" and isinstance(value, bool):
        return literal(value)
    if kind == "binary" and isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if is_exact(kind) and isinstance(value, (int, float, Decimal)) and fits(value, kind):
        return f"cast('{value}' as {kind})"
    if kind in FLOATING and is_number:
        return f"cast('{value}' as {kind})"
    if kind in MOMENTS and isinstance(value, (str, dt.date)):
        try:
            return moment(instants.micros(value), kind)
        except ValueError:
            pass
    wanted = f"a value of type {kind}, or None for NULL"
    mistakes.append(Mistake(where, wanted, repr(value), "correct the value"))
    return "null"


def mark(value: object, kind: str, where: str, mistakes: list[Mistake]) -> str:
    """The value that means "not sent", as SQL: a `constant`; of an array, a list of them; of bytes, also a text."""
    if kind.startswith("array<") and isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        items = [mark(item, kind[len("array<") : -1], where, mistakes) for item in value]
        return f"cast(array({', '.join(items)}) as {kind})"
    if kind == "binary" and isinstance(value, str):
        return f"X'{value.encode().hex()}'"
    return constant(value, kind, where, mistakes)


def fits(value: float | Decimal, kind: str) -> bool:
    """Whether a whole number or a decimal type holds exactly this number."""
    if isinstance(value, bool):
        return False
    bits = {"tinyint": 7, "smallint": 15, "int": 31, "bigint": 63}
    if kind in bits:
        return isinstance(value, int) and -(2 ** bits[kind]) <= value < 2 ** bits[kind]
    precision, scale = size(kind)
    number = Decimal(str(value))
    return number.is_finite() and abs(number) < 10 ** (precision - scale) and number == round(number, scale)


def moment(micros: int, kind: str) -> str:
    if kind == "timestamp_ntz":
        utc = instants.EPOCH + micros * instants.MICROSECOND
        return f"timestamp_ntz '{utc:%Y-%m-%d %H:%M:%S.%f}'"
    return instants.as_moment(f"{micros}L", kind)
