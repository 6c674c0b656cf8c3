"""Requests of the reader, and the records that a poll hands out: K-FETCH-01, 02, K-POLL-01…05, K-POS-04, 06,
K-PY-01…04."""

from __future__ import annotations

import pytest

from fencepost.member.events import RequestMetadata, Send, Subscribe
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.offset_messages import OffsetCommitRequest
from fencepost_consumer import Client, poll_by
from fencepost_consumer.broker import FetchedPartition, FetchRequest, FetchResponse
from fencepost_consumer.events import (
    AskLag,
    AssignmentAdopted,
    CommitAsync,
    CommitCallback,
    OffsetAndMetadata,
    Pause,
    PollReturned,
    ProblemKind,
    Resume,
    Seek,
    SendToLeader,
    Wakeup,
)
from fencepost_consumer.partition import FetchState

from .driver import NONE, T0, T1, T2, U0, Driver, records

ALL = list(Client)
ERRORS = [
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.REPLICA_NOT_AVAILABLE,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.OFFSET_NOT_AVAILABLE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
]


def got(partition, first, last, **more):
    return FetchedPartition(partition, records=records(first, last), **more)


def asked_of(driver):
    return {
        each.node: [(part.partition, part.offset) for part in each.body.partitions]
        for each in driver.sent
        if isinstance(each.body, FetchRequest)
    }


def of(driver, node):
    """The first fetch from a broker."""
    driver.sent.sort(key=lambda each: not (isinstance(each, SendToLeader) and each.node == node))
    return driver


@pytest.mark.parametrize("client", ALL)
def test_one_fetch_a_broker_at_a_time(client):
    """K-FETCH-01."""
    driver = Driver(client).reading(T0, T1, T2)
    assert asked_of(driver) == {1: [(T0, 0), (T2, 0)], 2: [(T1, 0)]}
    driver.poll()
    assert len(driver.sent) == 2
    driver.lose(FetchRequest)
    driver.now += 49
    driver.poll()
    assert asked_of(driver).keys() == {2}  # the other broker is not asked for a while
    driver.now += 1
    driver.poll()
    assert asked_of(driver).keys() == {1, 2}


def test_when_to_poll_again():
    """Timers limit the wait of a poll (K-POLL-01)."""
    driver = Driver().leaders().coordinator().member(T0)
    assert poll_by(driver.reader) is None
    driver.poll()
    driver.committed({}, partition=ErrorCode.UNSTABLE_OFFSET_COMMIT)
    assert poll_by(driver.reader) == driver.now + 100
    driver.now += 100
    driver.poll()
    driver.committed({T0: 0})
    driver.poll()
    driver.lose(FetchRequest)
    assert poll_by(driver.reader) == driver.now + 50
    driver = Driver(auto_commit=True).leaders()
    assert poll_by(driver.reader) == driver.now + 5_000


@pytest.mark.parametrize("client", ALL)
def test_records_are_handed_out_in_the_order_of_their_coming(client):
    """A poll hands out at most ``max_poll_records``, and each record once (K-FETCH-02, K-POLL-03, INV-CL-03)."""
    driver = Driver(client, max_poll_records=3).reading(T0, T1, T2)
    of(driver, 2).fetched(got(T1, 0, 0))
    of(driver, 1).fetched(got(T2, 0, 1), got(T0, 0, 3))
    assert driver.offsets() == [(T1, [0]), (T2, [0, 1])]
    assert driver.offsets() == [(T0, [0, 1, 2])]
    assert driver.reader.position(T0) == 3
    assert driver.offsets() == [(T0, [3])]
    assert driver.offsets() == []


def test_a_broker_with_something_buffered_is_left_alone():
    """K-FETCH-01."""
    driver = Driver(max_poll_records=1).reading(T0, T2)
    driver.fetched(got(T0, 0, 2))
    assert driver.offsets() == [(T0, [0])]
    assert asked_of(driver) == {}
    assert driver.offsets() == [(T0, [1])]
    assert driver.offsets() == [(T0, [2])]
    driver.poll()
    assert asked_of(driver) == {1: [(T2, 0), (T0, 3)]}  # the partition that was read comes last


