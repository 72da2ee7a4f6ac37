"""Rows of change data capture as a change log: a DataFrame in, a DataFrame out, for `merge` and for streams.

Each returns the columns of the row and ``_changed_at``, ``_sequence`` (for ``sequence_by``), ``_is_deleted`` and, of
tools that have it, ``_is_truncated``. The macros `read_...` are the same in SQL.
"""

from healing_tables.readers.debezium_messages import debezium
from healing_tables.readers.goldengate_messages import goldengate
from healing_tables.readers.tables import airbyte, delta_changes, dms, fivetran, iceberg_changes

__all__ = ["airbyte", "debezium", "delta_changes", "dms", "fivetran", "goldengate", "iceberg_changes"]
