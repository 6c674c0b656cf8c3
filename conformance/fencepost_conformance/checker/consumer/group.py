"""What is known of a whole group while its trace is read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from fencepost.protocol.consumer_messages import JOIN_EPOCH, ConsumerGroupHeartbeatRequest
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import JoinGroupRequest
from fencepost.protocol.profile import Profile
from fencepost.protocol.settings import Settings

from ..commits import Commit
from ..coordination import Coordination
from ..history import NEVER, Op
from ..search import Limits
from .epochs import Epochs
from .members import Member, Partition, Presence, asked_instance, may_end
from .topics import Topics

#: A position before all lines.
NOWHERE: Final = 1 << 62


@dataclass(slots=True)
class Before:
    """What was known when a request was sent: ``floor`` as ``Epochs.floor``, ``seen`` as ``Epochs.seen``.

    ``alone``: no other request of this member was under way at any time while this one was. ``rivals``: all requests
    that were. ``newcomer``: the coordinator certainly did not know the member. ``strangers``, ``residents``: of several
    members that one LeaveGroup names, those that it certainly did not know, and those that it did.
    """

    floor: int
    seen: int
    alone: bool
    newcomer: bool
    surely_in: bool
    inside: frozenset[str]  #: members that were certainly there
    most: int  #: members that there can have been
    strangers: frozenset[str]
    residents: frozenset[str]
    rivals: list[Op]


@dataclass(slots=True)
class Knowledge:
    """At the moment ``now``, the time of line ``line``. ``before``: by request, what was known when it was sent."""

    settings: Settings
    profile: Profile
    limits: Limits
    epochs: Epochs
    coordination: Coordination
    topics: Topics = field(default_factory=Topics)
    members: dict[str, Member] = field(default_factory=dict)
    before: dict[int, Before] = field(default_factory=dict)
    now: int = 0
    line: int = 0
    #: Since this line the group has certainly spoken the consumer protocol: some member of that protocol was there.
    consumer_from: int = NOWHERE
    deleted_from: int = NOWHERE  #: since this line there has certainly been no group, of any kind
    classic_seen: bool = False  #: a client sent a JoinGroup, so the group can have been a classic one
    unreadable: bool = False  #: a member has offered a protocol whose metadata cannot be read
    _pillars: frozenset[str] = frozenset()

    def move_to(self, now: int, line: int) -> None:
        """Time passes: members may have ended."""
        self.now, self.line = now, line
        pillars = frozenset(
            member.member_id
            for member in self.members.values()
            if not member.classic and self.surely_in(member) and not member.may_downgrade()
        )
        if not pillars or not pillars & self._pillars:
            self.consumer_from = line if pillars else NOWHERE
            for (
                member
            ) in self.members.values():  # a conversion gives classic members another epoch (X-UP-05, X-DOWN-04)
                member.exact = member.exact and not member.classic
        self._pillars = pillars
        for member in self.members.values():
            member.in_from = min(member.in_from, line) if self.surely_in(member) else NEVER
            member.out_from = min(member.out_from, line) if self.surely_out(member.member_id) else NEVER
            if not member.counted and member.presence is not Presence.OUT and not self.surely_in(member):
                member.counted = True
                self.epochs.may_bump()  # M-EPOCH-04

    def unseen(self, op: Op, member_id: str, instance: str | None, session_ms: int) -> None:
        """A member that no answer has shown may be in the group; without an id, under an id of no other member."""
        name = member_id or f"unseen-{op.id}"
        member = self.members.setdefault(name, Member(name, classic=True))
        member.presence, member.exact, member.classic = Presence.PERHAPS, False, True
        member.either = self.may_convert(op, name)
        if instance is None:
            return
        for holder in self.holders(instance):  # its place may have been taken
            holder.presence, holder.exact, holder.counted = Presence.PERHAPS, False, True
        member.takes(instance, self.line)
        member.session_ms = max(member.session_ms, session_ms)
        member.heard(op, self.now, self.line, self.limits.slack_ms)

    def relabelled(self) -> bool:
        """Some instance id may stay with the member that gave it up, also when that member is gone (M-STATIC-13)."""
        stays = self.profile.fault_relabelled_instance_stays
        return stays and any(member.formers for member in self.members.values())

    def gives_up(self, op: Op, member_id: str, instance: str) -> bool:
        """A join with this instance was answered: its former holders are gone. True if one of them may have come after
        it, so that it is the other way round."""
        contested = False
        for holder in [each for each in self.holders(instance) if each.member_id != member_id]:
            later = holder.until_line > op.line or bool(holder.open)
            contested = contested or later
            # one that only had the instance id once, or asked for it, may still be there
            unsure = later or holder.claims or holder.instance != instance
            holder.presence = Presence.PERHAPS if unsure else Presence.OUT
            holder.exact, holder.counted = False, True
            if holder.claims:
                holder.instance, holder.claims = None, False
        return contested

    def no_consumer_group(self, op: Op) -> None:
        """The answer shows that there was no group of the consumer protocol under this name at some time since the
        request was sent. So the members of that protocol had ended; one that was heard of since may be back."""
        for member in self.members.values():
            if member.classic and not member.either:
                continue
            if member.presence is Presence.IN:
                back = member.either or member.open or member.until_line > op.line
                member.presence = Presence.PERHAPS if back else Presence.OUT
            member.exact = False

    def surely_in(self, member: Member) -> bool:
        """Of a classic member only where nothing but this group's own rules can end it."""
        alone = not member.classic or self.consumer_from <= member.since_line
        return alone and member.surely_in(self.now, self.limits)

    def is_inside(self, member_id: str) -> bool:
        """The member is certainly there."""
        return self.surely_in(self.members[member_id])

    def untouched(self, op: Op, member: Member) -> bool:
        """The member was there all the time from the sending of this request until now, but for what the request itself
        does."""
        before = self.before[op.id]
        touches = [each for each in before.rivals if may_end(each, member) or _joins_as(each, member)]
        return member.member_id in before.inside and self.surely_in(member) and not touches

    def stays(self, op: Op, member: Member) -> bool:
        """The coordinator certainly knew it all the time from the sending of this request until now."""
        if not self.surely_in(member) or member.in_from <= op.line:
            return self.surely_in(member)
        before = self.before[op.id]  # a request that would end the member hides only itself that it stays
        silent = member.member_id in before.residents and member.until_line < op.line
        return silent and may_end(op, member) and not any(may_end(other, member) for other in before.rivals)

    def after(self, op: Op, member: Member) -> Presence:
        """Learn from the answer to a member's request: it was there, but an overlapping request may have removed it
        since, or converted it to the other protocol."""
        ended = any(may_end(other, member) for other in self.before[op.id].rivals)
        return Presence.PERHAPS if ended or self.may_convert(op, member.member_id) else Presence.IN

    def touched(self, op: Op, member: Member) -> bool:
        """A request that overlaps this one, by the member or about it, may have changed what is known of the member."""
        if member.until_line > op.line:  # also by a join that did not name it
            return True
        rivals = [each for each in self.before[op.id].rivals if not isinstance(each.body, Commit)]
        return any(
            getattr(each.body, "member_id", None) == member.member_id or may_end(each, member) for each in rivals
        )

    def may_convert(self, op: Op, member_id: str) -> bool:
        """A request of the other protocol that overlaps this one may have converted the member (X-UP-13, X-JOIN-13)."""
        other = (
            JoinGroupRequest if isinstance(op.body, ConsumerGroupHeartbeatRequest) else ConsumerGroupHeartbeatRequest
        )
        return any(
            isinstance(each.body, other) and each.body.member_id == member_id for each in self.before[op.id].rivals
        )

    def contested(self, op: Op, instance: str) -> bool:
        """Some request that overlaps this one may give the instance id to another member."""
        named: str = getattr(op.body, "member_id", "")
        rivals = [each for each in self.before[op.id].rivals if asked_instance(each) == instance]
        return any(not named or getattr(each.body, "member_id", "") != named for each in rivals)

    def may_have_joined(self, op: Op, member_id: str) -> bool:
        """Some request that overlaps this one may bring the member."""
        member = Member(member_id)
        return any(_joins_as(each, member) for each in self.before[op.id].rivals)

    def may_be_relabelled(self, op: Op, member: Member) -> bool:
        """Some request that overlaps this one may give the member another instance id (M-STATIC-01)."""
        named = (asked_instance(each) for each in self.before[op.id].rivals if _joins_as(each, member))
        return any(instance not in (None, member.instance) for instance in named)

    def surely_out(self, member_id: str) -> bool:
        """A conversion starts the sessions of classic members anew (X-UP-08, X-DOWN-05), so theirs may last longer."""
        member = self.members.get(member_id)
        if member is None:
            return True
        timed = not member.classic or self.consumer_from <= member.until_line
        if self.downgrade_may_fail():
            # the end of the last member of KIP-848 fails with its downgrade, and is not tried again (X-DOWN-09)
            rest = [each for each in self.members.values() if each is not member and not each.classic]
            timed = timed and any(each.in_from <= member.until_line for each in rest)
        return member.surely_out(self.now, self.limits, timed=timed)

    def downgrade_may_fail(self) -> bool:
        """Metadata that cannot be read may make a downgrade fail: the leave is answered GROUP_ID_NOT_FOUND, and its
        member stays (X-DOWN-09)."""
        return self.unreadable and self.profile.fault_downgrade_reads_unread_metadata

    def surely_consumer(self, op: Op) -> bool:
        """The group spoke the consumer protocol all the time from the sending of this request until now."""
        return self.consumer_from < op.line

    def may_lack_protocol(self, op: Op, answer: object) -> bool:
        """The group may be a classic one in its first rebalance, which has selected no protocol yet.

        Then nothing says how to read the subscriptions of its members, so a heartbeat that joins is to come again
        (X-UP-07). Kafka fails inside instead.
        """
        joins = isinstance(op.body, ConsumerGroupHeartbeatRequest) and op.body.member_epoch == JOIN_EPOCH
        retried = getattr(answer, "error_code", None) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        lacks = self.classic_seen and not self.surely_consumer(op)
        return joins and retried and lacks and not self.profile.fault_upgrade_without_protocol

    def may_fail(self, op: Op) -> bool:
        """Kafka may fail inside: for a conversion (X-UP-07), and for an assignor that fails (M-HB-12).

        The uniform assignor fails on a partition of a classic leader's assignment that its topic does not have
        (A-UHET-06, X-UP-05), as far as the coordinator knows yet.
        """
        if not self.surely_consumer(op) or self.topics.unsettled(op.sent_ms, self.limits.slack_ms):
            return True
        fails = self.profile.fault_absent_partition_fails and self.classic_seen
        return fails and self.topics.may_lack(op.sent_ms, self.limits.slack_ms)

    def deletions_settled(self, since_ms: int) -> bool:
        """Every target that was computed since then knows which topics were deleted (M-TGT-08)."""
        settle_ms = self.limits.slack_ms + self.settings.group_consumer_max_assignment_interval_ms
        return not self.topics.unsettled(since_ms, settle_ms)

    def least(self) -> int:
        return sum(self.surely_in(member) for member in self.members.values())

    def possible(self, but: str) -> int:
        """The most members that there can be beside one."""
        return sum(not self.surely_out(member_id) for member_id in self.members if member_id != but)

    def holders(self, instance: str, since: int = NEVER) -> Iterator[Member]:
        """Members that may hold an instance id, or may have held it since a line.

        Kafka leaves an instance id that a member has given up with that member (M-STATIC-13).
        """
        for member in self.members.values():
            has = self.maps(instance, member) or member.formers.get(instance, -1) > since
            if has and not (member.out_from <= since and self.surely_out(member.member_id)):
                yield member

    def maps(self, instance: str, member: Member) -> bool:
        """The coordinator may find this member by the instance id.

        Kafka also finds it by an instance id that it has given up (M-STATIC-13).
        """
        stays = self.profile.fault_relabelled_instance_stays
        return member.instance == instance or (stays and instance in member.formers)

    def holder_of(self, partition: Partition, but: str) -> Member | None:
        """Another member that certainly holds the partition now (A or R)."""
        for member in self.members.values():
            other = member.member_id != but and self.surely_in(member)
            if other and member.surely_holds(partition, self.now, self.limits):
                return member
        return None


def _joins_as(op: Op, member: Member) -> bool:
    body: Any = op.body
    joins = isinstance(body, JoinGroupRequest) or getattr(body, "member_epoch", None) == JOIN_EPOCH
    return joins and member.member_id in (body.member_id, getattr(op.answer, "member_id", None))
