"""Columns and keys whose names and values try to be SQL, in every statement of the materializations and operations.

Each statement must have the same kinds of tokens as for plain names and values; see test_hostile_names.py.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from lab import Lab
from spark_tokens import tokens

from healing_tables.sql.identifiers import quoted

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("interpreted")]
# With a blank, so that Delta maps these columns, too; and in the same order
PLAIN = {"at": "a at", "name": "b name", "tier": "c tier", "key": "k key", "surrogate": "n fact", "value": "Ann"}
HOSTILE = {
    "key": "k`'\"\\ ; -- /* */ {{ 1 }} {% if %} {# #} $$ %s %(a)s",
    "name": "*/ drop table crm /*",
    "tier": "`; drop table crm; --",
    "at": "' as at from crm --",
    "value": "' or 1 = 1 -- /* `\\' \\",
    "surrogate": "null;end;--\n/*",
}
BUILT = """{{ healing_tables.dimension(
    sources={'crm': {'relation': api.Relation.create(schema=target.schema, identifier='crm_%(kind)s'),
        'changed_at': %(at)r}},
    attributes={%(name)r: 2, %(tier)r: 1}, surrogate_key={'name': %(surrogate)r, 'strategy': 'sequence'}) }}"""


class Twin:
    """The same tables and models, of plain or of hostile names; the statements of each command."""

    def __init__(self, lab: Lab, kind: str, words: dict[str, str]) -> None:
        self.lab, self.kind, self.words = lab, kind, words
        self.statements: dict[str, list[str]] = {}

    def load(self, number: int) -> None:
        """A row of each of two keys."""
        columns = [quoted(self.words[name]) for name in ("key", "name", "tier", "at")]
        value = f"decode(unhex('{self.words['value'].encode().hex()}'), 'UTF-8')"
        rows = " union all ".join(
            f"select {value} || '{key}', {value} || '{number}', {value}, timestamp '2024-01-0{number} 00:00:00Z'"
            for key in (1, 2)
        )
        types = ("string", "string", "string", "timestamp")
        listed = ", ".join(f"{column} {kind}" for column, kind in zip(columns, types, strict=True))
        table = f"{self.lab.schema}.crm_{self.kind}"
        mapped = "tblproperties ('delta.columnMapping.mode' = 'name')"
        self.lab.spark.sql(f"create table if not exists {table} ({listed}) using delta {mapped}")
        self.lab.spark.sql(f"insert into {table} {rows}")

    def write_models(self) -> None:
        words = {"kind": self.kind, **self.words}
        for name, kind in (("dim", "delta"), ("files", "parquet")):
            self.lab.model(
                f"{name}_{self.kind}",
                BUILT % words,
                materialized="healing_table",
                unique_key=self.words["key"],
                file_format=kind,
                meta={"healing_tables": {"mode": "heal", "audit": {}} if kind == "delta" else {}},
            )
        attributes = {self.words["name"]: 2, self.words["tier"]: 1}
        self.lab.model(
            f"merged_{self.kind}",
            f"select * from {self.lab.schema}.crm_{self.kind}",
            materialized="healing_merge",
            unique_key=self.words["key"],
            meta={
                "healing_tables": {
                    "attributes": attributes,
                    "changed_at": self.words["at"],
                    "change_log": f"merged_{self.kind}_changes",
                    "audit": {"actor": self.words["value"]},
                }
            },
        )
        self.lab.model(
            f"captured_{self.kind}",
            f"select * except ({quoted(self.words['at'])}) from {self.lab.schema}.crm_{self.kind} "
            f"where {quoted(self.words['at'])} = (select max({quoted(self.words['at'])}) from "
            f"{self.lab.schema}.crm_{self.kind})",
            materialized="capture",
            unique_key=self.words["key"],
        )

    def dbt(self, command: str, *args: str) -> None:
        self.lab.dbt(*args)
        assert self.lab.succeeded, (self.kind, command, "\n".join(self.lab.log)[-3000:])
        # what is set once in a session is not set again by the second twin
        self.statements[command] = [sql for _, sql in self.lab.statements if not re.search(r"\bset `spark", sql)]

    def run_all(self) -> None:
        names = [f"{name}_{self.kind}" for name in ("dim", "files", "merged", "captured")]
        for number in (1, 2):
            self.load(number)
            self.dbt(f"run {number}", "run", "--select", *names, "--threads", "1")
        for name, arguments in self.operations().items():
            self.dbt(name, "run-operation", f"healing_tables.{name}", "--args", json.dumps(arguments))
        self.load(3)
        self.dbt("run 3", "run", "--select", *names, "--threads", "1")

    def operations(self) -> dict[str, dict[str, Any]]:
        dimension, key = {"dimension": f"dim_{self.kind}"}, {self.words["key"]: self.words["value"] + "1"}
        return {
            "explain": dimension | {"key": key},
            "history": dimension,
            "diagnose": dimension,
            "repair": dimension,
            "compare": dimension | {"against": f"files_{self.kind}"},
            "maintain": dimension,
            "drop_candidates": dimension,
            "generate_yml": dimension,
            "generate_model": {"sources": [f"crm_{self.kind}"], "key": self.words["key"]},
            "adopt": {"relation": f"files_{self.kind}", "key": self.words["key"]},
            "erase": dimension | {"keys": [key], "run": True},
            "erased": dimension,
        }


def test_each_statement_has_the_same_tokens(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEALING_TABLES_SECRET", "of tests, as long as it has to be")
    twins = [Twin(lab, "plain", PLAIN), Twin(lab, "hostile", HOSTILE)]
    lab.model(
        "first", "select 1 as id, current_timestamp() as valid_from", materialized="healing_table", unique_key="id"
    )
    lab.dbt("run", "--select", "first")  # makes the log
    for twin in twins:
        twin.write_models()
    for twin in twins:
        twin.run_all()
    plain, hostile = (twin.statements for twin in twins)
    for command, statements in plain.items():
        found = [tokens(lab.spark, sql) for sql in hostile[command]]
        wanted = [tokens(lab.spark, sql) for sql in statements]
        different = [sql for sql, a, b in zip(hostile[command], wanted, found, strict=False) if a != b]
        assert not different and len(found) == len(wanted), (command, different[:1])
    assert sum(map(len, hostile.values())) > 100
