"""Falsehoods about committed offsets, with the reason for each.

Topics of the corpus are created in their traces, so their commits are known from the beginning.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any, Final, NamedTuple

from fencepost.protocol.errors import ErrorCode as E

from ...judge.checker.offsets import reading
from ...judge.checker.offsets.places import Names, Place, names_of
from ...judge.checker.offsets.register import NEVER
from ...traces.files import WireTrace
from .exchanges import Exchange, altered
from .kinds import Made, falsehood

#: Requests that remove offsets; after them an answer without an offset may be right.
_TAKES_AWAY: Final = frozenset({reading.OFFSET_DELETE, reading.DELETE_GROUPS, reading.DELETE_TOPICS})
_FAR: Final = 1_000_000


class _Row(NamedTuple):
    """One partition in an answer to a fetch; ``path``: its place in the answer."""

    fetch: reading.Exchange
    group: str
    place: Place
    path: tuple[str | int, ...]
    answer: dict[str, Any]


def _rows(every: list[reading.Exchange], names: Names) -> Iterator[_Row]:
    for each in every:
        if each.api != reading.OFFSET_FETCH or each.answer is None:
            continue
        many = each.answer.get("groups")
        groups = [(each.ask["group_id"], (), each.answer)] if many is None else [
            (group["group_id"], ("groups", at), group) for at, group in enumerate(many)
        ]  # fmt: skip
        for group, path, answer in groups:
            for at, topic in enumerate(answer.get("topics") or ()):
                for number, row in enumerate(topic["partitions"]):
                    place = names.place(topic, row["partition_index"])
                    if place[0] in names.created:
                        yield _Row(each, group, place, (*path, "topics", at, "partitions", number), row)


def _with(trace: WireTrace, row: _Row, **fields: Any) -> WireTrace:
    body = deepcopy(dict(row.fetch.answer or {}))
    inner: Any = body
    for step in row.path:
        inner = inner[step]
    inner.update(fields)
    return altered(trace, {row.fetch.end - 1: body})


def _made(trace: WireTrace, row: _Row, **fields: Any) -> tuple[WireTrace, int, int]:
    return _with(trace, row, **fields), row.fetch.end - 1, row.fetch.end - 1


def _commits(every: list[reading.Exchange], names: Names, row: _Row) -> list[tuple[reading.Exchange, int]]:
    """Return the commits that ended before the row's fetch began, with the offset of each."""
    found = []
    for each in every:
        if each.api == reading.OFFSET_COMMIT and each.end < row.fetch.begin and each.ask["group_id"] == row.group:
            done = reading.codes(each, names).get(row.place) == E.NONE
            found += [
                (each, one.value.offset) for one in reading.committed(each, names) if done and one.place == row.place
            ]
    return found


@falsehood
def fetched_what_nobody_committed(trace: WireTrace, _: list[Exchange]) -> Made:
    """No client has committed so high an offset (O-COMMIT-14)."""
    every = reading.exchanges(trace)
    for row in _rows(every, names_of(trace)):
        if row.answer["error_code"] == E.NONE:
            yield _made(trace, row, committed_offset=_FAR)


@falsehood
def fetched_nothing_after_a_commit(trace: WireTrace, _: list[Exchange]) -> Made:
    """An acknowledged commit is there, since no request removed it (O-COMMIT-11)."""
    every = reading.exchanges(trace)
    if any(each.api in _TAKES_AWAY for each in every):
        return
    names = names_of(trace)
    for row in _rows(every, names):
        if row.answer["error_code"] == E.NONE and row.answer["committed_offset"] >= 0 and _commits(every, names, row):
            yield _made(trace, row, committed_offset=-1, metadata="")


@falsehood
def fetched_what_was_overwritten(trace: WireTrace, _: list[Exchange]) -> Made:
    """The later commit counts, not one that ended before it began (O-COMMIT-13)."""
    every = reading.exchanges(trace)
    names = names_of(trace)
    for row in _rows(every, names):
        commits = _commits(every, names, row)
        values = [value for _, value in commits]
        for each, value in commits[:-1]:
            last = commits[-1][0]
            if row.answer["error_code"] == E.NONE and each.end < last.begin and values.count(value) == 1:
                yield _made(trace, row, committed_offset=value)
                break


def _held(every: list[reading.Exchange], names: Names) -> Iterator[tuple[reading.Exchange, Place, int]]:
    for each in every:
        if each.api == reading.TXN_OFFSET_COMMIT and each.answer is not None:
            codes = reading.codes(each, names)
            for one in reading.committed(each, names):
                if codes.get(one.place) == E.NONE:
                    yield each, one.place, one.value.offset


def _ends(every: list[reading.Exchange], held: reading.Exchange) -> Iterator[reading.Exchange]:
    for each in every:
        later = each.api in (reading.END_TXN, reading.INIT_PRODUCER_ID) and each.begin > held.begin
        if later and each.ask.get("transactional_id") == held.ask["transactional_id"]:
            yield each


@falsehood
def fetched_what_a_transaction_holds(trace: WireTrace, _: list[Exchange]) -> Made:
    """No client sees an offset before its transaction has ended (O-TXN-07)."""
    every = reading.exchanges(trace)
    names = names_of(trace)
    for row in _rows(every, names):
        for held, place, offset in _held(every, names):
            ended = min((each.begin for each in _ends(every, held)), default=NEVER)
            unstable = row.answer["error_code"] == E.UNSTABLE_OFFSET_COMMIT
            if unstable and place == row.place and held.begin < row.fetch.end < ended:
                yield _made(trace, row, committed_offset=offset, error_code=0)


@falsehood
def fetched_what_was_aborted(trace: WireTrace, _: list[Exchange]) -> Made:
    """No client sees an offset of an aborted transaction (O-TXN-08)."""
    every = reading.exchanges(trace)
    names = names_of(trace)
    others = {
        (one.place, one.value.offset)
        for each in every
        if each.api == reading.OFFSET_COMMIT
        for one in reading.committed(each, names)
    }
    kept = [each for each in every if each.api == reading.END_TXN and each.ask["committed"]]
    if kept:
        return
    for row in _rows(every, names):
        for held, place, offset in _held(every, names):
            applies = row.answer["error_code"] == E.NONE and held.end < row.fetch.begin
            if applies and place == row.place and (place, offset) not in others:
                yield _made(trace, row, committed_offset=offset)
                break
