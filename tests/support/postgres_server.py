"""A PostgreSQL server that tests start for themselves, for ledgers and for private tables."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


def found(program: str) -> Path | None:
    """Where a program of PostgreSQL is: on the path, or where Debian keeps it."""
    on_path = shutil.which(program)
    if on_path:
        return Path(on_path).resolve()
    return next(iter(sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{program}"))), None)


class Server:
    """A PostgreSQL server of our own, on a socket in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        initdb, self.control = found("initdb"), found("pg_ctl")
        assert initdb is not None and self.control is not None
        self.folder, self.data = folder, folder / "data"
        self.user: int | None = None
        if os.geteuid() == 0:  # PostgreSQL refuses to run as root
            self.user = pwd.getpwnam("nobody").pw_uid
            os.chown(folder, self.user, -1)
        self.run(initdb, "-D", self.data, "-A", "trust", "-U", "office", "-E", "UTF8", "-N")
        self.start()

    def run(self, *words: Any) -> None:
        done = subprocess.run(
            list(map(str, words)), user=self.user, cwd=self.folder, capture_output=True, timeout=60
        )
        assert done.returncode == 0, (done.stdout + done.stderr).decode(errors="replace")

    def start(self) -> None:
        # without fsync: what a killed server has written stays, only a dead machine loses it
        options = f"-k {self.folder} -c listen_addresses='' -c max_connections=120 -c fsync=off"
        log = self.folder / "log"
        self.run(self.control, "-D", self.data, "-o", options, "-l", log, "-w", "start")

    def stop(self, how: str = "immediate") -> None:
        self.run(self.control, "-D", self.data, "-m", how, "-w", "stop")

    def url(self, database: str) -> str:
        return f"postgresql://office@/{database}?host={self.folder}"

    def copy(self, source: str, target: str) -> None:
        """Dump one database into another, by the server's own tools."""
        dump, restore = (self.control.with_name(name) for name in ("pg_dump", "psql"))
        if not (dump.exists() and restore.exists()):
            pytest.skip("nothing can be dumped: pg_dump and psql are not installed")
        dumped = self.folder / "dump.sql"
        self.run(dump, "-d", source, "-f", dumped)
        self.run(restore, "-q", "-v", "ON_ERROR_STOP=1", "-d", target, "-f", dumped)

    def new(self) -> str:
        """Make a database and return its URL."""
        import psycopg

        name = f"ledger_{uuid.uuid4().hex}"
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.url(name)


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A server, or a skip that says why there is none."""
    pytest.importorskip("psycopg", reason="psycopg is not installed (pip install -e '.[postgres]')")
    if found("initdb") is None or found("pg_ctl") is None:
        pytest.skip("no PostgreSQL server can be started: initdb and pg_ctl are not installed")
    # a socket's path must be short; in memory, as a server for tests makes thousands of files
    place = os.environ.get("PYTEST_DEBUG_TEMPROOT")
    with tempfile.TemporaryDirectory(prefix="pg", dir=place) as name:
        os.chmod(name, 0o755)
        server = Server(Path(name))
        yield server
        server.stop()
