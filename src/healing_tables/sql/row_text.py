"""A row as text that gives every value back: a JSON object, with the types of its columns as its last member."""

from __future__ import annotations

from collections.abc import Mapping

from healing_tables.sql.identifiers import literal, quoted
from healing_tables.sql.types import map_types, struct_fields
from healing_tables.sql.values import JSON

# The name of that member
TYPES = "@types"


def row_text(row: str, columns: Mapping[str, str]) -> str:
    """The expression for that; NULL for a row that is NULL.

    Args: row: a struct; columns: those of its columns that the text has, with their types.
    """
    fields = [f"{literal(name)}, {as_json(f'{row}.{quoted(name)}', kind)}" for name, kind in columns.items()]
    types = literal(", ".join(f"{quoted(name)} {kind}" for name, kind in columns.items()))
    return f"if({row} is null, null, to_json(named_struct({', '.join(fields)}, {literal(TYPES)}, {types}), {JSON}))"


def as_json(expression: str, kind: str, *, back: bool = False, depth: int = 1) -> str:
    """A value of a type that to_json and from_json keep: a map as an array of its entries, also in other types.

    Args: back: the value of such an expression again.
    """
    if "map<" not in kind:
        return expression
    item = f"item_{depth}"
    if kind.startswith("array<"):
        return f"transform({expression}, {item} -> {as_json(item, kind[6:-1], back=back, depth=depth + 1)})"
    if kind.startswith("map<"):
        of_key, of_value = map_types(kind)
        key = as_json(f"{item}.key", of_key, back=back, depth=depth + 1)
        value = as_json(f"{item}.value", of_value, back=back, depth=depth + 1)
        entries = expression if back else f"map_entries({expression})"
        entries = f"transform({entries}, {item} -> struct({key} as key, {value} as value))"
        return f"map_from_entries({entries})" if back else entries
    fields = ", ".join(
        f"{literal(name)}, {as_json(f'{expression}.{quoted(name)}', member, back=back, depth=depth)}"
        for name, member in struct_fields(kind)
    )
    return f"if({expression} is null, null, named_struct({fields}))" if fields else expression


def parsed_row(text: str, columns: Mapping[str, str]) -> str:
    """Columns of such a text, as a struct; NULL where the text has none of that name.

    A value of it is ``as_json(field, kind, back=True)``.

    Args: text: an expression; columns: with their types in the text.
    """
    fields = ", ".join(f"{quoted(name)} {json_type(kind)}" for name, kind in columns.items())
    return f"from_json({text}, {literal(fields)}, {JSON})"


def json_type(kind: str) -> str:
    """The type of an expression of `as_json`."""
    if "map<" not in kind:
        return kind
    if kind.startswith("array<"):
        return f"array<{json_type(kind[6:-1])}>"
    if kind.startswith("map<"):
        key, value = map(json_type, map_types(kind))
        return f"array<struct<key:{key},value:{value}>>"
    return f"struct<{','.join(f'{quoted(name)}:{json_type(member)}' for name, member in struct_fields(kind))}>"
