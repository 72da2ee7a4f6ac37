"""The columns of a stored dimension: from the definition, the batch, and the table if there is one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import types as t

from healing_tables.errors import BatchError, Mistake, TargetError
from healing_tables.hashing import is_text
from healing_tables.spec import GENERATED, VERSIONED, DimensionSpec, counted

MOMENTS = ("date", "timestamp", "timestamp_ntz")
WHOLE = ("tinyint", "smallint", "int", "bigint")


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


@dataclass(frozen=True)
class Column:
    """An attribute or key: ``name`` in the table, ``column`` in the batch (they may differ in case), Spark type."""

    name: str
    column: str
    type: str
    scd_type: int = 2
    changed_at: bool = False


@dataclass(frozen=True)
class Layout:
    """All columns of a dimension.

    Attributes:
        names: generated column to its name; absent if it is left out.
        moment_type: date, timestamp or timestamp_ntz.
        surrogate: name of the surrogate key, if there is one; `sequence` whether it is an integer.
        new_columns: attributes that the stored table does not have yet, with their types.
    """

    keys: tuple[Column, ...]
    attributes: tuple[Column, ...]
    names: Mapping[str, str]
    moment_type: str
    surrogate: str | None = None
    is_sequence: bool = False
    new_columns: tuple[tuple[str, str], ...] = ()

    def of_type(self, *types: int) -> tuple[Column, ...]:
        return tuple(column for column in self.attributes if column.scd_type in types)

    @property
    def is_versioned(self) -> bool:
        return bool(self.of_type(*VERSIONED))

    @property
    def has_history(self) -> bool:
        """Type 4: what is replaced goes to a table of its own."""
        return bool(self.of_type(4))

    def flag_type(self, values: Sequence[object]) -> str:
        kinds = {bool: "boolean", int: "int", str: "string"}
        return kinds.get(type(values[0]), "string")

    def columns(self, spec: DimensionSpec) -> dict[str, str]:
        """Name to type, in the order of the table."""
        return dict(self.listed(spec))

    def listed(self, spec: DimensionSpec) -> list[tuple[str, str]]:
        """Names with their types; one that is taken stands there twice."""
        found: list[tuple[str, str]] = []
        if self.surrogate is not None:
            found.append((self.surrogate, "bigint" if self.is_sequence else "string"))
        for key in self.keys:
            found.append((key.name, key.type))
        for attribute in self.attributes:
            found.append((attribute.name, attribute.type))
            if attribute.scd_type == 6:
                found.append((f"current_{attribute.name}", attribute.type))
            if attribute.scd_type in (3, 6):
                found.append((f"previous_{attribute.name}", attribute.type))
            if attribute.changed_at:
                found.append((f"{attribute.name}_changed_at", self.moment_type))
        types = {
            "valid_from": self.moment_type,
            "valid_to": self.moment_type,
            "is_current": self.flag_type(spec.current_values),
            "version": "int",
            "compressed_row_count": "bigint",
            "ended_by_delete": "boolean",
            "last_updated": self.moment_type,
        }
        for name in GENERATED:
            if name in self.names:
                found.append((self.names[name], types.get(name, "string")))
        return found


def types_of(schema: t.StructType) -> dict[str, str]:
    """Name to type, as Spark spells it."""
    return {field.name: field.dataType.simpleString() for field in schema}


def has_no_equality(kind: str) -> bool:
    return "map<" in kind or "variant" in kind


def find(name: str, columns: Mapping[str, str]) -> str | None:
    """A column by name; Spark tells names apart by more than their case only where a session asks for it."""
    if name in columns:
        return name
    return next((column for column in columns if column.lower() == name.lower()), None)


def resolve(
    spec: DimensionSpec, batch: t.StructType, stored: t.StructType | None, *, moment_type: str
) -> Layout:
    """The layout, checked.

    Args:
        stored: schema of the table; None if there is none yet.
        moment_type: of a table to be made.
    Raises: BatchError, TargetError: with everything that is wrong with the batch's or the table's columns.
    """
    given, mistakes = types_of(batch), list[Mistake]()
    keys = tuple(
        Column(name, column, given[column])
        for name in spec.keys
        if (column := wanted_column(name, "key_columns", given, mistakes)) is not None
    )
    if spec.changed_at is not None:
        column = wanted_column(spec.changed_at, "changed_at", given, mistakes)
        if column is not None and given[column] not in MOMENTS:
            mistakes.append(
                Mistake(
                    f"changed_at ({column})",
                    "a date or a timestamp",
                    given[column],
                    "cast it in the batch",
                )
            )
        elif column is not None:
            moment_type = "date" if given[column] == "date" else "timestamp"
    for name in spec.tie_break_by:
        wanted_column(name, "tie_break_by", given, mistakes)
    attributes = tuple(
        Column(name, column, given[column], attribute.scd_type, attribute.changed_at)
        for name, column in attribute_columns(spec, given, mistakes).items()
        if (attribute := spec.attribute(name)) is not None
    )
    for column_ in (*keys, *attributes):
        if has_no_equality(column_.type):
            mistakes.append(
                Mistake(
                    column_.name,
                    "a type with equality",
                    column_.type,
                    "turn it into text, an array or a struct without maps",
                )
            )
    if mistakes:
        raise BatchError(counted("the batch", mistakes), mistakes)
    key = spec.surrogate_key or {}
    names = generated_names(spec, attributes)
    layout = Layout(
        keys, attributes, names, moment_type, key.get("name"), key.get("strategy") == "sequence"
    )
    if stored is not None:
        return stored_layout(spec, layout, types_of(stored))
    check_names(layout, spec)
    return layout


def wanted_column(
    name: str, where: str, given: Mapping[str, str], mistakes: list[Mistake]
) -> str | None:
    column = find(name, given)
    if column is None:
        mistakes.append(
            Mistake(
                f"{where}: {name}",
                f"a column of the batch, which has {', '.join(given)}",
                "no such column",
                "add it to the batch, or correct the name",
            )
        )
    return column


def attribute_columns(
    spec: DimensionSpec, given: Mapping[str, str], mistakes: list[Mistake]
) -> dict[str, str]:
    """Attribute to column of the batch; ``"*"``: all that are not keys, moments, tie breakers or named by deleted_when."""
    assert isinstance(spec.attributes, Mapping)
    found: dict[str, str] = {}
    used = {name.lower() for name in (*spec.keys, *spec.tie_break_by, spec.changed_at or "")}
    named = {name.lower() for name in spec.attributes}
    for name in spec.attributes:
        if name != "*":
            column = wanted_column(name, "attributes", given, mistakes)
            if column is not None:
                found[name] = column
            continue
        for column in given:
            is_free = column.lower() not in used and column.lower() not in named
            if is_free and not is_named(column, spec.deleted_when):
                found[column] = column
    return found


def is_named(column: str, expression: str | None) -> bool:
    """Whether a SQL expression names a column, outside of its text literals."""
    import re

    if expression is None:
        return False
    bare = re.sub(r"'(?:[^'\\]|\\.)*'", "''", expression).lower()
    if quoted(column).lower() in bare:
        return True
    return re.search(rf"(?<![\w`]){re.escape(column.lower())}(?![\w`])", bare) is not None


def generated_names(spec: DimensionSpec, attributes: Sequence[Column]) -> dict[str, str]:
    is_type_4 = any(attribute.scd_type == 4 for attribute in attributes)
    found: dict[str, str] = {}
    for name, by_default in GENERATED.items():
        if is_type_4:
            by_default = name == "last_updated"
        wanted = spec.column_names.get(name, name if by_default else None)
        if wanted is not None:
            found[name] = wanted
    return found


def check_names(layout: Layout, spec: DimensionSpec) -> None:
    """Every column of the table has a name of its own."""
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
    if mistakes:
        raise BatchError(counted("the dimension", mistakes), mistakes)


def stored_layout(spec: DimensionSpec, wanted: Layout, stored: Mapping[str, str]) -> Layout:
    """What is there decides over default columns: one that the table lacks is left out, one that it has is kept up."""
    from dataclasses import replace

    mistakes: list[Mistake] = []
    keys = tuple(stored_column(key, stored, mistakes) for key in wanted.keys)
    new_columns: list[tuple[str, str]] = []
    attributes: list[Column] = []
    for attribute in wanted.attributes:
        name = find(attribute.name, stored)
        if name is None and spec.on_schema_change == "append_new_columns":
            new_columns.append((attribute.name, attribute.type))
            attributes.append(attribute)
            continue
        column = stored_column(attribute, stored, mistakes)
        has_moment = attribute.scd_type in (1, 3) and f"{attribute.name}_changed_at" in stored
        attributes.append(replace(column, changed_at=attribute.changed_at or has_moment))
    taken = {column.name for column in (*keys, *attributes)}
    names: dict[str, str] = {}
    for name in GENERATED:
        if name in spec.column_names:
            if spec.column_names[name] is not None:
                names[name] = str(spec.column_names[name])
        elif name in stored and name not in taken:
            names[name] = name
    moment_type = next(
        (
            stored[names[name]]
            for name in ("valid_from", "last_updated")
            if stored.get(names.get(name, "")) in MOMENTS
        ),
        wanted.moment_type,
    )
    if moment_type == "date" and spec.changed_at is not None and wanted.moment_type != "date":
        mistakes.append(
            Mistake(
                f"changed_at ({spec.changed_at})",
                "a date, as the stored dimension has them",
                "a timestamp",
                "cast it in the batch",
            )
        )
    layout = replace(
        wanted,
        keys=keys,
        attributes=tuple(attributes),
        names=names,
        moment_type=moment_type,
        new_columns=tuple(new_columns),
    )
    check_names(layout, spec)
    appended = {name.lower() for name, _ in new_columns}
    for name, kind in layout.columns(spec).items():
        base = (
            name.lower()
            .removeprefix("current_")
            .removeprefix("previous_")
            .removesuffix("_changed_at")
        )
        if name not in stored and name.lower() not in appended and base not in appended:
            if not any(mistake.where == name for mistake in mistakes):
                mistakes.append(
                    Mistake(
                        name,
                        f"a column of the stored table, of type {kind}",
                        f"columns {', '.join(stored)}",
                        "correct column_names and attributes, or add the column",
                    )
                )
        elif name not in stored and (name, kind) not in new_columns:
            new_columns.append((name, kind))
    for name in stored:
        if name not in layout.columns(spec):
            mistakes.append(
                Mistake(
                    name,
                    "a column that the spec knows",
                    f"a stored column of type {stored[name]} that the batch and the spec do not have",
                    "add it to the batch and to attributes; if it was renamed in the source, name it as before",
                )
            )
    if layout.is_versioned:
        mistakes += [
            Mistake(
                name,
                "a column of the stored table, since attributes of type 2 or 6 make versions",
                "none",
                f"name it in column_names.{name}",
            )
            for name in ("valid_from", "valid_to")
            if name not in names
        ]
    if layout.has_history and "last_updated" not in names:
        mistakes.append(
            Mistake(
                "last_updated",
                "a column of the stored table, since type 4 needs the start of a row",
                "none",
                "name it in column_names.last_updated",
            )
        )
    if mistakes:
        raise TargetError(counted("the stored dimension", mistakes), mistakes)
    return replace(layout, new_columns=tuple(new_columns))


def stored_column(column: Column, stored: Mapping[str, str], mistakes: list[Mistake]) -> Column:
    from dataclasses import replace

    name = find(column.name, stored)
    if name is None:
        mistakes.append(
            Mistake(
                column.name,
                f"a column of the stored table, which has {', '.join(stored)}",
                "a column that is new in the batch",
                "leave it out, or set on_schema_change: append_new_columns",
            )
        )
        return column
    if not fits(column.type, stored[name]):
        mistakes.append(
            Mistake(
                column.name, f"the stored type {stored[name]}", column.type, "cast it in the batch"
            )
        )
    return replace(column, name=name, type=stored[name])


def fits(given: str, stored: str) -> bool:
    """Whether every value of one type is a value of the other, unchanged."""
    if given == stored or given == "void" or (is_text(given) and is_text(stored)):
        return True
    if given in WHOLE and stored in WHOLE:
        return WHOLE.index(given) <= WHOLE.index(stored)
    if given == "float" and stored == "double":
        return True
    digits = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
    if stored.startswith("decimal("):
        precision, scale = (int(part) for part in stored[8:-1].split(","))
        if given in digits:
            return precision - scale >= digits[given]
        if given.startswith("decimal("):
            own, own_scale = (int(part) for part in given[8:-1].split(","))
            return precision - scale >= own - own_scale and scale >= own_scale
    return False
