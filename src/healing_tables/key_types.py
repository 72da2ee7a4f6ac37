"""The type in which key columns of two tables compare by value; the macros have the same rules in _types.sql."""

from __future__ import annotations

from healing_tables.hashing import is_text, normal, value_text
from healing_tables.layout import has_no_equality

DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
FLOATING = ("float", "double")


def common_type(left: str, right: str) -> str | None:
    """Whole numbers and decimals widen, a number and a text compare as text; None if there is no such type."""
    if has_no_equality(left) or has_no_equality(right):
        return None
    if left == right and not is_text(left):
        return left
    types = (left, right)
    if all(kind in FLOATING for kind in types):
        return "double"
    if all(kind in DIGITS for kind in types):
        return max(types, key=list(DIGITS).index)
    if all(is_exact(kind) for kind in types):
        sizes = [size(kind) for kind in types]
        scale = max(scale for _, scale in sizes)
        precision = max(precision - scale for precision, scale in sizes) + scale
        return f"decimal({precision},{scale})" if precision <= 38 else None
    if any(is_text(kind) for kind in types) and all(
        is_text(kind) or is_exact(kind) or kind in FLOATING for kind in types
    ):
        return "string"
    return None


def in_type(expression: str, kind: str, wanted: str) -> str:
    """A key column as a value of the common type."""
    expression = normal(expression, kind)
    if wanted == "string":
        return value_text(expression, kind)
    return expression if kind == wanted else f"cast({expression} as {wanted})"


def is_exact(kind: str) -> bool:
    return kind in DIGITS or kind.startswith("decimal(")


def size(kind: str) -> tuple[int, int]:
    """Precision and scale of a whole number or a decimal."""
    if kind in DIGITS:
        return DIGITS[kind], 0
    precision, scale = kind[8:-1].split(",")
    return int(precision), int(scale)
