"""The columns of all versions that were published: those of the dimension, and those in the texts of its audit."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from healing_tables.definition.stored_layout import WHOLE, fits
from healing_tables.sql.identifiers import literal, quoted
from healing_tables.sql.row_text import TYPES, as_json, parsed_row
from healing_tables.sql.types import MOMENTS, separated

# The end of a row's text, which has the types of its columns: a quote inside of a value is escaped
END_OF_TEXT = f'substring_index(text, \'"{TYPES}":"\', -1)'
# Matches a type of text with a length or a collation, also inside other types: from_json has neither
TEXT = re.compile(r"(^|[:<,])(string collate \w+|(?:var)?char\(\d+\)(?: collate \w+)?)(?=$|[,>])")


@dataclass
class KnownColumn:
    """A column of the versions.

    Attributes:
        kinds: its types, that of the dimension first.
        texts: how texts of the audit name it and with which type, with the ends of these texts.
    """

    name: str
    kinds: list[str] = field(default_factory=list)
    texts: dict[tuple[str, str], list[str]] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """The first type that holds the values of all, or string."""
        return next((kind for kind in self.kinds if all(holds(kind, other) for other in self.kinds)), "string")

    def value(self) -> str:
        """Its value in a text, as SQL over the columns of `read_texts`."""
        values = []
        for name, kind in self.texts:
            row = "read" if len(self.texts) == 1 else parsed_row("text", {name: kind})
            read = as_json(f"{row}.{quoted(name)}", kind, back=True)
            values.append(read if kind == self.kind else f"cast({read} as {self.kind})")
        if len(values) < 2:
            return values[0] if values else f"cast(null as {self.kind})"
        ends = [", ".join(map(literal, ends)) for ends in self.texts.values()]
        cases = " ".join(f"when text_end in ({end}) then {value}" for end, value in zip(ends, values, strict=True))
        return f"case {cases} end"

    def stored_value(self, stored: Mapping[str, str]) -> str:
        """Its value in a row of the dimension, which has these columns, as SQL."""
        value = quoted(self.name) if self.name in stored else "null"
        return value if stored.get(self.name) == self.kind else f"cast({value} as {self.kind})"


def known_columns(stored: Mapping[str, str], ends: Iterable[str]) -> list[KnownColumn]:
    """Args: stored: the columns of the dimension with their types; ends: those of all texts."""
    found = {name.lower(): KnownColumn(name, [type_in_text(kind)]) for name, kind in stored.items()}
    for end in ends:
        for part in separated(json.loads(f'{{"{TYPES}":"{end}')[TYPES]):
            match = re.fullmatch("`((?:[^`]|``)*)` (.*)", part.strip())
            if match is None:
                continue
            name, kind = match[1].replace("``", "`"), type_in_text(match[2])
            column = found.setdefault(name.lower(), KnownColumn(name))
            column.texts.setdefault((name, kind), []).append(end)
            if kind not in column.kinds:
                column.kinds.append(kind)
    return list(found.values())


def read_texts(columns: Iterable[KnownColumn]) -> list[str]:
    """The end of a text, and the columns that all texts name alike, as `read`."""
    alike = dict(next(iter(column.texts)) for column in columns if len(column.texts) == 1)
    return [f"{END_OF_TEXT} as text_end", f"{parsed_row('text', alike)} as read"]


def type_in_text(kind: str) -> str:
    """A type as from_json has it."""
    return TEXT.sub(r"\1string", kind)


def holds(kind: str, other: str) -> bool:
    """Whether a column of a type can have every value of the other; as _type_holds() in macros/sql/_types.sql."""
    if kind == "string" or (other == "date" and kind in MOMENTS):
        return True
    if kind in ("float", "double") and other in WHOLE[: 2 if kind == "float" else 3]:
        return True
    return fits(other, kind)
