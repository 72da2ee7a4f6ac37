"""What the rows of a table show about its open end and its flags. A group: kind, least and greatest end, flag, rows."""

from __future__ import annotations

from typing import Any

DEFAULT = "(not given)"
Y2037, Y2099, Y2999, Y9999 = "2037-12-31", "2099-12-31", "2999-12-31", "9999-12-31"
PAST = ("past", "2020-01-01", "2024-01-01", False, 7)
PAST_N = ("past", "2020-01-01", "2024-01-01", "N", 7)


def example(
    *groups: tuple[Any, ...],
    type: str | None = "boolean",
    end: str | None = DEFAULT,
    flags: list[Any] | str = DEFAULT,
    while_deleted: bool = False,
    shows: tuple[Any, ...] | None = None,
    refuses: tuple[str, ...] = (),
) -> dict[str, Any]:
    """Args: type: of the flag; end, flags: of the definition; shows: open end, current, closed; refuses: texts of the
    message."""
    return {
        "groups": groups,
        "type": type,
        "end": end,
        "flags": flags,
        "while_deleted": while_deleted,
        "shows": shows,
        "refuses": refuses,
    }


EXAMPLES: dict[str, dict[str, Any]] = {
    "an empty table shows nothing": example(shows=(DEFAULT, True, False)),
    "closed rows show nothing": example(PAST, shows=(DEFAULT, True, False)),
    "closed rows show nothing, and what is named holds": example(PAST, end=None, shows=(None, True, False)),
    "2999": example(("open", Y2999, Y2999, True, 3), PAST, shows=(Y2999, True, False)),
    "2999, and one row": example(("open", Y2999, Y2999, True, 1), shows=(Y2999, True, False)),
    "NULL": example(("open", None, None, True, 3), PAST, shows=(None, True, False)),
    "the last second of 9999": example(
        ("open", "9999-12-31 23:59:59", "9999-12-31 23:59:59", True, 3), shows=("9999-12-31 23:59:59", True, False)
    ),
    "what is named is there": example(("open", Y2999, Y2999, True, 3), end=Y2999, shows=(Y2999, True, False)),
    "another one is named": example(
        ("open", Y2999, Y2999, True, 3), end=Y9999, refuses=("valid_to_current", "9999-12-31", "2999-12-31", "3 rows")
    ),
    "NULL is named": example(("open", Y9999, Y9999, True, 3), end=None, refuses=("valid_to_current", "NULL", Y9999)),
    "NULL is there, and another one is named": example(
        ("open", None, None, True, 3), end=Y9999, refuses=("valid_to_current", "NULL", Y9999)
    ),
    "NULL and 9999": example(
        ("open", None, None, True, 3), ("open", Y9999, Y9999, True, 1), refuses=("valid_to_current", "NULL in 3", Y9999)
    ),
    "2999 and 9999, of which one is named": example(
        ("open", Y2999, Y2999, True, 3),
        ("open", Y9999, Y9999, True, 1),
        end=Y9999,
        refuses=("valid_to_current", Y2999, Y9999),
    ),
    "2999 and 9999 without a flag": example(
        ("open", Y2999, Y2999, None, 3),
        ("open", Y9999, Y9999, None, 1),
        type=None,
        refuses=("valid_to_current", Y2999, Y9999),
    ),
    "2999 without a flag": example(("open", Y2999, Y2999, None, 1), type=None, shows=(Y2999, DEFAULT, DEFAULT)),
    "an open end in a row with the flag of closed rows": example(
        ("open", Y9999, Y9999, True, 3), ("open", None, None, False, 1), PAST, shows=(Y9999, True, False)
    ),
    "open ends, and every key has the flag of closed rows": example(
        ("open", Y2999, Y2999, False, 3), PAST, shows=(Y2999, True, False)
    ),
    "flags the other way round": example(
        ("open", Y2999, Y2999, False, 3), ("past", "2020-01-01", Y2037, True, 2), shows=(Y2999, False, True)
    ),
    "flags the other way round, and they are named": example(
        ("open", Y2999, Y2999, False, 3),
        ("past", "2020-01-01", Y2037, True, 2),
        flags=[True, False],
        refuses=("current_values", "True", "False"),
    ),
    "a flag that is missing": example(
        ("open", Y9999, Y9999, True, 3), ("open", Y9999, Y9999, None, 1), shows=(Y9999, True, False)
    ),
    # ends from now to 2200
    "an end that is planned": example(
        ("open", Y9999, Y9999, True, 3), ("later", Y2037, Y2037, False, 1), shows=(Y9999, True, False)
    ),
    "only ends that are planned": example(("later", Y2037, Y2099, False, 3), PAST, shows=(DEFAULT, True, False)),
    "an end in the future that several current rows share": example(
        ("later", Y2099, Y2099, True, 2), PAST, shows=(Y2099, True, False)
    ),
    "the same, and it is named": example(("later", Y2099, Y2099, True, 2), end=Y2099, shows=(Y2099, True, False)),
    "the same, and another one is named": example(
        ("later", Y2099, Y2099, True, 2), end=Y9999, refuses=("valid_to_current", Y2099, Y9999)
    ),
    "the same beside another one": example(
        ("later", Y2099, Y2099, True, 2), ("open", Y9999, Y9999, True, 1), refuses=("valid_to_current", Y2099, Y9999)
    ),
    "one current row that ends in the future": example(
        ("later", Y2037, Y2037, True, 1), PAST, refuses=("valid_to_current", Y2037, "name the open end")
    ),
    "the same, and the open end is named": example(
        ("later", Y2037, Y2037, True, 1), end=Y9999, shows=(Y9999, True, False)
    ),
    "one current row that ends in the future beside open rows": example(
        ("later", Y2037, Y2037, True, 1), ("open", Y9999, Y9999, True, 3), shows=(Y9999, True, False)
    ),
    "current rows that end in the future at several moments": example(
        ("later", Y2037, Y2099, True, 2), refuses=("valid_to_current", Y2037, Y2099)
    ),
    "keys that end in the future, and keep their flag": example(
        ("later", Y2037, Y2037, True, 2),
        ("open", None, None, True, 3),
        while_deleted=True,
        shows=(None, True, False),
    ),
    "deleted keys that keep their flag": example(
        ("past", "2020-01-01", "2024-01-01", True, 2), ("open", Y9999, Y9999, True, 3), shows=(Y9999, True, False)
    ),
    "ends in the future without a flag": example(
        ("later", Y2099, Y2099, None, 3), type=None, refuses=("valid_to_current", Y2099, "name the open end")
    ),
    "ends in the future without a flag beside open rows": example(
        ("later", Y2037, Y2099, None, 3), ("open", None, None, None, 1), type=None, shows=(None, DEFAULT, DEFAULT)
    ),
    # flags
    "Y and N": example(("open", Y9999, Y9999, "Y", 3), PAST_N, type="string", shows=(Y9999, "Y", "N")),
    "Y, and no closed row": example(("open", Y9999, Y9999, "Y", 3), type="string", shows=(Y9999, "Y", "N")),
    "1 and 0": example(("open", None, None, 1, 3), type="int", shows=(None, 1, 0)),
    "Y and NULL": example(
        ("open", None, None, "Y", 3), ("past", Y2037, Y2037, None, 3), type="string", shows=(None, "Y", None)
    ),
    "words that need a closed row": example(
        ("open", None, None, "aktuell", 3),
        ("past", Y2037, Y2037, "alt", 3),
        type="string",
        shows=(None, "aktuell", "alt"),
    ),
    "words without a closed row": example(
        ("open", None, None, "aktuell", 3), type="string", refuses=("current_values", "aktuell")
    ),
    "Y and A": example(
        ("open", Y9999, Y9999, "Y", 3),
        ("open", Y9999, Y9999, "A", 2),
        PAST_N,
        type="string",
        refuses=("current_values", "'Y' in 3 rows", "'A' in 2 rows"),
    ),
    "Y and A, and Y is named": example(
        ("open", Y9999, Y9999, "Y", 3),
        ("open", Y9999, Y9999, "A", 2),
        type="string",
        flags=["Y", "N"],
        refuses=("current_values", "'Y' in 3 rows", "'A' in 2 rows"),
    ),
    "A, and Y is named": example(
        ("open", Y9999, Y9999, "A", 3),
        PAST_N,
        type="string",
        flags=["Y", "N"],
        refuses=("current_values", "'Y', 'N'", "'A'"),
    ),
    "N in closed rows, and another one is named": example(
        ("open", Y9999, Y9999, "Y", 3),
        PAST_N,
        type="string",
        flags=["Y", "X"],
        refuses=("current_values", "'X'", "'N'"),
    ),
    "an open row with N": example(
        ("open", Y9999, Y9999, "Y", 3),
        ("open", Y9999, Y9999, "N", 1),
        PAST_N,
        type="string",
        shows=(Y9999, "Y", "N"),
    ),
    "only N in open rows": example(
        ("open", Y9999, Y9999, "N", 3), type="string", refuses=("current_values", "'N' in 3 rows")
    ),
    "several values in closed rows": example(
        ("open", Y9999, Y9999, "Y", 3),
        ("past", Y2037, Y2037, "N", 1),
        ("past", Y2037, Y2037, "D", 1),
        type="string",
        refuses=("current_values", "'D'"),
    ),
    "the same, and two are named": example(
        ("open", Y9999, Y9999, "Y", 3),
        ("past", Y2037, Y2037, "N", 1),
        ("past", Y2037, Y2037, "D", 1),
        type="string",
        flags=["Y", "N"],
        shows=(Y9999, "Y", "N"),
    ),
    "an unknown flag of rows that end in the future": example(
        ("later", Y2099, Y2099, "Y", 2), PAST_N, type="string", shows=(Y2099, "Y", "N")
    ),
}
