"""The documentation names each macro, operation, test and option with its arguments; its links lead somewhere."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
import yaml
from pages import blocks_of
from rendering import Project
from sessions import ROOT

import healing_tables

MACROS = sorted(path.stem for path in (ROOT / "macros").glob("*.sql"))
OPERATIONS = sorted(path.stem for path in (ROOT / "macros" / "operations").glob("[!_]*.sql"))
GENERIC_TESTS = sorted(path.stem for path in (ROOT / "macros" / "generic_tests").glob("*.sql"))
CHECKS = [
    path.stem[1:]
    for path in sorted((ROOT / "macros" / "checks").glob("*.sql"))
    if f"macro _check{path.stem}(" in path.read_text()
]
LINKED = ["README.md", "CONTRIBUTING.md", "RELEASE.md", "SECURITY.md", "CHANGELOG.md"] + [
    str(path.relative_to(ROOT)) for folder in ("docs", "examples") for path in sorted((ROOT / folder).rglob("*.md"))
]


OWN_ANYWHERE = {"spark.sql.warehouse.dir", "spark.hadoop.javax.jdo.option.ConnectionURL"}  # places
OWN = {
    "docs/sources.md": OWN_ANYWHERE | {"spark.jars.packages", "spark.jars.excludes", "spark.driver.extraJavaOptions"}
}


def signature(path: Path) -> dict[str, str | None]:
    """Argument to default (None: required) of the macro or test that has the file's name."""
    pattern = rf"{{%-?\s*(?:macro|test)\s+{path.stem}\((.*?)\)\s*-?%}}"
    match = re.search(pattern, path.read_text(), re.DOTALL)
    assert match, path
    function = ast.parse(f"def f({match[1].strip()}): pass").body[0]
    assert isinstance(function, ast.FunctionDef)
    names = [argument.arg for argument in function.args.args]
    defaults = [ast.unparse(default) for default in function.args.defaults]
    required: list[str | None] = [None] * (len(names) - len(defaults))
    return dict(zip(names, [*required, *defaults], strict=True))


def section(page: str, heading: str) -> str:
    text = (ROOT / page).read_text()
    match = re.search(rf"^#+ .*\b{heading}\b.*\n((?:(?!^#+ ).*\n)*)", text, re.MULTILINE)
    assert match, f"{page} has no section {heading}"
    return match[1]


def first_column(page: str, header: str) -> list[str]:
    """The code names in the first column of the table whose first header is ``header``."""
    for block in blocks_of((ROOT / page).read_text()):
        if block.kind == "table" and block.lines[0].startswith(f"| {header} |"):
            cells = [line.split(" | ")[0] for line in block.lines[2:] if line]
            return [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]
    raise AssertionError(f"{page} has no table of {header}")


@pytest.mark.parametrize("name", MACROS)
def test_macro_is_documented(name: str) -> None:
    arguments = signature(ROOT / "macros" / f"{name}.sql")
    described = yaml.safe_load((ROOT / "macros" / f"{name}.yml").read_text())["macros"]
    assert [macro["name"] for macro in described] == [name]
    assert [argument["name"] for argument in described[0]["arguments"]] == list(arguments)
    assert all(argument["description"] for argument in described[0]["arguments"])
    text = " ".join(section("docs/macros.md", name).split())
    if name == "dimension":
        assert first_column("docs/macros.md", "argument") == list(arguments)
        return
    defaults = {"'(not given)'": "..."}
    listed = ", ".join(
        argument if default is None else f"{argument}={defaults.get(default, default)}"
        for argument, default in arguments.items()
    )
    assert f"`{name}({listed})`" in text


@pytest.mark.parametrize("name", OPERATIONS)
def test_operation_is_documented(name: str) -> None:
    folder = ROOT / "macros" / "operations"
    described = yaml.safe_load((folder / f"{name}.yml").read_text())["macros"]
    assert [macro["name"] for macro in described] == [name]
    arguments = [argument["name"] for argument in described[0]["arguments"]]
    assert arguments == list(signature(folder / f"{name}.sql"))
    assert name in first_column("docs/operations.md", "operation")
    pages = ["operations", "operations-compare", "healing", "facts"]
    text = "".join((ROOT / "docs" / f"{page}.md").read_text() for page in pages)
    assert [argument for argument in arguments if f"`{argument}" not in text and f"{argument}: " not in text] == []


def test_options_of_sources_are_documented() -> None:
    text = (ROOT / "macros" / "spec" / "_source.sql").read_text()
    match = re.search(r"_check_options\(mistakes, at, given, (\[.*?\])\)", text, re.DOTALL)
    assert match
    assert sorted(first_column("docs/macros.md", "option of a source")) == sorted(ast.literal_eval(match[1]))


@pytest.mark.parametrize("name", GENERIC_TESTS)
def test_generic_test_is_documented(name: str) -> None:
    assert name in first_column("docs/tests.md", "test")
    given_by_dbt = {"model", "column_name"}
    arguments = set(signature(ROOT / "macros" / "generic_tests" / f"{name}.sql")) - given_by_dbt
    assert arguments <= set(first_column("docs/tests.md", "argument"))


