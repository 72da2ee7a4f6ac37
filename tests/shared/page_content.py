"""What explain and report give to their pages, without a Spark."""

from __future__ import annotations

import datetime as dt
from typing import Any

HOSTILE = "<script>alert('&\"')</script>"
LONG = "a long text without an end " * 40


def explained(versions: int, *, text: str = "Oslo") -> dict[str, Any]:
    """Two sources and so many versions of one slice each, with a gap before the last; `text` is in each value."""
    first = dt.date(2024, 1, 1)
    days = [first + dt.timedelta(days=number * (1 + number % 7)) for number in range(2 * versions)]
    days = sorted(set(days))[: versions + 1]
    slices, opened = [], []
    for number, (start, end) in enumerate(zip(days, [*days[1:], None], strict=True)):
        is_gap = number == versions - 1
        version = None if is_gap else number + 1 if number < versions - 1 else number
        erp_changes = number % 2 == 1 or number >= versions - 1
        owned = [
            {"attribute": "name", "value": f"{text} {number}", "owner": "crm"},
            {
                "attribute": "limit",
                "value": str((number + 1) // 2) if number else None,
                "owner": "erp" if number else None,
            },
        ]
        lost = {"attribute": "name", "value": f"erp {text}", "source": "erp.label", "owner": "crm", "why": "a rule"}
        slices.append(
            {
                "slice": version,
                "version": version,
                "valid_from": str(start),
                "valid_to": str(end or "(open)"),
                "sources": [
                    {"source": "crm", "present": not is_gap, "changed": True},
                    {"source": "erp", "present": number > 0 and not is_gap, "changed": erp_changes},
                ],
                "owned": owned,
                "changes": [] if is_gap else owned if erp_changes else owned[:1],
                "overruled": [lost] if number == 1 else [],
            }
        )
        if version is not None:
            opened.append(
                {
                    "version": version,
                    "valid_from": str(start),
                    "valid_to": str(end or "(open)"),
                    "slices": str(version),
                    "opened_by": "name",
                }
            )
    return {
        "title": f"sales.dim_customer, customer_id = {text}",
        "counts": f"{versions} versions",
        "sources": ["crm", "erp"],
        "rules": [
            {
                "attribute": "name",
                "from": "crm, erp",
                "rule": "first_present",
                "scd_type": 2,
                "shows": "the value at that time",
            }
        ],
        "rows": [{"source": "crm", "moment": "2024-01-01", "became": "change", "says": f"name={text} 0"}],
        "slices": slices,
        "versions": opened,
        "published": [
            publish("2024-02-01 06:00:00", "2024-02-02 06:00:00.5", "2024-01-01", "(open)", text),
            publish("2024-02-02 06:00:00.5", "(now)", "2024-01-01", "2024-01-05", text),
            publish("2024-02-02 06:00:00.5", "(now)", "2024-01-05", "(open)", f"{text} 1"),
        ],
    }


def publish(known_from: str, known_to: str, valid_from: str, valid_to: str, text: str) -> dict[str, Any]:
    period = {"valid_from": valid_from, "valid_to": valid_to}
    return {"known_from": known_from, "known_to": known_to, **period, "says": f"name={text}"}


def logged(builds: int) -> dict[str, Any]:
    """Two tables, one fine and one refused after a retry, with so many builds each."""
    rows = []
    for number in range(builds):
        for name in ("sales.dim_customer", "sales.dim_player"):
            is_refused = name.endswith("player") and number == 0
            is_retried = name.endswith("player") and number == 1
            rows.append(
                {
                    "name": name,
                    "finished": f"2024-03-{28 - number % 28:02} 02:00:07",
                    "mode": "rebuild",
                    "status": "refused" if is_refused else "retried" if is_retried else "published",
                    "reason": f"no_gaps {HOSTILE}" if is_refused else None,
                    "publish": None if is_refused else "merge",
                    "rows_added": 1000 if number == builds - 1 else number % 5,
                    "rows_changed": number % 3,
                    "rows_removed": number % 2,
                    "rows_unchanged": 12345,
                    "rows_set_aside": 2,
                    "ties_resolved": None,
                    "seconds": 7.5 + number % 4,
                    "version_after": 40 - number,
                }
            )
    tables: list[dict[str, Any]] = [
        {
            "name": "sales.dim_customer",
            "last_build": "2024-03-28 02:00",
            "status": "published",
            "reason": None,
            "hours": 5.2,
            "rows_after": 12350,
            "findings": "",
        },
        {
            "name": "sales.dim_player",
            "last_build": "2024-03-28 02:00",
            "status": "refused",
            "reason": f"no_gaps {HOSTILE}",
            "hours": 29.1,
            "rows_after": 12350,
            "findings": "refused, stale",
        },
    ]
    limits = {"max_age_hours": 26, "max_removed_ratio": 0.05, "max_added_ratio": 0.5}
    texts = {"log": "sales.healing_log", "written": "2024-03-28 07:12", "days": 90}
    return {**texts, "limits": limits, "tables": tables, "builds": rows}
