"""The public `DimensionSpec`: the one of `definition/spec.py`, with the sink of a stream, which merges."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from healing_tables.definition import spec
from healing_tables.merge.sink import Sink


@dataclass(frozen=True)
class DimensionSpec(spec.DimensionSpec):
    __doc__ = spec.DimensionSpec.__doc__

    def sink(self, target: Any, name: str | None = None) -> Callable[[Any, int], None]:
        """Return a function for ``stream.writeStream.foreachBatch(...)`` that merges each micro-batch once.

        A batch whose number was merged before is skipped, also after a restart. The commit contains the number.

        Args:
            target: as for `merge`.
            name: of the stream: the same after a restart, another one for another checkpoint. Default: the id of the
                query, which is stored in its checkpoint; required on Spark Connect.
        """
        return Sink(self, target, name)
