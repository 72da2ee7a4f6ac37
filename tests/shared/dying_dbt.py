"""dbt that dies at a statement. It has no clean-up that a killed process would lack."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from dbt.adapters.spark import session as dbt_session

# A statement that may write, behind dbt's comment
WRITES = r"(?is)^\s*(/\*.*?\*/\s*)?(create|insert|delete|update|merge|alter|drop|reorg)\b"


class Died(SystemError):
    """The process died here."""


@contextmanager
def dies_before(pattern: str, nth: int = 1) -> Iterator[None]:
    """It dies before the nth statement that contains this."""
    run, hits = dbt_session.Cursor.execute, list[str]()

    def execute(cursor: Any, sql: str, *parameters: Any) -> None:
        hits.extend([sql] if re.search(pattern, sql) else [])
        if len(hits) >= nth:
            raise Died
        run(cursor, sql, *parameters)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dbt_session.Cursor, "execute", execute)
        yield


@contextmanager
def dies_after(pattern: str) -> Iterator[None]:
    """It dies once a statement that contains this has been run."""
    run = dbt_session.Cursor.execute

    def execute(cursor: Any, sql: str, *parameters: Any) -> None:
        run(cursor, sql, *parameters)
        if re.search(pattern, sql, re.IGNORECASE):
            raise Died

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dbt_session.Cursor, "execute", execute)
        yield
