"""The offsets of a whole trace: registers filled from its commits, and every fetch held against them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

from fencepost.protocol.errors import ErrorCode as E

from ...trace.files import WireTrace
from ..verdict import Refusal
from . import reading
from .reading import Exchange, Names, Place
from .register import NEVER, NOTHING, Pending, Read, Register, Value, Write

#: Errors after which a commit may yet take effect: it was appended, and its caller waited in vain (F-RT-09).
_PERHAPS: Final = frozenset(
    {
        E.COORDINATOR_NOT_AVAILABLE,
        E.NOT_COORDINATOR,
        E.COORDINATOR_LOAD_IN_PROGRESS,
        E.REQUEST_TIMED_OUT,
        E.NETWORK_EXCEPTION,
        E.UNKNOWN_SERVER_ERROR,
        E.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    }
)
Key = tuple[str, Place]


@dataclass(frozen=True, slots=True)
class _Ended:
    """How a transaction ends for what is pending in it; ``begin`` as ``Pending.ends_from``. ``committed`` None: that
    is not known."""

    begin: int
    begin_ms: int
    committed: bool | None


def wrong_offsets(trace: WireTrace, groups: Collection[str], retention_ms: int) -> Iterator[Refusal]:
    """For each of these groups the first fetch that found what could not be there."""
    every = reading.exchanges(trace)
    names = reading.names_of(every)
    registers = _registers(every, names, retention_ms)
    refused: set[str] = set()
    for each in sorted((each for each in every if each.api == reading.OFFSET_FETCH), key=lambda each: each.end):
        if each.answer is None:
            continue
        for asked in reading.fetched(each, names):
            if asked.group_id not in groups or asked.group_id in refused or asked.error:
                continue
            found = _judge(each, asked, registers, names, retention_ms)
            if found is not None:
                refused.add(asked.group_id)
                yield found


def _judge(
    each: Exchange, asked: reading.Asked, registers: dict[Key, Register], names: Names, retention_ms: int
) -> Refusal | None:
    stable = bool(each.ask.get("require_stable"))
    places = asked.places
    if places is None:
        places = tuple(dict.fromkeys([*asked.rows, *(at for group, at in registers if group == asked.group_id)]))
    for place in places:
        value, code = asked.rows.get(place, (NOTHING, 0))
        if asked.places is not None and place not in asked.rows:
            continue  # an answer that leaves out what was asked for is the decoder's to refuse
        if code not in (E.NONE, E.UNSTABLE_OFFSET_COMMIT):
            continue
        register = registers.setdefault((asked.group_id, place), Register([_before(place, names)], [], retention_ms))
        told = None if code == E.UNSTABLE_OFFSET_COMMIT else value
        wrong = register.take(Read(each.begin, each.end, each.end_ms, told, stable, asked.places is not None))
        if wrong is not None:
            what = "that it is held by a transaction" if told is None else f"offset {told}"
            seen = f"{place[0]}-{place[1]} was fetched {'stable ' if stable else ''}and {what} was told"
            return Refusal(asked.group_id, each.end, each.end_ms, seen, wrong.allowed, wrong.rules)
    return None


def _before(place: Place, names: Names) -> Write:
    """What was committed before the trace: nothing for a topic that was created in it."""
    value = NOTHING if place[0] in names.created else None
    return Write(value, 0, 0, 0, 0, 0)


def _registers(every: list[Exchange], names: Names, retention_ms: int) -> dict[Key, Register]:
    made: dict[Key, Register] = {}

    def of(group: str, place: Place) -> Register:
        return made.setdefault((group, place), Register([_before(place, names)], [], retention_ms))

    for each in every:
        if each.api in (reading.OFFSET_COMMIT, reading.TXN_OFFSET_COMMIT):
            codes = reading.codes(each, names)
            for place, value in reading.committed(each, names):
                register = of(each.ask["group_id"], place)
                code = codes.get(place)
                if code is not None and code != E.NONE and code not in _PERHAPS:
                    continue
                if each.api == reading.OFFSET_COMMIT:
                    register.writes.append(_write(each, value, code == E.NONE))
                else:
                    _hold(register, each, value, code == E.NONE, _end_of(each, every))
    for each in every:  # what is deleted must be known first
        _delete(each, made, names)
    return made


def _write(each: Exchange, value: Value, done: bool) -> Write:
    end = each.end if done else NEVER
    return Write(value, each.begin, end, each.begin_ms, each.begin, end)


def _hold(register: Register, each: Exchange, value: Value, done: bool, ended: _Ended) -> None:
    end = each.end if done else NEVER
    pending = Pending(value, each.begin, end, done, ended.begin, ended.begin_ms, kept=ended.committed is True and done)
    register.pending.append(pending)
    if ended.committed is not False:
        register.writes.append(Write(value, each.begin, end, each.begin_ms, ended.begin, NEVER, pending))


def _end_of(commit: Exchange, every: list[Exchange]) -> _Ended:
    """The first request after a transactional commit that may end its transaction, and what became of it."""
    of_id = commit.ask["transactional_id"]
    timeout_ms = next(
        (
            each.ask["transaction_timeout_ms"]
            for each in reversed(every)
            if each.api == reading.INIT_PRODUCER_ID
            and each.ask.get("transactional_id") == of_id
            and each.begin < commit.begin
        ),
        0,
    )
    late_ms = commit.begin_ms + timeout_ms
    begin, wanted = NEVER, False
    for each in every:
        ends = each.api in (reading.END_TXN, reading.INIT_PRODUCER_ID)
        if not ends or each.begin < commit.begin or each.ask.get("transactional_id") != of_id:
            continue
        code = None if each.answer is None else each.answer["error_code"]
        if each.api == reading.END_TXN and each.ask["producer_epoch"] == commit.ask["producer_epoch"]:
            begin = min(begin, each.begin)
            if code == E.NONE:
                return _Ended(begin, late_ms, bool(each.ask["committed"]))
            wanted = wanted or bool(each.ask["committed"])
        elif each.api == reading.INIT_PRODUCER_ID:
            begin = min(begin, each.begin)
            if code == E.NONE:
                return _Ended(begin, late_ms, None if wanted else False)
    return _Ended(begin, late_ms, None if wanted else False)


def _delete(each: Exchange, made: dict[Key, Register], names: Names) -> None:
    """Takes what an operator deleted out of the registers, and what transactions hold there (O-DEL-06, O-DEL-09)."""
    if each.api == reading.OFFSET_DELETE:
        codes = reading.codes(each, names)
        for topic in each.ask.get("topics") or ():
            for row in topic.get("partitions") or ():
                place = names.place(topic, row["partition_index"])
                register = made.get((each.ask["group_id"], place))
                if register is not None and (each.answer is None or codes.get(place) in (E.NONE, *_PERHAPS)):
                    _erase(register, each, codes.get(place) == E.NONE)
    elif each.api == reading.DELETE_GROUPS:
        told = {row["group_id"]: row["error_code"] for row in (each.answer or {}).get("results") or ()}
        for (group, _), register in made.items():
            if group in each.ask["groups_names"] and told.get(group) in (None, E.NONE, *_PERHAPS):
                _erase(register, each, told.get(group) == E.NONE)
    elif each.api == reading.DELETE_TOPICS:
        gone = {names.place(row, 0)[0] for row in each.ask.get("topics") or ()} | set(each.ask.get("topic_names") or ())
        for (_, (topic, _)), register in made.items():
            if topic in gone:
                _erase(register, each, done=False)  # later, by the coordinator itself (O-EXP-23)


def _erase(register: Register, each: Exchange, done: bool) -> None:
    register.writes.append(_write(each, NOTHING, done))
    for held in register.pending:
        if held.begin < each.end:  # it may be over from now on
            held.ends_from = min(held.ends_from, each.begin)
            held.kept = False
