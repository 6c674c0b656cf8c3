"""The return of a static member without its member id (3.6).

The instance id finds the old member; a new id replaces it, and a client that still has the old id is fenced. In Stable,
if the vote stays the same, other members need not notice: the replacement is written to the log, and the answer waits
for that. Until it is in the log the new id is already the member (C-STATIC-17), so a failed append must undo the
replacement.
"""

from __future__ import annotations

from dataclasses import dataclass

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Request
from fencepost.protocol.messages import JoinGroupRequest, JoinGroupResponse, Protocol, SyncGroupResponse
from fencepost.protocol.rebalances import RebalanceCause, RebalanceReason, identities
from fencepost.protocol.view import GroupState
from fencepost.quirks import varies

from ..kernel import operations
from ..kernel.errors import InternalError, append_error, operation_error
from ..kernel.persistent import with_element, without_element
from ..kernel.replies import error_response
from ..kernel.state import Operation
from ..kernel.step import Step
from . import membership, rebalance, records
from .group import (
    ClassicMember,
    GroupCallback,
    GroupDraft,
    answer_join,
    find_incarnation,
    keep_incarnation,
    schedule_classic_session_timeout,
)

#: From this version on a returning leader learns that it leads, and that it must not assign (KIP-814, C-STATIC-04).
SKIP_ASSIGNMENT_SINCE = 9


@dataclass(frozen=True, slots=True)
class MemberReplaced(GroupCallback):
    """A static member that came back with a new id without a rebalance (C-STATIC-03), with its earlier values."""

    instance_id: str
    old_id: str
    new_id: str
    old_protocols: tuple[Protocol, ...]
    old_rebalance_timeout: int
    old_session_timeout: int
    new_protocols: tuple[Protocol, ...]
    leader_before: str | None

    def replicated(self, step: Step, request: Request) -> None:
        """Answer the member, if it still waits (C-STATIC-04, C-STATIC-05)."""
        group = find_incarnation(step, self.group_id, self.incarnation)
        if group is not None:
            _answer_replaced(step, group, self, request)
            keep_incarnation(step, group)

    def failed(self, step: Step, request: Request | None, error: ErrorCode) -> None:
        """Restore the old id of the member, with its earlier protocols (C-STATIC-06)."""
        group = find_incarnation(step, self.group_id, self.incarnation)
        if group is not None:
            assert request is not None
            if _undo_replacement(step, group, self):
                _refuse(step, group, self, request, error)
            keep_incarnation(step, group)

    def unloaded(self, step: Step, number: int, operation: Operation, error: ErrorCode) -> None:
        """Answer only the sender of the request (F-UNLOAD-01)."""
        end_with_group(step, self, number, operation, error)


@varies
def end_with_group(step: Step, done: MemberReplaced, number: int, operation: Operation, error: ErrorCode) -> None:
    """The partition is lost, and the group with it, but the record may survive. So nothing is undone, and only the
    sender of the request is answered (F-UNLOAD-01), also if the member has joined again meanwhile."""
    group = find_incarnation(step, done.group_id, done.incarnation)
    request = operation.request
    member = None if group is None else group.members.get(done.new_id)
    if group is not None and member is not None and request is not None and member.join == request.id:
        group.put(member._replace(join=None))
        _refuse(step, group, done, request, error)
        keep_incarnation(step, group)
    elif request is not None and not step.requests.operations[number].answered:
        step.reply(number, error_response(request, operation_error(error)))
    operations.close(step, number)


