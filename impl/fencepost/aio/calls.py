"""The requests that a program makes of its groups, each as a call of its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
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
#: The last version of OffsetCommit and OffsetFetch that names topics by their names.
_BY_NAME = 9


def _version_by(topics: Iterable[o.OffsetCommitRequestTopic | o.OffsetFetchRequestTopic]) -> int | None:
    """The newest version, unless a topic is named by its name, or none is named, as in a fetch of all."""
    named = list(topics)
    return _BY_NAME if not named or any(topic.name for topic in named) else None


class Calls(ABC):
    """The requests of a host of groups: ``GroupBroker``, or a double in tests."""

    #: what ``request`` raises when nobody serves
    gone: ClassVar[type[Exception]]

    @property
    @abstractmethod
    def topics(self) -> tuple[Topic, ...]:
        """Those that ``set_topics`` told last."""

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
        """Submit a request and await its answer; JoinGroup and SyncGroup may take as long as a rebalance.

        ``version`` is the newest if not given. Raises ``IllegalEvent`` for what is no request and for a version that
        does not exist, ``Stopped`` if nobody serves. Cancelling the wait does not take the request back.
        """

    async def join(
        self, body: m.JoinGroupRequest, *, client_id: str = "", client_host: str = ""
    ) -> m.JoinGroupResponse:
        """A dynamic member joins twice: MEMBER_ID_REQUIRED tells the id to come back with (C-JOIN-34)."""
        return await self._ask(m.JoinGroupResponse, body, client_id, client_host)

    async def sync(self, body: m.SyncGroupRequest) -> m.SyncGroupResponse:
        """Answers with the member's share once the leader's assignment is in the log."""
        return await self._ask(m.SyncGroupResponse, body)

    async def heartbeat(self, body: m.HeartbeatRequest) -> m.HeartbeatResponse:
        """Says whether the member is still in its generation, and keeps its session."""
        return await self._ask(m.HeartbeatResponse, body)

    async def leave(self, body: m.LeaveGroupRequest) -> m.LeaveGroupResponse:
        """Takes members out of a classic group, with a code for each."""
        return await self._ask(m.LeaveGroupResponse, body)

    async def describe(self, body: m.DescribeGroupsRequest) -> m.DescribeGroupsResponse:
        """What classic groups are like, and their members."""
        return await self._ask(m.DescribeGroupsResponse, body)

    async def list_groups(self, body: m.ListGroupsRequest) -> m.ListGroupsResponse:
        """The groups of this coordinator, filtered by state, type and protocol type."""
        return await self._ask(m.ListGroupsResponse, body)

    async def delete(self, body: m.DeleteGroupsRequest) -> m.DeleteGroupsResponse:
        """Deletes groups that are empty, with a code for each."""
        return await self._ask(m.DeleteGroupsResponse, body)

    async def consumer_heartbeat(
        self, body: c.ConsumerGroupHeartbeatRequest, *, client_id: str = "", client_host: str = ""
    ) -> c.ConsumerGroupHeartbeatResponse:
        """Of a member of a consumer group (KIP-848): joins with epoch 0, goes on with the epoch of the last answer, and
        leaves with -1 (M-HB-*)."""
        return await self._ask(c.ConsumerGroupHeartbeatResponse, body, client_id, client_host)

    async def consumer_describe(self, body: c.ConsumerGroupDescribeRequest) -> c.ConsumerGroupDescribeResponse:
        """What consumer groups are like, by member: its assignment, and its target."""
        return await self._ask(c.ConsumerGroupDescribeResponse, body)

    async def commit_offsets(self, body: o.OffsetCommitRequest) -> o.OffsetCommitResponse:
        """Stores positions, with a code for each partition; answers when they are in the log. Topics are named by their
        names, or all by their ids; they are those of ``set_topics`` (O-COMMIT-02)."""
        return await self._ask(o.OffsetCommitResponse, body, version=_version_by(body.topics))

    async def fetch_offsets(self, body: o.OffsetFetchRequest) -> o.OffsetFetchResponse:
        """What is committed for partitions of groups, or for all of them; topics as in ``commit_offsets``."""
        topics = [topic for group in body.groups for topic in group.topics or ()]
        return await self._ask(o.OffsetFetchResponse, body, version=_version_by(topics))

    def worker(self, group_id: str, topics: Topics, **options: Unpack[Options]) -> Worker:
        """A member of the group in this program, which works on shares of these topics; ``fencepost.work`` has the
        words. Raises ``BadSettings``, ``ValueError``."""
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
            raise IllegalEvent(f"this call takes a {asked}, not a {type(body).__name__}; request() takes any")
        answer = await self.request(body, version=version, client_id=client_id, client_host=client_host)
        assert isinstance(answer, kind)
        return answer
