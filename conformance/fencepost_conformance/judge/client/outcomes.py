"""The outcome of an event for a classic member, in the format in which the JVM reports Kafka's member."""

from __future__ import annotations

import base64
from typing import Any

from fencepost.member.answers import exception_name
from fencepost.member.consumer_protocol import decode_assignment, decode_subscription
from fencepost.member.events import (
    Command,
    Failure,
    FailureKind,
    FindCoordinator,
    Listener,
    RequestMetadata,
    Returned,
    Send,
)
from fencepost.member.state import Member
from fencepost.protocol.messages import HeartbeatRequest, JoinGroupRequest, LeaveGroupRequest, SyncGroupRequest

Outcome = dict[str, Any]

#: Kafka's names of the states; the others are the same.
_STATES = {
    "Unjoined": "UNJOINED",
    "PreparingRebalance": "PREPARING_REBALANCE",
    "CompletingRebalance": "COMPLETING_REBALANCE",
    "Stable": "STABLE",
}


def outcome(first: int, member: Member, commands: tuple[Command, ...]) -> Outcome:
    """Return the outcome of event ``first`` and of its listener's calls, with all commands of these steps."""
    returned = [each for each in commands if isinstance(each, Returned)]
    return {
        "event": first,
        "sends": [sent for each in commands if (sent := request_of(each)) is not None],
        "calls": calls_of(commands),
        "metadata": asked_of(commands),
        "thrown": next((thrown_of(each.failure) for each in returned if each.failure is not None), None),
        "state": _STATES[member.state.value],
        "generation": member.generation.generation_id,
        "member": member.generation.member_id,
        "protocol": member.generation.protocol_name,
        "known": member.coordinator.node is not None,
        "owned": sorted(f"{each.topic}-{each.partition}" for each in member.assignment),
    }


def calls_of(commands: tuple[Command, ...]) -> list[list[str]]:
    """Return the calls of the listener, each with its partitions."""
    return [
        [each.call.value, *(f"{partition.topic}-{partition.partition}" for partition in each.partitions)]
        for each in commands
        if isinstance(each, Listener)
    ]


def asked_of(commands: tuple[Command, ...]) -> list[list[str] | None]:
    """Return the topics of each metadata request, sorted: names, then ids; None for all topics."""
    return [
        sorted(each.topics) + sorted(f"#{topic_id[0]}" for topic_id in each.topic_ids)
        if each.topics or each.topic_ids
        else None
        for each in commands
        if isinstance(each, RequestMetadata)
    ]


def in_generation(member: Member) -> list[Any]:
    """Return the member's state, generation and id."""
    generation = member.generation
    return [_STATES[member.state.value], generation.generation_id, generation.member_id]


def thrown_of(failure: Failure) -> str:
    """Return the name of the exception that Kafka throws for a failure."""
    if failure.kind is FailureKind.ANSWER and failure.error is not None:
        return exception_name(failure.error)
    return {FailureKind.LISTENER: "listener", FailureKind.UNEXPECTED: "KafkaException"}.get(
        failure.kind, failure.kind.value
    )


def looks_for(command: FindCoordinator) -> Outcome:
    """Describe a look-up of the group's coordinator (key type 0)."""
    return {"kind": "find", "group": command.group_id, "type": 0}


def request_of(command: Command) -> Outcome | None:
    if isinstance(command, FindCoordinator):
        return looks_for(command)
    if not isinstance(command, Send):
        return None
    body = command.body
    fields: Outcome = {"group": body.group_id, "timeout": command.timeout_ms}  # type: ignore[union-attr]
    match body:
        case JoinGroupRequest():
            return fields | {
                "kind": "join",
                "session": body.session_timeout_ms,
                "rebalance": body.rebalance_timeout_ms,
                "member": body.member_id,
                "instance": body.group_instance_id,
                "type": body.protocol_type,
                "reason": body.reason,
                "protocols": [[each.name, _subscription(each.metadata)] for each in body.protocols],
            }
        case SyncGroupRequest():
            return fields | {
                "kind": "sync",
                "generation": body.generation_id,
                "member": body.member_id,
                "instance": body.group_instance_id,
                "type": body.protocol_type,
                "protocol": body.protocol_name,
                "assignments": sorted([each.member_id, _assignment(each.assignment)] for each in body.assignments),
            }
        case HeartbeatRequest():
            return fields | {
                "kind": "heartbeat",
                "generation": body.generation_id,
                "member": body.member_id,
                "instance": body.group_instance_id,
            }
        case LeaveGroupRequest():
            return fields | {
                "kind": "leave",
                "members": [[each.member_id, each.group_instance_id, each.reason] for each in body.members],
            }
        case _:
            raise AssertionError(body)


def _subscription(data: bytes) -> list[Any]:
    """Return the fields of a subscription, in order, and its bytes."""
    read = decode_subscription(data)
    owned = [f"{each.topic}-{each.partition}" for each in read.owned_partitions]
    user = None if read.user_data is None else read.user_data.hex()
    return [list(read.topics), user, owned, read.generation_id, read.rack_id, data.hex()]


def _assignment(data: bytes) -> list[str]:
    return [*(f"{each.topic}-{each.partition}" for each in decode_assignment(data).partitions), data.hex()]


def of_kafka(outcome: Outcome) -> Outcome:
    """Normalise the JVM's outcome: decode embedded bytes."""
    decoded(outcome["sends"])
    return outcome


def decoded(sends: list[Outcome]) -> None:
    """Decode embedded bytes of sent requests in place."""
    for send in sends:
        if send["kind"] == "join":
            send["protocols"] = [[name, _subscription(base64.b64decode(data))] for name, data in send["protocols"]]
        elif send["kind"] == "sync":
            send["assignments"] = sorted(
                [name, _assignment(base64.b64decode(data))] for name, data in send["assignments"]
            )
