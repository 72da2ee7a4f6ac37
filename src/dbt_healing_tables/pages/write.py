"""Write a page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from dbt_common.exceptions import DbtRuntimeError
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from dbt_healing_tables.pages.explain import explain_page
from dbt_healing_tables.pages.report import report_page

PAGES: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {"explain": explain_page, "report": report_page}


def write_page(page: str, content: dict[str, Any], file: str) -> str:
    """Write a page.

    Args: page: a name of PAGES. content: what the macro of that name has found.
    Returns: the path of the file.
    Raises: DbtRuntimeError if the file cannot be written.
    """
    return write(page, "html", render_page(page, content), file)


def write_text(operation: str, text: str, file: str) -> str:
    """Write what an operation has generated. Returns, Raises: as `write_page`."""
    return write(operation, "file", text, file)


def write(operation: str, argument: str, text: str, file: str) -> str:
    path = Path(file).expanduser().resolve()
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        wanted = f"wanted: {argument}: a file in a folder that exists"
        raise DbtRuntimeError(f"healing_tables.{operation}: {wanted}; got: {file} ({error.strerror})") from error
    return str(path)


def render_page(page: str, content: dict[str, Any]) -> str:
    templates = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    return templates.get_template(f"{page}.html").render(PAGES[page](content))
