"""Rules of ownership: a partition has one owner at a time, as far as its members know (INV-KIP-01, INV-KIP-09)."""

from __future__ import annotations

from collections.abc import Collection

from fencepost.protocol import embedded
from fencepost.protocol.consumer_messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from fencepost.protocol.consumer_view import ConsumerGroupView
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import JoinGroupRequest, JoinGroupResponse, SyncGroupRequest, SyncGroupResponse

from ...generate.simulate.consumer_group_rules import Held, held
from .judge import Judge, reached
from .played_trace import PlayedTrace

_FENCED = (
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.FENCED_MEMBER_EPOCH,
)


def no_member_is_assigned_an_owned_partition(*, unheard: Collection[int]) -> Judge:
    """INV-KIP-09: a consumer owns its assignment until a new assignment takes a partition away and it reports that it
    gave it up. No other member is assigned the partition before. ``unheard``: requests whose answers are lost.

    A request therefore gives up nothing of its member's last assignment: it may be an old copy, or omit partitions that
    a callback is just adding."""

    def judge(played: PlayedTrace) -> str | None:
        has: dict[str, set[Held]] = {}
        assigned: dict[str, set[Held]] = {}
        took = False
        for place, step in enumerate(played.steps):
            body = step.body
            if isinstance(body, ConsumerGroupHeartbeatRequest) and body.topic_partitions is not None:
                has[body.member_id] = held(body.topic_partitions) | assigned.get(body.member_id, set())
            for reply in step.seen.replies:
                asked, answer = played.requests[reply.request_id][1].body, reply.body
                if reply.request_id in unheard or not isinstance(asked, ConsumerGroupHeartbeatRequest):
                    continue
                if not isinstance(answer, ConsumerGroupHeartbeatResponse):
                    continue
                if answer.error_code in _FENCED:
                    has.pop(asked.member_id, None)
                    assigned.pop(asked.member_id, None)
                if answer.assignment is not None:
                    assigned[asked.member_id] = held(answer.assignment)
                    has[asked.member_id] = has.get(asked.member_id, set()) | assigned[asked.member_id]
                    took |= bool(assigned[asked.member_id])
                for other, owned in has.items():
                    both = owned & assigned.get(asked.member_id, set())
                    if other != asked.member_id and both:
                        taken = f"{other} has {_named(played, both)}"
                        return f"{taken}, but {asked.member_id} is assigned it (event {place})"
        reached(took, "no member is assigned anything")
        reached(all(number in played.answers for number in unheard), "not every request is answered")
        return None

    return judge


def _named(played: PlayedTrace, partitions: Collection[Held]) -> str:
    names = {topic.topic_id: topic.name for topic in played.topics(len(played.steps) - 1)}
    return ", ".join(f"{names.get(topic, topic.hex())}:{number}" for topic, number in sorted(partitions))


def partition_is_given_up_before_it_is_assigned(played: PlayedTrace) -> str | None:
    """INV-KIP-09: a consumer group assigns no partition that one of its classic members got and has not given up,
    unless that member learnt that it is fenced."""
    owned: dict[tuple[str, str], frozenset[Held]] = {}
    ids = {topic.name: topic.topic_id for place in range(len(played.steps)) for topic in played.topics(place)}
    took = 0
    for place, step in enumerate(played.steps):
        body = step.body
        if isinstance(body, JoinGroupRequest) and body.member_id:
            claims = embedded.decode_subscription(body.protocols[0].metadata).owned_partitions
            owned[body.group_id, body.member_id] = frozenset((ids[each.topic], each.partition) for each in claims)
        for reply in step.seen.replies:
            asked = played.requests[reply.request_id][1].body
            if isinstance(reply.body, JoinGroupResponse | SyncGroupResponse) and reply.body.error_code in _FENCED:
                owned.pop((getattr(asked, "group_id", ""), getattr(asked, "member_id", "")), None)
            elif isinstance(reply.body, SyncGroupResponse) and reply.body.error_code is ErrorCode.NONE:
                assert isinstance(asked, SyncGroupRequest)
                given = embedded.decode_assignment(reply.body.assignment).partitions if reply.body.assignment else ()
                more = frozenset((ids[each.topic], each.partition) for each in given)
                owned[asked.group_id, asked.member_id] = (
                    owned.get((asked.group_id, asked.member_id), frozenset()) | more
                )
                took += bool(more)
        for (group, member), partitions in owned.items():
            view = step.consumer.get(group)
            both = set() if view is None else _taken(view, member, partitions)
            if both:
                return f"{_named(played, both)} is assigned to another member while {member} owns it (event {place})"
    reached(took, "no classic member is assigned anything")
    return None


def _taken(view: ConsumerGroupView, member: str, partitions: frozenset[Held]) -> set[Held]:
    """Return which of the partitions others are assigned, if the member is in the group."""
    if not any(row.member_id == member for row in view.members):
        return set()
    others = (row for row in view.members if row.member_id != member)
    return held(rows for row in others for rows in row.assigned) & partitions
