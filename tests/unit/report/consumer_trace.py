"""A small trace of a consumer group, written by hand: one of two members takes over partitions that the other
revokes."""

from __future__ import annotations

from fencepost.protocol import consumer_messages as cm
from fencepost.protocol import consumer_records as cr
from fencepost.protocol import events as ev
from fencepost.protocol.consumer_view import (
    ConsumerGroupState,
    ConsumerGroupView,
    ConsumerMemberView,
    MemberState,
    ResolvedRegex,
    SubscriptionType,
)
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.records import Record
from fencepost_conformance.traces.observation import Observation

TOPIC = bytes(15) + b"\x01"
ONE, TWO = "one", "2b7c0e3e-7a52-4a57-9d0f-7c1d3c0a9e11"
SESSION = ev.TimerKind.CONSUMER_SESSION


def _rows(*partitions: int, epoch: int = 1) -> tuple[cr.AssignedPartitions, ...]:
    return (
        (cr.AssignedPartitions(TOPIC, partitions, assignment_epochs=(epoch,) * len(partitions)),) if partitions else ()
    )


def _topics(*partitions: int) -> tuple[cm.TopicPartitions, ...]:
    return (cm.TopicPartitions(TOPIC, partitions),) if partitions else ()


def member(
    name: str,
    epoch: int,
    state: MemberState,
    held: tuple[int, ...],
    revoking: tuple[int, ...] = (),
    *,
    classic: bool = False,
) -> ConsumerMemberView:
    """A member that shares its client with all others."""
    protocols = cr.ClassicMemberMetadata(45_000, ()) if classic else None
    return ConsumerMemberView(
        name,
        instance_id=None,
        rack_id=None,
        client_id="client",
        client_host="/127.0.0.1",
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=("t",),
        subscribed_topic_regex="",
        server_assignor=None,
        member_epoch=epoch,
        previous_member_epoch=max(epoch - 1, 0),
        state=state,
        assigned=_rows(*held, epoch=epoch),
        pending_revocation=_rows(*revoking, epoch=epoch),
        classic=protocols,
    )


def group(
    state: ConsumerGroupState,
    epoch: int,
    members: tuple[ConsumerMemberView, ...],
    target: tuple[tuple[str, tuple[int, ...]], ...],
) -> ConsumerGroupView:
    rows = tuple((name, _topics(*numbers)) for name, numbers in sorted(target))
    regexes = (ResolvedRegex("t.*", ("t",), version=1, timestamp=0),)
    return ConsumerGroupView(
        "g",
        state=state,
        group_epoch=epoch,
        metadata_hash=0,
        assignment_epoch=epoch,
        assignment_timestamp=0,
        subscription_type=SubscriptionType.HOMOGENEOUS,
        members=members,
        static_members=(),
        target=rows,
        partition_epochs=(),
        regexes=regexes,
        refresh_deadline=None,
        legacy_metadata=False,
    )


def _heartbeat(number: int, at_ms: int, name: str, epoch: int, owned: tuple[int, ...] | None = None) -> ev.Request:
    topics = ("t",) if epoch == 0 else None
    body = cm.ConsumerGroupHeartbeatRequest(
        "g",
        member_id=name,
        member_epoch=epoch,
        subscribed_topic_names=topics,
        topic_partitions=None if owned is None else _topics(*owned),
    )
    return ev.Request(at_ms, id=number, version=1, client_id="client", client_host="/127.0.0.1", body=body)


def _answer(number: int, name: str, epoch: int, owned: tuple[int, ...] | None) -> ev.Reply:
    assignment = None if owned is None else _topics(*owned)
    return ev.Reply(
        number,
        cm.ConsumerGroupHeartbeatResponse(
            ErrorCode.NONE, member_id=name, member_epoch=epoch, heartbeat_interval_ms=5_000, assignment=assignment
        ),
    )


def _current(name: str, epoch: int, held: tuple[int, ...], revoking: tuple[int, ...] = ()) -> Record:
    key = cr.ConsumerGroupCurrentMemberAssignmentKey("g", name)
    state = 1 if revoking else 0
    return Record(
        key,
        cr.ConsumerGroupCurrentMemberAssignmentValue(
            epoch,
            previous_member_epoch=epoch - 1,
            state=state,
            assigned_partitions=_rows(*held),
            partitions_pending_revocation=_rows(*revoking),
        ),
    )


_EPOCH = ConsumerGroupState
_STABLE, _UNREVOKED, _UNRELEASED = (
    MemberState.STABLE,
    MemberState.UNREVOKED_PARTITIONS,
    MemberState.UNRELEASED_PARTITIONS,
)

