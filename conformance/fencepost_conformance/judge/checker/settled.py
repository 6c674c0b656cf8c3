"""Requests that the search settles at the first place that explains their answer.

A heartbeat of an unknown member, a rejected commit, a description: such a request does not change the group. If its
answer fits the present group, the search processes it at once and tries no other place: each run that processes it
later is also a run without it. Traces of invalid requests have many of these. Without this, the search would try each
at every place until its answer.

The condition is that the same answer at a later place would not change the group either. That is true for all answers
that ``Settles.may`` names:

* *Errors.* A request may get an error at once, or later after a wait. In both cases something is gone that does not
  come back: a member id, an instance id or a generation. MEMBER_ID_REQUIRED is excluded, since the group keeps the new
  id.
* *Answers of a group without a rebalance.* They re-arm the session timer of the sender, as they would at any other
  place; the bounds of its deadline reach as far as the answer.

A request may also wait for the log before it is answered (F-RT-07). It is settled only if its waiting answer is that of
the trace. Nor may the answer come much too early if the log were written at once: the search may need to write the log
now, for another request, and would then have no place left for this one.

Only a commit and a JoinGroup can also create a group. If the trace deletes the group, they may do so later, and are
then not settled; nor are they if a check for expired offsets may delete it (O-EXP-20, D-26).

The session timer of a removed member changes nothing either when it fires, as member ids do not come back
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
#: Errors that a JoinGroup without a member id gets only after it has waited under its new id.
_OF_MEMBERS: Final = frozenset(
    {ErrorCode.FENCED_INSTANCE_ID, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.REBALANCE_IN_PROGRESS}
)


class Settles:
    """Decides for the requests of one search. ``known``: the answers that the model must give. ``deleted``: a check for
    expired offsets may delete the group."""

    def __init__(
        self, ops: Iterable[Op], known: Mapping[int, Answer], *, scala: bool = False, deleted: bool = False
    ) -> None:
        self._scala = scala
        self._deleted = scala or deleted or any(may_delete(op, known.get(op.id)) for op in ops)

    def may(self, op: Op, answer: Answer, group: Group | None) -> bool:
        """Whether the request may be settled, if it gets this answer now and the group does not change."""
        body = op.body
        if isinstance(body, HeartbeatRequest | DescribeGroupsRequest | Listing):
            return True
        error = getattr(answer, "error_code", None)
        if isinstance(body, Commit):
            if self._scala and body.transactional:
                return False  # it may create a group even if it is rejected (D-24)
            return error is not _NONE or not self._deleted
        if isinstance(body, JoinGroupRequest):
            if error is not _NONE:
                new = not body.member_id and error in _OF_MEMBERS  # it got a member id, and waited
                return not new and error is not ErrorCode.MEMBER_ID_REQUIRED and not self._deleted
            generation = answer.generation_id if isinstance(answer, JoinGroupResponse) else -1
            return _is_calm(group, generation)
        if isinstance(body, SyncGroupRequest):
            return error is not _NONE or (group is not None and group.state == STABLE)
        return _refused(answer)


def settled(before: GroupState, after: GroupState, number: int) -> bool:
    """Whether a step did not change the group, apart from the request with this id, which may wait for the log."""
    waiting = tuple(each for each in after.operations if each.id != number or each.callback is not None)
    return before._replace(written=None) == after._replace(written=None, operations=waiting)


def idle_timers(state: GroupState) -> frozenset[Timer]:
    """The session timers of members that the group does not know, or no longer knows."""
    group = state.group
    if group is None:
        return frozenset()
    here = {member.member_id for member in group.members} | group.pending_join
    return frozenset(timer for timer in state.timers if timer.kind == "session" and timer.member_id not in here)


def _refused(answer: Answer) -> bool:
    """Whether every part of the request was rejected."""
    error = getattr(answer, "error_code", _NONE)
    rows: Sequence[Any] = ()
    for name in ("results", "groups", "members"):
        rows = rows or getattr(answer, name, ())
    return error is not _NONE or (bool(rows) and all(row.error_code is not _NONE for row in rows))


def _is_calm(group: Group | None, generation: int) -> bool:
    return group is not None and group.state in (COMPLETING, STABLE) and group.generation == generation
