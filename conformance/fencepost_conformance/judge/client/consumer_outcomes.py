"""The outcome of an event for a member of a consumer group, in the format in which the JVM reports Kafka's member."""

from __future__ import annotations

from fencepost.member.answers import exception_name
from fencepost.member.consumer import ConsumerMember
from fencepost.member.consumer.state import LocalAssignment
from fencepost.member.events import (
    Command,
    Failure,
    FailureKind,
    FindCoordinator,
    MemberTimer,
    Returned,
    Send,
)
from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatRequest

from .outcomes import Outcome, asked_of, calls_of, looks_for

#: States in which assignments are visible: they keep their value when a member leaves, but are not used.
MEMBERS = ("JOINING", "RECONCILING", "ACKNOWLEDGING", "STABLE", "PREPARE_LEAVING")


#: States in which the heartbeat waits for its interval.
TIMED = ("RECONCILING", "STABLE")


def outcome(index: int, now: int, member: ConsumerMember, commands: tuple[Command, ...]) -> Outcome:
    """Return the member's outcome after the event of that index, with the commands of the step."""
    returned = [each for each in commands if isinstance(each, Returned)]
    return {
        "event": index,
        "sends": [sent for each in commands if (sent := request_of(each)) is not None],
        "calls": calls_of(commands),
        "metadata": asked_of(commands),
        "thrown": next((_thrown(each.failure) for each in returned if each.failure is not None), None),
        "calling": member.waiting is not None,
        "state": member.state.name,
        "epoch": member.epoch,
        "known": member.coordinator.node is not None,
        "current": _local(member.current) if member.state.name in MEMBERS else None,
        "target": _local(member.target) if member.state.name in MEMBERS else None,
        "beat": _left(member, now, MemberTimer.HEARTBEAT, MemberTimer.BACKOFF),
        "poll": _left(member, now, MemberTimer.POLL),
        "owned": sorted(f"{each.topic}-{each.partition}" for each in member.assignment),
    }


def _left(member: ConsumerMember, now: int, *timers: MemberTimer) -> int | None:
    """Return the time until all of these timers have expired; None if they do not matter now."""
    timed = member.state.name in TIMED and member.coordinator.node is not None
    if not timed or (MemberTimer.POLL not in timers and member.in_flight is not None):
        return None
    return max(0, *(member.deadlines.get(each, now) - now for each in timers))


def _thrown(failure: Failure) -> str:
    if failure.kind is FailureKind.ANSWER and failure.error is not None:
        return exception_name(failure.error)
    return failure.kind.value


def _local(assignment: LocalAssignment | None) -> list[list[int]] | None:
    """Return the assignment with topics by number: a topic's id is its number in every byte."""
    if assignment is None:
        return None
    return sorted([each.topic_id[0], each.partition] for each in assignment.partitions)


def request_of(command: Command) -> Outcome | None:
    """Describe a sent request."""
    if isinstance(command, FindCoordinator):
        return looks_for(command)
    if not isinstance(command, Send):
        return None
    body = command.body
    assert isinstance(body, ConsumerGroupHeartbeatRequest)
    owned = body.topic_partitions
    beat: Outcome = {
        "kind": "heartbeat",
        "group": body.group_id,
        "member": body.member_id,
        "epoch": body.member_epoch,
        "instance": body.instance_id,
        "rack": body.rack_id,
        "rebalance": body.rebalance_timeout_ms,
        "regex": body.subscribed_topic_regex,
        "assignor": body.server_assignor,
        "topics": None if body.subscribed_topic_names is None else list(body.subscribed_topic_names),
        "owned": None if owned is None else [[row.topic_id[0], each] for row in owned for each in row.partitions],
        "timeout": command.timeout_ms,
    }
    in_order(beat)
    return beat


def in_order(beat: Outcome) -> None:
    """Sort the topics of the owned partitions. Kafka's client keeps topics in a hash map, but partitions and subscribed
    names in sorted sets, whose order is compared."""
    beat["owned"] = beat["owned"] and sorted(beat["owned"], key=lambda each: each[0])


def of_kafka(outcome: Outcome) -> Outcome:
    """Normalise the JVM's outcome. Sets are sorted. A metadata request without topics is dropped: a client that
    subscribes by an expression asks only for brokers with it. A run that could not continue contains a fault."""
    if "fault" in outcome:
        return outcome
    for send in outcome["sends"]:
        if send["kind"] == "heartbeat":
            in_order(send)
    outcome["metadata"] = [topics for topics in outcome["metadata"] if topics != []]
    if outcome["state"] not in MEMBERS:
        outcome |= {"current": None, "target": None}
    return outcome | {name: outcome[name] and sorted(outcome[name]) for name in ("current", "target")}
