"""Offset requests mixed into random traces of groups: right, late, and wrong ones."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from fencepost.protocol.events import Request, Topic, TopicsChanged
from fencepost.protocol.messages import RequestBody
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
    WriteTxnMarkerRequest,
)
from fencepost.protocol.profile import Profile
from fencepost.protocol.settings import Settings

from .world import World

_NAMES = ("orders", "payments", "clicks", "t1", "t2", "ghost")
_PRODUCERS = (1000, 1001, 1002)
#: Probabilities that an offset request follows a step; half of the traces have none.
_RATES = (0.0, 0.0, 0.15, 0.4)


def drawn(
    rng: Random,
    profile: Profile,
    settings: Settings,
    *,
    images: bool,
    rate: float | None = None,
    kind: type[OffsetMoves] | None = None,
) -> tuple[OffsetMoves | None, Settings]:
    """Return the offset moves of a trace, None for a trace without, and the settings that they need. ``images``:
    nothing else announces topics. ``rate``: of ``OffsetMoves``; None: drawn. ``kind``: the class of the moves."""
    rate = rng.choice(_RATES) if rate is None else rate
    if not rate:
        return None, settings
    settings = replace(
        settings,
        offsets_retention_ms=rng.choice((604_800_000, 60_000, 60_000, 120_000)),  # Kafka has minutes (G-CFG-21)
        offsets_retention_check_interval_ms=rng.choice((600_000, 600_000, 3_000, 45_000)),
        offset_metadata_max_bytes=rng.choice((4_096, 4_096, 1, 0, -1)),
    )
    return (kind or OffsetMoves)(rng, profile, rate, images=images), settings


class OffsetMoves:
    """Called between the steps of a generated trace; ``rate``: the probability that an offset request follows a step.
    ``images``: nothing else announces topics."""

    def __init__(self, rng: Random, profile: Profile, rate: float = 0.5, *, images: bool = True) -> None:
        self.rng = rng
        self.newest = not profile.old_transactions_without_topic_ids
        self.with_ids = not profile.old_no_topic_ids
        self.rate = rate
        self.images = images
        self.next_id = 1_000_000
        self.topics: dict[str, Topic] = {}
        self.version = 0
        self._looked = 0

    def __call__(self, world: World) -> None:
        self._look(world)
        if not world.events:
            return
        if self.images and not self.topics and self.rng.random() < 0.5:
            self._change(world)
        while self.rng.random() < self.rate:
            if self.images and self.rng.random() < (0.02 if world.owned else 0.3):  # no clean-up while it is not owned
                self._change(world)
            else:
                self._request(world)

    def _look(self, world: World) -> None:
        """Note topics that the trace itself changes."""
        for event in world.events[self._looked :]:
            if isinstance(event, TopicsChanged):
                self.topics = {topic.name: topic for topic in event.topics}
                self.version = max(self.version, event.version)
        self._looked = len(world.events)

    def _change(self, world: World) -> None:
        rng = self.rng
        topics = dict(self.topics)
        for name in rng.sample(_NAMES[:-1], rng.randint(1, 3)):
            if name in topics and rng.random() < 0.5:
                del topics[name]
            else:
                topics[name] = Topic(name, rng.randbytes(16), rng.randint(1, 3))
        self.topics = topics
        self.version += 1
        world.feed(TopicsChanged(world.now, tuple(topics.values()), version=self.version))

    def _request(self, world: World) -> None:
        rng = self.rng
        version, body = rng.choices(
            (self._commit, self._txn, self._end, self._fetch, self._delete), weights=(8, 5, 3, 6, 2)
        )[0](world)
        self.next_id += 1
        hidden = frozenset(rng.sample(_NAMES, 1)) if rng.random() < 0.05 else frozenset()
        denied = frozenset({self._group(world)}) if rng.random() < 0.03 else frozenset()
        world.feed(
            Request(
                world.now,
                id=self.next_id,
                version=version,
                client_id="c",
                client_host="/127.0.0.7",
                body=body,
                denied=denied,
                denied_topics=hidden,
                denied_transactional_ids=frozenset({"tx"}) if rng.random() < 0.02 else frozenset(),
            )
        )

    # ---- parts ----------------------------------------------------------------------------------------------------

    def _group(self, world: World) -> str:
        names = sorted({*world.groups, *world.consumer_groups})
        if names and self.rng.random() < 0.7:
            return self.rng.choice(names)
        ours: list[str] = [client.plan.group_id for client in world.clients]
        return self.rng.choice(("simple", "other", "", *ours))

    def _member(self, world: World, group_id: str) -> tuple[int, str, str | None]:
        """Draw an epoch, a member id and an instance id."""
        rng = self.rng
        if rng.random() < 0.2:
            return rng.choice((-1, -1, 0, 1, 2)), rng.choice(("", "", "nobody")), None
        if group_id in world.groups and world.groups[group_id].members:
            view = world.groups[group_id]
            member = rng.choice(view.members)
            instance = member.group_instance_id if rng.random() < 0.7 else rng.choice((None, "i1"))
            return view.generation_id + rng.choice((0,) * 8 + (-1, 1)), member.member_id, instance
        if group_id in world.consumer_groups and world.consumer_groups[group_id].members:
            row = rng.choice(world.consumer_groups[group_id].members)
            return row.member_epoch + rng.choice((0,) * 6 + (-1, -1, -2, 1)), row.member_id, None
        return rng.choice((-1, -1, -1, 0)), "", None

    def _topics(self, with_ids: bool) -> tuple[OffsetCommitRequestTopic, ...]:
        rng = self.rng
        found = []
        names = sorted(self.topics) if self.topics and rng.random() < 0.85 else [*_NAMES]
        for name in rng.sample(names, min(len(names), rng.choice((1, 1, 2, 3)))):
            topic = self.topics.get(name)
            topic_id = rng.randbytes(16) if topic is None else topic.topic_id
            partitions = tuple(
                OffsetCommitRequestPartition(
                    number,
                    committed_offset=rng.choice((-1, 0, rng.randint(1, 100))),
                    committed_leader_epoch=rng.choice((-1, -1, 3)),
                    committed_metadata=rng.choice((None, "", "m", "m" * 4_097 if rng.random() < 0.2 else "mm")),
                )
                for number in self._numbers(topic)
            )
            found.append(
                OffsetCommitRequestTopic(
                    name="" if with_ids else name, topic_id=topic_id if with_ids else ZERO_ID, partitions=partitions
                )
            )
        return tuple(found)

    def _numbers(self, topic: Topic | None) -> list[int]:
        """Draw partitions, nearly always existing ones."""
        count = 4 if topic is None or self.rng.random() < 0.1 else topic.partitions
        return self.rng.sample(range(count), min(count, self.rng.choice((1, 1, 2))))

    def _commit(self, world: World) -> tuple[int, RequestBody]:
        group_id = self._group(world)
        epoch, member_id, instance = self._member(world, group_id)
        version = self.rng.choice((2, 4, 5, 8, 9, 9, 10 if self.with_ids else 9))
        topics = self._topics(version >= 10)
        if version < 6:
            topics = _without_epochs(topics)
        return version, OffsetCommitRequest(
            group_id,
            generation_id_or_member_epoch=epoch,
            member_id=member_id,
            group_instance_id=instance if version >= 7 else None,
            retention_time_ms=self.rng.choice((-1, 5_000, 60_000, 100_000_000)) if version <= 4 else -1,
            topics=topics,
        )

    def _txn(self, world: World) -> tuple[int, RequestBody]:
        rng = self.rng
        group_id = self._group(world)
        epoch, member_id, instance = self._member(world, group_id)
        version = rng.choice((0, 1, 2, 3, 4, 5, 6 if self.newest else 5))
        if version < 3:
            epoch, member_id, instance = -1, "", None
        topics = self._topics(version >= 6)
        if version < 2:
            topics = _without_epochs(topics)
        return version, TxnOffsetCommitRequest(
            group_id,
            transactional_id=rng.choice(("tx", "ty")),
            producer_id=rng.choice(_PRODUCERS),
            producer_epoch=0,
            generation_id=epoch,
            member_id=member_id,
            group_instance_id=instance,
            topics=topics,
        )

    def _end(self, world: World) -> tuple[int, RequestBody]:
        rng = self.rng
        return 1, WriteTxnMarkerRequest(
            producer_id=rng.choice(_PRODUCERS),
            producer_epoch=0,
            coordinator_epoch=rng.randint(0, 3),
            committed=rng.random() < 0.6,
        )

    def _fetch(self, world: World) -> tuple[int, RequestBody]:
        rng = self.rng
        version = rng.choice((1, 2, 5, 7, 8, 9, 9, 10 if self.with_ids else 9))
        groups = []
        for _ in range(rng.choice((1, 1, 2, 3)) if version >= 8 else 1):
            group_id = self._group(world)
            member_id: str | None = None
            epoch = -1
            if version >= 9 and rng.random() < 0.5:
                epoch, member_id, _ = self._member(world, group_id)
                member_id = None if rng.random() < 0.1 else member_id
            topics = None
            if version == 1 or rng.random() < 0.6:
                topics = tuple(
                    OffsetFetchRequestTopic(
                        name=each.name,
                        topic_id=each.topic_id,
                        partition_indexes=tuple(p.partition_index for p in each.partitions),
                    )
                    for each in self._topics(version >= 10)
                )
            groups.append(OffsetFetchRequestGroup(group_id, member_id=member_id, member_epoch=epoch, topics=topics))
        return version, OffsetFetchRequest(tuple(groups), require_stable=version >= 7 and rng.random() < 0.5)

    def _delete(self, world: World) -> tuple[int, RequestBody]:
        return 0, OffsetDeleteRequest(
            self._group(world),
            tuple(
                OffsetDeleteRequestTopic(
                    name=each.name, partition_indexes=tuple(p.partition_index for p in each.partitions)
                )
                for each in self._topics(False)
            ),
        )


def _without_epochs(topics: tuple[OffsetCommitRequestTopic, ...]) -> tuple[OffsetCommitRequestTopic, ...]:
    """Return the topics as in a version without leader epochs."""
    return tuple(
        replace(topic, partitions=tuple(replace(each, committed_leader_epoch=-1) for each in topic.partitions))
        for topic in topics
    )
