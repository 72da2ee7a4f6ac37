"""Facts that get other keys, and a catalog of another kind; repair and capture run their own tests on Iceberg."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from dbt.adapters.spark import session as dbt_session
from lab import Lab
from tables import plain_rows

pytestmark = pytest.mark.usefixtures("interpreted")
CALL = (
    "{{ healing_tables.dimension(sources={'crm': {'relation': api.Relation.create(schema=target.schema, "
    "identifier='crm'), 'changed_at': 'at', 'loaded_at': 'loaded'}}, attributes=['name']%s) }}"
)
KEYS = {"surrogate_key": {"name": "sk", "strategy": "sequence"}}
REKEY = {"key_columns": "id", "at": "at", "columns": {"shop_sk": "sk"}, "unknown": -1}


def sources(lab: Lab) -> None:
    lab.spark.sql(
        f"create or replace table {lab.schema}.crm (id int, name string, at date, loaded timestamp) using iceberg"
    )
    add(lab, "1, 'a', date '2024-01-01'", "2, 'a', date '2024-01-01'", "1, 'b', date '2024-03-01'")


def add(lab: Lab, *rows: str) -> None:
    values = ", ".join(f"({row}, now())" for row in rows)
    lab.spark.sql(f"insert into {lab.schema}.crm values {values}")


def rekey(lab: Lab, **more: object) -> list[str]:
    arguments = {"facts": f"{lab.schema}.facts", "dimension": f"{lab.schema}.dim", **REKEY, **more}
    lab.dbt("run-operation", "healing_tables.rekey_facts", "--args", json.dumps(arguments))
    return [text for text in lab.log if text.startswith("healing_tables.rekey_facts") or "wanted:" in text]


def newest_version(told: list[str]) -> int:
    return int(next(line for line in told if "the next since_version" in line).split(" version ")[1].split(",")[0])


@pytest.mark.slow
def test_facts_get_the_key_of_another_version(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    sources(lab)
    # its merges tell which rows have changed: a changelog cannot read delete files
    properties = {"write.merge.mode": "copy-on-write"}
    lab.model(
        "dim",
        CALL % "",
        materialized="healing_table",
        unique_key="id",
        tblproperties=properties,
        meta={"healing_tables": {"mode": "heal", **KEYS}},
    )
    lab.dbt("run")
    lab.spark.sql(
        f"create table {lab.schema}.facts using iceberg as select f.id, f.at, d.sk as shop_sk from values "
        "(1, date '2024-01-15'), (1, date '2024-02-15'), (1, date '2024-03-15'), (2, date '2024-02-15') as f(id, at) "
        f"join {lab.schema}.dim d on f.id = d.id and f.at >= d.valid_from and f.at < d.valid_to"
    )
    since = newest_version(rekey(lab))
    assert len(lab.commits("facts")) == 1  # nothing to change, no commit
    add(lab, "1, 'late', date '2024-02-01'")
    lab.dbt("run")
    assert lab.succeeded, lab.results
    assert plain_rows(lab.spark.sql(f"select name, sk from {lab.schema}.dim where id = 1")) == [
        ("a", 1),
        ("b", 2),
        ("late", 4),
    ]
    told = rekey(lab, since_version=since)
    assert "1 fact changed in one commit" in told[0]
    assert [row[2] for row in lab.rows("facts", "id", "at", "shop_sk")] == [1, 4, 2, 3]
    assert len(lab.commits("facts")) == 2
    assert not any("checks all facts" in line for line in told)
    # a snapshot that the dimension has never had
    assert any("checks all facts" in line for line in rekey(lab, since_version=7))

    # another writer changes the facts meanwhile
    add(lab, "2, 'late', date '2024-02-01'")
    lab.dbt("run")
    execute = dbt_session.Cursor.execute
    others = [f"insert into {lab.schema}.facts values (2, date '2024-05-01', -1)"]

    def meanwhile(cursor: dbt_session.Cursor, sql: str, *parameters: object) -> None:
        if "merge into" in sql and others:
            lab.spark.sql(others.pop())
        execute(cursor, sql, *parameters)

    with monkeypatch.context() as patch:
        patch.setattr(dbt_session.Cursor, "execute", meanwhile)
        rekey(lab)
    assert not lab.succeeded and any("of another writer" in text for text in lab.log)
    assert len(lab.commits("facts")) == 3
    assert any("2 facts changed in one commit" in line for line in rekey(lab))


@pytest.fixture
def hadoop(lab: Lab, tmp_path: Path) -> Iterator[Lab]:
    """A session whose current catalog is a folder."""
    settings = {"": "org.apache.iceberg.spark.SparkCatalog", ".type": "hadoop", ".warehouse": str(tmp_path / "files")}
    for name, value in settings.items():
        lab.spark.conf.set(f"spark.sql.catalog.files{name}", value)
    lab.spark.sql("use files")
    lab.spark.sql(f"create schema {lab.schema}")
    yield lab
    lab.spark.sql("use lake")


@pytest.mark.slow
def test_a_hadoop_catalog(hadoop: Lab) -> None:
    sources(hadoop)
    options = {**KEYS, "publish": "merge"}
    hadoop.model("dim", CALL % "", materialized="healing_table", unique_key="id", meta={"healing_tables": options})
    for row in ("1, 'c', date '2024-04-01'", "3, 'a', date '2024-04-01'"):
        hadoop.dbt("run")
        assert hadoop.succeeded, hadoop.results
        add(hadoop, row)
    hadoop.dbt("run")
    assert hadoop.succeeded, hadoop.results
    assert len(hadoop.rows("dim")) == 5
    assert plain_rows(hadoop.spark.sql(f"select publish, version_after is null from {hadoop.schema}.healing_log")) == [
        ("merge", False),
        ("merge", False),
        ("overwrite", False),
    ]
    hadoop.dbt("run-operation", "healing_tables.maintain", "--args", "{dimension: dim}")
    assert hadoop.succeeded


def test_file_formats_that_the_session_does_not_have(lab: Lab) -> None:
    sources(lab)
    for name in ("delta", "parquet"):
        lab.model(f"in_{name}", CALL % "", materialized="healing_table", unique_key="id", file_format=name)
    results = lab.dbt("run", "--select", "in_delta", "in_parquet")
    assert "a session without spark.sql.catalog.spark_catalog" in results["in_delta"][1]
    assert "remedy: set file_format: iceberg" in results["in_parquet"][1]
