"""The link from a worker to a coordinator in the same process."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from fencepost.protocol.events import Topic
from fencepost.protocol.messages import RequestBody, ResponseBody
from fencepost.protocol.offset_messages import NEWEST_BY_NAME

_HERE: Final = 0


class Asks(Protocol):
    """The signature of ``Calls.request``, as far as a worker uses it."""

    def __call__(self, body: RequestBody, *, version: int | None, client_id: str) -> Awaitable[ResponseBody]: ...


class Inside:
    """A ``Link`` to a host of groups in this process. ``gone`` is the error that it raises when it is not running."""

    def __init__(self, asks: Asks, topics: Callable[[], tuple[Topic, ...]], gone: type[Exception]) -> None:
        self._asks = asks
        self._topics = topics
        self._gone = gone

    async def find(self, group_id: str) -> int:
        """Return the only node: the coordinator is always in this process."""
        del group_id
        return _HERE

    async def ask(self, group_id: str, body: RequestBody, lane: str) -> ResponseBody:
        """Send a request. ``lane`` is not used: here, no request waits behind another one on a connection.

        Raises ``ConnectionError`` if the host is not running."""
        del lane
        try:
            return await self._asks(body, version=NEWEST_BY_NAME.get(type(body)), client_id=group_id)
        except self._gone as gone:
            raise ConnectionError(str(gone)) from gone

    def forget(self, group_id: str) -> None:
        """Do nothing: no coordinator is looked up, so none is cached."""

    async def topics(self, names: frozenset[str], ids: frozenset[bytes]) -> tuple[Topic, ...]:
        """Return all topics of the host."""
        del names, ids
        return self._topics()
