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


class Wish(NamedTuple):
    """The input of an assignor for one member (M-TGT-03): S(m), and its previous target."""

    member_id: str
    instance: str | None
    topics: frozenset[bytes]
    previous: Target


class Ask(NamedTuple):
    """The input of a computation. ``partitions``: the count of each topic that the assignor knows, by topic id.
    ``withheld``: partitions that Kafka's uniform gives to no member, although they are in no previous target
    (A-UHOM-08)."""

    assignor: str
    type: SubscriptionType
    members: tuple[Wish, ...]
    partitions: Mapping[bytes, int]
    withheld: Target = ()


def _all(ask: Ask, topics: frozenset[bytes]) -> set[Partition]:
    return {(topic, number) for topic in topics for number in range(ask.partitions.get(topic, 0))}


def _wishes(ask: Ask) -> list[tuple[Wish, ...]]:
    """Return the members with the topics that the algorithm uses for them: one list for each possibility in which the
    assignor knows all topics."""
    if ask.type is SubscriptionType.HETEROGENEOUS:
        ways = [ask.members]
    else:
        picked = sorted({wish.topics for wish in ask.members}, key=sorted)
        ways = [tuple([wish._replace(topics=topics) for wish in ask.members]) for topics in picked]
    return [wishes for wishes in ways if all(wish.topics <= ask.partitions.keys() for wish in wishes)]


def valid(ask: Ask, target: Mapping[str, Target]) -> bool:
    """Return whether the assignor may answer with this target, which must name every member."""
    return target.keys() == {wish.member_id for wish in ask.members} and any(
        _valid(ask, wishes, target) for wishes in _wishes(ask)
    )


def outcomes(ask: Ask) -> tuple[str, ...]:
    """Return the possible outcomes. An assignor fails on a topic that it does not know (V-136). With a stale type it
    uses the subscription of any one member for all (M-TGT-06), so it may fail or assign."""
    strange = any(not wish.topics <= ask.partitions.keys() for wish in ask.members)
    if not strange:
        return (ASSIGNS,)
    return (ASSIGNS, FAILS) if _wishes(ask) else (FAILS,)


def stumbles(ask: Ask) -> bool:
    """Return whether uniform fails on a previous target with a partition that its topic does not have (A-UHET-06,
    A-UHOM-06). With different subscriptions it fails at once. With equal ones it deals out that partition, so one
    partition is left over."""
    return ask.assignor != RANGE and any(
        topic in wish.topics and number >= ask.partitions.get(topic, 0)
        for wish in ask.members
        for topic, number in wish.previous
    )


