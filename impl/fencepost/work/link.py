"""What a worker asks of whoever coordinates its group."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Topic
from fencepost.protocol.messages import RequestBody, ResponseBody


class NoCoordinator(Exception):
    """The look-up found none; ``error`` None: nobody answered."""

    def __init__(self, error: ErrorCode | None) -> None:
        super().__init__(error.name if error is not None else "nobody answers")
        self.error = error


class Unsupported(ConnectionError):
    """The coordinator has no version of an API that would do."""


@runtime_checkable
class Link(Protocol):
    """A way to the coordinator. All calls may raise ``OSError`` where there is a network,
    ``Unsupported`` among them."""

    async def find(self, group_id: str) -> int:
        """The node that coordinates the group (FindCoordinator). Raises ``NoCoordinator``."""

    async def ask(self, group_id: str, body: RequestBody, lane: str) -> ResponseBody:
        """The coordinator's answer. ``lane``: requests of one lane are answered one after the other, those of another
        do not wait for them: a commit must get past a JoinGroup that is parked."""

    def forget(self, group_id: str) -> None:
        """Drop what is known of the coordinator, and every request to it (K-FIND-01)."""

    async def topics(self, names: frozenset[str], ids: frozenset[bytes]) -> tuple[Topic, ...]:
        """The cluster's topics, at least those of these names and ids (Metadata)."""
