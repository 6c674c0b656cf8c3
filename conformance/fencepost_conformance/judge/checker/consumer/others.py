"""Offset commits and descriptions of a consumer group."""

from __future__ import annotations

from dataclasses import replace
from typing import Final
from uuid import UUID

from fencepost.protocol.consumer_messages import (
    ConsumerGroupDescribeResponse,
    DescribedConsumerGroup,
    DescribedConsumerMember,
)
from fencepost.protocol.errors import ErrorCode as E
from fencepost.protocol.messages import DescribeGroupsResponse, ListGroupsResponse
from fencepost_model.promises import PROMISES, GroupView, MemberView

from ..commits import Commit, CommitAnswer
from ..described import described, expected, is_denied
from ..difference import partitions_text
from ..history import Listing, Op
from ..listings import STATE_VERSION, TYPE_VERSION
from .group import Knowledge
from .members import Member, Partition
from .wrong import Wrong, differs

#: The first version of TxnOffsetCommit that answers STALE_MEMBER_EPOCH
_TXN_STALE: Final = 6
#: The first version of OffsetCommit that a member of the consumer protocol may use (O-COMMIT-31).
_BY_EPOCH: Final = 9
#: From this version on OffsetCommit names topics by id (O-COMMIT-02).
_BY_ID_SINCE: Final = 10
#: The type of these groups, and the states of one that has members (C-ADM-04).
_CONSUMER: Final = "consumer"
_LIVING: Final = ("Assigning", "Reconciling", "Stable")
#: The promises about what a description shows.
_OF_A_DESCRIPTION: Final = (PROMISES["INV-KIP-03"], PROMISES["INV-KIP-01"])


def commit(known: Knowledge, op: Op, body: Commit, answer: CommitAnswer) -> None:
    """Judge an answer to a commit (O-COMMIT-30 to 33, O-TXN-05). The group accepts the member's epoch, or an older one
    that is valid for every partition (M-PE-08)."""
    before, error = known.before[op.id], answer.error_code
    if not known.surely_consumer(op):
        if error is E.GROUP_ID_NOT_FOUND:
            known.no_consumer_group(op)
        return
    member = known.members.get(body.member_id)
    too_early = body.version < _BY_EPOCH and not body.transactional
    if error is E.UNSUPPORTED_VERSION and not too_early:
        raise Wrong(op, "NONE", "O-COMMIT-31")
    if before.newcomer:
        if error is E.NONE and body.member_id and not known.may_have_joined(op, body.member_id):
            raise Wrong(op, "UNKNOWN_MEMBER_ID", "O-COMMIT-30")
        return
    if member is None or not before.alone or member.open or not member.exact or known.touched(op, member):
        return
    inside = known.stays(op, member)
    old = body.transactional and body.version < _TXN_STALE  # O-TXN-05, O-TXN-16
    stale = E.ILLEGAL_GENERATION if member.classic or old else E.STALE_MEMBER_EPOCH
    generation = body.generation_id
    if error is E.UNSUPPORTED_VERSION:
        if member.classic:
            raise Wrong(op, "NONE", "O-COMMIT-31")
        return
    if inside and not member.classic and too_early:
        if error in (E.NONE, stale):
            raise Wrong(op, E.UNSUPPORTED_VERSION.name, "O-COMMIT-31")
        return
    if error is E.NONE:
        if generation > member.epoch or _too_old(known, op, body, member, answer):
            raise Wrong(op, stale.name, "O-COMMIT-32")
    elif inside and generation == member.epoch and error in (stale, E.UNKNOWN_MEMBER_ID, E.GROUP_ID_NOT_FOUND):
        raise Wrong(op, "NONE", "O-COMMIT-33")
    elif inside and error in (E.UNKNOWN_MEMBER_ID, E.GROUP_ID_NOT_FOUND):
        raise Wrong(op, stale.name, "O-COMMIT-30", "O-COMMIT-32")


def _too_old(known: Knowledge, op: Op, body: Commit, member: Member, answer: CommitAnswer) -> bool:
    """Whether the commit names an older epoch, and a partition that the member did not have then."""
    if body.generation_id < member.epoch and known.profile.old_no_assignment_epochs:
        return True
    if member.classic or body.generation_id >= member.epoch or member.revoking:
        return False
    for topic, numbers in body.topics:
        topic_id = UUID(topic).bytes if op.version >= _BY_ID_SINCE else known.topics.ids.get(topic)
        for number in numbers:
            if topic_id is None or (topic, number) in answer.left_out:
                continue
            partition: Partition = (topic_id, number)
            since = member.held.get(partition, None)
            if partition not in member.held or (since is not None and since > body.generation_id):
                return True
    return False


def describe_classic(known: Knowledge, op: Op, answer: DescribeGroupsResponse) -> None:
    """Judge an answer to DescribeGroups: a consumer group is not described as a classic one (C-ADM-02)."""
    if is_denied(answer):
        return
    if not known.surely_consumer(op):
        if any(row.error_code is E.NONE and row.group_state not in ("Dead", "") for row in answer.groups):
            known.no_consumer_group(op)
        return
    shown = described(answer, op.version)
    group_id = "".join(row.group_id for row in shown.groups)
    wanted = expected(group_id, None, op.version)
    if shown != wanted:
        raise differs(op, wanted, "C-ADM-02", seen=shown)


