"""The work of a call grows with the number of its attributes, not with its square: each call of a macro costs time."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from rendering import Package, Project

SOURCES = ", ".join(f"'s{i}': {{'relation': relation('s{i}'), 'changed_at': 'at'}}" for i in range(3))
# name: (whether all sources have the same columns, `attributes`, calls for each attribute)
CALLS: dict[str, tuple[bool, str, int]] = {
    "all": (False, "none", 10),
    "named": (False, "names", 15),
    "first_value": (False, "dict.fromkeys(names, 0)", 17),
    "overwritten": (False, "dict.fromkeys(names, {'scd_type': 1, 'changed_at': true})", 17),
    "most_recent": (True, "{'*': {'rule': 'most_recent_value'}}", 40),
}


def calls(monkeypatch: pytest.MonkeyPatch, number: int, *, is_shared: bool, attributes: str) -> int:
    """The calls of macros for three sources with this number of columns each."""
    counted: Counter[str] = Counter()
    find = Package.__getattr__

    def counting(package: Package, name: str) -> Any:
        macro = find(package, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            counted[name] += 1
            return macro(*args, **kwargs)

        return call

    names = [[f"a{'' if is_shared else i}_{j}" for j in range(number)] for i in range(3)]
    project = Project({f"db.s{i}": {"id": "int", "at": "date", **dict.fromkeys(names[i], "string")} for i in range(3)})
    project.context["names"] = [name for of_source in names for name in of_source]
    with monkeypatch.context() as patch:
        patch.setattr(Package, "__getattr__", counting)
        project.render(f"{{{{ healing_tables.dimension({{{SOURCES}}}, 'id', {attributes}) }}}}")
    return counted.total()


@pytest.mark.parametrize("name", CALLS)
def test_calls_of_macros(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    is_shared, attributes, most = CALLS[name]
    few, many = (calls(monkeypatch, number, is_shared=is_shared, attributes=attributes) for number in (4, 24))
    assert (many - few) / (20 if is_shared else 60) <= most
