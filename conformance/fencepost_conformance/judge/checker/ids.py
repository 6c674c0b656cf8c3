"""The member ids that the coordinator generated for requests without one (G-WIRE-28, NOT-10)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from fencepost.protocol.messages import JoinGroupRequest, JoinGroupResponse
from fencepost_model.classic.state import Group

from .history import Answer, Op, member_ids

#: Part of every placeholder for an id that no answer of the trace shows.
UNSEEN: Final = "-unseen-"


class NewIds:
    """The new member ids, from the answers of the trace. Usually the answer to the request itself contains the id.

    If that answer is lost, another one may still show the id (a members list, the leader). Then every id that no
    request got directly is a candidate, and so is an id that no answer shows.
    """

    def __init__(self, ops: Iterable[Op], known: Mapping[int, Answer]) -> None:
        self._answered: dict[int, str] = {}
        for op in ops:
            answer = known.get(op.id)
            if (
                isinstance(op.body, JoinGroupRequest)
                and not op.body.member_id
                and isinstance(answer, JoinGroupResponse)
                and answer.member_id  # errors contain the id, too, if the request waited under it
            ):
                self._answered[op.id] = answer.member_id
        self._unanswered: Collection[str] = sorted(member_ids(known.values()) - set(self._answered.values()))

    def candidates(self, op: Op, group: Group | None) -> tuple[str, ...]:
        """The ids that the coordinator may have generated for this request; only ``""`` if it needs none."""
        body = op.body
        if not isinstance(body, JoinGroupRequest) or body.member_id:
            return ("",)
        member_id = self._answered.get(op.id)
        if member_id is not None:
            return (member_id,)
        # a generated id begins with the instance id or the client id (G-WIRE-28)
        prefix = body.group_instance_id or op.client_id
        used = set() if group is None else {member.member_id for member in group.members} | group.pending_join
        shown = [made for made in self._unanswered if made.startswith(prefix) and made not in used]
        return (*shown, f"{prefix}{UNSEEN}{op.id}")
