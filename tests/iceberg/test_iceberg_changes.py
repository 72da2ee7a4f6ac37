"""The reader of a changelog view of Iceberg, in SQL and in Python."""

from __future__ import annotations

from rendered import Rendered

from healing_tables import readers


def test_iceberg_changes(rendered: Rendered) -> None:
    spark, name = rendered.spark, f"{rendered.schema}.watched"
    spark.sql(f"create table {name} (id int, city string) using iceberg")
    spark.sql(f"insert into {name} values (1, 'Oslo')")
    spark.sql(f"update {name} set city = 'Rome' where id = 1")
    spark.sql(
        f"call system.create_changelog_view(table => '{name}', changelog_view => 'watched_changes', "
        "identifier_columns => array('id'))"
    )
    moments = [row.committed_at for row in spark.sql(f"select committed_at from {name}.snapshots order by 1").collect()]
    rendered.model(
        "watched",
        f"{{{{ healing_tables.read_iceberg_changes('watched_changes', '{name}.snapshots', columns=['id', 'city']) }}}}",
    )
    for found in (
        readers.iceberg_changes(spark.table("watched_changes"), spark.table(f"{name}.snapshots")),
        rendered.made("watched"),
    ):
        assert found.columns == ["id", "city", "_changed_at", "_sequence", "_is_deleted"]
        rows = [
            tuple(row)
            for row in found.orderBy("_sequence").selectExpr("*", "_sequence.part").drop("_sequence").collect()
        ]
        assert rows == [
            (1, "Oslo", moments[0], False, 1),
            (1, "Oslo", moments[1], True, 0),
            (1, "Rome", moments[1], False, 1),
        ]