def listed(known: Knowledge, op: Op, body: Listing, answer: ListGroupsResponse) -> None:
    """Judge a row of ListGroups: a group that exists is listed unless a filter excludes it, and a deleted one is not
    (C-ADM-05). The group is not empty while a member of KIP-848 is certainly in it."""
    rows = answer.groups
    if rows and known.deleted_from < op.line:
        raise Wrong(op, "no row", "C-ADM-05", field="groups")
    if not known.surely_consumer(op):
        filtered = body.states_filter or body.types_filter
        if any(row.group_type == "classic" for row in rows) or not (rows or filtered):
            known.no_consumer_group(op)
        return
    states = {each.strip().lower() for each in body.states_filter if op.version >= STATE_VERSION}
    types = {each.lower() for each in body.types_filter if op.version >= TYPE_VERSION}
    left_out = bool(types and _CONSUMER not in types) or bool(states and not states.issuperset(map(str.lower, _LIVING)))
    if not rows and not left_out:
        raise Wrong(op, "a row of a consumer group", "C-ADM-05", field="groups")
    for row in rows:
        wanted = replace(row, protocol_type=_CONSUMER, group_type=_CONSUMER if op.version >= TYPE_VERSION else "")
        if row != wanted:
            raise differs(op, replace(answer, groups=(wanted,)), "C-ADM-05", seen=replace(answer, groups=(row,)))
        if op.version >= STATE_VERSION and row.group_state not in _LIVING:
            raise Wrong(op, " or ".join(_LIVING), "C-ADM-04", "M-ST-01", field="group_state", seen=row.group_state)


def describe(known: Knowledge, op: Op, answer: ConsumerGroupDescribeResponse) -> None:
    """Judge a description: it must keep promises, and agree with its state and with the answers to members
    (M-DESC-01)."""
    for group in answer.groups:
        if group.error_code is not E.NONE:
            if group.error_code is E.GROUP_ID_NOT_FOUND:
                if known.surely_consumer(op):
                    raise Wrong(op, "NONE", "M-DESC-01")
                known.no_consumer_group(op)
            continue
        view = _view_of(group)
        for promise in _OF_A_DESCRIPTION:
            if how := promise.how(view):
                raise Wrong(op, f"that {promise.clause}", promise.id, field="members", seen=how)
        if not group.members and group.group_state != "Empty":
            raise Wrong(op, "Empty", "M-ST-01", field="group_state", seen=group.group_state)
        if group.members and group.group_epoch > group.assignment_epoch and group.group_state != "Assigning":
            raise Wrong(op, "Assigning", "M-ST-02", field="group_state", seen=group.group_state)
        if known.surely_consumer(op):
            _agrees(known, op, {row.member_id: row for row in group.members})
            if group.assignment_epoch < known.before[op.id].seen:
                raise Wrong(
                    op,
                    f"an assignment epoch from {known.before[op.id].seen} on",
                    "INV-KIP-04",
                    field="assignment_epoch",
                    seen=group.assignment_epoch,
                )


def _view_of(group: DescribedConsumerGroup) -> GroupView:
    """Return what promises see of a description. It shows neither the states of members nor, apart from their
    assignments, what they have to revoke (M-DESC-01)."""
    members = [
        MemberView(
            row.member_id,
            row.member_epoch,
            {f"{topic.topic_name}-{number}" for topic in row.assignment for number in topic.partitions},
            frozenset(),
        )
        for row in group.members
    ]
    return GroupView(group.group_epoch, group.assignment_epoch, members)


def _partitions(row: DescribedConsumerMember) -> frozenset[Partition]:
    return frozenset((topic.topic_id, number) for topic in row.assignment for number in topic.partitions)


def _in_words(known: Knowledge, shown: frozenset[Partition]) -> str:
    """Partitions in words, with the names of their topics."""
    topics: dict[str, list[int]] = {}
    for topic, number in shown:
        topics.setdefault(known.topics.names.get(topic, topic.hex()), []).append(number)
    return partitions_text(topics.items())


def _agrees(known: Knowledge, op: Op, rows: dict[str, DescribedConsumerMember]) -> None:
    for member in known.members.values():
        if member.classic or not known.surely_in(member) or member.open or known.touched(op, member):
            continue
        row = rows.get(member.member_id)
        if row is None:
            raise Wrong(op, f"member {member.member_id!r}", "M-DESC-01", field="members", seen=tuple(rows.values()))
        if not member.exact:
            continue
        if row.member_epoch != member.epoch:
            raise Wrong(
                op,
                f"member {member.member_id!r} at epoch {member.epoch}",
                "M-DESC-01",
                field="member_epoch",
                seen=row.member_epoch,
            )
        owned = frozenset(member.held) if known.profile.old_describe_without_pending else member.owned()
        shown = frozenset(each for each in owned if each[0] not in known.topics.gone)  # deleted topics are left out
        deleting = known.topics.unsettled(op.sent_ms, known.limits.slack_ms)
        if _partitions(row) != shown and not (deleting and _partitions(row) <= owned):
            raise Wrong(
                op,
                f"{_in_words(known, shown)} (member {member.member_id!r})",
                "M-DESC-01",
                field="assignment",
                seen=row.assignment,
            )
