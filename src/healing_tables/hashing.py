"""The hash encoding of the package (docs/decisions/0003-hash-encoding.md), as SQL for Spark.

The macros of the dbt package write the same; a test compares the two.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from healing_tables.moments import TIMESTAMP, as_text
from healing_tables.naming import literal, quoted

NULL_TEXT = "'^^NULL^^'"
ISO = r"yyyy-MM-dd\'T\'HH:mm:ss.SSSSSS"  # inside of a SQL string


def sha256(columns: Sequence[tuple[str, str]]) -> str:
    """Lower-case hex SHA-256 of columns ``(expression, type)``, joined by ``|``."""
    texts = [hash_text(expression, kind) for expression, kind in columns]
    if not texts:
        return "sha2('', 256)"
    return f"sha2(concat_ws('|', {', '.join(texts)}), 256)"


def hash_text(expression: str, kind: str) -> str:
    text = value_text(expression, kind)
    if is_text(kind) or "<" in kind:  # only these can hold the separator or the NULL mark
        text = rf"replace(replace(replace({text}, r'\', r'\\'), '|', r'\|'), '^', r'\^')"
    return f"coalesce({text}, {NULL_TEXT})"


def value_text(expression: str, kind: str) -> str:
    """A value as text, whatever the session's time zone and ANSI mode."""
    if is_text(kind):
        return expression
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
            rf"'timestampFormat', '{ISO}XXX', 'timestampNTZFormat', '{ISO}'))"
        )
    return f"cast({expression} as string)"


def normal(expression: str, kind: str, depth: int = 1) -> str:
    """-0.0 is 0.0, also in arrays and structs; text compares by code point, whatever its collation."""
    if kind == "double":
        return f"cast({expression} + 0 as double)"
    if kind == "float":
        return f"{expression} + cast(0 as float)"
    if kind.startswith("string collate"):
        return f"collate({expression}, 'UTF8_BINARY')"
    if not re.search("double|float", kind):
        return expression
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


def struct_fields(kind: str) -> list[tuple[str, str]]:
    """Names and types of the fields of a type such as ``struct<a:int,`b c`:array<double>>``."""
    parts, depth = [""], 0
    for token in re.findall("`(?:[^`]|``)*`|.", kind[7:-1]):
        depth += (token in "<(") - (token in ">)")
        if token == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += token
    found = [re.fullmatch("(`(?:[^`]|``)*`|[^:]*):(.*)", part) for part in parts if part]
    return [
        (name[1:-1].replace("``", "`") if name.startswith("`") else name, member)
        for name, member in (match.groups() for match in found if match is not None)
    ]


def is_text(kind: str) -> bool:
    return kind == "string" or kind.startswith(("string collate", "varchar(", "char("))
