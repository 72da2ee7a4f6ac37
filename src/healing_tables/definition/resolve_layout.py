"""The layout of a dimension, from its definition, the batch, and the table if there is one."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping, Sequence

from pyspark.sql import types as t

from healing_tables.definition.generated import unknown_names
from healing_tables.definition.layout import Column, Layout, check_names
from healing_tables.definition.options import did_you_mean
from healing_tables.definition.spec import DimensionSpec
from healing_tables.definition.stored_layout import (
    APPENDS,
    NO_COLUMNS,
    CanWiden,
    always,
    missing_moments,
    no_type,
    of_fixed_length,
    stored_layout,
)
from healing_tables.errors import BatchError, Mistake, TargetError, counted
from healing_tables.sql.identifiers import find, quoted
from healing_tables.sql.instants import TIMESTAMP
from healing_tables.sql.literals import mark
from healing_tables.sql.types import MOMENTS, has_no_equality, has_no_type, types_of

log = logging.getLogger("healing_tables")

ADD = "add it to the batch, or correct the name"


def resolve(
    spec: DimensionSpec,
    batch: t.StructType,
    stored: t.StructType | None,
    *,
    moment_type: str,
    can_widen: CanWiden = always,
    computed: Mapping[str, bool] = NO_COLUMNS,
) -> Layout:
    """The layout, checked.

    Args:
        stored: schema of the table; None if there is none yet.
        moment_type: of a new table.
        can_widen: whether the type of a stored column can be changed.
        computed: stored columns with values of their own (identity, generated), to whether a writer may give others.
    Raises: BatchError, TargetError: with all mistakes in the columns of the batch or of the table.
    """
    given, mistakes = types_of(batch), duplicate_columns(batch)
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
            moment_type = "date" if given[column] == "date" else TIMESTAMP
    order = "sequence_by" if spec.sequence_by else "tie_break_by"
    for name in spec.order_by:
        column = wanted_column(name, order, given, mistakes)
        if column is not None and has_no_equality(given[column]):
            remedy = "name another column, or a field of it in the batch"
            mistakes.append(Mistake(f"{order}: {name}", "a column that can be sorted", given[column], remedy))
    if spec.first_start_column is not None:
        option = "valid_from_first.batch"
        column = wanted_column(spec.first_start_column, option, given, mistakes)
        if column is not None and given[column] not in MOMENTS:
            mistakes.append(Mistake(option, "a date or a timestamp", given[column], "cast it in the batch"))
    for option, name in spec.causes.items():
        wanted_column(name, option, given, mistakes)
    types = {} if stored is None else {name: kind for name, kind in types_of(stored).items() if name not in computed}
    columns = attribute_columns(spec, given, types, mistakes)
    attributes = tuple(
        Column(
            name,
            column,
            types[find(name, types) or name] if column is None else given[column],
            attribute.scd_type,
            attribute.changed_at,
            is_kept=column is None and spec.missing_columns == "keep" and not spec.ignores_nulls(name),
        )
        for name, column in columns.items()
        if (attribute := spec.attribute(name)) is not None
    )
    check_rules_of_columns(spec, attributes, given, mistakes)
    lost = [attribute.name for attribute in attributes if attribute.column is None]
    if lost:
        kept = "their stored values stay" if spec.missing_columns == "keep" else "they become NULL"
        log.warning("the batch lacks %s, which the table has: %s (missing_columns)", ", ".join(lost), kept)
    assert isinstance(spec.attributes, Mapping)
    named = [(name, item.scd_type, item.changed_at) for name, item in spec.attributes.items() if item and name != "*"]
    taken = [*named, *((item.name, item.scd_type, item.changed_at) for item in attributes)]
    mistakes += unknown_names(spec.column_names, taken, spec.generated)
    for column_ in (*keys, *attributes):
        if has_no_equality(column_.type):
            mistakes.append(
                Mistake(
                    column_.name,
                    "a type with equality",
                    column_.type,
                    "convert it to text, an array or a struct without maps; a geometry with st_asbinary",
                )
            )
        if stored is None and has_no_type(column_.type):
            mistakes.append(no_type(column_))
    if mistakes:
        raise BatchError(counted("the batch", mistakes), mistakes)
    key = spec.surrogate_key or {}
    names = generated_names(spec, attributes)
    strategy = key.get("strategy", "hash")
    layout = Layout(keys, attributes, names, moment_type, key.get("name"), strategy, has_null_keys=spec.has_null_keys)
    check_names(layout, spec)
    if stored is not None:
        padded = of_fixed_length(stored)
        if padded:
            raise TargetError(counted("the stored dimension", padded), padded)
        return stored_layout(spec, layout, types_of(stored), can_widen=can_widen, computed=computed)
    missing = missing_moments(layout)
    if missing:
        raise TargetError(counted("the dimension", missing), missing)
    return layout


def duplicate_columns(batch: t.StructType) -> list[Mistake]:
    lowered = [name.lower() for name in batch.names]
    return [
        Mistake(name, "each column of the batch once", "a name that occurs twice", "rename one")
        for position, name in enumerate(batch.names)
        if name.lower() in lowered[:position]
    ]


def wanted_column(
    name: str,
    where: str,
    given: Mapping[str, str],
    mistakes: list[Mistake],
    remedy: str = ADD,
) -> str | None:
    column = find(name, given)
    if column is None:
        mistakes.append(
            Mistake(
                f"{where}: {name}",
                f"a column of the batch, which has {', '.join(given)}",
                "no such column",
                did_you_mean(name, given) or remedy,
            )
        )
    return column


def attribute_columns(
    spec: DimensionSpec, given: Mapping[str, str], stored: Mapping[str, str], mistakes: list[Mistake]
) -> dict[str, str | None]:
    """Attribute to column of the batch; None if the batch lacks it, and ``missing_columns`` allows that.

    ``"*"`` means all columns but keys, moments, tie breakers, causes and those that ``deleted_when`` and
    ``truncated_when`` name.
    """
    assert isinstance(spec.attributes, Mapping)
    found: dict[str, str | None] = {}
    others = (*spec.keys, *spec.order_by, *spec.within, *spec.causes.values())
    others = (*others, spec.changed_at or "", spec.first_start_column or "")
    used = {name.lower() for name in others}
    named = {name.lower() for name in spec.attributes}
    for name in spec.attributes:
        if name != "*":
            is_stored = find(name, stored) is not None
            if find(name, given) is not None or not is_optional(spec, is_stored):
                remedy = "add it to the batch, or set missing_columns: keep, or null" if is_stored else None
                column = wanted_column(name, "attributes", given, mistakes, remedy or ADD)
                if column is not None:
                    found[name] = column
            elif is_stored:
                found[name] = None
            else:
                log.warning("the batch has no column %s, an attribute: it is added once a batch has it", name)
            continue
        for column in given:
            is_free = column.lower() not in used and column.lower() not in named
            if is_free and not is_named(column, spec.deleted_when) and not is_named(column, spec.truncated_when):
                found[column] = column
    if "*" in spec.attributes and spec.missing_columns != "error":
        found.update(dict.fromkeys(missing_attributes(spec, found, stored)))
    return found


def check_rules_of_columns(
    spec: DimensionSpec, attributes: Sequence[Column], given: Mapping[str, str], mistakes: list[Mistake]
) -> None:
    """The columns that rules of change data capture name, and the values that mean "not sent"."""
    types = {(attribute.column or attribute.name).lower(): attribute.type for attribute in attributes}
    nulls = () if isinstance(spec.ignore_nulls, bool) else spec.ignore_nulls
    for option, names in (("within", spec.within), ("ignore_nulls", nulls), ("unchanged_value", spec.unchanged_value)):
        for name in names:
            if name.lower() not in types:  # the table keeps only attributes
                wanted_column(name, option, given, mistakes)
            elif option == "unchanged_value":
                mark(spec.unchanged_value[name], types[name.lower()], f"{option}.{name}", mistakes)


def missing_attributes(spec: DimensionSpec, found: Iterable[str], stored: Mapping[str, str]) -> list[str]:
    """The attributes by ``"*"`` that the table has and the batch lacks. Args: found: the other attributes."""
    generated = [spec.column_names.get(name, name) for name in spec.generated]
    others = [*spec.keys, *generated, (spec.surrogate_key or {}).get("name")]
    taken = {name.lower() for name in others if name is not None}

    def take(attribute: str) -> None:
        added = (spec.added(role, attribute) for role in ("current", "previous", "changed_at"))
        taken.update(name.lower() for name in (attribute, *added))

    for name in found:
        take(name)
    missing = []
    for name in stored:
        if name.lower() not in taken:
            missing.append(name)
            take(name)
    return missing


def is_optional(spec: DimensionSpec, is_stored: bool) -> bool:
    """Whether a batch may lack an attribute: one that the table has, or one that arrives later."""
    return spec.missing_columns != "error" if is_stored else spec.on_schema_change in APPENDS


def is_named(column: str, expression: str | None) -> bool:
    """Whether a SQL expression names a column; text in quotes, functions and typed literals do not."""
    if expression is None:
        return False
    bare = re.sub(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""", "''", expression).lower()
    if quoted(column).lower() in bare:
        return True
    name = re.escape(column.lower())
    return re.search(rf"(?<![\w`]){name}(?![\w`])(?!\s*\()(?!\s*'')", bare) is not None


def generated_names(spec: DimensionSpec, attributes: Sequence[Column]) -> dict[str, str]:
    is_type_4 = any(attribute.scd_type == 4 for attribute in attributes)
    found: dict[str, str] = {}
    for name, by_default in spec.generated.items():
        if is_type_4:
            by_default = name == "last_updated"
        by_default = by_default or name in spec.causes
        wanted = spec.column_names.get(name, name if by_default else None)
        if wanted is not None:
            found[name] = wanted
    return found
