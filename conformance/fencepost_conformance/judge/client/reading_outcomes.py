"""The outcome of an event for a whole consumer, member and reader, in the format in which the JVM reports Kafka's."""

from __future__ import annotations

from typing import Any

from fencepost.member.answers import exception_name
from fencepost.member.events import Failure, FindCoordinator, Listener, Returned, Send
from fencepost.member.state import Member
from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatRequest
from fencepost.protocol.offset_messages import OffsetCommitRequest, OffsetFetchRequest
from fencepost.protocol.partitions import TopicPartition
from fencepost_consumer.broker import FetchRequest, LeaderRequest, ListOffsetsRequest
from fencepost_consumer.consumer import Consumer, ConsumerCommand, Stage
from fencepost_consumer.events import (
    CallReturned,
    CommitCallback,
    OffsetAndMetadata,
    PollReturned,
    Problem,
    ProblemKind,
    SendToLeader,
)
from fencepost_consumer.state import (
    Reader,
    Sent,
    SentCommit,
    SentEnd,
    SentFetch,
    SentLookup,
    SentReset,
    SentValidation,
)

from .consumer_outcomes import in_order
from .consumer_outcomes import request_of as request_of_consumer_member
from .outcomes import Outcome, decoded, in_generation, looks_for, thrown_of
from .outcomes import request_of as request_of_member


def outcome(first: int, consumer: Consumer, commands: tuple[ConsumerCommand, ...], refused: str | None) -> Outcome:
    """Return the outcome of that event, with all commands of its steps; ``refused``: what the call threw at once."""
    reader = consumer.reader
    returned: Any = None
    thrown = refused
    for each in commands:
        match each:
            case PollReturned(problem=Problem() as problem) | CallReturned(problem=Problem() as problem):
                thrown = _thrown(problem)
            case Returned(failure=Failure() as failure):
                thrown = thrown_of(failure)
            case PollReturned(records=records):
                returned = {_name(partition): [record.offset for record in several] for partition, several in records}
            case CallReturned(value=value):
                returned = _value(value)
    member = consumer.member
    state = in_generation(member) if isinstance(member, Member) else [member.state.name, member.epoch]
    return {
        "event": first,
        "member": state,
        "sends": ordered([sent for each in commands if (sent := _request_of(each)) is not None]),
        "calls": [call for each in commands if (call := _called(each)) is not None],
        "thrown": thrown,
        "calling": reader.waiting is not None or consumer.stage is not None,
        "returned": returned,
        "known": consumer.reader.coordinator.node is not None,
        "partitions": None
        if reader.closed or consumer.stage in (Stage.COMMIT, Stage.CLOSE, Stage.UNSUBSCRIBE)
        else _partitions(reader),
    }


def loosely(outcome: Outcome) -> Outcome:
    """Drop the offsets in callbacks for failed or empty commits: the new consumer passes none (4.4.0 and 4.3.1)."""
    for call in outcome.get("calls", ()):
        if call[0] == "commit" and (call[3] is not None or not call[2]):
            call[2] = None
    return outcome


def of_new_kafka(outcome: Outcome) -> Outcome:
    """Normalise the JVM's outcome of the new consumer."""
    return loosely(of_kafka(outcome))


def ordered(sends: list[Outcome]) -> list[Outcome]:
    """Sort requests by broker, the coordinator first. The order between brokers does not matter, since each has its own
    connection; requests to one broker keep their order."""
    return sorted(sends, key=lambda each: (each["kind"] == "find", each.get("node") or ""))


def _name(partition: TopicPartition) -> str:
    return f"{partition.topic}-{partition.partition}"


def _thrown(problem: Problem) -> str:
    if problem.kind is ProblemKind.API and problem.error is not None:
        return exception_name(problem.error)
    return problem.kind.value


def _value(value: object) -> object:
    if not isinstance(value, tuple):
        return value
    return sorted([_name(partition), *_offset(offset)] for partition, offset in value)


def _offset(offset: OffsetAndMetadata | None) -> list[Any]:
    return [None] if offset is None else [offset.offset, _number(offset.leader_epoch), offset.metadata]


def _number(value: int | None) -> int:
    return -1 if value is None else value


def _called(command: ConsumerCommand) -> list[Any] | None:
    match command:
        case Listener(call=call, partitions=partitions):
            return [call.value, *(_name(each) for each in partitions)]
        case CommitCallback(callback=label, offsets=offsets, problem=problem):
            return ["commit", label, _value(offsets), None if problem is None else _thrown(problem)]
    return None


