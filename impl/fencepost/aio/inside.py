"""The way of a worker to a coordinator in its own process."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from fencepost.protocol.events import Topic
from fencepost.protocol.messages import RequestBody, ResponseBody
from fencepost.protocol.offset_messages import OffsetCommitRequest, OffsetFetchRequest

#: The last versions of OffsetCommit and OffsetFetch that name topics by their names.
BY_NAME: Final = {OffsetCommitRequest: 9, OffsetFetchRequest: 9}
_HERE: Final = 0


class Asks(Protocol):
    """``Calls.request``, as far as it is needed."""

    def __call__(self, body: RequestBody, *, version: int | None, client_id: str) -> Awaitable[ResponseBody]: ...


class Inside:
    """``Link`` to who hosts groups here. ``gone``: what it raises when nobody serves."""

    def __init__(self, asks: Asks, topics: Callable[[], tuple[Topic, ...]], gone: type[Exception]) -> None:
        self._asks = asks
        self._topics = topics
        self._gone = gone

    async def find(self, group_id: str) -> int:
        """Always here."""
        del group_id
        return _HERE

    async def ask(self, group_id: str, body: RequestBody, lane: str) -> ResponseBody:
        """A coordinator in this process lets no request wait behind another."""
        del lane
        try:
            return await self._asks(body, version=BY_NAME.get(type(body)), client_id=group_id)
        except self._gone as gone:
            raise ConnectionError(str(gone)) from gone

    def forget(self, group_id: str) -> None:
        """There is nothing to be forgotten."""

    async def topics(self, names: frozenset[str], ids: frozenset[bytes]) -> tuple[Topic, ...]:
        """All there are."""
        del names, ids
        return self._topics()
