"""Another writer between any two statements of a merge: by a hook, so each run meets it at the same place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from pyspark.sql import SparkSession


class Statements:
    """Counts the statements of a merge, and lets another writer act before one of them.

    Attributes:
        count: statements so far, without those of the other writer.
        has_acted: whether the other writer came.
    """

    def __init__(self, act: Callable[[], None], when: Callable[[int, str], bool]) -> None:
        self.act, self.when = act, when
        self.count = 0
        self.has_acted = False

    def before(self, statement: str) -> None:
        self.count += 1
        if not self.has_acted and self.when(self.count, statement):
            self.has_acted = True
            count = self.count
            self.act()
            self.count = count


@contextmanager
def other_writer(
    spark: SparkSession, act: Callable[[], None], when: Callable[[int, str], bool]
) -> Iterator[Statements]:
    """Args: when: asked before each statement, with its number and its text."""
    statements = Statements(act, when)
    kind = type(spark)
    sql: Callable[..., Any] = kind.sql

    def counted(session: SparkSession, statement: str, *args: Any, **kwargs: Any) -> Any:
        if not is_acting():
            statements.before(statement)
        return sql(session, statement, *args, **kwargs)

    acting: list[int] = []

    def is_acting() -> bool:
        return bool(acting)

    def acts() -> None:
        acting.append(1)
        try:
            act()
        finally:
            acting.pop()

    statements.act = acts
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kind, "sql", counted)
        yield statements


def before_statement(number: int) -> Callable[[int, str], bool]:
    return lambda count, _: count == number


def before_the_merge(table: str) -> Callable[[int, str], bool]:
    """Between the plan and the MERGE that commits the dimension."""
    return lambda _, statement: statement.lstrip().startswith("merge") and f"into {table} t" in statement
