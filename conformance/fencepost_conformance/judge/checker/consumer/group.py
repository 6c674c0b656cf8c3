"""Knowledge about a group at each line of the trace."""

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

    ``alone``: no other request of this member overlaps this one. ``rivals``: all requests that overlap it.
    ``newcomer``: the coordinator certainly did not know the member. ``strangers``, ``residents``: of the members that
    one LeaveGroup names, those that the coordinator certainly did not know, and those that it certainly knew.
    """

    floor: int
    seen: int
    alone: bool
    newcomer: bool
    surely_in: bool
    inside: frozenset[str]  #: members that were certainly in the group
    most: int  #: the most members that there can have been
    strangers: frozenset[str]
    residents: frozenset[str]
    rivals: list[Op]


@dataclass(slots=True)
class Knowledge:
    """What is known at the time ``now``, that of line ``line``. ``before``: by request, what was known when it was
    sent."""

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
    #: since this line the group has certainly spoken the consumer protocol: it has had a member of that protocol
    consumer_from: int = NOWHERE
    deleted_from: int = NOWHERE  #: since this line there has certainly been no group, of any kind
    classic_seen: bool = False  #: a client sent a JoinGroup, so the group can have been a classic one
    unreadable: bool = False  #: a member has offered a protocol whose metadata cannot be read
    _pillars: frozenset[str] = frozenset()

    def move_to(self, now: int, line: int) -> None:
        """Go to this time and line, and note which members may have been removed."""
        self.now, self.line = now, line
        pillars = frozenset(
            member.member_id
            for member in self.members.values()
            if not member.classic and self.surely_in(member) and not self._may_let_downgrade(member)
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

    def _may_let_downgrade(self, member: Member) -> bool:
        """Whether the group may be downgraded although this member of KIP-848 is in it: by its static JoinGroup, or by
        the departure of another member after its JoinGroup made it a classic one (X-JOIN-24)."""
        return member.may_downgrade() or (
            member.may_turn_classic()
            and any(
                other is not member and not self.surely_in(other) and not self.surely_out(other.member_id)
                for other in self.members.values()
            )
        )

    def unseen(self, op: Op, member_id: str, instance: str | None, session_ms: int) -> None:
        """Note that a member that no answer has shown may be in the group; without an id, under an unused one."""
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
        """Whether some instance id may stay mapped to the member that gave it up, even if that is gone
        (M-STATIC-13)."""
        stays = self.profile.fault_relabelled_instance_stays
        return stays and any(member.formers for member in self.members.values())

    def gives_up(self, op: Op, member_id: str, instance: str) -> bool:
        """Note that a join with this instance was accepted, so its former holders are gone. True if one of them may
        have joined after it, and so have replaced it."""
        contested = False
        for holder in [each for each in self.holders(instance) if each.member_id != member_id]:
            later = holder.until_line > op.line or bool(holder.open)
            contested = contested or later
            # a member that only had the instance id earlier, or asked for it, may still be in the group
            unsure = later or holder.claims or holder.instance != instance
            holder.presence = Presence.PERHAPS if unsure else Presence.OUT
            holder.exact, holder.counted = False, True
            if holder.claims:
                holder.instance, holder.claims = None, False
        return contested

    def no_consumer_group(self, op: Op) -> None:
        """Note that at some time since this request was sent there was no consumer group of this name, as the answer
        shows. So the members of that protocol were gone; one that the trace has shown since may be back."""
        for member in self.members.values():
            if member.classic and not member.either:
                continue
            if member.presence is Presence.IN:
                back = member.either or member.open or member.until_line > op.line
                member.presence = Presence.PERHAPS if back else Presence.OUT
            member.exact = False

    def surely_in(self, member: Member) -> bool:
        """Whether the member is certainly in the group."""
        return self.spoke_consumer(member) and member.surely_in(self.now, self.limits)

    def spoke_consumer(self, member: Member) -> bool:
        """Whether the group of a classic member has certainly spoken the consumer protocol since the coordinator last
        heard of the member."""
        return not member.classic or self.consumer_from <= member.since_line

    def is_inside(self, member_id: str) -> bool:
        """Whether the member of this id is certainly in the group."""
        return self.surely_in(self.members[member_id])

    def untouched(self, op: Op, member: Member) -> bool:
        """Whether the member was certainly in the group from the sending of this request until now, apart from what the
        request itself does."""
        before = self.before[op.id]
        touches = [each for each in before.rivals if may_end(each, member) or _joins_as(each, member)]
        return member.member_id in before.inside and self.surely_in(member) and not touches

    def stays(self, op: Op, member: Member) -> bool:
        """Whether the coordinator certainly knew the member from the sending of this request until now."""
        if not self.surely_in(member) or member.in_from <= op.line:
            return self.surely_in(member)
        # this request itself may be why the member was not certainly in the group in between
        before = self.before[op.id]
        silent = member.member_id in before.residents and member.until_line < op.line
        return silent and may_end(op, member) and not any(may_end(other, member) for other in before.rivals)

    def after(self, op: Op, member: Member) -> Presence:
        """The presence of a member whose request was accepted: ``IN``, unless a request that overlaps may have removed
        it since, or converted it to the other protocol."""
        ended = any(may_end(other, member) for other in self.before[op.id].rivals)
        return Presence.PERHAPS if ended or self.may_convert(op, member.member_id) else Presence.IN

    def touched(self, op: Op, member: Member) -> bool:
        """Whether a request that overlaps this one, by the member or about it, may have changed the member."""
        if member.until_line > op.line:  # also by a join that did not name it
            return True
        rivals = [each for each in self.before[op.id].rivals if not isinstance(each.body, Commit)]
        return any(
            getattr(each.body, "member_id", None) == member.member_id or may_end(each, member) for each in rivals
        )

    def may_convert(self, op: Op, member_id: str) -> bool:
        """Whether an overlapping request of the other protocol may have converted the member (X-UP-13, X-JOIN-13)."""
        other = (
            JoinGroupRequest if isinstance(op.body, ConsumerGroupHeartbeatRequest) else ConsumerGroupHeartbeatRequest
        )
        return any(
            isinstance(each.body, other) and each.body.member_id == member_id for each in self.before[op.id].rivals
        )

    def contested(self, op: Op, instance: str) -> bool:
        """Whether a request that overlaps this one may give the instance id to another member."""
        named: str = getattr(op.body, "member_id", "")
        rivals = [each for each in self.before[op.id].rivals if asked_instance(each) == instance]
        return any(not named or getattr(each.body, "member_id", "") != named for each in rivals)

    def may_have_joined(self, op: Op, member_id: str) -> bool:
        """Whether a request that overlaps this one may have added the member."""
        member = Member(member_id)
        return any(_joins_as(each, member) for each in self.before[op.id].rivals)

    def may_be_relabelled(self, op: Op, member: Member) -> bool:
        """Whether a request that overlaps this one may give the member another instance id (M-STATIC-01)."""
        named = (asked_instance(each) for each in self.before[op.id].rivals if _joins_as(each, member))
        return any(instance not in (None, member.instance) for instance in named)

    def surely_out(self, member_id: str) -> bool:
        """Whether the member is certainly not in the group. A conversion restarts the sessions of classic members
        (X-UP-08, X-DOWN-05), so theirs may last longer."""
        member = self.members.get(member_id)
        if member is None:
            return True
        timed = not member.classic or self.consumer_from <= member.until_line
        if self.downgrade_may_fail():
            # Kafka fails to remove the last member of KIP-848 if the downgrade fails, and does not retry (X-DOWN-09)
            rest = [each for each in self.members.values() if each is not member and not each.classic]
            timed = timed and any(each.in_from <= member.until_line for each in rest)
        return member.surely_out(self.now, self.limits, timed=timed)

    def downgrade_may_fail(self) -> bool:
        """Whether unreadable metadata may make a downgrade fail: the coordinator then answers the leave with
        GROUP_ID_NOT_FOUND, and the member stays (X-DOWN-09)."""
        return self.unreadable and self.profile.fault_downgrade_reads_unread_metadata

    def surely_consumer(self, op: Op) -> bool:
        """Whether the group certainly spoke the consumer protocol from the sending of this request until now."""
        return self.consumer_from < op.line

    def may_lack_protocol(self, op: Op, answer: object) -> bool:
        """Whether the group may be a classic one in its first rebalance, which has not selected a protocol yet.

        The coordinator then cannot tell how to read the subscriptions of its members, so it lets a joining heartbeat
        retry (X-UP-07). Kafka throws an exception instead.
        """
        joins = isinstance(op.body, ConsumerGroupHeartbeatRequest) and op.body.member_epoch == JOIN_EPOCH
        retried = getattr(answer, "error_code", None) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        lacks = self.classic_seen and not self.surely_consumer(op)
        return joins and retried and lacks and not self.profile.fault_upgrade_without_protocol

    def may_fail(self, op: Op) -> bool:
        """Whether Kafka may answer UNKNOWN_SERVER_ERROR: in a conversion (X-UP-07), or if an assignor fails (M-HB-12).

        The uniform assignor fails on a partition that a classic leader assigned, and that the topic does not have as
        far as the coordinator knows (A-UHET-06, X-UP-05).
        """
        if not self.surely_consumer(op) or self.topics.unsettled(op.sent_ms, self.limits.slack_ms):
            return True
        fails = self.profile.fault_absent_partition_fails and self.classic_seen
        return fails and self.topics.may_lack(op.sent_ms, self.limits.slack_ms)

    def deletions_settled(self, since_ms: int) -> bool:
        """Whether every target that was computed since then takes all deletions of topics into account (M-TGT-08)."""
        settle_ms = self.limits.slack_ms + self.settings.group_consumer_max_assignment_interval_ms
        return not self.topics.unsettled(since_ms, settle_ms)

    def least(self) -> int:
        return sum(self.surely_in(member) for member in self.members.values())

    def possible(self, but: str) -> int:
        """The most members that the group can have besides ``but``."""
        return sum(not self.surely_out(member_id) for member_id in self.members if member_id != but)

    def holders(self, instance: str, since: int = NEVER) -> Iterator[Member]:
        """The members that may hold an instance id, or may have held it since the line ``since``.

        In Kafka an instance id stays mapped to a member that has given it up (M-STATIC-13).
        """
        for member in self.members.values():
            has = self.maps(instance, member) or member.formers.get(instance, -1) > since
            if has and not (member.out_from <= since and self.surely_out(member.member_id)):
                yield member

    def maps(self, instance: str, member: Member) -> bool:
        """Whether the coordinator may find this member by the instance id.

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
