"""Why a dimension says what it says: the whole print of explain, for the worked example and for all four rules."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from dbt.cli.main import dbtRunner
from lab import PROFILE, Lab
from sessions import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("interpreted")]
COLUMNS = [
    ["shop", "int"],
    ["code", "string"],
    ["at", "date"],
    ["no", "int"],
    ["op", "string"],
    ["a", "string"],
    ["b", "string"],
    ["c", "string"],
    ["d", "string"],
    ["kept", "boolean"],
]
LEFT = [
    [1, "x'1", "2024-01-01", 1, "U", "a1", "b1", "c1", "d1", True],
    [1, "x'1", "2024-02-01", 2, "U", None, None, "c1", "d1", True],
    [1, "x'1", "2024-02-01", 1, "U", "lost", None, "c1", "d1", True],
    [1, "x'1", "2024-02-01", 2, "U", None, None, "c1", "d1", True],
    [1, "x'1", "2024-02-15", 1, "U", None, None, "c1", "d9", True],
    [1, "x'1", "2024-03-01", 1, "U", None, None, "c1", "d9", True],
    [1, "x'1", "2024-03-15", 1, "U", "x", None, "c1", "d1", False],
    [1, "x'1", None, 1, "U", "x", None, "c1", "d1", True],
    [1, "x'1", "2024-05-01", 1, "D", None, None, None, None, True],
    [1, "x'1", "2024-07-01", 1, "D", None, None, None, None, True],
    [2, "x'1", "2024-01-01", 1, "U", "z", "z", "z", "z", True],
]
RIGHT = [
    [1, "x'1", "2024-01-15", 1, "U", "a2", "b2", "c2", "d2", True],
    [1, "x'1", "2024-04-01", 1, "U", "a2", "b2", "c2", "d3", True],
    [1, "x'1", "2024-06-01", 1, "D", None, None, None, None, True],
    [1, "x'1", "2024-08-01", 1, "U", "a2", None, None, None, True],
]
MODEL = """
with rhs as (select * from {{ ref('right') }})
{{ healing_tables.dimension(
    sources={
        'left': {
            'relation': ref('left'), 'changed_at': 'at', 'tie_break_by': 'no', 'deleted_when': "op = 'D'",
            'where': 'kept'},
        'r, s': {'relation': 'rhs', 'changed_at': 'at', 'deleted_when': "op = 'D'"}
    },
    attributes={
        'd': {'from': ['left', 'r, s'], 'rule': 'most_recent_value', 'scd_type': 1},
        'a': {'from': ['left', 'r, s'], 'rule': 'first_non_null'},
        'b': {'from': ['left', 'r, s'], 'rule': 'first_present'},
        'c': {'from': ['left', 'r, s.d'], 'rule': 'most_recent_row'}
    },
    column_types={
        'shop': 'int', 'code': 'string', 'at': 'date', 'op': 'string', 'a': 'string', 'b': 'string', 'd': 'string'}
) }}
"""

KINDS = """
{{ healing_tables.dimension(
    sources={
        'snap': {'relation': ref('snap'), 'snapshot_at': 'day'},
        'terms': {'relation': ref('terms'), 'valid_from': 'start', 'valid_to': 'end'}
    },
    attributes={'mail': {'from': 'snap', 'scd_type': 6}, 'office': {'from': 'terms', 'scd_type': 0}},
    key_columns='id'
) }}
"""

# What the source says from 10 January until 1 March: the state that it had brought along, then one change.
CUT = """
{{ healing_tables.dimension(
    {'log': {'relation': ref('cut_log'), 'changed_at': 'day', 'since': '2024-01-10', 'until': '2024-03-01'}},
    attributes=['mail'], key_columns='id'
) }}
"""

# Only x decides whether the key exists, so the first value of y is older than the first slice.
RECENT = """
{{ healing_tables.dimension(
    {'x': {'relation': ref('x'), 'changed_at': 'day'}, 'y': {'relation': ref('y'), 'changed_at': 'day'}},
    attributes={'mail': {'from': ['x', 'y'], 'rule': 'most_recent_value'}}, key_columns='id', exists_in=['x']
) }}
"""


def explained(log: list[str]) -> list[str]:
    lines = [line for text in log for line in text.split("\n")]
    start = next((n for n, line in enumerate(lines) if line.startswith("healing_tables explain:")), None)
    assert start is not None, log
    end = start + 1
    while end < len(lines) and (not lines[end] or lines[end].startswith("  ")):
        end += 1
    return lines[start:end]


@pytest.fixture(scope="module")
def rules(lab: Lab) -> Lab:
    lab.table("left_rows", COLUMNS, LEFT)
    lab.table("right_rows", COLUMNS, RIGHT)
    lab.model("left", f"select * from {lab.schema}.left_rows")
    lab.model("right", f"select * from {lab.schema}.right_rows")
    lab.model("dim_four", MODEL, unique_key=["shop", "code"])
    around = MODEL.replace("{{ heal", ", whole as ({{ heal") + ") select shop from whole"
    lab.model("dim_more", around, unique_key=["shop", "code"])
    snap = [["2024-01-01", 1, "m"], ["2024-01-02", 1, "m"], ["2024-01-03", 2, "x"]]
    terms: list[list[Any]] = [
        [1, "2024-01-02", "2024-01-05", "Oslo"],
        [1, "2024-01-05", None, "Oslo"],
        [1, "2024-01-07", "2024-01-07", "Bern"],
    ]
    lab.table(
        "snap_rows",
        [["day", "date"], ["id", "int"], ["mail", "string"]],
        [*snap, ["2024-01-04", 1, "m"]],
    )
    lab.table(
        "term_rows",
        [["id", "int"], ["start", "date"], ["end", "date"], ["office", "string"]],
        terms,
    )
    lab.model("snap", f"select * from {lab.schema}.snap_rows")
    lab.model("terms", f"select * from {lab.schema}.term_rows")
    lab.model("dim_kinds", KINDS)
    days = {"2024-01-01": "a", "2024-01-05": "b", "2024-02-01": "c", "2024-03-01": "d"}
    lab.table(
        "cut_rows",
        [["day", "date"], ["id", "int"], ["mail", "string"]],
        [[day, 1, mail] for day, mail in days.items()],
    )
    lab.model("cut_log", f"select * from {lab.schema}.cut_rows")
    lab.model("dim_cut", CUT)
    starts = {"x": ["2024-01-02", "2024-01-05"], "y": ["2024-01-01", "2024-01-05"]}
    for name, (first, then) in starts.items():
        lab.table(
            f"{name}_rows",
            [["day", "date"], ["id", "int"], ["mail", "string"]],
            [[first, 1, f"{name}1"], [then, 1, f"{name}2"], ["2024-01-06", 1, "same"], ["2024-01-07", 1, "x3"]],
        )
        lab.model(name, f"select * from {lab.schema}.{name}_rows")
    lab.model("dim_recent", RECENT)
    lab.dbt("run", "--select", "left", "right", "snap", "terms", "cut_log", "x", "y")
    return lab


FOUR = """
healing_tables explain: {0}.dim_four, shop = 1, code = x'1: 14 rows in the sources, 7 slices, 6 versions

  Rules
  attribute | from         | rule              | type | a version shows
  --------- | ------------ | ----------------- | ---- | ----------------------
  d         | left, r, s   | most_recent_value | 1    | the newest value
  a         | left, r, s   | first_non_null    | 2    | the value at that time
  b         | left, r, s   | first_present     | 2    | the value at that time
  c         | left, r, s.d | most_recent_row   | 2    | the value at that time

  Rows of the sources
  source | moment     | became                       | values
  ------ | ---------- | ---------------------------- | ----------------------------
  left   | 2024-01-01 | change                       | a=a1, b=b1, c=c1, d=d1, no=1
  r, s   | 2024-01-15 | change                       | a=a2, b=b2, d=d2
  left   | 2024-02-01 | lost a tie                   | a=lost, c=c1, d=d1, no=1
  left   | 2024-02-01 | change                       | c=c1, d=d1, no=2
  left   | 2024-02-01 | no change: equal row         | c=c1, d=d1, no=2
  left   | 2024-02-15 | change                       | c=c1, d=d9, no=1
  left   | 2024-03-01 | no change                    | c=c1, d=d9, no=1
  left   | 2024-03-15 | not read: where              | a=x, c=c1, d=d1, no=1
  r, s   | 2024-04-01 | change                       | a=a2, b=b2, d=d3
  left   | 2024-05-01 | change                       | deleted: no=1
  r, s   | 2024-06-01 | change                       | deleted
  left   | 2024-07-01 | no change                    | deleted: no=1
  r, s   | 2024-08-01 | change                       | a=a2
  left   | NULL       | set aside: NULL moment in at | a=x, c=c1, d=d1, no=1

  Timeline: ● new values, │ has the key, ○ the key ends
  slice | from       | left | r, s | version | attribute | value | by     | overruled by
  ----- | ---------- | ---- | ---- | ------- | --------- | ----- | ------ | ------------------------------------------
  1     | 2024-01-01 | ●    |      | ● 1     | d         | d1    | left   |
        |            | │    |      | │       | a         | a1    | left   |
        |            | │    |      | │       | b         | b1    | left   |
        |            | │    |      | │       | c         | c1    | left   |
  2     | 2024-01-15 | │    | ●    | ● 2     | d         | d2    | r, s   |
        |            | │    | │    | │       | c         | d2    | r, s.d |
        |            | │    | │    | │       | a         | a2    | r, s   | left (first_non_null: listed before it)
        |            | │    | │    | │       | b         | b2    | r, s   | left (first_present: listed before it)
  3     | 2024-02-01 | ●    | │    | ● 3     | a         | a2    | r, s   |
        |            | │    | │    | │       | b         | NULL  | left   |
        |            | │    | │    | │       | c         | c1    | left   |
        |            | │    | │    | │       | a         | NULL  | left   | r, s (first_non_null: NULL does not count)
  4     | 2024-02-15 | ●    | │    | │       | d         | d9    | left   |
  5     | 2024-04-01 | │    | ●    | ● 4     | d         | d3    | r, s   |
        |            | │    | │    | │       | c         | d3    | r, s.d |
  6     | 2024-05-01 | ○    | │    | ● 5     | b         | b2    | r, s   |
  gap   | 2024-06-01 |      | ○    |         |           |       |        |
  7     | 2024-08-01 |      | ●    | ● 6     | a         | a2    | r, s   |

  Versions
  version | valid_from | valid_to   | slices | opened by
  ------- | ---------- | ---------- | ------ | ------------------
  1       | 2024-01-01 | 2024-01-15 | 1      | first seen
  2       | 2024-01-15 | 2024-02-01 | 2      | c
  3       | 2024-02-01 | 2024-04-01 | 3 to 4 | a, b, c
  4       | 2024-04-01 | 2024-05-01 | 5      | c
  5       | 2024-05-01 | 2024-06-01 | 6      | b
  6       | 2024-08-01 | (open)     | 7      | return after a gap
