"""Methods of every adapter of dbt: what macros cannot do."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from dbt.adapters.base.meta import available
from dbt_common.exceptions import DbtRuntimeError

from dbt_healing_tables.pages.write import write_page, write_text


def read_state(project: str, folder: str) -> dict[str, dict[str, str | None]]:
    """Where another run has its models, snapshots and seeds.

    Args: project: the root of the dbt project. folder: where that run left ``manifest.json``, absolute or relative
        to ``project``, as in dbt.
    Returns: unique_id to ``database``, ``schema`` and ``alias``; ephemeral models have no table.
    Raises: DbtRuntimeError if there is no manifest.
    """
    path = Path(project) / Path(folder).expanduser() / "manifest.json"
    try:
        nodes = json.loads(path.read_text(encoding="utf-8"))["nodes"]
        return {
            unique_id: {part: node[part] for part in ("database", "schema", "alias")}
            for unique_id, node in nodes.items()
            if node["resource_type"] in ("model", "snapshot", "seed") and node["config"]["materialized"] != "ephemeral"
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        wanted = "wanted: --state: a folder with the manifest.json of a run"
        raise DbtRuntimeError(f"healing_tables: {wanted}; got: {path} ({error!r})") from error


def versions(names: Iterable[str]) -> dict[str, str | None]:
    """The versions of Python packages; None for one that is not installed."""
    found: dict[str, str | None] = {}
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found


METHODS: dict[str, Callable[..., Any]] = {
    "healing_tables_write_page": write_page,
    "healing_tables_write_text": write_text,
    "healing_tables_read_state": read_state,
    "healing_tables_versions": versions,
}


def add_methods(adapter: Any) -> None:
    """Add the methods to a class of adapters; nothing else of the class changes."""
    for name, function in METHODS.items():
        if name not in adapter._available_:
            setattr(adapter, name, available(without_self(function)))
            adapter._available_ |= {name}


def without_self(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda _, *arguments: function(*arguments)
