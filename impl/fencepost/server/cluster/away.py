"""Groups of a node that leads none of them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, Final

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import GroupConfig, Topic
from fencepost.protocol.messages import ListGroupsResponse, RequestBody, ResponseBody
from fencepost.protocol.offset_messages import WriteTxnMarkerRequest, WriteTxnMarkerResponse
from fencepost.protocol.view import GroupView

_NONE: Final = ListGroupsResponse(ErrorCode.NOT_COORDINATOR, ())


class Away:
    """They are led elsewhere. ``partitions``: of the offsets topic."""

    def __init__(self, partitions: int) -> None:
        self.partitions = partitions

    def submit(
        self, body: RequestBody, *, version: int | None = None, client_id: str = "", client_host: str = ""
    ) -> asyncio.Future[ResponseBody]:
        """As ``request``."""
        done: asyncio.Future[ResponseBody] = asyncio.get_running_loop().create_future()
        done.set_result(_NONE)
        return done

    async def request(self, body: RequestBody, **_: Any) -> ResponseBody:
        """A list of groups has none (F-FIND-05); other requests are refused before they come here."""
        return _NONE

    def view(self, group_id: str) -> GroupView | None:
        """No group is here."""
        return None

    def set_topics(self, topics: Iterable[Topic]) -> None:
        """No group is here that would want to know."""

    def configure(self, group_id: str, config: GroupConfig | None) -> None:
        """Nor one that would have settings."""

    async def drain(self) -> None:
        """No request waits here."""

    async def mark(self, partition: int, body: WriteTxnMarkerRequest) -> ResponseBody:
        """No offsets are here."""
        return WriteTxnMarkerResponse(ErrorCode.NOT_COORDINATOR)
