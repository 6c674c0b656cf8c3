"""Choices that are watched, and replaced by another coordinator's where that one chose differently (NOT-10)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar, cast

from fencepost.protocol.choices import Choices
from fencepost.protocol.messages import JoinGroupResponse

from ..generate.java_order import java_order
from ..targets.base import Observation
from .difference import Difference

#: entries that a hash map may once have held, one for each size of its table
_TABLE_SIZES = (12, 24, 48, 96)


#: a name, or all names in order
Answer: TypeAlias = str | tuple[str, ...]
_A = TypeVar("_A", str, tuple[str, ...])
#: which choice: the event, and the how-manieth of that event
Place: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Call:
    """One choice: at which event, the how-manieth of that event, of what kind, among what, and the answer."""

    event: int
    number: int
    kind: str
    group_id: str
    among: tuple[str, ...]
    answer: Answer


class WatchedChoices:
    """Asks ``inner`` unless ``given`` holds the answer for (event, number of the call). ``event`` is set by the
    runner."""

    def __init__(self, inner: Choices, given: Mapping[Place, Answer]) -> None:
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
        return self._noted("assignor", group_id, tied, self._inner.assignor(group_id, tied))

    def order(self, group_id: str, keys: Sequence[str]) -> Sequence[str]:
        return self._noted("order", group_id, keys, tuple(self._inner.order(group_id, keys)))

    def _noted(self, kind: str, group_id: str, among: Sequence[str], answer: _A) -> _A:
        number = sum(call.event == self.event for call in self.calls)
        answer = cast(_A, self._given.get((self.event, number), answer))
        self.calls.append(Call(self.event, number, kind, group_id, tuple(among), answer))
        return answer


def other_choice(calls: Sequence[Call], found: Difference, other: Observation) -> tuple[Place, str] | None:
    """The choice at the step of a difference that the other coordinator made differently: its place and its answer."""
    for call in reversed(calls):
        if call.event != found.event:
            continue
        chosen = _chosen(call, other)
        if chosen is not None and chosen != call.answer and chosen in call.among:
            return (call.event, call.number), chosen
    return None


def untold_choices(calls: Sequence[Call], found: Difference) -> Iterator[tuple[Place, Answer]]:
    """Other answers to the choices at the step of a difference that no observation tells (M-TGT-02, A-UHOM-01): any
    other assignor of a tie, and the orders of a hash map that once held more than it does now."""
    for call in calls:
        if call.event != found.event:
            continue
        place = (call.event, call.number)
        if call.kind == "assignor":
            yield from ((place, name) for name in call.among if name != call.answer)
        elif call.kind == "order":
            tried = {call.answer}
            for size in _TABLE_SIZES:
                order = tuple(java_order(call.among, size))
                if order not in tried:
                    tried.add(order)
                    yield place, order


def _chosen(call: Call, other: Observation) -> str | None:
    if call.kind not in ("leader", "protocol"):
        return None
    view = other.groups.get(call.group_id)
    if view is not None:
        return view.leader if call.kind == "leader" else view.protocol_name
    for reply in other.replies:
        if isinstance(reply.body, JoinGroupResponse) and reply.body.generation_id >= 0:
            return reply.body.leader if call.kind == "leader" else reply.body.protocol_name
    return None