"""
# Of 1002: what became of each row, the timeline, the versions.
CUSTOMER = {
    "Rows of the sources": """
crm | 2020-01-01 | change
erp | 2020-01-01 | change
erp | 2020-01-05 | change
crm | 2020-01-07 | no change
erp | 2020-01-09 | change
crm | 2020-01-11 | change
erp | 2020-01-11 | change
crm | 2022-01-01 | change
erp | 2022-01-01 | change
crm | 2022-03-01 | change
erp | 2022-05-01 | change
crm | 2022-06-01 | change
erp | 2022-06-01 | change
""",
    "Timeline": """
1   | 2020-01-01 | ● | ● |  | ● 1 | customer_name   | Nordlicht GmbH           | crm           |
    |            | │ | │ |  | │   | customer_status | active                   | crm           |
    |            | │ | │ |  | │   | credit_limit    | 40000                    | erp           |
    |            | │ | │ |  | │   | payment_terms   | net 30                   | erp           |
    |            | │ | │ |  | │   | email           | office@nordlicht.example | crm           |
    |            | │ | │ |  | │   | customer_name   | NORDLICHT                | erp.cust_name | LOST
2   | 2020-01-05 | │ | ● |  | │   | customer_name   | NORDLICHT GMBH           | erp.cust_name | LOST
3   | 2020-01-09 | │ | ● |  | ● 2 | credit_limit    | 30000                    | erp           |
gap | 2020-01-11 | ○ | ○ |  |     |                 |                          |               |
4   | 2022-01-01 | ● | ● |  | ● 3 | customer_name   | Nordlicht GmbH           | crm           |
    |            | │ | │ |  | │   | customer_status | active                   | crm           |
    |            | │ | │ |  | │   | credit_limit    | 30000                    | erp           |
    |            | │ | │ |  | │   | payment_terms   | net 30                   | erp           |
    |            | │ | │ |  | │   | email           | office@nordlicht.example | crm           |
    |            | │ | │ |  | │   | customer_name   | NORDLICHT GMBH           | erp.cust_name | LOST
