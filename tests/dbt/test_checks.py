"""The checks: the cases, planted faults with exact counts, and temporal_integrity against the single tests."""

from __future__ import annotations

import datetime as dt
import json
import random
from collections import Counter
from collections.abc import Iterator
from itertools import combinations, pairwise
from typing import Any

import pytest
from cases import load
from lab import Lab
from tables import plain_rows

CASES = load("checks")
TESTS = {
    "check_single_current": "single_current",
    "check_overlaps": "no_overlaps",
    "check_gaps": "no_gaps",
    "check_ordering": "valid_order",
    "check_consecutive_duplicates": "no_consecutive_duplicates",
}


def block_of(name: str, test: str, arguments: dict[str, Any]) -> dict[str, Any]:
    block = {
        "name": name,
        "arguments": arguments,
        "config": {"store_failures": True, "alias": f"{name}_rows"},
    }
    return {f"healing_tables.{test}": block}


OWN = ["single_current", "valid_order"]


@pytest.fixture(scope="module")
def tested(lab: Lab) -> Lab:
    models: list[dict[str, Any]] = []
    for case in CASES:
        name = f"dim_{case['id'].lower()}"
        lab.table(f"in_{name}", case["input"]["dim"]["columns"], case["input"]["dim"]["rows"])
        lab.model(name, f"select * from {lab.schema}.in_{name}")
        arguments: dict[str, Any] = {"key_columns": case["params"]["key"]}
        if case["capability"] == "check_consecutive_duplicates":
            arguments["tracked_columns"] = case["params"]["attrs"]
        test = block_of(f"t_{name}", TESTS[case["capability"]], arguments)
        models.append({"name": name, "data_tests": [test]})
    lab.model(
        "dim_own",
        "select 1 as id, date '2024-01-01' as valid_from, cast(null as date) as valid_to, 'Y' as is_current",
        meta={"healing_tables": {"current_values": ["Y", "N"], "valid_to_current": None}},
    )
    own = [block_of(f"own_{name}", name, {"key_columns": "id"}) for name in OWN]
    models.append({"name": "dim_own", "data_tests": own})
    lab.write("models/schema.yml", json.dumps({"version": 2, "models": models}))
    lab.dbt("build")
    return lab


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_case(tested: Lab, case: dict[str, Any]) -> None:
    name = f"t_dim_{case['id'].lower()}"
    expected = case["expect"]["violations"]
    status, message = tested.results[name]
    assert status == ("fail" if expected["rows"] else "pass"), message
    columns = [column for column, _ in expected["columns"]]
    found = plain_rows(tested.spark.table(f"{tested.schema}_dbt_test__audit.{name}_rows"), columns)
    assert found == plain_rows(tested.frame(expected["columns"], expected["rows"]))


@pytest.mark.parametrize("name", OWN)
def test_what_the_model_says_of_its_columns(tested: Lab, name: str) -> None:
    assert tested.results[f"own_{name}"][0] == "pass", tested.results[f"own_{name}"]


# Planted faults: 400 keys of two columns, their rows cut, doubled, moved and flagged at random.
Row = tuple[int, str, str, dt.datetime | None, dt.datetime | None, str]
COLUMNS = ["shop", "code", "tier", "effective_from", "effective_to", "scd_active"]
START, END = dt.datetime(2024, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59)
NAMES = {
    "key_columns": ["shop", "code"],
    "valid_from": "effective_from",
    "valid_to": "effective_to",
}
FLAG = {"is_current": "scd_active", "current_value": "Y"}
# each check takes the names of all generated columns, also of those that it does not read
EACH = NAMES | {"is_current": "scd_active"}
SINGLE: dict[str, dict[str, Any]] = {
    "single_current": EACH | FLAG,
    "no_overlaps": EACH,
    "no_gaps": EACH,
    "valid_order": EACH,
    "no_consecutive_duplicates": EACH | {"tracked_columns": ["tier"]},
}


def faulty(seed: int) -> list[Row]:
    choose = random.Random(seed)
    rows: list[Row] = []
    for key in range(400):
        cuts = sorted(choose.sample(range(60), choose.randint(1, 5)))
        spans = [[START + dt.timedelta(days=day) for day in pair] for pair in pairwise(cuts)]
        spans.append([START + dt.timedelta(days=cuts[-1]), END])
        found: dict[tuple[Any, Any], Row] = {}
        for first, last in spans:
            since: dt.datetime | None = first
            until: dt.datetime | None = last
            flag, fault = ("Y" if last == END else "N"), choose.random()
            if fault < 0.05:
                since = None
            elif fault < 0.10:
                until = None
            elif fault < 0.15:
                until = first
            elif fault < 0.20:
                until = first - dt.timedelta(days=1)
            elif fault < 0.25:
                until = first + dt.timedelta(days=choose.randint(1, 40))
            elif fault < 0.30:
                since = first + dt.timedelta(hours=3)
            elif fault < 0.35:
                flag = "N" if flag == "Y" else "Y"
            elif fault < 0.40:
                continue
            row = (key % 7, f"c{key}", choose.choice("ab"), since, until, flag)
            found.setdefault((since, until), row)
        doubled = [row for row in found.values() if choose.random() < 0.03]
        rows += [*found.values(), *doubled]
    choose.shuffle(rows)
    return rows


