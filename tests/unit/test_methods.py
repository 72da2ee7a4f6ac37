"""The methods that every adapter of dbt gets."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from dbt.adapters.spark.impl import SparkAdapter
from dbt_common.exceptions import DbtRuntimeError
from page_content import logged

from dbt_healing_tables.methods import METHODS, add_methods, read_state, versions


def test_an_adapter_gets_these_methods_only() -> None:
    class Other(SparkAdapter):
        pass

    before = set(Other._available_)
    add_methods(Other)
    add_methods(Other)
    assert set(Other._available_) - before == set(METHODS)
    assert not set(METHODS) & set(SparkAdapter._available_)
    made: Any = object.__new__(Other)
    made.config = SimpleNamespace()
    with pytest.raises(DbtRuntimeError, match="a folder that exists"):
        made.healing_tables_write_page("report", logged(1), "/none/page.html")
    with pytest.raises(DbtRuntimeError, match="a folder with the manifest.json"):
        made.healing_tables_read_state("/none", "state")


def test_the_start_of_dbt_loads_no_spark() -> None:
    """The methods are added whenever dbt starts."""
    code = "import sys, dbt_healing_tables.methods; print('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout == "False\n"


def test_the_tables_of_a_manifest(tmp_path: Path) -> None:
    def node(kind: str, materialized: str) -> dict[str, object]:
        place = {"database": None, "schema": "prod", "alias": kind}
        return {"resource_type": kind, "config": {"materialized": materialized}, "name": "other", **place}

    nodes = {
        "model.shop.dim": node("model", "table"),
        "model.shop.part": node("model", "ephemeral"),
        "seed.shop.codes": node("seed", "seed"),
        "snapshot.shop.old": node("snapshot", "snapshot"),
        "test.shop.unique": node("test", "test"),
    }
    (tmp_path / "manifest.json").write_text(json.dumps({"nodes": nodes, "sources": {}}), encoding="utf-8")
    assert read_state(str(tmp_path.parent), tmp_path.name) == read_state("/none", str(tmp_path))
    assert read_state("/none", str(tmp_path)) == {
        f"{kind}.shop.{name}": {"database": None, "schema": "prod", "alias": kind}
        for kind, name in (("model", "dim"), ("seed", "codes"), ("snapshot", "old"))
    }


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"nodes": null}', '{"nodes": {"model.shop.dim": {}}}'])
def test_what_is_no_manifest(tmp_path: Path, text: str) -> None:
    (tmp_path / "manifest.json").write_text(text, encoding="utf-8")
    with pytest.raises(DbtRuntimeError, match=r"wanted: --state: a folder with the manifest\.json of a run"):
        read_state("/none", str(tmp_path))


def test_the_versions_of_packages() -> None:
    assert versions(["pytest", "no-such-package"]) == {"pytest": pytest.__version__, "no-such-package": None}
