"""dbt_utils for tests: the real package where there is a copy of it, else a stub that has what the tests use."""

from __future__ import annotations

from pathlib import Path

from sessions import ROOT

STUB = ROOT / "integration_tests" / "dbt_utils_stub"
PLACES = [
    ROOT.parent / "shared" / "third_party" / "dbt_utils",  # a copy beside the project
    ROOT / "integration_tests" / "dbt_packages" / "dbt_utils",  # what `dbt deps` has installed
    STUB,
]


def dbt_utils() -> Path:
    return next(place for place in PLACES if (place / "dbt_project.yml").exists())
