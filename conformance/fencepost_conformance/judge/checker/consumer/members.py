"""Knowledge about one member of a consumer group, from the answers of the trace."""

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
    """Whether the coordinator knows the member. ``PERHAPS``: no answer shows it."""

    IN = "in"
    PERHAPS = "perhaps"
    OUT = "out"


def partitions(rows: Iterable[TopicPartitions]) -> frozenset[Partition]:
    return frozenset((row.topic_id, number) for row in rows for number in row.partitions)


@dataclass(slots=True, eq=False)
class Member:
    """``held`` is A of the rule book with the assignment epoch of each partition (None: not known), ``revoking`` is R.

    Both are right only while ``exact``. The last request by which the coordinator heard of the member was sent at
    ``since_ms`` (``since_line``), and its answer arrived at ``until_ms`` (``until_line``). So the session ends between
    ``since_ms`` and ``until_ms`` plus ``session_ms``, with a margin. ``deadline_ms``: no other timer removes the member
    before this.
    """

    member_id: str
    classic: bool = False
    either: bool = False  #: a request of the other protocol that overlaps may have converted it since
    instance: str | None = None
    claims: bool = False  #: it has joined with ``instance``, but may not hold it
    contested: bool = False  #: another member may have replaced it before its join was answered
    formers: dict[str, int] = field(default_factory=dict)  #: earlier instance ids: each with its last line
    presence: Presence = Presence.PERHAPS
    exact: bool = False
    epoch: int = 0
    previous: frozenset[int] = frozenset()
    held: dict[Partition, int | None] = field(default_factory=dict)
    revoking: frozenset[Partition] = frozenset()
    pruned: bool = False  #: it is revoking because it no longer subscribes (M-REC-25)
    away: bool = False  #: a static member at epoch -2
    away_from: int = NEVER  #: the line that showed that
    names: frozenset[str] | None = None
    regex: str | None = None
    regex_known: bool = True  #: if not, it may have the regex of the member that it replaced
    session_ms: int = 0
    rebalance_ms: int | None = None
    earlier_ms: int = NEVER  #: the rebalance timeout of an earlier JoinGroup, which may still apply (C-JOIN-51)
    since_ms: int = 0
    until_ms: int = 0
    since_line: int = 0
    until_line: int = 0
    deadline_ms: int = NEVER
    join_by_ms: int = NEVER  #: from then on the coordinator may remove a classic member that should have rejoined
    latest_ms: int = NEVER  #: by then the coordinator has removed it, unless it confirms its revocation (M-TMR-02)
    stray_ms: int = NEVER  #: from then on a timer of the other protocol may remove it (X-TMR-02, X-TMR-03)
    stray_until_ms: int = 0  #: until then that timer may be running
    longest_ms: int = 0  #: the latest time at which the timer of its last JoinGroup may remove it
    blurred_ms: int = -1  #: until then a request that was never answered may still take effect
    open: list[Op] = field(default_factory=list)
    counted: bool = False  #: its possible removal is counted as a bump of the epoch
    asked_to_rejoin_in: int = -1  #: the generation in which a classic member got REBALANCE_IN_PROGRESS
    removers: int = 0  #: requests under way that would remove or replace it
    in_from: int = NEVER  #: since this line the coordinator has certainly known it
    out_from: int = NEVER  #: since this line the coordinator has certainly not known it

    def changes_protocol(self) -> None:
        """Note that the member, or its group, changed to the other protocol. Its timers stay armed."""
        self.stray_ms = min(self.stray_ms, self.deadline_ms, self.join_by_ms)
        self.stray_until_ms = max(self.stray_until_ms, self.longest_ms)

    def heard(self, op: Op, now: int, line: int, slack_ms: int) -> None:
        """Note that its session restarts with this request, whose answer arrived now."""
        if op.sent_ms > max(self.stray_ms, self.stray_until_ms) + slack_ms:
            self.stray_ms = NEVER  # it has run out, or was not there
        self.since_ms, self.since_line = op.sent_ms, op.line
        self.until_ms, self.until_line = now, line

    @property
    def shortest_ms(self) -> int:
        """The shortest rebalance timeout that it may have."""
        return min(self.rebalance_ms or 0, self.earlier_ms)

    def follows(self, predecessor: Member, instance: str, line: int) -> None:
        """Note that it replaces this member, which the coordinator found by the instance id.

        Kafka first writes the new member as a copy of the predecessor, with the predecessor's instance id. That is
        another id if the predecessor has changed it and stays mapped by the former one (M-STATIC-10, M-STATIC-13).
        """
        had = [each for each in (predecessor.instance, *predecessor.formers) if each not in (None, instance)]
        self.formers = {**self.formers, **dict.fromkeys(filter(None, had), line)}

    def takes(self, instance: str, line: int) -> None:
        """Note that it has this instance id now, as this line shows."""
        if self.instance is not None and self.instance != instance:
            self.formers = {**self.formers, self.instance: line}
        self.instance, self.claims = instance, False

    def owned(self) -> frozenset[Partition]:
        return self.revoking.union(self.held)

    def _timers(self) -> tuple[int, int, int]:
        return self.deadline_ms, self.join_by_ms, self.stray_ms

    def may_downgrade(self) -> bool:
        """Whether a static JoinGroup under way may downgrade the group if this is its last member of KIP-848
        (X-DOWN-20)."""
        bodies = (op.body for op in self.open)
        return any(isinstance(body, JoinGroupRequest) and body.group_instance_id is not None for body in bodies)

    def may_turn_classic(self) -> bool:
        """Whether a JoinGroup under way may make it a classic member (X-JOIN-13)."""
        return any(isinstance(op.body, JoinGroupRequest) for op in self.open)

    def may_time_out(self, now: int, limits: Limits) -> bool:
        """Whether one of its timers may have fired by now."""
        return now >= min(self.since_ms + self.session_ms, *self._timers()) - limits.tolerance_ms

    def surely_in(self, now: int, limits: Limits) -> bool:
        """Whether the coordinator certainly knows it, and has known it since its last answer."""
        return (
            self.presence is Presence.IN
            and not self.removers
            and not self.may_time_out(now, limits)
            and not any(_leaves(op) for op in self.open)
            and now < min((_ends_from(op, self) for op in self.open), default=NEVER) - limits.tolerance_ms
        )

    def surely_out(self, now: int, limits: Limits, *, timed: bool) -> bool:
        """Whether the coordinator certainly does not know it, and will not before it joins. ``timed``: the end of its
        session counts as proof."""
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
    """Whether this request can remove the member, or let another one replace it."""
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
    instance: str | None = getattr(body, "instance_id", None) or getattr(body, "group_instance_id", None)
    return instance


