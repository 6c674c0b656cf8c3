"""The expected DescribeGroups answer for a classic group whose state is certain."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import DescribedGroup, DescribedMember, DescribeGroupsResponse, JoinGroupRequest
from fencepost_model.classic.admin import describe
from fencepost_model.classic.state import Group
from fencepost_model.machines import DEAD, PREPARING, STABLE

from .history import Answer, History

#: The first version in which members have instance ids.
_INSTANCE_ID: Final = 4


def expected(group_id: str, group: Group | None, version: int, *, scala: bool = False) -> DescribeGroupsResponse:
    """The answer about one group in this state (C-ADM-02, C-ADM-03, C-ADM-12). The Scala coordinator shows assignments
    only while the group is Stable (D-25)."""
    row = comparable(describe(group_id, group, version), version)
    if scala and row.group_state != STABLE:
        row = replace(row, members=tuple(replace(each, member_assignment=b"") for each in row.members))
    return DescribeGroupsResponse((row,))


def described(answer: DescribeGroupsResponse, version: int) -> DescribeGroupsResponse:
    """An answer of the trace, in the form of ``expected``."""
    return DescribeGroupsResponse(tuple(comparable(row, version) for row in answer.groups))


def comparable(row: DescribedGroup, version: int) -> DescribedGroup:
    """A description without client hosts and error messages, which the trace does not determine."""
    members = sorted(row.members, key=lambda member: member.member_id)
    return replace(row, members=tuple(_member(each, version) for each in members), error_message=None)


def _member(row: DescribedMember, version: int) -> DescribedMember:
    instance = row.group_instance_id if version >= _INSTANCE_ID else None
    return replace(row, client_host="", group_instance_id=instance)


def is_denied(answer: Answer | None) -> bool:
    """Whether the caller lacks the right to describe the group."""
    rows = answer.groups if isinstance(answer, DescribeGroupsResponse) else ()
    return any(row.error_code is ErrorCode.GROUP_AUTHORIZATION_FAILED for row in rows)


def lived_before(history: History) -> bool:
    """Whether the first answer of the trace describes the group as existing, so that it is older than the trace.

    A group in PreparingRebalance may be new: a JoinGroup under way may have created it.
    """
    at, first = next(((at, event.op) for at, event in enumerate(history.events) if event.answered), (0, None))
    rows = first.answer.groups if first is not None and isinstance(first.answer, DescribeGroupsResponse) else ()
    joining = any(isinstance(event.op.body, JoinGroupRequest) for event in history.events[:at])
    young = (DEAD, "", PREPARING) if joining else (DEAD, "")
    return any(row.group_state not in young for row in rows)
