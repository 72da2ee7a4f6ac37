"""Sources in PostgreSQL and on S3, as docs/sources.md configures them, in processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import shop
from postgres_server import PASSWORD, Server
from s3_server import SECRET_KEY, S3Server
from sources_page import files_of_the_page, page_settings

HERE = Path(__file__).parent
# of the password, what no text writes in another way
SECRETS = (PASSWORD[:4], SECRET_KEY)
ANN = 'Ann "the\nuser" o\'Hara \\'
REF = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"
BALANCE = "1234567890123456789012345678.0123456789"


@pytest.fixture(scope="module")
def environment(postgres: Server, s3: S3Server, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What the page says, a time zone with summer time, and the shop."""
    given = s3.environment | {
        "SHOP_URL": f"jdbc:postgresql://127.0.0.1:{postgres.port}/postgres",
        "SHOP_USER": "healer",
        "SHOP_DSN": postgres.url,
        "SHOP_PASSWORD": PASSWORD,
        "PGPASSFILE": str(tmp_path_factory.mktemp("secrets") / "pgpass"),
        "LAKE": s3.url("lake"),
        "TZ": "America/New_York",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name in ("SHOP_DSN", "SHOP_PASSWORD", "PGPASSFILE"):
            patch.setenv(name, given[name])
        shop.new_shop()
        shop.say_password(PASSWORD)
    return os.environ | given


@pytest.fixture(scope="module")
def seen(environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a process with a session has seen."""
    home = tmp_path_factory.mktemp("sources")
    done = subprocess.run(
        [sys.executable, HERE / "sources.py", home],
        check=False,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    seen: dict[str, Any] = json.loads((home / "seen.json").read_text())
    seen["output"] = done.stdout + done.stderr
    seen["files"] = [str(path) for path in (home / "lab").rglob("*") if path.is_file() and holds_a_secret(path)]
    return seen


def holds_a_secret(path: Path) -> bool:
    text = path.read_bytes()
    return any(secret.encode() in text for secret in SECRETS)


def test_a_dimension_of_both(seen: dict[str, Any]) -> None:
    """Built, then healed: values are exact in any time zone."""
    assert {status for status, _ in (seen["first"] | seen["second"]).values()} == {"success"}
    assert seen["dim_user"] == [
        [1, None, None, None, None, None, "Oslo", 1_706_745_600_000_001],
        [1, ANN, BALANCE, '{"a": 1}', REF, "2024-03-10 02:30:00.123456", "Oslo", 1_710_037_800_123_456],
        [2, None, None, None, None, None, None, 1_704_067_200_000_000],
        [2, "Bea", None, None, None, None, None, 1_730_611_800_000_000],
        [2, "Bea", None, None, None, None, "Rome", 1_730_612_700_000_000],
    ]
    assert seen["builds"] == [["rebuild", "published"], ["heal", "published"]]


def test_types_and_time_zones(seen: dict[str, Any]) -> None:
    types = [seen["types"][name] for name in ("balance", "extra", "ref", "local_at", "changed_at")]
    assert types == ["decimal(38,10)", "string", "string", "timestamp_ntz", "timestamp"]
    assert seen["autumn"] == [[2]]  # 01:30 in New York comes twice on that day


def test_a_capture(seen: dict[str, Any]) -> None:
    assert seen["accounts"] == [
        [1, "Ann\nBerg", "-1E-10", False],
        [2, None, None, False],
        [2, "Bea", None, False],
    ]


def test_batches(seen: dict[str, Any]) -> None:
    assert seen["dim_account"] == [[1, "Ann\nBerg", True], [2, None, False], [2, "Bea", True]]
    assert seen["dim_phone"] == [[1, '+47 "1"\nnext line', True], [2, None, True]]


def test_no_secret_is_shown(seen: dict[str, Any]) -> None:
    assert [seen["wrong"][name][0] for name in ("dim_account", "dim_user")] == ["error", "error"]
    assert "FAILED_JDBC.CONNECTION" in str(seen["wrong"])
    for place, text in (seen["places"] | {"log": seen["log"], "output": seen["output"]}).items():
        for secret in SECRETS:
            assert secret not in text, place
    assert "spark.sql.catalog.secret.password" in seen["places"]["set"]
    assert seen["files"] == []


def test_a_delta_table_on_s3(seen: dict[str, Any], s3: S3Server) -> None:
    assert seen["on_s3"] == [["A", "2024-01-01", False], ["B", "2024-01-02", True]]
    assert s3.keys("lake/dim_account/_delta_log/")


def test_the_command_line(environment: dict[str, str], seen: dict[str, Any], s3: S3Server, tmp_path: Path) -> None:
    """In the session of the process from S3, and with spark-defaults.conf from PostgreSQL into S3."""
    assert (seen["by_command"], seen["addresses"]) == (0, [["Oslo"], ["Rome"]])
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        settings = page_settings(files_of_the_page())
    lines = [f"{name} {value}" for name, value in settings.items() if "javax.jdo" not in name]
    (tmp_path / "spark-defaults.conf").write_text("\n".join(lines))
    (tmp_path / "spec.yml").write_text("KEYS: [account_id]\n")
    target = s3.url("lake/by_command")
    command = [str(Path(sys.executable).parent / "healing-tables"), "merge", "--spec", "spec.yml"]
    done = subprocess.run(
        [*command, "--batch", "pg.shop.accounts", "--target", target],
        check=False,
        env=environment | {"SPARK_CONF_DIR": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert "2 inserted" in done.stderr, done.stderr[-3000:]
    assert not any(secret in done.stdout + done.stderr for secret in SECRETS)
    assert s3.keys("lake/by_command/_delta_log/")
