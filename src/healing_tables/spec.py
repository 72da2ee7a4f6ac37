"""What a dimension is made of: keys, attributes with their SCD types, and the columns that come with them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from healing_tables.errors import Mistake, SpecError
from healing_tables.moments import micros

OPEN_END = "9999-12-31 23:59:59"
TYPES = (0, 1, 2, 3, 4, 6)
VERSIONED = (2, 6)
# Generated columns in the order of the table; the value says whether one is there without being asked for.
GENERATED = {
    "valid_from": True,
    "valid_to": True,
    "is_current": True,
    "version": True,
    "compressed_row_count": True,
    "ended_by_delete": False,
    "last_updated": False,
    "change_reason": False,
    "change_source": False,
    "key_hash": True,
    "row_hash": True,
}
AUDIT = ("table", "actor", "reason", "source")


@dataclass(frozen=True)
class Attribute:
    """How one attribute changes: its SCD type, and whether ``<name>_changed_at`` is kept (types 1 and 3)."""

    scd_type: int = 2
    changed_at: bool = False


@dataclass(frozen=True, kw_only=True)
class DimensionSpec:
    """The definition of a dimension that batches are merged into.

    Args:
        key_columns: the business key; a single name or several.
        attributes: name to SCD type (0, 1, 2, 3, 4, 6) or to ``{"scd_type": 3, "changed_at": True}``; or a list of
            names, of type 2. ``"*"`` stands for every column not named, and is the default with type 2.
        changed_at: column of the batch with the moment of each change; without it the batch has one moment.
        full_batch: the batch holds every key there is, so that absent ones have ended.
        deleted_when: boolean SQL expression over a row of the batch: the key ends. NULL means false.
        tie_break_by: columns of the batch; of rows with one key and moment the greatest wins.
        on_tie: ``"error"``, or ``"greatest"``: of rows that still differ, the greatest by value; a delete wins.
        change_log: table that keeps every change; the versions of touched keys are made anew from it, so that late
            changes find their place.
        max_removed_keys_ratio: a merge that would end a larger share of the current keys is refused (from 20 keys on).
        current_while_deleted: the last version of a deleted key keeps its current flag.
        surrogate_key: ``{"name": ..., "strategy": "hash" | "sequence"}``.
        column_names: generated column to the name wanted, or to None to leave it out.
        valid_to_current: the open end: a moment, or None for NULL.
        current_values: the two values of the current flag.
        valid_from_first: start of each key's first version, instead of its first change.
        audit: ``{"table", "actor", "reason", "source"}``: a row per changed version is kept in that table.
        on_schema_change: ``"fail"``, or ``"append_new_columns"``: what a new column in the batch does.
    Raises: SpecError with everything that is wrong.
    """

    key_columns: Sequence[str] | str
    attributes: Mapping[str, Any] | Sequence[str] | str | None = None
    changed_at: str | None = None
    full_batch: bool = False
    deleted_when: str | None = None
    tie_break_by: Sequence[str] | str = ()
    on_tie: str = "error"
    change_log: str | None = None
    max_removed_keys_ratio: float = 0.5
    current_while_deleted: bool = False
    surrogate_key: Mapping[str, str] | None = None
    column_names: Mapping[str, str | None] = field(default_factory=dict)
    valid_to_current: str | dt.datetime | dt.date | None = OPEN_END
    current_values: Sequence[Any] = (True, False)
    valid_from_first: str | dt.datetime | dt.date | None = None
    audit: Mapping[str, str] | None = None
    on_schema_change: str = "fail"

    def __post_init__(self) -> None:
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        mistakes = check(values)
        if mistakes:
            raise SpecError(counted("DimensionSpec", mistakes), mistakes)
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> DimensionSpec:
        """The same keys as the arguments; ``KEYS`` means ``key_columns``, ``DIFF_COLS`` the type 2 attributes."""
        mistakes: list[Mistake] = []
        values = known_names(given, mistakes)
        defaults = {item.name: value_of_default(item) for item in fields(cls)}
        mistakes += check({**defaults, **values})
        if mistakes:
            raise SpecError(counted("DimensionSpec", mistakes), mistakes)
        return cls(**values)

    @classmethod
    def from_yaml(cls, path: str | Path) -> DimensionSpec:
        """A YAML file with the keys of `from_dict`."""
        import yaml

        given = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
        if not isinstance(given, Mapping):
            mistake = Mistake(
                str(path), "a map of options", type(given).__name__, "write `key_columns: [...]`"
            )
            raise SpecError(counted("DimensionSpec", [mistake]), [mistake])
        return cls.from_dict(given)

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(self.key_columns)

    def attribute(self, name: str) -> Attribute | None:
        """The attribute of that name, by itself or through ``"*"``; None if it is left out."""
        assert isinstance(self.attributes, Mapping)
        found: Attribute | None = self.attributes.get(name, self.attributes.get("*"))
        return found


def counted(what: str, mistakes: Sequence[Mistake]) -> str:
    number = "1 mistake" if len(mistakes) == 1 else f"{len(mistakes)} mistakes"
    return f"{what} has {number}; nothing was written."


def value_of_default(item: Any) -> Any:
    from dataclasses import MISSING

    if item.default is not MISSING:
        return item.default
    return item.default_factory() if item.default_factory is not MISSING else None


def known_names(given: Mapping[str, Any], mistakes: list[Mistake]) -> dict[str, Any]:
    known = [item.name for item in fields(DimensionSpec)]
    values = {name: value for name, value in given.items() if name in known}
    for other, name in (("KEYS", "key_columns"), ("DIFF_COLS", "attributes")):
        if other in given and name in given:
            mistakes.append(Mistake(other, f"one of {other} and {name}", "both", "remove one"))
        elif other in given:
            values[name] = given[other]
    others = [str(name) for name in given if name not in ("KEYS", "DIFF_COLS")]
    mistakes += unknown_options("", others, known)
    return values


def unknown_options(where: str, given: Iterable[str], known: Sequence[str]) -> list[Mistake]:
    """A mistake for each name that is not known; ``where`` stands before it."""
    wanted = " or ".join(known) if len(known) == 2 else f"one of {', '.join(known)}"
    return [
        Mistake(f"{where}{name}", wanted, "an unknown option", "correct or remove it")
        for name in given
        if name not in known
    ]


def check(values: dict[str, Any]) -> list[Mistake]:
    """Brings the options into one shape, in place; returns what is wrong with them."""
    mistakes: list[Mistake] = []
    for name in ("key_columns", "tie_break_by"):
        values[name] = as_names(name, values[name], mistakes)
    if not values["key_columns"] and not any(m.where == "key_columns" for m in mistakes):
        mistakes.append(
            Mistake("key_columns", "at least one column", "none", "name the key columns")
        )
    values["attributes"] = as_attributes(values["attributes"], mistakes)
    check_attributes(values, mistakes)
    check_columns(values, mistakes)
    for name, wanted in (
        ("on_tie", ("error", "greatest")),
        ("on_schema_change", ("fail", "append_new_columns")),
        ("full_batch", (True, False)),
        ("current_while_deleted", (True, False)),
    ):
        if values[name] not in wanted:
            choice = " or ".join(str(value) for value in wanted)
            mistakes.append(Mistake(name, choice, repr(values[name]), "choose one of them"))
    for name in ("changed_at", "deleted_when", "change_log"):
        if values[name] is not None and not (
            isinstance(values[name], str) and values[name].strip()
        ):
            mistakes.append(Mistake(name, "a text", repr(values[name]), "correct or remove it"))
    ratio = values["max_removed_keys_ratio"]
    if isinstance(ratio, bool) or not isinstance(ratio, (int, float)) or not 0 <= ratio <= 1:
        mistakes.append(
            Mistake(
                "max_removed_keys_ratio", "a number from 0 to 1", repr(ratio), "1 allows everything"
            )
        )
    for name in ("valid_to_current", "valid_from_first"):
        try:
            if values[name] is not None:
                micros(values[name])
        except (ValueError, AttributeError):
            mistakes.append(
                Mistake(
                    name,
                    "a moment such as '9999-12-31 23:59:59', or None",
                    repr(values[name]),
                    "correct it",
                )
            )
    audit = values["audit"]
    if audit is not None and not isinstance(audit, Mapping):
        mistakes.append(
            Mistake("audit", "a map with a table", repr(audit), "write {'table': '...'}")
        )
    elif audit is not None:
        mistakes += unknown_options("audit.", audit, AUDIT)
    return mistakes


def as_names(where: str, given: Any, mistakes: list[Mistake]) -> tuple[str, ...]:
    names = (given,) if isinstance(given, str) else tuple(given or ())
    if not all(isinstance(name, str) and name for name in names):
        mistakes.append(Mistake(where, "names of columns", repr(given), "write a list of texts"))
        return ()
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        mistakes.append(Mistake(where, "each column once", ", ".join(twice), "remove the double"))
    return names


def as_attributes(given: Any, mistakes: list[Mistake]) -> dict[str, Attribute]:
    if given is None:
        return {"*": Attribute()}
    if not isinstance(given, Mapping):
        return {name: Attribute() for name in as_names("attributes", given, mistakes)}
    found: dict[str, Attribute] = {}
    for name, value in given.items():
        where = f"attributes.{name}"
        options = value if isinstance(value, Mapping) else {"scd_type": value}
        if isinstance(value, Attribute):
            options = {"scd_type": value.scd_type, "changed_at": value.changed_at}
        mistakes += unknown_options(f"{where}.", options, ("scd_type", "changed_at"))
        scd_type, changed_at = options.get("scd_type", 2), options.get("changed_at", False)
        if isinstance(scd_type, bool) or scd_type not in TYPES:
            wanted = f"one of {', '.join(map(str, TYPES))}"
            mistakes.append(
                Mistake(f"{where}.scd_type", wanted, repr(scd_type), "choose one of them")
            )
            continue
        if changed_at and scd_type not in (1, 3):
            mistakes.append(
                Mistake(
                    f"{where}.changed_at",
                    "an attribute of type 1 or 3",
                    f"type {scd_type}",
                    "remove it: a column of the row says when the value began",
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
                "the history of type 4 is a table of its own: choose 4 or the others"
                + (", and say {'*': 4} for the columns not named" if "*" in attributes else ""),
            )
        )
    if 4 in types and values["change_log"] is not None:
        mistakes.append(
            Mistake(
                "change_log",
                "None: type 4 keeps what is replaced in a history of its own",
                repr(values["change_log"]),
                "remove it; or use type 2, whose versions are made anew from the log",
            )
        )
    taken = {name.lower() for name in values["key_columns"]}
    for name in attributes:
        if name.lower() in taken:
            mistakes.append(
                Mistake(
                    f"attributes.{name}",
                    "a column that is no key",
                    "a key column",
                    "remove it from one of the two",
                )
            )


def check_columns(values: dict[str, Any], mistakes: list[Mistake]) -> None:
    """Names of generated columns, the flag's values, and the surrogate key."""
    given = values["column_names"] or {}
    if not isinstance(given, Mapping):
        mistakes.append(
            Mistake("column_names", "a map", repr(given), "write {'valid_from': 'effective_from'}")
        )
        given = {}
    for name, wanted in given.items():
        if name not in GENERATED:
            known = ", ".join(GENERATED)
            mistakes.append(
                Mistake(
                    f"column_names.{name}",
                    f"one of {known}",
                    "an unknown column",
                    "correct the name",
                )
            )
        elif wanted is not None and not (isinstance(wanted, str) and wanted):
            mistakes.append(
                Mistake(f"column_names.{name}", "a name or None", repr(wanted), "correct it")
            )
    values["column_names"] = dict(given)
    flags = values["current_values"]
    if (
        isinstance(flags, str)
        or not isinstance(flags, Sequence)
        or len(flags) != 2
        or flags[0] == flags[1]
    ):
        mistakes.append(
            Mistake(
                "current_values",
                "two values that differ, such as ['Y', 'N']",
                repr(flags),
                "correct it",
            )
        )
    else:
        values["current_values"] = tuple(flags)
    key = values["surrogate_key"]
    if key is None:
        return
    if not isinstance(key, Mapping) or not isinstance(key.get("name"), str) or not key.get("name"):
        mistakes.append(
            Mistake(
                "surrogate_key",
                "a map with a name",
                repr(key),
                "write {'name': 'customer_key', 'strategy': 'hash'}",
            )
        )
        return
    mistakes += unknown_options("surrogate_key.", key, ("name", "strategy"))
    strategy = key.get("strategy", "hash")
    if strategy not in ("hash", "sequence"):
        mistakes.append(
            Mistake(
                "surrogate_key.strategy", "hash or sequence", repr(strategy), "choose one of them"
            )
        )
    values["surrogate_key"] = {"name": key["name"], "strategy": strategy}
