"""Offset requests over the wire: members commit and fetch; others try forbidden requests, list and delete.

Every version that the broker offers is used. Versions that name topics by id need the ids from the broker.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Final

from fencepost.protocol.messages import DeleteGroupsRequest, RequestBody
from fencepost.protocol.offset_messages import (
    ZERO_ID,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    TxnOffsetCommitRequest,
)

from ..clients import Client, Phase
from ..consumer_clients import ConsumerClient, ConsumerPhase
from .asking import Offer
from .cast import ForgerKnowledge, Producer
from .topics import Topics

OFFSET_COMMIT, OFFSET_FETCH, TXN_OFFSET_COMMIT, OFFSET_DELETE = 8, 9, 28, 47
#: probability that a forged request is about offsets; that it deletes the group that only has offsets
_FORGED, _DELETED = 0.4, 0.04
_DELETE_GROUPS: Final = 42
#: probability that a member commits or fetches before its next heartbeat
_BY_MEMBERS: Final = 0.12
#: OffsetCommit: the first and last version with a retention time; the first with instance ids; for KIP-848; with topic
#: ids
_RETENTION: Final = (2, 4)
_COMMIT_INSTANCE, _COMMIT_MEMBER_EPOCH, _COMMIT_IDS = 7, 9, 10
#: TxnOffsetCommit: the first version that names a member; that names topics by id
_TXN_MEMBER, _TXN_IDS = 3, 6
#: OffsetFetch: the first version that can ask for all topics; for stable offsets; that has several groups; that names
#: the member; that names topics by id
_FETCH_ALL, _FETCH_STABLE, _FETCH_GROUPS, _FETCH_MEMBER, _FETCH_IDS = 2, 7, 8, 9, 10
_LAST_EPOCH: Final = 2_147_483_647
#: probability that a fetch names its member, if it can; that it asks for offsets of the last transactional commit
_NAMED, _HELD = 0.6, 0.3
#: probability that a request has the instance id of another member
_RIVAL: Final = 0.15
#: one more than Kafka's default of offset.metadata.max.bytes
_TOO_LONG: Final = "m" * 4_097


@dataclass(frozen=True, slots=True)
class Standing:
    """The identity of a commit's sender in a group. ``epoch``: generation or member epoch."""

    group_id: str
    epoch: int = -1
    member_id: str = ""
    instance_id: str | None = None
    consumer: bool = False


def standing(program: Client | ConsumerClient) -> Standing | None:
    """Return a client's identity in its group; None while it is not a member."""
    plan = program.plan
    if isinstance(program, ConsumerClient):
        if program.phase is not ConsumerPhase.IN:
            return None
        return Standing(plan.group_id, program.epoch, program.member_id, None, consumer=True)
    if program.phase not in (Phase.STABLE, Phase.JOINED) or not program.member_id:
        return None
    return Standing(plan.group_id, program.generation, program.member_id, plan.instance_id)


