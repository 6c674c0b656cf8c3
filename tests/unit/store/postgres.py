"""A PostgreSQL of one's own: made in a folder, reached through a socket in it, by nobody else."""

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
    """Where the distribution has the server's programs."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    there = found[-1] if found else shutil.which("initdb")
    return None if there is None else Path(there).parent


class Postgres:
    """Skips the test if there is none. A server does not run as root: then it is user ``postgres``."""

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
        words += ["-c", "fsync=off"]  # what the machine does not write is not what is asked here
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
        """All its processes end at once; what it said that it has it finds again."""
        self.server.send_signal(signal.SIGQUIT)
        self.server.wait(30)

    def close(self) -> None:
        self.crash()
        shutil.rmtree(self.folder)
