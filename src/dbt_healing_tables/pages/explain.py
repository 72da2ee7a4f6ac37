"""The page of explain: a picture of the sources and versions of one key, and its tables."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

NARROW, WIDTH = 28, 800  # pixels: of the shortest slice, and what the durations share
ROW, BAR = 36, 16  # pixels: height of a line of the picture, and of a bar in it
LABEL = 96  # pixels that the label of a moment takes
COLORS = 6  # for sources; page.html has them
NOW, OPEN = "(now)", "(open)"  # the ends of what is still known, and of an open version
PUBLISHES = 40  # lines of the picture of what was known


def explain_page(content: dict[str, Any]) -> dict[str, Any]:
    """What the template shows.

    Args: content: an ``explained``, see macros/operations/explain.sql.
    """
    slices = with_old_values(content["slices"])
    edges = [0, *accumulate(widths_of(slices))]
    colors = {name: number % COLORS for number, name in enumerate(content["sources"])}
    return content | {
        "slices": slices,
        "edges": edges,
        "labels": labels(slices, edges),
        "lines": [
            source_line(slices, edges, number, name, colors[name]) for number, name in enumerate(content["sources"])
        ],
        "blocks": version_blocks(slices, edges),
        "publishes": publish_lines(content["published"], slices, edges),
        "color_of": lambda owner: colors.get(str(owner), colors.get(str(owner).rpartition(".")[0], "none")),
        "color_count": COLORS,
        "row": ROW,
        "bar": BAR,
    }


def widths_of(slices: Sequence[dict[str, Any]]) -> list[int]:
    """Pixels of each slice: longer ones are wider; an open end counts as the mean of the others."""
    seconds = [duration(each["valid_from"], each["valid_to"]) for each in slices]
    lengths = [each for each in seconds if each is not None]
    mean = sum(lengths) / len(lengths) if lengths else 1.0
    found = [mean if each is None else each for each in seconds]
    total = sum(found) or 1.0
    return [NARROW + round(WIDTH * each / total) for each in found]


def duration(start: str, end: str) -> float | None:
    """Seconds between two moments as a dimension shows them; None where Python has no such dates."""
    from healing_tables.sql.instants import micros  # with it comes pyspark, which the start of dbt does not need

    try:
        return (micros(end) - micros(start)) / 1_000_000
    except ValueError:
        return None


def labels(slices: Sequence[dict[str, Any]], edges: Sequence[int]) -> list[tuple[int, str]]:
    """Pixel and text of as many moments as fit."""
    found: list[tuple[int, str]] = []
    for edge, each in zip(edges, slices, strict=False):
        if not found or edge >= found[-1][0] + LABEL:
            found.append((edge, each["valid_from"].removesuffix(" 00:00:00")))
    return found


def source_line(
    slices: Sequence[dict[str, Any]], edges: Sequence[int], number: int, name: str, color: int
) -> dict[str, Any]:
    """Bars where the source has the key, dots where its values change, rings where the key ends."""
    bars: list[list[int]] = []
    dots: list[int] = []
    rings: list[int] = []
    for position, each in enumerate(slices):
        state = each["sources"][number]
        if state["present"]:
            if bars and bars[-1][1] == edges[position]:
                bars[-1][1] = edges[position + 1]
            else:
                bars.append([edges[position], edges[position + 1]])
        if state["changed"]:
            (dots if state["present"] else rings).append(edges[position])
    return {"name": name, "color": color, "bars": bars, "dots": dots, "rings": rings}


def version_blocks(slices: Sequence[dict[str, Any]], edges: Sequence[int]) -> list[dict[str, Any]]:
    """Where each version and each gap begins and ends."""
    blocks: list[dict[str, Any]] = []
    for position, each in enumerate(slices):
        version = each["version"]
        if blocks and version is not None and blocks[-1]["version"] == version:
            blocks[-1]["end"] = edges[position + 1]
        else:
            blocks.append({"version": version, "start": edges[position], "end": edges[position + 1]})
    return blocks


def publish_lines(
    published: Sequence[dict[str, Any]], slices: Sequence[dict[str, Any]], edges: Sequence[int]
) -> list[dict[str, Any]]:
    """After each of the newest publishes, the versions that were known: where each begins and ends, and whether the
    publish has written it."""
    lines = []
    for moment in sorted({each["known_from"] for each in published} | ended(published))[-PUBLISHES:]:
        known = [
            each
            for each in published
            if each["known_from"] <= moment and (each["known_to"] == NOW or moment < each["known_to"])
        ]
        blocks = [
            each
            | {
                "start": pixel_of(each["valid_from"], slices, edges),
                "end": pixel_of(each["valid_to"], slices, edges),
                "is_new": each["known_from"] == moment,
            }
            for each in known
        ]
        lines.append({"moment": moment, "blocks": blocks})
    return lines


def ended(published: Sequence[dict[str, Any]]) -> set[str]:
    """The moments at which a publish has changed or removed versions."""
    return {each["known_to"] for each in published if each["known_to"] != NOW}


def pixel_of(moment: str, slices: Sequence[dict[str, Any]], edges: Sequence[int]) -> int:
    """Where a moment is in the picture of the timeline; before and after it, at its ends."""
    if moment == OPEN:
        return edges[-1]
    for position, each in enumerate(slices):
        if moment <= each["valid_from"]:
            return edges[position]
        whole, part = duration(each["valid_from"], each["valid_to"]), duration(each["valid_from"], moment)
        if whole is not None and part is not None and part < whole:
            return edges[position] + round((edges[position + 1] - edges[position]) * part / whole)
    return edges[-1]


def with_old_values(slices: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each change with the value before it, if there is one."""
    found: list[dict[str, Any]] = []
    before: dict[str, Any] | None = None
    for each in slices:
        changes = [
            change | {"is_new": before is None, "old": None if before is None else before[change["attribute"]]}
            for change in each["changes"]
        ]
        ended = [state["source"] for state in each["sources"] if state["changed"] and not state["present"]]
        found.append(each | {"changes": changes, "ended": ended, "anchor": f"from-{len(found) + 1}"})
        is_gap = each["slice"] is None
        before = None if is_gap else {value["attribute"]: value["value"] for value in each["owned"]}
    return found