def _leaves(op: Op) -> bool:
    body = op.body
    if isinstance(body, ConsumerGroupHeartbeatRequest):
        return body.member_epoch < 0
    return hasattr(body, "members")


def _ends_from(op: Op, member: Member) -> int:
    """The earliest time at which a timer that this open request has set may remove the member.

    A JoinGroup sets its own timeouts (X-JOIN-20). The answer to another request may ask the member to revoke or to
    rejoin, which it then must do within its rebalance timeout (M-TMR-02, X-TMR-02).
    """
    body = op.body
    if isinstance(body, JoinGroupRequest):
        return op.sent_ms + min(rebalance_timeout(op, body), body.session_timeout_ms)
    if not isinstance(body, ConsumerGroupHeartbeatRequest | HeartbeatRequest | SyncGroupRequest):
        return NEVER
    timeouts = [
        rebalance_timeout(each, each.body)
        if isinstance(each.body, JoinGroupRequest)
        else getattr(each.body, "rebalance_timeout_ms", -1)
        for each in member.open
    ]
    return op.sent_ms + min([each for each in timeouts if each >= 0] + [member.shortest_ms])


def rebalance_timeout(op: Op, body: JoinGroupRequest) -> int:
    """The rebalance timeout of a JoinGroup in ms. Version 0 has none; its session timeout counts (G-WIRE-01)."""
    return body.session_timeout_ms if op.version == 0 else body.rebalance_timeout_ms


def _joins(op: Op) -> bool:
    body = op.body
    if isinstance(body, ConsumerGroupHeartbeatRequest):
        return body.member_epoch == 0
    return hasattr(body, "protocols")


def _frees(op: Op, partition: Partition) -> bool:
    """Whether this open request can make its member give up the partition."""
    body = op.body
    if isinstance(body, ConsumerGroupHeartbeatRequest):
        rows = body.topic_partitions
        return body.member_epoch <= 0 or (rows is not None and partition not in partitions(rows))
    return _joins(op) or _leaves(op)
