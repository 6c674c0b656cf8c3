"""The heartbeat that a KIP-848 member sends: its changes, or the full state (N-HB-01…05)."""

from __future__ import annotations

from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatRequest, TopicPartitions
from fencepost.quirks import varies

from ..events import MemberTimer, Send
from ..partitions import java_order
from .state import Beat, ConsumerState, LastSent, LocalAssignment, SentHeartbeat, TopicIdPartition
from .turn import ConsumerTurn


def send_heartbeat(turn: ConsumerTurn, beat: Beat) -> None:
    """Send what has changed since the last heartbeat, or the full state if the coordinator may not know it
    (N-HB-01…04)."""
    member, settings, last = turn.member, turn.member.settings, turn.member.last_sent
    joining = member.state is ConsumerState.JOINING
    topics, regex = member.subscription.topics, member.subscription.regex
    sent_regex: str | None = None
    if regex is not None:
        sent_regex = regex if joining or regex != last.regex else None
    elif last.regex:
        sent_regex = ""  # N-HB-02: the member no longer has a regex
    assignor = settings.server_assignor
    body = ConsumerGroupHeartbeatRequest(
        group_id=settings.group_id,
        member_id=member.member_id,
        member_epoch=member.epoch,
        instance_id=settings.group_instance_id,
        rack_id=rack(turn),
        rebalance_timeout_ms=(
            settings.max_poll_interval_ms  # G-CFG-53
            if joining or last.rebalance_timeout_ms != settings.max_poll_interval_ms
            else -1
        ),
        subscribed_topic_names=tuple(sorted(topics, key=java_order)) if joining or topics != last.topics else None,
        subscribed_topic_regex=sent_regex,
        server_assignor=assignor if joining or assignor != last.server_assignor else None,
        # N-HB-03: also an equal set, if it was reconciled again
        topic_partitions=(_by_topic(reported(turn)) if joining or last.assignment != (member.current,) else None),
    )
    turn.member = turn.member._replace(
        last_sent=LastSent(
            settings.max_poll_interval_ms,
            topics,
            regex,
            assignor,
            (member.current,),
        )
    )
    turn.set_deadline(MemberTimer.HEARTBEAT, member.interval_ms)  # N-HB-07: it counts from here
    request_id = turn.number()
    turn.fly(SentHeartbeat(request_id, beat))
    turn.emit(Send(request_id, body, timeout_ms=settings.request_timeout_ms))


def rack(turn: ConsumerTurn) -> str | None:
    """Return the rack for the heartbeat: a member sends its rack when it joins (N-HB-01)."""
    sent = turn.member.state is ConsumerState.JOINING and turn.rules.rack_sent
    return turn.member.settings.rack if sent else None


@varies
def reported(turn: ConsumerTurn) -> frozenset[TopicIdPartition]:
    """Return all partitions that the member may own before the next response. These are the ones reconciled last, the
    ones given to the application since, those of the reconciliation in progress, and the rest of the target, resolvable
    or not (N-HB-05, N-REC-02, N-REC-12). A leave reports only the first.

    A partition reported too much costs one round trip: the response contains the target, and the acknowledgement of it
    omits the partition.
    """
    member = turn.member
    reconciled = partitions_of(member.current)
    if member.epoch < 0:
        return reconciled
    reconciliation = member.reconciliation
    under_way = None if reconciliation is None or reconciliation.outdated else reconciliation.assignment
    return reconciled | member.delivered | partitions_of(under_way) | partitions_of(member.target)  # N-HB-05


def partitions_of(assignment: LocalAssignment | None) -> frozenset[TopicIdPartition]:
    """Return the partitions of an assignment; none for None."""
    return frozenset() if assignment is None else assignment.partitions


def _by_topic(partitions: frozenset[TopicIdPartition]) -> tuple[TopicPartitions, ...]:
    """Group partitions by topic id, in ascending order."""
    rows: dict[bytes, list[int]] = {}
    for topic_id, partition in sorted(partitions):
        rows.setdefault(topic_id, []).append(partition)
    return tuple(TopicPartitions(topic_id, tuple(numbers)) for topic_id, numbers in rows.items())
