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
# what the builds of dim_person have changed: the last batch is late
PERSON_AUDIT = [
    ["1", '{"id":1}', "insert", "new"],
    ["1", '{"id":2}', "insert", "new"],
    ["2", '{"id":1}', "close", "changed"],
    ["2", '{"id":1}', "insert", "changed"],
    ["2", '{"id":3}', "insert", "new"],
    ["3", '{"id":1}', "insert", "changed"],
    ["3", '{"id":1}', "update", "overwritten"[:10]],
    ["3", '{"id":1}', "update", "overwritten"[:10]],
]
# what merges of the three batches leave
MERGED = {
    "dim_merged": [
        ["1", "Ann", "Bern", "2024-02-01", "batch 2"],
        ["1", "Ann", "Oslo", "2024-01-01", "batch 1"],
        ["1", "Anne", "Oslo", "2024-01-15", "batch 3"],
        ["2", "B|a", "Rome", "2024-01-01", "batch 1"],
        ["3", "Cid", "Rome", "2024-02-01", "batch 2"],
    ],
    "merged_keys": [["5"]],
    "merged_audit": [
        ['{"id":1}', "close", "changed", "batch 2"],
        ['{"id":1}', "insert", "changed", "batch 2"],
        ['{"id":1}', "insert", "changed", "batch 3"],
        ['{"id":1}', "insert", "new", "batch 1"],
        ['{"id":1}', "update", "overwritten"[:10], "batch 3"],
        ['{"id":1}', "update", "overwritten"[:10], "batch 3"],
        ['{"id":2}', "insert", "new", "batch 1"],
        ['{"id":3}', "insert", "new", "batch 2"],
    ],
    "dim_newest": [
        ["1", "Ann", "Bern", "2024-02-01"],
        ["2", "B|a", "Rome", "2024-01-01"],
        ["3", "Cid", "Rome", "2024-02-01"],
    ],
    "newest_history": [
        ["1", "Ann", "Oslo", "2024-01-01", "2024-01-15"],
        ["1", "Anne", "Oslo", "2024-01-15", "2024-02-01"],
    ],
    "newest_audit": [
        ['{"id":1}', "insert", "new"],
        ['{"id":1}', "update", "changed"],
        ['{"id":2}', "insert", "new"],
        ['{"id":3}', "insert", "new"],
    ],
}
STATES = [
    ["1", "Ann", "Bern", "False"],
    ["1", "Ann", "Oslo", "False"],
    ["2", "B|a", "Rome", "False"],
    ["2", "B|a", "Rome", "True"],
    ["3", "Cid", "Rome", "False"],
]
VISITS = [["2024-01-20", "Anne"], ["2024-03-01", "Ann"]]


# After an undo to the first batch, and the erasure of key 1; the audit keeps what it says of other keys
FORGOTTEN = [["2", "B|a", "Rome", "2024-01-01"]]
FORGOTTEN_AUDIT = [["1", '{"id":2}', "insert"], ["2", '{"id":3}', "insert"], ["4", '{"id":3}', "remove"]]


def check_people(rows: dict[str, list[list[str]]], **more: list[list[str]]) -> None:
    """Args: more: tables that only some servers have."""
    named = {name: table for name, table in rows.items() if name != "hashes" and not name.startswith("merges")}
    found = {name: [[cell[:10] for cell in row] for row in table] for name, table in named.items()}
    wanted = {"dim_person": PEOPLE, "person_audit": PERSON_AUDIT, "person_states": STATES, "correct_visits": VISITS}
    wanted |= {"dim_forgotten": FORGOTTEN, "forgotten_audit": FORGOTTEN_AUDIT}
    assert found == wanted | more
    assert len(rows["hashes"]) == len(PEOPLE)
    # the text that is hashed has a backslash before the | of a value
    for key, name, city, key_hash, row_hash in rows["hashes"]:
        assert key_hash == hash_of([int(key)], ["int"])
        assert row_hash == hash_of([city, name], ["string", "string"])  # attributes in the order of their names


def check_merges(rows: dict[str, list[list[str]]]) -> None:
    """The list of merges (merge_lists.py) left the rows that are right."""
    found = [row for name, table in rows.items() if name.startswith("merges") for row in table]
    assert len(found) > 40 and all(int(number) for _, number, _ in found), found
    assert [row for row in found if row[2] != "0"] == []
