"""Requests that are settled at the first place that explains their answer.

A heartbeat of an unknown member, a refused commit, a description: such a request leaves the group as it is. If its
answer fits the group as it is now, the search takes it up at once and tries no other place: each run that takes it up
later remains a run without it. A forger sends many such requests, and each would otherwise be tried at every place
until its answer.

This needs that a request that gets the same answer later changes nothing there either. That is so for all answers
that ``Settles.may`` names:

* *Errors.* One that a request gets at once, and could get later after it has waited, tells of something that does not
  come back: a member id, an instance, or a generation that is gone. MEMBER_ID_REQUIRED is left out, since the group
  remembers the new id.
* *Answers of a calm group.* They set the session timer of the sender again, as they would at any other place; the
  bounds of its deadline reach as far as the answer.

Only a commit and a JoinGroup can also make a group. If a group is deleted in the trace they may do so later, and are
then not settled; nor if a look for expired offsets may delete it (O-EXP-20, D-26).

The session timer of a member that is gone changes nothing either when it runs out, as member ids do not come back
(INV-FENCE-02).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import (
    DescribeGroupsRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    SyncGroupRequest,
)
from fencepost_model.classic.group import GroupState
from fencepost_model.classic.state import Group, Timer
from fencepost_model.machines import COMPLETING, STABLE

from .commits import Commit
from .foresight import may_delete
from .history import Answer, Listing, Op

_NONE: Final = ErrorCode.NONE
#: Errors that a JoinGroup without a member id gets only after it has waited under the id that it was given.
_OF_MEMBERS: Final = frozenset(
    {ErrorCode.FENCED_INSTANCE_ID, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.REBALANCE_IN_PROGRESS}
)


class Settles:
    """Over the requests of one search; ``known`` are the answers that are to be met, and ``deleted`` says that a look
    for expired offsets may delete the group."""

    def __init__(
        self, ops: Iterable[Op], known: Mapping[int, Answer], *, scala: bool = False, deleted: bool = False
    ) -> None:
        self._scala = scala
        self._deleted = scala or deleted or any(may_delete(op, known.get(op.id)) for op in ops)

    def may(self, op: Op, answer: Answer, group: Group | None) -> bool:
        """May the request be settled, if it gets this answer now and the group stays as it is?"""
        body = op.body
        if isinstance(body, HeartbeatRequest | DescribeGroupsRequest | Listing):
            return True
        error = getattr(answer, "error_code", None)
        if isinstance(body, Commit):
            if self._scala and body.transactional:
                return False  # it may make a group even if it is refused (D-24)
            return error is not _NONE or not self._deleted
        if isinstance(body, JoinGroupRequest):
            if error is not _NONE:
                new = not body.member_id and error in _OF_MEMBERS  # it was given a member id, and waited
                return not new and error is not ErrorCode.MEMBER_ID_REQUIRED and not self._deleted
            generation = answer.generation_id if isinstance(answer, JoinGroupResponse) else -1
            return _is_calm(group, generation)
        if isinstance(body, SyncGroupRequest):
            return error is not _NONE or (group is not None and group.state == STABLE)
        return _refused(answer)


def settled(before: GroupState, after: GroupState, number: int) -> bool:
    """Whether a step left the group as it was, but for the request with this id, which may wait for the log."""
    waiting = tuple(each for each in after.operations if each.id != number or each.callback is not None)
    return before._replace(written=None) == after._replace(written=None, operations=waiting)


def idle_timers(state: GroupState) -> frozenset[Timer]:
    """The session timers of members that the group does not know (any more)."""
    group = state.group
    if group is None:
        return frozenset()
    here = {member.member_id for member in group.members} | group.pending_join
    return frozenset(timer for timer in state.timers if timer.kind == "session" and timer.member_id not in here)


def _refused(answer: Answer) -> bool:
    """Every part of the request was refused."""
    error = getattr(answer, "error_code", _NONE)
    rows: Sequence[Any] = ()
    for name in ("results", "groups", "members"):
        rows = rows or getattr(answer, name, ())
    return error is not _NONE or (bool(rows) and all(row.error_code is not _NONE for row in rows))


def _is_calm(group: Group | None, generation: int) -> bool:
    return group is not None and group.state in (COMPLETING, STABLE) and group.generation == generation
