"""Tables that operations print."""

from __future__ import annotations

from rendering import Project


def test_a_cell_of_markdown_stays_one() -> None:
    text = Project({}).macros._markdown_table(["a_b", "c"], [["x|y\n<b>*`", None], ["\\", "l" * 70]])
    assert text.split("\n") == [
        r"| a\_b | c |",
        "| --- | --- |",
        r"| x\|y\\n\<b\>\*\` | NULL |",
        rf"| \\ | {'l' * 57}... |",
    ]
