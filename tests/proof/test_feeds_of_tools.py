"""A history as a tool writes it gives the dimension of its plain change log: by a rebuild, by heals in instalments, by
merges of either way in any order, and by a stream."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from lab import Lab
from random_histories import LAST, LOGGED, SEED, assert_is, mix, spec_for
from sessions import FORMAT
from tool_feeds import TOOLS, expected, in_parts
from ways import merge_by_sql, merge_model

from healing_tables import merge, readers

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("interpreted")]
TYPES = {"debezium": "types mixed", "dms": "flat"}


class Story:
    """One feed in a project: a view that reads what has arrived, and the rows so read in a table that only grows."""

    def __init__(self, lab: Lab, tool: str) -> None:
        self.lab, self.tool, self.feed = lab, tool, TOOLS[tool](SEED)
        self.schema, self.attributes = lab.schema, mix(SEED, LOGGED[TYPES[tool]])
        self.spec = spec_for(self.attributes, deleted_when=None)
        arguments = "".join(f", {name}={value!r}" for name, value in self.feed.reader.items())
        read = f"{{{{ healing_tables.read_{tool}(source('raw', '{tool}'){arguments}) }}}}"
        lab.model(f"{tool}_read", read)
        tables = ", ".join(f"{{name: {name}}}, {{name: {name}_rows}}" for name in TOOLS)
        lab.write("models/sources.yml", f"sources: [{{name: raw, schema: {lab.schema}, tables: [{tables}]}}]\n")

    def name(self, way: str) -> str:
        return f"{self.schema}.{self.tool}_{way}"

    def arrive(self, messages: list[tuple[Any, ...]]) -> None:
        frame = self.lab.spark.createDataFrame(messages, self.feed.ddl)
        frame.write.mode("overwrite").saveAsTable(f"{self.schema}.{self.tool}", format=FORMAT)
        self.lab.dbt("run", "--select", f"{self.tool}_read")
        assert self.lab.succeeded, self.lab.results

    def dimension(self, way: str, source: str, **options: Any) -> None:
        call = repr({"feed": {"relation": "RELATION", **self.feed.options}}).replace("'RELATION'", source)
        self.lab.model(
            f"{self.tool}_{way}",
            f"{{{{ healing_tables.dimension({call}, attributes={self.attributes!r}, valid_to_current='{LAST}') }}}}",
            materialized="healing_table",
            unique_key="id",
            meta={"healing_tables": {"max_removed_keys_ratio": 1, "max_removed_versions_ratio": 1, **options}},
        )

    def run(self, way: str) -> dict[str, Any]:
        self.lab.dbt("run", "--select", f"{self.tool}_{way}")
        assert self.lab.succeeded, self.lab.results
        row: dict[str, Any] = self.lab.newest(f"{self.tool}_{way}")
        return row

    def check(self, way: str) -> None:
        assert_is(self.lab.spark, self.name(way), expected(self.feed, self.spec))


@pytest.fixture(scope="module", params=TOOLS)
def story(lab: Lab, interpreted: None, request: pytest.FixtureRequest) -> Story:
    return Story(lab, request.param)


def test_a_rebuild(story: Story) -> None:
    story.arrive(story.feed.messages)
    story.dimension("rebuilt", f"ref('{story.tool}_read')")
    story.run("rebuilt")
    story.check("rebuilt")


def test_heals_in_instalments(story: Story) -> None:
    rows, modes = f"{story.schema}.{story.tool}_rows", []
    story.dimension("healed", f"source('raw', '{story.tool}_rows')", mode="heal")
    for number, part in enumerate(in_parts(story.feed.messages, 4)):
        story.arrive(part)
        read = story.lab.spark.table(story.name("read"))
        if number == 0:
            read.limit(0).write.saveAsTable(rows, format=FORMAT)
            story.lab.spark.sql(f"alter table {rows} set tblproperties (delta.enableChangeDataFeed = true)")
        read.write.mode("append").saveAsTable(rows, format=FORMAT)
        modes.append(story.run("healed")["mode"])
    story.check("healed")
    assert modes[0] == "rebuild" and "heal" in modes or story.tool == "debezium", modes  # truncations come with most


@pytest.mark.parametrize("way", ["sql", "library", "both"])
def test_merges_in_any_order(story: Story, way: str) -> None:
    model = f"merged_{way}"
    options = {**story.feed.options, "max_removed_keys_ratio": 1, "valid_to_current": LAST}
    spec = spec_for(story.attributes, **{**options, "change_log": f"{story.name(model)}_changes"})
    parts = in_parts(story.feed.messages, 4)
    for number, part in enumerate([parts[2], parts[0], parts[3], parts[1], parts[2]]):
        batch = getattr(readers, story.tool)(story.lab.spark.createDataFrame(part, story.feed.ddl), **story.feed.reader)
        if way == "library" or (way == "both" and number % 2):
            merge(batch, story.name(model), spec)
        else:
            merge_model(story.lab, f"{story.tool}_{model}", batch, **options, attributes=story.attributes)
            merge_by_sql(story.lab, f"{story.tool}_{model}")
    story.check(model)


def test_a_stream(story: Story, tmp_path: Path) -> None:
    spark, table = story.lab.spark, story.name("messages")
    options = {**story.feed.options, "change_log": f"{story.name('streamed')}_changes"}
    sink = spec_for(story.attributes, **options).sink(story.name("streamed"))
    for number, part in enumerate(in_parts(story.feed.messages, 3)):
        frame = spark.createDataFrame(part, story.feed.ddl)
        frame.write.mode("append" if number else "overwrite").saveAsTable(table, format=FORMAT)
        messages = spark.readStream.table(table)
        read = getattr(readers, story.tool)(messages, **story.feed.reader)
        writer = read.writeStream.foreachBatch(sink).option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.trigger(availableNow=True).start().awaitTermination()
    story.check("streamed")
