"""The cases that the rules are judged by, each through the public macros."""

from __future__ import annotations

from typing import Any

import pytest
from cases import load
from rendered import Rendered
from tables import plain_rows


def dimension(case: dict[str, Any], sources: dict[str, str], attributes: str) -> str:
    """A call as SQL text; sources maps a name to the text of its options."""
    listed = ", ".join(f"'{name}': {{{options}}}" for name, options in sources.items())
    params = case["params"]
    return (
        f"{{{{ healing_tables.dimension(sources={{{listed}}}, key_columns={params['key']!r}, "
        f"attributes={attributes}, valid_to_current={params['end']!r}) }}}}"
    )


def relation(table: str) -> str:
    return f"'relation': api.Relation.create(schema='global_temp', identifier='{table}')"


def changes_model(tables: Rendered, case: dict[str, Any]) -> str:
    params, table = case["params"], f"in_{case['id'].lower()}"
    batches = case["input"].get("batches") or [case["input"]["changes"]]
    frame = tables.frame(batches[0]["columns"], batches[0]["rows"])
    for batch in batches[1:]:
        frame = frame.unionByName(tables.frame(batch["columns"], batch["rows"]), allowMissingColumns=True)
    frame.createOrReplaceGlobalTempView(table)
    options = f"{relation(table)}, 'changed_at': '{params['ts']}'"
    if "order" in params:
        options += f", 'tie_break_by': {params['order']!r}"
    if "deleted" in params:
        options += f", 'deleted_when': '{params['deleted']}'"
    return dimension(case, {"input": options}, repr(params["attrs"]))


def snapshots_model(tables: Rendered, case: dict[str, Any]) -> str:
    params, table = case["params"], f"in_{case['id'].lower()}"
    tables.view(table, case["input"]["snapshots"]["columns"], case["input"]["snapshots"]["rows"])
    options = f"{relation(table)}, 'snapshot_at': '{params['snap']}'"
    if "calendar" in case["input"]:
        calendar = case["input"]["calendar"]
        tables.view(f"{table}_calendar", calendar["columns"], calendar["rows"])
        options += ", " + relation(f"{table}_calendar").replace("relation", "calendar", 1)
    assert params["deletes"] == "close"
    return dimension(case, {"input": options}, repr(params["attrs"]))


def unify_model(tables: Rendered, case: dict[str, Any]) -> str:
    sources = {}
    for name, source in case["input"]["sources"].items():
        table = f"in_{case['id'].lower()}_{name}"
        assert source["kind"] == "changes"
        tables.view(table, source["table"]["columns"], source["table"]["rows"])
        sources[name] = f"{relation(table)}, 'changed_at': '{source['ts']}'"
        if "deleted" in source:
            sources[name] += f", 'deleted_when': '{source['deleted']}'"
    attributes = {
        name: {"from": [".".join(entry) for entry in rule["from"]], "rule": rule["how"]}
        for name, rule in case["params"]["rules"].items()
    }
    return dimension(case, sources, repr(attributes))


def compress_model(tables: Rendered, case: dict[str, Any]) -> str:
    table = f"in_{case['id'].lower()}"
    tables.view(table, case["input"]["dim"]["columns"], case["input"]["dim"]["rows"])
    return (
        "{{ healing_tables.compress(api.Relation.create(schema='global_temp', "
        f"identifier='{table}'), {case['params']['key']!r}, {case['params']['attrs']!r}) }}}}"
    )


def cutover_model(tables: Rendered, case: dict[str, Any]) -> str:
    """Sources of any kind, with their options as a call has them."""
    sources = {}
    for name, source in case["input"]["sources"].items():
        table = f"in_{case['id'].lower()}_{name}"
        tables.view(table, source["table"]["columns"], source["table"]["rows"])
        sources[name] = f"{relation(table)}, {repr(source['options'])[1:-1]}"
        if "calendar" in source:
            tables.view(f"{table}_calendar", **source["calendar"])
            calendar = relation(f"{table}_calendar").replace("relation", "calendar", 1)
            sources[name] += f", {calendar}"
    return dimension(case, sources, repr(case["params"]["attrs"]))


MODELS = {
    "changes": changes_model,
    "snapshots": snapshots_model,
    "unify": unify_model,
    "compress": compress_model,
    "cutover": cutover_model,
}
ROW_CASES = [(name, case) for name in MODELS for case in load(name)]


HASH_CASES = load("hash")


def hash_model(tables: Rendered, case: dict[str, Any]) -> str:
    """Two rows: left and right. The second of two column lists is asked for on the right."""
    sides = []
    for side, position in (("left", 0), ("right", -1)):
        table = f"in_{case['id'].lower()}_{side}"
        columns = case["input"][side]["columns"]
        tables.view(table, columns, case["input"][side]["rows"])
        names = case["params"].get("column_lists", [[name for name, _ in columns]])[position]
        call = f"healing_tables.{case['params']['what']}({names!r}, {dict(columns)!r})"
        sides.append(f"select '{side}' as side, {{{{ {call} }}}} as hash from global_temp.{table}")
    return "\nunion all\n".join(sides)


@pytest.fixture(scope="module")
def built(rendered: Rendered) -> Rendered:
    for name, case in ROW_CASES:
        rendered.model(f"case_{case['id'].lower()}", MODELS[name](rendered, case))
    for case in HASH_CASES:
        rendered.model(f"case_{case['id'].lower()}", hash_model(rendered, case))
    return rendered


@pytest.mark.parametrize(
    ("name", "case"), ROW_CASES, ids=lambda value: value if isinstance(value, str) else value["id"]
)
def test_rows(built: Rendered, name: str, case: dict[str, Any]) -> None:
    model = f"case_{case['id'].lower()}"
    expected = case["expect"]["rows"]
    columns = [column for column, _ in expected["columns"]]
    assert plain_rows(built.made(model), columns) == plain_rows(built.frame(expected["columns"], expected["rows"]))


@pytest.mark.parametrize("case", HASH_CASES, ids=lambda case: case["id"])
def test_hash(built: Rendered, case: dict[str, Any]) -> None:
    (_, left), (_, right) = plain_rows(built.made(f"case_{case['id'].lower()}"), ["side", "hash"])
    assert (left == right) is case["expect"]["equal"]
