"""The type in which key columns of two tables compare by value; the macros have the same rules in
macros/sql/_types.sql and _cast.sql."""

from __future__ import annotations

import re

from pyspark.sql import types as t

from healing_tables.sql.instants import TIMESTAMP

MOMENTS = ("date", TIMESTAMP, "timestamp_ntz")

DECLARED = "__CHAR_VARCHAR_TYPE_STRING"  # where Spark keeps the type of a char or a varchar
# Matches string types with a collation and char types, also inside arrays, maps and structs
NOT_PLAIN = re.compile(r"(^|[:<])((?:string|(?:var)?char\(\d+\)) collate \w+|char\(\d+\))(?=$|[,>])")

# The digits of the largest value; and of the decimal to which Spark widens the type
DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
DECIMAL_DIGITS = DIGITS | {"bigint": 20}
FLOATING = ("float", "double")


def common_type(left: str, right: str) -> str | None:
    """Whole numbers and decimals widen, a number and a text compare as text; None if there is no such type."""
    if has_no_equality(left) or has_no_equality(right):
        return None
    left, right = plain_type(left), plain_type(right)
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


def is_exact(kind: str) -> bool:
    return kind in DIGITS or kind.startswith("decimal(")


def size(kind: str) -> tuple[int, int]:
    """Precision and scale of the decimal to which a whole number or a decimal widens."""
    if kind in DECIMAL_DIGITS:
        return DECIMAL_DIGITS[kind], 0
    precision, scale = kind[8:-1].split(",")
    return int(precision), int(scale)


def types_of(schema: t.StructType) -> dict[str, str]:
    """Name to type, as Spark spells it; a char(n) as it is declared."""
    return {field.name: declared_type(field) for field in schema}


def declared_type(field: t.StructField) -> str:
    declared = str(field.metadata.get(DECLARED, ""))
    return declared if plain_type(declared) != declared else type_text(field.dataType)


def plain_type(kind: str) -> str:
    """The type of a column as the package reads it: text without collation, and without padding."""
    return NOT_PLAIN.sub(r"\1string", kind)


def type_text(kind: t.DataType) -> str:
    """A type as SQL. Spark's own text does not quote the names of fields, and its timestamp depends on the
    session."""
    if isinstance(kind, t.TimestampType):
        return TIMESTAMP
    if isinstance(kind, t.ArrayType):
        return f"array<{type_text(kind.elementType)}>"
    if isinstance(kind, t.StructType):
        fields = []
        for field in kind:
            is_plain = re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", field.name) is not None
            name = field.name if is_plain else "`" + field.name.replace("`", "``") + "`"
            fields.append(f"{name}:{type_text(field.dataType)}")
        return f"struct<{','.join(fields)}>"
    return kind.simpleString()


def has_no_equality(kind: str) -> bool:
    """Maps, variants and geometries, also inside other types; not fields with such a name."""
    return re.search(r"(^|[:<,])(map<|variant($|[>,])|geo(metry|graphy)[(])", kind) is not None


def has_no_type(kind: str) -> bool:
    """An untyped NULL (void), also inside other types."""
    return re.search(r"(^|[:<,])void($|[>,])", kind) is not None


def struct_fields(kind: str) -> list[tuple[str, str]]:
    """Names and types of the fields of a type such as ``struct<a:int,`b c`:array<double>>``."""
    if not kind.startswith("struct<"):
        return []
    found = [re.fullmatch("(`(?:[^`]|``)*`|[^:]*):(.*)", part) for part in members(kind) if part]
    return [
        (name[1:-1].replace("``", "`") if name.startswith("`") else name, member)
        for name, member in (match.groups() for match in found if match is not None)
    ]


def map_types(kind: str) -> tuple[str, str]:
    """The types of the keys and of the values of a type such as ``map<decimal(10,2),string>``."""
    key, value = members(kind)
    return key, value


def members(kind: str) -> list[str]:
    """The parts between the outer ``<`` and ``>`` of a type, which commas separate."""
    return separated(kind[kind.index("<") + 1 : -1])


def separated(text: str) -> list[str]:
    """What the commas of a list of types separate, other than those of a type in it."""
    parts, depth = [""], 0
    for token in re.findall("`(?:[^`]|``)*`|.", text):
        depth += (token in "<(") - (token in ">)")
        if token == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += token
    return parts


def is_text(kind: str) -> bool:
    return kind == "string" or kind.startswith(("string collate", "varchar(", "char("))
