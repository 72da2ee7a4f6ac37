"""The rooms of the house: what calls what, and no circle between two rooms, or between two files.

A room is a folder below macros/ or below src/healing_tables/; a folder in it is a room, too. The public macros, which
lie in no folder, are one room; a module of the library that lies in no folder is a room of its own.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MACROS = ROOT / "macros"
LIBRARY = ROOT / "src" / "healing_tables"


@dataclass(frozen=True)
class Use:
    """Something in ``user``, a file or a room, uses something in ``used``; ``text`` says what and where."""

    user: str
    used: str
    text: str


def room_of(file: str) -> str:
    """Args: file: its path in macros/ or in the library."""
    *folders, name = Path(file).parts
    if folders:
        return "/".join(folders)
    return "public macros" if name.endswith(".sql") else name.removesuffix(".py")


def macro_calls() -> Iterator[Use]:
    """Calls of `healing_tables.x`, and the macro itself as a value, from one file to another."""
    texts = {file: re.sub(r"{#.*?#}", "", file.read_text(), flags=re.DOTALL) for file in MACROS.rglob("*.sql")}
    defined = {name: file for file, text in texts.items() for name in re.findall(r"{%-? *macro +(\w+)", text)}
    for file, text in texts.items():
        named = re.findall(r"\bhealing_tables\.(\w+\(|_\w+)", text)
        for name in sorted({name.rstrip("(") for name in named} & set(defined)):
            where = f"{file.relative_to(MACROS)} calls {name} of {defined[name].relative_to(MACROS)}"
            yield Use(str(file.relative_to(MACROS)), str(defined[name].relative_to(MACROS)), where)


def imports() -> Iterator[Use]:
    """Imports from one module of the library to another."""
    for file in LIBRARY.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("healing_tables."):
                continue
            used = LIBRARY.joinpath(*(node.module or "").split(".")[1:])
            target = used.with_suffix(".py") if used.with_suffix(".py").exists() else used / "_"
            where = f"{file.relative_to(LIBRARY)} imports {target.relative_to(LIBRARY)}"
            yield Use(str(file.relative_to(LIBRARY)), str(target.relative_to(LIBRARY)), where)


def between_rooms(uses: list[Use]) -> list[Use]:
    return [Use(room_of(use.user), room_of(use.used), use.text) for use in uses]


def circle(uses: list[Use]) -> list[str]:
    """The shortest circle, as the uses that close it; empty if there is none."""
    edges: dict[tuple[str, str], list[str]] = {}
    for use in uses:
        if use.user != use.used:
            edges.setdefault((use.user, use.used), []).append(use.text)
    best: list[str] = []
    for start in sorted({user for user, _ in edges}):
        ways: list[list[str]] = [[start]]
        seen: set[str] = set()
        while ways:
            way = ways.pop(0)
            for user, used in sorted(edges):
                if user != way[-1]:
                    continue
                if used == start and (not best or len(way) < len(best)):
                    best = way
                elif used not in seen:
                    seen.add(used)
                    ways.append([*way, used])
    steps = list(zip(best, best[1:] + best[:1], strict=True))
    return [f"{user} -> {used}: {'; '.join(edges[user, used])}" for user, used in steps]


@pytest.mark.parametrize("uses", [list(macro_calls()), list(imports())], ids=["macros", "library"])
def test_no_circle(uses: list[Use]) -> None:
    assert len(uses) > 50
    for found in (circle(between_rooms(uses)), circle(uses)):
        assert not found, "\n".join(["in a circle:", *found])


def test_few_doors() -> None:
    """What other rooms call of `build`, the largest one."""
    doors = {use.text.split(" ")[2] for use in macro_calls() if room_of(use.used) == "build" != room_of(use.user)}
    assert 0 < len(doors) <= 13, sorted(doors)


def test_a_circle_is_found() -> None:
    uses = [Use("a", "b", "a calls b"), Use("b", "c", "b calls c"), Use("c", "a", "c calls a")]
    assert circle(uses[:2]) == []
    assert circle(uses) == ["a -> b: a calls b", "b -> c: b calls c", "c -> a: c calls a"]


def test_only_the_room_of_formats_knows_a_format() -> None:
    """Outside of it a format is asked for by name, and never compared with one."""
    names = r"['\"](delta|iceberg|parquet|orc)['\"]"
    compared = re.compile(f"[=!]= *{names}|{names} *[=!]=")
    elsewhere = [file for file in MACROS.rglob("*.sql") if room_of(str(file.relative_to(MACROS))) != "formats"]
    assert [str(file) for file in elsewhere if compared.search(file.read_text())] == []


def test_one_place_raises_errors() -> None:
    raising = [
        str(file.relative_to(MACROS)) for file in MACROS.rglob("*.sql") if "raise_compiler_error" in file.read_text()
    ]
    assert raising == ["errors/_mistakes.sql"]
