"""Whether a fetched offset could have been committed: a correct register causes no false alarm, and each lie is
detected."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost_conformance.judge.checker.offsets.register import NEVER, NOTHING, Pending, Read, Register, Value, Write


@dataclass(frozen=True)
class Moment:
    """An operation of a run: the times of its request, its effect, its answer and, in a transaction, the marker."""

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
    register = Register([Write(NOTHING, 0, 0, 0, 0)], [])
    for number, each in enumerate(writes):
        value, end = Value(number), each.end if each.answered else NEVER
        if each.ended is None:
            register.writes.append(Write(value, each.begin, end, each.begin, end))
            continue
        asked = each.ended - 1
        held = Pending(value, each.begin, end, each.answered, asked, each.kept and each.answered)
        register.pending.append(held)
        if each.kept:
            register.writes.append(Write(value, each.begin, end, asked, NEVER, held))
    return register


def value_at(writes: list[Moment], at: int, *, stable: bool) -> Value | None:
    """Return the value that a coordinator returns at this moment, or None if the fetch waits (O-FETCH-08, O-TXN-08)."""
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
def test_answers_of_a_correct_coordinator_are_accepted(
    writes: list[Moment], reads: list[tuple[int, int, int, bool]]
) -> None:
    register = register_of(writes)
    made = []
    for begin, until, after, stable in reads:
        at = begin * 10 + until * 7 + 3
        made.append(Read(begin * 10, at + after * 7 + 1, value_at(writes, at, stable=stable), stable, listed=True))
    for each in sorted(made, key=lambda each: each.end):
        assert register.take(each) is None


def plain(value: int, begin: int, end: int) -> Write:
    return Write(Value(value), begin, end, begin, end)


def read(value: int | None, begin: int, end: int, *, stable: bool = False) -> Read:
    shown = None if value is None else NOTHING if value < 0 else Value(value)
    return Read(begin, end, shown, stable, listed=True)


def before(*writes: Write, pending: tuple[Pending, ...] = ()) -> Register:
    return Register([Write(NOTHING, 0, 0, 0, 0), *writes], list(pending))


def held() -> Pending:
    return Pending(Value(7), 10, 20, taken=True, ends_from=50, kept=True)


def transacted(pending: Pending) -> Register:
    return before(Write(Value(7), 10, 20, 50, NEVER, pending), pending=(pending,))


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
def test_answers_of_no_correct_coordinator_are_rejected(register: Register, wrong: Read, rule: str) -> None:
    found = register.take(wrong)
    assert found is not None
    assert rule in found.rules


def test_a_value_that_was_seen_is_not_taken_back() -> None:
    """Concurrent commits may have come in either order; a client that has seen one of them does not see an older
    value."""
    register = before(plain(5, 1, 9), plain(6, 1, 9))
    assert register.take(read(5, 2, 3)) is None
    assert register.take(read(6, 4, 5)) is None
    register = before(plain(5, 1, 20), plain(6, 4, 20))
    assert register.take(read(6, 5, 6)) is None
    assert register.take(read(-1, 7, 8)) is not None


def test_offsets_from_before_the_trace_are_learned() -> None:
    register = Register([Write(None, 0, 0, 0, 0)], [])
    assert register.take(read(3, 1, 2)) is None
    assert register.take(read(4, 3, 4)) is not None


def expiring(old_from: int, gone_by: int = NEVER) -> Write:
    return Write(Value(5), 1, 2, 1, 2, old_from=old_from, gone_by=gone_by)


def test_an_old_offset_may_have_expired_and_does_not_come_back() -> None:
    register = before(expiring(old_from=20))
    assert register.take(read(-1, 10, 19)) is not None
    assert register.take(read(5, 21, 22)) is None
    assert register.take(read(-1, 23, 24)) is None
    assert register.take(read(5, 25, 26)) is not None


def test_an_offset_that_has_certainly_expired_is_not_found() -> None:
    register = before(expiring(old_from=20, gone_by=30))
    assert register.take(read(5, 29, 40)) is None
    found = register.take(read(5, 31, 41))
    assert found is not None
    assert found.allowed == ("nothing: it has expired",)


def uncertain(value: int, begin: int, latest: int) -> Write:
    """A commit that failed, and may have taken effect by then."""
    return Write(Value(value), begin, NEVER, begin, NEVER, latest=latest)


def test_a_commit_that_failed_takes_effect_in_time_or_never() -> None:
    for seen_at, begins_at, refused in ((15, 21, False), (25, 31, True), (15, 25, False)):
        register = before(plain(5, 1, 2), uncertain(6, 10, latest=20))
        assert register.take(read(5, seen_at, seen_at + 1)) is None
        assert (register.take(read(6, begins_at, begins_at + 1)) is not None) is refused
    register = before(plain(5, 1, 2), uncertain(6, 10, latest=20))
    assert register.take(read(5, 25, 30)) is None
    assert register.take(read(6, 19, 40)) is None  # it may have been handled before the other


def by_id(topic_id: str, value: int, begin: int) -> Read:
    return Read(begin, begin + 1, NOTHING if value < 0 else Value(value), stable=False, listed=True, topic_id=topic_id)


def test_an_offset_of_another_topic_of_that_name_is_not_found_by_id() -> None:
    old = Write(Value(5), 1, 2, 1, 2, topic_id="old")
    register = before(old)
    assert register.take(by_id("new", -1, 3)) is None
    assert register.take(read(5, 5, 6)) is None  # by name it is (O-FETCH-06)
    assert register.take(by_id("new", 5, 7)) is not None
    assert register.take(by_id("old", -1, 9)) is not None


def test_the_topic_id_of_an_offset_may_be_unknown() -> None:
    for several in (True, False):
        register = before(plain(5, 1, 2))
        register.several = several
        assert (register.take(by_id("new", -1, 3)) is None) is several
        assert register.take(by_id("new", 5, 5)) is None
