"""The values of ``is_current`` and ``ended_by_delete`` in the stored rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from healing_tables.definition.spec import is_named
from healing_tables.errors import Mistake, rows_text

# The flag of closed rows, by that of current rows, where a table has no closed rows
CLOSED: dict[Any, Any] = {"Y": "N", "y": "n", "T": "F", "t": "f", "1": "0", "true": "false", "yes": "no", 1: 0}


@dataclass(frozen=True)
class Flag:
    """A column with two values. Attributes: given: those of the definition."""

    option: str
    column: str
    given: Sequence[Any]
    is_boolean: bool

    @property
    def is_current(self) -> bool:
        return self.option == "current_values"

    def sides(self, values: Sequence[Any]) -> tuple[Any, Any]:
        """The value in open rows, and the other one: `given` begins with "current", but also with "deleted"."""
        first, second = values
        return (first, second) if self.is_current else (second, first)

    def mistake(self, wanted: str, opened: Counter[Any], closed: Counter[Any], remedy: str) -> Mistake:
        got = [
            f"{', '.join(f'{value_text(value)} in {rows_text(rows)}' for value, rows in found.most_common())} {what}"
            for found, what in ((opened, "that are open"), (closed, "that have ended"))
            if found
        ]
        return Mistake(f"{self.option} ({self.column})", wanted, "; ".join(got), remedy)


def stored_flag(flag: Flag, opened: Counter[Any], closed: Counter[Any], mistakes: list[Mistake]) -> Sequence[Any]:
    """The two values of a flag: those of the definition if no row shows them, or on a mistake.

    Args: opened, closed: its values in open rows and in others, with the number of rows.
    """
    if is_named(flag.given) or flag.is_boolean:
        return checked(flag, opened, closed, mistakes)
    pairs = CLOSED if flag.is_current else {no: yes for yes, no in CLOSED.items()}
    values = [value for value in opened if value is not None]
    # an open row with the flag of closed rows is damaged
    values = [value for value in values if value not in closed] or values
    if not values:
        return flag.given
    of_open = next((value for value in values if {*values} <= {value, pairs.get(value)}), None)
    if of_open is None:
        wanted, remedy = "one value in all open rows", "write one of them to all of these rows"
        mistakes.append(flag.mistake(wanted, opened, closed, remedy))
        return flag.given
    others = [value for value in closed if value not in (of_open, None)] or [None] * (None in closed)
    others = others or [pairs[value] for value in (of_open,) if value in pairs]
    if len(others) != 1 or of_open in pairs.values():
        wanted = "two values: one in open rows, and one in rows that have ended"
        mistakes.append(flag.mistake(wanted, opened, closed, f"name both in {flag.option}, such as ['Y', 'N']"))
        return flag.given
    return flag.sides((of_open, others[0]))


def checked(flag: Flag, opened: Counter[Any], closed: Counter[Any], mistakes: list[Mistake]) -> Sequence[Any]:
    """The values of the definition, if the rows have no others."""
    of_open, of_others = flag.sides(flag.given)
    expected = (of_open, of_others, None)
    is_reversed = flag.is_current and {*opened} == {of_others} and {*closed} == {of_open}
    if is_reversed and not is_named(flag.given):
        return (of_others, of_open)
    # of more than two values in rows that have ended, a merge writes the one that is named
    is_other = of_others not in closed and any(value not in expected for value in closed)
    if is_reversed or is_other or any(value not in expected for value in opened):
        stored = {*opened} - {None}
        wanted = f"the values that the definition names: {', '.join(map(value_text, flag.given))}"
        remedy = f"leave {flag.option} out, and the merge takes over the stored ones; or update the stored rows first"
        if len(stored) > 1:
            wanted, remedy = f"one value in all open rows; {wanted}", "write it to all of these rows"
        mistakes.append(flag.mistake(wanted, opened, closed, remedy))
    return flag.given


def value_text(value: Any) -> str:
    return "NULL" if value is None else repr(value)
