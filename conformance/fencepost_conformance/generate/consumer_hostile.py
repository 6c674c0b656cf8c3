"""Requests of the consumer protocol that no well-behaved client would send now: stale, forged, blank, false.

As in ``hostile``, most begin as a real request and are wrong in one or two fields.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random
from typing import Any, Protocol

from fencepost.protocol import consumer_messages as c
from fencepost.protocol import messages as m
from fencepost.protocol.consumer_view import ConsumerGroupView, ConsumerMemberView

from . import hostile
from .consumer_clients import ConsumerClient, rows
from .consumer_plan import REGEXES, TOPICS

_STRANGE_MEMBERS = ("", " ", "unknown-member", "\U0001f980")
_BAD_REGEXES = ("(", "[a-", "*x", "(?!a)b", "a{2000}", "\\")


class Surroundings(hostile.Surroundings, Protocol):
    """The knowledge of a forger, with consumer groups."""

    @property
    def consumer_groups(self) -> Mapping[str, ConsumerGroupView]: ...


def group_id(rng: Random, world: Surroundings) -> str:
    return rng.choice(world.plan.groups) if rng.random() < 0.8 else rng.choice((*world.strange_groups, " "))


def _views(world: Surroundings, client: ConsumerClient) -> tuple[ConsumerMemberView, ...]:
    view = world.consumer_groups.get(client.plan.group_id)
    return view.members if view is not None else ()


def member_id(rng: Random, world: Surroundings, client: ConsumerClient) -> str:
    """Draw a member id: its own, another member's, an old one, an unknown one."""
    draw = rng.random()
    members = _views(world, client)
    if draw < 0.3 and client.member_id:
        return client.member_id
    if draw < 0.65 and members:
        return rng.choice(members).member_id
    if draw < 0.85 and world.known_ids:
        return rng.choice(world.known_ids[-6:])
    return rng.choice(_STRANGE_MEMBERS)


def _of(world: Surroundings, client: ConsumerClient, member: str) -> ConsumerMemberView | None:
    return next((row for row in _views(world, client) if row.member_id == member), None)


def epoch(rng: Random, world: Surroundings, client: ConsumerClient, member: str) -> int:
    """Draw an epoch: the member's, its previous one, a neighbour, or one with a special meaning."""
    row = _of(world, client, member)
    own = row.member_epoch if row else client.epoch
    previous = row.previous_member_epoch if row else client.epoch
    return rng.choice((own, previous, previous, own - 1, own + 1, 0, 0, -1, -2, -3, 2_147_483_647))


def instance_id(rng: Random, world: Surroundings, client: ConsumerClient) -> str | None:
    pool: list[str | None] = [
        None,
        client.plan.instance_id,
        "nobody",
        "",
        *(other.plan.instance_id for other in world.clients),
    ]
    return rng.choice(pool)


def owned(rng: Random, world: Surroundings, client: ConsumerClient, member: str) -> Any:
    """Draw owned partitions: absent, none, fewer, the right ones, those of others, impossible ones."""
    row = _of(world, client, member)
    held = {topic.topic_id: topic.partitions for topic in row.assigned} if row else dict(client.owned)
    pending = {topic.topic_id: topic.partitions for topic in row.pending_revocation} if row else {}
    both = {topic: held.get(topic, ()) + pending.get(topic, ()) for topic in {**held, **pending}}
    fewer = {topic: partitions[1:] for topic, partitions in held.items()}
    others = [other for other in _views(world, client) if other.member_id != member and other.assigned]
    foreign = {topic.topic_id: topic.partitions for topic in rng.choice(others).assigned} if others else {}
    choice = rng.choice((None, {}, held, both, fewer, foreign, {**held, b"\x07" * 16: (0, 9)}))
    return None if choice is None else rows(choice)


def heartbeat(rng: Random, world: Surroundings, client: ConsumerClient) -> tuple[int, m.RequestBody]:
    """Draw a join, heartbeat or leave with some error."""
    version, body = rng.choice((client.join, client.leave, _plain(client, rng), _plain(client, rng)))(rng)
    assert isinstance(body, c.ConsumerGroupHeartbeatRequest)
    if rng.random() < 0.6:  # name an existing member
        member = member_id(rng, world, client)
        row = _of(world, client, member)
        body = replace(body, member_id=member, member_epoch=row.member_epoch if row else body.member_epoch)
    member = body.member_id
    # with epoch 0, owned partitions other than an empty list are rejected (M-VAL-11); rare, so that more gets through
    changes: list[Callable[[], dict[str, Any]]] = [
        lambda: {"member_id": member_id(rng, world, client)},
        lambda: {"member_epoch": epoch(rng, world, client, member)},
        lambda: {"member_epoch": epoch(rng, world, client, member)},
        lambda: {
            "member_epoch": epoch(rng, world, client, member), "topic_partitions": owned(rng, world, client, member),
        },
        lambda: {"topic_partitions": owned(rng, world, client, member)},
        lambda: {"instance_id": instance_id(rng, world, client)},
        lambda: {"instance_id": instance_id(rng, world, client), "member_epoch": 0, "topic_partitions": ()},
        lambda: {"group_id": group_id(rng, world)},
        lambda: {"rack_id": rng.choice((None, "", " ", "rack-a"))},
        lambda: {"rebalance_timeout_ms": rng.choice((-1, 0, 1, 2_147_483_647))},
        lambda: {"subscribed_topic_names": _names(rng)},
        lambda: {"subscribed_topic_regex": rng.choice((None, "", *REGEXES, *_BAD_REGEXES))},
        lambda: {"server_assignor": rng.choice((None, "", "range", "uniform", "unknown"))},
        lambda: {"subscribed_topic_names": None, "subscribed_topic_regex": None},
    ]  # fmt: skip
    for _ in range(rng.choice((1, 1, 1, 2))):
        body = replace(body, **rng.choice(changes)())
    if rng.random() < 0.2:
        version = 1 - version
    # a field that a version does not carry cannot arrive (G-WIRE-10)
    return version, body if version >= 1 else replace(body, subscribed_topic_regex=None)


def _plain(client: ConsumerClient, rng: Random) -> Callable[[Random], tuple[int, m.RequestBody]]:
    full = rng.random() < 0.5
    return lambda _: (client.plan.version, client.heartbeat(full=full))


def _names(rng: Random) -> tuple[str, ...] | None:
    names = tuple(topic for topic in TOPICS if rng.random() < 0.3)
    return rng.choice((None, (), names, names, names + names[:1], ("no such topic!",)))


def consumer_describe(rng: Random, world: Surroundings) -> tuple[int, m.RequestBody]:
    count = rng.choice((1, 1, 2, 3))
    return rng.randint(0, 1), c.ConsumerGroupDescribeRequest(tuple(group_id(rng, world) for _ in range(count)))


def denied_topics(rng: Random) -> frozenset[str]:
    return frozenset(topic for topic in TOPICS if rng.random() < 0.4)


def delete(rng: Random, world: Surroundings) -> tuple[int, m.RequestBody]:
    """Delete groups, empty ones more often, since those can be deleted."""
    empty = [name for name in sorted(world.consumer_groups) if not world.consumer_groups[name].members]
    empty += [name for name in sorted(world.groups) if not world.groups[name].members]
    chosen = [
        rng.choice(empty) if empty and rng.random() < 0.5 else group_id(rng, world)
        for _ in range(rng.choice((1, 1, 2)))
    ]
    return rng.randint(0, 2), m.DeleteGroupsRequest(tuple(dict.fromkeys(chosen)))  # the handler drops duplicates