class OffsetRequests:
    """Draws offset requests. ``world``: groups, clients and member ids. ``apart``: groups without clients."""

    def __init__(self, offer: Offer, topics: Topics, world: ForgerKnowledge[Any], apart: Sequence[str]) -> None:
        self._ranges, self._topics, self._apart = offer.ranges, topics, apart
        self._programs: Sequence[Client | ConsumerClient] = world.clients
        self._groups, self._known_ids = world.plan.groups, world.known_ids
        self._held: tuple[str, Sequence[str]] | None = None  #: the last group and topics of a transactional commit

    def by_member(self, rng: Random, program: Client | ConsumerClient) -> tuple[int, RequestBody] | None:
        """Sometimes return a commit or a fetch of a member."""
        who = standing(program)
        if who is None or rng.random() >= _BY_MEMBERS:
            return None
        made = self._drawn(rng, ((OFFSET_COMMIT, 3), (OFFSET_FETCH, 2)))
        return None if made is None else made(rng, who)

    def forged(self, rng: Random) -> tuple[int, RequestBody] | None:
        """Return a commit, fetch or deletion in the name of a member, of a former member, or of none."""
        made = self._drawn(rng, ((OFFSET_COMMIT, 4), (OFFSET_FETCH, 3), (OFFSET_DELETE, 2)))
        return None if made is None else made(rng, self.anybody(rng))

    def anybody(self, rng: Random) -> Standing:
        """Draw a member's identity, changed in one or two parts, or no member in some group."""
        draw = rng.random()
        if draw < 0.25:
            return Standing(rng.choice((*self._apart, *self._groups)))  # a simple consumer, or an administrator
        there = [who for who in map(standing, self._programs) if who is not None]
        static = [each for each in there if each.instance_id]
        if static and rng.random() < _RIVAL:  # another member uses its instance id (O-COMMIT-25)
            return replace(rng.choice(static), member_id="nobody")
        who = rng.choice(there) if there else Standing(rng.choice(self._groups), 1, "nobody")
        changes: tuple[Callable[[], dict[str, Any]], ...] = (
            lambda: {},
            lambda: {"epoch": min(who.epoch + rng.choice((-1, -1, 1)), _LAST_EPOCH)},
            lambda: {"epoch": rng.choice((-1, 0, _LAST_EPOCH))},
            lambda: {"member_id": rng.choice(("", "nobody", *self._known_ids[-6:]))},
            lambda: {"instance_id": rng.choice((None, "nobody", *(each.plan.instance_id for each in self._programs)))},
            lambda: {"group_id": rng.choice((*self._groups, *self._apart))},
        )
        for _ in range(rng.choice((1, 1, 2))):
            who = replace(who, **rng.choice(changes)())
        return who

    def _drawn(
        self, rng: Random, weights: Sequence[tuple[int, int]]
    ) -> Callable[[Random, Standing], tuple[int, RequestBody]] | None:
        """Draw one of the requests that the broker offers; returns its maker. None without any, or without topics."""
        offered = [(key, weight) for key, weight in weights if key in self._ranges]
        if not offered or not self._topics.sizes:
            return None
        makers = {OFFSET_COMMIT: self._commit, OFFSET_FETCH: self._fetch, OFFSET_DELETE: self._delete}
        (key,) = rng.choices([key for key, _ in offered], [weight for _, weight in offered])
        return makers[key]

    def _version(self, rng: Random, key: int, ids_from: int, least: int = 0) -> int:
        """Draw a version from ``least`` on, if the broker has one; if topic ids are unknown, one that needs none."""
        low, high = self._ranges[key]
        if not self._topics.ids and low < ids_from:
            high = min(high, ids_from - 1)
        return rng.randint(min(max(low, least), high), high)

    def _commit(self, rng: Random, who: Standing) -> tuple[int, RequestBody]:
        newer = _COMMIT_MEMBER_EPOCH if who.consumer and rng.random() < 0.8 else 0
        version = self._version(rng, OFFSET_COMMIT, _COMMIT_IDS, newer)
        retains = _RETENTION[0] <= version <= _RETENTION[1] and rng.random() < 0.1
        return version, OffsetCommitRequest(
            who.group_id,
            generation_id_or_member_epoch=who.epoch,
            member_id=who.member_id,
            group_instance_id=who.instance_id if version >= _COMMIT_INSTANCE else None,
            retention_time_ms=rng.choice((60_000, 600_000)) if retains else -1,
            topics=self._rows(rng, by_id=version >= _COMMIT_IDS),
        )

    def in_transaction(self, rng: Random, who: Standing, producer: Producer) -> tuple[int, RequestBody]:
        """Return a commit that takes effect when the transaction is committed."""
        version = self._version(rng, TXN_OFFSET_COMMIT, _TXN_IDS, rng.choice((0, _TXN_MEMBER, _TXN_IDS)))
        member = version >= _TXN_MEMBER
        rows = self._rows(rng, by_id=version >= _TXN_IDS)
        self._held = who.group_id, [self._name(row) for row in rows]
        return version, TxnOffsetCommitRequest(
            who.group_id,
            transactional_id=producer.transactional_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            generation_id=who.epoch if member else -1,
            member_id=who.member_id if member else "",
            group_instance_id=who.instance_id if member else None,
            topics=rows,
        )

    def _fetch(self, rng: Random, who: Standing) -> tuple[int, RequestBody]:
        if self._held is not None and rng.random() < _HELD:
            return self._stable_fetch(rng, *self._held)
        # most errors of this API concern a member; versions that name none cannot get them
        least = _FETCH_MEMBER if who.member_id and rng.random() < _NAMED else 0
        version = self._version(rng, OFFSET_FETCH, _FETCH_IDS, least)
        names = [who.group_id]
        if version >= _FETCH_GROUPS:
            others = [name for name in dict.fromkeys((*self._groups, *self._apart)) if name != who.group_id]
            names += rng.sample(others, min(len(others), rng.choice((0, 0, 1, 2))))
        named = version >= _FETCH_MEMBER and (least > 0 or rng.random() < _NAMED)
        groups = tuple(
            OffsetFetchRequestGroup(
                name,
                member_id=(who.member_id or None) if named and name == who.group_id else None,
                member_epoch=who.epoch if named and name == who.group_id and who.member_id else -1,
                topics=None if version >= _FETCH_ALL and rng.random() < 0.3 else self._wanted(rng, version),
            )
            for name in names
        )
        return version, OffsetFetchRequest(groups, require_stable=version >= _FETCH_STABLE and rng.random() < 0.5)

    def _stable_fetch(self, rng: Random, group_id: str, names: Sequence[str]) -> tuple[int, RequestBody]:
        """Return a fetch for stable offsets of all partitions of these topics, which an open transaction may block
        (O-FETCH-08)."""
        version = self._version(rng, OFFSET_FETCH, _FETCH_IDS, _FETCH_STABLE)
        by_id, sizes, ids = version >= _FETCH_IDS, self._topics.sizes, self._topics.ids
        topics = tuple(
            OffsetFetchRequestTopic(
                name="" if by_id else name,
                topic_id=ids.get(name, rng.randbytes(16)) if by_id else ZERO_ID,
                partition_indexes=tuple(range(sizes.get(name, 1))),
            )
            for name in names
        )
        group = OffsetFetchRequestGroup(group_id, topics=topics)
        return version, OffsetFetchRequest((group,), require_stable=version >= _FETCH_STABLE)

    def _name(self, row: OffsetCommitRequestTopic) -> str:
        return row.name or next((name for name, topic_id in self._topics.ids.items() if topic_id == row.topic_id), "")

    def _wanted(self, rng: Random, version: int) -> tuple[OffsetFetchRequestTopic, ...]:
        return tuple(
            OffsetFetchRequestTopic(name=row.name, topic_id=row.topic_id, partition_indexes=_numbers(row))
            for row in self._rows(rng, by_id=version >= _FETCH_IDS)
        )

    def _delete(self, rng: Random, who: Standing) -> tuple[int, RequestBody]:
        group_id = "" if rng.random() < 0.1 and len(self._apart) else who.group_id
        rows = self._rows(rng, by_id=False)
        topics = tuple(OffsetDeleteRequestTopic(name=row.name, partition_indexes=_numbers(row)) for row in rows)
        return 0, OffsetDeleteRequest(group_id, topics)

    def _rows(self, rng: Random, *, by_id: bool) -> tuple[OffsetCommitRequestTopic, ...]:
        """Draw partitions with offsets to commit; a few do not exist, or have metadata that is too long."""
        sizes = self._topics.sizes
        names = rng.sample(sorted(sizes), min(len(sizes), rng.choice((1, 1, 2))))
        if rng.random() < 0.06:
            names.append(self._topics.named("ghosts"))
        return tuple(
            OffsetCommitRequestTopic(
                name="" if by_id else name,
                topic_id=self._topics.ids.get(name, rng.randbytes(16)) if by_id else ZERO_ID,
                partitions=self._partitions(rng, sizes.get(name, 1)),
            )
            for name in names
        )

    def _partitions(self, rng: Random, size: int) -> tuple[OffsetCommitRequestPartition, ...]:
        count = size + 1 if rng.random() < 0.05 else size
        return tuple(
            OffsetCommitRequestPartition(
                number,
                committed_offset=rng.randint(0, 1_000),
                committed_leader_epoch=rng.choice((-1, 0, 3)),
                committed_metadata=_TOO_LONG if rng.random() < 0.03 else rng.choice((None, "", "m")),
            )
            for number in rng.sample(range(count), min(count, rng.choice((1, 1, 2))))
        )


