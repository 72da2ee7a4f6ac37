"""The definition of a dimension: keys, attributes with their SCD types, and the columns that they add."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from healing_tables.definition.attributes import Attribute, as_attributes, check_attributes
from healing_tables.definition.generated import added_name, check_columns, check_surrogate_key, generated_columns
from healing_tables.definition.options import as_names, check_choice, unknown_options
from healing_tables.errors import Mistake, SpecError, counted
from healing_tables.sql.instants import micros

if TYPE_CHECKING:
    from typing_extensions import Self


class DefaultText(str):
    """The value of an option that was not given: an existing table may have another one."""


class DefaultPair(tuple[Any, ...]):
    """The same for two values."""


def is_named(value: Any) -> bool:
    """Whether an option was given."""
    return not isinstance(value, (DefaultText, DefaultPair))


OPEN_END = DefaultText("9999-12-31 00:00:00")
FLAG_VALUES = DefaultPair((True, False))
AUDIT = ("table", "actor", "reason", "source")
# Options that name the columns of the batch with the cause of a row
CAUSE = ("change_reason", "change_source", "correlation_id")
FULL_WITHOUT_PLACE = (
    "full_batch",
    "this option, or sequence_by",
    "both",
    "merge the extract with the deletions as rows (deleted_when): a key that is missing has no place in a sequence",
)


@dataclass(frozen=True, kw_only=True)
class DimensionSpec:
    """The definition of a dimension that batches are merged into.

    Args:
        key_columns: the business key: one name, or several.
        attributes: map from name to SCD type (0, 1, 2, 3, 4, 6) or to ``{"scd_type": 3, "changed_at": True}``; or a
            list of names, which have type 2. ``"*"`` means all columns that are not named; the default is ``{"*": 2}``.
        changed_at: column of the batch with the moment of each change; without it, all rows have the same moment.
        full_batch: the batch contains every existing key, so keys that are missing from it end.
        within: columns of the batch for whose values a full batch is complete: a missing key ends only if rows of the
            batch have the last values of the key.
        deleted_when: boolean SQL expression over a row of the batch; true means that the key ends. NULL means false.
        truncated_when: the same; true means that all keys end. The row needs no key. This and the next three options
            need a change log.
        ignore_nulls: columns of the batch in which NULL means "not sent": the key keeps its value; or True for all.
        unchanged_value: map from column to the value that means the same.
        sequence_by: columns of the batch that order the rows of a key, whatever their moments; instead of
            ``tie_break_by``.
        tie_break_by: columns of the batch that order rows with the same key and moment; the greatest is used.
        on_tie: what to do with rows that still differ: ``"error"``, or ``"greatest"``: a deletion is used, or else the
            row with the greatest values.
        change_reason: column of the batch with the reason for a row. It is stored as text in the column
            ``change_reason`` of the dimension, and in the audit.
        change_source: column of the batch with the source of a row; stored in the same way.
        correlation_id: column of the batch with the id of the upstream event; stored in the audit only.
        change_log: table that stores every change; the versions of the keys in a batch are computed from it, so that
            late changes can be merged. Default: ``<dimension>_changes`` for a new dimension with ``changed_at``; not in
            PostgreSQL, for type 4 in files and Hive tables, or with ``on_late: set_aside``. False: none is kept.
        history: of type 4, the table of the earlier rows; default ``<dimension>_history``.
        max_removed_keys_ratio: a merge that would end a larger share of the current keys is refused, if there are at
            least 20.
        current_while_deleted: the last version of a deleted key keeps its current flag.
        surrogate_key: ``{"name": ..., "strategy": "hash" | "dbt_utils" | "sequence"}``.
        column_names: map from generated column to the name that it gets, or to None to leave it out; also for the
            columns that attributes add, such as ``{"previous_city": "city_before", "city_changed_at": "city_since"}``.
        valid_to_current: the open end: a moment, or None for NULL. An existing table keeps its own open end and flags;
            a merge whose definition names others is refused.
        current_values: the two values of the current flag.
        deleted_values: the two values of ``ended_by_delete``.
        valid_from_first: the start of the first version of each key, if its first change is later: a moment; or
            ``{"batch": column}``, the least value of that column in the rows of the key, with a change log.
        deleted_rows: a deleted key has a row, too: its last values, with ``is_deleted`` true. It needs a change log.
        null_keys: ``"set_aside"``: a row with NULL in a key column is set aside; ``"keep"``: NULL in one of several key
            columns is a value like others, and only a row without any key is set aside. It needs a change log.
        audit: ``{"table", "actor", "reason", "source"}``: a row for each changed version is written to that table.
        on_late: what to do with a late change or a tie (see LateChangeError): ``"error"``, or ``"set_aside"``: it goes
            to ``<dimension>__set_aside``, as rows with NULL in a key or in the moment do. With a change log, none is.
        missing_columns: what to do if the batch lacks an attribute that the table has: ``"error"``; ``"keep"``: the
            stored value of each key stays; or ``"null"``.
        on_schema_change: what to do with a new column in the batch, and with a type that holds all values of the stored
            one and more: ``"fail"``; ``"append_new_columns"``: a new column is added; ``"sync_all_columns"``: the type
            of the stored column is changed, too.
    Raises: SpecError with all mistakes.
    """

    key_columns: Sequence[str] | str
    attributes: Mapping[str, Any] | Sequence[str] | str | None = None
    changed_at: str | None = None
    full_batch: bool = False
    within: Sequence[str] | str = ()
    deleted_when: str | None = None
    truncated_when: str | None = None
    ignore_nulls: Sequence[str] | str | bool = ()
    unchanged_value: Mapping[str, Any] = field(default_factory=dict)
    sequence_by: Sequence[str] | str = ()
    tie_break_by: Sequence[str] | str = ()
    on_tie: str = "error"
    change_reason: str | None = None
    change_source: str | None = None
    correlation_id: str | None = None
    change_log: str | bool | None = None
    history: str | None = None
    max_removed_keys_ratio: float = 0.5
    current_while_deleted: bool = False
    surrogate_key: Mapping[str, str] | None = None
    column_names: Mapping[str, str | None] = field(default_factory=dict)
    valid_to_current: str | dt.datetime | dt.date | None = OPEN_END
    current_values: Sequence[Any] = FLAG_VALUES
    deleted_values: Sequence[Any] = FLAG_VALUES
    valid_from_first: str | dt.datetime | dt.date | Mapping[str, str] | None = None
    deleted_rows: bool = False
    null_keys: str = "set_aside"
    audit: Mapping[str, str] | None = None
    on_late: str = "error"
    missing_columns: str = "error"
    on_schema_change: str = "fail"

    def __post_init__(self) -> None:
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        mistakes = check(values)
        if mistakes:
            raise SpecError(counted("DimensionSpec", mistakes), mistakes)
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Self:
        """Read a map of the arguments. ``KEYS`` means ``key_columns``, ``DIFF_COLS`` the type 2 attributes."""
        mistakes: list[Mistake] = []
        if not isinstance(given, Mapping):
            mistakes.append(Mistake("DimensionSpec", "a map of options", repr(given), "write {'key_columns': [...]}"))
            raise SpecError(counted("DimensionSpec", mistakes), mistakes)
        values = known_names(given, mistakes)
        defaults = {item.name: value_of_default(item) for item in fields(cls)}
        mistakes += check({**defaults, **values})
        if mistakes:
            raise SpecError(counted("DimensionSpec", mistakes), mistakes)
        return cls(**values)

    @classmethod
    def from_yaml(cls, path: str | Path) -> Self:
        """Read a YAML file with the keys of `from_dict`."""
        import yaml

        given = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
        if not isinstance(given, Mapping):
            mistake = Mistake(str(path), "a map of options", type(given).__name__, "write `key_columns: [...]`")
            raise SpecError(counted("DimensionSpec", [mistake]), [mistake])
        return cls.from_dict(given)

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(self.key_columns)

    @property
    def has_null_keys(self) -> bool:
        """NULL in one of several key columns is a value."""
        return self.null_keys == "keep" and len(self.keys) > 1

    @property
    def causes(self) -> dict[str, str]:
        """The columns with the cause of a row: the name in CAUSE to the column of the batch."""
        found = {name: getattr(self, name) for name in CAUSE}
        return {name: column for name, column in found.items() if column is not None}

    @property
    def generated(self) -> dict[str, bool]:
        """The generated columns that the dimension can have, and whether it has them by default."""
        return generated_columns(self.deleted_rows)

    @property
    def first_start_column(self) -> str | None:
        """The column of the batch with the start of a key's first version."""
        return self.valid_from_first["batch"] if isinstance(self.valid_from_first, Mapping) else None

    @property
    def order_by(self) -> Sequence[str]:
        """The columns that order rows of a key: of one moment, or all of them."""
        return self.sequence_by or self.tie_break_by

    @property
    def is_partial(self) -> bool:
        """Rows may leave values out."""
        return bool(self.ignore_nulls or self.unchanged_value)

    @property
    def has_rules(self) -> bool:
        """There are rules of change data capture (see plan/feed.py)."""
        return self.is_partial or bool(self.sequence_by) or self.truncated_when is not None

    def ignores_nulls(self, column: str) -> bool:
        if isinstance(self.ignore_nulls, bool):
            return self.ignore_nulls
        return column.lower() in map(str.lower, self.ignore_nulls)

    def attribute(self, name: str) -> Attribute | None:
        """The attribute of that name, by itself or through ``"*"``; None if it is left out."""
        assert isinstance(self.attributes, Mapping)
        found: Attribute | None = self.attributes.get(name, self.attributes.get("*"))
        return found

    def added(self, role: str, attribute: str) -> str:
        """The name of a column that an attribute adds. Args: role: current, previous or changed_at."""
        name = added_name(role, attribute)
        return self.column_names.get(name) or name


