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
    path = Path(file).expanduser().resolve()
    try:
        path.write_text(render_page(page, content), encoding="utf-8")
    except OSError as error:
        wanted = "wanted: html: a file in a folder that exists"
        raise DbtRuntimeError(f"healing_tables.{page}: {wanted}; got: {file} ({error.strerror})") from error
    return str(path)


def render_page(page: str, content: dict[str, Any]) -> str:
    templates = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    return templates.get_template(f"{page}.html").render(PAGES[page](content))
