"""What data/batches says of the examples in python_models: the rows that are stored after each batch.

The pages have a heading such as "dim_player after batch 2" with one table or several, each with some of the columns of
all rows. A header is a SQL expression; NULL stands for NULL.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sessions import ROOT

if TYPE_CHECKING:  # other environments, without what it imports, read this file, too
    from lab import Lab

BATCHES = ROOT / "data" / "batches"
MODELS = sorted((ROOT / "python_models").glob("*.py"))
FACTS = ["fct_slot_play", "fct_cash_transactions"]


Rows = list[list[str]]


def tables_of(page: str) -> dict[tuple[str, int], list[Rows]]:
    """Table name and batch to the tables of that heading; each is a header and its rows."""
    found: dict[tuple[str, int], list[Rows]] = {}
    for section in re.split(r"^## ", page, flags=re.MULTILINE)[1:]:
        title = re.match(r"(\w+) after batch (\d)\n", section)
        assert title, section
        blocks = re.findall(r"(?:^\|.*\n)+", section, flags=re.MULTILINE)
        found[title[1], int(title[2])] = [rows_of(block) for block in blocks]
    return found


def rows_of(block: str) -> Rows:
    lines = [[cell.strip() for cell in line[1:-1].split("|")] for line in block.splitlines()]
    return [lines[0], *lines[2:]]


EXPECTED = {
    key: tables for path in sorted(BATCHES.glob("*/README.md")) for key, tables in tables_of(path.read_text()).items()
}


def stored(lab: Lab, table: str, header: list[str]) -> Rows:
    frame = lab.spark.table(f"{lab.schema}.{table}")
    texts = frame.selectExpr(*[f"cast({name} as string)" for name in header]).collect()
    return [["NULL" if cell is None else str(cell) for cell in row] for row in texts]