def value_of_default(item: Any) -> Any:
    if item.default is not MISSING:
        return item.default
    return item.default_factory() if item.default_factory is not MISSING else None


def known_names(given: Mapping[str, Any], mistakes: list[Mistake]) -> dict[str, Any]:
    allowed = [item.name for item in fields(DimensionSpec)]
    values = {name: value for name, value in given.items() if name in allowed}
    if "KEYS" in given and "key_columns" in given:
        mistakes.append(Mistake("KEYS", "one of KEYS and key_columns", "both", "remove one"))
    elif "KEYS" in given:
        values["key_columns"] = given["KEYS"]
    if "DIFF_COLS" in given:
        columns = as_names("DIFF_COLS", given["DIFF_COLS"], mistakes)
        values["attributes"] = with_diff_cols(columns, given.get("attributes"), mistakes)
    others = [str(name) for name in given if name not in ("KEYS", "DIFF_COLS")]
    mistakes += unknown_options("", others, allowed)
    return values


def with_diff_cols(columns: Sequence[str], attributes: Any, mistakes: list[Mistake]) -> dict[str, Any]:
    """DIFF_COLS, of type 2, and the attributes of other types that are given with them."""
    others = as_attributes(attributes, mistakes) if attributes is not None else {}
    twice = [name for name in columns if name in others]
    if twice:
        mistakes.append(
            Mistake(
                "DIFF_COLS",
                "columns that attributes does not name",
                ", ".join(twice),
                "name each column in one of the two",
            )
        )
    return {**dict.fromkeys(columns, 2), **others}


