"""The options of a server; the settings of its coordinators are in ``fencepost.protocol.settings``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

#: Kafka's default ``socket.request.max.bytes``.
MAX_FRAME_BYTES: Final = 100 * 1024 * 1024
MIB: Final = 1024 * 1024
#: groups with their own label in /metrics
LABELLED_GROUPS: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The resource limits of clients. Sizes are in bytes, times in seconds.

    Args:
        frame_bytes: the largest request.
        connections: open connections.
        buffered_bytes: unanswered requests of all connections together.
        data_bytes: batches of all topics together.
        cached_bytes: the newest batches, in memory, if a store on disk has them too.
        frame_s: from the first to the last byte of a request.
        write_s: until a client reads an answer.
        idle_s: without a request, like Kafka's ``connections.max.idle.ms``.
        login_s: until a client has logged in.
        drain_s: at the end, for the answers under way.
    """

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
    """A host and a port; port 0 picks a free one."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of a node.

    Args:
        listen: the address to listen on.
        advertised: the address that clients are sent to; None: the one that they connected to.
        node_id: the node's number.
        cluster_id: Kafka's cluster id.
        offsets_partitions: partitions of the offsets topic, each with its own coordinator; None: as many as the store
            has, or 50 (F-LOC-04).
        auto_create: partitions of a topic that is created on first use; 0: such topics are not created.
        login_ms: how long a login lasts, as Kafka's ``connections.max.reauth.ms``; 0: it does not end.
        limits: resource limits.
    """

    listen: Address = field(default_factory=lambda: Address(host="127.0.0.1", port=9092))
    advertised: Address | None = None
    node_id: int = 1
    cluster_id: str = "ZmVuY2Vwb3N0LXNlcnZlLQ"
    offsets_partitions: int | None = None
    auto_create: int = 0
    login_ms: int = 0
    limits: Limits = field(default_factory=Limits)
