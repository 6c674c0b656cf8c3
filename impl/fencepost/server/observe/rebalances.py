"""The last rebalances and why they were: learnt from requests and answers, as they pass."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from fencepost.protocol.consumer_messages import (
    JOIN_EPOCH,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import (
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    RequestBody,
    ResponseBody,
)

#: as many rebalances are told of
KEPT: Final = 200
#: as many groups are followed; those that were silent longest are forgotten
_GROUPS: Final = 10_000
#: as many causes of one rebalance are told
_CAUSES: Final = 5


@dataclass(frozen=True, slots=True)
class Rebalance:
    """``generation``: that of a classic group, or the epoch of a consumer group, that it led to."""

    at_ms: int
    group_id: str
    protocol: str
    generation: int
    cause: str


@dataclass(slots=True)
class _Followed:
    generation: int = -1
    members: frozenset[str] = frozenset()
    causes: list[str] = field(default_factory=list)


class Rebalances:
    """``told`` gets each of them as it is seen; ``now`` gives milliseconds."""

    def __init__(self, now: Callable[[], int], told: Callable[[Rebalance], None] = lambda _: None) -> None:
        self.last: deque[Rebalance] = deque(maxlen=KEPT)
        self.count = 0
        self._now = now
        self._told = told
        self._groups: OrderedDict[str, _Followed] = OrderedDict()

    def passed(self, client: str, body: RequestBody, answer: ResponseBody) -> None:
        """A request and its answer, of a client that is named so."""
        if isinstance(body, JoinGroupRequest) and isinstance(answer, JoinGroupResponse):
            self._joined(client, body, answer)
        elif isinstance(body, LeaveGroupRequest) and isinstance(answer, LeaveGroupResponse):
            left = [row.member_id or str(row.group_instance_id) for row in body.members]
            if answer.error_code is ErrorCode.NONE:
                self._cause(body.group_id, *[f"{name} left" for name in left])
        elif isinstance(body, ConsumerGroupHeartbeatRequest) and isinstance(answer, ConsumerGroupHeartbeatResponse):
            self._beat(client, body, answer)

    def _joined(self, client: str, body: JoinGroupRequest, answer: JoinGroupResponse) -> None:
        if answer.error_code is not ErrorCode.NONE:
            return
        followed = self._of(body.group_id)
        if body.reason and len(followed.causes) < _CAUSES:
            followed.causes.append(f"{answer.member_id or client}: {body.reason}")
        if answer.members:  # the leader's answer, which has them all
            members = frozenset(row.member_id for row in answer.members)
            new, gone = members - followed.members, followed.members - members
            words = [f"{name} joined" for name in sorted(new)]
            left = " ".join(followed.causes)
            words += [f"{name} was not there any more" for name in sorted(gone) if f"{name} left" not in left]
            followed.members = members
            followed.causes = words[:_CAUSES] + followed.causes
            self._done(body.group_id, followed, "classic", answer.generation_id)

    def _beat(self, client: str, body: ConsumerGroupHeartbeatRequest, answer: ConsumerGroupHeartbeatResponse) -> None:
        if answer.error_code is not ErrorCode.NONE:
            return
        name = answer.member_id or body.member_id
        if body.member_epoch == JOIN_EPOCH:
            self._cause(body.group_id, f"{name} ({client}) joined")
        elif body.member_epoch < 0:
            self._cause(body.group_id, f"{name} left")
            return
        elif body.subscribed_topic_names is not None or body.subscribed_topic_regex is not None:
            self._cause(body.group_id, f"{name} told its subscription")
        followed = self._of(body.group_id)
        if answer.member_epoch > followed.generation:
            self._done(body.group_id, followed, "consumer", answer.member_epoch)

    def _done(self, group_id: str, followed: _Followed, protocol: str, generation: int) -> None:
        if generation == followed.generation:
            return
        cause = "; ".join(followed.causes[:_CAUSES]) or "a member was lost, or topics have changed"
        followed.generation, followed.causes = generation, []
        seen = Rebalance(self._now(), group_id, protocol, generation, cause)
        self.last.append(seen)
        self.count += 1
        self._told(seen)

    def _cause(self, group_id: str, *words: str) -> None:
        followed = self._of(group_id)
        followed.causes += words[: max(_CAUSES - len(followed.causes), 0)]

    def _of(self, group_id: str) -> _Followed:
        followed = self._groups.setdefault(group_id, _Followed())
        self._groups.move_to_end(group_id)
        if len(self._groups) > _GROUPS:
            self._groups.popitem(last=False)
        return followed

    def rows(self) -> Iterable[Rebalance]:
        """The newest first."""
        return reversed(self.last)
