"""The errors. Each message contains what is wrong, where, what was wanted, what was given, and what to do."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Self

NOTHING_WRITTEN = "nothing was written"


@dataclass(frozen=True)
class Mistake:
    """One thing that is wrong.

    Attributes:
        keys: the texts in ``got`` that name keys, such as ``id = 1002``.
    """

    where: str
    wanted: str
    got: str
    remedy: str
    keys: tuple[str, ...] = ()

    @property
    def logged(self) -> str:
        """For a log, which names no keys, but their hashes; as the macro `_logged_mistake`."""
        text = self.got
        for key in sorted(set(self.keys), reverse=True):  # id = 10 before id = 1, which it begins with
            text = text.replace(key, f"key {hashlib.md5(key.encode(), usedforsecurity=False).hexdigest()}")
        return f"{self.where}: {text}"


class HealingTablesError(Exception):
    """Base of all errors of this library. Nothing was written when one is raised, unless its text says so.

    Attributes:
        mistakes: everything that was found wrong, not only the first.
    """

    def __init__(self, about: str, mistakes: Sequence[Mistake] = (), *, written: str | None = NOTHING_WRITTEN) -> None:
        """Args: about: what is wrong; written: what was written; None if ``about`` states it."""
        self.about = about
        self.written = written
        self.what = about if written is None else f"{about}; {written}."
        self.mistakes = tuple(mistakes)
        lines = [f"healing_tables: {self.what}"]
        for number, mistake in enumerate(self.mistakes, start=1):
            lines += [
                f"  {number}. {mistake.where}",
                f"     wanted: {mistake.wanted}",
                f"     got:    {mistake.got if mistake.got.strip() else repr(mistake.got)}",
                f"     remedy: {mistake.remedy}",
            ]
        super().__init__("\n".join(lines))

    @classmethod
    def one(cls, about: str, where: str, wanted: str, got: str, remedy: str) -> Self:
        """The error of a single mistake. Args: about: what has it, such as "the batch"."""
        mistakes = [Mistake(where, wanted, got, remedy)]
        return cls(counted(about, mistakes), mistakes)

    def of(self, table: str) -> HealingTablesError:
        """This error, with the name of the dimension in its first line."""
        if self.about.startswith(f"{table}: "):
            return self
        return type(self)(f"{table}: {self.about}", self.mistakes, written=self.written)

    def after(self, written: str) -> HealingTablesError:
        """This error, where something was written before it. Args: written: what."""
        return self if self.written is None else type(self)(self.about, self.mistakes, written=written)


class ArgumentError(HealingTablesError):
    """The arguments of a function are wrong."""


class SpecError(HealingTablesError):
    """The definition of a dimension is wrong."""


class BatchError(HealingTablesError):
    """A batch does not fit the definition: columns, types, NULL keys, two rows for one key, an empty full batch."""


class LateChangeError(BatchError):
    """A change is not after the stored ones of its key, and differs from the version that was valid at its moment."""


class TargetError(HealingTablesError):
    """A batch cannot be merged into the stored dimension: it has another format or other columns, or is damaged."""


class GuardError(HealingTablesError):
    """The batch would end more keys than is allowed."""


class ConflictError(HealingTablesError):
    """Other writers committed during every attempt. The text states what was written."""


def rows_text(rows: int) -> str:
    return "1 row" if rows == 1 else f"{rows} rows"


def counted(what: str, mistakes: Sequence[Mistake]) -> str:
    number = "1 mistake" if len(mistakes) == 1 else f"{len(mistakes)} mistakes"
    return f"{what} has {number}"
