"""Whether what is fetched could have been committed: no false alarm about a real register, and each lie is seen."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost_conformance.checker.offsets.register import NEVER, NOTHING, Pending, Read, Register, Value, Write

WEEK_MS = 7 * 24 * 3_600_000


@dataclass(frozen=True)
class Moment:
    """An operation of a run: when it was asked for, took place and was answered; in a transaction, when that ended."""

    begin: int
    at: int
    end: int
    ended: int | None  #: None: no transaction; else the moment of the marker
    kept: bool
    answered: bool


@st.composite
def moments(draw: st.DrawFn) -> Moment:
    begin = draw(st.integers(1, 60))
    at = begin + draw(st.integers(0, 12))
    end = at + 1 + draw(st.integers(0, 12))
    ended = end + draw(st.integers(0, 20)) if draw(st.booleans()) else None
    marker = None if ended is None else ended * 10 + 5
    return Moment(begin * 10, at * 10 + 1, end * 10 + 2, marker, draw(st.booleans()), draw(st.booleans()))


def register_of(writes: list[Moment]) -> Register:
    register = Register([Write(NOTHING, 0, 0, 0, 0, 0)], [], WEEK_MS)
    for number, each in enumerate(writes):
        value, end = Value(number), each.end if each.answered else NEVER
        if each.ended is None:
            register.writes.append(Write(value, each.begin, end, each.begin, each.begin, end))
            continue
        asked = each.ended - 1
        held = Pending(value, each.begin, end, each.answered, asked, NEVER, each.kept and each.answered)
        register.pending.append(held)
        if each.kept:
            register.writes.append(Write(value, each.begin, end, each.begin, asked, NEVER, held))
    return register


def told(writes: list[Moment], at: int, *, stable: bool) -> Value | None:
    """What a coordinator tells at this moment; None: to wait (O-FETCH-08, O-TXN-08)."""
    if stable and any(each.ended is not None and each.at <= at < each.ended for each in writes):
        return None
    shown = [
        (each.at, number)
        for number, each in enumerate(writes)
        if (each.at if each.ended is None else each.ended) <= at and (each.ended is None or each.kept)
    ]
    return Value(max(shown)[1]) if shown else NOTHING


READS = st.tuples(st.integers(1, 100), st.integers(0, 9), st.integers(0, 9), st.booleans())


@given(st.lists(moments(), max_size=7), st.lists(READS, max_size=8))
def test_what_a_coordinator_tells_is_never_refused(
    writes: list[Moment], reads: list[tuple[int, int, int, bool]]
) -> None:
    register = register_of(writes)
    made = []
    for begin, until, after, stable in reads:
        at = begin * 10 + until * 7 + 3
        made.append(Read(begin * 10, at + after * 7 + 1, 0, told(writes, at, stable=stable), stable, listed=True))
    for each in sorted(made, key=lambda each: each.end):
        assert register.take(each) is None


def plain(value: int, begin: int, end: int) -> Write:
    return Write(Value(value), begin, end, begin, begin, end)


def read(value: int | None, begin: int, end: int, *, stable: bool = False, end_ms: int = 0) -> Read:
    shown = None if value is None else NOTHING if value < 0 else Value(value)
    return Read(begin, end, end_ms, shown, stable, listed=True)


def before(*writes: Write, pending: tuple[Pending, ...] = ()) -> Register:
    return Register([Write(NOTHING, 0, 0, 0, 0, 0), *writes], list(pending), WEEK_MS)


def held() -> Pending:
    return Pending(Value(7), 10, 20, taken=True, ends_from=50, ends_from_ms=NEVER, kept=True)


def transacted(pending: Pending) -> Register:
    return before(Write(Value(7), 10, 20, 10, 50, NEVER, pending), pending=(pending,))


@pytest.mark.parametrize(
    ("register", "wrong", "rule"),
    [
        (before(plain(5, 1, 2)), read(-1, 3, 4), "O-COMMIT-11"),
        (before(plain(5, 1, 2), plain(6, 3, 4)), read(5, 5, 6), "O-COMMIT-13"),
        (before(plain(5, 1, 2)), read(9, 3, 4), "O-FETCH-06"),
        (before(plain(5, 8, 9)), read(5, 3, 4), "O-COMMIT-11"),
        (transacted(held()), read(7, 30, 40), "O-COMMIT-13"),
        (before(pending=(held(),)), read(7, 60, 70), "O-TXN-08"),
        (transacted(held()), read(-1, 30, 40, stable=True), "O-FETCH-08"),
        (transacted(held()), read(-1, 60, 70, stable=True), "O-COMMIT-13"),
        (before(), read(None, 1, 2, stable=True), "O-FETCH-08"),
        (transacted(held()), read(None, 30, 40), "O-FETCH-08"),
    ],
)
def test_what_no_coordinator_tells_is_refused(register: Register, wrong: Read, rule: str) -> None:
    found = register.take(wrong)
    assert found is not None
    assert rule in found.rules


def test_what_was_seen_is_not_taken_back() -> None:
    """Two commits at once may have come in either order; who has seen one of them does not see what was before both."""
    register = before(plain(5, 1, 9), plain(6, 1, 9))
    assert register.take(read(5, 2, 3)) is None
    assert register.take(read(6, 4, 5)) is None
    register = before(plain(5, 1, 20), plain(6, 4, 20))
    assert register.take(read(6, 5, 6)) is None
    assert register.take(read(-1, 7, 8)) is not None


def test_what_was_there_before_the_trace_is_learned() -> None:
    register = Register([Write(None, 0, 0, 0, 0, 0)], [], WEEK_MS)
    assert register.take(read(3, 1, 2)) is None
    assert register.take(read(4, 3, 4)) is not None


def test_what_is_old_may_have_expired() -> None:
    register = before(plain(5, 1, 2))
    assert register.take(read(-1, 3, 4, end_ms=WEEK_MS + 1)) is None
