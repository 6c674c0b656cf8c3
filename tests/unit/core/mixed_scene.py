"""A scene for groups with members of both protocols: classic members whose bytes can be parsed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fencepost import coordinator
from fencepost.protocol import embedded
from fencepost.protocol import messages as m
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Load, Unload
from fencepost.protocol.partitions import TopicPartition
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED
from fencepost.protocol.records import Record
from fencepost.protocol.settings import MigrationPolicy

from .consumer_scene import ConsumerScene
from .scene import GROUP

#: Partitions by topic name.
Named = Mapping[str, Iterable[int]]


def named(owned: Named) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(topic, number) for topic, numbers in owned.items() for number in numbers)


def wants(
    *topics: str,
    owned: Named | None = None,
    generation: int = embedded.NO_GENERATION,
    version: int = 3,
    rack: str | None = None,
) -> bytes:
    """Return the bytes of a subscription."""
    subscription = embedded.Subscription(topics, None, named(owned or {}), generation, rack)
    return embedded.encode_subscription(subscription, version)


def gets(owned: Named, *, user_data: bytes | None = None) -> bytes:
    """Return the bytes of an assignment."""
    return embedded.encode_assignment(embedded.Assignment(named(owned), user_data))


def got(assignment: bytes) -> dict[str, tuple[int, ...]]:
    found: dict[str, list[int]] = {}
    for topic, number in embedded.decode_assignment(assignment).partitions:
        found.setdefault(topic, []).append(number)
    return {topic: tuple(numbers) for topic, numbers in found.items()}


class MixedScene(ConsumerScene):
    def __init__(
        self,
        profile: Profile = INTENDED,
        *,
        policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL,
        log: str = "at once",
        **settings: object,
    ) -> None:
        super().__init__(profile, log=log, group_consumer_migration_policy=policy, **settings)

    def classic(self, *members: str, topic: str = "a", **more: object) -> list[str]:
        """Create static classic members with these instance ids, Stable in generation 1, each with its partitions."""
        ids = []
        joins = [self.join("", instance=each, data=wants(topic), **more) for each in members]  # type: ignore[arg-type]
        self.pass_time(self.state.settings.group_initial_rebalance_delay_ms * 2)
        ids = [self.joined(each).member_id for each in joins]
        shares = {member_id: gets({topic: range(at, 4, len(ids))}) for at, member_id in enumerate(ids)}
        for member_id in ids[1:]:
            self.sync(member_id, 1)
        self.sync(ids[0], 1, shares)
        return ids

    def rejoin(
        self,
        member_id: str,
        *topics: str,
        owned: Named | None = None,
        generation: int = embedded.NO_GENERATION,
        bytes_version: int = 3,
        **more: object,
    ) -> m.JoinGroupResponse:
        """Send a JoinGroup that must be answered immediately; ``bytes_version`` is the version of its subscription."""
        data = wants(*topics, owned=owned, generation=generation, version=bytes_version)
        return self.joined(self.join(member_id, data=data, **more))  # type: ignore[arg-type]

    def fetched(self, member_id: str, generation: int, **more: object) -> m.SyncGroupResponse:
        return self.synced(self.sync(member_id, generation, **more))  # type: ignore[arg-type]

    def removed(self, *members: str | m.LeaveGroupMember) -> list[ErrorCode]:
        return [row.error_code for row in self.left(self.leave(*members)).members]

    def load(self, records: Iterable[Record]) -> None:
        """Lose the partition, and load it again from these records."""
        self.feed(Unload(self.now, leader_epoch=None))
        self.records = list(records)
        self.feed(Load(self.now, leader_epoch=2, records=tuple(self.records)))

    @property
    def is_classic(self) -> bool:
        return coordinator.view(self.state, GROUP) is not None


def mixed(profile: Profile = INTENDED, **more: object) -> tuple[MixedScene, str, str]:
    """Let classic members i1 and i2 share topic a, and consumer m1 join and wait for its part. Return the classic
    member ids."""
    scene = MixedScene(profile, **more)  # type: ignore[arg-type]
    first, second = scene.classic("i1", "i2")
    scene.come("m1", "a")
    return scene, first, second
