"""One Spark session and one JVM for the whole run; dbt runs in this process through dbtRunner.

The same JVM is the Spark Connect server of the tests that ask for one: no second start, one catalog.
"""

from __future__ import annotations

import datetime
import fcntl
import os
import tempfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
import s3_server
from lab import Lab
from postgres_server import Server, programs, running
from pyspark.sql import SparkSession
from rendered import Rendered
from sessions import connect_settings, functions_of, session_settings, without_codegen
from tables import Tables

os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
# the processes that tests start find these, too
os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent / "shared"), os.environ.get("PYTHONPATH", "")])


def tenth_of(nodeid: str) -> int:
    """0 to 9; the same for all tests of a file.

    They share what is built for the file, mostly a run of dbt: single tests of all files would need all of it.
    """
    return zlib.crc32(nodeid.partition("::")[0].encode()) % 10


def chosen_tenth(text: str) -> int:
    """Args: text: 0 to 9, or today: each of ten days has another one (UTC)."""
    return datetime.datetime.now(datetime.timezone.utc).toordinal() % 10 if text == "today" else int(text)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--tenth", type=chosen_tenth, choices=range(10), help="only a tenth of the files: 0 to 9, or today"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    tenth = config.getoption("--tenth")
    if tenth is not None:
        config.hook.pytest_deselected(items=[item for item in items if tenth_of(item.nodeid) != tenth])
        items[:] = [item for item in items if tenth_of(item.nodeid) == tenth]


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Iterator[SparkSession]:
    """The session that dbt finds with getOrCreate: Delta or Iceberg, an embedded catalog, nothing outside tmp."""
    home = tmp_path_factory.mktemp("spark")
    settings = session_settings(home, is_long=pytestconfig.option.markexpr != "not slow") | connect_settings()
    with (Path(tempfile.gettempdir()) / "healing_tables_jars.lock").open("w") as lock:
        # the first start downloads jars, and Ivy does not support two processes that do so at once
        fcntl.flock(lock, fcntl.LOCK_EX)
        session = SparkSession.builder.master("local[2]").config(map=settings).enableHiveSupport().getOrCreate()
    yield session
    session.stop()


@pytest.fixture(scope="session")
def connect_url(spark: SparkSession) -> str:
    """A Spark Connect server inside of the JVM of ``spark``, started when the first test asks for it."""
    jvm = cast(Any, spark)._jvm
    jvm.org.apache.spark.sql.connect.service.SparkConnectService.start(cast(Any, spark)._jsc.sc())
    return f"sc://127.0.0.1:{spark.conf.get('spark.connect.grpc.binding.port')}"


@pytest.fixture(scope="session")
def connect(connect_url: str) -> Iterator[SparkSession]:
    """A client's session; see ``either``."""
    from pyspark.sql.connect.session import SparkSession as Remote

    session = Remote.builder.remote(connect_url).create()
    yield cast(SparkSession, session)
    session.client.close()  # before the server goes


@pytest.fixture(scope="session")
def parsed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> None:
    """dbt parses the package once, for all labs."""
    empty = Lab(spark, tmp_path_factory.mktemp("empty"), schema="empty")
    empty.dbt("parse")
    Lab.parsed = empty.home / "target" / "partial_parse.msgpack"


@pytest.fixture(scope="module")
def lab(
    spark: SparkSession,
    parsed: None,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Lab:
    """A dbt project of its own, with a schema of its own, that has the package installed."""
    name = request.module.__name__.split(".")[-1]
    lab = Lab(spark, tmp_path_factory.mktemp(name), schema=f"lab_{name}")
    lab.writes_artifacts = False  # a tenth of the time of a run
    return lab


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A server of its own, if its programs are there."""
    found = programs()
    if found is None:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    with running(found) as server:
        yield server


@pytest.fixture(scope="session")
def s3() -> Iterator[s3_server.S3Server]:
    """An S3 server with a bucket."""
    with s3_server.running() as server:
        yield server


@pytest.fixture(scope="module")
def tables(spark: SparkSession, request: pytest.FixtureRequest) -> Tables:
    """Tables in a schema of their own."""
    return Tables(spark, schema=f"tables_{request.module.__name__}")


@pytest.fixture(scope="module")
def rendered(spark: SparkSession, request: pytest.FixtureRequest) -> Rendered:
    """Models without dbt, in a schema of their own."""
    return Rendered(spark, schema=f"rendered_{request.module.__name__}")


@pytest.fixture(params=["classic", pytest.param("connect", marks=pytest.mark.slow)])
def either(request: pytest.FixtureRequest) -> Iterator[Tables]:
    """The test runs twice: on the classic session, and on a client of the Spark Connect server."""
    is_connect = request.param == "connect"
    spark: SparkSession = request.getfixturevalue("connect" if is_connect else "spark")
    with functions_of(is_connect), without_codegen(spark):
        yield Tables(spark, schema=f"{request.param}_{request.module.__name__}")


@pytest.fixture(scope="module")
def interpreted(spark: SparkSession) -> Iterator[None]:
    with without_codegen(spark):
        yield


@pytest.fixture
def between(monkeypatch: pytest.MonkeyPatch) -> Callable[[type, str, Callable[[], object]], None]:
    """Something that happens before a method is called for the first time."""

    def patch(kind: type, method: str, work: Callable[[], object]) -> None:
        then, works = getattr(kind, method), [work]

        def wait(*args: Any, **options: Any) -> Any:
            if works:
                works.pop()()
            return then(*args, **options)

        monkeypatch.setattr(kind, method, wait)

    return patch