5   | 2022-03-01 | ● | │ |  | │   | email           | hello@nordlicht.example  | crm           |
6   | 2022-05-01 | │ | ● |  | │   | customer_name   | NORDLICHT GMBH & CO KG   | erp.cust_name | LOST
gap | 2022-06-01 | ○ | ○ |  |     |                 |                          |               |
""".replace("LOST", "crm (first_present: listed before it)"),
    "Versions": """
1 | 2020-01-01 | 2020-01-09 | 1 to 2 | first seen
2 | 2020-01-09 | 2020-01-11 | 3      | credit_limit
3 | 2022-01-01 | 2022-06-01 | 4 to 6 | return after a gap
""",
}


def cells(lines: list[str]) -> list[list[str]]:
    return [[cell.strip().removesuffix(" 00:00:00") for cell in line.split("|")] for line in lines]


def part(lines: list[str], title: str) -> list[list[str]]:
    """The rows of the table under a title that begins so."""
    start = next(number for number, line in enumerate(lines) if line.startswith(f"  {title}")) + 3
    end = lines.index("", start) if "" in lines[start:] else len(lines)
    return cells(lines[start:end])


def ask(lab: Lab, **arguments: Any) -> list[str]:
    text = json.dumps(arguments)
    lab.dbt("run-operation", "healing_tables.explain", "--args", text)
    return explained(lab.log)


def test_all_rules_and_all_that_can_become_of_a_row(rules: Lab) -> None:
    lines = ask(rules, dimension="dim_four", key={"CODE": "x'1", "shop": 1})
    assert lines == FOUR.strip().format(rules.schema).split("\n")
    assert ask(rules, dimension="dim_four", key={"code": "x", "shop": 1}) == [
        (
            f"healing_tables explain: {rules.schema}.dim_four, shop = 1, code = x: 0 rows in the sources, 0 slices, 0 "
            "versions"
        ),
        "  no source has a row with this key: compare the values and their types",
    ]


def test_the_page(rules: Lab) -> None:
    file = rules.home / "explained.html"
    lines = ask(rules, dimension="dim_four", key={"code": "x'1", "shop": 1}, html=str(file))
    assert lines == FOUR.strip().format(rules.schema).split("\n")
    assert f"the page is {file}" in "\n".join(rules.log)
    text = file.read_text()
    assert f'<h1 title="{rules.schema}.dim_four, shop = 1, code = x&#39;1">' in text
    assert text.count('<a href="#from-') == 8  # seven slices and the gap
    changes = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", text))
    assert "c = d3, was c1" in changes
    assert "a = a2, r, s, overruled by left (first_non_null: listed before it)" in changes


# A snapshot that lacks the key ends it; periods that touch and agree are no change.
OTHER_KINDS = {
    "Rows of the sources": """
