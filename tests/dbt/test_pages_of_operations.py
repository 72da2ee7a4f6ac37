"""The pages of undo and of erase: their commands print what the pages show."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from known import versions_by_publish
from lab import Lab
from pages import blocks_of
from sessions import FORMAT, ROOT, with_settings

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("interpreted")]

SOURCE = "{'crm': {'relation': source('raw', 'crm_customers'), 'changed_at': 'changed_at'}}"
MODEL = "{{ healing_tables.dimension(" + SOURCE + ") }}"


@pytest.fixture(autouse=True)
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEALING_TABLES_SECRET", "a secret of these tests, long enough")


def begin(lab: Lab, key: str, rows: str) -> None:
    """A new source and the model of the page, built once."""
    for table in ("crm_customers", "dim_customer", "dim_customer_audit", "healing_log", "dim_customer__erased"):
        lab.spark.sql(f"drop table if exists {lab.schema}.{table}")
    lab.spark.sql(f"create table {lab.schema}.crm_customers ({key} int, name string, changed_at date) using {FORMAT}")
    lab.write(
        "models/sources.yml", f"sources: [{{name: raw, schema: {lab.schema}, tables: [{{name: crm_customers}}]}}]\n"
    )
    lab.model(
        "dim_customer",
        MODEL,
        materialized="healing_table",
        unique_key=key,
        meta={"healing_tables": {"audit": {}, "column_names": HIDDEN}},
    )
    build(lab, rows)


HIDDEN = dict.fromkeys(["version", "compressed_row_count", "key_hash", "row_hash"])


def build(lab: Lab, rows: str) -> None:
    lab.spark.sql(f"insert into {lab.schema}.crm_customers values {rows}")
    lab.build("dim_customer")


def commands(page: str) -> Iterator[tuple[str, dict[str, Any], list[str]]]:
    """The operations of a page: name, arguments, and the lines that it shows beneath."""
    text = (ROOT / "docs" / page).read_text()
    blocks, fences = blocks_of(text), text.splitlines()
    for block, after in zip(blocks, [*blocks[1:], None], strict=True):
        found = re.fullmatch(r"dbt run-operation healing_tables\.(\w+) --args '(.*)'", "\n".join(block.lines))
        if block.kind == "sh" and found:
            is_shown = after is not None and fences[after.line - 1] == "```text"
            shown = after.lines if after is not None and is_shown else []
            yield found[1], yaml.safe_load(found[2]), list(shown)


AUDITED = {"dim_customer": "dimension", "dim_customer_audit": "audit"}


def forget_the_log(lab: Lab) -> None:
    """Let Delta delete the entries of its log as if these tables had been erased three days ago."""
    day = "interval 1 day"
    properties = {"deletedFileRetentionDuration": day, "logRetentionDuration": day, "checkpointInterval": "1"}
    for table in AUDITED:
        name = f"{lab.schema}.{table}"
        folder = lab.spark.sql(f"describe detail {name}").collect()[0]["location"].removeprefix("file:")
        for entry in Path(folder, "_delta_log").glob("*.json"):
            os.utime(entry, (time.time() - 3 * 24 * 3600,) * 2)
        listed = ", ".join(f"'delta.{property}' = '{value}'" for property, value in properties.items())
        lab.spark.sql(f"alter table {name} set tblproperties ({listed})")


def run(lab: Lab, operation: str, arguments: dict[str, Any]) -> list[str]:
    """What it prints, with the schemas of the page."""
    lab.dbt("run-operation", f"healing_tables.{operation}", "--args", json.dumps(arguments))
    assert lab.succeeded, lab.log
    lines = "\n".join(lab.log).replace(f"{lab.schema}.crm_customers", "raw.crm_customers")
    return lines.replace(lab.schema, "silver").splitlines()


def shown_in(lines: list[str], printed: list[str]) -> None:
    """The lines of a page are printed one after the other; the widths of columns may differ."""
    flat = [" ".join(line.replace("-", " ").split()) for line in printed]
    for line in lines:
        assert " ".join(line.replace("-", " ").split()) in flat, "\n".join(printed)


def test_undo(lab: Lab) -> None:
    begin(lab, "id", "(1, 'Ada', date '2024-01-01'), (7, 'Ada', date '2024-01-01')")
    then, _ = versions_by_publish(lab.spark, f"{lab.schema}.dim_customer", f"{lab.schema}.dim_customer_audit")[1]
    lab.spark.sql(f"delete from {lab.schema}.crm_customers where id = 7")
    build(lab, "(1, 'Bea', date '2024-03-31')")
    before = lab.rows("dim_customer")
    ran = []
    for operation, arguments, lines in commands("undo.md"):
        printed = run(lab, operation, {**arguments, "known_at": then})
        shown_in(lines, [line.replace(then, arguments["known_at"]) for line in printed])
        ran.append((arguments.get("run", False), lab.rows("dim_customer") == before, bool(lines)))
    assert ran == [(False, True, True), (True, False, False)]


def test_erase(lab: Lab) -> None:
    begin(lab, "customer_id", "(1002, 'Ada', date '2024-01-01'), (1, 'Bea', date '2024-01-01')")
    build(lab, "(1002, 'Cleo', date '2024-02-01')")
    build(lab, "(1002, 'Dora', date '2024-03-01')")
    ran = []
    for operation, arguments, lines in commands("erase.md"):
        if operation == "erased" and FORMAT == "delta":
            with with_settings(lab.spark, {"spark.databricks.delta.retentionDurationCheck.enabled": "false"}):
                for table in ("dim_customer", "dim_customer_audit"):
                    lab.spark.sql(f"vacuum {lab.schema}.{table} retain 0 hours")
        shown_in(lines, run(lab, operation, arguments))
        ran.append(operation)
        if operation == "erased":
            forget_the_log(lab)
            printed = run(lab, operation, arguments)
            shown_in([f"silver.{table} | {what} | 0 | 0 | 0" for table, what in AUDITED.items()], printed)
            lab.build("dim_customer")
            page = (ROOT / "docs" / "erase.md").read_text()
            [left_out] = re.findall(r"^healing_table silver\.dim_customer: (.* left out: .*)$", page, re.MULTILINE)
            assert any(left_out in line for line in lab.log), lab.log
    assert ran == ["erase", "erase", "erased", "readmit"]
