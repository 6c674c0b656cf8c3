"""What a member of a scenario is to be."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MemberConfig:
    """``assignors`` by their names on the wire; times in milliseconds.

    With the protocol ``consumer`` (KIP-848) the broker decides about sessions and heartbeats, and ``assignors`` are
    those of the broker. A topic that begins with ``^`` is a regular expression, then for the broker to resolve.
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
    api_version: str | None = None  #: kafka-python only: speak as to a broker of that release
    protocol: str = "classic"
    auto_commit: bool = True
    reset: str = "earliest"  #: where to begin without a committed offset: earliest, latest or none
    transactional_id: str | None = None  #: of the producer that ``transact`` commands use