def check(values: dict[str, Any]) -> list[Mistake]:
    """Normalize the options in place; returns the mistakes."""
    mistakes: list[Mistake] = []
    for name in ("key_columns", "tie_break_by", "sequence_by", "within", "ignore_nulls"):
        if not (name == "ignore_nulls" and isinstance(values[name], bool)):
            values[name] = as_names(name, values[name], mistakes)
    if not values["key_columns"] and not any(m.where == "key_columns" for m in mistakes):
        mistakes.append(Mistake("key_columns", "at least one column", "none", "name the key columns"))
    values["attributes"] = as_attributes(values["attributes"], mistakes)
    check_attributes(values, mistakes)
    check_columns(values, mistakes)
    check_surrogate_key(values, mistakes)
    for name, wanted in (
        ("on_tie", ("error", "greatest")),
        ("on_late", ("error", "set_aside")),
        ("missing_columns", ("error", "keep", "null")),
        ("on_schema_change", ("fail", "append_new_columns", "sync_all_columns")),
        ("full_batch", (True, False)),
        ("current_while_deleted", (True, False)),
        ("deleted_rows", (True, False)),
        ("null_keys", ("set_aside", "keep")),
    ):
        check_choice(name, values[name], wanted, mistakes)
    for name in ("changed_at", "deleted_when", "truncated_when", "change_log", "history", *CAUSE):
        value, can_be_off = values[name], name == "change_log"
        if value is not None and not (isinstance(value, str) and value.strip()) and not (can_be_off and value is False):
            text = "a text, or False" if can_be_off else "a text"
            mistakes.append(Mistake(name, text, repr(value), "correct or remove it"))
    check_rules(values, mistakes)
    check_versions(values, mistakes)
    ratio = values["max_removed_keys_ratio"]
    if isinstance(ratio, bool) or not isinstance(ratio, (int, float)) or not 0 <= ratio <= 1:
        mistakes.append(
            Mistake(
                "max_removed_keys_ratio",
                "a number from 0 to 1",
                repr(ratio),
                "write a share such as 0.2; 1 switches this guard off",
            )
        )
    moments = [name for name in ("valid_to_current", "valid_from_first") if not isinstance(values[name], Mapping)]
    for name in moments:
        try:
            if values[name] is not None:
                micros(values[name])
        except (ValueError, AttributeError):
            mistakes.append(
                Mistake(
                    name,
                    "a moment such as '9999-12-31 00:00:00', or None",
                    repr(values[name]),
                    "write a date, or a date and a time",
                )
            )
    audit = values["audit"]
    if audit is not None and not isinstance(audit, Mapping):
        mistakes.append(Mistake("audit", "a map with a table", repr(audit), "write {'table': '...'}"))
    elif audit is not None:
        mistakes += unknown_options("audit.", audit, AUDIT)
    return mistakes


