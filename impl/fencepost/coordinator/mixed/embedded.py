"""The bytes of classic members: subscriptions, assignments, and the claims in them (X-UP-05, X-SYNC-06).

The embedded consumer protocol has topic names, and groups have topic ids. Topics that do not exist are dropped both
ways.

A subscription claims a generation, and the partitions that the member owns. The classic coordinator never checks
either, nor does Kafka's in a consumer group. But a member that joins may have been fenced since, and what it owns may
be in no assignment. In either case a partition would be given away while a member still has it. Believing too much is
safe: the claims of a member are added to what it has or refused, and take nothing from another one. A refused member
drops everything it owns, as a fenced member does, and joins anew.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from fencepost.protocol.consumer_messages import TopicPartitions
from fencepost.protocol.embedded import (
    NO_GENERATION,
    SchemaError,
    Subscription,
    decode_subscription,
    encode_topics,
    version_of,
)
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import JoinGroupRequest, Protocol
from fencepost.protocol.partitions import TopicPartition

from ..consumer.group import NOTHING, ConsumerGroupMember, Holding, Share
from ..consumer.records import share_rows
from ..kernel.errors import InternalError, Rejected
from ..kernel.rules import Rules
from ..kernel.step import Step
from ..kernel.topics import TopicImage


def assigned(rows: Iterable[tuple[str, Iterable[int]]], topics: TopicImage) -> Share:
    """The share in an assignment. If a topic is listed twice the last row counts; a row without partitions stays
    (X-UP-05)."""
    found: dict[bytes, tuple[int, ...]] = {}
    for name, numbers in rows:
        if name in topics.by_name:
            found[topics.by_name[name].topic_id] = tuple(sorted(set(numbers)))
    return found


def require_readable(rules: Rules, protocols: Iterable[Protocol]) -> None:
    """Check that the metadata of each protocol of a member can be read: a downgrade may need any of it, a SyncGroup
    that of the first one (X-DOWN-09, X-SYNC-07). Raises ``SchemaError``."""
    if rules.all_metadata_read:
        for protocol in protocols:
            decode_subscription(protocol.metadata)


def read_subscription(step: Step, body: JoinGroupRequest) -> Subscription:
    """The subscription in the member's first protocol (X-JOIN-10); the others must be readable too (X-JOIN-09,
    X-DOWN-09).

    Raises ``Rejected``, ``InternalError``.
    """
    first, *others = body.protocols
    try:
        subscription = decode_subscription(first.metadata)
        require_readable(step.rules, others)
    except SchemaError:
        if step.rules.unreadable_join_is_internal:
            raise InternalError from None
        raise Rejected(ErrorCode.INCONSISTENT_GROUP_PROTOCOL) from None  # X-JOIN-09
    return subscription


def owned_rows(partitions: Iterable[TopicPartition], topics: TopicImage) -> tuple[TopicPartitions, ...]:
    """The partitions that a member claims to own, as rows by topic id."""
    found: dict[str, list[int]] = {}
    for name, number in partitions:
        found.setdefault(name, []).append(number)
    return share_rows(assigned(found.items(), topics))


def encoded(share: Mapping[bytes, Collection[int]], topics: TopicImage, subscription: bytes) -> bytes:
    """The share as an assignment, in the version of the member's subscription. Raises ``SchemaError``."""
    rows = [
        (topics.by_id[topic_id].name, sorted(share[topic_id])) for topic_id in sorted(share) if topic_id in topics.by_id
    ]
    return encode_topics(rows, version_of(subscription))


def confirmed(
    member: ConsumerGroupMember | None, subscription: Subscription, topics: TopicImage
) -> tuple[TopicPartitions, ...] | None:
    """The partitions that the member (None: not known any more, or not yet) owns according to its JoinGroup; None if
    that is out of date.

    X-JOIN-06, X-JOIN-10, X-JOIN-12 fixed, M-FENCE-04. Raises ``Rejected`` for a member that is not up to date.
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
    raise Rejected(ErrorCode.UNKNOWN_MEMBER_ID)


def _within(owned: Iterable[TopicPartitions], *holdings: Holding) -> bool:
    return all(
        any(number in holding.get(row.topic_id, {}) for holding in holdings)
        for row in owned
        for number in row.partitions
    )
