"""A classic group while one step changes it.

A handler works on a private, mutable draft, which shares its mappings with the group that it came from and copies a
mapping when it first changes it. If the handler raises, none of its changes is seen.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping

from fencepost.protocol.messages import Protocol
from fencepost.protocol.view import GroupState

from ..kernel.errors import InternalError
from ..kernel.persistent import frozen, owned
from ..kernel.state import ANSWERED
from .group import ClassicGroup, Member, subscriptions_of

#: The states from which each state may be entered (C-ST-10…17, C-ST-25).
_FROM: Mapping[GroupState, frozenset[GroupState]] = {
    GroupState.EMPTY: frozenset({GroupState.PREPARING_REBALANCE}),
    GroupState.PREPARING_REBALANCE: frozenset(
        {GroupState.EMPTY, GroupState.STABLE, GroupState.COMPLETING_REBALANCE},
    ),
    GroupState.COMPLETING_REBALANCE: frozenset({GroupState.PREPARING_REBALANCE}),
    GroupState.STABLE: frozenset({GroupState.COMPLETING_REBALANCE}),
}


class GroupDraft:
    """A classic group that is being changed. Fields as in ``ClassicGroup``; members change through the methods only."""

    __slots__ = (
        "_before",
        "assignment_open",
        "awaiting",
        "generation",
        "group_id",
        "incarnation",
        "leader",
        "members",
        "new_member_added",
        "parking",
        "pending_join",
        "pending_sync",
        "previous_state",
        "protocol_name",
        "protocol_type",
        "state",
        "static_members",
        "subscriptions",
        "support",
        "timestamp",
    )

    def __init__(self, group: ClassicGroup) -> None:
        self.group_id = group.group_id
        self.incarnation = group.incarnation
        self.state = group.state
        self.previous_state = group.previous_state
        self.timestamp = group.timestamp
        self.generation = group.generation
        self.protocol_type = group.protocol_type
        self.protocol_name = group.protocol_name
        self.leader = group.leader
        self.members = group.members
        self.static_members = group.static_members
        self.pending_join = group.pending_join
        self.pending_sync = group.pending_sync
        self.support = group.support
        self.awaiting = group.awaiting
        self.new_member_added = group.new_member_added
        self.assignment_open = group.assignment_open
        self.subscriptions = group.subscriptions
        self.parking: dict[int, bool] = {}  #: requests that start (True) or stop (False) waiting here
        self._before = group

    def freeze(self) -> ClassicGroup:
        """The group after the changes, as an immutable value."""
        return ClassicGroup(
            self.group_id,
            self.incarnation,
            self.state,
            self.previous_state,
            self.timestamp,
            self.generation,
            self.protocol_type,
            self.protocol_name,
            self.leader,
            frozen(self.members),
            frozen(self.static_members),
            self.pending_join,
            self.pending_sync,
            frozen(self.support),
            self.awaiting,
            self.new_member_added,
            self.assignment_open,
            self.subscriptions,
        )

    def _own_members(self) -> MutableMapping[str, Member]:
        members = self.members = owned(self.members, self._before.members)
        return members

    def put(self, member: Member) -> None:
        """Add a member, or replace the one with its id."""
        members = self._own_members()
        old = members.get(member.member_id)
        if old is not None:
            self.awaiting -= old.join is not None
        self.awaiting += member.join is not None
        if old is None or old.join is not member.join or old.sync is not member.sync:
            self._park(old, member)
        if old is None or old.protocols is not member.protocols:
            if old is not None:
                self.count(old.protocols, -1)
            self.count(member.protocols, 1)
        members[member.member_id] = member

    def discard(self, member_id: str) -> Member | None:
        """Remove a member from the map and the counts, and do nothing else."""
        members = self._own_members()
        member = members.pop(member_id, None)
        if member is not None:
            self.awaiting -= member.join is not None
            self.count(member.protocols, -1)
            self._park(member, None)
        return member

    def _park(self, old: Member | None, new: Member | None) -> None:
        for member, waits in ((old, False), (new, True)):
            for number in () if member is None else (member.join, member.sync):
                if number is not None and number != ANSWERED:
                    self.parking[number] = waits

    def count(self, protocols: tuple[Protocol, ...], change: int) -> None:
        """Add to the counts of members that support each protocol, or subtract; a name that is listed twice counts
        twice (G-DATA-08, C-JOIN-72)."""
        support = self.support = owned(self.support, self._before.support)
        for protocol in protocols:
            support[protocol.name] = support.get(protocol.name, 0) + change

    def map_instance(self, instance_id: str, member_id: str | None) -> None:
        """Map the instance id to this member, or to none (G-DATA-05)."""
        mapped = self.static_members = owned(self.static_members, self._before.static_members)
        if member_id is None:
            mapped.pop(instance_id, None)
        else:
            mapped[instance_id] = member_id

    def learn_subscriptions(self) -> None:
        """The group now subscribes to what its members offer for the protocol (G-DATA-10)."""
        self.subscriptions = subscriptions_of(self.protocol_type, self.protocol_name, self.members.values())

    @property
    def all_joined(self) -> bool:
        """Whether every member waits in the join phase, and no id is pending (C-ST-23)."""
        return self.awaiting == len(self.members) and not self.pending_join

    @property
    def rebalance_timeout(self) -> int:
        """The longest of the members' rebalance timeouts, in ms; 0 without members (C-ST-22)."""
        return max([0, *(member.rebalance_timeout for member in self.members.values())])

    def enter(self, state: GroupState, at_ms: int) -> None:
        """Enter another state (C-ST-10…17). Raises ``InternalError`` if no transition leads there (2.2)."""
        if self.state not in _FROM[state]:
            raise InternalError
        self.previous_state = self.state
        self.state = state
        self.timestamp = at_ms
