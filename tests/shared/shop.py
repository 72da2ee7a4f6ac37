"""The shop of docs/sources.md in PostgreSQL, on two days, and the file with its password."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

FIRST_DAY = r"""
create schema shop;
create table shop.users (
    user_id int, "Full Name" text, balance numeric(38, 10), extra jsonb, ref uuid, local_at timestamp,
    changed_at timestamptz, loaded_at timestamptz);
insert into shop.users values
    (1, E'Ann "the\nuser" o''Hara \\', 1234567890123456789012345678.0123456789, '{"a": 1}',
     'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '2024-03-10 02:30:00.123456', '2024-03-10 02:30:00.123456Z',
     '2024-03-10 03:00Z'),
    (2, null, null, null, null, null, '2024-01-01 00:00Z', '2024-03-10 03:00Z');
create table shop.accounts (account_id int, "Full Name" text, balance numeric(38, 10));
insert into shop.accounts values (1, E'Ann\nBerg', -0.0000000001), (2, null, null);
"""
SECOND_DAY = """
insert into shop.users (user_id, "Full Name", changed_at, loaded_at) values
    (2, 'Bea', '2024-11-03 05:30Z', '2024-11-03 05:30Z');
update shop.accounts set "Full Name" = 'Bea' where account_id = 2;
"""


def connect() -> Any:
    import psycopg

    return psycopg.connect(os.environ["SHOP_DSN"], password=os.environ["SHOP_PASSWORD"], autocommit=True)


def new_shop() -> None:
    with connect() as connection:
        connection.execute("drop schema if exists shop cascade")
        connection.execute(FIRST_DAY)


def new_day() -> None:
    with connect() as connection:
        connection.execute(SECOND_DAY)


def say_password(password: str) -> None:
    """Write the file that ``PGPASSFILE`` names."""
    escaped = password.replace("\\", "\\\\").replace(":", "\\:")
    path = Path(os.environ["PGPASSFILE"])
    path.touch(mode=0o600)
    path.write_text(f"127.0.0.1:*:*:healer:{escaped}\n")
