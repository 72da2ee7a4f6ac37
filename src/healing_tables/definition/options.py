"""What options have in common, whoever takes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from healing_tables.errors import Mistake


def as_names(where: str, given: Any, mistakes: list[Mistake]) -> tuple[str, ...]:
    if given is None:
        return ()
    names = (given,) if isinstance(given, str) or not isinstance(given, Iterable) else tuple(given)
    if not all(isinstance(name, str) and name for name in names):
        mistakes.append(Mistake(where, "names of columns", repr(given), "write a list of texts"))
        return ()
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        mistakes.append(Mistake(where, "each column once", ", ".join(twice), "remove the double"))
    return names


def unknown_options(where: str, given: Iterable[str], known: Sequence[str]) -> list[Mistake]:
    """A mistake for each name that is not known; ``where`` stands before it."""
    wanted = " or ".join(known) if len(known) == 2 else f"one of {', '.join(known)}"
    return [
        Mistake(f"{where}{name}", wanted, "an unknown option", "correct or remove it")
        for name in given
        if name not in known
    ]
