"""What is known of one member of a consumer group, from the answers that were seen."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from fencepost.protocol.consumer_messages import JOIN_EPOCH, ConsumerGroupHeartbeatRequest, TopicPartitions
from fencepost.protocol.messages import HeartbeatRequest, JoinGroupRequest, LeaveGroupRequest, SyncGroupRequest

from ..history import NEVER, Op
from ..search import Limits

#: Topic id and number.
Partition: TypeAlias = tuple[bytes, int]


class Presence(Enum):
    """``PERHAPS``: no answer tells whether the coordinator knows the member."""

    IN = "in"
    PERHAPS = "perhaps"
    OUT = "out"


def partitions(rows: Iterable[TopicPartitions]) -> frozenset[Partition]:
    return frozenset((row.topic_id, number) for row in rows for number in row.partitions)


@dataclass(slots=True, eq=False)
class Member:
    """``held`` is A of the rule book with the assignment epoch of each partition (None: not known), ``revoking`` is R.

    Both hold only while ``exact``. The request by which the coordinator heard of the member last was sent at
    ``since_ms`` (``since_line``), and its answer seen at ``until_ms`` (``until_line``): the session runs out not before
    the one plus ``session_ms`` and, with a margin, not after the other plus that. ``deadline_ms``: before this no other
    timer ends it.
    """

    member_id: str
    classic: bool = False
    either: bool = False  #: a request of the other protocol that overlaps may have converted it since
    instance: str | None = None
    claims: bool = False  #: it has asked for ``instance``, and may not have got it
    contested: bool = False  #: somebody may have taken its place already when its join was answered
    formers: dict[str, int] = field(default_factory=dict)  #: instance ids that it had before, until which line
    presence: Presence = Presence.PERHAPS
    exact: bool = False
    epoch: int = 0
    previous: frozenset[int] = frozenset()
    held: dict[Partition, int | None] = field(default_factory=dict)
    revoking: frozenset[Partition] = frozenset()
    pruned: bool = False  #: it is revoking because it no longer subscribes (M-REC-25)
    away: bool = False  #: a static member at epoch -2
    away_from: int = NEVER  #: the line that showed it
    names: frozenset[str] | None = None
    regex: str | None = None
    regex_known: bool = True  #: else it may have another, from the member that it replaced
    session_ms: int = 0
    rebalance_ms: int | None = None
    earlier_ms: int = NEVER  #: the rebalance timeout of an earlier JoinGroup, which may still hold (C-JOIN-51)
    since_ms: int = 0
    until_ms: int = 0
    since_line: int = 0
    until_line: int = 0
    deadline_ms: int = NEVER
    join_by_ms: int = NEVER  #: from then on a classic member that was told to join again, and did not, may be removed
    latest_ms: int = NEVER  #: at the latest then it must be gone, unless it confirms its revocation (M-TMR-02)
    stray_ms: int = (
        NEVER  #: then a timer may end it that was armed while it spoke the other protocol (X-TMR-02, X-TMR-03)
    )
    stray_until_ms: int = 0  #: until then that timer may be running
    longest_ms: int = 0  #: the latest time at which the timer of its last JoinGroup may end it
    blurred_ms: int = -1  #: until then a request that was never answered may still take effect
    open: list[Op] = field(default_factory=list)
    counted: bool = False  #: its possible end is counted among the bumps
    told_rebalance: int = -1  #: the generation for which a classic member was told to rejoin
    removers: int = 0  #: requests under way that would remove or replace it
    in_from: int = NEVER  #: since this line the coordinator has certainly known it
    out_from: int = NEVER  #: since this line the coordinator has certainly not known it

    def changes_protocol(self) -> None:
        """Its timers stay armed when it, or its group, changes to the other protocol."""
        self.stray_ms = min(self.stray_ms, self.deadline_ms, self.join_by_ms)
        self.stray_until_ms = max(self.stray_until_ms, self.longest_ms)

    def heard(self, op: Op, now: int, line: int, slack_ms: int) -> None:
        """Its session begins anew with this request, whose answer was seen now."""
        if op.sent_ms > max(self.stray_ms, self.stray_until_ms) + slack_ms:
            self.stray_ms = NEVER  # it has run out, or was not there
        self.since_ms, self.since_line = op.sent_ms, op.line
        self.until_ms, self.until_line = now, line

    @property
    def shortest_ms(self) -> int:
        """The shortest rebalance timeout that it may have."""
        return min(self.rebalance_ms or 0, self.earlier_ms)

    def follows(self, predecessor: Member, instance: str, line: int) -> None:
        """It takes the place of this member, which was found by the instance id.

        Kafka writes it as a copy first, and the copy has the predecessor's own instance id. That is another one if
        the predecessor has changed it and stays mapped by the former one (M-STATIC-10, M-STATIC-13).
        """
        had = [each for each in (predecessor.instance, *predecessor.formers) if each not in (None, instance)]
        self.formers = {**self.formers, **dict.fromkeys(filter(None, had), line)}

    def takes(self, instance: str, line: int) -> None:
        """It has this instance id now, as this line shows."""
        if self.instance is not None and self.instance != instance:
            self.formers = {**self.formers, self.instance: line}
        self.instance, self.claims = instance, False

    def owned(self) -> frozenset[Partition]:
        return self.revoking.union(self.held)

    def _timers(self) -> tuple[int, int, int]:
        return self.deadline_ms, self.join_by_ms, self.stray_ms

    def may_downgrade(self) -> bool:
        """A static JoinGroup under way may make the group of its last member of KIP-848 a classic one (X-DOWN-20)."""
        bodies = (op.body for op in self.open)
        return any(isinstance(body, JoinGroupRequest) and body.group_instance_id is not None for body in bodies)

    def may_time_out(self, now: int, limits: Limits) -> bool:
        """One of its timers may have run out by now."""
        return now >= min(self.since_ms + self.session_ms, *self._timers()) - limits.tolerance_ms

    def surely_in(self, now: int, limits: Limits) -> bool:
        """The coordinator certainly knows it, and has since its last answer."""
        return (
            self.presence is Presence.IN
            and not self.removers
            and not self.may_time_out(now, limits)
            and not any(_leaves(op) for op in self.open)
            and now < min((_ends_from(op, self) for op in self.open), default=NEVER) - limits.tolerance_ms
        )

    def surely_out(self, now: int, limits: Limits, *, timed: bool) -> bool:
        """The coordinator certainly does not know it, and will not before it joins; ``timed``: its session can tell."""
        if any(_joins(op) for op in self.open) or now <= self.blurred_ms:
            return False
        return self.presence is Presence.OUT or (
            timed and not self.open and now > max(self.until_ms + self.session_ms, self.blurred_ms) + limits.slack_ms
        )

    def surely_holds(self, partition: Partition, now: int, limits: Limits) -> bool:
        if not self.exact or (partition not in self.held and partition not in self.revoking):
            return False
        return self.surely_in(now, limits) and not any(_frees(op, partition) for op in self.open)


def may_end(op: Op, member: Member) -> bool:
    """Can this request remove the member, or give its place to another?"""
    body = op.body
    instances = {member.instance, *member.formers} - {None}
    if isinstance(body, LeaveGroupRequest):
        return any(
            row.group_instance_id in instances
            if row.group_instance_id is not None
            else row.member_id == member.member_id
            for row in body.members
        )
    if isinstance(body, ConsumerGroupHeartbeatRequest) and body.member_epoch < JOIN_EPOCH:
        return body.member_id == member.member_id
    named: str = getattr(body, "member_id", "")
    return asked_instance(op) in instances and named != member.member_id


def asked_instance(op: Op) -> str | None:
    """The instance id that a request joins with."""
    body = op.body
    if not _joins(op):
        return None
    told: str | None = getattr(body, "instance_id", None) or getattr(body, "group_instance_id", None)
    return told


def _leaves(op: Op) -> bool:
    body = op.body
    if isinstance(body, ConsumerGroupHeartbeatRequest):
        return body.member_epoch < 0
    return hasattr(body, "members")


def _ends_from(op: Op, member: Member) -> int:
    """When the member may be removed at the earliest, if this request under way has set a timer.

    A JoinGroup sets its own timeouts (X-JOIN-20). Any other request may tell the member to revoke or to join again,
    which it then has to do within its rebalance timeout (M-TMR-02, X-TMR-02).
    """
    body = op.body
    if isinstance(body, JoinGroupRequest):
        return op.sent_ms + min(rebalance_timeout(op, body), body.session_timeout_ms)
    if not isinstance(body, ConsumerGroupHeartbeatRequest | HeartbeatRequest | SyncGroupRequest):
        return NEVER
    told = [
        rebalance_timeout(each, each.body)
        if isinstance(each.body, JoinGroupRequest)
        else getattr(each.body, "rebalance_timeout_ms", -1)
        for each in member.open
    ]
    return op.sent_ms + min([each for each in told if each >= 0] + [member.shortest_ms])


def rebalance_timeout(op: Op, body: JoinGroupRequest) -> int:
    """The rebalance timeout of a JoinGroup in ms; of version 0, which has none, its session timeout (G-WIRE-01)."""
    return body.session_timeout_ms if op.version == 0 else body.rebalance_timeout_ms


def _joins(op: Op) -> bool:
    body = op.body
    if isinstance(body, ConsumerGroupHeartbeatRequest):
        return body.member_epoch == 0
    return hasattr(body, "protocols")


def _frees(op: Op, partition: Partition) -> bool:
    """Can this request, under way, make its member give up the partition?"""
    body = op.body
    if isinstance(body, ConsumerGroupHeartbeatRequest):
        rows = body.topic_partitions
        return body.member_epoch <= 0 or (rows is not None and partition not in partitions(rows))
    return _joins(op) or _leaves(op)
