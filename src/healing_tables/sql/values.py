"""Values of columns as SQL expressions that mean the same in every session."""

from __future__ import annotations

import re

from pyspark.sql import DataFrame

from healing_tables.sql.identifiers import literal, quoted
from healing_tables.sql.instants import TIMESTAMP, as_text
from healing_tables.sql.types import is_text, plain_type, struct_fields, types_of


def iso_pattern(zone: str = "") -> str:
    """ISO 8601 to the microsecond, as an expression."""
    return f"concat('yyyy-MM-dd', char(39), 'T', char(39), 'HH:mm:ss.SSSSSS{zone}')"


# Options of to_json for whole rows: moments in UTC and to the microsecond, NULLs as well
JSON = (
    f"map('timeZone', 'UTC', 'timestampFormat', {iso_pattern('XXX')}, 'timestampNTZFormat', {iso_pattern()}, "
    "'ignoreNullFields', 'false')"
)


def value_text(expression: str, kind: str) -> str:
    """A value as text, whatever the session's time zone and ANSI mode."""
    if is_text(kind):
        return normal(expression, kind)
    if kind in ("double", "float"):
        return f"cast({normal(expression, kind)} as string)"
    if kind == "binary":
        return f"lower(hex({expression}))"
    if kind in (TIMESTAMP, "timestamp_ntz"):
        return as_text(expression, kind)
    scale = re.fullmatch(r"decimal\(\d+,(\d+)\)", kind)
    if scale and int(scale[1]) > 6:
        # the only decimals that Spark may write with an exponent are those below 0.000001
        text = f"cast({expression} as string)"
        digits = f"translate(substring_index({text}, 'E', 1), '-.', '')"
        return (
            f"case when contains({text}, 'E') then concat(if({expression} < 0, '-0.', '0.'), "
            f"lpad({digits}, {scale[1]}, '0')) else {text} end"
        )
    if "<" in kind:
        return (
            f"to_json({normal(expression, kind)}, map('timeZone', 'UTC', "
            f"'timestampFormat', {iso_pattern('XXX')}, 'timestampNTZFormat', {iso_pattern()}))"
        )
    return f"cast({expression} as string)"


def normal(expression: str, kind: str, depth: int = 1) -> str:
    """-0.0 is 0.0, text compares by code point whatever its collation, the padding of a char(n) is left out; also in
    arrays and structs. The type of the result is `plain_type`."""
    if kind == "double":
        return f"cast({expression} + 0 as double)"
    if kind == "float":
        return f"{expression} + cast(0 as float)"
    if kind.startswith("char("):
        return f"rtrim(cast({expression} as string))"
    if not re.search(r"double|float| collate |(^|[:<])char\(", kind):
        return expression
    if is_text(kind):
        return f"cast({expression} as string)"
    if kind.startswith("array<"):
        item = f"item_{depth}"
        return f"transform({expression}, {item} -> {normal(item, kind[6:-1], depth + 1)})"
    if kind.startswith("struct<"):
        fields = ", ".join(
            f"{literal(name)}, {normal(f'{expression}.{quoted(name)}', member, depth)}"
            for name, member in struct_fields(kind)
        )
        return f"if({expression} is null, null, named_struct({fields}))"
    return expression


def with_plain_text(frame: DataFrame) -> DataFrame:
    """The frame with text without collation, and without the padding of a char(n), in its columns and inside them."""
    kinds = types_of(frame.schema)
    if all(plain_type(kind) == kind for kind in kinds.values()) or len(kinds) < len(frame.columns):
        return frame  # a name that occurs twice is refused later
    return frame.selectExpr(
        *(
            quoted(name) if plain_type(kind) == kind else f"{normal(quoted(name), kind)} as {quoted(name)}"
            for name, kind in kinds.items()
        )
    )


def in_type(expression: str, kind: str, wanted: str) -> str:
    """A key column as a value of the common type."""
    expression, kind = normal(expression, kind), plain_type(kind)
    if wanted == "string":
        return value_text(expression, kind)
    return expression if kind == wanted else f"cast({expression} as {wanted})"
