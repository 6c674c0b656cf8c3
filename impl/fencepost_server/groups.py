"""The interface between the server and a host of coordinators, with the core's messages, and a host without groups."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final, Protocol

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import GroupConfig, Topic
from fencepost.protocol.messages import ListGroupsResponse, RequestBody, ResponseBody
from fencepost.protocol.offset_messages import WriteTxnMarkerRequest, WriteTxnMarkerResponse
from fencepost.protocol.view import GroupView


class Groups(Protocol):
    """A host of coordinators. ``fencepost.aio.GroupBroker`` is one."""

    @property
    def partitions(self) -> int:
        """The number of partitions of the offsets topic."""

    def submit(
        self, body: RequestBody, *, version: int | None = None, client_id: str = "", client_host: str = ""
    ) -> asyncio.Future[ResponseBody]:
        """Like ``request``, but handled before the call returns; the future may be done already."""

    async def request(
        self,
        body: RequestBody,
        *,
        version: int | None = None,
        client_id: str = "",
        client_host: str = "",
        denied: frozenset[str] = frozenset(),
        denied_topics: frozenset[str] = frozenset(),
        denied_transactional_ids: frozenset[str] = frozenset(),
    ) -> ResponseBody:
        """Return the answer to a request."""

    def view(self, group_id: str) -> GroupView | None:
        """Return the current state of a classic group; None if there is none of this name."""

    def set_topics(self, topics: Iterable[Topic]) -> None:
        """Replace the topics that exist."""

    def configure(self, group_id: str, config: GroupConfig | None) -> None:
        """Set the settings of a group; None restores the defaults."""

    async def drain(self) -> None:
        """Answer the requests whose writes are durable, then give up the groups: waiting and later requests are
        answered NOT_COORDINATOR."""

    async def mark(self, partition: int, body: WriteTxnMarkerRequest) -> ResponseBody:
        """End a transaction in one partition of the offsets topic."""


_NONE: Final = ListGroupsResponse(ErrorCode.NOT_COORDINATOR, ())


class Away:
    """A ``Groups`` without groups, since another node leads them. ``partitions``: of the offsets topic."""

    def __init__(self, partitions: int) -> None:
        self.partitions = partitions

    def submit(
        self, body: RequestBody, *, version: int | None = None, client_id: str = "", client_host: str = ""
    ) -> asyncio.Future[ResponseBody]:
        """Like ``request``."""
        done: asyncio.Future[ResponseBody] = asyncio.get_running_loop().create_future()
        done.set_result(_NONE)
        return done

    async def request(self, body: RequestBody, **_: object) -> ResponseBody:
        """Return an empty list of groups (F-FIND-05). The dispatch rejects other requests before they come here."""
        return _NONE

    def view(self, group_id: str) -> GroupView | None:
        """Return None: this node has no groups."""
        return None

    def set_topics(self, topics: Iterable[Topic]) -> None:
        """Do nothing: this node has no groups."""

    def configure(self, group_id: str, config: GroupConfig | None) -> None:
        """Do nothing: this node has no groups."""

    async def drain(self) -> None:
        """Do nothing: no request waits here."""

    async def mark(self, partition: int, body: WriteTxnMarkerRequest) -> ResponseBody:
        """Reject the marker: another node leads the offsets topic."""
        return WriteTxnMarkerResponse(ErrorCode.NOT_COORDINATOR)
