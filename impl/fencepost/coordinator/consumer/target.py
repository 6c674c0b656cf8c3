"""The target assignment: the partitions that each member should have (7.5).

A group has one target, which an assignor has computed for one group epoch. It says where partitions go; the records of
the members say where they are. Each member is brought to its part of the target in its own requests (``reconcile``).

*When.* The first request that finds the target older than the group epoch computes a new one (M-TGT-01), at most once
per assignment interval (M-TGT-08). Until then all members are reconciled to the old one. So one computation serves many
members that join together.

*The assignor.* Each member may vote for one, and most votes win (M-TGT-02).

*Its input.* An assignor gets the topics and the last target of each member, not what the member owns (M-TGT-03). A
static member that replaces another gets the target of its predecessor. If it had a target itself, that one is withheld:
the assignor treats those partitions as owned (A-UHOM-08, M-STATIC-15). Kafka's assignors iterate over hash tables, and
their result depends on that order. Where Fencepost cannot compute the order, it asks ``step.choices``.

*Its output.* A record is written for each member whose target differs from the one in the log, and one for the epoch of
the target (M-TGT-04). If the assignor fails, the request is rejected and nothing is written (M-HB-12).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.records import Record
from fencepost.quirks import varies

from ..kernel.errors import Rejected
from ..kernel.group_configs import consumer_assignment_interval
from ..kernel.step import Step
from ..kernel.topics import TopicImage
from . import records
from .assignors import ASSIGNORS, AssignorError, GroupSpec, MemberSpec, hash_order
from .group import NO_SHARE, ConsumerGroup, ConsumerGroupMember, Share, counted
from .group_epoch import GroupEpoch


class TargetAssignment(NamedTuple):
    """The target of the member that sent the request, its epoch, and the records of a new target."""

    epoch: int
    share: Share
    records: Sequence[Record]


def update_target_assignment(
    step: Step, group: ConsumerGroup, member: ConsumerGroupMember, bumped: GroupEpoch, written: Sequence[Record]
) -> TargetAssignment:
    """The stored target of the member, or a new one for the group epoch (M-HB-06). ``bumped``: the group epoch after
    the request. ``written``: the records of the request so far. Raises ``Rejected``."""
    if group.assignment_epoch >= bumped.epoch or not allowed(step, group):
        return stored_target(step, group, member)
    return _computed(step, group, member, bumped, written)


def stored_target(step: Step, group: ConsumerGroup, member: ConsumerGroupMember) -> TargetAssignment:
    """The target of the member that an earlier request has computed."""
    return TargetAssignment(group.assignment_epoch, stored(step, group, member), ())


def allowed(step: Step, group: ConsumerGroup) -> bool:
    """Whether the interval since the last new target has passed (M-TGT-08)."""
    if group.assignment_timestamp == records.NO_TIMESTAMP:
        return True
    interval = consumer_assignment_interval(step, group.group_id)
    return interval == 0 or step.at_ms >= group.assignment_timestamp + interval


@varies
def stored(step: Step, group: ConsumerGroup, member: ConsumerGroupMember) -> Share:
    """The stored target of a member; a member that takes an instance's place takes over the target of its holder
    (M-HB-07)."""
    owner = None if member.instance_id is None else group.static_members.get(member.instance_id)
    return group.target.get(member.member_id if owner is None else owner, NO_SHARE)


@varies
def partitions_known(step: Step, group: ConsumerGroup, written: Sequence[Record]) -> Mapping[bytes, int]:
    """The number of partitions of each topic, as an assignor sees it: the current number in the cluster (M-TGT-03)."""
    return {topic_id: topic.partitions for topic_id, topic in step.topics.by_id.items()}


def _computed(
    step: Step, group: ConsumerGroup, member: ConsumerGroupMember, bumped: GroupEpoch, written: Sequence[Record]
) -> TargetAssignment:
    """M-TGT-02…05, M-HB-12."""
    predecessor = None if member.instance_id is None else group.static_members.get(member.instance_id)
    if predecessor == member.member_id:
        predecessor = None
    members = dict(group.members.items())  # one pass; a look-up for each would be several
    members[member.member_id] = member
    if predecessor is not None:
        members.pop(predecessor, None)
    # M-STATIC-15: a member that replaces another and already has a target: that target is withheld (A-UHOM-08)
    withheld = NO_SHARE if predecessor is None else group.target.get(member.member_id, NO_SHARE)
    targets = group.target if predecessor is None else taken_over(step, group, predecessor, member.member_id)
    before = dict(targets.items())
    ids: dict[frozenset[str], frozenset[bytes]] = {}
    rows = {}
    for member_id in sorted(members):
        names = group.topics_of(members[member_id])
        topic_ids = ids.get(names)
        if topic_ids is None:
            topic_ids = ids[names] = step.topics.ids(names)
        rows[member_id] = _spec(step, group, members[member_id], topic_ids, before.get(member_id, NO_SHARE))
    specs = {member_id: rows[member_id] for member_id in step.choices.order(group.group_id, list(rows))}
    first = next(iter(specs.values())).topic_ids  # distributed if all subscribe to the same topics (A-UHOM-03)
    dealt = _insertion_order(step, group.group_id, sorted(first, key=lambda topic_id: step.topics.by_id[topic_id].name))
    known = partitions_known(step, group, written)
    counts = {topic_id: known[topic_id] for topic_id in (*dealt, *known) if topic_id in known}
    name = preferred(step, group.group_id, votes_with(group, member))
    if name not in step.settings.group_consumer_assignors:
        raise Rejected(ErrorCode.UNKNOWN_SERVER_ERROR)
    try:
        assign = step.state.assignors.get(name) or ASSIGNORS[name]
        shares = assign(GroupSpec(specs, bumped.subscription_type, counts, withheld))
    except AssignorError:
        raise Rejected(ErrorCode.UNKNOWN_SERVER_ERROR) from None
    computed = []
    for member_id in specs:
        share = _whole(shares.get(member_id, NO_SHARE))
        old = target_in_log(step, group, before, member_id)
        if old is None or not _same(old, share):
            computed.append(records.target_member(group.group_id, member_id, share))  # M-TGT-04
    computed_at = step.at_ms if step.rules.has_assignment_interval else records.NO_TIMESTAMP  # G-DATA-32
    computed.append(records.target_epoch(group.group_id, bumped.epoch, computed_at))
    return TargetAssignment(bumped.epoch, _whole(shares.get(member.member_id, NO_SHARE)), computed)


@varies
def taken_over(step: Step, group: ConsumerGroup, predecessor: str, member_id: str) -> Mapping[str, Share]:
    """The targets, with that of the predecessor under the id of its replacement (M-HB-06, M-STATIC-10)."""
    share = group.target.get(predecessor)
    return group.target if share is None else {**group.target, member_id: share}


@varies
def target_in_log(step: Step, group: ConsumerGroup, before: Mapping[str, Share], member_id: str) -> Share | None:
    """The target of the member according to its records, with those of this request (M-TGT-04). ``before``: the targets
    with the one that was taken over."""
    return before.get(member_id)


def _spec(
    step: Step, group: ConsumerGroup, member: ConsumerGroupMember, topic_ids: frozenset[bytes], target: Share
) -> MemberSpec:
    """A member as an assignor sees it (M-TGT-03)."""
    assigned = {
        topic_id: _ascending(target[topic_id]) for topic_id in _insertion_order(step, group.group_id, list(target))
    }
    if step.rules.absent_partitions_left_out:
        _leave_out_absent(assigned, step.topics)
    return MemberSpec(member.instance_id, member.rack_id, topic_ids, assigned)


def _leave_out_absent(assigned: dict[bytes, tuple[int, ...]], topics: TopicImage) -> None:
    """Leave only partitions that exist in the last target. An upgrade may lead to others (A-UHET-06)."""
    known = topics.by_id
    for topic_id, numbers in assigned.items():
        topic = known.get(topic_id)
        if topic is not None:
            assigned[topic_id] = _below(numbers, topic.partitions)


def _ascending(numbers: tuple[int, ...]) -> tuple[int, ...]:
    """The numbers as an assignor takes them, ascending and each once; a record may have them in any order."""
    return numbers if len(numbers) < 2 else tuple(sorted(set(numbers)))


def _below(numbers: tuple[int, ...], count: int) -> tuple[int, ...]:
    """Of these ascending numbers, the partitions that a topic with ``count`` partitions has."""
    whole = not numbers or (numbers[0] >= 0 and numbers[-1] < count)
    return numbers if whole else tuple(number for number in numbers if 0 <= number < count)


def _insertion_order(step: Step, group_id: str, topic_ids: list[bytes]) -> Sequence[bytes]:
    """The topics in the order in which Kafka's table of them was filled (A-UHOM-07)."""
    alone = len(topic_ids) < 2 or not hash_order.crowded(topic_ids)
    return topic_ids if alone else step.choices.topics(group_id, topic_ids)


