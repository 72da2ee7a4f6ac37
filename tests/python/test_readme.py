"""What the documentation shows is run; what it says about arguments is compared with the macros.

In README.md and docs/: a table right after a text that ends with "`name`:" is an input (its header
has types), a ``sql`` block is a model, a table right after it is what the model holds (columns may
be left out; a cell that ends in … is a prefix). A ``yaml`` block whose first line is a path is that
file. All of it runs in one ``dbt build``.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from lab import ROOT, Lab

PAGES = ["README.md", "docs/concepts.md", "docs/tests.md", "docs/merging.md", "docs/facts.md"]
PAGES += ["docs/current-state.md", "docs/leaving-dbt-snapshots.md"]
MACROS = sorted(path.stem for path in (ROOT / "macros").glob("*.sql"))
OPERATIONS = sorted(path.stem for path in (ROOT / "macros" / "operations").glob("[!_]*.sql"))
GENERIC_TESTS = sorted(path.stem for path in (ROOT / "tests" / "generic").glob("*.sql"))
LINKED = [
    *PAGES,
    "docs/figures.md",
    "docs/healing.md",
    "docs/install.md",
    "docs/operations.md",
    "docs/operations-compare.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
] + [str(path.relative_to(ROOT)) for path in sorted((ROOT / "docs" / "decisions").glob("*.md"))]
# Stands for the package of that name, which only the hub has.
STAR = """
{% macro star(from, except=[]) %}
    {%- set columns = adapter.get_columns_in_relation(from) if execute else [] -%}
    {%- for name in columns | map(attribute='name') | reject('in', except) -%}
        {{ adapter.quote(name) }}{{ ', ' if not loop.last }}
    {%- endfor -%}
{% endmacro %}
"""


@dataclass(frozen=True)
class Table:
    header: list[str]
    rows: list[list[str]]


@dataclass(frozen=True)
class Example:
    name: str
    place: str
    sql: str
    result: Table | None = None


@dataclass
class Page:
    inputs: dict[str, Table] = field(default_factory=dict)
    examples: list[Example] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Block:
    """A run of lines: ``text``, ``table``, or the language of a fenced block."""

    kind: str
    line: int
    lines: list[str]


def blocks_of(text: str) -> list[Block]:
    blocks: list[Block] = []
    fence = False
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith("```"):
            fence = not fence
            if fence:
                blocks.append(Block(line[3:].strip() or "code", number, []))
            else:
                blocks.append(Block("end", number, []))
        elif fence:
            blocks[-1].lines.append(line)
        elif line.strip():
            kind = "table" if line.startswith("|") else "text"
            previous = blocks[-1] if blocks else None
            if previous is None or previous.kind != kind or not previous.lines[-1]:
                blocks.append(Block(kind, number, []))
            blocks[-1].lines.append(line)
        elif blocks and blocks[-1].kind in ("table", "text"):
            blocks[-1].lines.append("")
    return [block for block in blocks if block.kind != "end"]


def table_of(block: Block) -> Table:
    lines = [[cell.strip() for cell in line[1:].rstrip().removesuffix("|").split("|")] for line in block.lines if line]
    for number, line in enumerate(lines):
        assert len(line) == len(lines[0]), f"line {block.line + number}: {line}"
    return Table(lines[0], lines[2:])


def read_page(name: str) -> Page:
    page, last = Page(), Block("text", 0, [""])
    for block in blocks_of((ROOT / name).read_text()):
        caption = re.search(r"`(\w+)`:$", "\n".join(last.lines).strip())
        if block.kind == "table" and last.kind == "text" and caption:
            page.inputs[caption[1]] = table_of(block)
        elif block.kind == "table" and last.kind == "sql":
            page.examples[-1] = replace(page.examples[-1], result=table_of(block))
        elif block.kind == "sql":
            path = re.match(r"-- models/(\w+)[.]sql$", block.lines[0])
            model = path[1] if path else f"{Path(name).stem.lower()}_{block.line}"
            place = f"{name}:{block.line}"
            page.examples.append(Example(model, place, "\n".join(block.lines)))
        elif block.kind == "yaml":
            page.files[block.lines[0].removeprefix("# ")] = "\n".join(block.lines)
        last = block
    return page


def input_model(table: Table) -> str:
    columns = [header.rsplit(" ", 1) for header in table.header]
    values = ",\n    ".join(
        "(" + ", ".join(literal(cell, kind) for cell, (_, kind) in zip(row, columns, strict=True)) + ")"
        for row in table.rows
    )
    names = ", ".join(f"`{name}`" for name, _ in columns)
    return f"select * from values\n    {values}\nas rows({names})"


def literal(cell: str, kind: str) -> str:
    if cell == "NULL":
        return f"cast(null as {kind})"
    assert "'" not in cell
    return f"cast('{cell}{'Z' if kind == 'timestamp' else ''}' as {kind})"


def difference(expected: Table, found: list[list[str]]) -> dict[str, list[tuple[str, ...]]]:
    """Rows that one side lacks, as bags; empty if both are the same."""
    prefixes = {
        column: len(row[column]) - 1 for row in expected.rows for column in range(len(row)) if row[column].endswith("…")
    }
    shown = Counter(
        tuple(cell[: prefixes[column]] + "…" if column in prefixes else cell for column, cell in enumerate(row))
        for row in found
    )
    wanted = Counter(tuple(row) for row in expected.rows)
    missing, extra = list((wanted - shown).elements()), list((shown - wanted).elements())
    return {"missing": missing, "extra": extra} if missing or extra else {}


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


READ = {name: read_page(name) for name in PAGES}
EXAMPLES = [example for page in READ.values() for example in page.examples]
SHOWN = [example for example in EXAMPLES if example.result]
FILES = {path: text for page in READ.values() for path, text in page.files.items()}


@pytest.fixture(scope="module")
def documented(lab: Lab) -> Lab:
    stub = lab.home / "dbt_packages" / "dbt_utils"
    lab.write("packages.yml", yaml.safe_dump({"packages": [{"local": str(ROOT)}, {"local": str(stub)}]}))
    lab.write(f"{stub}/dbt_project.yml", "name: dbt_utils\nversion: 1.0.0\nconfig-version: 2\n")
    lab.write(f"{stub}/macros/star.sql", STAR)
    for page in READ.values():
        for name, table in page.inputs.items():
            lab.write(f"models/{name}.sql", input_model(table))
    for example in EXAMPLES:
        lab.write(f"models/{example.name}.sql", example.sql)
    for path, text in FILES.items():
        if path not in ("packages.yml", "profiles.yml"):  # the lab has its own
            lab.write(path, text)
    lab.dbt("build")
    return lab


@pytest.fixture(scope="module")
def found(documented: Lab) -> dict[str, list[list[str]]]:
    """What the models that were built hold, as text, in the columns that the page shows."""
    built = [example for example in SHOWN if documented.results[example.name][0] == "success"]
    return {example.name: found_rows(documented, example) for example in built}


def found_rows(lab: Lab, example: Example) -> list[list[str]]:
    assert example.result
    frame = lab.spark.table(f"{lab.schema}.{example.name}")
    columns = [frame[f"`{name}`"].cast("string") for name in example.result.header]
    return [["NULL" if cell is None else str(cell) for cell in row] for row in frame.select(*columns).collect()]


def test_names_are_used_once() -> None:
    names = [name for page in READ.values() for name in page.inputs]
    names += [example.name for example in EXAMPLES]
    assert [name for name, count in Counter(names).items() if count > 1] == []
    assert len(SHOWN) >= 12


@pytest.mark.proof
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.place)
def test_example(documented: Lab, found: dict[str, list[list[str]]], example: Example) -> None:
    status, message = documented.results[example.name]
    assert status == "success", message
    if example.result:
        assert difference(example.result, found[example.name]) == {}


@pytest.mark.proof
@pytest.mark.parametrize("example", SHOWN, ids=lambda example: example.place)
def test_a_wrong_cell_is_seen(found: dict[str, list[list[str]]], example: Example) -> None:
    assert example.result
    rows = found[example.name]
    for number, row in enumerate(example.result.rows):
        for column in range(len(row)):
            wrong = [list(cells) for cells in example.result.rows]
            wrong[number][column] = "0000…" if row[column].endswith("…") else f"{row[column]}0"
            assert difference(Table(example.result.header, wrong), rows), (number, column)
    assert difference(Table(example.result.header, example.result.rows[1:]), rows)


@pytest.mark.proof
def test_files_are_used_and_their_tests_pass(documented: Lab) -> None:
    nodes = set(documented.results) - {example.name for example in EXAMPLES}
    nodes -= {name for page in READ.values() for name in page.inputs}
    wrong = {name: documented.results[name] for name in nodes}
    wrong = {name: end for name, end in wrong.items() if end[0] not in ("pass", "success")}
    assert wrong == {}
    wanted = sum(text.count("- healing_tables.") for text in FILES.values())
    wanted += sum(text.count("snapshots:") + text.count("unit_tests:") for text in FILES.values())
    assert len(nodes) == wanted


@pytest.mark.parametrize("name", MACROS)
def test_macro_is_documented(name: str) -> None:
    arguments = signature(ROOT / "macros" / f"{name}.sql")
    described = yaml.safe_load((ROOT / "macros" / f"{name}.yml").read_text())["macros"]
    assert [macro["name"] for macro in described] == [name]
    assert [argument["name"] for argument in described[0]["arguments"]] == list(arguments)
    assert all(argument["description"] for argument in described[0]["arguments"])
    text = " ".join(section("README.md", name).split())
    if name == "dimension":
        assert first_column("README.md", "argument") == list(arguments)
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
    assert name in first_column("README.md", "operation")
    pages = ["operations", "operations-compare", "healing", "facts"]
    text = "".join((ROOT / "docs" / f"{page}.md").read_text() for page in pages)
    assert [argument for argument in arguments if f"`{argument}" not in text and f"{argument}: " not in text] == []


def test_options_of_sources_are_documented() -> None:
    text = (ROOT / "macros" / "spec" / "_source.sql").read_text()
    match = re.search(r"_check_options\(mistakes, at, given, (\[.*?\])\)", text, re.DOTALL)
    assert match
    assert sorted(first_column("README.md", "option of a source")) == sorted(ast.literal_eval(match[1]))


@pytest.mark.parametrize("name", GENERIC_TESTS)
def test_generic_test_is_documented(name: str) -> None:
    assert name in first_column("README.md", "test")
    given_by_dbt = {"model", "column_name"}
    arguments = set(signature(ROOT / "tests" / "generic" / f"{name}.sql")) - given_by_dbt
    assert arguments <= set(first_column("docs/tests.md", "argument"))


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
