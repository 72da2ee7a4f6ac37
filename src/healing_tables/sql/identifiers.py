"""Names and literals in the SQL of plans."""

from __future__ import annotations

import re
from collections.abc import Collection

from healing_tables.errors import ArgumentError, Mistake, counted


def quoted(name: str) -> str:
    """Raises: ArgumentError for a name in which Spark would replace ${...}, as it does in all SQL."""
    if "${" in name:
        mistake = Mistake(f"column {name}", "a name without ${", name, "rename the column")
        raise ArgumentError(counted("the dimension", [mistake]), [mistake])
    return "`" + name.replace("`", "``") + "`"


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
        # Spark replaces ${...} in all SQL, and a session setting determines how it reads backslashes
        return f"cast(X'{text.encode().hex()}' as string)"
    return f"'{text}'"


def in_quotes(value: object) -> str:
    """A quoted string, where Spark accepts nothing else: in the properties of a table."""
    text = str(value).replace("\\", "\\\\").replace("'", "\\'")
    # Spark replaces ${...} in all SQL
    return "'" + text.replace("${", "\\u0024{") + "'"


def find(name: str, columns: Collection[str]) -> str | None:
    """A column by name, case-insensitive: Spark distinguishes names by case only if a session enables it."""
    if name in columns:
        return name
    return next((column for column in columns if column.lower() == name.lower()), None)
