"""Choices that are watched, and replaced by another coordinator's where that one chose differently (NOT-10)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fencepost.protocol.choices import Choices
from fencepost.protocol.messages import JoinGroupResponse

from ..targets.base import Observation
from .difference import Difference


@dataclass(frozen=True, slots=True)
class Call:
    """One choice: at which event, the how-manieth of that event, of what kind, among what, and the answer."""

    event: int
    number: int
    kind: str
    group_id: str
    among: tuple[str, ...]
    answer: str


class WatchedChoices:
    """Asks ``inner`` unless ``given`` holds the answer for (event, number of the call). ``event`` is set by the
    runner."""

    def __init__(self, inner: Choices, given: Mapping[tuple[int, int], str]) -> None:
        self._inner = inner
        self._given = given
        self.event = 0
        self.calls: list[Call] = []

    def member_id(self, prefix: str) -> str:
        return self._inner.member_id(prefix)

    def leader(self, group_id: str, candidates: Sequence[str]) -> str:
        return self._noted("leader", group_id, candidates, self._inner.leader(group_id, candidates))

    def protocol(self, group_id: str, tied: Sequence[str]) -> str:
        return self._noted("protocol", group_id, tied, self._inner.protocol(group_id, tied))

    def uuid(self) -> str:
        return self._inner.uuid()

    def assignor(self, group_id: str, tied: Sequence[str]) -> str:
        return self._inner.assignor(group_id, tied)

    def order(self, group_id: str, keys: Sequence[str]) -> Sequence[str]:
        return self._inner.order(group_id, keys)

    def _noted(self, kind: str, group_id: str, among: Sequence[str], answer: str) -> str:
        number = sum(call.event == self.event for call in self.calls)
        answer = self._given.get((self.event, number), answer)
        self.calls.append(Call(self.event, number, kind, group_id, tuple(among), answer))
        return answer


def other_choice(calls: Sequence[Call], found: Difference, other: Observation) -> tuple[tuple[int, int], str] | None:
    """The choice at the step of a difference that the other coordinator made differently: its place and its answer."""
    for call in reversed(calls):
        if call.event != found.event:
            continue
        chosen = _chosen(call, other)
        if chosen is not None and chosen != call.answer and chosen in call.among:
            return (call.event, call.number), chosen
    return None


def _chosen(call: Call, other: Observation) -> str | None:
    view = other.groups.get(call.group_id)
    if view is not None:
        return view.leader if call.kind == "leader" else view.protocol_name
    for reply in other.replies:
        if isinstance(reply.body, JoinGroupResponse) and reply.body.generation_id >= 0:
            return reply.body.leader if call.kind == "leader" else reply.body.protocol_name
    return None
