"""A metastore that does not answer is named as that, and not taken for a table in another format."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import AnalysisException

from healing_tables import DeltaTarget
from healing_tables.errors import TargetError


class Java:
    """An exception of Java, as py4j shows it."""

    def __init__(self, name: str, message: str, cause: Java | None = None) -> None:
        self.name, self.message, self.cause = name, message, cause

    def getClass(self) -> Any:
        return SimpleNamespace(getName=lambda: self.name)

    def getMessage(self) -> str:
        return self.message

    def getCause(self) -> Java | None:
        return self.cause


def session(origin: Java | None, text: str = "HiveException: Unable to instantiate") -> Any:
    error = AnalysisException(text)
    setattr(error, "_origin", origin)  # noqa: B010

    def sql(statement: str) -> Any:
        raise error

    return SimpleNamespace(sql=sql)


def test_a_metastore_that_does_not_answer() -> None:
    derby = Java("java.sql.SQLException", "Another instance of Derby may have already booted the database\nmore")
    hive = Java("org.apache.hadoop.hive.ql.metadata.HiveException", "Unable to instantiate", derby)
    with pytest.raises(TargetError) as raised:
        DeltaTarget("dim").detail(session(Java("org.apache.spark.sql.AnalysisException", "HiveException", hive)))
    (mistake,) = raised.value.mistakes
    assert mistake.where == "dim"
    assert mistake.wanted == "a catalog that answers"
    assert mistake.got == "Another instance of Derby may have already booted the database"
    assert "one process at a time" in mistake.remedy


def test_a_metastore_that_does_not_answer_behind_connect() -> None:
    """There, an error has no causes: the class is the beginning of its message."""
    text = "(org.apache.hadoop.hive.ql.metadata.HiveException) Unable to instantiate SessionHiveMetaStoreClient"
    with pytest.raises(TargetError) as raised:
        DeltaTarget("dim").detail(session(None, text))
    (mistake,) = raised.value.mistakes
    assert (mistake.wanted, mistake.got) == ("a catalog that answers", text)


def test_a_table_in_another_format() -> None:
    with pytest.raises(TargetError, match="a Delta table, or none yet"):
        DeltaTarget("dim").detail(session(Java("org.apache.spark.sql.AnalysisException", "EXPECT_TABLE_NOT_VIEW")))