def test_paused_records_do_not_keep_others_from_being_fetched():
    """K-FETCH-01, K-SUB-05."""
    driver = Driver(max_poll_records=1).reading(T0, T2)
    driver.fetched(got(T0, 0, 2))
    driver.do(Pause(0, (T0,)))
    assert driver.offsets() == []
    assert asked_of(driver) == {1: [(T2, 0)]}
    driver.do(Resume(0, (T0,)))
    assert driver.offsets() == [(T0, [0])]


def test_kafka_python_drops_records_of_paused_partitions():
    """It fetches them again afterwards (K-PY-03, K-PY-04)."""
    driver = Driver(Client.KAFKA_PYTHON).reading(T0)
    driver.fetched(got(T0, 0, 2))
    driver.do(Pause(0, (T0,)))
    assert driver.offsets() == []
    assert driver.reader.buffer == ()
    driver.do(Resume(0, (T0,)))
    assert driver.offsets() == []
    assert asked_of(driver) == {1: [(T0, 0)]}


@pytest.mark.parametrize("client", ALL)
def test_the_next_fetches_go_out_with_the_records(client):
    """K-POLL-04."""
    driver = Driver(client).reading(T0)
    driver.fetched(got(T0, 0, 2))
    assert driver.offsets() == [(T0, [0, 1, 2])]
    assert asked_of(driver) == {1: [(T0, 3)]}
    kinds = [type(each) for each in driver.commands]
    assert kinds.index(SendToLeader) < kinds.index(PollReturned)


@pytest.mark.parametrize("client", ALL)
def test_an_answer_for_another_position_is_dropped(client):
    """K-POS-06."""
    driver = Driver(client).reading(T0)
    driver.do(Seek(0, T0, 9))
    driver.fetched(got(T0, 0, 2))
    assert driver.offsets() == []
    assert driver.reader.position(T0) == 9
    driver.poll()  # the new consumer asks again only then
    driver.fetched(got(T0, 9, 10))
    driver.do(Seek(0, T0, 1))
    assert driver.offsets() == []
    driver.poll()
    assert asked_of(driver) == {1: [(T0, 1)]}


def test_buffered_records_are_dropped_after_a_seek():
    """K-FETCH-02."""
    driver = Driver(max_poll_records=1).reading(T0)
    driver.fetched(got(T0, 0, 2))
    assert driver.offsets() == [(T0, [0])]
    driver.do(Seek(0, T0, 0))
    assert driver.offsets() == []
    assert driver.reader.buffer == ()


def test_a_revoked_partitions_records_are_never_handed_out():
    """Not even if it returns; records of kept partitions are (K-FETCH-02, K-SUB-02, K-POLL-03)."""
    driver = Driver(max_poll_records=1).reading(T0, T2)
    driver.fetched(got(T0, 0, 2), got(T2, 0, 0))
    assert driver.offsets() == [(T0, [0])]
    driver.member(T2)
    driver.member(T2, T0)
    driver.do(Seek(0, T0, 1))
    assert driver.offsets() == [(T2, [0])]
    assert driver.offsets() == []


def test_a_gap_moves_the_position_and_ends_the_poll():
    """K-FETCH-02."""
    driver = Driver().reading(T0)
    driver.fetched(FetchedPartition(T0, next_offset=7))
    returned = driver.poll()
    assert (returned.records, returned.advanced) == ((), True)
    assert driver.reader.position(T0) == 7
    assert not driver.poll().advanced


def test_records_after_the_last_one_are_fetched_when_there_is_room():
    """K-FETCH-02."""
    driver = Driver(max_poll_records=2).reading(T0)
    driver.fetched(got(T0, 0, 1, next_offset=5))
    assert driver.offsets() == [(T0, [0, 1])]
    assert driver.reader.position(T0) == 2
    assert driver.poll().advanced
    assert driver.reader.position(T0) == 5


def test_records_before_the_position_are_left_out():
    driver = Driver().reading(T0, at=2)
    driver.fetched(got(T0, 0, 3))
    assert driver.offsets() == [(T0, [2, 3])]


def test_the_epoch_of_the_last_record_is_kept():
    driver = Driver().reading(T0)
    driver.fetched(FetchedPartition(T0, records=records(0, 1, 6)))
    driver.poll()
    assert driver.reader.partitions[T0].position.epoch == 6
    assert driver.reader.consumed[0][1].leader_epoch == 6