def _valid(ask: Ask, wishes: tuple[Wish, ...], target: Mapping[str, Target]) -> bool:
    if ask.assignor == RANGE:
        return dict(target) == ranged(ask, wishes)
    given = [each for partitions in target.values() for each in partitions]
    topics = frozenset().union(*[wish.topics for wish in wishes]) if wishes else frozenset()
    alike = ask.type is SubscriptionType.HOMOGENEOUS
    withheld = _withheld(ask, wishes) if alike else set()
    if len(given) != len(set(given)) or set(given) != _all(ask, topics) - withheld:  # A-PROP-01, 02
        return False
    for wish in wishes:
        if any(topic not in wish.topics for topic, _ in target[wish.member_id]):  # A-PROP-03
            return False
    if not alike:
        return _even(wishes, target)
    if withheld:  # no member exceeds its quota, but a member below it may find the pool empty
        most = -(-len(_all(ask, topics)) // len(wishes))
        return all(len(share) <= most for share in target.values()) and _sticky(ask, wishes, target)
    return _balanced(wishes, target) and _sticky(ask, wishes, target)


def _withheld(ask: Ask, wishes: tuple[Wish, ...]) -> set[Partition]:
    """Return the withheld partitions among those that the algorithm deals out (A-UHOM-08)."""
    return set(ask.withheld).difference(*[wish.previous for wish in wishes])


def _balanced(wishes: tuple[Wish, ...], target: Mapping[str, Target]) -> bool:
    """Return whether sizes differ by at most one (A-PROP-04, A-UHOM-04)."""
    sizes = [len(target[wish.member_id]) for wish in wishes]
    return not sizes or max(sizes) - min(sizes) <= 1


def _sticky(ask: Ask, wishes: tuple[Wish, ...], target: Mapping[str, Target]) -> bool:
    """Return whether each member keeps as much of its previous target as its share allows (A-UHOM-04, A-PROP-05, 06).

    A previous target that overlaps another, or names missing partitions, is not checked.
    """
    before = [each for wish in wishes for each in wish.previous]
    if len(before) != len(set(before)):
        return True
    for wish in wishes:
        mine = target[wish.member_id]
        usable = [(t, n) for t, n in wish.previous if t in wish.topics and n < ask.partitions.get(t, 0)]
        if len(set(usable) & set(mine)) != min(len(usable), len(mine)):
            return False
    return True


def _even(wishes: tuple[Wish, ...], target: Mapping[str, Target]) -> bool:
    """Return whether a member with two partitions more than another subscriber of a topic owns nothing of it
    (A-UHET-04, 05)."""
    totals = {wish.member_id: len(target[wish.member_id]) for wish in wishes}
    for wish in wishes:
        for topic in {topic for topic, _ in target[wish.member_id]}:
            least = min(totals[other.member_id] for other in wishes if topic in other.topics)
            if totals[wish.member_id] > least + 1:
                return False
    return True


def ranged(ask: Ask, wishes: tuple[Wish, ...]) -> dict[str, Target]:
    """Return the target of range: contiguous shares, members with an instance id first, then by id (A-SRANGE-01, 02,
    A-COM-02, A-RANGE-01)."""
    found: dict[str, list[Partition]] = {wish.member_id: [] for wish in wishes}
    order = sorted(wishes, key=lambda w: (w.instance is None, utf16(w.instance or ""), utf16(w.member_id)))
    for topic in sorted(frozenset().union(*[wish.topics for wish in wishes]) if wishes else ()):
        owners = [wish.member_id for wish in order if topic in wish.topics]
        share, extra = divmod(ask.partitions.get(topic, 0), len(owners))
        start = 0
        for at, member_id in enumerate(owners):
            size = share + (at < extra)
            found[member_id] += [(topic, number) for number in range(start, start + size)]
            start += size
    return {member_id: tuple(sorted(partitions)) for member_id, partitions in found.items()}


def propose(ask: Ask) -> dict[str, Target]:
    """Return a valid target, the same for the same question. Members are visited by id."""
    wishes = _wishes(ask)[0] if ask.members else ()
    if ask.assignor == RANGE:
        return ranged(ask, wishes)
    order = sorted(wishes)
    found: dict[str, list[Partition]] = {wish.member_id: [] for wish in order}
    topics = frozenset().union(*[wish.topics for wish in order]) if order else frozenset()
    pool = _all(ask, topics)
    quota = _quotas(ask, order, len(pool))
    if ask.type is SubscriptionType.HOMOGENEOUS:
        pool -= _withheld(ask, tuple(order))
    for wish in order:
        for each in wish.previous:
            mine = found[wish.member_id]
            if each in pool and each[0] in wish.topics and len(mine) < quota.get(wish.member_id, len(mine) + 1):
                mine.append(each)
                pool.discard(each)
    for each in sorted(pool):
        takers = [wish.member_id for wish in order if each[0] in wish.topics]
        open_ = [taker for taker in takers if len(found[taker]) < quota.get(taker, len(found[taker]) + 1)]
        found[min(open_ or takers, key=lambda taker: len(found[taker]))].append(each)
    if ask.type is SubscriptionType.HETEROGENEOUS:
        _level(order, found)
    return {member_id: tuple(sorted(partitions)) for member_id, partitions in found.items()}


def _quotas(ask: Ask, order: list[Wish], total: int) -> dict[str, int]:
    """Return the size of each member's share in a homogeneous group. The extra partitions go to members that had most
    (A-UHOM-01)."""
    if ask.type is SubscriptionType.HETEROGENEOUS or not order:
        return {}
    share, extra = divmod(total, len(order))

    def had(wish: Wish) -> int:
        return -len([each for each in wish.previous if each[0] in wish.topics])

    first = {wish.member_id for wish in sorted(order, key=had)[:extra]}
    return {wish.member_id: share + (wish.member_id in first) for wish in order}


def _level(order: list[Wish], found: dict[str, list[Partition]]) -> None:
    """Move partitions to subscribers with fewer until no move helps (A-UHET-03)."""
    moved = True
    while moved:
        moved = False
        for wish in order:
            for each in sorted(found[wish.member_id]):
                takers = [other.member_id for other in order if each[0] in other.topics]
                least = min(takers, key=lambda taker: len(found[taker]))
                if len(found[wish.member_id]) > len(found[least]) + 1:
                    found[wish.member_id].remove(each)
                    found[least].append(each)
                    moved = True


def utf16(text: str) -> bytes:
    """Return a sort key in the order of Java's strings (A-COM-02)."""
    return text.encode("utf-16-be", "surrogatepass")