snap  | 2024-01-01 | change                                 | mail=m
snap  | 2024-01-02 | no change                              | mail=m
terms | 2024-01-02 | change                                 | office=Oslo, end=2024-01-05
snap  | 2024-01-04 | change                                 | mail=m
terms | 2024-01-05 | no change                              | office=Oslo
terms | 2024-01-07 | set aside: period that does not end after it starts    | office=Bern, end=2024-01-07
""",
    "Timeline": """
1 | 2024-01-01 | ● |   | ● 1 | mail   | m    | snap
2 | 2024-01-02 | │ | ● | │   | office | Oslo | terms
3 | 2024-01-03 | ○ | │ | ● 2 | mail   | NULL | (no source)
4 | 2024-01-04 | ● | │ | ● 3 | mail   | m    | snap
""",
    "Versions": """
1 | 2024-01-01 | 2024-01-03 | 1 to 2 | first seen
2 | 2024-01-03 | 2024-01-04 | 3      | mail
3 | 2024-01-04 | (open)     | 4      | mail
""",
}


def test_snapshots_and_periods(rules: Lab) -> None:
    lines = ask(rules, dimension="dim_kinds", key="1")
    for title, expected in OTHER_KINDS.items():
        assert part(lines, title) == cells(expected.strip("\n").split("\n")), title


def test_values_that_are_less_recent(rules: Lab) -> None:
    lines = ask(rules, dimension="dim_recent", key="1")
    expected = """
