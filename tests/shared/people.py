"""What the tables of the project `people` (on_server.py) hold after its runs, on any server."""

from __future__ import annotations

from reference import hash_of

PEOPLE = [
    ["1", "Ann", "Bern", "2024-02-01"],
    ["1", "Ann", "Oslo", "2024-01-01"],
    ["1", "Anne", "Oslo", "2024-01-15"],
    ["2", "B|a", "Rome", "2024-01-01"],
    ["3", "Cid", "Rome", "2024-02-01"],
]
# the batches 1 and 2
MERGED = [row for row in PEOPLE if row[1] != "Anne"]
STATES = [
    ["1", "Ann", "Bern", "False"],
    ["1", "Ann", "Oslo", "False"],
    ["2", "B|a", "Rome", "False"],
    ["2", "B|a", "Rome", "True"],
    ["3", "Cid", "Rome", "False"],
]
VISITS = [["2024-01-20", "Anne"], ["2024-03-01", "Ann"]]


def check_people(rows: dict[str, list[list[str]]], **more: list[list[str]]) -> None:
    """Args: more: tables that only some servers have."""
    found = {name: [[cell[:10] for cell in row] for row in table] for name, table in rows.items() if name != "hashes"}
    assert found == {"dim_person": PEOPLE, "person_states": STATES, "correct_visits": VISITS, **more}
    assert len(rows["hashes"]) == len(PEOPLE)
    # the text that is hashed has a backslash before the | of a value
    for key, name, city, key_hash, row_hash in rows["hashes"]:
        assert key_hash == hash_of([int(key)], ["int"])
        assert row_hash == hash_of([city, name], ["string", "string"])  # attributes in the order of their names