def _numbers(row: OffsetCommitRequestTopic) -> tuple[int, ...]:
    return tuple(each.partition_index for each in row.partitions)


class CastWithOffsets:
    """The common part of the casts of all protocols: topics and offset requests."""

    def __init__(self, offer: Offer, topics: Topics, world: ForgerKnowledge[Any], apart: Sequence[str]) -> None:
        self.offer, self.topics, self.apart = offer, topics, apart
        self.set_up, self.meanwhile, self.clear_away = topics.set_up, topics.meanwhile, topics.clear_away
        self.offsets = OffsetRequests(offer, topics, world, apart)

    def about_offsets(self, rng: Random) -> tuple[int, RequestBody] | None:
        """Sometimes return an offset request instead of another forged one, or the deletion of the group that only has
        offsets."""
        draw = rng.random()
        if draw < _FORGED:
            return self.offsets.forged(rng)
        if draw < _FORGED + _DELETED and self.apart and (bounds := self.offer.ranges.get(_DELETE_GROUPS)):
            return rng.randint(*bounds), DeleteGroupsRequest(tuple(self.apart)[: rng.choice((1, 1, 2))])
        return None

    def transaction(self, rng: Random, producer: Producer) -> tuple[int, RequestBody] | None:
        """Return a commit within a transaction."""
        if TXN_OFFSET_COMMIT not in self.offer.ranges or not self.topics.sizes:
            return None
        return self.offsets.in_transaction(rng, self.offsets.anybody(rng), producer)
