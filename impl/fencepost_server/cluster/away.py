"""The groups of a node that stands by: it leads none of them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import GroupConfig, Topic
from fencepost.protocol.messages import ListGroupsResponse, RequestBody, ResponseBody
from fencepost.protocol.offset_messages import WriteTxnMarkerRequest, WriteTxnMarkerResponse
from fencepost.protocol.view import GroupView

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