def _whole(share: Share) -> Share:
    if () not in share.values():
        return share
    return {topic_id: partitions for topic_id, partitions in share.items() if partitions}


def _same(one: Share, other: Share) -> bool:
    if one == other:
        return True
    return one.keys() == other.keys() and all(set(one[topic_id]) == set(other[topic_id]) for topic_id in one)


@varies
def is_other_assignor_preferred(step: Step, group: ConsumerGroup, member: ConsumerGroupMember) -> bool:
    """Whether the vote of this member makes another assignor the preferred one (M-HB-14). The winner of a tie stays the
    same while the same names are tied (M-HB-15)."""
    name, votes = group.group_id, votes_with(group, member)
    if votes is group.votes:
        return False
    before, after = preferred_assignors(step, group.votes), preferred_assignors(step, votes)
    return before != after and elected(step, name, before) != elected(step, name, after)


def votes_with(group: ConsumerGroup, member: ConsumerGroupMember) -> Mapping[str, int]:
    """The votes of the members, with the current vote of this one. A member that takes a static member's place, and
    already has one, still votes for its own place too (M-STATIC-15)."""
    holder = None if member.instance_id is None else group.static_members.get(member.instance_id)
    gone = group.members.get(member.member_id if holder is None else holder)
    votes = group.votes
    if member.assignor == (None if gone is None else gone.assignor):
        return votes
    if gone is not None and gone.assignor is not None:
        votes = counted(votes, gone.assignor, -1)
    return votes if member.assignor is None else counted(votes, member.assignor, 1)


def preferred(step: Step, group_id: str, votes: Mapping[str, int]) -> str:
    """The assignor with the most votes, or the default one (M-TGT-02, G-CFG-13)."""
    return elected(step, group_id, preferred_assignors(step, votes))


def elected(step: Step, group_id: str, tied: list[str]) -> str:
    """The winner among assignors with equally many votes, which the host may choose (M-TGT-02)."""
    return tied[0] if len(tied) == 1 else step.choices.assignor(group_id, tied)


def preferred_assignors(step: Step, votes: Mapping[str, int]) -> list[str]:
    """The assignors with the most votes, by name; the default one if there are none. An old log may have votes for an
    assignor that is no longer configured; the vote stays in the member's record, and counts again when that assignor is
    configured again (M-TGT-02)."""
    if votes and step.rules.absent_assignor_loses:
        configured = step.settings.group_consumer_assignors
        votes = {name: count for name, count in votes.items() if name in configured}
    if not votes:
        return [step.settings.group_consumer_assignors[0]]
    most = max(votes.values())
    return sorted(name for name, count in votes.items() if count == most)
