"""The Python models of this project over their batches, and facts: the tables hold what data/batches says."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from dbt.cli.main import dbtRunner
from example_batches import EXPECTED, FACTS, MODELS, Rows, stored
from lab import PROFILE, Lab
from sessions import ROOT

# the history of type 4 has no model, and no row after the first batch
WANTED = {(model.stem, batch) for model in MODELS for batch in (1, 2, 3)}
WANTED |= {(facts, batch) for facts in FACTS for batch in (1, 2, 3)}
WANTED |= {("dim_machine_current_history", 2), ("dim_machine_current_history", 3)}


def commits(lab: Lab) -> dict[str, int]:
    tables = {table for table, _ in EXPECTED} - set(FACTS) - {"dim_user"}
    found = {table: len(lab.spark.sql(f"describe history {lab.schema}.{table}").collect()) for table in tables}
    return found | {"dim_user": lab.spark.table(f"{lab.schema}.dim_user__commits").count()}


def dbt(lab: Lab, command: str, batch: int) -> dict[str, str]:
    """Run this checkout's own project with the schema and the folders of the test; what did not go well."""
    folders = ["--project-dir", str(ROOT), "--profiles-dir", str(lab.home)]
    folders += ["--target-path", str(lab.home / "target"), "--log-path", str(lab.home / "logs")]
    variables = ["--vars", f"{{batch: {batch}}}"]
    selected = ["path:python_models", *[f"+{facts}" for facts in FACTS]]
    outcome = dbtRunner().invoke([command, "--select", *selected, *variables, *folders])
    assert outcome.exception is None, outcome.exception
    results: Any = outcome.result
    assert len(results) >= len(MODELS)
    return {
        result.node.name: f"{result.status}: {result.message}"
        for result in results
        if result.status not in ("success", "pass")
    }


@dataclass
class Outcome:
    """What the runs have left: tables by name and batch, what failed by run, tables that a repeated batch changed."""

    stored: dict[tuple[str, int], list[Rows]] = field(default_factory=dict)
    failed: dict[str, dict[str, str]] = field(default_factory=dict)
    committed_again: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def outcome(lab: Lab, interpreted: None) -> Outcome:
    found = Outcome()
    lab.write("profiles.yml", PROFILE.replace("lab:", "healing_tables:") % lab.schema)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DBT_PROJECT_DIR", str(ROOT))
        for batch in (1, 2, 3):
            # the tests of the models come with the last batch, when there is most to see
            found.failed[f"batch {batch}"] = dbt(lab, "build" if batch == 3 else "run", batch)
            for (table, number), tables in EXPECTED.items():
                if number == batch:
                    found.stored[table, number] = [stored(lab, table, header) for header, *_ in tables]
        before = commits(lab)
        found.failed["batch 3 again"] = dbt(lab, "run", 3)
        after = commits(lab)
        found.committed_again = [table for table in after if after[table] != before[table]]
    return found


def test_every_model_says_what_is_stored_after_each_batch() -> None:
    assert set(EXPECTED) == WANTED


@pytest.mark.parametrize("model", MODELS, ids=lambda model: str(model.stem))
def test_models_are_short(model: Path) -> None:
    assert len(model.read_text().splitlines()) < 20


def test_all_models_run_and_their_tests_pass(outcome: Outcome) -> None:
    assert {run: failed for run, failed in outcome.failed.items() if failed} == {}


@pytest.mark.parametrize("table, batch", EXPECTED, ids=lambda value: str(value))
def test_stored_after(outcome: Outcome, table: str, batch: int) -> None:
    for (_, *rows), found in zip(EXPECTED[table, batch], outcome.stored[table, batch], strict=True):
        assert sorted(found) == sorted(rows)


def test_the_last_batch_again_commits_nothing(outcome: Outcome) -> None:
    assert outcome.committed_again == []