gap | 2024-01-01 |   | ● |     |      |      |   |
1   | 2024-01-02 | ● | │ | ● 1 | mail | x1   | x |
    |            | │ | │ | │   | mail | y1   | y | x (most_recent_value: starts later)
2   | 2024-01-05 | ● | ● | ● 2 | mail | x2   | x |
    |            | │ | │ | │   | mail | y2   | y | x (most_recent_value: starts at the same time, listed before it)
3   | 2024-01-06 | ● | ● | ● 3 | mail | same | x |
4   | 2024-01-07 | ● | ● | ● 4 | mail | x3   | x |
"""
    assert part(lines, "Timeline") == cells(expected.strip().split("\n"))


def test_rows_outside_of_a_cut(rules: Lab) -> None:
    lines = ask(rules, dimension="dim_cut", key="1")
    assert part(lines, "Rows of the sources") == [
        ["log", "2024-01-01", "no change: before since", "mail=a"],
        ["log", "2024-01-05", "change", "mail=b"],
        ["log", "2024-02-01", "change", "mail=c"],
        ["log", "2024-03-01", "not read: outside of since and until", "mail=d"],
    ]


def test_the_worked_example(rules: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    profiles = (rules.home / "profiles.yml").read_text()
    rules.write("profiles.yml", PROFILE.replace("lab:", "healing_tables:") % rules.schema)
    monkeypatch.setenv("DBT_PROJECT_DIR", str(ROOT))
    folders = ["--project-dir", str(ROOT), "--profiles-dir", str(rules.home), "--no-use-colors"]
    folders += ["--target-path", str(rules.home / "root"), "--log-path", str(rules.home / "logs")]
    log: list[str] = []
    runner = dbtRunner(callbacks=[lambda event: log.append(str(getattr(event.info, "msg", "")))])
    models = ["stg_crm_customers", "stg_erp_customers", "stg_web_profiles"]
    runner.invoke(["run", "--select", *models, *folders])
    arguments = "{dimension: dim_customer, key: 1002}"
    outcome = runner.invoke(["run-operation", "explain", "--args", arguments, *folders])
    rules.write("profiles.yml", profiles)
    assert outcome.success
    lines = explained(log)
    assert lines[0].endswith("dim_customer, customer_id = 1002: 13 rows in the sources, 6 slices, 3 versions")
    for title, expected in CUSTOMER.items():
        wanted = cells(expected.strip().split("\n"))
        assert [row[: len(wanted[0])] for row in part(lines, title)] == wanted, title


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({"dimension": "dim_four"}, "the key to explain"),
        ({"dimension": "dim_four", "key": 1}, "a value for each of shop, code"),
        (
            {"dimension": "left", "key": {"shop": 1, "code": "x"}},
            "left, which does not call it",
        ),
        (
            {"dimension": "dim_more", "key": {"shop": 1, "code": "x"}},
            "dim_more, followed by more code",
        ),
    ],
    ids=["no key", "half a key", "no dimension", "a select around it"],
)
def test_what_cannot_be_explained_is_refused(rules: Lab, arguments: dict[str, Any], words: str) -> None:
    text = json.dumps(arguments)
    rules.dbt("run-operation", "healing_tables.explain", "--args", text)
    assert not rules.succeeded
    assert any(words in line for line in rules.log), rules.log[-3:]
