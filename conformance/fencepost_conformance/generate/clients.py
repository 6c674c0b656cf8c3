"""A client program as the generator plays it: its knowledge of its membership, and its next request.

It reacts to answers as a real client does (C-REJ-01…10): it rejoins when asked to, forgets an unknown id, syncs after a
join. It knows nothing about the coordinator but the answers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from random import Random

from fencepost.protocol import messages as m
from fencepost.protocol.errors import ErrorCode

from .plan import ClientPlan, offered


class Phase(Enum):
    OUT = "out"  #: must join
    JOINING = "joining"  #: waits for a JoinGroup answer
    JOINED = "joined"  #: must sync
    SYNCING = "syncing"  #: waits for a SyncGroup answer
    STABLE = "stable"


@dataclass(slots=True)
class Client:
    """``waiting_for``: the request whose answer counts; answers to other requests are too late and are ignored."""

    plan: ClientPlan
    member_id: str = ""
    generation: int = -1
    phase: Phase = Phase.OUT
    leads: bool = False
    members: tuple[str, ...] = ()
    protocol_name: str | None = None
    round: int = 0
    silent: bool = False
    waiting_for: int | None = None
    last: tuple[int, m.RequestBody] | None = field(default=None)

    def next_request(self, rng: Random, restart: float) -> tuple[int, m.RequestBody] | None:
        """Return the version and body of its next request, None if it only waits (or has crashed)."""
        if self.silent:
            return None
        if self.phase is Phase.OUT:
            return self.join()
        if self.phase is Phase.JOINED:
            return self.sync(rng)
        if self.phase is not Phase.STABLE:
            # impatient: a client sends a request again when it times out
            if rng.random() < 0.06:
                return self.join() if self.phase is Phase.JOINING else self.sync(rng)
            return None
        draw = rng.random()
        if draw < restart:
            self.restart(rng)
            return None
        if draw < restart + 0.05:
            return self.leave()
        if draw < restart + 0.20:
            self.round += rng.random() < 0.6
            return self.join()
        return self.heartbeat()

    def restart(self, rng: Random) -> None:
        """End the program abruptly; it may start again and knows nothing."""
        self.member_id, self.generation, self.phase, self.waiting_for = "", -1, Phase.OUT, None
        self.silent = rng.random() < 0.3
        self.round += rng.random() < 0.3

    def join(self) -> tuple[int, m.RequestBody]:
        plan, version = self.plan, self.plan.join_version
        return version, m.JoinGroupRequest(
            group_id=plan.group_id,
            session_timeout_ms=plan.session_timeout_ms,
            rebalance_timeout_ms=plan.rebalance_timeout_ms if version >= 1 else -1,
            member_id=self.member_id,
            group_instance_id=plan.instance_id if version >= 5 else None,
            protocol_type=plan.protocol_type,
            protocols=offered(plan, self.round),
            reason=self._reason("rebalance") if version >= 8 and (self.round or plan.reason) else None,
        )

    def _reason(self, word: str) -> str:
        return word if self.plan.reason is None else self.plan.reason

    def sync(self, rng: Random) -> tuple[int, m.RequestBody]:
        plan, version = self.plan, self.plan.sync_version
        assignments: tuple[m.SyncGroupAssignment, ...] = ()
        if self.leads:
            listed = [member for member in self.members if rng.random() < 0.95]
            assignments = tuple(
                m.SyncGroupAssignment(member, b"%d:%d" % (self.generation, n)) for n, member in enumerate(listed)
            )
        return version, m.SyncGroupRequest(
            group_id=plan.group_id,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=plan.instance_id if version >= 3 else None,
            protocol_type=plan.protocol_type if version >= 5 else None,
            protocol_name=(self.protocol_name or plan.protocols[0]) if version >= 5 else None,
            assignments=assignments,
        )

    def heartbeat(self) -> tuple[int, m.RequestBody]:
        plan, version = self.plan, self.plan.heartbeat_version
        return version, m.HeartbeatRequest(
            plan.group_id,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=plan.instance_id if version >= 3 else None,
        )

    def leave(self) -> tuple[int, m.RequestBody]:
        plan, version = self.plan, self.plan.leave_version
        # C-LEAVE-26: a static member leaves with its id only
        member = m.LeaveGroupMember(self.member_id, reason=self._reason("closing") if version >= 5 else None)
        return version, m.LeaveGroupRequest(plan.group_id, (member,))

    def sent(self, request_id: int, version: int, body: m.RequestBody) -> None:
        """Note that one of its requests was sent."""
        self.waiting_for, self.last = request_id, (version, body)
        if isinstance(body, m.JoinGroupRequest):
            self.phase = Phase.JOINING
        elif isinstance(body, m.SyncGroupRequest):
            self.phase = Phase.SYNCING
        elif isinstance(body, m.LeaveGroupRequest):
            self.phase, self.member_id, self.generation = Phase.OUT, "", -1

    def answered(self, request_id: int, body: m.ResponseBody) -> None:
        """Handle an answer; ignore one that it no longer waits for."""
        if request_id != self.waiting_for:
            return
        self.waiting_for = None
        if isinstance(body, m.JoinGroupResponse):
            self._joined(body)
        elif isinstance(body, m.SyncGroupResponse | m.HeartbeatResponse):
            if body.error_code is ErrorCode.NONE:
                self.phase = Phase.STABLE
            else:
                self._refused(body.error_code)

    def _joined(self, body: m.JoinGroupResponse) -> None:
        if body.error_code is ErrorCode.NONE:
            self.member_id, self.generation, self.phase = body.member_id, body.generation_id, Phase.JOINED
            self.leads, self.protocol_name = body.leader == body.member_id, body.protocol_name
            self.members = tuple(sorted(member.member_id for member in body.members))
        elif body.error_code is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id, self.phase = body.member_id, Phase.OUT
        else:
            self._refused(body.error_code)

    def _refused(self, error: ErrorCode) -> None:
        self.phase = Phase.OUT
        if error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            self.member_id, self.generation = "", -1
        elif error in (ErrorCode.GROUP_MAX_SIZE_REACHED, ErrorCode.INCONSISTENT_GROUP_PROTOCOL):
            self.silent = True  # it backs off instead of retrying at once