@pytest.mark.parametrize("name", CHECKS)
def test_check_has_a_test_and_is_documented(name: str) -> None:
    macros = Project({}).macros
    assert sorted(macros._known_checks()) == CHECKS
    assert macros._check(name)["condition"]
    assert name in GENERIC_TESTS
    assert name in first_column("docs/concepts.md", "check")


SETTING = re.compile(r"""["']?(spark[.][\w.]+)["']?[:=] ?["']?([^"'\n]*?)["']?(?: \\|,| +#.*)?$""", re.MULTILINE)
WAYS = ["README.md", *(f"docs/{page}.md" for page in ("install", "sources", "databricks", "glue", "fabric"))]


@pytest.mark.parametrize("page", WAYS)
def test_settings_agree_with_the_profile(page: str) -> None:
    """Each way of running has the settings of profiles.yml, in a profile, a command or Python code."""
    profile = yaml.safe_load((ROOT / "profiles.yml").read_text().replace("{{", "").replace("}}", ""))
    wanted = profile["healing_tables"]["outputs"]["dev"]["server_side_parameters"]
    blocks = [
        dict(SETTING.findall("\n".join(block.lines)))
        for block in blocks_of((ROOT / page).read_text())
        if block.kind in ("yaml", "sh", "python")
    ]
    with_delta = [settings for settings in blocks if "spark.sql.extensions" in settings]
    assert len(with_delta) == {"docs/install.md": 5, "docs/databricks.md": 0, "docs/fabric.md": 0}.get(page, 1)
    for settings in with_delta:
        assert "spark.sql.catalog.spark_catalog" in settings
        assert "spark.sql.codegen.cache.maxEntries" in settings
        assert "spark.databricks.delta.snapshotPartitions" in settings
        if page != "docs/sources.md":  # its jars for S3 need other excludes
            assert ("spark.jars.packages" in settings) == ("spark.jars.excludes" in settings)
    different = [
        (name, value, wanted[name])
        for settings in blocks
        for name, value in settings.items()
        if name in wanted and value != str(wanted[name]) and name not in OWN.get(page, OWN_ANYWHERE)
    ]
    assert different == []


def python_blocks() -> list[Any]:
    """Without a dbt model, and without those that test_install.py and test_files.py run."""
    pages = [page for page in LINKED if page.startswith("docs/") and page not in ("docs/install.md", "docs/files.md")]
    blocks = [
        (page, block.kind, "\n".join(block.lines)) for page in pages for block in blocks_of((ROOT / page).read_text())
    ]
    return [pytest.param(code, id=page) for page, kind, code in blocks if kind == "python" and "def model" not in code]


@pytest.mark.parametrize("code", python_blocks())
def test_python_examples_call_what_exists(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Specs and targets are made as shown; the functions take these arguments."""
    calls = []
    for name in ("merge", "as_of", "known_versions", "erase", "erased", "readmit"):
        shape = inspect.signature(getattr(healing_tables, name))
        monkeypatch.setattr(
            healing_tables, name, lambda *args, _shape=shape, **more: calls.append(_shape.bind(*args, **more))
        )
    given = {name: MagicMock() for name in ("batch", "spark", "sales", "buyers", "loans", "stream", "place")}
    exec(code, given | {"spec": healing_tables.DimensionSpec(key_columns="id")})  # noqa: S102 -- from our own pages
    assert calls or "spec.sink(" in code


def test_the_readme_begins_with_the_installation() -> None:
    first = next(block for block in blocks_of((ROOT / "README.md").read_text()) if block.kind == "sh")
    assert first.lines[0].startswith("pip install dbt-core=="), first.lines


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 200


@pytest.mark.parametrize("page", LINKED)
def test_links_lead_somewhere(page: str) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", (ROOT / page).read_text()):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        file = ((ROOT / page).parent / path).resolve() if path else ROOT / page
        assert file.exists(), target
        if anchor:
            headings: list[Any] = re.findall(r"^#+ (.*)$", file.read_text(), re.MULTILINE)
            slugs = [re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings]
            assert anchor in slugs, target


def test_the_table_of_decisions() -> None:
    """Each record is in it once, with its own title, a known status and a date."""
    folder = ROOT / "docs" / "decisions"
    titles = {path.name: path.read_text().splitlines()[0] for path in sorted(folder.glob("*.md"))}
    del titles["README.md"]
    row = re.compile(r"\| (\d+) \| \[(.*)\]\((\S+)\) \| (.*) \| (\d{4}-\d\d-\d\d) \|")
    lines = [line for line in (folder / "README.md").read_text().splitlines() if line.startswith("| ")][2:]
    rows = [match.groups() for line in lines if (match := row.fullmatch(line))]
    assert len(rows) == len(lines)
    assert [(name, f"# {number}. {title}") for number, title, name, _, _ in rows] == list(titles.items())
    for number, _, _, status, _ in rows:
        later = re.findall(r"\[(\d+)\]\((\d{4})-", status)
        parts = " and ".join(re.findall(r"\[.*?\]\(.*?\)", status))
        assert status == (f"replaced in part by {parts}" if later else "accepted"), number
        assert all(int(name) == int(named) > int(number) for named, name in later), number
