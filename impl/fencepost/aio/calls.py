"""The group requests of a program, one method for each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, TypeVar, Unpack

from fencepost.protocol import consumer_messages as c
from fencepost.protocol import messages as m
from fencepost.protocol import offset_messages as o
from fencepost.protocol.errors import IllegalEvent
from fencepost.protocol.events import Topic

if TYPE_CHECKING:  # a server has no workers: importing them takes as long as importing the coordinator
    from fencepost.work import Worker
    from fencepost.work.worker import Options, Topics

_Answer = TypeVar("_Answer")


def _version_of(
    body: o.OffsetCommitRequest | o.OffsetFetchRequest,
    topics: Sequence[o.OffsetCommitRequestTopic | o.OffsetFetchRequestTopic],
) -> int | None:
    """Return the newest version that fits: the newest with names if a topic has one, or if there is no topic, as in a
    fetch of all topics; else None, for the newest of all."""
    by_name = not topics or any(topic.name for topic in topics)
    return o.NEWEST_BY_NAME[type(body)] if by_name else None


class Calls(ABC):
    """The requests of a host of groups: ``GroupBroker``, or a double in tests."""

    #: the error that ``request`` raises when the host is not running
    gone: ClassVar[type[Exception]]

    @property
    @abstractmethod
    def topics(self) -> tuple[Topic, ...]:
        """The topics of the last ``set_topics``."""

    @abstractmethod
    async def request(
        self,
        body: m.RequestBody,
        *,
        version: int | None = None,
        client_id: str = "",
        client_host: str = "",
        denied: frozenset[str] = frozenset(),
        denied_topics: frozenset[str] = frozenset(),
        denied_transactional_ids: frozenset[str] = frozenset(),
    ) -> m.ResponseBody:
        """Submit a request and wait for its answer; JoinGroup and SyncGroup may take as long as a rebalance.

        ``version`` defaults to the newest. Raises ``IllegalEvent`` if ``body`` is not a request or the version does not
        exist, and ``Stopped`` if the host is not running. Cancelling the wait does not withdraw the request.
        """

    async def join(
        self, body: m.JoinGroupRequest, *, client_id: str = "", client_host: str = ""
    ) -> m.JoinGroupResponse:
        """Join a classic group. A new dynamic member joins twice: the first answer, MEMBER_ID_REQUIRED, contains the id
        to join with (C-JOIN-34)."""
        return await self._ask(m.JoinGroupResponse, body, client_id, client_host)

    async def sync(self, body: m.SyncGroupRequest) -> m.SyncGroupResponse:
        """Wait for the assignment of the generation. The answer comes once the leader's assignment is in the log."""
        return await self._ask(m.SyncGroupResponse, body)

    async def heartbeat(self, body: m.HeartbeatRequest) -> m.HeartbeatResponse:
        """Extend the session of a classic member. The answer says whether the member is still in its generation."""
        return await self._ask(m.HeartbeatResponse, body)

    async def leave(self, body: m.LeaveGroupRequest) -> m.LeaveGroupResponse:
        """Remove members from a classic group. The answer has an error code for each."""
        return await self._ask(m.LeaveGroupResponse, body)

    async def describe(self, body: m.DescribeGroupsRequest) -> m.DescribeGroupsResponse:
        """Describe classic groups and their members."""
        return await self._ask(m.DescribeGroupsResponse, body)

    async def list_groups(self, body: m.ListGroupsRequest) -> m.ListGroupsResponse:
        """List the groups of this host, filtered by state, type and protocol type."""
        return await self._ask(m.ListGroupsResponse, body)

    async def delete(self, body: m.DeleteGroupsRequest) -> m.DeleteGroupsResponse:
        """Delete empty groups. The answer has an error code for each."""
        return await self._ask(m.DeleteGroupsResponse, body)

    async def consumer_heartbeat(
        self, body: c.ConsumerGroupHeartbeatRequest, *, client_id: str = "", client_host: str = ""
    ) -> c.ConsumerGroupHeartbeatResponse:
        """Send the heartbeat of a member of a consumer group (KIP-848): it joins with epoch 0, continues with the epoch
        of the last answer, and leaves with -1 (M-HB-*)."""
        return await self._ask(c.ConsumerGroupHeartbeatResponse, body, client_id, client_host)

    async def consumer_describe(self, body: c.ConsumerGroupDescribeRequest) -> c.ConsumerGroupDescribeResponse:
        """Describe consumer groups, with the assignment and the target assignment of each member."""
        return await self._ask(c.ConsumerGroupDescribeResponse, body)

    async def commit_offsets(self, body: o.OffsetCommitRequest) -> o.OffsetCommitResponse:
        """Commit offsets. The answer comes when they are in the log, with an error code for each partition. The request
        gives topics by name, or all by id; they must be topics of ``set_topics`` (O-COMMIT-02)."""
        return await self._ask(o.OffsetCommitResponse, body, version=_version_of(body, body.topics))

    async def fetch_offsets(self, body: o.OffsetFetchRequest) -> o.OffsetFetchResponse:
        """Fetch the committed offsets of groups, for given partitions or for all; topics as in ``commit_offsets``."""
        topics = [topic for group in body.groups for topic in group.topics or ()]
        return await self._ask(o.OffsetFetchResponse, body, version=_version_of(body, topics))

    def worker(self, group_id: str, topics: Topics, **options: Unpack[Options]) -> Worker:
        """Return a worker: a member of the group, in this program, that works on its part of these topics
        (``fencepost.work``). Raises ``BadSettings``, ``ValueError`` or ``TypeError`` for invalid options."""
        from fencepost.work.worker import worker_of  # noqa: PLC0415

        from .inside import Inside  # noqa: PLC0415

        return worker_of(Inside(self.request, lambda: self.topics, self.gone), group_id, topics, options)

    async def _ask(
        self,
        kind: type[_Answer],
        body: m.RequestBody,
        client_id: str = "",
        client_host: str = "",
        version: int | None = None,
    ) -> _Answer:
        asked = kind.__name__.removesuffix("Response") + "Request"
        if type(body).__name__ != asked:
            raise IllegalEvent(f"body must be a {asked} (got {type(body).__name__}); request() takes any request")
        answer = await self.request(body, version=version, client_id=client_id, client_host=client_host)
        assert isinstance(answer, kind)
        return answer
