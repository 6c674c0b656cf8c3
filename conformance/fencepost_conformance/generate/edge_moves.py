"""Steps at exact boundaries: times, sizes, signs and widths, and several rows of a kind in one request.

A third of the traces has them. They use their own random generator, so a trace without them is the same as if this
module did not exist.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Final

from fencepost.protocol.events import TimerKey, TimerKind, Topic
from fencepost.protocol.messages import RequestBody
from fencepost.protocol.offset_messages import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    TxnOffsetCommitRequest,
    WriteTxnMarkerRequest,
)

from .carried import as_carried
from .offset_moves import OffsetMoves
from .world import World

#: one character of each length in UTF-8 and UTF-16, combining and invisible ones, and the ends of the ranges
_CHARACTERS: Final = ("m", "\0", "é", "e\u0301", "ß", "\u07ff", "\u0800", "漢", "\u200b", "\ud7ff", "\ue000", "\uffff",
                      "\U00010000", "\U0001f980", "\U0010ffff")  # fmt: skip
_LEAST_64, _MOST_64 = -(1 << 63), (1 << 63) - 1
_LEAST_32, _MOST_32 = -(1 << 31), (1 << 31) - 1
_OFFSETS: Final = (_LEAST_64, -2, -1, 0, 1, 1 << 32, _MOST_64)
_EPOCHS: Final = (_LEAST_32, -2, -1, 0, 3, _MOST_32)
#: some are equal in their lower half
_PRODUCERS: Final = (0, 1_000, 1_000 + (1 << 32), (1 << 32) - 1, _MOST_64)
_PRODUCER_EPOCHS: Final = (0, 0, 0, 1, 32_766, 32_767)
_RETENTIONS: Final = (-1, -1, 0, 1, -2, 5_000, _LEAST_64, _MOST_64)
_EXPIRY: Final = TimerKey(TimerKind.EXPIRY)
#: timers that are further away are not waited for
_NEAR_MS: Final = 3_600_000


def units(text: str) -> int:
    """The length of a text in UTF-16 units, as Java counts it (G-CFG-20)."""
    return len(text.encode("utf-16-le")) // 2


_SIZED: Final = tuple((character, units(character)) for character in _CHARACTERS)


def text_of_units(dice: Random, length: int) -> str:
    """Return a random text of so many UTF-16 units."""
    found: list[str] = []
    left = length
    while left > 0:
        character, its_units = dice.choice(_SIZED)
        if its_units <= left:
            found.append(character)
            left -= its_units
    return "".join(found)


class EdgeTimes:
    """Called between the steps of a trace: moves time to just before a timer, exactly to it, or just behind it."""

    def __init__(self, dice: Random) -> None:
        self._dice = dice

    def __call__(self, world: World) -> None:
        dice = self._dice
        if not world.events or dice.random() > 0.12:
            return
        armed = sorted(world.session.armed.items(), key=lambda row: (row[1], str(row[0])))
        near = [due for _, due in armed if world.now < due <= world.now + _NEAR_MS]
        if near:
            world.now = max(world.now, dice.choice(near[:3]) + dice.choice((-1, 0, 0, 1)))


class EdgeOffsets(OffsetMoves):
    """Offset requests with numbers, texts and times at their limits, and several rows of each kind."""

    def _commit(self, world: World) -> tuple[int, RequestBody]:
        owned = self._commit_of_owner(world) if self.rng.random() < 0.35 else None
        if owned is not None:
            return owned
        self._wait_for_retention(world)
        version, body = super()._commit(world)
        assert isinstance(body, OffsetCommitRequest)
        retention = self._retention(world) if version <= 4 else -1
        topics = self._edged(world, body.topics)
        return version, as_carried(replace(body, retention_time_ms=retention, topics=topics), version)

    def _wait_for_retention(self, world: World) -> None:
        """Sometimes move time so that the retention of a commit made now ends exactly at the next expiry check, or a
        millisecond before or after it (O-EXP-02)."""
        due = world.session.armed.get(_EXPIRY)
        if due is not None and self.rng.random() < 0.3:
            at = due - world.plan.settings.offsets_retention_ms + self.rng.choice((-1, 0, 1))
            world.now = max(world.now, at)

    def _commit_of_owner(self, world: World) -> tuple[int, RequestBody] | None:
        """Return a commit of a consumer group's member for partitions that it has or is revoking. Its epoch is the one
        at which it got one of them, one less or one more (O-COMMIT-41)."""
        rng = self.rng
        names = {topic.topic_id: topic.name for topic in self.topics.values()}
        held = [
            (group_id, member, names[row.topic_id], numbers)
            for group_id in sorted(world.consumer_groups)
            for member in world.consumer_groups[group_id].members
            for row in (*member.pending_revocation, *member.assigned)
            if row.topic_id in names and (numbers := [*zip(row.partitions, row.assignment_epochs or (), strict=False)])
        ]
        if not held:
            return None
        group_id, member, name, numbers = rng.choice(held)
        chosen = rng.sample(numbers, rng.randint(1, len(numbers)))
        rows = tuple(
            OffsetCommitRequestPartition(number, committed_offset=rng.choice(_OFFSETS)) for number, _ in chosen
        )
        body = OffsetCommitRequest(
            group_id,
            generation_id_or_member_epoch=min(member.member_epoch, rng.choice(chosen)[1] + rng.choice((-1, 0, 0, 1))),
            member_id=member.member_id,
            topics=(OffsetCommitRequestTopic(name=name, partitions=rows),),
        )
        return 9, body

    def _txn(self, world: World) -> tuple[int, RequestBody]:
        version, body = super()._txn(world)
        assert isinstance(body, TxnOffsetCommitRequest)
        edged = replace(
            body,
            producer_id=self.rng.choice(_PRODUCERS),
            producer_epoch=self.rng.choice(_PRODUCER_EPOCHS),
            topics=self._edged(world, body.topics),
        )
        return version, as_carried(edged, version)

    def _end(self, world: World) -> tuple[int, RequestBody]:
        version, body = super()._end(world)
        assert isinstance(body, WriteTxnMarkerRequest)
        epoch, coordinator = self.rng.choice(_PRODUCER_EPOCHS), self.rng.choice((0, 1, _MOST_32))
        producer = self.rng.choice(_PRODUCERS)
        return version, replace(body, producer_id=producer, producer_epoch=epoch, coordinator_epoch=coordinator)

    def _numbers(self, topic: Topic | None) -> list[int]:
        """Draw partition numbers: one before the first, the last, one behind it, and the same one twice."""
        count = 2 if topic is None else topic.partitions
        numbers = (-1, 0, 0, count - 1, count - 1, count, _LEAST_32, _MOST_32)
        return self.rng.choices(numbers, k=self.rng.randint(1, 4))

    def _retention(self, world: World) -> int:
        """Draw a retention time: at a limit, or until just before the next check, exactly to it, or just behind it."""
        due = world.session.armed.get(_EXPIRY)
        if due is not None and self.rng.random() < 0.6:
            return due - world.now + self.rng.choice((-1, 0, 1))
        return self.rng.choice(_RETENTIONS)

    def _edged(
        self, world: World, topics: tuple[OffsetCommitRequestTopic, ...]
    ) -> tuple[OffsetCommitRequestTopic, ...]:
        limit = world.plan.settings.offset_metadata_max_bytes
        return tuple(
            replace(topic, partitions=tuple(self._partition(row, limit) for row in topic.partitions))
            for topic in topics
        )

    def _partition(self, row: OffsetCommitRequestPartition, limit: int) -> OffsetCommitRequestPartition:
        rng = self.rng
        length = max(0, rng.choice((limit - 1, limit, limit + 1, 2, 3)))
        if length > 100 and rng.random() < 0.8:
            length = rng.choice((0, 1, 7))
        return replace(
            row,
            committed_offset=rng.choice(_OFFSETS),
            committed_leader_epoch=rng.choice(_EPOCHS),
            committed_metadata=rng.choice((None, text_of_units(rng, length), text_of_units(rng, length))),
        )
