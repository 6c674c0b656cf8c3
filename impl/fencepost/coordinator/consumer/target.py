"""The target assignment: who should have what (7.5).

It is computed in the request of whoever comes first after a bump, at most once per assignment interval (M-TGT-08);
until then everybody is reconciled to the old one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from .subscription import counted


class Epochs(NamedTuple):
    """The group epoch after the request, the subscription type that a target is to be computed with, and the records
    that the request has written so far."""

    epoch: int
    kind: SubscriptionType
    written: Sequence[Record]


class Target(NamedTuple):
    """What the asking member is to go to, and the records that say so."""

    epoch: int
    share: Share
    records: list[Record]


def current(step: Step, group: ConsumerGroup, member: ConsumerMember, epochs: Epochs) -> Target:
    """The stored target of the member, or a new one for the group epoch (M-HB-06). Raises ``Refused``."""
    if group.assignment_epoch >= epochs.epoch or not allowed(step, group):
        return Target(group.assignment_epoch, stored(step, group, member), [])
    return _computed(step, group, member, epochs)


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


@varies
def partitions_known(step: Step, group: ConsumerGroup, written: Sequence[Record]) -> Mapping[bytes, int]:
    """The number of partitions of each topic, as an assignor sees it: those that the cluster has now (M-TGT-03)."""
    return {topic_id: topic.partitions for topic_id, topic in step.topics.by_id.items()}


def _computed(step: Step, group: ConsumerGroup, member: ConsumerMember, epochs: Epochs) -> Target:
    """M-TGT-02…05, M-HB-12."""
    predecessor = None if member.instance_id is None else group.static_members.get(member.instance_id)
    if predecessor == member.member_id:
        predecessor = None
    members = {**group.members, member.member_id: member}
    if predecessor is not None:
        members.pop(predecessor, None)
    # M-STATIC-15: of one that takes another's place, and has one, the target is withheld (A-UHOM-08)
    withheld = NO_SHARE if predecessor is None else group.target.get(member.member_id, NO_SHARE)
    before = group.target if predecessor is None else taken_over(step, group, predecessor, member.member_id)
    rows = {}
    for member_id in sorted(members):
        rows[member_id] = _spec(step, group, members[member_id], before.get(member_id, NO_SHARE))
    specs = {member_id: rows[member_id] for member_id in step.choices.order(group.group_id, list(rows))}
    first = next(iter(specs.values())).topic_ids  # the ones that are dealt out if all subscribe to the same (A-UHOM-03)
    dealt = _put_in(step, group.group_id, sorted(first, key=lambda topic_id: step.topics.by_id[topic_id].name))
    known = partitions_known(step, group, epochs.written)
    counts = {topic_id: known[topic_id] for topic_id in (*dealt, *known) if topic_id in known}
    name = preferred(step, group.group_id, votes_with(group, member))
    if name not in step.settings.group_consumer_assignors:
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR)
    try:
        shares = ASSIGNORS[name](GroupSpec(specs, epochs.kind, counts, withheld))
    except AssignorError:
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR) from None
    written = []
    for member_id in specs:
        share = _whole(shares.get(member_id, NO_SHARE))
        old = known_target(step, group, before, member_id)
        if old is None or not _same(old, share):
            written.append(records.target_member(group.group_id, member_id, share))  # M-TGT-04
    written.append(records.target_epoch(group.group_id, epochs.epoch, computed_at(step)))
    return Target(epochs.epoch, _whole(shares.get(member.member_id, NO_SHARE)), written)


@varies
def taken_over(step: Step, group: ConsumerGroup, predecessor: str, member_id: str) -> Mapping[str, Share]:
    """The targets, with that of the predecessor under the id of who takes its place (M-HB-06, M-STATIC-10)."""
    share = group.target.get(predecessor)
    return group.target if share is None else {**group.target, member_id: share}


@varies
def known_target(step: Step, group: ConsumerGroup, before: Mapping[str, Share], member_id: str) -> Share | None:
    """The target that records say the member has, those of this request among them (M-TGT-04); ``before``: the targets
    with what was taken over."""
    return before.get(member_id)


@varies
def computed_at(step: Step) -> int:
    """The time that a new target has in its record (G-DATA-32)."""
    return step.at_ms


def _spec(step: Step, group: ConsumerGroup, member: ConsumerMember, target: Share) -> MemberSpec:
    """What an assignor sees of a member (M-TGT-03)."""
    assigned = {topic_id: _ascending(target[topic_id]) for topic_id in _put_in(step, group.group_id, list(target))}
    topic_ids = step.topics.ids(group.topics_of(member))
    return MemberSpec(member.instance_id, member.rack_id, topic_ids, existing(step, assigned))


@varies
def existing(step: Step, assigned: dict[bytes, tuple[int, ...]]) -> dict[bytes, tuple[int, ...]]:
    """What of the last target an assignor is told: no partitions that a topic does not have. An upgrade may bring such
    (A-UHET-06)."""
    known = step.topics.by_id
    for topic_id in assigned.keys() & known.keys():
        assigned[topic_id] = _below(assigned[topic_id], known[topic_id].partitions)
    return assigned


def _ascending(numbers: tuple[int, ...]) -> tuple[int, ...]:
    """As an assignor takes them, each once; a record may have them in any way."""
    return numbers if len(numbers) < 2 else tuple(sorted(set(numbers)))


def _below(numbers: tuple[int, ...], count: int) -> tuple[int, ...]:
    """Those of numbers that ascend which a topic of ``count`` partitions has."""
    whole = not numbers or (numbers[0] >= 0 and numbers[-1] < count)
    return numbers if whole else tuple(number for number in numbers if 0 <= number < count)


def _put_in(step: Step, group_id: str, topic_ids: list[bytes]) -> Sequence[bytes]:
    """In the order in which Kafka's table of them was filled (A-UHOM-07)."""
    return step.choices.topics(group_id, topic_ids) if hash_order.crowded(topic_ids) else topic_ids


