"""A dimension that is merged by one of the two ways, as SQL or with the library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from lab import Lab
from tables import plain_rows
from ways import merge_by_sql, merge_model, refused

from healing_tables import DimensionSpec, HealingTablesError, merge

OPEN = "9999-12-31 00:00:00"
WAYS = ("sql", "library")


def day(number: int) -> str:
    return f"2024-01-{number:02d} 00:00:00"


class Feed:
    """One dimension, merged by one way. Args: columns: of its batches, with their types; shown: by `rows`."""

    def __init__(self, lab: Lab, name: str, way: str, columns: Sequence[Sequence[str]], shown: Sequence[str]) -> None:
        self.lab, self.way, self.model, self.columns, self.shown = lab, way, f"{name}_{way}", columns, list(shown)
        self.table = f"{lab.schema}.{self.model}"

    def merge(self, rows: list[list[Any]], options: dict[str, Any], *, at: str | None = None) -> None:
        batch = self.lab.frame(self.columns, rows)
        if self.way == "sql":
            merge_model(self.lab, self.model, batch, **options, **({"at": at} if at else {}))
            merge_by_sql(self.lab, self.model)
        else:
            spec = DimensionSpec(**{"key_columns": "id", "change_log": f"{self.table}_changes", **options})
            merge(batch, self.table, spec, at=at)

    def error(self, rows: list[list[Any]], options: dict[str, Any]) -> str:
        batch = self.lab.frame(self.columns, rows)
        if self.way == "sql":
            merge_model(self.lab, self.model, batch, **options)
            return refused(self.lab, self.model)
        with pytest.raises(HealingTablesError) as caught:
            spec = DimensionSpec(**{"key_columns": "id", "change_log": f"{self.table}_changes", **options})
            merge(batch, self.table, spec)
        return str(caught.value)

    def rows(self) -> list[Any]:
        start = self.shown.index("valid_from")
        return sorted(plain_rows(self.lab.spark.table(self.table), self.shown), key=lambda row: (row[0], row[start]))

    def logged(self, *columns: str) -> list[Any]:
        return plain_rows(self.lab.spark.table(f"{self.table}_changes"), list(columns))
