"""Merge batches into slowly changing dimensions: types 0, 1, 2, 3, 4 and 6, in one commit. Join facts to them."""

from healing_tables.as_of.as_of import as_of
from healing_tables.as_of.known_versions import known_versions
from healing_tables.definition.attributes import Attribute
from healing_tables.errors import (
    ArgumentError,
    BatchError,
    ConflictError,
    GuardError,
    HealingTablesError,
    LateChangeError,
    Mistake,
    SpecError,
    TargetError,
)
from healing_tables.merge.erase import Erasure, erase, erased, readmit
from healing_tables.merge.merge import MergeResult, merge
from healing_tables.plan.plan import plan
from healing_tables.spec import DimensionSpec
from healing_tables.targets.convert import convert_table
from healing_tables.targets.delta import DeltaTarget
from healing_tables.targets.files import FilesTarget
from healing_tables.targets.hive import HiveTarget
from healing_tables.targets.iceberg import IcebergTarget
from healing_tables.targets.postgres import PostgresTarget

__all__ = [
    "ArgumentError",
    "Attribute",
    "BatchError",
    "ConflictError",
    "DeltaTarget",
    "DimensionSpec",
    "Erasure",
    "FilesTarget",
    "GuardError",
    "HealingTablesError",
    "HiveTarget",
    "IcebergTarget",
    "LateChangeError",
    "MergeResult",
    "Mistake",
    "PostgresTarget",
    "SpecError",
    "TargetError",
    "as_of",
    "convert_table",
    "erase",
    "erased",
    "known_versions",
    "merge",
    "plan",
    "readmit",
]
