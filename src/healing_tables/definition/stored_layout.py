"""The layout of an existing dimension, which another program may have created."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from pyspark.sql import types as t

from healing_tables.definition.generated import MARK_OF_DELETED, added_roles
from healing_tables.definition.layout import Column, Layout, check_names
from healing_tables.definition.spec import DimensionSpec
from healing_tables.errors import Mistake, TargetError, counted
from healing_tables.sql.identifiers import find
from healing_tables.sql.types import DECLARED, DIGITS, MOMENTS, has_no_type, is_text

WHOLE = ("tinyint", "smallint", "int", "bigint")
APPENDS = ("append_new_columns", "sync_all_columns")
# What helps if the type of the batch holds every stored value
WIDENED = "set on_schema_change: sync_all_columns, which widens the stored column"
NEW_TABLE = (
    "copy the rows to a new table with the wider type, and rename it: this type of a column cannot be changed in place"
)
# Whether a format can change the type of a column: from the stored type, to the wider one
CanWiden = Callable[[str, str], bool]


def always(stored: str, given: str) -> bool:
    return True


NO_COLUMNS: Mapping[str, bool] = {}


def stored_layout(
    spec: DimensionSpec,
    wanted: Layout,
    stored: Mapping[str, str],
    *,
    can_widen: CanWiden = always,
    computed: Mapping[str, bool] = NO_COLUMNS,
) -> Layout:
    """The existing table determines the default columns: those that it lacks are left out, those that it has are kept.

    Args: wanted: the layout of a new table; stored: columns with their types; can_widen, computed: see `resolve`.
    Raises: TargetError with all mistakes.
    """
    of_batch: list[Mistake] = []
    mistakes: list[Mistake] = []
    stored = without_computed(spec, wanted, stored, computed, mistakes)
    keys = tuple(stored_column(key, stored, of_batch, spec, can_widen) for key in wanted.keys)
    attributes, appended = stored_attributes(spec, wanted, stored, of_batch, can_widen)
    names = stored_names(spec, stored, {column.name for column in (*keys, *attributes)})
    moment_type = next(
        (stored[names[name]] for name in ("valid_from", "last_updated") if stored.get(names.get(name, "")) in MOMENTS),
        wanted.moment_type,
    )
    if moment_type == "date" and spec.changed_at is not None and wanted.moment_type != "date":
        of_batch.append(
            Mistake(
                f"changed_at ({spec.changed_at})",
                "a date, as the stored dimension has them",
                "a timestamp",
                "cast it in the batch",
            )
        )
    layout = replace(wanted, keys=keys, attributes=attributes, names=names, moment_type=moment_type)
    check_names(layout, spec)
    spelled = layout.columns(spec)
    stored = {find(name, spelled) or name: kind for name, kind in stored.items()}
    new_columns = columns_to_add(spec, spelled, stored, appended, {mistake.where for mistake in of_batch}, mistakes)
    mistakes += unknown_columns(spelled, stored)
    mistakes += missing_moments(layout)
    if spec.deleted_rows and MARK_OF_DELETED not in names:
        remedy = "drop it, and merge again: it comes back from its change log, with the rows of deleted keys"
        wanted_column = f"a column {MARK_OF_DELETED} in the stored table"
        mistakes.append(Mistake("deleted_rows", wanted_column, "a table without it", remedy))
    flags = {layout.names.get(name) for name in ("is_current", "ended_by_delete")}
    # the values of flags come from the rows: see stored_spec.py
    others = [(name, kind) for name, kind in layout.generated(spec) if name not in flags]
    mistakes += other_types([*layout.surrogate_column(), *others], stored)
    if of_batch or mistakes:
        about = "the stored dimension" if not of_batch else "the batch" if not mistakes else "the merge"
        raise TargetError(counted(about, of_batch + mistakes), of_batch + mistakes)
    return replace(layout, new_columns=new_columns, widened=columns_to_widen(spec, layout, stored))


def without_computed(
    spec: DimensionSpec,
    wanted: Layout,
    stored: Mapping[str, str],
    computed: Mapping[str, bool],
    mistakes: list[Mistake],
) -> dict[str, str]:
    """The stored columns without those that the table itself computes, unless the merge has values for them."""
    given = [column.name for column in (*wanted.keys, *wanted.attributes)]
    given += [name for name in (*spec.column_names.values(), wanted.surrogate) if name is not None]
    for name, can_be_given in computed.items():
        if find(name, given) is not None and not can_be_given:
            mistakes.append(
                Mistake(
                    name,
                    "a column that the merge does not write, since the table computes its values",
                    "a column of the batch, or of the options",
                    "leave it out of the batch, column_names and surrogate_key",
                )
            )
    return {name: kind for name, kind in stored.items() if name not in computed or find(name, given) is not None}


def stored_attributes(
    spec: DimensionSpec, wanted: Layout, stored: Mapping[str, str], mistakes: list[Mistake], can_widen: CanWiden
) -> tuple[tuple[Column, ...], list[Column]]:
    """The attributes as the table has them, and those of them that it does not have yet."""
    found: list[Column] = []
    appended: list[Column] = []
    for attribute in wanted.attributes:
        if find(attribute.name, stored) is None and spec.on_schema_change in APPENDS:
            if has_no_type(attribute.type):
                mistakes.append(no_type(attribute))
            appended.append(attribute)
            found.append(attribute)
            continue
        column = stored_column(attribute, stored, mistakes, spec, can_widen)
        moment = spec.added("changed_at", attribute.name)
        # a column of that name may be a separate attribute
        is_own = any(other.name.lower() == moment.lower() for other in wanted.attributes)
        has_moment = attribute.scd_type in (1, 3) and find(moment, stored) is not None and not is_own
        found.append(replace(column, changed_at=attribute.changed_at or has_moment))
    return tuple(found), appended


def stored_names(spec: DimensionSpec, stored: Mapping[str, str], taken: set[str]) -> dict[str, str]:
    """Generated column to its name, as the table spells it. Args: taken: keys and attributes."""
    names: dict[str, str] = {}
    for name in spec.generated:
        if name in spec.column_names:
            if spec.column_names[name] is not None:
                wanted = str(spec.column_names[name])
                names[name] = find(wanted, stored) or wanted
        else:
            found = find(name, stored)
            if found is not None and found not in taken:
                names[name] = found
    return names


def columns_to_add(
    spec: DimensionSpec,
    wanted: Mapping[str, str],
    stored: Mapping[str, str],
    appended: Sequence[Column],
    reported: Collection[str],
    mistakes: list[Mistake],
) -> tuple[tuple[str, str], ...]:
    """New attributes and the columns that they add, with their types; any other column must exist.

    Args: reported: columns that have a mistake already.
    """
    found = {attribute.name: attribute.type for attribute in appended}
    new = {name.lower() for name in found}
    for attribute in appended:
        roles = added_roles(attribute.scd_type, attribute.changed_at)
        new |= {spec.added(role, attribute.name).lower() for role in roles}
    for name, kind in wanted.items():
        if name in stored:
            continue
        if name.lower() in new:
            found.setdefault(name, kind)
        elif name not in reported:
            mistakes.append(
                Mistake(
                    name,
                    f"a column of the stored table, of type {kind}",
                    f"columns {', '.join(stored)}",
                    "correct column_names and attributes, or add the column",
                )
            )
    return tuple(found.items())


def columns_to_widen(spec: DimensionSpec, layout: Layout, stored: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """The columns whose stored type is narrower than the one in the layout, with the new type: keys, attributes, and
    the columns that attributes add.

    Those that are added come first: if a merge is killed in between, the next one finds the attribute as it was.
    """
    found = {}
    for column in (*layout.keys, *layout.attributes):
        if stored.get(column.name, column.type) == column.type:
            continue
        roles = added_roles(column.scd_type, column.changed_at) if column in layout.attributes else ()
        names = [spec.added(role, column.name) for role in roles if role != "changed_at"]
        for name in (*names, column.name):
            if is_wider(column.type, stored.get(name, column.type)):
                found[name] = column.type
    return tuple(found.items())


def of_fixed_length(stored: t.StructType) -> list[Mistake]:
    """Columns that Spark pads when it reads them: Delta does not merge into such a table."""
    types = {field.name: field.metadata.get(DECLARED, "") for field in stored}
    return [
        Mistake(name, "text of any length", kind, "make it string or varchar")
        for name, kind in types.items()
        if kind.startswith("char")
    ]


def unknown_columns(wanted: Mapping[str, str], stored: Mapping[str, str]) -> list[Mistake]:
    return [
        Mistake(
            name,
            "a column of the spec",
            f"a stored column of type {kind} that the batch and the spec do not have",
            "add it to the batch and to attributes; if it was renamed in the source, use the old name; if the source "
            "has lost it, set missing_columns: keep, or null",
        )
        for name, kind in stored.items()
        if name not in wanted
    ]


def other_types(wanted: Sequence[tuple[str, str]], stored: Mapping[str, str]) -> list[Mistake]:
    """Generated columns of a type that cannot hold what a merge writes."""
    return [
        Mistake(
            name,
            f"the type {kind}",
            stored[name],
            "change surrogate_key, valid_to_current, current_values or the batch to fit the table, or cast the column",
        )
        for name, kind in wanted
        if name in stored and not fits(kind, stored[name]) and not (kind in WHOLE and stored[name] in WHOLE)
    ]


def missing_moments(layout: Layout) -> list[Mistake]:
    """Generated columns without which versions, or rows of type 4, cannot be distinguished."""
    wanted = {}
    if layout.is_versioned:
        why = "a column of the stored table, since attributes of type 2 or 6 have versions"
        wanted.update(dict.fromkeys(("valid_from", "valid_to"), why))
    if layout.has_history:
        wanted["last_updated"] = "a column of the stored table, since type 4 needs the start of a row"
    return [
        Mistake(name, why, "none", f"name it in column_names.{name}")
        for name, why in wanted.items()
        if name not in layout.names
    ]


def no_type(column: Column) -> Mistake:
    return Mistake(
        column.name,
        "a column with a type, since the table keeps it",
        column.type,
        "cast it in the batch, for example cast(null as string)",
    )


def stored_column(
    column: Column, stored: Mapping[str, str], mistakes: list[Mistake], spec: DimensionSpec, can_widen: CanWiden
) -> Column:
    """The column as the table has it; with the type of the batch, if the stored one is to be changed."""
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
        wanted, remedy = f"the stored type {stored[name]}", "cast it in the batch"
        if is_wider(column.type, stored[name]):
            is_key = any(column.name.lower() == key.lower() for key in spec.keys)
            if is_key and scale(column.type) != scale(stored[name]):
                wanted = f"the stored type {stored[name]}: the hash of a key contains its digits"
            elif not can_widen(stored[name], column.type):
                remedy = NEW_TABLE
            elif spec.on_schema_change != "sync_all_columns":
                remedy = WIDENED
            else:
                return replace(column, name=name)
        mistakes.append(Mistake(column.name, wanted, f"the type {column.type} in the batch", remedy))
    return replace(column, name=name, type=stored[name])


def is_wider(given: str, stored: str) -> bool:
    """Whether a stored number can become a number of another type, which holds every stored value and further ones."""
    is_number = stored in WHOLE or stored == "float" or stored.startswith("decimal(")
    return is_number and given != stored and fits(stored, given)


def wider_columns(wanted: Mapping[str, str], stored: Mapping[str, str]) -> list[tuple[str, str]]:
    """The stored columns whose type is narrower than the one that is wanted, with that one."""
    names = {name: find(name, stored) for name in wanted}
    return [
        (column, wanted[name])
        for name, column in names.items()
        if column is not None and is_wider(wanted[name], stored[column])
    ]


def scale(kind: str) -> int | None:
    """The number of digits after the point; None for float and double."""
    if kind.startswith("decimal("):
        return int(kind[8:-1].split(",")[1])
    return 0 if kind in WHOLE else None


def fits(given: str, stored: str) -> bool:
    """Whether every value of one type is a value of the other, unchanged."""
    if given == stored or given == "void" or (is_text(given) and is_text(stored)):
        return True
    if given in WHOLE and stored in WHOLE:
        return WHOLE.index(given) <= WHOLE.index(stored)
    if given == "float" and stored == "double":
        return True
    if stored.startswith("decimal("):
        precision, scale = (int(part) for part in stored[8:-1].split(","))
        if given in DIGITS:
            return precision - scale >= DIGITS[given]
        if given.startswith("decimal("):
            own, own_scale = (int(part) for part in given[8:-1].split(","))
            return precision - scale >= own - own_scale and scale >= own_scale
    return False
