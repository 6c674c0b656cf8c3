"""The state of a consumer group as flat, hashable tuples (G-DATA-20…33).

Derived values are not stored: the group's state, the epochs of partitions, the counts of subscriptions, votes and
regexes; ``derive`` computes them. The map of instance ids *is* stored, since Kafka's map may have entries without a
member (M-STATIC-13). The subscription type is stored too, as it may be out of date (M-TGT-06). Everything is sorted, so
two groups that differ only in the order of a hash map are one state.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatRequest
from fencepost.protocol.consumer_records import ClassicMemberMetadata, TopicMetadata
from fencepost.protocol.consumer_view import ResolvedRegex, SubscriptionType
from fencepost.protocol.events import Topic

from ..classic.state import Timer
from ..machines import C_STABLE

#: Topic id and number.
Partition: TypeAlias = tuple[bytes, int]
#: The partitions of a member's target, ascending.
Target: TypeAlias = tuple[Partition, ...]
#: Topic id, number, and the epoch at which the member got it (M-PE-06), ascending.
Held: TypeAlias = tuple[tuple[bytes, int, int], ...]


class Member(NamedTuple):
    """One member (G-DATA-29). ``assigned`` is A and ``revoking`` is R of the rule book; ``names`` ascending."""

    member_id: str
    instance: str | None = None
    rack: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout: int = -1
    names: tuple[str, ...] = ()
    regex: str = ""
    assignor: str | None = None
    classic: ClassicMemberMetadata | None = None
    epoch: int = 0
    previous: int = -1
    state: str = C_STABLE
    assigned: Held = ()
    revoking: Held = ()


class Converted(NamedTuple):
    """A member without partitions yet, its former assignment, and the claims of its last JoinGroup with their
    generation."""

    member: Member
    assigned: Target
    claims: frozenset[Partition]
    generation: int


class ConsumerGroup(NamedTuple):
    """One group object.

    ``target`` and ``members`` ascend by member id, ``statics`` by instance id, ``regexes`` by regex. ``type`` is as of
    the last change of a member: a regex resolved or dropped since is not included. ``metadata`` is what 4.0 keeps
    instead of the hash (V-34). ``refresh`` is the deadline of M-META-01 with its group epoch; None is "expired". It is
    the only field that no record restores and no failed append reverts (M-HB-13).
    """

    epoch: int
    assignment_epoch: int
    hash: int = 0
    timestamp: int = 0
    members: tuple[Member, ...] = ()
    statics: tuple[tuple[str, str], ...] = ()
    target: tuple[tuple[str, Target], ...] = ()
    regexes: tuple[ResolvedRegex, ...] = ()
    legacy: bool = False
    metadata: tuple[TopicMetadata, ...] = ()
    type: SubscriptionType = SubscriptionType.HOMOGENEOUS
    refresh: tuple[int, int] | None = None

    def member(self, member_id: str) -> Member | None:
        for member in self.members:
            if member.member_id == member_id:
                return member
        return None

    def held_by(self, instance: str) -> str | None:
        """Return the member id that an instance id maps to (G-DATA-21)."""
        for name, member_id in self.statics:
            if name == instance:
                return member_id
        return None

    def target_of(self, member_id: str) -> Target | None:
        for name, target in self.target:
            if name == member_id:
                return target
        return None

    def resolved(self, regex: str) -> ResolvedRegex | None:
        for row in self.regexes:
            if row.regex == regex:
                return row
        return None


def new_group(first: int) -> ConsumerGroup:
    """Return a group without any record, at its first epoch (M-VAL-21, F-REPLAY-11)."""
    return ConsumerGroup(first, first)


class Image(NamedTuple):
    """The existing topics, by name, and the version of the image. The image before the
    first has a version too (M-RX-04)."""

    topics: tuple[Topic, ...] = ()
    version: int = 0


#: Kinds of timers of a member (M-TMR-01…03).
SESSION: Final = "consumer-session"
REBALANCE: Final = "consumer-rebalance"
JOIN: Final = "consumer-join"
SYNC: Final = "consumer-sync"
KINDS: Final = (SESSION, REBALANCE, JOIN, SYNC)


#: The delay after which a timer whose write failed fires again, in ms (F-RT-17, M-TMR-08).
RETRY_MS: Final = 500


class Resolution(NamedTuple):
    """A running regex resolution, with what was fixed when it was scheduled (M-RX-04). ``hidden``: the topics that the
    caller may not describe (M-RX-06). It uses the image at the time when it runs."""

    group_id: str
    regexes: tuple[str, ...]
    hidden: frozenset[str]


class ConsumerHeartbeat(NamedTuple):
    """A ConsumerGroupHeartbeat arrives. ``new_id``: the member id to use if one must be made (M-VAL-26)."""

    body: ConsumerGroupHeartbeatRequest
    version: int = 1
    client_id: str = ""
    client_host: str = ""
    new_id: str = ""
    denied_topics: frozenset[str] = frozenset()


class Expire(NamedTuple):
    """A timer of a member expires. ``epoch``: the member's epoch when a rebalance timer was armed (M-TMR-02)."""

    kind: str
    member_id: str
    epoch: int = 0


class Resolve(NamedTuple):
    """A resolution has run (M-RX-04)."""

    resolution: Resolution
    failed: bool = False


__all__ = [
    "JOIN",
    "KINDS",
    "REBALANCE",
    "RETRY_MS",
    "SESSION",
    "SYNC",
    "ConsumerGroup",
    "ConsumerHeartbeat",
    "Expire",
    "Held",
    "Image",
    "Member",
    "Partition",
    "Resolution",
    "Resolve",
    "Target",
    "Timer",
    "new_group",
]
