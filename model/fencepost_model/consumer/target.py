"""Target assignments: which ones an assignor may give, and one that it could give (rule book, 10.6, 10.7).

The model does not fix which target is chosen (NOT-10, A-PROP-09); ``valid`` decides whether one is allowed. ``range``
leaves nothing open, so its target is computed. For ``uniform`` the properties are checked: complete, without overlap,
to subscribers only, balanced, and as sticky as A-UHOM-04 promises.

With a stale subscription type the homogeneous algorithm uses the topics of one arbitrary member for all (M-TGT-06);
then every choice of that member is possible.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from fencepost.protocol.consumer_view import SubscriptionType

from .state import Partition, Target

RANGE: Final = "range"
ASSIGNS: Final = "assigns"
FAILS: Final = "fails"


class MemberSpec(NamedTuple):
    """The input of an assignor for one member (M-TGT-03): S(m), and its previous target."""

    member_id: str
    instance: str | None
    topics: frozenset[bytes]
    previous: Target


class GroupSpec(NamedTuple):
    """The input of a computation. ``partitions``: the count of each topic that the assignor knows, by topic id.
    ``withheld``: partitions that Kafka's uniform gives to no member, although they are in no previous target
    (A-UHOM-08)."""

    assignor: str
    type: SubscriptionType
    members: tuple[MemberSpec, ...]
    partitions: Mapping[bytes, int]
    withheld: Target = ()


def _partitions_of(spec: GroupSpec, topics: frozenset[bytes]) -> set[Partition]:
    return {(topic, number) for topic in topics for number in range(spec.partitions.get(topic, 0))}


def _possible_members(spec: GroupSpec) -> list[tuple[MemberSpec, ...]]:
    """Return the members with the topics that the algorithm uses for them: one list for each possibility in which the
    assignor knows all topics."""
    if spec.type is SubscriptionType.HETEROGENEOUS:
        ways = [spec.members]
    else:
        picked = sorted({member.topics for member in spec.members}, key=sorted)
        ways = [tuple([member._replace(topics=topics) for member in spec.members]) for topics in picked]
    return [members for members in ways if all(member.topics <= spec.partitions.keys() for member in members)]


def valid(spec: GroupSpec, target: Mapping[str, Target]) -> bool:
    """Return whether the assignor may answer with this target, which must name every member."""
    return target.keys() == {member.member_id for member in spec.members} and any(
        _valid(spec, members, target) for members in _possible_members(spec)
    )


def possible_outcomes(spec: GroupSpec) -> tuple[str, ...]:
    """Return the possible outcomes. An assignor fails on a topic that it does not know (V-136). With a stale type it
    uses the subscription of any one member for all (M-TGT-06), so it may fail or assign."""
    has_unknown_topics = any(not member.topics <= spec.partitions.keys() for member in spec.members)
    if not has_unknown_topics:
        return (ASSIGNS,)
    return (ASSIGNS, FAILS) if _possible_members(spec) else (FAILS,)


def uniform_fails(spec: GroupSpec) -> bool:
    """Return whether uniform fails on a previous target with a partition that its topic does not have (A-UHET-06,
    A-UHOM-06). With different subscriptions it fails at once. With equal ones it deals out that partition, so one
    partition is left over."""
    return spec.assignor != RANGE and any(
        topic in member.topics and number >= spec.partitions.get(topic, 0)
        for member in spec.members
        for topic, number in member.previous
    )


def _valid(spec: GroupSpec, members: tuple[MemberSpec, ...], target: Mapping[str, Target]) -> bool:
    if spec.assignor == RANGE:
        return dict(target) == range_target(spec, members)
    given = [each for partitions in target.values() for each in partitions]
    topics = frozenset().union(*[member.topics for member in members]) if members else frozenset()
    alike = spec.type is SubscriptionType.HOMOGENEOUS
    withheld = _withheld(spec, members) if alike else set()
    if len(given) != len(set(given)) or set(given) != _partitions_of(spec, topics) - withheld:  # A-PROP-01, 02
        return False
    for member in members:
        if any(topic not in member.topics for topic, _ in target[member.member_id]):  # A-PROP-03
            return False
    if not alike:
        return _is_even(members, target)
    if withheld:  # no member exceeds its quota, but a member below it may find the pool empty
        most = -(-len(_partitions_of(spec, topics)) // len(members))
        return all(len(share) <= most for share in target.values()) and _is_sticky(spec, members, target)
    return _is_balanced(members, target) and _is_sticky(spec, members, target)


def _withheld(spec: GroupSpec, members: tuple[MemberSpec, ...]) -> set[Partition]:
    """Return the withheld partitions among those that the algorithm deals out (A-UHOM-08)."""
    return set(spec.withheld).difference(*[member.previous for member in members])


def _is_balanced(members: tuple[MemberSpec, ...], target: Mapping[str, Target]) -> bool:
    """Return whether sizes differ by at most one (A-PROP-04, A-UHOM-04)."""
    sizes = [len(target[member.member_id]) for member in members]
    return not sizes or max(sizes) - min(sizes) <= 1


def _is_sticky(spec: GroupSpec, members: tuple[MemberSpec, ...], target: Mapping[str, Target]) -> bool:
    """Return whether each member keeps as much of its previous target as its share allows (A-UHOM-04, A-PROP-05, 06).

    A previous target that overlaps another, or names missing partitions, is not checked.
    """
    before = [each for member in members for each in member.previous]
    if len(before) != len(set(before)):
        return True
    for member in members:
        mine = target[member.member_id]
        usable = [(t, n) for t, n in member.previous if t in member.topics and n < spec.partitions.get(t, 0)]
        if len(set(usable) & set(mine)) != min(len(usable), len(mine)):
            return False
    return True


def _is_even(members: tuple[MemberSpec, ...], target: Mapping[str, Target]) -> bool:
    """Return whether a member with two partitions more than another subscriber of a topic owns nothing of it
    (A-UHET-04, 05)."""
    totals = {member.member_id: len(target[member.member_id]) for member in members}
    for member in members:
        for topic in {topic for topic, _ in target[member.member_id]}:
            least = min(totals[other.member_id] for other in members if topic in other.topics)
            if totals[member.member_id] > least + 1:
                return False
    return True


def range_target(spec: GroupSpec, members: tuple[MemberSpec, ...]) -> dict[str, Target]:
    """Return the target of range: contiguous shares, members with an instance id first, then by id (A-SRANGE-01, 02,
    A-COM-02, A-RANGE-01)."""
    found: dict[str, list[Partition]] = {member.member_id: [] for member in members}
    order = sorted(members, key=lambda w: (w.instance is None, utf16(w.instance or ""), utf16(w.member_id)))
    for topic in sorted(frozenset().union(*[member.topics for member in members]) if members else ()):
        owners = [member.member_id for member in order if topic in member.topics]
        share, extra = divmod(spec.partitions.get(topic, 0), len(owners))
        start = 0
        for at, member_id in enumerate(owners):
            size = share + (at < extra)
            found[member_id] += [(topic, number) for number in range(start, start + size)]
            start += size
    return {member_id: tuple(sorted(partitions)) for member_id, partitions in found.items()}


def propose(spec: GroupSpec) -> dict[str, Target]:
    """Return a valid target, the same for the same question. Members are visited by id."""
    members = _possible_members(spec)[0] if spec.members else ()
    if spec.assignor == RANGE:
        return range_target(spec, members)
    order = sorted(members)
    found: dict[str, list[Partition]] = {member.member_id: [] for member in order}
    topics = frozenset().union(*[member.topics for member in order]) if order else frozenset()
    pool = _partitions_of(spec, topics)
    quota = _quotas(spec, order, len(pool))
    if spec.type is SubscriptionType.HOMOGENEOUS:
        pool -= _withheld(spec, tuple(order))
    for member in order:
        for each in member.previous:
            mine = found[member.member_id]
            if each in pool and each[0] in member.topics and len(mine) < quota.get(member.member_id, len(mine) + 1):
                mine.append(each)
                pool.discard(each)
    for each in sorted(pool):
        takers = [member.member_id for member in order if each[0] in member.topics]
        open_ = [taker for taker in takers if len(found[taker]) < quota.get(taker, len(found[taker]) + 1)]
        found[min(open_ or takers, key=lambda taker: len(found[taker]))].append(each)
    if spec.type is SubscriptionType.HETEROGENEOUS:
        _level(order, found)
    return {member_id: tuple(sorted(partitions)) for member_id, partitions in found.items()}


def _quotas(spec: GroupSpec, order: list[MemberSpec], total: int) -> dict[str, int]:
    """Return the size of each member's share in a homogeneous group. The extra partitions go to members that had most
    (A-UHOM-01)."""
    if spec.type is SubscriptionType.HETEROGENEOUS or not order:
        return {}
    share, extra = divmod(total, len(order))

    def had(member: MemberSpec) -> int:
        return -len([each for each in member.previous if each[0] in member.topics])

    first = {member.member_id for member in sorted(order, key=had)[:extra]}
    return {member.member_id: share + (member.member_id in first) for member in order}


def _level(order: list[MemberSpec], found: dict[str, list[Partition]]) -> None:
    """Move partitions to subscribers with fewer until no move helps (A-UHET-03)."""
    moved = True
    while moved:
        moved = False
        for member in order:
            for each in sorted(found[member.member_id]):
                takers = [other.member_id for other in order if each[0] in other.topics]
                least = min(takers, key=lambda taker: len(found[taker]))
                if len(found[member.member_id]) > len(found[least]) + 1:
                    found[member.member_id].remove(each)
                    found[least].append(each)
                    moved = True


def utf16(text: str) -> bytes:
    """Return a sort key in the order of Java's strings (A-COM-02)."""
    return text.encode("utf-16-be", "surrogatepass")
