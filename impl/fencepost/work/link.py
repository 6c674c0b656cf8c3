"""Interface between a worker and the coordinator of its group."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Topic
from fencepost.protocol.messages import RequestBody, ResponseBody


class NoCoordinator(Exception):
    """The look-up found no coordinator; ``error`` None: no broker responded."""

    def __init__(self, error: ErrorCode | None) -> None:
        super().__init__(error.name if error is not None else "no broker responds")
        self.error = error


class Unsupported(ConnectionError):
    """The coordinator has no suitable version of an API."""


@runtime_checkable
class Link(Protocol):
    """A connection to the coordinator. Over a network, all calls may raise ``OSError``, including ``Unsupported``."""

    async def find(self, group_id: str) -> int:
        """Return the node that coordinates the group (FindCoordinator). Raises ``NoCoordinator``."""

    async def ask(self, group_id: str, body: RequestBody, lane: str) -> ResponseBody:
        """Return the coordinator's response. ``lane``: requests of the same lane get their responses one after another,
        but do not wait for other lanes: a commit must not wait for a parked JoinGroup."""

    def forget(self, group_id: str) -> None:
        """Forget the coordinator, and drop every request to it (K-FIND-01)."""

    async def topics(self, names: frozenset[str], ids: frozenset[bytes]) -> tuple[Topic, ...]:
        """Return the cluster's topics, at least those with these names and ids (Metadata)."""
