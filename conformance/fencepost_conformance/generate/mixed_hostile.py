"""JoinGroups to a consumer group as from one of its members, with any generation and any claims (X-JOIN-10, X-JOIN-12).

Most are late copies or forgeries: the member may have left, and the subscription may be current, old, or another
member's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from random import Random

from fencepost.protocol import messages as m
from fencepost.protocol.consumer_records import AssignedPartitions
from fencepost.protocol.embedded import NO_GENERATION, Subscription, encode_subscription
from fencepost.protocol.messages import Protocol
from fencepost.protocol.partitions import TopicPartition

from .consumer_hostile import Surroundings
from .mixed_clients import MixedClient


def join(
    rng: Random, world: Surroundings, client: MixedClient, topics: Mapping[bytes, str]
) -> tuple[int, m.RequestBody] | None:
    """Return version and body; None if the client's group is not a consumer group with members. ``topics``: names by
    id."""
    view = world.consumer_groups.get(client.plan.group_id)
    if view is None or not view.members:
        return None
    version, body = client.join()
    assert isinstance(body, m.JoinGroupRequest)
    classic = [row for row in view.members if row.classic is not None]
    member = rng.choice(classic if classic and rng.random() < 0.8 else view.members)
    others = [row for row in view.members if row is not member]
    has, had = _named(member.assigned, topics), _named(member.pending_revocation, topics)
    foreign = _named(rng.choice(others).assigned, topics) if others else ()
    claims = rng.choice(((), has, has, has[1:], has + had, has + foreign))
    epoch, previous = member.member_epoch, member.previous_member_epoch
    generation = rng.choice((epoch, epoch, previous, previous, epoch - 1, epoch + 1, NO_GENERATION))
    subscription = Subscription(client.plan.topics, None, claims, generation)
    # the names that the member itself offers: others may have no support (X-JOIN-04)
    offers = member.classic.supported_protocols if member.classic is not None else body.protocols
    first = Protocol(offers[0].name, encode_subscription(subscription, rng.randrange(4)))
    instance_id = member.instance_id if rng.random() < 0.9 else None
    return version, replace(
        body,
        member_id=member.member_id if rng.random() < 0.85 else rng.choice(("unknown-member", *world.known_ids)),
        group_instance_id=instance_id if version >= 5 else None,
        protocols=(first, *offers[1:]),
    )


def _named(rows: Iterable[AssignedPartitions], topics: Mapping[bytes, str]) -> tuple[TopicPartition, ...]:
    """Return the partitions by topic name; deleted topics have no name."""
    return tuple(
        TopicPartition(topics[row.topic_id], number)
        for row in rows
        if row.topic_id in topics
        for number in row.partitions
    )
