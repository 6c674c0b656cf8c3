"""The command line and the events that the drivers in Python share (``conformance/peers/README.md``)."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, NoReturn

UNSUPPORTED = 64
ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky")


@dataclass(frozen=True, slots=True)
class Options:
    """``assignor`` and ``session_timeout_ms`` are None where the client's default is wanted."""

    bootstrap: str
    group: str
    topics: tuple[str, ...]
    protocol: str
    instance_id: str | None
    assignor: str | None
    session_timeout_ms: int | None
    processing_s: float
    commit: str

    @property
    def heartbeat_ms(self) -> int:
        """A third of the session timeout, at most a second."""
        return 1000 if self.session_timeout_ms is None else max(1, min(1000, self.session_timeout_ms // 3))


def options(package: str) -> Options:
    """Read the command line of a driver. ``--version`` prints the version of the package."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--version", action="version", version=version(package))
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--group", required=True)
    parser.add_argument("--topic", required=True, action="append")
    parser.add_argument("--protocol", choices=("classic", "consumer"), default="classic")
    parser.add_argument("--instance-id")
    parser.add_argument("--assignor", choices=ASSIGNORS)
    parser.add_argument("--session-timeout", type=int)
    parser.add_argument("--processing-ms", type=int, default=0)
    parser.add_argument("--commit", choices=("sync", "async", "auto"), default="sync")
    given = parser.parse_args()
    return Options(
        given.bootstrap,
        given.group,
        tuple(given.topic),
        given.protocol,
        given.instance_id,
        given.assignor,
        given.session_timeout,
        given.processing_ms / 1000,
        given.commit,
    )


def unsupported(what: str) -> NoReturn:
    """End the driver: the client has no such thing."""
    print(f"unsupported: {what}", file=sys.stderr)
    raise SystemExit(UNSUPPORTED)


def say(event: str, **fields: Any) -> None:
    """Write one event. Callbacks run in threads of the client, so a line is one write."""
    sys.stdout.write(json.dumps({"event": event, **fields}) + "\n")
    sys.stdout.flush()


def say_partitions(event: str, partitions: Iterable[Any]) -> None:
    """``partitions``: with attributes ``topic`` and ``partition``."""
    say(event, partitions=sorted([each.topic, each.partition] for each in partitions))


def say_committed(offsets: Iterable[tuple[str, int, int]]) -> None:
    say("committed", offsets=sorted(map(list, offsets)))


def complain(problem: object) -> None:
    """Write an error that the client reports and the driver survives, such as a refused commit."""
    say("error", message=str(problem))
    print(f"error: {problem}", file=sys.stderr, flush=True)


def stop_event() -> threading.Event:
    """Return an event that SIGTERM and SIGINT set."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    return stop
