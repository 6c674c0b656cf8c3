"""The target assignment: who should have what (7.5).

It is computed in the request of whoever comes first after a bump, at most once per assignment interval (M-TGT-08);
until then everybody is reconciled to the old one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from fencepost.protocol.consumer_view import SubscriptionType
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.records import Record
from fencepost.quirks import varies

from ..kernel.errors import Refused
from ..kernel.step import Step
from . import records, timers
from .assignors import ASSIGNORS, AssignorError, GroupSpec, MemberSpec, hash_order
from .group import NO_SHARE, ConsumerGroup, ConsumerMember, Share


class Target(NamedTuple):
    """What the asking member is to go to, and the records that say so."""

    epoch: int
    share: Share
    records: list[Record]


def current(step: Step, group: ConsumerGroup, member: ConsumerMember, epoch: int, kind: SubscriptionType) -> Target:
    """M-HB-06: the stored target of the member, or a new one for the group epoch. Raises ``Refused``."""
    if group.assignment_epoch >= epoch or not allowed(step, group):
        return Target(group.assignment_epoch, stored(step, group, member), [])
    return _computed(step, group, member, epoch, kind)


@varies
def allowed(step: Step, group: ConsumerGroup) -> bool:
    """Whether the interval since the last new target has passed (M-TGT-08)."""
    if group.assignment_timestamp == records.NO_TIMESTAMP:
        return True
    interval = timers.assignment_interval(step, group.group_id)
    return interval == 0 or step.at_ms >= group.assignment_timestamp + interval


@varies
def stored(step: Step, group: ConsumerGroup, member: ConsumerMember) -> Share:
    """The target of a member that the group has; who takes an instance's place takes over the target of its holder
    (M-HB-07)."""
    owner = None if member.instance_id is None else group.static_members.get(member.instance_id)
    return group.target.get(member.member_id if owner is None else owner, NO_SHARE)


def _computed(step: Step, group: ConsumerGroup, member: ConsumerMember, epoch: int, kind: SubscriptionType) -> Target:
    """M-TGT-02…05, M-HB-12."""
    predecessor = None if member.instance_id is None else group.static_members.get(member.instance_id)
    if predecessor == member.member_id:
        predecessor = None
    members = {**group.members, member.member_id: member}
    if predecessor is not None:
        members.pop(predecessor, None)
    # M-STATIC-15: of one that takes another's place, and has one, the target is withheld (A-UHOM-08)
    withheld = NO_SHARE if predecessor is None else group.target.get(member.member_id, NO_SHARE)
    rewrites = step.profile.old_replacement_rewrites_target
    before: dict[str, Share] = dict(group.target)  # with what it takes over under its own id (M-HB-06)
    if predecessor is not None and (rewrites or predecessor in before):
        before[member.member_id] = before.get(predecessor, NO_SHARE)
    rows = {}
    for member_id in sorted(members):
        rows[member_id] = _spec(step, group, members[member_id], before.get(member_id, NO_SHARE))
    specs = {member_id: rows[member_id] for member_id in step.choices.order(group.group_id, list(rows))}
    first = next(iter(specs.values())).topic_ids  # the ones that are dealt out if all subscribe to the same (A-UHOM-03)
    known = step.topics.by_id
    dealt = _put_in(step, group.group_id, sorted(first, key=lambda topic_id: known[topic_id].name))
    counts = {topic_id: known[topic_id].partitions for topic_id in (*dealt, *known)}
    name = preferred(step, group.group_id, _voters(group, member))
    if name not in step.settings.group_consumer_assignors:
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR)
    try:
        shares = ASSIGNORS[name](GroupSpec(specs, kind, counts, withheld))
    except AssignorError:
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR) from None
    written = []
    for member_id in specs:
        share = _whole(shares.get(member_id, NO_SHARE))
        old = (group.target if rewrites else before).get(member_id)
        if old is None or not _same(old, share):
            written.append(records.target_member(group.group_id, member_id, share))  # M-TGT-04
    at_ms = records.NO_TIMESTAMP if step.profile.old_no_assignment_interval else step.at_ms
    written.append(records.target_epoch(group.group_id, epoch, at_ms))
    return Target(epoch, _whole(shares.get(member.member_id, NO_SHARE)), written)


def _spec(step: Step, group: ConsumerGroup, member: ConsumerMember, target: Share) -> MemberSpec:
    """M-TGT-03. Mended, without partitions that the topic does not have; an upgrade may bring such (A-UHET-06)."""
    assigned = {topic_id: frozenset(target[topic_id]) for topic_id in _put_in(step, group.group_id, list(target))}
    if not step.profile.fault_absent_partition_fails:
        known = step.topics.by_id
        for topic_id in assigned.keys() & known.keys():
            assigned[topic_id] &= frozenset(range(known[topic_id].partitions))
    topic_ids = step.topics.ids(group.topics_of(member))
    return MemberSpec(member.instance_id, member.rack_id, topic_ids, assigned)


def _put_in(step: Step, group_id: str, topic_ids: list[bytes]) -> Sequence[bytes]:
    """In the order in which Kafka's table of them was filled (A-UHOM-07)."""
    return step.choices.topics(group_id, topic_ids) if hash_order.crowded(topic_ids) else topic_ids


def _whole(share: Share) -> Share:
    return {topic_id: partitions for topic_id, partitions in share.items() if partitions}


def _same(one: Share, other: Share) -> bool:
    return one.keys() == other.keys() and all(set(one[topic_id]) == set(other[topic_id]) for topic_id in one)


def elects_another(step: Step, group: ConsumerGroup, member: ConsumerMember) -> bool:
    """M-HB-14: whether what this member wants now makes another assignor the preferred one."""
    profile, name = step.profile, group.group_id
    if profile.old_vote_keeps_epoch:
        return False
    before, after = _most_wanted(step, group.members.values()), _most_wanted(step, _voters(group, member))
    if profile.fault_tied_vote_bumps:  # M-HB-15
        stood = before[0] if len(before) == 1 else step.choices.standing(name, before)
        return stood != _elected(step, name, after)
    return before != after and _elected(step, name, before) != _elected(step, name, after)


def _voters(group: ConsumerGroup, member: ConsumerMember) -> list[ConsumerMember]:
    """The members with this one as it is now. Who takes a static member's place, and has one, still votes for its own
    too (M-STATIC-15)."""
    holder = None if member.instance_id is None else group.static_members.get(member.instance_id)
    gone = member.member_id if holder is None else holder
    return [*(each for member_id, each in group.members.items() if member_id != gone), member]


def preferred(step: Step, group_id: str, members: Iterable[ConsumerMember]) -> str:
    """M-TGT-02: the assignor with the most votes, or the default one (G-CFG-13)."""
    return _elected(step, group_id, _most_wanted(step, members))


def _elected(step: Step, group_id: str, tied: list[str]) -> str:
    return tied[0] if len(tied) == 1 else step.choices.assignor(group_id, tied)


def _most_wanted(step: Step, members: Iterable[ConsumerMember]) -> list[str]:
    """The assignors with the most votes, by name. In a log of other days there may be votes for one that is no longer
    configured."""
    configured = step.settings.group_consumer_assignors
    votes: dict[str, int] = {}
    for member in members:
        name = member.assignor
        if name is not None and (name in configured or step.profile.fault_absent_assignor_elected):
            votes[name] = votes.get(name, 0) + 1
    if not votes:
        return [configured[0]]
    most = max(votes.values())
    return sorted(name for name, count in votes.items() if count == most)
