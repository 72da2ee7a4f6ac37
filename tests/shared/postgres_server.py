"""A PostgreSQL server on loopback, at a free port, in a folder of its own; gone when the tests end."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PASSWORD = "p@ss 'word\\ of: tests/"


@dataclass(frozen=True)
class Server:
    port: int

    @property
    def url(self) -> str:
        """Without the password, which is in the environment."""
        return f"postgresql://healer@127.0.0.1:{self.port}/postgres"

    @property
    def connection(self) -> dict[str, Any]:
        """With the password: for processes that have another environment."""
        return {"host": "127.0.0.1", "port": self.port, "user": "healer", "password": PASSWORD, "dbname": "postgres"}

    def connect(self) -> Any:
        import psycopg

        return psycopg.connect(**self.connection, autocommit=True)

    def run(self, statement: str) -> None:
        with self.connect() as connection:
            connection.execute(statement)

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        """The rows of a query, moments in UTC."""
        with self.connect() as connection:
            connection.execute("set time zone 'UTC'")
            return [tuple(row) for row in connection.execute(query).fetchall()]


def programs() -> Path | None:
    """The folder of initdb and pg_ctl; Debian does not put them on the path."""
    found = shutil.which("initdb")
    if found is not None:
        return Path(found).resolve().parent
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return places[-1].parent if places else None


@contextmanager
def running(bin_: Path) -> Iterator[Server]:
    home = Path(tempfile.mkdtemp(prefix="healing_pg"))
    # the server refuses to be root
    user = "postgres" if os.geteuid() == 0 else None
    if user is not None:
        entry = pwd.getpwnam(user)
        os.chown(home, entry.pw_uid, entry.pw_gid)

    def run(*command: str) -> None:
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, user=user, cwd=home, timeout=120)

    secret = home / "secret"
    secret.write_text(PASSWORD)
    secret.chmod(0o644)
    data = str(home / "data")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    settings = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=off"
    try:
        run(
            str(bin_ / "initdb"),
            "-D",
            data,
            "-U",
            "healer",
            "-A",
            "scram-sha-256",
            "--pwfile",
            str(secret),
            "-E",
            "UTF8",
        )
        run(str(bin_ / "pg_ctl"), "-D", data, "-o", settings, "-l", str(home / "log"), "-w", "start")
        try:
            yield Server(port)
        finally:
            run(str(bin_ / "pg_ctl"), "-D", data, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(home, ignore_errors=True)
