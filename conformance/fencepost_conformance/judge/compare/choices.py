"""Choices that are watched, and replaced by the other coordinator's where that one chose differently (NOT-10)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import chain, islice, permutations, product
from typing import TypeAlias, TypeVar, cast

from fencepost.hash_order import FEWEST, grown, in_table, of_text, of_uuid
from fencepost.protocol.choices import Choices
from fencepost.protocol.messages import JoinGroupResponse

from ...targets.java_order import timeline_order
from ...traces.observation import Observation
from .difference import Difference

#: numbers of entries that a hash map may once have held, one for each size of its table
_TABLE_SIZES = (12, 24, 48, 96)
#: how many other answers to a choice are tried, and how many choices of one step may change
_MOST_ANSWERS = 48
_MOST_TRIES = 400


#: a name, or all keys in order
Answer: TypeAlias = str | tuple[str, ...] | tuple[bytes, ...]
_A = TypeVar("_A", str, tuple[str, ...], tuple[bytes, ...])
_K = TypeVar("_K", str, bytes)
#: a choice: the index of the event, and of the choice within it
Place: TypeAlias = tuple[int, int]
#: runs the trace with these answers; returns whether the two then agree, and the choices that occurred
Attempt: TypeAlias = "Callable[[Mapping[Place, Answer]], tuple[bool, Sequence[Call]]]"


@dataclass(frozen=True, slots=True)
class Call:
    """One choice: event, index within the event, kind, options and answer."""

    event: int
    number: int
    kind: str
    group_id: str
    among: tuple[str, ...] | tuple[bytes, ...]
    answer: Answer

    @property
    def place(self) -> Place:
        return self.event, self.number


class WatchedChoices:
    """Asks ``inner`` unless ``given`` has the answer for (event, index of the call). The runner sets ``event`` and
    ``given``."""

    def __init__(self, inner: Choices, given: Mapping[Place, Answer]) -> None:
        self._inner = inner
        self.given = given
        self.event = 0
        self.calls: list[Call] = []

    def mark(self) -> tuple[Choices, int]:
        """Return a mark for ``back_to``, which may return to it any number of times."""
        return deepcopy(self._inner), len(self.calls)

    def back_to(self, mark: tuple[Choices, int]) -> None:
        inner, count = mark
        self._inner = deepcopy(inner)
        del self.calls[count:]

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

    def standing(self, group_id: str, tied: Sequence[str]) -> str:
        return self._noted("assignor", group_id, tied, self._inner.standing(group_id, tied))

    def shown(self, group_id: str, *, least: int, most: int) -> int:
        counts = [str(count) for count in range(least, most + 1)]
        return int(self._noted("shown", group_id, counts, str(self._inner.shown(group_id, least=least, most=most))))

    def order(self, group_id: str, keys: Sequence[str]) -> Sequence[str]:
        return self._noted("order", group_id, keys, tuple(self._inner.order(group_id, keys)))

    def topics(self, group_id: str, topic_ids: Sequence[bytes]) -> Sequence[bytes]:
        return self._noted("topics", group_id, topic_ids, tuple(self._inner.topics(group_id, topic_ids)))

    def table(self, group_id: str, keys: Sequence[str]) -> Sequence[str]:
        return self._noted("table", group_id, keys, tuple(self._inner.table(group_id, keys)))

    def _noted(self, kind: str, group_id: str, among: Sequence[str] | Sequence[bytes], answer: _A) -> _A:
        number = sum(call.event == self.event for call in self.calls)
        given = self.given.get((self.event, number), answer)
        if given in among or sorted(given) == sorted(among):  # otherwise an earlier answer has changed this choice
            answer = cast(_A, given)
        self.calls.append(Call(self.event, number, kind, group_id, cast("tuple[str, ...]", tuple(among)), answer))
        return answer


def other_choice(calls: Sequence[Call], found: Difference, other: Observation) -> tuple[Place, str] | None:
    """Return the choice at the step of a difference that the other coordinator made differently: place and answer."""
    for call in reversed(calls):
        if call.event != found.event:
            continue
        chosen = _chosen(call, other)
        if chosen is not None and chosen != call.answer and chosen in call.among:
            return (call.event, call.number), chosen
    return None


def unobserved_choices(calls: Sequence[Call], event: int, attempt: Attempt) -> dict[Place, Answer]:
    """Return other answers to choices that no observation shows, with which the two coordinators agree; empty if there
    are none. First one answer changes, then two, and so on. The options are any other assignor of a tie (M-TGT-02); the
    orders of a hash map that was once larger, or was filled in another order (A-UHOM-07, C-TMR-11, M-RX-03); and how
    many entries of a table's earlier versions a read found (C-ADM-05).

    An answer can bring new choices. For example, it may select the member whose topics count for all members, and so
    decide which topics share a bucket. So ``attempt`` returns the choices of each run, and choices after the last
    changed one are changed in turn."""
    tried = 0
    roots: list[tuple[dict[Place, Answer], Sequence[Call]]] = [({}, calls)]
    while roots:
        longer: list[tuple[dict[Place, Answer], Sequence[Call]]] = []
        for given, seen in roots:
            for answers in _one_more(given, seen, event):
                if tried == _MOST_TRIES:
                    return {}
                tried += 1
                agreed, calls_seen = attempt(answers)
                if agreed:
                    return answers
                longer.append((answers, calls_seen))
        roots = longer
    return {}


def _one_more(given: Mapping[Place, Answer], calls: Sequence[Call], event: int) -> Iterator[dict[Place, Answer]]:
    """Yield these answers with one more, to a choice after theirs."""
    last = max(given, default=(event, -1))
    for call in calls:
        if call.event == event and call.place > last:
            for answer in _others(call):
                yield {**given, call.place: answer}


def _others(call: Call) -> list[Answer]:
    orders: Iterable[Answer] = ()
    if call.kind in ("assignor", "shown"):
        orders = cast("tuple[str, ...]", call.among)
    elif call.kind == "order":
        members = timeline_order(cast("tuple[str, ...]", call.among))
        hashes = [of_text(name) for name in members]
        sizes = [grown(size) for size in _TABLE_SIZES]
        orders = chain(
            (next(_filled(members, hashes, buckets)) for buckets in sizes),
            chain.from_iterable(_filled(members, hashes, buckets) for buckets in sizes),
        )
    elif call.kind == "table":
        orders = permutations(cast("tuple[str, ...]", call.among))
    elif call.kind == "topics":
        topic_ids = cast("tuple[bytes, ...]", call.among)
        orders = _filled(topic_ids, [of_uuid(topic_id) for topic_id in topic_ids], FEWEST)
    tried = dict.fromkeys(islice(orders, _MOST_ANSWERS))
    tried.pop(call.answer, None)
    return list(tried)


def _filled(keys: Sequence[_K], spread: Sequence[int], buckets: int) -> Iterator[tuple[_K, ...]]:
    """Yield each order in which a table with that many buckets can show these keys; the first is the one of keys that
    were inserted in this sequence."""
    spread_of = dict(zip(keys, spread, strict=True))
    rows: dict[int, list[_K]] = {}
    for key in in_table(keys, spread_of.__getitem__, buckets):
        rows.setdefault(spread_of[key] & (buckets - 1), []).append(key)
    for shown in product(*(permutations(row) for row in rows.values())):
        yield tuple(key for row in shown for key in row)


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
