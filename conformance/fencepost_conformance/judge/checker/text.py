"""Requests and answers in words, for refusals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from fencepost.protocol.consumer_messages import (
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import (
    DeleteGroupsResponse,
    DescribeGroupsResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    ListGroupsResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)

from ...common.counting import counted
from .because import because
from .commits import Commit
from .consumer.wrong import Wrong
from .described import described
from .difference import ANSWER, Difference, TopicNames, both_in_words, closest, differing, in_words
from .history import Answer, Listing, OddAnswer, Op
from .ids import UNSEEN


def _member(member_id: str) -> str:
    if UNSEEN in member_id:
        return "a new member id"
    return f"member id {member_id!r}" if member_id else "no member id"


def _rows(rows: tuple[TopicPartitions, ...]) -> str:
    """Such as ``cf08d9a5…: 0 1 2``; topics by the beginning of their id."""
    texts = [f"{row.topic_id.hex()[:8]}…: {' '.join(map(str, row.partitions))}" for row in rows]
    return "; ".join(texts) or "of nothing"


def request_text(op: Op) -> str:
    """Such as ``Heartbeat v4 of member id 'a-1' in generation 3 on connection 2``."""
    body = op.body
    words = [f"{api_name(op)} v{op.version}"]
    if isinstance(body, LeaveGroupRequest):
        words.append("of " + ", ".join(_member(member.member_id) for member in body.members))
    elif hasattr(body, "member_id"):
        words.append(f"of {_member(body.member_id)}")
    instance = getattr(body, "group_instance_id", None)
    if instance is not None:
        words.append(f"(instance id {instance!r})")
    if isinstance(body, ConsumerGroupHeartbeatRequest):
        words += [f"(instance id {body.instance_id!r})"] * (body.instance_id is not None)
        words.append(f"at epoch {body.member_epoch}")
    if hasattr(body, "generation_id"):
        words.append(f"in generation {body.generation_id}")
    if isinstance(body, JoinGroupRequest):
        words.append("offering " + ", ".join(protocol.name for protocol in body.protocols))
    elif isinstance(body, SyncGroupRequest) and body.assignments:
        words.append(f"with {counted(len(body.assignments), 'assignments')}")
    return " ".join([*words, f"on connection {op.connection}"])


def of_answers(op: Op, allowed: Mapping[Answer, tuple[str, ...]]) -> Difference:
    """The field in which the answer differs from the closest possible one."""
    given: Answer | None = op.answer
    if isinstance(given, DescribeGroupsResponse):
        given = described(given, op.version)
    others = [answer for answer in allowed if answer != given]
    nearest = closest(given, others)
    if nearest is None:
        who = "leader" if isinstance(op.body, SyncGroupRequest) else "other members"
        late = Difference(api_name(op), op.version, asker(op), ANSWER, "given", "no answer yet")
        return replace(late, because=f"the request still has to wait for the {who}")
    field, seen, expected = next(differing(given, nearest))
    if isinstance(op.answer, OddAnswer):
        field, expected = "error_code", getattr(nearest, "error_code", nearest)
    shown, wanted = both_in_words(field, seen, expected, {})
    if field == "error_code":
        codes = dict.fromkeys(getattr(answer, "error_code", expected) for answer in others)
        wanted = " or ".join(in_words(field, code, {}) for code in codes)
    why = because(op, field, seen, expected, allowed[nearest])
    shown = _odd(op.answer) if isinstance(op.answer, OddAnswer) else shown
    return Difference(api_name(op), op.version, asker(op), field, shown, wanted, why)


def of_wrong(wrong: Wrong, names: TopicNames) -> Difference:
    """As ``of_answers``, for a field whose expected value is known only in words."""
    op, field = wrong.op, wrong.field
    expected: object = None
    if field == "error_code":
        expected = next((each for each in ErrorCode if each.name == wrong.allowed.partition(":")[0]), None)
    elif field == "member_id":
        expected = getattr(op.body, "member_id", None)
    why = because(op, field, wrong.seen, expected, wrong.rules)
    shown = _odd(op.answer) if isinstance(op.answer, OddAnswer) else in_words(field, wrong.seen, names)
    wanted = wrong.allowed.partition(": ")[0] if why else wrong.allowed
    return Difference(api_name(op), op.version, asker(op), field, shown, wanted, why)


def _odd(answer: OddAnswer) -> str:
    return f"{', '.join(map(str, answer.codes))}, which no API of groups has"


#: The fields of requests that name several groups.
_GROUPS: Final = ("group_ids", "groups_names", "groups")


def api_name(op: Op) -> str:
    """Such as ``JoinGroup``."""
    if isinstance(op.body, Commit):
        return "TxnOffsetCommit" if op.body.transactional else "OffsetCommit"
    if isinstance(op.body, Listing):
        return "ListGroups"
    return type(op.body).__name__.removesuffix("Request")


def asker(op: Op) -> str:
    """Such as ``member id 'a-1' in generation 3 on connection 2``."""
    text = request_text(op).removeprefix(f"{api_name(op)} v{op.version} ").removeprefix("of ")
    names = next((getattr(op.body, name) for name in _GROUPS if hasattr(op.body, name)), ())
    return f"group {names[0]!r} {text}" if names else text


def answer_text(answer: Answer | None, op: Op) -> str:
    """Such as ``NONE, generation 3, leader 'a-1'``."""
    if answer is None:
        return "nothing"
    if isinstance(answer, OddAnswer):
        return f"error code {', '.join(map(str, answer.codes))}, which no API of groups has"
    if isinstance(answer, DeleteGroupsResponse):
        return ", ".join(row.error_code.name for row in answer.results) or "no row"
    words = [answer.error_code.name] if hasattr(answer, "error_code") else []
    if isinstance(answer, JoinGroupResponse):
        if answer.generation_id >= 0:
            protocol = answer.protocol_name or "no protocol"
            leader = "the new member" if UNSEEN in answer.leader else repr(answer.leader)
            words += [f"generation {answer.generation_id}", protocol, f"leader {leader}"]
        if answer.member_id != getattr(op.body, "member_id", ""):
            words.append(_member(answer.member_id))
        if answer.members:
            words.append("members " + ", ".join(_member(row.member_id) for row in answer.members))
        if answer.skip_assignment:
            words.append("skip assignment")
    elif isinstance(answer, SyncGroupResponse):
        if answer.protocol_name:
            words.append(answer.protocol_name)
        words.append(f"assignment {in_words('assignment', answer.assignment, {})}")
    elif isinstance(answer, ConsumerGroupHeartbeatResponse):
        if answer.error_code is ErrorCode.NONE:
            words.append(f"epoch {answer.member_epoch}")
            words.append("no assignment" if answer.assignment is None else f"assignment {_rows(answer.assignment)}")
            words.append(
                f"interval {answer.heartbeat_interval_ms} ms" if answer.heartbeat_interval_ms else "no interval"
            )
    elif isinstance(answer, ConsumerGroupDescribeResponse):
        words += [
            f"{row.error_code.name} {row.group_state} epochs {row.group_epoch}/{row.assignment_epoch}, "
            f"{counted(len(row.members), 'members')}"
            for row in answer.groups
        ]
    elif isinstance(answer, DescribeGroupsResponse):
        words += [
            f"{row.error_code.name} {row.group_state} {row.protocol_data}, {counted(len(row.members), 'members')}"
            for row in answer.groups
        ]
    elif isinstance(answer, ListGroupsResponse):
        words += [f"listed as {row.group_type or 'a'} group, {row.group_state or 'no state'}" for row in answer.groups]
        words += [] if answer.groups else ["not listed"]
    elif isinstance(answer, LeaveGroupResponse):
        words += [f"{_member(row.member_id)}: {row.error_code.name}" for row in answer.members]
    return ", ".join(words)