@pytest.mark.parametrize("client", ALL)
def test_out_of_range_resets_if_it_is_still_the_position(client):
    """K-POS-04."""
    driver = Driver(client).reading(T0)
    driver.fetched(FetchedPartition(T0, error_code=ErrorCode.OFFSET_OUT_OF_RANGE))
    assert driver.offsets() == []
    assert driver.reader.partitions[T0].state is FetchState.AWAIT_RESET
    driver = Driver(client).reading(T0)
    driver.do(Seek(0, T0, 4))
    driver.fetched(FetchedPartition(T0, error_code=ErrorCode.OFFSET_OUT_OF_RANGE))
    driver.poll()
    assert driver.reader.position(T0) == 4


def test_out_of_range_without_policy_is_thrown_once():
    """K-POS-04."""
    driver = Driver(reset=NONE).reading(T0)
    driver.fetched(FetchedPartition(T0, error_code=ErrorCode.OFFSET_OUT_OF_RANGE))
    problem = driver.poll().problem
    assert problem is not None
    assert (problem.kind, problem.partitions) == (ProblemKind.OUT_OF_RANGE, (T0,))
    assert driver.poll().problem is None


def test_a_follower_that_is_behind_is_given_up_for_the_leader():
    """Or when its time is over (K-POS-04, K-FETCH-05)."""
    driver = Driver().reading(T0)
    driver.fetched(FetchedPartition(T0, preferred_replica=3))
    driver.poll()
    assert asked_of(driver) == {3: [(T0, 0)]}
    driver.fetched(FetchedPartition(T0))
    driver.now += 300_000
    driver.poll()
    assert asked_of(driver) == {1: [(T0, 0)]}
    driver.fetched(FetchedPartition(T0, preferred_replica=3))
    driver.poll()
    driver.fetched(FetchedPartition(T0, error_code=ErrorCode.OFFSET_OUT_OF_RANGE))
    driver.poll()
    assert asked_of(driver) == {1: [(T0, 0)]}
    assert driver.reader.position(T0) == 0


@pytest.mark.parametrize("error", ERRORS)
def test_an_error_that_metadata_may_cure(error):
    """K-FETCH-03."""
    driver = Driver().reading(T0)
    driver.fetched(FetchedPartition(T0, error_code=error))
    assert driver.offsets() == []
    driver.only(RequestMetadata)
    assert asked_of(driver) == {1: [(T0, 0)]}


@pytest.mark.parametrize("error", [ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.UNKNOWN_SERVER_ERROR])
def test_an_error_that_passes(error):
    """K-FETCH-03."""
    driver = Driver().reading(T0)
    driver.fetched(FetchedPartition(T0, error_code=error))
    assert driver.offsets() == []
    driver.none(RequestMetadata)


