"""The brokers and clients of the matrix, and the arguments of ``fencepost conform`` for each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Final

from ...targets.jvm.releases import RELEASES
from .clients import DRIVER_OPTIONS, Client, PeerBroker, installed

#: a release without its own profile, and the cases that it can play
OLD: Final = ("3.9.2", ("--profile", "kafka-4.0", "--family", "classic"))
_KFAKE: Final = re.compile(r"github\.com/twmb/franz-go/pkg/kfake (\S+)")


@dataclass(frozen=True, slots=True)
class Subject:
    """A row. ``key``: its folder. ``arguments``: of ``fencepost conform``. ``lacking``: why it cannot run, or empty.
    ``server``: the command that starts the broker and prints its address, if ``fencepost conform`` cannot. ``alone``:
    the cases that end the broker's process."""

    key: str
    kind: str  #: broker or client
    name: str
    version: str
    arguments: tuple[str, ...]
    lacking: str = ""
    server: tuple[str, ...] = ()
    alone: tuple[str, ...] = ()


def brokers() -> Iterator[Subject]:
    """Brokers that ``fencepost conform`` starts itself."""
    release, old = OLD
    yield Subject(f"kafka-{release}", "broker", "Apache Kafka", release, (f"broker:{release}", *old))
    for release in RELEASES:
        yield Subject(f"kafka-{release}", "broker", "Apache Kafka", release, (f"broker:{release}",))
    yield Subject("kfake", "broker", "kfake (franz-go)", _kfake_version(), ("kfake",))
    yield Subject("serve", "broker", "fencepost serve", version("fencepost"), ("serve",))


def of_broker(broker: PeerBroker) -> Subject:
    """The row of a broker that a script starts, and that may not be installed."""
    here = installed(broker)
    return Subject(broker.key, "broker", broker.name, here.version, (), here.reason, broker.command, broker.alone)


def _kfake_version() -> str:
    module = Path(__file__).parents[1] / "bench" / "go" / "kfake" / "go.mod"
    found = _KFAKE.search(module.read_text(encoding="utf-8"))
    return "" if found is None else found[1]


def of_client(client: Client) -> Subject:
    """The row of a client, which may not be installed."""
    here = installed(client)
    command = " ".join([*client.command, DRIVER_OPTIONS])
    name = f"{client.name} ({client.language})"
    return Subject(client.name, "client", name, here.version, ("--client", command), here.reason)
