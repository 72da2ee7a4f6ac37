"""Models rendered without dbt, over tables that are in Spark."""

from __future__ import annotations

from typing import Any

from dbt.adapters.spark.relation import SparkRelation
from pyspark.sql import DataFrame, SparkSession
from rendering import CompilerError, Project, Rows
from tables import Tables


class SparkProject(Project):
    """A project whose questions Spark answers."""

    def __init__(self, spark: SparkSession, schema: str, name: str, **context: Any) -> None:
        super().__init__({}, name=name)
        self.spark = spark
        self.schema = schema
        self.context.update(context, source=lambda _, table: self.table(table), relation=self.table, view=self.view)
        self.context["target"] = {"schema": schema, "name": "spark"}

    def table(self, name: str) -> SparkRelation:
        return self.relation(name, self.schema)

    def view(self, name: str) -> SparkRelation:
        return self.relation(name, "global_temp")

    def answer(self, query: str) -> Rows:
        return Rows(self.spark.sql(query).collect())


class Rendered(Tables):
    """Models by name; one that is refused keeps its error.

    In a model, ``relation('x')`` and ``source('any', 'x')`` are the table x of this schema, ``view('x')`` is a
    global temporary view, and ``ref('x')`` the model x.
    """

    def __init__(self, spark: SparkSession, *, schema: str) -> None:
        super().__init__(spark, schema=schema)
        self.statements: dict[str, str] = {}
        self.errors: dict[str, str] = {}

    def model(self, name: str, sql: str) -> None:
        self.statements.pop(name, None)
        project = SparkProject(self.spark, self.schema, name, ref=self.ref)
        try:
            self.statements[name] = project.render(sql)
        except CompilerError as error:
            self.errors[name] = str(error)

    def ref(self, name: str) -> SparkRelation:
        self.made(name).createOrReplaceGlobalTempView(f"{self.schema}_{name}")
        return Project.relation(f"{self.schema}_{name}", "global_temp")

    def statement(self, name: str) -> str:
        assert name in self.statements, self.errors.get(name)
        return self.statements[name]

    def made(self, name: str) -> DataFrame:
        """What the model gives."""
        return self.spark.sql(self.statement(name))
