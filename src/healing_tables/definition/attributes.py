"""The attributes of a definition, with their SCD types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from healing_tables.definition.options import as_names, unknown_options
from healing_tables.errors import Mistake

TYPES = (0, 1, 2, 3, 4, 6)
VERSIONED = (2, 6)


@dataclass(frozen=True)
class Attribute:
    """How one attribute changes: its SCD type, and whether ``<name>_changed_at`` is kept (types 1 and 3)."""

    scd_type: int = 2
    changed_at: bool = False


def as_attributes(given: Any, mistakes: list[Mistake]) -> dict[str, Attribute]:
    if given is None:
        return {"*": Attribute()}
    if not isinstance(given, Mapping):
        return {name: Attribute() for name in as_names("attributes", given, mistakes)}
    found: dict[str, Attribute] = {}
    for name, value in given.items():
        where = f"attributes.{name}"
        # `email:` in YAML has no value: the defaults apply
        options = value if isinstance(value, Mapping) else {} if value is None else {"scd_type": value}
        if isinstance(value, Attribute):
            options = {"scd_type": value.scd_type, "changed_at": value.changed_at}
        mistakes += unknown_options(f"{where}.", options, ("scd_type", "changed_at"))
        scd_type, changed_at = options.get("scd_type", 2), options.get("changed_at", False)
        if isinstance(scd_type, bool) or scd_type not in TYPES:
            wanted = f"one of {', '.join(map(str, TYPES))}"
            mistakes.append(Mistake(f"{where}.scd_type", wanted, repr(scd_type), "choose one of them"))
            continue
        if changed_at and scd_type not in (1, 3):
            mistakes.append(
                Mistake(
                    f"{where}.changed_at",
                    "an attribute of type 1 or 3",
                    f"type {scd_type}",
                    "remove it: a column of the row has the moment at which the value starts",
                )
            )
        found[str(name)] = Attribute(int(scd_type), bool(changed_at))
    return found


def check_attributes(values: dict[str, Any], mistakes: list[Mistake]) -> None:
    attributes: dict[str, Attribute] = values["attributes"]
    types = {attribute.scd_type for attribute in attributes.values()}
    if 4 in types and types & {2, 3, 6}:
        others = ", ".join(str(kind) for kind in sorted(types & {2, 3, 6}))
        mistakes.append(
            Mistake(
                "attributes",
                "type 4 alone, or with types 0 and 1",
                f"type 4 with type {others}",
                "the history of type 4 is a separate table: choose 4 or the others"
                + (", and set {'*': 4} for the columns that are not named" if "*" in attributes else ""),
            )
        )
    taken = {name.lower() for name in values["key_columns"]}
    for name in attributes:
        if name.lower() in taken:
            mistakes.append(
                Mistake(
                    f"attributes.{name}",
                    "a column that is not a key",
                    "a key column",
                    "remove it from one of the two",
                )
            )
