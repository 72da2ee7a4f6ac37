"""Renders the macros without dbt and Spark: in plain Jinja, with a small fake of dbt's context and a fixed catalogue.

    project = Project({"db.log": {"id": "int", "at": "date", "name": "string"}})
    project.render("{{ healing_tables.dimension({'log': {'relation': relation('log'), 'changed_at': 'at'}}, 'id') }}")

What needs a warehouse's answer beyond the columns of a table, or dbt itself, is tested with them.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jinja2
import yaml
from dbt.adapters.contracts.relation import RelationType
from dbt.adapters.spark.relation import SparkRelation
from jinja2 import nodes
from jinja2.ext import Extension
from jinja2.parser import Parser

ROOT = Path(__file__).parents[2]
SCHEMA = "db"


class CompilerError(Exception):
    """What `exceptions.raise_compiler_error` raises."""


class Returned(Exception):
    """The value that a macro has passed to return()."""

    def __init__(self, value: Any) -> None:
        self.value = value


class DbtBlocks(Extension):
    """The blocks that dbt adds to Jinja, read as macros: `test x(...)` becomes test_x, `materialization x` becomes
    x."""

    tags = {"test", "materialization"}  # noqa: RUF012

    def parse(self, parser: Parser) -> nodes.Macro:
        tag = next(parser.stream)
        macro = nodes.Macro(lineno=tag.lineno)
        macro.name = parser.stream.expect("name").value
        macro.args, macro.defaults = [], []
        if tag.value == "test":
            macro.name = f"test_{macro.name}"
            parser.parse_signature(macro)
        while parser.stream.current.type != "block_end":
            next(parser.stream)
        macro.body = parser.parse_statements((f"name:end{tag.value}",), drop_needle=True)
        return macro


@cache
def environment() -> jinja2.Environment:
    return jinja2.Environment(extensions=["jinja2.ext.do", DbtBlocks], undefined=jinja2.ChainableUndefined)


@cache
def templates() -> list[jinja2.Template]:
    return [environment().from_string(file.read_text()) for file in sorted((ROOT / "macros").rglob("*.sql"))]


class Package:
    """`healing_tables.<macro>`; a macro returns what it passes to return(), or else its text."""

    def __init__(self, context: dict[str, Any]) -> None:
        self._macros: dict[str, Callable[..., Any]] = {}
        for template in templates():
            own = template.new_context(context, shared=True)
            list(template.root_render_func(own))
            self._macros.update(own.vars)

    def replace(self, name: str, macro: Callable[..., Any]) -> None:
        self._macros[name] = macro

    def dispatch(self, name: str, package: str) -> Callable[..., Any]:
        own = f"spark__{name}"
        found: Callable[..., Any] = getattr(self, own if own in self._macros else f"default__{name}")
        return found

    def __getattr__(self, name: str) -> Callable[..., Any]:
        macro = self._macros[name]

        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return str(macro(*args, **kwargs))
            except Returned as returned:
                return returned.value

        return call


class Rows(list[tuple[Any, ...]]):
    """The result of a query as dbt gives it: `.rows` are tuples."""

    @property
    def rows(self) -> Rows:
        return self


class Project:
    """A dbt project with one model, and tables with columns but without rows.

    Args:
        catalogue: `schema.table` to {column: type}.
        config, variables: of the model and of the run.
    """

    def __init__(
        self,
        catalogue: Mapping[str, Mapping[str, str]],
        *,
        config: Mapping[str, Any] | None = None,
        variables: Mapping[str, Any] | None = None,
        name: str = "dim",
    ) -> None:
        self.catalogue = catalogue
        self.queries: list[str] = []
        self.results: dict[str, Rows] = {}
        variables = variables or {}
        settings = {"materialized": "view", **(config or {})}
        model = {
            "name": name,
            "resource_type": "model",
            "config": settings,
            "columns": {},
            "language": "sql",
        }
        self.context: dict[str, Any] = {
            **environment().globals,
            "execute": True,
            "flags": SimpleNamespace(INTROSPECT=True, EMPTY=False, FULL_REFRESH=False, WHICH="run", WARN_ERROR=False),
            "invocation_args_dict": {},
            "invocation_id": "01234567-89ab-cdef-0123-456789abcdef",
            "project_name": "unit",
            "dbt_version": "1.12.0",
            "graph": {"nodes": {}, "sources": {}},
            "model": model,
            "config": settings,
            "this": self.relation(name),
            "target": {"schema": SCHEMA, "name": "unit"},
            "modules": SimpleNamespace(re=re, datetime=datetime, pytz=SimpleNamespace(utc=datetime.timezone.utc)),
            "api": SimpleNamespace(Relation=SparkRelation),
            "options_clause": lambda: "",
            "local_md5": lambda text: hashlib.md5(text.encode()).hexdigest(),
            "exceptions": SimpleNamespace(raise_compiler_error=raise_compiler_error),
            "return": return_,
            "var": lambda name, default=None: variables.get(name, default),
            "log": lambda *_, **__: "",
            "tojson": json.dumps,
            "fromjson": json.loads,
            "fromyaml": yaml.safe_load,
            "run_query": self.answer,
            "statement": self.statement,
            "load_result": lambda name: {"table": self.results[name]},
            "relation": self.relation,
            "load_relation": lambda relation: relation if str(relation) in self.catalogue else None,
            "env_var": os.environ.get,
        }
        self.context["context"] = self.context
        self.context["render"] = self.render
        self.context["healing_tables"] = self.macros = Package(self.context)
        self.context["adapter"] = SimpleNamespace(type=lambda: "spark", dispatch=self.macros.dispatch)

    @staticmethod
    def relation(name: str, schema: str = SCHEMA) -> SparkRelation:
        return SparkRelation.create(schema=schema, identifier=name, type=RelationType.Table)

    def render(self, text: str) -> str:
        """The text of a model as SQL. Raises: CompilerError."""
        try:
            return environment().from_string(text).render(self.context)
        except Returned as returned:
            return str(returned.value)

    def statement(self, name: str = "", *, caller: Callable[[], str], **_: Any) -> str:
        self.results[name] = self.answer(caller())
        return ""

    def answer(self, query: str) -> Rows:
        """What a warehouse with these tables says: their columns, no settings, no analysis errors.

        Raises: AssertionError on a query that only a warehouse can answer.
        """
        query = query.strip()
        self.queries.append(query)
        described = re.fullmatch(r"describe table (\S+)", query)
        if described:
            columns = self.catalogue.get(described[1], {})
            return Rows((name, kind, None) for name, kind in columns.items())
        if query.startswith("explain "):
            return Rows([("== Physical Plan ==",)])
        if query.startswith("set "):
            return Rows([(query[4:], "<undefined>")])
        raise AssertionError(f"no answer to: {query}")


def return_(value: Any) -> None:
    raise Returned(value)


def raise_compiler_error(message: str) -> None:
    raise CompilerError(message)
