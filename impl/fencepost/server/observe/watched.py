"""Groups whose rebalances are told of."""

from __future__ import annotations

import asyncio
from typing import Final

from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatRequest
from fencepost.protocol.messages import JoinGroupRequest, LeaveGroupRequest, RequestBody, ResponseBody

from ..groups import Groups
from .rebalances import Rebalances

#: Requests whose answers tell of rebalances.
_FOLLOWED: Final = (JoinGroupRequest, LeaveGroupRequest, ConsumerGroupHeartbeatRequest)


class Watched:
    """Groups whose rebalances are told of."""

    def __init__(self, groups: Groups, rebalances: Rebalances) -> None:
        self._groups = groups
        self._rebalances = rebalances
        self.set_topics = groups.set_topics
        self.configure = groups.configure
        self.mark = groups.mark
        self.drain = groups.drain

    @property
    def partitions(self) -> int:
        return self._groups.partitions

    def submit(
        self, body: RequestBody, *, version: int | None = None, client_id: str = "", client_host: str = ""
    ) -> asyncio.Future[ResponseBody]:
        """The answer to a request, which may be there already; what it tells of rebalances is noted."""
        answer = self._groups.submit(body, version=version, client_id=client_id, client_host=client_host)
        if isinstance(body, _FOLLOWED):

            def note(done: asyncio.Future[ResponseBody]) -> None:
                if not done.cancelled() and done.exception() is None:
                    self._rebalances.passed(f"{client_id} at {client_host}", body, done.result())

            if answer.done():
                note(answer)
            else:
                answer.add_done_callback(note)
        return answer

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
        """The answer to a request; what it tells of rebalances is noted."""
        answer = await self._groups.request(
            body,
            version=version,
            client_id=client_id,
            client_host=client_host,
            denied=denied,
            denied_topics=denied_topics,
            denied_transactional_ids=denied_transactional_ids,
        )
        self._rebalances.passed(f"{client_id} at {client_host}", body, answer)
        return answer
