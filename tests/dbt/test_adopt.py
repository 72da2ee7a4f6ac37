"""adopt on tables that other programs wrote: the printed models build, and the reported differences are right."""

from __future__ import annotations

from typing import Any

import pytest
from damage import operation
from lab import Lab

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("interpreted")]
DAYS = [
    ["player_no", "int"],
    ["tier", "string"],
    ["home city", "string"],
    ["start_date", "date"],
    ["end_date", "date"],
    ["current_flag", "string"],
    ["player_sk", "bigint"],
    ["row_hash", "string"],
]
# ends are inclusive; 2 says the same twice; 3 is gone
PLAYERS: list[list[Any]] = [
    [1, "bronze", "Oslo", "2024-01-01", "2024-02-29", "N", 11, "a"],
    [1, "gold", "Oslo", "2024-03-01", "9999-12-31", "Y", 12, "b"],
    [2, "gold", "Rome", "2024-01-15", "2024-03-31", "N", 13, "c"],
    [2, "gold", "Rome", "2024-04-01", "9999-12-31", "Y", 14, "c"],
    [3, "silver", "Bonn", "2024-02-01", "2024-02-10", "N", 15, "d"],
]
MOMENTS = [
    ["shop", "int"],
    ["code", "string"],
    ["price", "int"],
    ["valid_from", "timestamp"],
    ["valid_to", "timestamp"],
]
# half-open, NULL is open; of (1, x) the first version ends too late
PRICES: list[list[Any]] = [
    [1, "x", 10, "2024-01-01 00:00:00", "2024-03-05 00:00:00"],
    [1, "x", 20, "2024-03-01 00:00:00", None],
    [1, "y", 10, "2024-01-01 00:00:00", "2024-02-01 12:00:00"],
    [1, "y", 11, "2024-02-01 12:00:00", "2024-02-02 12:00:00"],
    [1, "y", 12, "2024-02-02 12:00:00", None],
    [2, "x", 10, "2024-01-01 00:00:00", None],
]


FLAGGED = [["id", "int"], ["city", "string"], ["eff_from", "date"], ["eff_to", "date"], ["cur", "string"]]
# 3 is gone, and still has the flag of a current row
FLAGS: list[list[Any]] = [
    [1, "Oslo", "2024-01-01", "2024-02-01", "N"],
    [1, "Rome", "2024-02-01", "2999-12-31", "Y"],
    [2, "Bonn", "2024-01-01", "2999-12-31", "Y"],
    [3, "Lima", "2024-02-01", "2024-03-01", "Y"],
]


@pytest.fixture(scope="module")
def old(lab: Lab) -> Lab:
    lab.table("players", DAYS, PLAYERS)
    lab.table("prices", MOMENTS, PRICES)
    lab.table("doubled", MOMENTS, [*PRICES, PRICES[-1]])
    lab.table("flagged", FLAGGED, FLAGS)
    lab.table("snapped", [["id", "int"], ["dbt_valid_from", "timestamp"], ["dbt_valid_to", "timestamp"]], [])
    lab.table("bare", [["id", "int"], ["name", "string"]], [])
    return lab


def adopted(lab: Lab, table: str, **arguments: Any) -> list[str]:
    """What adopt prints; the model and its yml are in the project then, as new_<table>."""
    lines = operation(lab, "adopt", relation=f"{lab.schema}.{table}", **arguments)
    start, middle = lines.index(f"-- models/{table}.sql"), lines.index(f"# models/{table}.yml")
    end = lines.index("      - healing_tables.temporal_integrity") + 1
    (lab.home / "models").mkdir(exist_ok=True)
    (lab.home / "models" / f"new_{table}.sql").write_text("\n".join(lines[start:middle]))
    yml = "\n".join(lines[middle:end]).replace(f"name: {table}", f"name: new_{table}")
    (lab.home / "models" / f"new_{table}.yml").write_text(yml)
    return lines


def built(lab: Lab, table: str, *columns: str) -> list[list[str]]:
    results = lab.dbt("build", "--select", f"new_{table}")
    assert {status for status, _ in results.values()} <= {"success", "pass"}, results
    return [[str(cell) for cell in row] for row in lab.rows(f"new_{table}", *columns)]


