"""The clients and brokers in ``conformance/peers``: ``clients.toml``, ``brokers.toml``, and which are installed."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ...common import repository

PROTOCOLS: Final = ("classic", "consumer")
ASSIGNORS: Final = ("range", "roundrobin", "sticky", "cooperative-sticky")
COMMITS: Final = ("sync", "async", "auto")

#: what follows the command of a driver
DRIVER_OPTIONS: Final = "--bootstrap {bootstrap} --group {group} --topic {topic}"

_VERSION_S: Final = 60


@dataclass(frozen=True, slots=True)
class Client:
    """``command``: of the driver, without options. ``protocols``, ``static`` (static membership), ``assignors`` and
    ``commits``: what the client has; its driver refuses the rest. ``unconfirmed``: the ways to commit whose result the
    client does not tell, so that its driver writes no ``committed``."""

    name: str
    language: str
    folder: Path
    protocols: tuple[str, ...]
    static: bool
    assignors: tuple[str, ...]
    commits: tuple[str, ...]
    unconfirmed: tuple[str, ...] = ()

    @property
    def command(self) -> tuple[str, ...]:
        return str(self.folder / "run"), self.name


@dataclass(frozen=True, slots=True)
class Installed:
    """``version``: of the client library, as the installed driver reports it; empty if it is not installed, which
    ``reason`` then explains."""

    version: str
    reason: str = ""


def peers_folder() -> Path:
    """Return the folder of the drivers. Raises CannotRun outside a checkout."""
    return repository.root() / "conformance" / "peers"


def read_clients(folder: Path) -> tuple[Client, ...]:
    """Return the clients of ``clients.toml`` in this folder, in its order."""
    table = tomllib.loads((folder / "clients.toml").read_text(encoding="utf-8"))
    return tuple(
        Client(
            name,
            row["language"],
            folder / row["folder"],
            tuple(row["protocols"]),
            row["static"],
            tuple(row["assignors"]),
            tuple(row["commits"]),
            tuple(row.get("unconfirmed", ())),
        )
        for name, row in table.items()
    )


@dataclass(frozen=True, slots=True)
class PeerBroker:
    """A broker that a script starts. ``key``: of its row. ``alone``: the cases that end its process; each is played on
    its own process, after the others."""

    key: str
    name: str
    folder: Path
    alone: tuple[str, ...] = ()

    @property
    def command(self) -> tuple[str, ...]:
        return (str(self.folder / "run"),)


def read_brokers(folder: Path) -> tuple[PeerBroker, ...]:
    """Return the brokers of ``brokers.toml`` in this folder, in its order."""
    table = tomllib.loads((folder / "brokers.toml").read_text(encoding="utf-8"))
    return tuple(
        PeerBroker(key, row["name"], folder / row["folder"], tuple(row.get("alone", ()))) for key, row in table.items()
    )


def installed(peer: Client | PeerBroker) -> Installed:
    """Ask the driver or script for the version of its peer."""
    command = [*peer.command, "--version"]
    asked = subprocess.run(command, capture_output=True, text=True, timeout=_VERSION_S, env=environment(), check=False)
    if asked.returncode == 0:
        return Installed(asked.stdout.strip())
    return Installed("", f"{peer.name} is not installed: run {_shown(peer.folder)}/install")


def _shown(folder: Path) -> Path:
    """Return the folder as seen from the working directory, if it is below that."""
    return folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder


def environment() -> dict[str, str]:
    """Return the environment of a driver: the Python drivers run with this Python."""
    return {**os.environ, "PYTHON": sys.executable}
