"""Errors of Spark without Java: one sentence, the causes that add something, and nothing of the stack."""

from __future__ import annotations

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt_healing_tables.stacks import short_errors, with_short_errors, without_stack

TIE = "[USER_RAISED_EXCEPTION] healing_tables: unresolved tie in source crm: key id = 1; remedy: ... SQLSTATE: P0001"
HIVE = "org.apache.hive.service.cli.HiveSQLException: Error running query: "
RAISED = f"{HIVE}[USER_RAISED_EXCEPTION] org.apache.spark.SparkRuntimeException: {TIE}"
FRAMES = """
\tat org.apache.spark.sql.hive.thriftserver.HiveThriftServerErrors$.runningQueryError(HiveThriftServerErrors.scala:43)
\tat org.apache.spark.sql.catalyst.expressions.GeneratedClass$SpecificUnsafeProjection.apply(Unknown Source)
\tat java.base/jdk.internal.reflect.NativeMethodAccessorImpl.invoke0(Native Method)
\tat java.base/java.lang.Thread.run(Thread.java:840)"""
PLAN = "column `a` cannot be resolved; line 1 pos 7;\n'Project ['a]\n+- OneRowRelation\n"
SQL = "== SQL (line 1, position 8) ==\nselect at (1)\n       ^^^^^^"
FAILED = "org.apache.spark.SparkException: Job aborted: java.lang.reflect.InvocationTargetException"
CASES = {
    "Thrift": (
        f"{RAISED}{FRAMES}\nCaused by: org.apache.spark.SparkRuntimeException: {TIE}{FRAMES}\n\t... 22 more\n",
        RAISED,
    ),
    "a plan in the message, twice": (
        f"{HIVE}{PLAN}{FRAMES}\nCaused by: org.apache.spark.sql.AnalysisException: {PLAN}{FRAMES}",
        f"{HIVE}{PLAN.rstrip()}",
    ),
    "a session, and causes": (
        (
            f"An error occurred while calling o52.collectToPython.\n: {FAILED}{FRAMES}\n\nDriver stacktrace:{FRAMES}\n"
            f"Caused by: java.lang.reflect.InvocationTargetException{FRAMES}\n"
            f'Caused by: java.lang.NumberFormatException: For input string: "x"{FRAMES}\n\t... 28 more\n'
        ),
        f'{FAILED}\nCaused by: java.lang.NumberFormatException: For input string: "x"',
    ),
    "Connect": (f"{TIE}\n\nJVM stacktrace:\norg.apache.spark.SparkRuntimeException: {TIE}{FRAMES}", TIE),
    "Connect, without places": (
        (
            f"{TIE}\n\nJVM stacktrace:\norg.apache.spark.SparkRuntimeException\n"
            "\tat org.apache.spark.sql.errors.QueryExecutionErrors.raiseError(QueryExecutionErrors.scala:-1)\n"
            "\tat org.apache.spark.sql.catalyst.expressions.GeneratedClass$Iterator.processNext(:-1)"
        ),
        TIE,
    ),
    "as dbt indents it": (f"Database Error\n  {RAISED}{FRAMES.replace(chr(9), '  ')}", f"Database Error\n  {RAISED}"),
    "no stack": (f"no such column at line 1\n{SQL}\n", f"no such column at line 1\n{SQL}\n"),
    "the user's SQL": (f"{HIVE}{SQL}{FRAMES}", f"{HIVE}{SQL}"),
}


@pytest.mark.parametrize("text, short", CASES.values(), ids=CASES)
def test_the_text(text: str, short: str) -> None:
    assert without_stack(text) == short


def test_an_error_of_dbt_stays_the_same_error() -> None:
    cause = ValueError("of Java")
    with pytest.raises(DbtRuntimeError) as raised, short_errors():
        try:
            raise cause
        except ValueError:
            raise DbtRuntimeError(RAISED + FRAMES)
    assert raised.value.msg == RAISED
    assert raised.value.__context__ is cause  # by which a conflict is recognized


def test_other_errors_become_errors_of_dbt_if_they_have_a_stack() -> None:
    class Stock:
        def add_query(self, text: str) -> None:
            raise OSError(text)

        def execute(self, text: str, fetch: bool = False) -> None:
            raise OSError(text)

    manager = with_short_errors(Stock)()
    for run in (manager.add_query, manager.execute):
        with pytest.raises(DbtRuntimeError) as raised:
            run(RAISED + FRAMES)
        assert raised.value.msg == RAISED and isinstance(raised.value.__context__, OSError)
        with pytest.raises(OSError, match="no stack"):
            run("no stack")
