"""The cases of merges, and the examples in python_models, as SQL models of healing_merge in one project.

Each batch is a run of dbt, with the variable ``batch``; batch 0 makes the tables that cases begin with. What is stored
then is compared in SQL, so any server can be asked. It needs neither Spark nor the library.
"""

from __future__ import annotations

import json
import re
import runpy
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from example_batches import BATCHES, EXPECTED, FACTS, MODELS

CASES = Path(__file__).parent / "cases" / "merge.json"


@dataclass(frozen=True)
class MergeModel:
    """Attributes: sql: of the model, for each batch; stored: name to SQL of tables made by batch 0; expected: batch to
    what is stored then: name of the table, SQL of its rows with ``{table}``, and of the right ones.
    """

    name: str
    sql: list[str]
    stored: dict[str, str]
    expected: dict[int, list[tuple[str, str, str]]]


def types_of(case: dict[str, Any]) -> dict[str, int]:
    """The SCD type of each attribute of a case."""
    params, kind = case["params"], case["capability"].removeprefix("merge_")
    types: dict[str, int] = params.get("types") or dict.fromkeys(params["attrs"], int(kind.removeprefix("type")))
    return types | dict.fromkeys(params.get("type1_attrs", []), 1)


def rows_as_sql(columns: Sequence[Sequence[str]], rows: Sequence[Sequence[Any]]) -> str:
    """A select of these rows. Args: columns: names and types."""

    def value(given: Any, kind: str) -> str:
        text = str(given).lower() if isinstance(given, bool) else str(given)
        assert not {"'", "\\"} & set(text), text
        written = "null" if given is None else f"'{text}'"
        return f"cast({written} as {kind})"

    selects = [
        "select "
        + ", ".join(f"{value(cell, kind)} as `{name}`" for cell, (name, kind) in zip(row, columns, strict=True))
        for row in rows or [[None] * len(columns)]
    ]
    return "\nunion all ".join(selects) if rows else f"select * from ({selects[0]}) where false"


def case_model(case: dict[str, Any]) -> MergeModel:
    name, batches = f"case_{case['id'].lower()}", case["input"]["batches"]
    tables = {"dim": name, "current": name, "history": f"{name}_history"}
    models = []
    for batch in batches:
        options = {
            "attributes": types_of(case),
            "valid_to_current": case["params"].get("end", "9999-12-31 23:59:59"),
            "at": batch["at"],
            "full_batch": batch.get("full_snapshot", False),
        }
        config = {"materialized": "healing_merge", "file_format": "delta", "unique_key": case["params"]["key"]}
        config["meta"] = {"healing_tables": options}
        models.append(f"{{{{ config(**{config!r}) }}}}\n{rows_as_sql(**batch['rows'])}")
    stored = {tables[part]: rows_as_sql(**table) for part, table in case["input"].items() if part != "batches"}
    expected = []
    for part, table in case["expect"].items():
        columns = ", ".join(f"`{column}`" for column, _ in table["columns"])
        expected.append((tables[part], f"select {columns} from {{table}}", rows_as_sql(**table)))
    return MergeModel(name, models, stored, {len(batches): expected})


class Recorded:
    """`dbt` and the session of a Python model, which note what the model asks for."""

    def __init__(self) -> None:
        self.options: dict[str, Any] = {}
        self.columns = ""
        self.config = self.read = self

    def __call__(self, **options: Any) -> None:
        self.options |= options

    def meta_get(self, name: str) -> str:
        return name

    def csv(self, path: str, columns: str, **_: Any) -> None:
        self.columns = columns


def described(model: Path) -> dict[str, Any]:
    """`config.meta` of the model in the yml files beside it."""
    for path in model.parent.glob("*.yml"):
        for item in yaml.safe_load(path.read_text())["models"]:
            if item["name"] == model.stem:
                return dict(item["config"]["meta"])
    raise AssertionError(model)


def example_model(model: Path) -> MergeModel:
    """A Python model in SQL, with its options and those of its yml."""
    found = Recorded()
    runpy.run_path(str(model))["model"](found, found)
    options, meta = dict(found.options), described(model)
    options["meta"] = {
        "healing_tables": options.pop("meta", {}).get("healing_tables", {}) | meta.get("healing_tables", {})
    }
    folder = re.search(r"batches/(\w+)/", meta["batch"])
    assert folder
    sql = (
        f"{{{{ config(**{options!r}) }}}}\n"
        f"select row.* from (select from_csv(value, '{found.columns}', map('mode', 'FAILFAST')) as row "
        f"from text.`{BATCHES / folder[1]}/{{{{ var('batch', 1) }}}}.csv` "
        f"where value not like '{found.columns.split()[0]},%')"
    )
    expected = {}
    for (name, batch), tables in EXPECTED.items():
        if name == model.stem:
            expected[batch] = [
                (
                    name,
                    "select "
                    + ", ".join(f"coalesce(cast({cell} as string), 'NULL')" for cell in header)
                    + " from {table}",
                    rows_as_sql([[f"c{n}", "string"] for n, _ in enumerate(header)], rows),
                )
                for header, *rows in tables
            ]
    return MergeModel(model.stem, [sql] * 3, {}, expected)


@cache
def merge_models() -> list[MergeModel]:
    examples = [example_model(model) for model in MODELS if model.stem not in FACTS]
    return [*map(case_model, json.loads(CASES.read_text())), *examples]


def write_models(models: Path, batch: int) -> None:
    """Write the models that have a batch, and no others."""
    for old in models.glob("*.sql"):
        old.unlink()
    models.mkdir(parents=True, exist_ok=True)
    texts: dict[str, str] = {}
    for model in merge_models():
        if batch == 0:
            table = "{{ config(materialized='table', file_format='delta') }}\n"
            texts |= {name: table + sql for name, sql in model.stored.items()}
        elif batch <= len(model.sql):
            texts[model.name] = model.sql[batch - 1]
    for name, sql in texts.items():
        (models / f"{name}.sql").write_text(f"{sql}\n")


def last_batch() -> int:
    return max(len(model.sql) for model in merge_models())


def differences(schema: str, batch: int) -> str | None:
    """SQL: of each table that is complete after this batch, its rows, and how many of them are missing or wrong."""
    parts = []
    for model in merge_models():
        for table, stored, expected in model.expected.get(batch, []):
            found = stored.format(table=f"{schema}.{table}")
            less = f"({found}) except all ({expected})"
            more = f"({expected}) except all ({found})"
            parts.append(
                f"select '{table} after batch {batch}' as place, (select count(*) from ({found})) as number, "
                f"(select count(*) from (({less}) union all ({more}))) as differing"
            )
    return "\nunion all ".join(parts) or None
