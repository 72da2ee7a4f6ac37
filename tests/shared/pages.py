"""The documentation as data: inputs, models, their results, files.

In README.md and docs/: a table right after a text that ends with "`name`:" is an input (its header
has types), a ``sql`` block is a model, a table right after it is what the model holds (columns may
be left out; a cell that ends in … is a prefix). A ``yaml`` block whose first line is a path is that
file.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

from sessions import ROOT

PAGES = ["README.md"]
PAGES += [
    f"docs/{name}.md"
    for name in (
        "three-sources",
        "macros",
        "healing-table",
        "healing",
        "concepts",
        "change-data-capture",
        "readers",
        "tests",
        "merging",
        "audit",
        "known-at",
        "facts",
        "current-state",
        "leaving-dbt-snapshots",
        "recipes",
    )
]


@dataclass(frozen=True)
class Table:
    header: list[str]
    rows: list[list[str]]


@dataclass(frozen=True)
class Example:
    name: str
    place: str
    sql: str
    result: Table | None = None


@dataclass
class Page:
    inputs: dict[str, Table] = field(default_factory=dict)
    examples: list[Example] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Block:
    """A run of lines: ``text``, ``table``, or the language of a fenced block."""

    kind: str
    line: int
    lines: list[str]


def blocks_of(text: str) -> list[Block]:
    blocks: list[Block] = []
    fence = False
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith("```"):
            fence = not fence
            if fence:
                blocks.append(Block(line[3:].strip() or "code", number, []))
            else:
                blocks.append(Block("end", number, []))
        elif fence:
            blocks[-1].lines.append(line)
        elif line.strip():
            kind = "table" if line.startswith("|") else "text"
            previous = blocks[-1] if blocks else None
            if previous is None or previous.kind != kind or not previous.lines[-1]:
                blocks.append(Block(kind, number, []))
            blocks[-1].lines.append(line)
        elif blocks and blocks[-1].kind in ("table", "text"):
            blocks[-1].lines.append("")
    return [block for block in blocks if block.kind != "end"]


def table_of(block: Block) -> Table:
    lines = [[cell.strip() for cell in line[1:].rstrip().removesuffix("|").split("|")] for line in block.lines if line]
    for number, line in enumerate(lines):
        assert len(line) == len(lines[0]), f"line {block.line + number}: {line}"
    return Table(lines[0], lines[2:])


def read_page(name: str) -> Page:
    page, last = Page(), Block("text", 0, [""])
    for block in blocks_of((ROOT / name).read_text()):
        caption = re.search(r"`(\w+)`:$", "\n".join(last.lines).strip())
        if block.kind == "table" and last.kind == "text" and caption:
            page.inputs[caption[1]] = table_of(block)
        elif block.kind == "table" and last.kind == "sql":
            page.examples[-1] = replace(page.examples[-1], result=table_of(block))
        elif block.kind == "sql":
            path = re.match(r"-- models/(\w+)[.]sql$", block.lines[0])
            model = path[1] if path else f"{Path(name).stem.lower().replace('-', '_')}_{block.line}"
            place = f"{name}:{block.line}"
            page.examples.append(Example(model, place, "\n".join(block.lines)))
        elif block.kind == "yaml":
            page.files[block.lines[0].removeprefix("# ")] = "\n".join(block.lines)
        last = block
    return page


def input_model(table: Table) -> str:
    columns = [header.rsplit(" ", 1) for header in table.header]
    values = ",\n    ".join(
        "(" + ", ".join(literal(cell, kind) for cell, (_, kind) in zip(row, columns, strict=True)) + ")"
        for row in table.rows
    )
    names = ", ".join(f"`{name}`" for name, _ in columns)
    return f"select * from values\n    {values}\nas rows({names})"


def literal(cell: str, kind: str) -> str:
    if cell == "NULL":
        return f"cast(null as {kind})"
    assert "'" not in cell
    return f"cast('{cell}{'Z' if kind == 'timestamp' else ''}' as {kind})"


def difference(expected: Table, found: list[list[str]]) -> dict[str, list[tuple[str, ...]]]:
    """Rows that one side lacks, as bags; empty if both are the same."""
    prefixes = {
        column: len(row[column]) - 1 for row in expected.rows for column in range(len(row)) if row[column].endswith("…")
    }
    shown = Counter(
        tuple(cell[: prefixes[column]] + "…" if column in prefixes else cell for column, cell in enumerate(row))
        for row in found
    )
    wanted = Counter(tuple(row) for row in expected.rows)
    missing, extra = list((wanted - shown).elements()), list((shown - wanted).elements())
    return {"missing": missing, "extra": extra} if missing or extra else {}
