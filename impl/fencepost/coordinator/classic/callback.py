"""Effects of a record on its classic group when it is known whether the record is in the log."""

from __future__ import annotations

from dataclasses import dataclass

from fencepost.protocol.errors import ErrorCode

from ..kernel.errors import append_error
from ..kernel.operations import AppendCallback
from ..kernel.replies import error_response
from ..kernel.state import Operation
from ..kernel.step import Step
from .group import find_incarnation, keep_incarnation, schedule_classic_session_timeout


@dataclass(frozen=True, slots=True)
class GroupCallback(AppendCallback):
    """For a record that a member of exactly this group waits for (C-ST-24)."""

    group_id: str
    incarnation: int

    def timed_out(self, step: Step, number: int, operation: Operation) -> None:
        """Memory follows the log (C-SYNC-33, C-STATIC-06 fixed): the sender gets an answer, and the callback still runs
        later. The member no longer waits and is watched again."""
        if operation.answered:
            return
        assert operation.request is not None
        step.reply(number, error_response(operation.request, append_error(ErrorCode.REQUEST_TIMED_OUT)))
        group = find_incarnation(step, self.group_id, self.incarnation)
        for member in () if group is None else group.members.values():
            if number in (member.join, member.sync):
                assert group is not None
                group.put(member._replace(join=None, sync=None))
                schedule_classic_session_timeout(step, group, member)
                keep_incarnation(step, group)
                return
