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

from .desk import EARLIEST, T0, T1, T2, U0, Desk, records

TOPICS, PATTERN, REGEX = Subscribe(0, frozenset({"t"})), SubscribePattern(0, "t.*"), SubscribeRegex(0, "t.*")
WAYS = {Mode.TOPICS: TOPICS, Mode.PATTERN: PATTERN, Mode.REGEX: REGEX, Mode.MANUAL: Assign(0, (T0,))}


@pytest.mark.parametrize("first", WAYS)
@pytest.mark.parametrize("second", WAYS)
def test_ways_exclude_each_other_until_unsubscribe(first, second):
    """K-SUB-01."""
    desk = Desk(Client.CONSUMER)
    desk.do(WAYS[first])
    before = desk.reader
    if first is second:
        desk.do(WAYS[second])
    else:
        with pytest.raises(Refused) as refused:
            desk.do(WAYS[second])
        assert refused.value.exception == "IllegalStateException"
        assert desk.reader is before
    desk.do(Unsubscribe(0))
    desk.do(WAYS[second])
    assert desk.reader.mode is second


@pytest.mark.parametrize("client", [Client.CLASSIC, Client.KAFKA_PYTHON])
def test_a_regex_is_for_consumer_groups(client):
    """K-SUB-01."""
    with pytest.raises(Refused, match="cannot subscribe to a regex"):
        Desk(client).do(REGEX)


@pytest.mark.parametrize("event", [Assign(0, ()), Subscribe(0, frozenset())])
def test_nothing_is_not_subscribed_to(event):
    with pytest.raises(Refused, match="use Unsubscribe to drop all"):
        Desk().do(event)


def test_a_poll_of_nothing_is_refused():
    with pytest.raises(Refused, match="no subscription and no assignment"):
        Desk().do(Poll(0))


def test_kept_partitions_keep_their_state_and_new_ones_have_none():
    """The pause is kept too, and is lost with the partition (K-SUB-02, K-SUB-05, K-CB-11)."""
    desk = Desk().reading(T0, T1, at=5)
    desk.do(Pause(0, (T0, T1)))
    desk.member(T2, T0)
    assert list(desk.reader.partitions) == [T2, T0]
    assert desk.reader.partitions[T2] == Partition()
    assert desk.reader.position(T0) == 5
    assert desk.reader.partitions[T0].paused
    desk.member(T0, T1)
    assert desk.reader.partitions[T1] == Partition()


def test_the_order_given_is_that_of_fetches():
    """K-SUB-14."""
    desk = Desk().reading(T2, T0)
    _, body = desk.asked(FetchRequest)
    assert [each.partition for each in body.partitions] == [T2, T0]


def test_a_dropped_topic_is_not_read_any_more():
    """Before any rebalance; buffered records are dropped (K-SUB-03)."""
    desk = Desk().reading(T0, U0)
    desk.answer(FetchRequest, _fetched(T0))
    desk.answer(FetchRequest, _fetched(U0))
    desk.do(Subscribe(0, frozenset({"u"})))
    assert not desk.reader.fetchable(T0)
    assert desk.offsets() == [(U0, [0, 1])]
    assert desk.reader.buffer == ()
    assert desk.reader.position(T0) == 0


def test_a_pattern_lets_every_owned_topic_be_read():
    """The condition applies to topics by name only (K-SUB-03)."""
    desk = Desk().leaders().coordinator()
    desk.do(SubscribePattern(0, "t"))
    desk.member(U0)
    desk.do(Seek(0, U0, 4))
    assert desk.reader.fetchable(U0)


@pytest.mark.parametrize("mark", ["pending_revocation", "pending_callback"])
def test_marked_partitions_are_not_read(mark):
    """No committed offset is looked up for a partition that is about to be revoked (K-SUB-03, K-CB-01, N-REC-04,
    N-REC-07, K-SUB-10)."""
    desk = Desk().reading(T0, T1)
    desk.member(T0, T1, T2, **{mark: frozenset({T0, T2})})
    assert [each for each in (T0, T1, T2) if desk.reader.fetchable(each)] == [T1]
    assert desk.reader.initializing == (() if mark == "pending_revocation" else (T2,))


def test_a_pause_holds_back_records_and_nothing_else():
    """The records are handed out when the pause ends (K-SUB-05)."""
    desk = Desk().reading(T0)
    desk.do(Pause(0, (T0,)))
    desk.answer(FetchRequest, _fetched(T0))
    assert desk.offsets() == []
    assert desk.reader.consumed[0][0] == T0
    desk.do(Resume(0, (T0,)))
    assert desk.offsets() == [(T0, [0, 1])]


def test_only_assigned_partitions_can_be_paused_or_sought():
    desk = Desk().reading(T0)
    for event in (
        Pause(0, (T0, T1)),
        Resume(0, (T1,)),
        Seek(0, T1, 3),
        SeekToEnd(0, (T0, T1), Reset.LATEST),
    ):
        before = desk.reader
        with pytest.raises(Refused, match="t-1 is not assigned"):
            desk.do(event)
        assert desk.reader is before


def test_seeks_that_make_no_sense_are_refused():
    desk = Desk().reading(T0)
    with pytest.raises(Refused, match="must be >= 0"):
        desk.do(Seek(0, T0, -1))
    with pytest.raises(Refused, match="must be EARLIEST or LATEST"):
        desk.do(SeekToEnd(0, (T0,), Reset.NONE))


def test_a_seek_overrides_a_pending_reset_and_drops_the_buffer():
    """K-POS-05."""
    desk = Desk().reading(T0)
    desk.answer(FetchRequest, _fetched(T0))
    desk.do(SeekToEnd(0, (T0,)))
    assert desk.reader.partitions[T0].state is FetchState.AWAIT_RESET
    desk.do(Seek(0, T0, 7))
    assert desk.reader.position(T0) == 7
    assert desk.offsets() == []
    assert desk.reader.buffer == ()
    _, body = desk.asked(FetchRequest)
    assert [each.offset for each in body.partitions] == [7]


@pytest.mark.parametrize(("to", "asked"), [(Reset.EARLIEST, -2), (Reset.LATEST, -1)])
def test_a_seek_to_an_end_asks_the_leader(to, asked):
    desk = Desk().reading(T0, T1)
    desk.do(SeekToEnd(0, to=to))
    desk.poll()
    found = [each.body.timestamps for each in desk.sent if isinstance(each.body, ListOffsetsRequest)]
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
    desk = Desk()
    desk.do(Assign(0, (T1, T0)))
    desk.do(MembershipChanged(0, Membership((T2,))))
    assert list(desk.reader.partitions) == [T1, T0]


def test_unsubscribe_forgets_everything():
    desk = Desk().reading(T0)
    desk.do(Unsubscribe(0))
    assert desk.reader.partitions == {}
    assert desk.reader.mode is Mode.NONE


def test_after_close_nothing_is_called():
    desk = Desk()
    desk.do(Close(0))
    with pytest.raises(IllegalEvent, match="closed"):
        desk.do(Subscribe(0, frozenset({"t"})))


def test_an_object_that_is_not_an_event_is_rejected():
    with pytest.raises(IllegalEvent, match="int is not a reader event"):
        step(Desk().reader, 3)  # type: ignore[arg-type]


def _fetched(partition):
    from fencepost_consumer.broker import FetchResponse  # noqa: PLC0415

    return FetchResponse((FetchedPartition(partition, records=records(0, 1)),))
