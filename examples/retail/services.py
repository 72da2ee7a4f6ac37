"""PostgreSQL and an S3 server on loopback, at free ports, in a temporary folder; gone when the example ends."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

USER = "postgres"


class MissingProgramError(RuntimeError):
    """PostgreSQL is not installed."""


@contextmanager
def services() -> Iterator[dict[str, str]]:
    """Starts both; gives the variables of the environment that lead to them, with passwords that nobody else has.

    Raises: MissingProgramError.
    """
    with tempfile.TemporaryDirectory(prefix="healing_retail_") as name:
        home = Path(name)
        # the folder of the database in it belongs to another user
        home.chmod(0o755)
        with postgres(home) as of_postgres, s3_server(home) as of_s3:
            yield {"RETAIL_HOME": name, **of_postgres, **of_s3}


@contextmanager
def postgres(home: Path) -> Iterator[dict[str, str]]:
    programs = postgres_programs()
    # PostgreSQL refuses to run as root
    user = USER if os.geteuid() == 0 else None
    place = home / "postgres"
    place.mkdir(mode=0o700)
    port, password = free_port(), secrets.token_urlsafe(16)
    secret = place / "secret"
    secret.touch(mode=0o600)
    secret.write_text(password)
    if user is not None:
        entry = pwd.getpwnam(user)
        for path in (place, secret):
            os.chown(path, entry.pw_uid, entry.pw_gid)

    def run(program: str, *arguments: str) -> None:
        command = [str(programs / program), "-D", str(place / "data"), *arguments]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, user=user, cwd=place, timeout=120)

    run("initdb", "-U", USER, "-A", "scram-sha-256", "--pwfile", str(secret), "-E", "UTF8")
    secret.unlink()
    settings = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=off"
    run("pg_ctl", "-o", settings, "-l", str(place / "log"), "-w", "start")
    try:
        yield {
            "PGHOST": "127.0.0.1",
            "PGPORT": str(port),
            "PGDATABASE": "postgres",
            "PGUSER": USER,
            "PGPASSWORD": password,
        }
    finally:
        run("pg_ctl", "-m", "fast", "-w", "stop")


def postgres_programs() -> Path:
    """The folder of initdb and pg_ctl, installed first where this is root on Debian. Raises: MissingProgramError."""
    if find_postgres() is None and os.geteuid() == 0 and shutil.which("apt-get") is not None:
        print("Installing PostgreSQL with apt-get ...", flush=True)
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for command in (["update"], ["install", "--yes", "--no-install-recommends", "postgresql"]):
            subprocess.run(["apt-get", "-qq", *command], check=True, env=environment, stdout=subprocess.DEVNULL)
    found = find_postgres()
    if found is None:
        raise MissingProgramError(
            "PostgreSQL: wanted its programs initdb and pg_ctl; got none on the path or in /usr/lib/postgresql. "
            "Install them: Debian, Ubuntu: sudo apt-get install postgresql; Fedora: sudo dnf install "
            "postgresql-server; macOS: brew install postgresql."
        )
    return found


def find_postgres() -> Path | None:
    found = shutil.which("initdb")
    if found is not None:
        return Path(found).resolve().parent
    # Debian does not put them on the path
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    return places[-1].parent if places else None


@contextmanager
def s3_server(home: Path) -> Iterator[dict[str, str]]:
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with (home / "s3.log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        wait_for(port, process, home / "s3.log")
        yield {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": secrets.token_hex(8),
            "AWS_SECRET_ACCESS_KEY": secrets.token_urlsafe(16),
        }
    finally:
        process.terminate()
        process.wait(timeout=30)


def wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    """Raises: RuntimeError with what the process said, if it ends or does not listen within half a minute."""
    for _ in range(300):
        if process.poll() is not None:
            break
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise RuntimeError(f"the S3 server does not answer at port {port}; it says:\n{log.read_text()}")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])
