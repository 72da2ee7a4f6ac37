"""The tables from which keys are erased: a dimension and those beside it. One commit changes all of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from pyspark.sql import SparkSession

from healing_tables.merge.keys_to_erase import Event, KeysToErase

# A condition on the rows of a table with these columns; None if it has no keys
Condition = Callable[[list[str]], str | None]


class Places(ABC):
    """These tables of one dimension."""

    @abstractmethod
    def count(self, spark: SparkSession, keys: KeysToErase) -> dict[str, int]:
        """The name of each table to the number of its rows of the keys."""

    @abstractmethod
    def remove(self, spark: SparkSession, keys: KeysToErase, events: Sequence[Event]) -> dict[str, int]:
        """Remove these rows and add the events, in one commit. Returns: as `count`.

        Raises: StalePlan if another writer has committed.
        """

    @abstractmethod
    def add_events(self, spark: SparkSession, events: Sequence[Event]) -> None: ...

    @abstractmethod
    def search(self, spark: SparkSession, condition: Condition) -> dict[str, int]:
        """The name of each table to the number of its rows, also of older states that are there, that fulfil it."""
