"""The claims of a classic member in its subscription: its generation, and the partitions that it owns.

The classic coordinator never checks either, nor does Kafka's in a consumer group. But a member that joins may have been
fenced since, and what it owns may be in no assignment. In either case a partition would be given away while a member
still has it. Believing too much is safe: the claims of a member are added to what it has or refused, and take nothing
from another one. A refused member drops everything it owns, as a fenced member does, and joins anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fencepost.protocol.consumer_messages import TopicPartitions
from fencepost.protocol.embedded import NO_GENERATION, Subscription
from fencepost.protocol.errors import ErrorCode

from ..consumer.group import NOTHING, ConsumerMember, Holding, Share
from ..kernel.errors import Refused
from ..kernel.topics import TopicImage
from .embedded import owned_rows


def confirmed(
    member: ConsumerMember | None, subscription: Subscription, topics: TopicImage
) -> tuple[TopicPartitions, ...] | None:
    """The partitions that the member (None: not known any more, or not yet) owns according to its JoinGroup; None if
    that is out of date.

    X-JOIN-06, X-JOIN-10, X-JOIN-12 fixed, M-FENCE-04. Raises ``Refused`` for a member that is not up to date.
    """
    owned, generation = owned_rows(subscription.owned_partitions, topics), subscription.generation_id
    has, had = (NOTHING, NOTHING) if member is None else (member.assigned, member.revoking)
    if generation == NO_GENERATION:
        if _within(owned, has, had):
            return owned
    elif member is not None and generation == member.epoch:
        return owned
    elif member is not None and generation == member.previous_epoch and _within(owned, has):
        return None  # the answer to an earlier JoinGroup was lost: nothing is confirmed (M-REC-18)
    raise Refused(ErrorCode.UNKNOWN_MEMBER_ID)


def taken_over(
    shares: Mapping[str, Share], said: Mapping[str, Subscription], topics: TopicImage
) -> Mapping[str, Share]:
    """The assignments that an upgrade takes over, by member id: ``shares``, and claimed partitions that are unassigned.

    X-UP-05 fixed, C-JOIN-42. A partition that several members claim belongs to the one with the highest generation,
    then with the smallest member id.
    """
    found = {member_id: dict(share) for member_id, share in shares.items()}
    taken = {(topic_id, each) for share in shares.values() for topic_id in share for each in share[topic_id]}
    for member_id in sorted(said, key=lambda each: (-said[each].generation_id, each)):
        share = found[member_id]
        for row in owned_rows(said[member_id].owned_partitions, topics):
            free = [each for each in row.partitions if (row.topic_id, each) not in taken]
            if free:
                share[row.topic_id] = tuple(sorted((*share.get(row.topic_id, ()), *free)))
                taken |= {(row.topic_id, each) for each in free}
    return found


def _within(owned: Iterable[TopicPartitions], *holdings: Holding) -> bool:
    return all(
        any(number in holding.get(row.topic_id, {}) for holding in holdings)
        for row in owned
        for number in row.partitions
    )
