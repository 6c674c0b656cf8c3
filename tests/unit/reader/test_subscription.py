"""Modes, assignment, pauses and seeks: K-SUB-01…14, K-POS-05."""

from __future__ import annotations

import pytest

from fencepost.member.events import Close, Poll, Subscribe, SubscribePattern, SubscribeRegex, Unsubscribe
from fencepost.protocol.errors import IllegalEvent
from fencepost_consumer import Client, Reset, step
from fencepost_consumer.broker import FetchedPartition, FetchRequest, ListOffsetsRequest
from fencepost_consumer.events import Assign, MembershipChanged, Pause, Refused, Resume, Seek, SeekToEnd
from fencepost_consumer.membership import Membership
from fencepost_consumer.partition import ALLOWED, FetchState, Leader, Partition, Position
from fencepost_consumer.state import Mode

from .driver import EARLIEST, T0, T1, T2, U0, Driver, records

TOPICS, PATTERN, REGEX = Subscribe(0, frozenset({"t"})), SubscribePattern(0, "t.*"), SubscribeRegex(0, "t.*")
WAYS = {Mode.TOPICS: TOPICS, Mode.PATTERN: PATTERN, Mode.REGEX: REGEX, Mode.MANUAL: Assign(0, (T0,))}


@pytest.mark.parametrize("first", WAYS)
@pytest.mark.parametrize("second", WAYS)
def test_ways_exclude_each_other_until_unsubscribe(first, second):
    """K-SUB-01."""
    driver = Driver(Client.CONSUMER)
    driver.do(WAYS[first])
    before = driver.reader
    if first is second:
        driver.do(WAYS[second])
    else:
        with pytest.raises(Refused) as refused:
            driver.do(WAYS[second])
        assert refused.value.exception == "IllegalStateException"
        assert driver.reader is before
    driver.do(Unsubscribe(0))
    driver.do(WAYS[second])
    assert driver.reader.mode is second


@pytest.mark.parametrize("client", [Client.CLASSIC, Client.KAFKA_PYTHON])
def test_a_regex_is_for_consumer_groups(client):
    """K-SUB-01."""
    with pytest.raises(Refused, match="cannot subscribe to a regex"):
        Driver(client).do(REGEX)


@pytest.mark.parametrize("event", [Assign(0, ()), Subscribe(0, frozenset())])
def test_nothing_is_not_subscribed_to(event):
    with pytest.raises(Refused, match="use Unsubscribe to drop all"):
        Driver().do(event)


def test_a_poll_of_nothing_is_refused():
    with pytest.raises(Refused, match="no subscription and no assignment"):
        Driver().do(Poll(0))


def test_kept_partitions_keep_their_state_and_new_ones_have_none():
    """The pause is kept too, and is lost with the partition (K-SUB-02, K-SUB-05, K-CB-11)."""
    driver = Driver().reading(T0, T1, at=5)
    driver.do(Pause(0, (T0, T1)))
    driver.member(T2, T0)
    assert list(driver.reader.partitions) == [T2, T0]
    assert driver.reader.partitions[T2] == Partition()
    assert driver.reader.position(T0) == 5
    assert driver.reader.partitions[T0].paused
    driver.member(T0, T1)
    assert driver.reader.partitions[T1] == Partition()


def test_the_order_given_is_that_of_fetches():
    """K-SUB-14."""
    driver = Driver().reading(T2, T0)
    _, body = driver.asked(FetchRequest)
    assert [each.partition for each in body.partitions] == [T2, T0]


def test_a_dropped_topic_is_not_read_any_more():
    """Before any rebalance; buffered records are dropped (K-SUB-03)."""
    driver = Driver().reading(T0, U0)
    driver.answer(FetchRequest, _fetched(T0))
    driver.answer(FetchRequest, _fetched(U0))
    driver.do(Subscribe(0, frozenset({"u"})))
    assert not driver.reader.fetchable(T0)
    assert driver.offsets() == [(U0, [0, 1])]
    assert driver.reader.buffer == ()
    assert driver.reader.position(T0) == 0


def test_a_pattern_lets_every_owned_topic_be_read():
    """The condition applies to topics by name only (K-SUB-03)."""
    driver = Driver().leaders().coordinator()
    driver.do(SubscribePattern(0, "t"))
    driver.member(U0)
    driver.do(Seek(0, U0, 4))
    assert driver.reader.fetchable(U0)


@pytest.mark.parametrize("mark", ["pending_revocation", "pending_callback"])
def test_marked_partitions_are_not_read(mark):
    """No committed offset is looked up for a partition that is about to be revoked (K-SUB-03, K-CB-01, N-REC-04,
    N-REC-07, K-SUB-10)."""
    driver = Driver().reading(T0, T1)
    driver.member(T0, T1, T2, **{mark: frozenset({T0, T2})})
    assert [each for each in (T0, T1, T2) if driver.reader.fetchable(each)] == [T1]
    assert driver.reader.initializing == (() if mark == "pending_revocation" else (T2,))