def _partitions(reader: Reader) -> list[Any]:
    """Return the partitions in the order of fetches."""
    rows = []
    for partition, state in reader.partitions.items():
        position = state.position
        where = position and [
            position.offset, _number(position.epoch), _number(position.leader.node), _number(position.leader.epoch)
        ]  # fmt: skip
        rows.append([_name(partition), state.state.value, where, state.paused, reader.fetchable(partition)])
    return rows


# --- requests ---


def kind(sent: Sent) -> tuple[str, str | None]:
    """Return the name of a reader's request, and its broker; None for the coordinator."""
    match sent:
        case SentCommit():
            return "commit", None
        case SentLookup():
            return "offsets", None
        case SentFetch(node=node):
            return "fetch", str(node)
        case SentValidation(node=node):
            return "epochs", str(node)
    return "list", str(sent.node)


def listed(sent: Sent) -> tuple[TopicPartition, ...]:
    """Return the partitions whose offsets a leader was asked for; none for other requests."""
    match sent:
        case SentReset(policies=policies):
            return tuple(policies)
        case SentEnd(partition=partition):
            return (partition,)
    return ()


def _request_of(command: ConsumerCommand) -> Outcome | None:
    match command:
        case FindCoordinator():
            return looks_for(command)
        case SendToLeader(node=node, body=body, timeout_ms=timeout):
            return _to_leader(body) | {"node": str(node), "timeout": timeout}
        case Send(body=OffsetCommitRequest() as commit, timeout_ms=timeout):
            return _commit(commit) | {"node": None, "timeout": timeout}
        case Send(body=OffsetFetchRequest() as lookup, timeout_ms=timeout):
            return _lookup(lookup) | {"node": None, "timeout": timeout}
        case Send(body=ConsumerGroupHeartbeatRequest()):
            beat = request_of_consumer_member(command)
            return beat and beat | {"node": None}
        case Send():
            sent: Outcome | None = request_of_member(command)
            return sent and sent | {"node": None}
    return None


def _topic(name: str | None, topic_id: bytes) -> str:
    return name or f"#{topic_id[0]}"


def _commit(body: OffsetCommitRequest) -> Outcome:
    rows = [
        [
            f"{_topic(topic.name, topic.topic_id)}-{each.partition_index}", each.committed_offset,
            each.committed_leader_epoch, each.committed_metadata,
        ]
        for topic in body.topics
        for each in topic.partitions
    ]  # fmt: skip
    return {
        "kind": "commit",
        "group": body.group_id,
        "member": body.member_id,
        "epoch": body.generation_id_or_member_epoch,
        "instance": body.group_instance_id,
        "rows": sorted(rows),
    }


def _lookup(body: OffsetFetchRequest) -> Outcome:
    (group,) = body.groups
    rows = [
        f"{_topic(topic.name, topic.topic_id)}-{each}"
        for topic in group.topics or ()
        for each in topic.partition_indexes
    ]
    return {
        "kind": "offsets",
        "stable": body.require_stable,
        "group": group.group_id,
        "member": group.member_id,
        "epoch": group.member_epoch,
        "rows": sorted(rows),
    }


def _to_leader(body: LeaderRequest) -> Outcome:
    match body:
        case ListOffsetsRequest(timestamps=timestamps, read_committed=stable):
            rows = sorted([_name(partition), _end(time)] for partition, time in timestamps)
            return {"kind": "list", "isolation": int(stable), "rows": rows}
        case FetchRequest(partitions=asked):
            return {
                "kind": "fetch",
                "rows": [
                    [_name(each.partition), each.offset, _number(each.current_leader_epoch), -1] for each in asked
                ],
            }
    epochs = sorted([_name(each.partition), each.current_leader_epoch, each.leader_epoch] for each in body.partitions)
    return {"kind": "epochs", "rows": epochs}


def _end(timestamp: int) -> int:
    """Return -1 or -2 for an end of the log, or 0 for a time: Kafka takes that from the computer's clock."""
    return timestamp if timestamp in (-1, -2) else 0


def of_kafka(outcome: Outcome) -> Outcome:
    """Normalise the JVM's outcome: sort what has no order; replace times that come from the clock."""
    if "fault" in outcome:
        return outcome
    decoded(outcome["sends"])
    for send in outcome["sends"]:
        if send["kind"] == "list":
            send["rows"] = sorted([name, _end(time)] for name, time, _ in send["rows"])
        elif send["kind"] in ("commit", "offsets", "epochs"):
            send["rows"] = sorted(send["rows"])
        elif send["kind"] == "heartbeat" and "owned" in send:
            in_order(send)
    return outcome | {"sends": ordered(outcome["sends"])}
