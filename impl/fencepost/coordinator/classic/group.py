"""A classic group: its members, their protocols, and the state of its rebalance."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Set
from typing import NamedTuple, TypeAlias

from fencepost.protocol.embedded import PROTOCOL_TYPE
from fencepost.protocol.messages import Protocol
from fencepost.protocol.view import GroupState

from ..kernel.persistent import with_entry
from ..kernel.state import ANSWERED

#: The subscriptions of the members, as unread bytes; None: unknown.
Subscriptions: TypeAlias = tuple[bytes, ...] | None


class Member(NamedTuple):
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
    members: Mapping[str, Member] = {}
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


def subscriptions_of(protocol_type: str | None, protocol: str | None, members: Collection[Member]) -> Subscriptions:
    """The subscriptions of consumers, unread, in the selected protocol; None where there are no subscriptions to read
    (G-DATA-10)."""
    if protocol_type != PROTOCOL_TYPE:
        return None
    offered = [member.metadata(protocol) for member in members]
    known = tuple([each for each in offered if each is not None])
    return known if len(known) == len(offered) else None