def violations(rows: list[Row]) -> Iterator[str]:
    """The table of checks in the rules, row by row and pair by pair."""
    keys: dict[tuple[int, str], list[Row]] = {}
    for row in rows:
        keys.setdefault(row[:2], []).append(row)
    for mine in keys.values():
        mine.sort(key=lambda row: (row[3] or dt.datetime.min, row[4] or dt.datetime.min))
        if sum(row[5] == "Y" for row in mine) != 1:
            yield "single_current"
        proper = [
            (row[3], row[4] or dt.datetime.max)
            for row in mine
            if row[3] is not None and (row[4] is None or row[3] < row[4])
        ]
        for a, b in combinations(proper, 2):
            if max(a[0], b[0]) < min(a[1], b[1]):
                yield "no_overlaps"
        for n in range(1, len(proper)):
            if max(until for _, until in proper[:n]) < proper[n][0]:
                yield "no_gaps"
        for row in mine:
            if row[3] is None or row[4] is None or not row[3] < row[4]:
                yield "valid_order"
        for before, row in pairwise(mine):
            if row[3] is not None and before[4] == row[3] and before[2] == row[2]:
                yield "no_consecutive_duplicates"


def test_planted_faults(lab: Lab) -> None:
    rows = faulty(seed=7)
    expected = Counter(violations(rows))
    assert set(expected) == set(SINGLE)
    assert min(expected.values()) >= 10, expected
    lab.spark.createDataFrame(
        rows,
        "shop int, code string, tier string, effective_from timestamp, effective_to timestamp, scd_active string",
    ).write.saveAsTable(f"{lab.schema}.in_faulty", format="parquet")
    lab.model("dim_faulty", f"select * from {lab.schema}.in_faulty")
    tests: list[dict[str, Any]] = [block_of(f"faulty_{check}", check, arguments) for check, arguments in SINGLE.items()]
    tests.append(block_of("faulty_all", "temporal_integrity", NAMES | FLAG | {"tracked_columns": ["tier"]}))
    tests.append(
        block_of(
            "faulty_some",
            "temporal_integrity",
            NAMES
            | {"is_current": None, "tracked_columns": ["tier"], "at_most_one": True}
            | {"checks": {"no_gaps": False, "valid_order": False}},
        )
    )
    lab.write(
        "models/faulty.yml",
        json.dumps({"version": 2, "models": [{"name": "dim_faulty", "data_tests": tests}]}),
    )
    lab.dbt("build", "--select", "dim_faulty")

    def failing(name: str) -> list[Any]:
        return lab.spark.table(f"{lab.schema}_dbt_test__audit.{name}_rows").collect()

    for check, count in expected.items():
        assert len(failing(f"faulty_{check}")) == count, check
    assert Counter(row.failed_check for row in failing("faulty_all")) == expected
    # an end that is open is what makes a row current here, and none is allowed
    opened = Counter(row[:2] for row in rows if row[4] in (None, END))
    kept = {check: expected[check] for check in ("no_overlaps", "no_consecutive_duplicates")}
    kept["single_current"] = sum(count > 1 for count in opened.values())
    assert Counter(row.failed_check for row in failing("faulty_some")) == kept


GAPS = [(1, 5, True, "1.50"), (5, 2, False, "1.50"), (5, 5, True, "2.00")]
# name: (arguments, keys whose gap is not allowed)
ALLOWED: dict[str, tuple[dict[str, Any], list[tuple[int, int]]]] = {
    "by_one_column_of_the_key": ({"id": 5}, [(5, 2)]),
    "by_both": ({"shop": 5, "id": 5}, [(1, 5), (5, 2)]),
    "by_a_boolean": ({"open": True}, [(5, 2)]),
    "by_a_number": ({"size": 1.5}, [(5, 5)]),
}


def test_allowed_gaps_of_a_part_of_the_key(lab: Lab) -> None:
    periods = [("2024-01-01", "2024-01-02"), ("2024-01-05", "2024-01-06")]
    values = ", ".join(
        f"({shop}, {key}, {is_open}, cast({size} as decimal(6,2)), date '{since}', date '{until}')"
        for shop, key, is_open, size in GAPS
        for since, until in periods
    )
    lab.model(
        "dim_gaps",
        f"select * from values {values} as t (shop, id, open, size, valid_from, valid_to)",
    )
    keys = ["shop", "id", "open", "size"]
    gap = {"gap_start": "2024-01-02", "gap_end": "2024-01-05"}
    wrong = {
        "misspelt": [gap | {"idd": 5}],
        "no_map": ["2024-01-02"],
        "no_end": [{"gap_start": "2024-01-02"}],
        "no_moment": [{"gap_start": "soon", "gap_end": "2024-01-05"}],
    }
    tests = [
        block_of(name, "no_gaps", {"key_columns": keys, "allowed_gaps": [gap | given]})
        for name, (given, _) in ALLOWED.items()
    ] + [block_of(name, "no_gaps", {"key_columns": keys, "allowed_gaps": gaps}) for name, gaps in wrong.items()]
    # neither row_hash nor is_current is there, and no check that is on reads them
    off = {"no_consecutive_duplicates": False, "single_current": False}
    tests.append(
        block_of(
            "bare",
            "temporal_integrity",
            {"key_columns": keys, "checks": off, "valid_to_current": "2024-01-06"},
        )
    )
    lab.write(
        "models/gaps.yml",
        json.dumps({"version": 2, "models": [{"name": "dim_gaps", "data_tests": tests}]}),
    )
    lab.dbt("build", "--select", "dim_gaps")  # parses, whatever is wrong with a test
    for name, (_, failing) in ALLOWED.items():
        rows = lab.spark.table(f"{lab.schema}_dbt_test__audit.{name}_rows").collect()
        assert sorted((row["shop"], row["id"]) for row in rows) == failing, name
    rows = lab.spark.table(f"{lab.schema}_dbt_test__audit.bare_rows").collect()
    assert Counter(row["failed_check"] for row in rows) == {"no_gaps": len(GAPS)}
    for name in wrong:
        status, message = next(found for node, found in lab.results.items() if name in node)
        assert status == "error" and "allowed_gaps" in message, (name, status, message)