def _whole(share: Share) -> Share:
    return {topic_id: partitions for topic_id, partitions in share.items() if partitions}


def _same(one: Share, other: Share) -> bool:
    return one.keys() == other.keys() and all(set(one[topic_id]) == set(other[topic_id]) for topic_id in one)


@varies
def elects_another(step: Step, group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Whether what this member wants now makes another assignor the preferred one (M-HB-14); who is elected by a tie
    stays so while the same names are tied (M-HB-15)."""
    name = group.group_id
    before, after = most_wanted(step, group.votes), most_wanted(step, votes_with(group, member))
    return before != after and elected(step, name, before) != elected(step, name, after)


def votes_with(group: ConsumerGroup, member: ConsumerMember) -> Mapping[str, int]:
    """The votes of the members with this one as it is now. Who takes a static member's place, and has one, still votes
    for its own too (M-STATIC-15)."""
    holder = None if member.instance_id is None else group.static_members.get(member.instance_id)
    gone = group.members.get(member.member_id if holder is None else holder)
    votes = group.votes
    if gone is not None and gone.assignor is not None:
        votes = counted(votes, gone.assignor, -1)
    return votes if member.assignor is None else counted(votes, member.assignor, 1)


def preferred(step: Step, group_id: str, votes: Mapping[str, int]) -> str:
    """The assignor with the most votes, or the default one (M-TGT-02, G-CFG-13)."""
    return elected(step, group_id, most_wanted(step, votes))


def elected(step: Step, group_id: str, tied: list[str]) -> str:
    """Who wins of those with equally many votes, which the host may choose (M-TGT-02)."""
    return tied[0] if len(tied) == 1 else step.choices.assignor(group_id, tied)


def most_wanted(step: Step, votes: Mapping[str, int]) -> list[str]:
    """The assignors with the most votes, by name; the default one if there are none."""
    if votes:
        votes = valid(step, votes)
    if not votes:
        return [step.settings.group_consumer_assignors[0]]
    most = max(votes.values())
    return sorted(name for name, count in votes.items() if count == most)


@varies
def valid(step: Step, votes: Mapping[str, int]) -> Mapping[str, int]:
    """The votes that count. In a log of other days there may be some for an assignor that is no longer configured; the
    wish stays in the member's record, and counts again when that assignor is back (M-TGT-02)."""
    configured = step.settings.group_consumer_assignors
    return {name: count for name, count in votes.items() if name in configured}
