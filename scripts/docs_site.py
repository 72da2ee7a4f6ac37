"""The pages of the site that are not in docs/: a hook of mkdocs, see mkdocs.yml.

The README and other texts of the repository become pages, with their links, and each public macro and operation
gets a page from its yml and the comment above it.
"""

from __future__ import annotations

import ast
import re
from os.path import dirname, join, normpath, relpath
from pathlib import Path
from typing import Any

import yaml
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
# a text of the repository to its page
PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "RELEASE.md": "release.md",
    "SECURITY.md": "security.md",
    "LICENSE": "license.md",
    "examples/retail/README.md": "examples/retail.md",
    "examples/retail/cosmos.md": "examples/retail-cosmos.md",
    **{str(path.relative_to(ROOT)): str(path.relative_to(ROOT)) for path in ROOT.glob("data/**/README.md")},
}
REFERENCE = {"Macros": "macros/[!_]*.yml", "Operations": "macros/operations/*.yml"}
DRAWING = re.compile(r"^```mermaid\n.*?^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)(#[^)\s]*)?\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    decisions = sorted(path.name for path in (ROOT / "docs" / "decisions").glob("[0-9]*.md"))
    reference = {kind: [f"reference/{path.stem}.md" for path in described(kind)] for kind in REFERENCE}
    examples = [page for page in PAGES.values() if page.startswith(("examples/", "data/"))]
    config.nav = [
        *(config.nav or []),
        {"Reference": [*[{kind: pages} for kind, pages in reference.items()], {"Python": "reference/python.md"}]},
        {"Examples": examples},
        {"Decisions": ["decisions/README.md", *[f"decisions/{name}" for name in decisions]]},
        {"Project": ["changelog.md", "contributing.md", "release.md", "security.md", "license.md"]},
    ]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    texts = {page: relinked((ROOT / name).read_text(), name) for name, page in PAGES.items()}
    texts["license.md"] = f"# License\n\n```\n{(ROOT / 'LICENSE').read_text()}```\n"
    texts["reference/python.md"] = python_page()
    for kind in REFERENCE:
        for path in described(kind):
            for macro in yaml.safe_load(path.read_text())["macros"]:
                texts[f"reference/{path.stem}.md"] = reference_page(path, macro)
    for page, text in texts.items():
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, *, page: Page, **_: Any) -> str:
    """Links of a page in docs/ to texts elsewhere in the repository; a drawing as its picture (flow_drawings.py)."""
    picture = f"{Path(page.file.src_uri).stem}.svg"
    markdown = DRAWING.sub(f"[![The steps as a flowchart]({picture})]({picture})", markdown)
    is_own = (ROOT / "docs" / page.file.src_uri).is_file()
    return relinked(markdown, f"docs/{page.file.src_uri}") if is_own else markdown


def described(kind: str) -> list[Path]:
    return sorted(ROOT.glob(REFERENCE[kind]))


def relinked(text: str, source: str) -> str:
    """Args: source: the text's own path in the repository. Raises: ValueError for a link that leads nowhere."""
    own = PAGES.get(source, source.removeprefix("docs/"))

    def moved(link: re.Match[str]) -> str:
        there = normpath(join(dirname(source), link[1]))
        if not (ROOT / there).exists():
            raise ValueError(f"{source}: {link[1]} is not in the repository")
        if there not in PAGES and not there.startswith("docs/"):
            raise ValueError(f"{source}: {link[1]} has no page; add it to PAGES")
        page = PAGES.get(there, there.removeprefix("docs/"))
        return f"]({relpath(page, dirname(own) or '.')}{link[2] or ''})"

    return LINK.sub(moved, text)


def imported(file: Path) -> dict[str, str]:
    """The names that a module imports, each with the path to where it is defined."""
    imports = [node for node in ast.parse(file.read_text()).body if isinstance(node, ast.ImportFrom)]
    return {alias.name: f"{node.module}.{alias.name}" for node in imports for alias in node.names if not alias.asname}


def python_page() -> str:
    """The public names, each from the module that defines it: functions, classes, errors; then the readers."""
    library = ROOT / "src" / "healing_tables"
    paths, readers = imported(library / "__init__.py"), imported(library / "readers" / "__init__.py")
    parts = ["# Python\n"]
    for name in sorted(paths, key=lambda name: (name[0].isupper(), name.endswith("Error"), name)):
        members = "[from_dict, from_yaml, sink]" if name == "DimensionSpec" else "false"
        parts.append(f"::: {paths[name]}\n    options:\n      members: {members}\n")
    parts += [f"::: {readers[name]}\n" for name in sorted(readers)]
    return "\n".join(parts)


def reference_page(path: Path, macro: dict[str, Any]) -> str:
    """A page from the yml of a macro and the comment above its code."""
    comment = re.match(r"\{#-?\n(.*?)-?#\}", path.with_suffix(".sql").read_text(), re.DOTALL)
    lines = [f"# {macro['name']}", "", macro["description"], ""]
    if macro.get("arguments"):
        lines += ["| argument | type | |", "| --- | --- | --- |"]
        for each in macro["arguments"]:
            lines.append(f"| `{each['name']}` | {cell(each['type'])} | {cell(each['description'])} |")
        lines.append("")
    if comment:
        lines += ["```text", *[line.removeprefix("    ") for line in comment[1].rstrip().splitlines()], "```", ""]
    return "\n".join(lines)


def cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
