"""Names and literals in the SQL that a plan is made of."""

from __future__ import annotations

from healing_tables.layout import Column, Layout


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def numbered(layout: Layout, *types: int) -> list[tuple[int, Column]]:
    """Attributes of some SCD types with their numbers: ``a1..n`` in the order of the layout."""
    return [
        (number, attribute)
        for number, attribute in enumerate(layout.attributes, start=1)
        if attribute.scd_type in types
    ]


def by_name(layout: Layout) -> list[tuple[int, Column]]:
    """All attributes with their numbers, in the order of a ``state``: that of their names."""
    return sorted(enumerate(layout.attributes, start=1), key=lambda item: item[1].name)


def literal(value: object) -> str:
    """A constant as SQL."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return str(value)
    return "'" + str(value).replace("\\", "\\\\").replace("'", "\\'") + "'"
