"""The open end of the stored rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from healing_tables.definition.layout import Layout
from healing_tables.definition.spec import DimensionSpec, is_named
from healing_tables.errors import Mistake, rows_text
from healing_tables.sql.instants import Micros, floored, micros, moment_text


@dataclass(frozen=True)
class EndGroup:
    """Stored rows with ends of one kind.

    Attributes:
        kind: ``open``: the end is NULL, or at or after FAR, or the one that the definition names; ``later``: it is
            after now; ``past``: before. ``none``: the table has no column with ends.
        low, high: the least and the greatest end in microseconds. Rows with different open ends are different groups.
        flag: the value of ``is_current``; None without this column.
    """

    kind: str
    low: int | None
    high: int | None
    flag: Any
    rows: int


def stored_end(
    spec: DimensionSpec,
    layout: Layout,
    groups: Sequence[EndGroup],
    mistakes: list[Mistake],
    *,
    has_flag: bool,
    is_boolean: bool,
) -> Any:
    """The open end as ``valid_to_current``: that of the definition if no row shows one, or on a mistake.

    Args: has_flag, is_boolean: whether there is a column ``is_current``, and its type.
    """
    given, column = spec.valid_to_current, layout.names.get("valid_to")
    if column is None:
        return given
    where = f"valid_to_current ({column})"
    current, closed = spec.current_values if is_boolean or is_named(spec.current_values) else (None, None)
    # an open end in a row with the flag of closed rows counts only if all rows have it
    flagged = [group for group in groups if not has_flag or closed is None or group.flag != closed]
    ends = open_ends(flagged) or open_ends(groups)
    later = [
        group
        for group in flagged
        if group.kind == "later" and (not has_flag or (group.flag is not None and current in (None, group.flag)))
    ]
    if later and has_flag and not spec.current_while_deleted and is_shared(later):
        ends[later[0].high] += sum(group.rows for group in later)
    elif later and not ends and not is_named(given):
        bounds = (min(group.low or 0 for group in later), max(group.high or 0 for group in later))
        mistakes.append(
            Mistake(
                where,
                "an open end in the stored rows: NULL, or a moment from 2200-01-01 on, or one end in the future that "
                "several current rows share",
                f"ends in the future that may be real: {' to '.join(dict.fromkeys(map(end_text, bounds)))}",
                "name the open end of the table in valid_to_current",
            )
        )
        return given
    if not ends:
        return given
    shown = ", ".join(f"{end_text(end)} in {rows_text(rows)}" for end, rows in ends.most_common())
    if len(ends) > 1:
        mistakes.append(
            Mistake(
                where,
                "one open end in all open rows",
                shown,
                "write one of them to all of these rows, by an UPDATE or another way to change the table",
            )
        )
        return given
    (end,) = ends
    wanted = None if given is None else floored(micros(given), layout.moment_type)
    if end == wanted:
        return given
    if is_named(given):
        mistakes.append(
            Mistake(
                where,
                f"the open end that the definition names: {end_text(wanted)}",
                f"another one in the stored rows: {shown}",
                "leave valid_to_current out, and the merge takes over the stored one; or update the stored rows first",
            )
        )
        return given
    return None if end is None else Micros(end)


def open_ends(groups: Sequence[EndGroup]) -> Counter[int | None]:
    """The open ends, with the number of their rows."""
    found: Counter[int | None] = Counter()
    for group in groups:
        if group.kind == "open":
            found[group.high] += group.rows
    return found


def is_shared(groups: Sequence[EndGroup]) -> bool:
    """Whether several rows have one end and one flag."""
    ends = {end for group in groups for end in (group.low, group.high)}
    return len(ends) == 1 and len({group.flag for group in groups}) == 1 and sum(group.rows for group in groups) > 1


def end_text(end: int | None) -> str:
    return "NULL" if end is None else moment_text(end)
