"""The parts that all handlers of classic groups share: members, and the protocol that they agree on (C-JOIN-60…63,
C-JOIN-72)."""

from __future__ import annotations

from collections.abc import Iterable

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Request
from fencepost.protocol.messages import JoinGroupMember, JoinGroupRequest, JoinGroupResponse, Protocol
from fencepost.protocol.rebalances import MemberIdentity, identities
from fencepost.protocol.view import GroupState
from fencepost.quirks import varies

from ..kernel.errors import InternalError
from ..kernel.persistent import without_element
from ..kernel.step import Step
from .group import ClassicGroup, ClassicMember, GroupDraft


def invalid(group: GroupDraft | ClassicGroup, member_id: str, instance_id: str | None) -> ErrorCode | None:
    """Why this is not a member of the group, None if it is one (C-JOIN-38e, C-JOIN-38f, C-JOIN-38g, C-SYNC-08, C-HB-08,
    C-LEAVE-13, C-STATIC-13).

    An instance id counts only if the request has one (C-STATIC-19); the generation is not checked (C-LEAVE-25).
    """
    if instance_id is not None:
        mapped = group.static_members.get(instance_id)
        if mapped is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if mapped != member_id:
            return ErrorCode.FENCED_INSTANCE_ID
    return None if member_id in group.members else ErrorCode.UNKNOWN_MEMBER_ID


def named(group: GroupDraft, member_ids: Iterable[str]) -> tuple[MemberIdentity, ...]:
    """The identities of members, or of ids that have not joined, with all names that are known."""
    members = group.members
    return tuple(
        [
            identities([members[member_id]])[0] if member_id in members else MemberIdentity(member_id)
            for member_id in member_ids
        ]
    )


def remove(step: Step, group: GroupDraft, member_id: str) -> None:
    """Remove a member; another one leads if it was the leader. For an id that is not a member, remove the pending
    entries (C-TMR-10, C-JOIN-76)."""
    member = group.discard(member_id)
    if member is not None and member.instance_id is not None:
        group.map_instance(member.instance_id, None)
    if group.leader == member_id:
        remaining = list(group.members)
        group.leader = (
            None
            if not remaining
            else remaining[0]
            if len(remaining) == 1
            else step.choices.leader(group.group_id, remaining)
        )
    group.pending_join = without_element(group.pending_join, member_id)
    group.pending_sync = without_element(group.pending_sync, member_id)


def members_for_leader(group: GroupDraft) -> tuple[JoinGroupMember, ...]:
    """Every member with its metadata for the selected protocol, from which the leader assigns (C-JOIN-49).

    Raises ``InternalError`` while the group is preparing (C-STATIC-17).
    """
    if group.state is GroupState.PREPARING_REBALANCE:
        raise InternalError
    rows = []
    for member in group.members.values():
        metadata = member.metadata(group.protocol_name)
        if metadata is None:
            raise InternalError  # C-JOIN-72
        rows.append(JoinGroupMember(member.member_id, group_instance_id=member.instance_id, metadata=metadata))
    return tuple(rows)


def current_generation(group: GroupDraft, member_id: str) -> JoinGroupResponse:
    """The answer with the current generation for a member (C-JOIN-49, C-JOIN-57)."""
    leads = group.leader == member_id
    return JoinGroupResponse(
        ErrorCode.NONE,
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader or "",
        member_id=member_id,
        members=members_for_leader(group) if leads else (),
    )


def update(group: GroupDraft, member: ClassicMember, request: Request, body: JoinGroupRequest) -> None:
    """Give the member the protocols and timeouts of this JoinGroup, and park the request; client id and host stay
    (C-JOIN-73)."""
    group.put(
        member._replace(
            protocols=body.protocols,
            rebalance_timeout=rebalance_timeout(request, body),
            session_timeout=body.session_timeout_ms,
            join=request.id,
        )
    )


def rebalance_timeout(request: Request, body: JoinGroupRequest) -> int:
    """The rebalance timeout of a JoinGroup in ms; version 0 has none, so its session timeout (G-WIRE-01)."""
    return body.session_timeout_ms if request.version == 0 else body.rebalance_timeout_ms


def supported(step: Step, group: GroupDraft, protocol_type: str, protocols: tuple[Protocol, ...]) -> bool:
    """Whether a member with this list may be in the group: all members must share one of its protocols (C-JOIN-60)."""
    if step.rules.repeated_protocols_rejected and len({each.name for each in protocols}) < len(protocols):
        return False  # counting names is not counting members (C-JOIN-72)
    if group.state is GroupState.EMPTY:
        return protocol_type != "" and bool(protocols)
    if group.protocol_type is None or group.protocol_type != protocol_type:
        return False
    size = len(group.members)
    return any(group.support.get(protocol.name, 0) == size for protocol in protocols)


def elect_leader(step: Step, group: GroupDraft) -> bool:
    """Make sure that the leader is a member that has joined; False if no member has (C-JOIN-45)."""
    if group.leader is None:
        return False
    if group.members[group.leader].join is not None:
        return True
    joined = [member.member_id for member in group.members.values() if member.join is not None]
    if not joined:
        return False
    group.leader = joined[0] if len(joined) == 1 else step.choices.leader(group.group_id, joined)
    return True


@varies
def adopt(step: Step, group: GroupDraft) -> None:
    """Elect the protocol of the members; its metadata is not checked (C-JOIN-63)."""
    group.protocol_name = select(step, group)
    group.learn_subscriptions()


def select(step: Step, group: GroupDraft) -> str:
    """Each member votes for the first protocol of its list that every member supports; most votes win (C-JOIN-63)."""
    size = len(group.members)
    candidates = {name for name, count in group.support.items() if count == size}
    votes: dict[str, int] = {}
    for member in group.members.values():
        for protocol in member.protocols:
            if protocol.name in candidates:
                votes[protocol.name] = votes.get(protocol.name, 0) + 1
                break
        else:
            raise InternalError  # C-JOIN-72
    most = max(votes.values())
    tied = [name for name, count in votes.items() if count == most]
    return tied[0] if len(tied) == 1 else step.choices.protocol(group.group_id, tied)
