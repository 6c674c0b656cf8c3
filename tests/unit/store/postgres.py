"""A private PostgreSQL in a folder, reached only through a socket in it."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest


def programs() -> Path | None:
    """Return the folder with the server's programs of the distribution."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    there = found[-1] if found else shutil.which("initdb")
    return None if there is None else Path(there).parent


class Postgres:
    """Start the database; skip the test if its programs are missing. A server does not run as root; then it runs as
    ``postgres``."""

    def __init__(self) -> None:
        pytest.importorskip("psycopg", reason="psycopg is not installed")
        where = programs()
        if where is None:
            pytest.skip("PostgreSQL is not installed")
        self.programs = where
        self.user: dict[str, Any] = {}
        if os.geteuid() == 0:
            try:
                owner = pwd.getpwnam("postgres")
            except KeyError:
                pytest.skip("PostgreSQL does not run as root, and there is no user postgres")
            self.user = {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": ()}
        self.folder = Path(tempfile.mkdtemp(prefix="postgres-", dir="/tmp"))
        if self.user:
            shutil.chown(self.folder, "postgres", "postgres")
        self.data = self.folder / "data"
        words = [str(self.programs / "initdb"), "-D", str(self.data), "-A", "trust", "-U", "postgres", "--no-sync"]
        subprocess.run(words, check=True, capture_output=True, cwd=self.folder, env={"LC_ALL": "C"}, **self.user)
        self.where = f"host={self.folder} user=postgres dbname=postgres"
        self.start()

    def start(self) -> None:
        words = [str(self.programs / "postgres"), "-D", str(self.data), "-k", str(self.folder), "-h", ""]
        words += ["-c", "fsync=off"]  # durability of the machine's disk is not tested here
        self.server = subprocess.Popen(
            words, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **self.user
        )
        import psycopg  # noqa: PLC0415  # may be missing

        for _ in range(200):
            try:
                psycopg.connect(self.where).close()
                return
            except psycopg.OperationalError:
                time.sleep(0.05)
        raise AssertionError("PostgreSQL does not start")

    def crash(self) -> None:
        """End all its processes together; at the next start it must have every acknowledged record."""
        self.server.send_signal(signal.SIGQUIT)
        self.server.wait(30)

    def close(self) -> None:
        self.crash()
        shutil.rmtree(self.folder)