def check_rules(values: dict[str, Any], mistakes: list[Mistake]) -> None:
    """The rules of change data capture. Their words are those of the macro `_add_rules_of_batch`."""
    if not isinstance(values["unchanged_value"] or {}, Mapping):
        remedy = "write {'doc': '__debezium_unavailable_value'}"
        got = repr(values["unchanged_value"])
        mistakes.append(Mistake("unchanged_value", "a map from column to value", got, remedy))
    values["unchanged_value"] = values["unchanged_value"] or {}
    if values["sequence_by"] and values["tie_break_by"]:
        remedy = "remove tie_break_by: sequence_by orders rows of one moment, too"
        mistakes.append(Mistake("sequence_by", "this option, or tie_break_by", "both", remedy))
    if values["sequence_by"] and values["full_batch"] is True:
        mistakes.append(Mistake(*FULL_WITHOUT_PLACE))


def check_versions(values: dict[str, Any], mistakes: list[Mistake]) -> None:
    """Options for versions. Their words are those of the macro `_check_options_of_versions`."""
    first = values["valid_from_first"]
    if isinstance(first, Mapping):
        mistakes += unknown_options("valid_from_first.", first, ("batch",))
        if not isinstance(first.get("batch"), str):
            mistakes.append(Mistake("valid_from_first.batch", "a column of the batch", "none", "name it"))
    if values["deleted_rows"] is True and values["current_while_deleted"] is True:
        remedy = "remove current_while_deleted: the row of a deleted key is current"
        mistakes.append(Mistake("deleted_rows", "this option, or current_while_deleted", "both", remedy))
    if values["deleted_rows"] is True and (values["column_names"] or {}).get("is_deleted", "") is None:
        wanted = "a name: with deleted_rows, only this column tells a deleted key"
        mistakes.append(Mistake("column_names.is_deleted", wanted, "none", "leave it out, or name it"))
    types = {found.scd_type for found in values["attributes"].values() if found is not None}
    options = {"deleted_rows": values["deleted_rows"] is True, "valid_from_first.batch": isinstance(first, Mapping)}
    for option, is_set in options.items():
        if is_set and 4 in types:
            remedy = "leave this option out, or give the attributes type 2"
            mistakes.append(Mistake(option, "attributes of types 0, 1, 2, 3 and 6", "type 4", remedy))