def test_inclusive_days_and_a_flag(old: Lab) -> None:
    lines = adopted(old, "players")
    text = "\n".join(lines)
    assert "player_no is the key: no two rows have it and start_date in common" in text
    assert "end_date is inclusive: 2 rows end one day before the next one starts" in text
    assert "left out, as written by the old program: player_sk, row_hash" in text
    assert "players against this model: 5 rows stored, 4 rows rebuilt, 0 missing, 1 superfluous, 1 different" in text
    assert "different|2|2024-01-15|valid_to|2024-04-01|NULL" in text.replace(" ", "")
    shown = built(old, "players", "player_no", "tier", "home city", "start_date", "end_date", "current_flag")
    assert shown == [
        ["1", "bronze", "Oslo", "2024-01-01", "2024-03-01", "N"],
        ["1", "gold", "Oslo", "2024-03-01", "9999-12-31", "Y"],
        ["2", "gold", "Rome", "2024-01-15", "9999-12-31", "Y"],
        ["3", "silver", "Bonn", "2024-02-01", "2024-02-11", "N"],
    ]


def test_two_key_columns_an_overlap_and_no_end(old: Lab) -> None:
    lines = adopted(old, "prices", key=["shop", "CODE"])
    text = "\n".join(lines)
    assert "1 row with an end after the start of the next row of the key: ended there" in text
    assert "inclusive" not in text
    # as the table is, not as the model repairs it
    assert "6 rows stored, 6 rows rebuilt, 0 missing, 0 superfluous, 1 different" in text
    assert "different|1|x|2024-01-0100:00:00|valid_to|2024-03-0500:00:00|2024-03-0100:00:00" in text.replace(" ", "")
    assert "no column is a flag of the current row (is_current)" in text
    shown = built(old, "prices", "shop", "code", "price", "valid_to")
    assert shown == [
        ["1", "x", "10", "2024-03-01 00:00:00"],
        ["1", "x", "20", "None"],
        ["1", "y", "10", "2024-02-01 12:00:00"],
        ["1", "y", "11", "2024-02-02 12:00:00"],
        ["1", "y", "12", "None"],
        ["2", "x", "10", "None"],
    ]


def test_a_flag_that_its_values_show(old: Lab) -> None:
    lines = adopted(old, "flagged")
    text = "\n".join(line for line in lines if " is " in line or "different" in line)
    assert "eff_from is the start (valid_from)" in text
    assert "eff_to is the end (valid_to), open if it is 2999-12-31 (valid_to_current)" in text
    assert "cur is the flag of the current row (is_current): Y and N (current_values)" in text
    assert "0 missing, 0 superfluous, 1 different" in text
    assert "different|3|2024-02-01|is_current|Y|N" in text.replace(" ", "")
    shown = built(old, "flagged", "id", "city", "eff_to", "cur")
    assert shown == [
        ["1", "Oslo", "2024-02-01", "N"],
        ["1", "Rome", "2999-12-31", "Y"],
        ["2", "Bonn", "2999-12-31", "Y"],
        ["3", "Lima", "2024-03-01", "N"],
    ]


def test_guesses_are_overridden(old: Lab) -> None:
    told = {"is_current": "CUR", "current_values": ["Y", "N"], "valid_to_current": "2999-12-31"}
    text = "\n".join(operation(old, "adopt", relation=f"{old.schema}.flagged", **told))
    assert "cur is the flag of the current row: Y and N\n" in text
    assert "open if it is 2999-12-31\n" in text
    text = "\n".join(operation(old, "adopt", relation=f"{old.schema}.flagged", is_current=False))
    assert "no column is a flag" in text and "'attributes': ['city', 'cur']" in text.replace(
        "attributes=", "'attributes': "
    )
    wrong = {"is_current": "curr", "current_values": ["Y"], "valid_to_current": "soon"}
    text = "\n".join(operation(old, "adopt", relation=f"{old.schema}.flagged", **wrong))
    for part in ["3 mistakes", "is_current", "current_values", "valid_to_current"]:
        assert part in text


def test_rows_that_share_key_and_start(old: Lab) -> None:
    text = "\n".join(adopted(old, "doubled", key=["shop", "code"]))
    assert "2 rows with the key and start of another row" in text
    assert "not compared, since rows share key and start" in text


def test_what_it_must_be_told(old: Lab) -> None:
    def error(**arguments: Any) -> str:
        return "\n".join(operation(old, "adopt", **arguments))

    assert "a table or view that exists" in error(relation="nowhere.dim")
    text = error(relation=f"{old.schema}.bare")
    assert "the start of a version" in text and "the end of a version" in text
    text = error(relation=f"{old.schema}.prices")
    assert "none that is unique with valid_from" in text and "code (2 values, 5 with the start, in 6 rows)" in text
    text = error(relation=f"{old.schema}.snapped")
    assert "a dbt snapshot" in text and "healing_tables.generate_model" in text
    assert "columns of" in error(relation=f"{old.schema}.prices", key="cod")
