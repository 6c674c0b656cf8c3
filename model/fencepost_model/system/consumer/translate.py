"""Translation between the closed system's values and those of the group machine: one topic, with partitions numbered in
their order.

Values that all members of the closed system share (the subscription, the rebalance timeout) are filled in here; they
never change.
"""

from __future__ import annotations

from typing import Final

from fencepost.protocol.consumer_messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from fencepost.protocol.events import Topic

from ... import machines
from ...consumer import ConsumerGroup, Image
from ...consumer import Member as MachineMember
from ...consumer.state import Held
from .state import Hard, Heartbeat, Holding, Member, MemberState, Partitions, Reply

TOPIC_ID: Final = bytes(15) + b"\x01"
NAMES: Final = ("t",)
REBALANCE_MS: Final = 300_000
#: The single time at which everything happens. A target computed just now has this timestamp; any other has 0, which
#: allows a computation (M-TGT-08).
NOW: Final = 1_000_000

_STATES: Final[dict[MemberState, str]] = {
    "STABLE": machines.C_STABLE,
    "UNREVOKED": machines.C_UNREVOKED,
    "UNRELEASED": machines.C_UNRELEASED,
}
_NAMES: Final[dict[str, MemberState]] = {state: name for name, state in _STATES.items()}


class Translation:
    """The translation for the partitions of a configuration."""

    def __init__(self, partitions: tuple[str, ...], rebalance_ms: int = REBALANCE_MS) -> None:
        self._names = partitions
        self._rebalance_ms = rebalance_ms
        self._numbers = {name: number for number, name in enumerate(partitions)}

    def image(self, existing: int) -> Image:
        return Image((Topic(NAMES[0], TOPIC_ID, existing),))

    def _held(self, holding: Holding) -> Held:
        return tuple(sorted((TOPIC_ID, self._numbers[name], epoch) for name, epoch in holding))

    def _holding(self, held: Held) -> Holding:
        return frozenset((self._names[number], epoch) for _, number, epoch in held)

    def place(self, partition: str) -> tuple[bytes, int]:
        """Return topic id and number of a partition."""
        return TOPIC_ID, self._numbers[partition]

    def partitions(self, target: tuple[tuple[bytes, int], ...]) -> Partitions:
        return frozenset(self._names[number] for _, number in target)

    def _rows(self, partitions: Partitions) -> tuple[TopicPartitions, ...]:
        numbers = tuple(sorted(self._numbers[name] for name in partitions))
        return (TopicPartitions(TOPIC_ID, numbers),) if numbers else ()

    def group(self, hard: Hard, blocked: bool) -> ConsumerGroup:
        """Return the group in the machine's values."""
        return ConsumerGroup(
            epoch=hard.group_epoch,
            assignment_epoch=hard.assignment_epoch,
            hash=hard.hashed,
            timestamp=NOW if blocked else 0,
            members=tuple(self._member(name, member) for name, member in hard.members),
            statics=hard.instances,
            target=tuple(
                (name, tuple(sorted((TOPIC_ID, self._numbers[each]) for each in target)))
                for name, target in hard.target
            ),
        )

    def _member(self, name: str, member: Member) -> MachineMember:
        return MachineMember(
            member_id=name,
            instance=member.instance or None,
            rebalance_timeout=self._rebalance_ms,
            names=NAMES,
            epoch=member.epoch,
            previous=member.previous,
            state=_STATES[member.state],
            assigned=self._held(member.assigned),
            revoking=self._held(member.revoking),
        )

    def hard(self, group: ConsumerGroup) -> Hard:
        """Return the logged state of the group in the closed system's values."""
        return Hard(
            group_epoch=group.epoch,
            assignment_epoch=group.assignment_epoch,
            hashed=group.hash,
            members=tuple(
                (
                    each.member_id,
                    Member(
                        each.instance or "",
                        each.epoch,
                        each.previous,
                        _NAMES[each.state],
                        self._holding(each.assigned),
                        self._holding(each.revoking),
                    ),
                )
                for each in group.members
            ),
            target=tuple((name, self.partitions(target)) for name, target in group.target),
            instances=group.statics,
        )

    def body(self, heartbeat: Heartbeat) -> ConsumerGroupHeartbeatRequest:
        return ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id=heartbeat.member_id,
            member_epoch=heartbeat.epoch,
            instance_id=heartbeat.instance or None,
            rebalance_timeout_ms=self._rebalance_ms if heartbeat.full else -1,
            subscribed_topic_names=NAMES if heartbeat.full else None,
            topic_partitions=None if heartbeat.owned is None else self._rows(heartbeat.owned),
        )

    def reply(self, answer: ConsumerGroupHeartbeatResponse) -> Reply:
        rows = answer.assignment
        assignment = (
            None if rows is None else frozenset(self._names[number] for row in rows for number in row.partitions)
        )
        return Reply(answer.error_code.name, answer.member_epoch, assignment)