def test_a_pause_holds_back_records_and_nothing_else():
    """The records are handed out when the pause ends (K-SUB-05)."""
    driver = Driver().reading(T0)
    driver.do(Pause(0, (T0,)))
    driver.answer(FetchRequest, _fetched(T0))
    assert driver.offsets() == []
    assert driver.reader.consumed[0][0] == T0
    driver.do(Resume(0, (T0,)))
    assert driver.offsets() == [(T0, [0, 1])]


def test_only_assigned_partitions_can_be_paused_or_sought():
    driver = Driver().reading(T0)
    for event in (
        Pause(0, (T0, T1)),
        Resume(0, (T1,)),
        Seek(0, T1, 3),
        SeekToEnd(0, (T0, T1), Reset.LATEST),
    ):
        before = driver.reader
        with pytest.raises(Refused, match="t-1 is not assigned"):
            driver.do(event)
        assert driver.reader is before


def test_seeks_that_make_no_sense_are_refused():
    driver = Driver().reading(T0)
    with pytest.raises(Refused, match="must be >= 0"):
        driver.do(Seek(0, T0, -1))
    with pytest.raises(Refused, match="must be EARLIEST or LATEST"):
        driver.do(SeekToEnd(0, (T0,), Reset.NONE))


def test_a_seek_overrides_a_pending_reset_and_drops_the_buffer():
    """K-POS-05."""
    driver = Driver().reading(T0)
    driver.answer(FetchRequest, _fetched(T0))
    driver.do(SeekToEnd(0, (T0,)))
    assert driver.reader.partitions[T0].state is FetchState.AWAIT_RESET
    driver.do(Seek(0, T0, 7))
    assert driver.reader.position(T0) == 7
    assert driver.offsets() == []
    assert driver.reader.buffer == ()
    _, body = driver.asked(FetchRequest)
    assert [each.offset for each in body.partitions] == [7]


@pytest.mark.parametrize(("to", "asked"), [(Reset.EARLIEST, -2), (Reset.LATEST, -1)])
def test_a_seek_to_an_end_asks_the_leader(to, asked):
    driver = Driver().reading(T0, T1)
    driver.do(SeekToEnd(0, to=to))
    driver.poll()
    found = [each.body.timestamps for each in driver.sent if isinstance(each.body, ListOffsetsRequest)]
    assert found == [((T0, asked),), ((T1, asked),)]


@pytest.mark.parametrize("before", FetchState)
@pytest.mark.parametrize("after", FetchState)
def test_transitions_outside_the_table_do_not_happen(before, after):
    """No transition leads from AWAIT_RESET to AWAIT_VALIDATION (K-SUB-10…13)."""
    position = Position(3, 1, Leader(1, 1))
    state = Partition(before, position=position if before.name in ("FETCHING", "AWAIT_VALIDATION") else None)
    moved = {
        FetchState.FETCHING: lambda: state.seek_validated(position),
        FetchState.AWAIT_RESET: lambda: state.await_reset(EARLIEST),
        FetchState.AWAIT_VALIDATION: lambda: state.validate(position),
        FetchState.INITIALIZING: lambda: state,
    }[after]()
    assert moved.state is (after if after in ALLOWED[before] else before)
    assert (moved.position is None) == (moved.state in (FetchState.INITIALIZING, FetchState.AWAIT_RESET))


def test_membership_does_not_change_a_manual_assignment():
    driver = Driver()
    driver.do(Assign(0, (T1, T0)))
    driver.do(MembershipChanged(0, Membership((T2,))))
    assert list(driver.reader.partitions) == [T1, T0]


def test_unsubscribe_forgets_everything():
    driver = Driver().reading(T0)
    driver.do(Unsubscribe(0))
    assert driver.reader.partitions == {}
    assert driver.reader.mode is Mode.NONE


def test_after_close_nothing_is_called():
    driver = Driver()
    driver.do(Close(0))
    with pytest.raises(IllegalEvent, match="closed"):
        driver.do(Subscribe(0, frozenset({"t"})))


def test_an_object_that_is_not_an_event_is_rejected():
    with pytest.raises(IllegalEvent, match="int is not a reader event"):
        step(Driver().reader, 3)  # type: ignore[arg-type]


def _fetched(partition):
    from fencepost_consumer.broker import FetchResponse  # noqa: PLC0415

    return FetchResponse((FetchedPartition(partition, records=records(0, 1)),))
