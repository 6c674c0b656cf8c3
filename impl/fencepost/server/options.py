"""How a server is set up, but for the settings of its coordinators."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

#: Kafka's default ``socket.request.max.bytes``.
MAX_FRAME_BYTES: Final = 100 * 1024 * 1024
MIB: Final = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What peers may take. Sizes in bytes, times in seconds.

    ``buffered_bytes``: what all connections together may have sent that is not answered yet. ``frame_s``: how long a
    frame may take from its first byte to its last; ``write_s``: how long a peer may not take an answer; ``idle_s``: how
    long a connection may be silent, as Kafka's ``connections.max.idle.ms``; ``login_s``: how long it may not log in.
    ``data_bytes``: what the batches of all topics together may take; ``cached_bytes``: what the last of them may take
    in memory, if they are kept elsewhere too."""

    frame_bytes: int = MAX_FRAME_BYTES
    connections: int = 10_000
    buffered_bytes: int = 256 * MIB
    data_bytes: int = 1024 * MIB
    cached_bytes: int = 32 * MIB
    frame_s: float = 30.0
    write_s: float = 30.0
    idle_s: float = 600.0
    login_s: float = 15.0
    drain_s: float = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A host and a port; port 0 takes a free one."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """``advertised``: where clients are sent, if that is not where they came in. ``offsets_partitions``: coordinators,
    each with a partition of the offsets topic of its own; None: as many as the store has, or 50 (F-LOC-04).
    ``auto_create``: how many partitions a topic gets that is asked for and not there; 0: none is made."""

    listen: Address = field(default_factory=lambda: Address(host="127.0.0.1", port=9092))
    advertised: Address | None = None
    node_id: int = 1
    cluster_id: str = "ZmVuY2Vwb3N0LXNlcnZlLQ"
    offsets_partitions: int | None = None
    auto_create: int = 0
    limits: Limits = field(default_factory=Limits)
