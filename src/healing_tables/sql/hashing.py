"""The hash encoding of the package (docs/decisions/0003-hash-encoding.md), as SQL for Spark.

The macros of the dbt package use the same encoding; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Sequence

from healing_tables.sql.types import is_text
from healing_tables.sql.values import value_text

NULL_TEXT = "'^^NULL^^'"


def sha256(columns: Sequence[tuple[str, str]]) -> str:
    """Lower-case hex SHA-256 of columns ``(expression, type)``, joined by ``|``."""
    texts = [hash_text(expression, kind) for expression, kind in columns]
    if not texts:
        return "sha2('', 256)"
    return f"sha2(concat_ws('|', {', '.join(texts)}), 256)"


def hash_text(expression: str, kind: str) -> str:
    text = value_text(expression, kind)
    if is_text(kind) or "<" in kind:  # only these can contain the separator or the NULL mark
        text = (
            f"replace(replace(replace({text}, char(92), repeat(char(92), 2)), '|', concat(char(92), '|')), "
            "'^', concat(char(92), '^'))"
        )
    return f"coalesce({text}, {NULL_TEXT})"
