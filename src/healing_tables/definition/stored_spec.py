"""The open end and the values of the flags, as the rows of an existing dimension have them.

They replace the defaults of a definition; a definition that names others is refused
(docs/decisions/0049-open-end-of-the-stored-rows.md).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from healing_tables.definition.layout import Layout
from healing_tables.definition.spec import DimensionSpec
from healing_tables.definition.stored_end import EndGroup, stored_end
from healing_tables.definition.stored_flags import Flag, stored_flag
from healing_tables.definition.stored_layout import other_types
from healing_tables.errors import Mistake, TargetError, counted
from healing_tables.sql.instants import floored, micros

# Types of a flag whose values can be read from the rows
FLAGS = ("boolean", "string", "tinyint", "smallint", "int", "bigint")


@dataclass(frozen=True)
class RowGroup(EndGroup):
    """Stored rows with equal flags, and with ends of one kind.

    Attributes:
        deleted: the value of ``ended_by_delete``; None without this column.
    """

    deleted: Any = None


def as_stored(
    spec: DimensionSpec, layout: Layout, stored: Mapping[str, str], groups: Sequence[RowGroup]
) -> tuple[DimensionSpec, bool]:
    """The definition with the open end and the flags of the rows; where no row shows them, those of the definition.

    Args: stored: columns with their types; groups: all rows.
    Returns: the definition, and whether there is a row that nothing has closed.
    Raises: TargetError if the rows disagree, if the definition names other values, or if a column cannot hold them.
    """
    mistakes: list[Mistake] = []
    flag = layout.names.get("is_current")
    found: dict[str, Any] = {
        "valid_to_current": stored_end(
            spec, layout, groups, mistakes, has_flag=flag is not None, is_boolean=stored.get(flag or "") == "boolean"
        )
    }
    end = found["valid_to_current"]
    least = None if end is None else floored(micros(end), layout.moment_type)

    def is_open(group: RowGroup) -> bool:
        has_end = least is not None and group.low is not None and group.low >= least
        return group.kind in ("open", "none") or has_end

    for option, name in (("current_values", "is_current"), ("deleted_values", "ended_by_delete")):
        column = layout.names.get(name)
        if column is None or stored.get(column) not in FLAGS:
            continue
        opened: Counter[Any] = Counter()
        closed: Counter[Any] = Counter()
        for group in groups:
            value = group.flag if name == "is_current" else group.deleted
            (opened if is_open(group) else closed)[value] += group.rows
        shown = Flag(option, column, getattr(spec, option), stored[column] == "boolean")
        found[option] = stored_flag(shown, opened, closed, mistakes)
    if not mistakes:
        spec = replace(spec, **found)
        mistakes += other_types(layout.generated(spec), stored)
    if mistakes:
        raise TargetError(counted("the stored dimension", mistakes), mistakes)
    return spec, any(map(is_open, groups))
