"""What `--target` of the command line names."""

from __future__ import annotations

import pytest

from healing_tables import PostgresTarget
from healing_tables.cli import target_of
from healing_tables.errors import ArgumentError


@pytest.mark.parametrize(
    ("text", "connection"),
    [
        ("postgresql://healer@db.example.com/shop?table=a.b", "postgresql://healer@db.example.com/shop"),
        ("postgresql://db:5433/shop?sslmode=require&table=a.b", "postgresql://db:5433/shop?sslmode=require"),
        # the host, or all of it, comes from the environment
        ("postgresql:///shop?table=a.b", "postgresql:///shop"),
        ("postgresql:///?table=a.b", "postgresql:///"),
        ("postgresql://?table=a.b&connect_timeout=3", "postgresql://?connect_timeout=3"),
    ],
)
def test_a_url_of_postgres_is_a_table_and_a_connection(text: str, connection: str) -> None:
    assert target_of(text) == PostgresTarget("a.b", connection)


def test_a_url_without_a_host_and_a_table_says_how_to_name_it() -> None:
    with pytest.raises(ArgumentError, match=r"postgresql:///shop\?table=schema\.table"):
        target_of("postgresql:///shop")
