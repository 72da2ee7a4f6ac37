"""The page of report: the tables of a log, and the builds of each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from math import log1p
from statistics import median
from typing import Any

BUILDS = 60  # in a picture, the newest
LISTED = 30  # in a table, the newest
COUNTS = ("rows_added", "rows_changed", "rows_removed")
HEIGHT, STEP = 32, 4  # pixels: of a picture, and from one build to the next


def report_page(content: dict[str, Any]) -> dict[str, Any]:
    """What the template shows.

    Args:
        content: ``log``, ``written``, ``days``, ``limits``, ``tables`` and ``builds`` (the newest first), see
            macros/operations/report.sql.
    """
    builds_of: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for build in content["builds"]:
        builds_of[build["name"]].append(build)
    tables = [
        table | figures(builds_of[table["name"]]) | {"anchor": f"table-{number}"}
        for number, table in enumerate(content["tables"], start=1)
    ]
    totals = {
        "builds": sum(table["built"] for table in tables),
        "refused": sum(table["refused"] for table in tables),
        "retried": sum(table["retried"] for table in tables),
        "findings": sum(bool(table["findings"]) for table in tables),
    }
    return content | {"tables": tables, "totals": totals, "height": HEIGHT, "step": STEP, "shown": LISTED}


def figures(builds: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Of the builds of one table, the newest first. An attempt that was retried is listed, but is no build."""
    listed, builds = builds, [build for build in builds if build["status"] != "retried"]
    seconds = [float(build["seconds"]) for build in builds if build["seconds"] is not None]
    in_order = list(reversed(builds[:BUILDS]))
    return {
        "builds": listed[:LISTED],
        "listed": len(listed),
        "built": len(builds),
        "retried": len(listed) - len(builds),
        "refused": sum(build["status"] == "refused" for build in builds),
        "seconds": seconds[0] if seconds else None,
        "median_seconds": median(seconds) if seconds else None,
        "rows_bars": rows_bars(in_order),
        "seconds_bars": seconds_bars(in_order),
        "width": STEP * max(len(in_order), 1),
    }


def rows_bars(builds: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """A bar for each build: rows added, changed and removed on one another; its height is logarithmic."""
    totals = [sum(int(build[name] or 0) for name in COUNTS) for build in builds]
    most = log1p(max(totals, default=0)) or 1.0
    bars = []
    for build, total in zip(builds, totals, strict=True):
        height, parts, bottom = HEIGHT * log1p(total) / most, [], 0.0
        for name in COUNTS:
            share = height * int(build[name] or 0) / total if total else 0.0
            bottom += share
            if share:
                parts.append({"kind": name, "y": round(HEIGHT - bottom, 1), "height": round(share, 1)})
        bars.append({"parts": parts, "is_refused": build["status"] == "refused", "build": build})
    return bars


def seconds_bars(builds: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    most = max((float(build["seconds"] or 0) for build in builds), default=0.0) or 1.0
    bars = []
    for build in builds:
        height = round(HEIGHT * float(build["seconds"] or 0) / most, 1)
        bars.append({"y": HEIGHT - height, "height": height, "build": build})
    return bars
