"""A plugin of pytest, `-p mutant_uses`: records which tests execute each line of the library, and each macro.

Each process writes target/mutants/recorded_<process>.json; scripts/mutants.py reads these files.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import coverage
import pytest
import rendering
from dbt.clients.jinja import MacroGenerator

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "healing_tables"


class Recorder:
    """What runs now is recorded for ``user``: a test, or its file while a fixture runs."""

    def __init__(self) -> None:
        self.user = ""
        self.macros: dict[str, set[str]] = {}
        self.coverage = coverage.Coverage(data_file=None, source=[str(ROOT / "src")], config_file=False)

    def begin(self) -> None:
        call_of_dbt, find = MacroGenerator.call_macro, rendering.Package.__getattr__

        def call(generator: MacroGenerator, *args: Any, **kwargs: Any) -> Any:
            if getattr(generator.macro, "package_name", "") == PACKAGE:
                self.record(generator.macro.name)
            return call_of_dbt(generator, *args, **kwargs)

        def get(package: rendering.Package, name: str) -> Callable[..., Any]:
            self.record(name)
            return find(package, name)

        MacroGenerator.call_macro = call  # type: ignore[method-assign, assignment]
        rendering.Package.__getattr__ = get  # type: ignore[method-assign]
        self.coverage.start()

    def record(self, macro: str) -> None:
        self.macros.setdefault(macro, set()).add(self.user)

    def use(self, user: str) -> None:
        self.user = user
        self.coverage.switch_context(user)

    def write(self, path: Path) -> None:
        self.coverage.stop()
        data = self.coverage.get_data()
        lines = {
            str(Path(file).relative_to(ROOT)): {
                str(line): sorted(filter(None, users)) for line, users in data.contexts_by_lineno(file).items()
            }
            for file in data.measured_files()
        }
        macros = {name: sorted(users) for name, users in self.macros.items()}
        path.write_text(json.dumps({"lines": lines, "macros": macros}))


RECORDER = Recorder()


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests() -> None:
    """Before tests/conftest.py imports the library, so that what runs on import is known, too."""
    RECORDER.begin()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    RECORDER.use(item.nodeid.partition("::")[0])
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    RECORDER.use(item.nodeid)
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    RECORDER.use(item.nodeid.partition("::")[0])
    return (yield)


def pytest_sessionfinish() -> None:
    process = os.environ.get("PYTEST_XDIST_WORKER", "main")
    RECORDER.write(Path(os.environ["HEALING_TABLES_USES"]) / f"recorded_{process}.json")
