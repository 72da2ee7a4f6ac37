"""The columns of a stored dimension."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from healing_tables.definition.attributes import VERSIONED
from healing_tables.definition.generated import MARK_OF_DELETED, added_roles
from healing_tables.definition.spec import DimensionSpec
from healing_tables.errors import BatchError, Mistake, counted

HISTORY = ("valid_from", "valid_to", "history_id", "change_reason")  # what type 4's history adds


@dataclass(frozen=True)
class Column:
    """An attribute or key: ``name`` in the table, ``column`` in the batch (they may differ in case), Spark type.

    Attributes:
        column: None if the batch lacks it.
        is_kept: then the stored value of its key stays; otherwise the value is NULL.
    """

    name: str
    column: str | None
    type: str
    scd_type: int = 2
    changed_at: bool = False
    is_kept: bool = False


@dataclass(frozen=True)
class Layout:
    """All columns of a dimension.

    Attributes:
        names: generated column to its name; absent if it is left out.
        moment_type: date, timestamp_ltz or timestamp_ntz.
        surrogate: name of the surrogate key, if there is one; `strategy` how it is made.
        new_columns: attributes that the stored table does not have yet, with their types.
        widened: stored columns whose type is to be changed, with the new type; those that attributes add come first.
        has_null_keys: NULL in one of several key columns is a value.
        partitions: columns that the table is partitioned by.
    """

    keys: tuple[Column, ...]
    attributes: tuple[Column, ...]
    names: Mapping[str, str]
    moment_type: str
    surrogate: str | None = None
    strategy: str = "hash"
    new_columns: tuple[tuple[str, str], ...] = ()
    partitions: tuple[str, ...] = ()
    widened: tuple[tuple[str, str], ...] = ()
    has_null_keys: bool = False

    def of_type(self, *types: int) -> tuple[Column, ...]:
        return tuple(column for column in self.attributes if column.scd_type in types)

    @property
    def same(self) -> str:
        """The operator that compares two keys, as SQL."""
        return "<=>" if self.has_null_keys else "="

    @property
    def is_sequence(self) -> bool:
        """The surrogate keys are integers."""
        return self.strategy == "sequence"

    @property
    def is_versioned(self) -> bool:
        return bool(self.of_type(*VERSIONED)) or self.has_deleted_rows

    @property
    def has_deleted_rows(self) -> bool:
        return MARK_OF_DELETED in self.names

    @property
    def has_history(self) -> bool:
        """Type 4: replaced rows are moved to a separate table."""
        return bool(self.of_type(4))

    @property
    def keeps_values(self) -> bool:
        """The batch lacks attributes whose stored values stay."""
        return any(attribute.is_kept for attribute in self.attributes)

    def with_values(self) -> Layout:
        """The layout for rows in which kept values are filled in."""
        return replace(self, attributes=tuple(replace(attribute, is_kept=False) for attribute in self.attributes))

    def flag_type(self, values: Sequence[object]) -> str:
        kinds = {bool: "boolean", int: "int", str: "string"}
        return kinds.get(type(values[0]), "string")

    def columns(self, spec: DimensionSpec) -> dict[str, str]:
        """Name to type, in the order of the table."""
        return dict(self.listed(spec))

    def listed(self, spec: DimensionSpec) -> list[tuple[str, str]]:
        """Names with their types; a name that is used twice occurs twice."""
        found = self.surrogate_column()
        for key in self.keys:
            found.append((key.name, key.type))
        for attribute in self.attributes:
            found.append((attribute.name, attribute.type))
            for role in added_roles(attribute.scd_type, attribute.changed_at):
                kind = self.moment_type if role == "changed_at" else attribute.type
                found.append((spec.added(role, attribute.name), kind))
        return [*found, *self.generated(spec)]

    def history_columns(self, spec: DimensionSpec) -> dict[str, str]:
        """Name to type of the columns that the history of type 4 has."""
        found = {column.name: column.type for column in (*self.keys, *self.attributes)}
        for attribute in self.attributes:
            if attribute.changed_at:
                found[spec.added("changed_at", attribute.name)] = self.moment_type
        bounds = dict.fromkeys(("valid_from", "valid_to"), self.moment_type)
        return found | bounds | {"history_id": "string", "change_reason": "string"}

    def surrogate_column(self) -> list[tuple[str, str]]:
        """Its name with its type; nothing if there is none."""
        kind = "bigint" if self.is_sequence else "string"
        return [] if self.surrogate is None else [(self.surrogate, kind)]

    def generated(self, spec: DimensionSpec) -> list[tuple[str, str]]:
        """Names of the generated columns with their types."""
        types = {
            "valid_from": self.moment_type,
            "valid_to": self.moment_type,
            "is_current": self.flag_type(spec.current_values),
            "version": "int",
            "compressed_row_count": "bigint",
            "ended_by_delete": self.flag_type(spec.deleted_values),
            "last_updated": self.moment_type,
            MARK_OF_DELETED: "boolean",
        }
        return [(self.names[name], types.get(name, "string")) for name in spec.generated if name in self.names]


def check_names(layout: Layout, spec: DimensionSpec) -> None:
    """Raises: BatchError if a name of the table is used twice."""
    names = [name for name, _ in layout.listed(spec)]
    lowered = [name.lower() for name in names]
    mistakes = [
        Mistake(
            name,
            "each column of the dimension once",
            "a name that is taken",
            "rename it with column_names, or leave it out of attributes",
        )
        for position, name in enumerate(names)
        if name.lower() in lowered[:position]
    ]
    if layout.has_history:
        mistakes += [
            Mistake(
                column.name,
                f"a name other than the history's own: {', '.join(HISTORY)}",
                "a name that is taken",
                "rename it in the batch, or leave it out of attributes",
            )
            for column in (*layout.keys, *layout.attributes)
            if column.name.lower() in HISTORY
        ]
    if mistakes:
        raise BatchError(counted("the dimension", mistakes), mistakes)


def numbered(layout: Layout, *types: int) -> list[tuple[int, Column]]:
    """Attributes of some SCD types with their numbers: ``a1..n`` in the order of the layout."""
    return [
        (number, attribute)
        for number, attribute in enumerate(layout.attributes, start=1)
        if attribute.scd_type in types
    ]


def by_name(layout: Layout) -> list[tuple[int, Column]]:
    """All attributes with their numbers, ordered by name as in the struct ``state``."""
    return sorted(enumerate(layout.attributes, start=1), key=lambda item: item[1].name)