def replace(
    step: Step, request: Request, body: JoinGroupRequest, group: GroupDraft, *, old_id: str, new_id: str
) -> MemberReplaced | None:
    """Give the member its new id. Write that to the log if other members need not notice, otherwise rebalance.

    C-STATIC-02, then by state C-STATIC-03, C-STATIC-08…10; never in Empty, which has no members (C-STATIC-11). Returns
    the callback of the record, None if nothing is written.
    """
    leader_before = group.leader
    instance_id = group.members[old_id].instance_id
    assert instance_id is not None
    old = _exchange(step, group, instance_id, old_id, new_id)
    schedule_classic_session_timeout(step, group, old)  # with the old timeout (C-STATIC-20)
    membership.update(group, old, request, body)
    if group.state is GroupState.STABLE and membership.select(step, group) == group.protocol_name:
        assignments = {member.member_id: member.assignment for member in group.members.values()}
        step.log.records.append(records.group_record(group, assignments))  # C-STATIC-03, C-STATIC-07, C-STATIC-21
        return MemberReplaced(
            group.group_id,
            group.incarnation,
            instance_id,
            old_id,
            new_id,
            old.protocols,
            old.rebalance_timeout,
            old.session_timeout,
            body.protocols,
            leader_before,
        )
    cause = RebalanceCause(
        RebalanceReason.STATIC_MEMBER_REPLACED,
        identities([group.members[new_id]]),
        replaced=old_id,
        client_reason=body.reason or "",
    )
    rebalance.prepare_or_complete(step, group, cause)  # C-STATIC-08…10
    return None


def _exchange(step: Step, group: GroupDraft, instance_id: str, old_id: str, new_id: str) -> ClassicMember:
    """Replace the id of the member; its parked requests are answered as fenced. Returns the member."""
    fenced = ErrorCode.FENCED_INSTANCE_ID
    old = group.members[old_id]
    if old.join is not None:
        step.reply(old.join, JoinGroupResponse(fenced, protocol_name=None, member_id=old_id))
    if old.sync is not None:
        step.reply(old.sync, SyncGroupResponse(fenced))
    if old_id in group.pending_sync and step.rules.replacement_owes_sync:  # C-STATIC-16
        group.pending_sync = with_element(without_element(group.pending_sync, old_id), new_id)
    group.discard(old_id)
    member = old._replace(member_id=new_id, is_new=False, join=None, sync=None, restored=False)
    group.put(member)
    if group.leader == old_id:
        group.leader = new_id
    group.map_instance(instance_id, new_id)
    return member


def _answer_replaced(step: Step, group: GroupDraft, done: MemberReplaced, request: Request) -> None:
    """The record is replicated: answer the member if it still waits (C-STATIC-04, 05, C-STATIC-17)."""
    member = group.members.get(done.new_id)
    if member is None or member.join is None or member.restored:
        return
    if request.version >= SKIP_ASSIGNMENT_SINCE:
        leads = group.leader == done.new_id
        try:
            rows = membership.members_for_leader(group) if leads else ()
        except InternalError:
            return  # C-STATIC-17(ii): it stays parked and the rebalance answers it
        leader, skip = group.leader, leads
    else:
        rows, leader, skip = (), done.leader_before, False  # C-STATIC-05
    body = JoinGroupResponse(
        ErrorCode.NONE,
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=leader or "",
        skip_assignment=skip,
        member_id=done.new_id,
        members=rows,
    )
    answer_join(step, group, member, body)


def _undo_replacement(step: Step, group: GroupDraft, done: MemberReplaced) -> bool:
    """Undo the replacement of the id; False if the member no longer exists."""
    restore_protocols(step, group, done)
    if done.new_id not in group.members:
        return False
    old = _exchange(step, group, done.instance_id, done.new_id, done.old_id)._replace(restored=True)
    group.put(old)
    schedule_classic_session_timeout(step, group, old)
    return True


@varies
def restore_protocols(step: Step, group: GroupDraft, done: MemberReplaced) -> None:
    """Restore the earlier protocols and timeouts, unless the member is gone or restored already (C-STATIC-18)."""
    member = group.members.get(done.new_id)
    if member is not None and not member.restored:
        group.put(
            member._replace(
                protocols=done.old_protocols,
                rebalance_timeout=done.old_rebalance_timeout,
                session_timeout=done.old_session_timeout,
                join=None,
            )
        )


def _refuse(step: Step, group: GroupDraft, done: MemberReplaced, request: Request, error: ErrorCode) -> None:
    step.reply(
        request.id,
        JoinGroupResponse(
            append_error(error),
            generation_id=group.generation,
            protocol_type=group.protocol_type,
            protocol_name=group.protocol_name,
            leader=done.leader_before or "",
        ),
    )
