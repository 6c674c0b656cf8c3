"""A classic group: its members, their protocols, and the state of its rebalance.

A handler finds a group (``find_classic_group``) and works on a private, mutable draft of it. The draft shares its
mappings with the group that it came from, and copies a mapping when it first changes it. ``keep_group`` stores the
result. If the handler raises, none of its changes is seen.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, MutableMapping, Set
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from fencepost.protocol.embedded import PROTOCOL_TYPE
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import TimerKey, TimerKind
from fencepost.protocol.messages import JoinGroupResponse, Protocol, SyncGroupResponse
from fencepost.protocol.view import GroupState

from ..kernel.errors import InternalError, append_error
from ..kernel.operations import AppendCallback
from ..kernel.persistent import frozen, owned, with_entry
from ..kernel.replies import error_response
from ..kernel.state import ANSWERED, Operation
from ..kernel.step import Step

#: The subscriptions of the members, as unread bytes; None: unknown.
Subscriptions: TypeAlias = tuple[bytes, ...] | None


class ClassicMember(NamedTuple):
    """One member of a classic group (G-DATA-11).

    ``join`` and ``sync`` are the ids of the parked requests, ``ANSWERED``, or None.
    """

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout: int
    session_timeout: int
    protocols: tuple[Protocol, ...]
    assignment: bytes = b""
    is_new: bool = False
    join: int | None = None
    sync: int | None = None
    restored: bool = False  #: restored by undoing a replacement; earlier replacements do not know it (C-STATIC-18)

    def metadata(self, protocol_name: str | None) -> bytes | None:
        """The bytes that this member offers for a protocol, None if it does not support the protocol."""
        for protocol in self.protocols:
            if protocol.name == protocol_name:
                return protocol.metadata
        return None


class ClassicGroup(NamedTuple):
    """A classic group (G-DATA-01…09). ``incarnation`` tells apart two groups of the same name (C-ST-24)."""

    group_id: str
    incarnation: int
    state: GroupState = GroupState.EMPTY
    previous_state: GroupState = GroupState.DEAD  # C-ST-06, C-ST-07
    timestamp: int | None = None
    generation: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str | None = None
    members: Mapping[str, ClassicMember] = {}
    static_members: Mapping[str, str] = {}
    pending_join: Set[str] = frozenset()
    pending_sync: Set[str] = frozenset()
    support: Mapping[str, int] = {}  #: how many of the offered lists contain a protocol (G-DATA-08)
    awaiting: int = 0  #: members with a stored join (C-ST-23)
    new_member_added: bool = False
    assignment_open: bool = False  #: the leader's assignment of this generation is being appended (C-SYNC-19)
    subscriptions: Subscriptions = None  #: of the members at the start of the generation (G-DATA-10)

    @property
    def current_epoch(self) -> int:
        """The generation."""
        return self.generation

    def parked(self) -> Iterator[int]:
        """The JoinGroups and SyncGroups that wait in the group and have no answer."""
        for member in self.members.values():
            for number in (member.join, member.sync):
                if number is not None and number != ANSWERED:
                    yield number

    def entries(self) -> Mapping[str, object]:
        """Empty: Kafka keeps no earlier versions of the content of a classic group (C-ADM-08)."""
        return {}

    def with_answered(self, number: int) -> ClassicGroup:
        """Mark this request as answered elsewhere; the group still holds it (C-ST-23, C-JOIN-70)."""
        for member_id, member in self.members.items():
            if member.join == number:
                marked = member._replace(join=ANSWERED)
            elif member.sync == number:
                marked = member._replace(sync=ANSWERED)
            else:
                continue
            return self._replace(members=with_entry(self.members, member_id, marked))
        return self

    @property
    def gives_way(self) -> bool:
        """Records of another kind may replace it if it is a simple group (G-VOC-01)."""
        return self.protocol_type is None and not self.members and not self.pending_join


def subscriptions_of(
    protocol_type: str | None, protocol: str | None, members: Collection[ClassicMember]
) -> Subscriptions:
    """The subscriptions of consumers, unread, in the selected protocol; None where there are no subscriptions to read
    (G-DATA-10)."""
    if protocol_type != PROTOCOL_TYPE:
        return None
    offered = [member.metadata(protocol) for member in members]
    known = tuple([each for each in offered if each is not None])
    return known if len(known) == len(offered) else None


#: The states from which each state may be entered (C-ST-10…17, C-ST-25).
VALID_PREVIOUS_STATES: Mapping[GroupState, frozenset[GroupState]] = {
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

    def _own_members(self) -> MutableMapping[str, ClassicMember]:
        members = self.members = owned(self.members, self._before.members)
        return members

    def put(self, member: ClassicMember) -> None:
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

    def discard(self, member_id: str) -> ClassicMember | None:
        """Remove a member from the map and the counts, and do nothing else."""
        members = self._own_members()
        member = members.pop(member_id, None)
        if member is not None:
            self.awaiting -= member.join is not None
            self.count(member.protocols, -1)
            self._park(member, None)
        return member

    def _park(self, old: ClassicMember | None, new: ClassicMember | None) -> None:
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
        if self.state not in VALID_PREVIOUS_STATES[state]:
            raise InternalError
        self.previous_state = self.state
        self.state = state
        self.timestamp = at_ms


def find_classic_group(step: Step, group_id: str) -> GroupDraft | None:
    """The classic group of this name (C-ST-24), to be changed."""
    group = step.memory.groups.get(group_id)
    return GroupDraft(group) if isinstance(group, ClassicGroup) else None


def keep_group(step: Step, draft: GroupDraft) -> None:
    """Store the draft as the group of its name."""
    step.memory.exchange(draft.freeze())
    step.requests.park({number: draft.group_id if waits else None for number, waits in draft.parking.items()})


def find_incarnation(step: Step, group_id: str, incarnation: int) -> GroupDraft | None:
    """The group of this incarnation, even if it was upgraded since: it is kept until the upgrade is in the log."""
    befores = [change.before for change in step.memory.changes if change.group_id == group_id]
    for group in (step.memory.groups.get(group_id), *befores):
        if isinstance(group, ClassicGroup) and group.incarnation == incarnation:
            return GroupDraft(group)
    return None


def keep_incarnation(step: Step, draft: GroupDraft) -> None:
    """Store the draft where ``find_incarnation`` finds it; for a replaced group, reads see it (C-ADM-08)."""
    now = step.memory.groups.get(draft.group_id)
    if isinstance(now, ClassicGroup) and now.incarnation == draft.incarnation:
        keep_group(step, draft)
        return
    # A consumer group has replaced it: members do not see this rebalance.
    step.rebalances[:] = [each for each in step.rebalances if each.group_id != draft.group_id]
    step.memory.changes = tuple(
        change._replace(before=draft.freeze())
        if isinstance(change.before, ClassicGroup) and change.before.incarnation == draft.incarnation
        else change
        for change in step.memory.changes
    )


def schedule_classic_session_timeout(step: Step, group: GroupDraft | ClassicGroup, member: ClassicMember) -> None:
    """Start the session timeout of the member, within which it must send a request again (C-TMR-04)."""
    step.timers.set(TimerKey(TimerKind.SESSION, group.group_id, member.member_id), member.session_timeout)


def cancel_group_timers(step: Step, group: ClassicGroup) -> None:
    """A group that a failed append removes loses its timers (C-TMR-12)."""
    name = group.group_id
    for kind in (TimerKind.JOIN, TimerKind.SYNC):  # a downgrade may complete its join phase at once (X-DOWN-22)
        step.timers.cancel(TimerKey(kind, name))
    for member_id in (*group.members, *sorted(group.pending_join)):
        step.timers.cancel(TimerKey(TimerKind.SESSION, name, member_id))


def answer_join(step: Step, group: GroupDraft, member: ClassicMember, body: JoinGroupResponse) -> ClassicMember:
    """Answer the parked JoinGroup of a member, if it has one; the member no longer waits then."""
    if member.join is None:
        return member
    step.reply(member.join, body)
    member = member._replace(join=None)
    group.put(member)
    return member


def answer_sync(step: Step, group: GroupDraft, member: ClassicMember, body: SyncGroupResponse) -> ClassicMember:
    """The same for the parked SyncGroup."""
    if member.sync is None:
        return member
    step.reply(member.sync, body)
    member = member._replace(sync=None)
    group.put(member)
    return member


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
