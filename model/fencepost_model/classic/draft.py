"""A group while one step works on it, and what the step asks for.

The rules read and write a draft; ``close`` makes the tuple again. A step that fails with an internal error of the
coordinator keeps what it changed so far, as the coordinator does: classic group objects are not rolled back (F-RT-08).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import JoinGroupMember, JoinGroupResponse, ResponseBody, SyncGroupResponse
from fencepost.protocol.records import GroupMetadataKey, GroupMetadataMember, GroupMetadataValue, Record
from fencepost.protocol.settings import Settings

from ..machines import COMPLETING, STABLE
from ..table import GROUP_TABLE, IllegalTransition
from .choice import Chooser
from .state import ANSWERED, JOIN_TIMER, Callback, Group, Member, Operation, Timer, by_id

if TYPE_CHECKING:
    from ..variant import Variant


class InternalError(Exception):
    """A condition that the coordinator takes for impossible. The operation answers UNKNOWN_SERVER_ERROR."""


class DraftContext(NamedTuple):
    """State that all drafts of one step share."""

    settings: Settings
    variant: Variant
    chooser: Chooser
    now: int
    operations: list[Operation]
    replies: list[tuple[int, ResponseBody]]
    rules: list[str]


class Draft:
    """One group in one step. ``delay`` says what the join timer is for: None, or an initial delay (C-JOIN-43)."""

    __slots__ = (
        "_leader",
        "_leader_open",
        "armed",
        "callback",
        "chooser",
        "delay",
        "generation",
        "group",
        "group_id",
        "members",
        "new_member_added",
        "now",
        "operations",
        "pending_join",
        "pending_sync",
        "previous",
        "protocol_name",
        "protocol_type",
        "read",
        "records",
        "replies",
        "rules",
        "settings",
        "skew",
        "state",
        "timestamp",
        "variant",
    )

    def __init__(
        self,
        context: DraftContext,
        group_id: str,
        group: Group,
        delay: tuple[int, int] | None,
    ) -> None:
        self.settings = context.settings
        self.variant = context.variant
        self.chooser = context.chooser
        self.operations = context.operations
        self.replies = context.replies
        self.rules = context.rules
        self.now = context.now
        self.group_id = group_id
        self.group = group
        (
            self.state,
            self.previous,
            self.generation,
            self.protocol_type,
            self.protocol_name,
            self._leader,
            members,
            self.pending_join,
            self.pending_sync,
            self.new_member_added,
            self.timestamp,
            self.skew,
        ) = group
        self._leader_open = False
        self.members = {member[0]: member for member in members}
        self.delay = delay
        self.records: list[Record] = []
        self.armed: dict[Timer, int | None] = {}
        self.read: tuple[bytes | None, ...] | None = None  #: subscriptions from which the step read topics (G-DATA-10)
        self.callback: Callback | None = None

    def close(self) -> Group:
        """Return the group as it is now; if nothing changed, the same object, which is quick to compare and to look
        up."""
        group = Group(
            self.state,
            self.previous,
            self.generation,
            self.protocol_type,
            self.protocol_name,
            self.leader,
            by_id(self.members.values()),
            self.pending_join,
            self.pending_sync,
            self.new_member_added,
            self.timestamp,
            self.skew,
        )
        return self.group if group == self.group else group

    # ---- output of the step -------------------------------------------------------------------------------------

    def rule(self, *ids: str) -> None:
        """Note that these rules decided the step."""
        self.rules.extend(ids)

    def reply(self, request: int | None, body: ResponseBody) -> None:
        """Complete a request's future. A future that is already complete stays as it is (C-JOIN-70)."""
        if request is None or request == ANSWERED:
            return
        self.replies.append((request, body))
        for at, operation in enumerate(self.operations):
            if operation.id == request:
                self.operations[at] = operation._replace(answered=True)
                break

    def arm(self, timer: Timer, delay: int) -> None:
        self.armed[timer] = delay

    def cancel(self, timer: Timer) -> None:
        self.armed[timer] = None
        if timer is JOIN_TIMER:
            self.delay = None

    def transition(self, trigger: str) -> None:
        """Fire a trigger of the state machine, as ``CG.transitionTo`` (C-ST-10…16). Raises IllegalTransition."""
        dest = GROUP_TABLE[trigger].get(self.state)
        if dest is None:
            raise IllegalTransition(f"{trigger} in {self.state}")
        self.previous = self.state
        self.state = dest
        self.timestamp = self.now

    # ---- members ------------------------------------------------------------------------------------------------

    @property
    def leader(self) -> str | None:
        """The member that leads. After ``remove`` it may be any remaining member (C-JOIN-76).

        Kafka chooses it immediately; here it is chosen when it is first read. A leader removed before that need not
        have been chosen at all, and a step that removes ten members in turn would otherwise branch in ten factorial
        ways.
        """
        self.choose_leader()
        return self._leader

    @leader.setter
    def leader(self, member_id: str | None) -> None:
        self._leader, self._leader_open = member_id, False

    def choose_leader(self) -> None:
        """Choose the leader if that is still open."""
        if self._leader_open:
            self.leader = self.chooser.pick("leader", sorted(self.members)) if self.members else None

    def put(self, member: Member) -> None:
        if member.member_id not in self.members:
            self.choose_leader()  # one of the remaining members, not the new one
        self.members[member.member_id] = member

    def static_member_id(self, instance: str) -> str | None:
        """Return the member id that an instance id maps to (G-DATA-05, INV-MEM-02)."""
        for member in self.members.values():
            if member.instance == instance:
                return member.member_id
        return None

    def remove(self, member_id: str) -> None:
        """Remove a member with its static mapping, pending entries and leadership, as ``CG.remove`` (C-TMR-10)."""
        self.members.pop(member_id, None)
        if self._leader == member_id and not self._leader_open:
            self.rule("C-JOIN-76")  # the next member in hash-map order, parked or not
            self._leader_open = True
        if member_id in self.pending_join:
            self.pending_join -= {member_id}
        if member_id in self.pending_sync:
            self.pending_sync -= {member_id}

    def awaiting(self) -> int:
        """Return the number of members with a stored join future, answered or not (G-DATA-08, C-ST-23)."""
        return sum([member.join is not None for member in self.members.values()])

    def all_joined(self) -> bool:
        """Return whether every member has a join future and no id is pending (C-ST-23)."""
        return not self.pending_join and None not in [member.join for member in self.members.values()]

    def rebalance_timeout(self) -> int:
        """Return the maximum over the members in ms, 0 without any; negative values cannot lower it (C-ST-22)."""
        return max([0, *[member.rebalance_timeout for member in self.members.values()]])

    def arm_session(self, member: Member) -> None:
        """Set the session timer to the member's own session timeout (C-TMR-04)."""
        self.armed[Timer("session", member.member_id)] = member.session_timeout

    def answer_join(self, member: Member, body: JoinGroupResponse) -> Member:
        """Complete the member's join future if one is stored. Returns the member without it."""
        if member.join is None:
            return member
        self.reply(member.join, body)
        member = member._replace(join=None)
        self.members[member.member_id] = member
        return member

    def answer_sync(self, member: Member, body: SyncGroupResponse) -> bool:
        """Complete the member's sync future. Returns False if none is stored."""
        if member.sync is None:
            return False
        self.reply(member.sync, body)
        self.members[member.member_id] = member._replace(sync=None)
        return True

    # ---- protocols ----------------------------------------------------------------------------------------------

    def support(self, name: str) -> int:
        """Return how often the members list a protocol; a name listed twice counts twice (C-JOIN-72)."""
        count = sum([protocol.name == name for member in self.members.values() for protocol in member.protocols])
        if self.skew:
            self.rule("C-STATIC-18")
        return count + dict(self.skew).get(name, 0)

    def select_protocol(self) -> str:
        """Select the protocol by vote (C-JOIN-63). Raises InternalError if a member supports no candidate
        (C-JOIN-72)."""
        votes: dict[str, int] = {}
        candidates: dict[str, bool] = {}
        size = len(self.members)
        for member in self.members.values():
            for protocol in member.protocols:
                name = protocol.name
                if name not in candidates:
                    candidates[name] = self.support(name) == size
                if candidates[name]:
                    votes[name] = votes.get(name, 0) + 1
                    break
            else:
                raise InternalError("a member supports none of the protocols that all support")
        most = max(votes.values())
        tied = sorted(name for name, count in votes.items() if count == most)
        if len(tied) > 1:
            self.rule("C-JOIN-63")
        return self.chooser.pick("protocol", tied)

    def metadata(self, member: Member) -> bytes:
        """Return the member's metadata for the selected protocol. Raises InternalError if it does not offer that."""
        offered = self.offered(member)
        if offered is None:
            raise InternalError("a member does not offer the selected protocol")
        return offered

    def offered(self, member: Member) -> bytes | None:
        """Return the member's metadata for the selected protocol, or None if it does not offer that."""
        return next((each.metadata for each in member.protocols if each.name == self.protocol_name), None)

    def member_rows(self) -> tuple[JoinGroupMember, ...]:
        """Return the members list for the leader (C-JOIN-49). Raises InternalError in Preparing (C-STATIC-17 ii)."""
        if self.state not in (COMPLETING, STABLE):
            raise InternalError(f"no members list in {self.state}")
        return tuple(
            JoinGroupMember(member.member_id, group_instance_id=member.instance, metadata=self.metadata(member))
            for member in by_id(self.members.values())
        )

    def joined(self, member_id: str, rows: tuple[JoinGroupMember, ...], *, skip: bool = False) -> JoinGroupResponse:
        """Return a successful JoinGroup answer for the current generation (C-JOIN-49)."""
        return JoinGroupResponse(
            error_code=ErrorCode.NONE,
            generation_id=self.generation,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol_name,
            leader=self.leader or "",
            skip_assignment=skip,
            member_id=member_id,
            members=rows,
        )

    # ---- records ------------------------------------------------------------------------------------------------

    def record(self, assignments: dict[str, bytes] | None) -> Record:
        """Return a GroupMetadata record of the group with these assignments, or with the stored ones if None (F-REC-02,
        12, 20).

        A group without a selected protocol has no members, so it has no subscriptions to write.
        """
        return Record(
            GroupMetadataKey(self.group_id),
            GroupMetadataValue(
                protocol_type=self.protocol_type or "",
                generation=self.generation,
                protocol=self.protocol_name,
                leader=self.leader,
                current_state_timestamp=self.timestamp,
                members=tuple(
                    GroupMetadataMember(
                        member_id=member.member_id,
                        group_instance_id=member.instance,
                        client_id=member.client_id,
                        client_host=member.client_host,
                        rebalance_timeout=member.rebalance_timeout,
                        session_timeout=member.session_timeout,
                        subscription=self.metadata(member),
                        assignment=member.assignment if assignments is None else assignments.get(member.member_id, b""),
                    )
                    for member in by_id(self.members.values())
                ),
            ),
        )
