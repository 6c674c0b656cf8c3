"""The configuration of a scenario's member."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MemberConfig:
    """``assignors`` by their names on the wire; times in milliseconds.

    With the protocol ``consumer`` (KIP-848) the broker sets sessions and heartbeats, and ``assignors`` are the
    broker's. A topic that begins with ``^`` is then a regular expression, which the broker resolves.
    """

    library: str
    bootstrap: str
    group: str
    topics: tuple[str, ...]
    name: str
    assignors: tuple[str, ...] = ("range",)
    instance_id: str | None = None
    session_timeout_ms: int = 6_000
    poll_interval_ms: int = 8_000
    heartbeat_ms: int = 500
    api_version: str | None = None  #: kafka-python only: behave as with a broker of that release
    protocol: str = "classic"
    auto_commit: bool = True
    reset: str = "earliest"  #: position without a committed offset: earliest, latest or none
    transactional_id: str | None = None  #: of the producer that ``transact`` commands use