def test_an_error_waits_until_records_are_handed_out():
    """K-FETCH-04."""
    driver = Driver().reading(T0, T2)
    driver.fetched(got(T0, 0, 0), FetchedPartition(T2, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    assert driver.offsets() == [(T0, [0])]
    problem = driver.poll().problem
    assert problem is not None
    assert problem.partitions == (T2,)
    assert driver.poll().problem is None


def test_an_error_of_the_whole_answer_brings_nothing():
    driver = Driver().reading(T0)
    driver.answer(FetchRequest, FetchResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR))
    assert driver.offsets() == []
    assert asked_of(driver) == {1: [(T0, 0)]}


# --- the order of a poll ---


def test_records_are_handed_out_during_a_rebalance():
    """Positions and automatic commits wait, records do not; kafka-python delays all of them (K-POLL-05, K-PY-01)."""
    for client, handed in ((Client.CLASSIC, [(T0, [0, 1])]), (Client.KAFKA_PYTHON, [])):
        driver = Driver(client, auto_commit=True).reading(T0)
        driver.fetched(got(T0, 0, 1))
        driver.now += 5_000
        driver.member(T0, T1, settled=False)
        assert driver.offsets() == handed
        driver.unasked(OffsetCommitRequest)


@pytest.mark.parametrize("client", ALL)
def test_an_interval_commits_records_of_earlier_polls(client):
    """The commit comes before the records of this poll (K-OFF-05, INV-CL-04)."""
    driver = Driver(client, auto_commit=True).reading(T0)
    driver.fetched(got(T0, 0, 1))
    assert driver.offsets() == [(T0, [0, 1])]
    driver.fetched(got(T0, 2, 5))
    driver.now += 5_000
    driver.poll()
    _, body = driver.asked(OffsetCommitRequest)
    assert [each.committed_offset for each in body.topics[0].partitions] == [2]


def test_a_new_assignment_restarts_the_interval():
    """K-CB-05, N-REC-08."""
    driver = Driver(auto_commit=True).reading(T0)
    driver.now += 4_000
    driver.do(AssignmentAdopted(driver.now))
    driver.now += 4_999
    driver.poll()
    driver.unasked(OffsetCommitRequest)
    driver.now += 1
    driver.poll()
    driver.asked(OffsetCommitRequest)


@pytest.mark.parametrize("client", ALL)
def test_a_wakeup_is_thrown_by_the_next_poll_once(client):
    """K-POLL-06."""
    driver = Driver(client).reading(T0)
    driver.fetched(got(T0, 0, 1))
    driver.do(Wakeup(driver.now))
    problem = driver.poll().problem
    assert problem is not None
    assert problem.kind is ProblemKind.WAKEUP
    assert driver.offsets() == [(T0, [0, 1])]


# --- lag ---


def test_lag_is_from_the_last_fetch():
    """K-POS-09."""
    driver = Driver().reading(T0, U0)
    of(driver, 1).fetched(got(T0, 0, 1, high_watermark=9, last_stable_offset=7))
    driver.poll()
    driver.do(AskLag(driver.now, T0))
    assert driver.returned().value == 7
    driver = Driver(read_committed=True).reading(T0)
    driver.fetched(got(T0, 0, 1, high_watermark=9, last_stable_offset=7))
    driver.poll()
    driver.do(AskLag(driver.now, T0))
    assert driver.returned().value == 5


def test_a_lag_that_is_not_known_asks_the_leader_once():
    from fencepost_consumer.broker import ListedOffset, ListOffsetsRequest  # noqa: PLC0415

    driver = Driver().reading(T0, at=3)
    driver.do(AskLag(driver.now, T0))
    assert driver.returned().value is None
    driver.do(AskLag(driver.now, T0))
    assert len([each for each in driver.sent if isinstance(each.body, ListOffsetsRequest)]) == 1
    driver.listed(ListedOffset(T0, offset=10))
    driver.do(AskLag(driver.now, T0))
    assert driver.returned().value == 7


def test_a_reader_that_subscribes_again_continues_reading():
    driver = Driver().reading(T0)
    driver.do(Subscribe(0, frozenset({"t", "u", "v"})))
    assert driver.reader.fetchable(T0)


@pytest.mark.parametrize(
    ("client", "order"),
    [
        (Client.CLASSIC, [CommitCallback, Send, SendToLeader, PollReturned]),  # K-POLL-01
        (Client.CONSUMER, [Send, CommitCallback, SendToLeader, PollReturned]),  # N-POLL-01
    ],
)
def test_the_order_of_actions_in_a_poll(client, order):
    driver = Driver(client, auto_commit=True).reading(T0)
    driver.do(CommitAsync(driver.now, ((T0, OffsetAndMetadata(0)),), 1))
    driver.commit_answer()
    driver.fetched(got(T0, 0, 1))
    driver.offsets()
    driver.lose(FetchRequest)
    driver.do(CommitAsync(driver.now, ((T0, OffsetAndMetadata(1)),), 2))
    driver.commit_answer()
    driver.now += 5_000
    driver.poll()
    assert [type(each) for each in driver.commands] == order


def test_partitions_marked_before_a_poll_are_not_handed_out_by_it():
    """The reconciliation was checked before (N-POLL-02)."""
    driver = Driver(Client.CONSUMER).reading(T0, T1)
    driver.fetched(got(T0, 0, 1))
    driver.member(T0, T1, pending_revocation=frozenset({T0}))
    assert driver.offsets() == []
