"""Names and literals in the SQL that a plan is made of."""

from __future__ import annotations

import re

from healing_tables.errors import ArgumentError, Mistake, counted
from healing_tables.layout import Column, Layout


def quoted(name: str) -> str:
    """Raises: ArgumentError for a name in which Spark would replace ${...}, as it does in all SQL."""
    if "${" in name:
        mistake = Mistake(f"column {name}", "a name without ${", name, "rename the column")
        raise ArgumentError(counted("the dimension", [mistake]), [mistake])
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
    text = str(value)
    if re.search(r"[\\'$]", text):
        # Spark replaces ${...} in all SQL, and reads backslashes as the session says
        return f"cast(X'{text.encode().hex()}' as string)"
    return f"'{text}'"


def in_quotes(value: object) -> str:
    """A text where Spark takes nothing but one in quotes: in the properties of a table."""
    text = str(value).replace("\\", "\\\\").replace("'", "\\'")
    # Spark replaces ${...} in all SQL
    return "'" + text.replace("${", "\\u0024{") + "'"