_STEPS: tuple[tuple[ev.Event, Observation], ...] = (
    (ev.TopicsChanged(0, (ev.Topic("t", TOPIC, 3),), version=1), Observation()),
    (ev.Load(0, leader_epoch=1, records=()), Observation()),
    (ev.GroupConfigChanged(1, "g", ev.GroupConfig(consumer_session_timeout_ms=50_000)), Observation()),
    (
        _heartbeat(1, 10, ONE, 0, ()),
        Observation(
            records=(
                Record(
                    cr.ConsumerGroupMemberMetadataKey("g", ONE),
                    cr.ConsumerGroupMemberMetadataValue(
                        instance_id=None,
                        rack_id=None,
                        client_id="client",
                        client_host="/127.0.0.1",
                        subscribed_topic_names=("t",),
                        subscribed_topic_regex="",
                        rebalance_timeout_ms=60_000,
                        server_assignor=None,
                    ),
                ),
                Record(cr.ConsumerGroupMetadataKey("g"), cr.ConsumerGroupMetadataValue(1, metadata_hash=-1)),
                _current(ONE, 1, (0, 1, 2)),
            ),
            replies=(_answer(1, ONE, 1, (0, 1, 2)),),
            timers={ev.TimerKey(SESSION, "g", ONE): 50_010},
            consumer_groups={"g": group(_EPOCH.STABLE, 1, (member(ONE, 1, _STABLE, (0, 1, 2)),), ((ONE, (0, 1, 2)),))},
            tasks=(ev.TaskKey(ev.TaskKind.REGEX, "g"),),
        ),
    ),
    (ev.Appended(12, offset=3), Observation()),
    (ev.TaskDone(20, ev.TaskKey(ev.TaskKind.REGEX, "g")), Observation()),
    (
        _heartbeat(2, 3_000, TWO, 0, ()),
        Observation(
            records=(Record(cr.ConsumerGroupMetadataKey("g"), cr.ConsumerGroupMetadataValue(2)), _current(TWO, 2, ())),
            replies=(_answer(2, TWO, 2, ()),),
            consumer_groups={
                "g": group(
                    _EPOCH.RECONCILING,
                    2,
                    (member(TWO, 2, _UNRELEASED, ()), member(ONE, 1, _STABLE, (0, 1, 2))),
                    ((ONE, (0, 1)), (TWO, (2,))),
                )
            },
        ),
    ),
    (
        _heartbeat(3, 5_000, ONE, 1),
        Observation(
            records=(_current(ONE, 1, (0, 1), (2,)),),
            replies=(_answer(3, ONE, 1, (0, 1)),),
            timers={ev.TimerKey(ev.TimerKind.CONSUMER_REBALANCE, "g", ONE): 65_000},
            consumer_groups={
                "g": group(
                    _EPOCH.RECONCILING,
                    2,
                    (member(TWO, 2, _UNRELEASED, ()), member(ONE, 1, _UNREVOKED, (0, 1), (2,))),
                    ((ONE, (0, 1)), (TWO, (2,))),
                )
            },
        ),
    ),
    (ev.AppendFailed(5_000, ErrorCode.NOT_ENOUGH_REPLICAS), Observation()),
    (
        _heartbeat(4, 6_000, ONE, 1, (0, 1)),
        Observation(
            records=(_current(ONE, 2, (0, 1)),),
            replies=(_answer(4, ONE, 2, None),),
            consumer_groups={
                "g": group(
                    _EPOCH.RECONCILING,
                    2,
                    (member(TWO, 2, _UNRELEASED, ()), member(ONE, 2, _STABLE, (0, 1))),
                    ((ONE, (0, 1)), (TWO, (2,))),
                )
            },
        ),
    ),
    (
        _heartbeat(5, 8_000, TWO, 2, ()),
        Observation(
            records=(_current(TWO, 2, (2,)),),
            replies=(_answer(5, TWO, 2, (2,)),),
            consumer_groups={
                "g": group(
                    _EPOCH.STABLE,
                    2,
                    (member(TWO, 2, _STABLE, (2,)), member(ONE, 2, _STABLE, (0, 1), classic=True)),
                    ((ONE, (0, 1)), (TWO, (2,))),
                )
            },
        ),
    ),
    (
        _heartbeat(6, 9_000, ONE, 1),
        Observation(
            replies=(
                ev.Reply(6, cm.ConsumerGroupHeartbeatResponse(ErrorCode.FENCED_MEMBER_EPOCH, error_message="stale")),
            )
        ),
    ),
    (
        ev.TimerFired(58_000, ev.TimerKey(SESSION, "g", ONE)),
        Observation(
            consumer_groups={"g": group(_EPOCH.ASSIGNING, 3, (member(TWO, 2, _STABLE, (2,)),), ((TWO, (2,)),))},
        ),
    ),
    (ev.Unload(60_000, leader_epoch=2), Observation(consumer_groups={"g": None})),
)

EVENTS: tuple[ev.Event, ...] = tuple(event for event, _ in _STEPS)
OBSERVATIONS: tuple[Observation, ...] = tuple(seen for _, seen in _STEPS)
