"""What the tables of the project `people` (on_server.py) hold after its runs, on any server."""

PEOPLE = [
    ["1", "Ann", "Bern", "2024-02-01"],
    ["1", "Ann", "Oslo", "2024-01-01"],
    ["1", "Anne", "Oslo", "2024-01-15"],
    ["2", "Bea", "Rome", "2024-01-01"],
    ["3", "Cid", "Rome", "2024-02-01"],
]
STATES = [
    ["1", "Ann", "Bern", "False"],
    ["1", "Ann", "Oslo", "False"],
    ["2", "Bea", "Rome", "False"],
    ["2", "Bea", "Rome", "True"],
    ["3", "Cid", "Rome", "False"],
]
VISITS = [["2024-01-20", "Anne"], ["2024-03-01", "Ann"]]
