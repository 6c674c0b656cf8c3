"""Kafka's faults by which a partition is assigned before it is given up: a search in the model finds each.

The method is that of ``test_coordinator_faults``. The classic clients remember their answers, and claim nothing else.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest
from shortest import TOPICS, Ask, Fire, Move, Play, Search, Whole, join, read_events

from fencepost.protocol import embedded
from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatRequest
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Request, TimerKind
from fencepost.protocol.messages import (
    JoinGroupRequest,
    JoinGroupResponse,
    Protocol,
    ResponseBody,
    SyncGroupAssignment,
    SyncGroupRequest,
    SyncGroupResponse,
)
from fencepost.protocol.partitions import TopicPartition
from fencepost.protocol.profile import Profile
from fencepost_conformance.targets.ids import member_id
from fencepost_model.consumer.state import ConsumerGroup

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
FENCED = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.FENCED_INSTANCE_ID)


class Known(NamedTuple):
    """The knowledge of a client after its last answer: its generation, and the partitions that it may use.

    The set grows with SyncGroup answers. It shrinks when the client gives partitions up or learns that it is fenced.
    """

    generation: int = embedded.NO_GENERATION
    owned: frozenset[TopicPartition] = frozenset()


class Heard(Play):
    """A run, and the knowledge of its classic clients, by member id."""

    known: dict[str, Known]

    @property
    def situation(self) -> object:
        return super().situation, tuple(sorted(self.known.items(), key=lambda row: row[0]))

    @classmethod
    def of(cls, play: Play, known: dict[str, Known]) -> Heard:
        awaited = cls(*play)
        awaited.known = known
        return awaited


class Honest(Search):
    """A search without the moves in which a client makes a false claim. A client may omit its generation."""

    def __init__(self, fault: Whole, profile: Profile) -> None:
        super().__init__(fault.settings, profile, fault.moves, fault.first)
        self.start = Heard.of(self.start, {})

    def take(self, play: Play, move: Move) -> Heard | None:
        assert isinstance(play, Heard)
        says = move.body if isinstance(move, Ask) else None
        if isinstance(says, JoinGroupRequest) and not _is_so(play.known.get(says.member_id, Known()), says):
            return None
        after = super().take(play, move)
        if after is None:
            return None
        known = dict(play.known)
        if isinstance(says, JoinGroupRequest) and says.member_id:
            known[says.member_id] = known.get(says.member_id, Known())._replace(owned=_claims(says))
        asked = {event.id: event for event in after.events if isinstance(event, Request)}
        for number, body in after.answers:
            known |= _learnt(known, asked[number], body)
        return Heard.of(after, known)


def _claims(body: JoinGroupRequest) -> frozenset[TopicPartition]:
    return frozenset(embedded.decode_subscription(body.protocols[0].metadata).owned_partitions)


def _is_so(known: Known, body: JoinGroupRequest) -> bool:
    generation = embedded.decode_subscription(body.protocols[0].metadata).generation_id
    return _claims(body) <= known.owned and generation in (embedded.NO_GENERATION, known.generation)


def _learnt(known: dict[str, Known], asked: Request, body: ResponseBody) -> dict[str, Known]:
    name: str = getattr(body, "member_id", "") or getattr(asked.body, "member_id", "")
    before = known.get(name, Known())
    if isinstance(body, JoinGroupResponse | SyncGroupResponse) and body.error_code in FENCED:
        return {name: Known()}
    if isinstance(body, JoinGroupResponse) and body.error_code is ErrorCode.NONE:
        return {name: before._replace(generation=body.generation_id)}
    if isinstance(body, SyncGroupResponse) and body.error_code is ErrorCode.NONE:
        assigned = embedded.decode_assignment(body.assignment).partitions
        return {name: before._replace(owned=before.owned.union(assigned))}
    return {}


def partition_is_given_up_before_it_is_assigned(_: Search, play: Play) -> bool:
    """No member of a consumer group is assigned a partition that another member may still use (INV-KIP-09).

    A member may use a partition from the SyncGroup answer that contains it until the member says that it has given it
    up.
    """
    assert isinstance(play, Heard)
    group = play.state.consumer_group("g")
    return group is None or not any(_taken(group, name, known.owned) for name, known in play.known.items())


def _taken(group: ConsumerGroup, name: str, owned: frozenset[TopicPartition]) -> bool:
    if group.member(name) is None:
        return False
    ids = {topic.name: topic.topic_id for topic in TOPICS}
    mine = {(ids[each.topic], each.partition) for each in owned}
    return any(
        (topic, number) in mine
        for member in group.members
        if member.member_id != name
        for topic, number, _ in member.assigned
    )


# ---- moves -----------------------------------------------------------------------------------------------------------


def _joins(name: str, *owned: TopicPartition, generation: int = -1, instance: str | None = None) -> Ask:
    """Return the JoinGroup of a cooperative client that reads topic t."""
    data = embedded.encode_subscription(embedded.Subscription(("t",), None, owned, generation), 3)
    offers = (Protocol("cooperative-sticky", data),)
    return Ask(
        JoinGroupRequest(
            "g",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=60_000,
            member_id=name,
            group_instance_id=instance,
            protocol_type="consumer",
            protocols=offers,
        )
    )


def _syncs(name: str, generation: int, *given: TopicPartition, instance: str | None = None) -> Ask:
    rows = (SyncGroupAssignment(name, embedded.encode_assignment(embedded.Assignment(given))),) if given else ()
    return Ask(
        SyncGroupRequest(
            "g",
            generation_id=generation,
            member_id=name,
            group_instance_id=instance,
            protocol_type="consumer",
            protocol_name="cooperative-sticky",
            assignments=rows,
        )
    )


_C = member_id("i1", 0)

FAULTS = (
    Whole(  # X-JOIN-06, X-JOIN-12: c1 is fenced, and m2 gets its partitions
        "fault_join_generation_ignored",
        "fenced-member-readmitted",
        (
            Ask(join("m1", ("u",))),
            _joins("c1"),
            _syncs("c1", 3),
            Fire(TimerKind.CONSUMER_SESSION),
            Ask(join("m2")),
            _joins("c1", T0, T1, generation=3),
        ),
        partition_is_given_up_before_it_is_assigned,
        6,
    ),
    Whole(  # X-DOWN-04: c1 must give a part up to c2, and does not know it when the group becomes classic and back
        "fault_downgrade_assigns_target",
        "downgrade-then-upgrade",
        (
            Ask(join("m1", ("u",))),
            _joins("c1"),
            _syncs("c1", 3),
            _joins("c2"),
            Ask(ConsumerGroupHeartbeatRequest("g", member_id="m1", member_epoch=-1)),
            Ask(join("m2", ("u",))),
        ),
        partition_is_given_up_before_it_is_assigned,
        6,
        shown=(_joins("c2"), _syncs("c2", 5), _joins("c1", T0, T1, generation=3)),
    ),
    Whole(  # X-UP-05: a cooperative rebalance leaves t1 unassigned after its first round, and c has not given it up
        "fault_upgrade_overlooks_owned",
        "upgrade-between-cooperative-rounds",
        (
            _joins("", instance="i1"),
            Fire(TimerKind.JOIN),
            _syncs(_C, 1, T0, T1, instance="i1"),
            _joins(_C, T0, T1, generation=1, instance="i1"),
            _syncs(_C, 2, T0, instance="i1"),
            Ask(join("m1")),
        ),
        partition_is_given_up_before_it_is_assigned,
        6,
    ),
)


class _Searched(Whole):
    def search(self, profile: Profile) -> Search:
        return Honest(self, profile)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.trace)
def test_fault_is_found(fault: Whole) -> None:
    _Searched(*fault).is_found()


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.trace)
def test_the_trace_is_in_the_findings(fault: Whole) -> None:
    assert read_events(fault.trace) == (fault.settings, _Searched(*fault).events())
