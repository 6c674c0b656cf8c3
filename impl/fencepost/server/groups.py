"""The groups, as the server needs them: asked in the words of the core, whoever hosts the coordinators."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Protocol

from fencepost.protocol.events import GroupConfig, Topic
from fencepost.protocol.messages import RequestBody, ResponseBody
from fencepost.protocol.offset_messages import WriteTxnMarkerRequest
from fencepost.protocol.view import GroupView


class Groups(Protocol):
    """A host of coordinators; ``fencepost.aio`` has them."""

    @property
    def partitions(self) -> int:
        """How many partitions of offsets there are."""

    def submit(
        self, body: RequestBody, *, version: int | None = None, client_id: str = "", client_host: str = ""
    ) -> asyncio.Future[ResponseBody]:
        """As ``request``, handled before the call returns; the answer may be there already."""

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
        """The answer to a request."""

    def view(self, group_id: str) -> GroupView | None:
        """The classic group of this name as it is now."""

    def set_topics(self, topics: Iterable[Topic]) -> None:
        """These are all topics from now on."""

    def configure(self, group_id: str, config: GroupConfig | None) -> None:
        """The settings of this group from now on."""

    async def drain(self) -> None:
        """Answer what is durable, then give the groups up: requests that wait, and later ones, are answered
        NOT_COORDINATOR."""

    async def mark(self, partition: int, body: WriteTxnMarkerRequest) -> ResponseBody:
        """Ends a transaction in one partition of the offsets topic."""
