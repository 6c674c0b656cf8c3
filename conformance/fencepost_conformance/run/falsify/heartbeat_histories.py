"""The stories of members with the consumer protocol that a trace shows from their first heartbeat on."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias
from uuid import UUID

from fencepost.protocol.errors import ErrorCode as E

from ...traces.files import WireTrace
from ...traces.lines import ReceivedLine, SentLine
from .exchanges import Exchange

_HEARTBEAT: Final = 68
_CREATE_TOPICS: Final = 19
#: Well below the session timeout of every recording.
CALM_MS: Final = 4_000
Partition: TypeAlias = tuple[str, int]


def partitions(rows: Iterable[dict[str, Any]] | None) -> frozenset[Partition]:
    """Return partitions with topic ids as the trace writes them."""
    return frozenset((row["topic_id"], number) for row in rows or () for number in row["partitions"])


def rows(held: Iterable[Partition]) -> list[dict[str, Any]]:
    topics: dict[str, list[int]] = {}
    for topic, number in sorted(held):
        topics.setdefault(topic, []).append(number)
    return [{"topic_id": topic, "partitions": numbers} for topic, numbers in topics.items()]


@dataclass(frozen=True, slots=True)
class HeartbeatExchange:
    """A heartbeat answered NONE of a member with a known story, the previous one, and the next.

    ``had`` is the member's assignment before it, ``has`` after it; ``revoking``: the member has partitions to revoke.
    """

    one: Exchange
    before: Exchange | None
    next: Exchange | None
    had: frozenset[Partition]
    has: frozenset[Partition]
    revoking: bool

    @property
    def epoch(self) -> int:
        number: int = self.one.answer["member_epoch"]
        return number

    @property
    def asked(self) -> int:
        number: int = self.one.ask["member_epoch"]
        return number

    @property
    def calm(self) -> bool:
        """Whether the member got an answer shortly before, and nothing about it was changing."""
        near = self.before is not None and self.one.received_ms - self.before.sent_ms < CALM_MS
        return near and not self.revoking and self.had == self.has and self.asked == self.epoch


def heartbeat_histories(trace: WireTrace, all_: list[Exchange]) -> dict[str, list[HeartbeatExchange]]:
    """Return the heartbeats of each member that began at epoch 0, until the member is in doubt.

    A member is in doubt when its requests overlap, stay unanswered, are rejected, or start again. A static member is
    also in doubt once another request comes with its instance id, or removes members by instance id.
    """
    asked: dict[str, list[Exchange]] = {}
    for each in sorted(all_, key=lambda each: each.sent):
        if each.api == "ConsumerGroupHeartbeat":
            asked.setdefault(each.ask["member_id"], []).append(each)
    lost = unanswered(trace, all_)
    histories: dict[str, list[HeartbeatExchange]] = {}
    for member, history in asked.items():
        ends = [at for at, name in lost if name == member]
        instance = history[0].ask["instance_id"]
        if instance is not None:
            ends += [at for at, who, name in _instances(trace) if name == instance and who != member]
        histories[member] = list(_until_in_doubt(history, min(ends, default=len(trace.lines))))
    return {member: history for member, history in histories.items() if history}


def _instances(trace: WireTrace) -> Iterator[tuple[int, str, str]]:
    """Yield every position at which a request names an instance id, with the member, and the instance id."""
    for at, line in enumerate(trace.lines):
        if isinstance(line, SentLine):
            body: Any = line.body
            for row in (body, *body.get("members", ())):
                name = row.get("instance_id") or row.get("group_instance_id")
                if name is not None:
                    yield at, row.get("member_id", ""), name


def unanswered(trace: WireTrace, all_: list[Exchange]) -> list[tuple[int, str]]:
    answered = {each.sent for each in all_}
    return [
        (at, str(line.body.get("member_id")))
        for at, line in enumerate(trace.lines)
        if isinstance(line, SentLine) and line.api_key == _HEARTBEAT and at not in answered
    ]


def _until_in_doubt(history: list[Exchange], end: int) -> Iterator[HeartbeatExchange]:
    held: frozenset[Partition] = frozenset()
    epoch, revoking = 0, False
    for at, one in enumerate(history):
        begins = at == 0
        known = one.ask["member_epoch"] == 0 if begins else one.ask["member_epoch"] > 0
        fresh = begins or history[at - 1].received < one.sent
        overtaken = at + 1 < len(history) and history[at + 1].sent < one.received
        if not known or not fresh or overtaken or one.error != E.NONE or one.received > end:
            return
        has = held if one.answer["assignment"] is None else partitions(one.answer["assignment"])
        moved = one.answer["member_epoch"] != epoch
        revoking = not moved and (revoking or bool(held - has))
        following = history[at + 1] if at + 1 < len(history) else None
        known_next = following is not None and following.sent > one.received and following.received < end
        yield HeartbeatExchange(
            one, history[at - 1] if at else None, following if known_next else None, held, has, revoking
        )
        held, epoch = has, one.answer["member_epoch"]


def names_of(trace: WireTrace) -> dict[str, str]:
    """Return the topics that were created in the trace: name to id as heartbeats write it."""
    found: dict[str, str] = {}
    for line in trace.lines:
        if isinstance(line, ReceivedLine) and line.api_key == _CREATE_TOPICS:
            topics: Any = line.body["topics"]
            found |= {row["name"]: urlsafe_b64encode(UUID(row["topic_id"]).bytes).decode() for row in topics}
    return found


def held_during(history: list[HeartbeatExchange], at: Exchange) -> frozenset[Partition]:
    """Return what a member certainly holds during this exchange: its answer came shortly before, its next request
    after."""
    for heartbeat in history:
        after = heartbeat.next
        around = heartbeat.one.received < at.sent and after is not None and after.sent > at.received
        if around and after is not None and at.received_ms - heartbeat.one.sent_ms < CALM_MS and not heartbeat.revoking:
            return heartbeat.has if after.ask["member_epoch"] > 0 and after.error == E.NONE else frozenset()
    return frozenset()
