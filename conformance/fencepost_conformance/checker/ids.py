"""Which member id did the coordinator make for a request that came without one (G-WIRE-28, NOT-10)?"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from fencepost.protocol.messages import JoinGroupRequest, JoinGroupResponse
from fencepost_model.classic.state import Group

from .history import Answer, Op, member_ids

#: Part of every id that stands for one that no answer of the trace shows.
UNSEEN: Final = "-unseen-"


class NewIds:
    """From the answers that were seen: mostly the request's own answer tells the id.

    If that answer is lost, another may still show it (a members list, the leader), so every id that no request was told
    directly is a candidate, and so is one that never shows.
    """

    def __init__(self, ops: Iterable[Op], known: Mapping[int, Answer]) -> None:
        self._told: dict[int, str] = {}
        for op in ops:
            answer = known.get(op.id)
            if (
                isinstance(op.body, JoinGroupRequest)
                and not op.body.member_id
                and isinstance(answer, JoinGroupResponse)
                and answer.member_id  # of errors, too: who waited under that id is told it
            ):
                self._told[op.id] = answer.member_id
        self._untold: Collection[str] = sorted(member_ids(known.values()) - set(self._told.values()))

    def candidates(self, op: Op, group: Group | None) -> tuple[str, ...]:
        """The ids that this request may have been given; one, ``""``, if it needs none."""
        body = op.body
        if not isinstance(body, JoinGroupRequest) or body.member_id:
            return ("",)
        told = self._told.get(op.id)
        if told is not None:
            return (told,)
        # G-WIRE-28: a made id begins with the instance id or the client id.
        prefix = body.group_instance_id or op.client_id
        used = set() if group is None else {member.member_id for member in group.members} | group.pending_join
        shown = [made for made in self._untold if made.startswith(prefix) and made not in used]
        return (*shown, f"{prefix}{UNSEEN}{op.id}")
