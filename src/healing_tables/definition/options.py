"""Common checks of options."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
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
        mistakes.append(Mistake(where, "each column once", ", ".join(twice), "remove the duplicate"))
    return names


def unknown_options(where: str, given: Iterable[str], allowed: Sequence[str]) -> list[Mistake]:
    """A mistake for each unknown name; ``where`` is its prefix.

    The allowed ones are listed once, for the first name that is similar to none of them.
    """
    wanted = " or ".join(allowed) if len(allowed) == 2 else f"one of {', '.join(allowed)}"
    mistakes = []
    for name in given:
        if name in allowed:
            continue
        near = nearest_name(name, allowed)
        remedy = did_you_mean(name, allowed) or "correct or remove it"
        mistakes.append(Mistake(f"{where}{name}", near or wanted, "an unknown option", remedy))
        if near is None:
            wanted = "one of the options listed above"
    return mistakes


def check_choice(where: str, value: Any, allowed: Sequence[Any], mistakes: list[Mistake]) -> None:
    if value not in allowed:
        wanted = f"one of {', '.join(map(str, allowed))}"
        remedy = did_you_mean(value, allowed) or "choose one of them"
        mistakes.append(Mistake(where, wanted, repr(value), remedy))


def did_you_mean(name: Any, allowed: Iterable[Any]) -> str | None:
    """The question for a name that is similar to an allowed one."""
    names = [other for other in allowed if isinstance(other, str)]
    near = nearest_name(name, names) if isinstance(name, str) and name not in names else None
    return None if near is None else f"did you mean {near}?"


def nearest_name(name: str, allowed: Sequence[str]) -> str | None:
    """The allowed name that is most similar to this one, if any is similar."""
    return next(iter(get_close_matches(name.lower(), allowed, n=1)), None)
