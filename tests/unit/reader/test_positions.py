"""Where reading begins and whether it may continue: K-POS-01…08, K-OFF-01, N-CMT-04, K-PY-02."""

from __future__ import annotations

import pytest

from fencepost.member.events import (
    CoordinatorFound,
    CoordinatorLost,
    FindCoordinator,
    LookupFailed,
    RequestMetadata,
    Subscribe,
    Unsubscribe,
)
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.offset_messages import OffsetFetchRequest
from fencepost.protocol.profiles import INTENDED, KAFKA_4_4
from fencepost.protocol.settings import BadSettings
from fencepost_consumer import Client, Reset, ResetPolicy, reset_policy
from fencepost_consumer.broker import (
    EpochEnd,
    FetchRequest,
    ListedOffset,
    ListOffsetsRequest,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from fencepost_consumer.events import (
    AskCommitted,
    AskPosition,
    Assign,
    CallReturned,
    CommitAsync,
    CommitSync,
    LeadersChanged,
    OffsetAndMetadata,
    ProblemKind,
    Seek,
    SeekToEnd,
    Wakeup,
)
from fencepost_consumer.partition import FetchState, Leader

from .driver import EARLIEST, LATEST, NONE, T0, T1, T2, U0, Driver

JAVA = [Client.CLASSIC, Client.CONSUMER]
ALL = list(Client)


def started(client=Client.CLASSIC, *owned, **settings):
    driver = Driver(client, **settings).leaders().coordinator().member(*(owned or (T0,)))
    driver.poll()
    return driver


def state(driver, partition=T0):
    return driver.reader.partitions[partition].state


@pytest.mark.parametrize("client", ALL)
def test_a_committed_offset_is_the_position(client):
    """The fetch always asks for stable offsets (K-POS-01, K-OFF-01)."""
    driver = started(client, T0, T1)
    sent, body = driver.asked(OffsetFetchRequest)
    assert body.require_stable
    assert sent.timeout_ms == 30_000
    driver.committed({T0: 5, T1: 8})
    assert (driver.reader.position(T0) is None) == (client is not Client.CONSUMER)  # whose background thread takes over
    driver.poll()
    assert (driver.reader.position(T0), driver.reader.position(T1)) == (5, 8)


@pytest.mark.parametrize("client", ALL)
@pytest.mark.parametrize(
    ("policy", "asked"), [(EARLIEST, -2), (LATEST, -1), (ResetPolicy(Reset.BY_DURATION, 400), 600)]
)
def test_without_one_the_policy_decides(client, policy, asked):
    """K-POS-02."""
    driver = started(client, reset=policy)
    driver.committed({})
    driver.poll()
    _, body = driver.asked(ListOffsetsRequest)
    assert body.timestamps == ((T0, asked),)
    driver.listed(ListedOffset(T0, offset=7))
    assert driver.reader.position(T0) == 7


@pytest.mark.parametrize("client", ALL)
def test_without_policy_it_is_thrown_at_every_poll(client):
    """K-POS-02."""
    driver = started(client, T0, T1, reset=NONE)
    for _ in range(2):
        driver.committed({T1: 3})
        problem = driver.poll().problem
        assert problem is not None
        assert (problem.kind, problem.partitions) == (ProblemKind.NO_OFFSET, (T0,))
        assert driver.poll().problem is None  # it looks again
    assert driver.reader.position(T1) == 3


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        ("earliest", EARLIEST),
        ("LATEST", LATEST),
        ("none", NONE),
        ("by_duration:P1DT2H3M4.5S", ResetPolicy(Reset.BY_DURATION, 93_784_500)),
        ("by_duration:PT0S", ResetPolicy(Reset.BY_DURATION, 0)),
    ],
)
def test_reset_policies_are_parsed(text, policy):
    assert reset_policy(text) == policy


@pytest.mark.parametrize(
    "text", ["", "first", "by_duration", "by_duration:", "by_duration:P", "by_duration:-PT1S", "none:1"]
)
def test_a_wrong_reset_policy_is_rejected(text):
    with pytest.raises(BadSettings, match="reset policy must be earliest"):
        reset_policy(text)


def test_a_manual_assignment_without_group_asks_no_coordinator():
    driver = Driver(group_id="").leaders()
    driver.do(Assign(0, (T0,)))
    driver.poll()
    driver.none(FindCoordinator)
    driver.asked(ListOffsetsRequest)


def test_a_commit_look_up_first_finds_the_coordinator():
    driver = Driver().leaders()
    driver.do(Assign(driver.now, (T0,)))
    driver.poll()
    driver.only(FindCoordinator)
    driver.poll()
    driver.none(FindCoordinator)
    driver.do(LookupFailed(driver.now, ErrorCode.COORDINATOR_NOT_AVAILABLE))
    driver.poll()
    driver.none(FindCoordinator)
    driver.wait(100)
    driver.poll()
    driver.only(FindCoordinator)
    driver.do(CoordinatorFound(driver.now, node=1))
    driver.poll()
    driver.committed({T0: 4})


def test_a_lookup_is_shared_by_polls_while_partitions_and_generation_are_the_same():
    """K-POS-08."""
    driver = started()
    driver.poll()
    assert len(driver.sent) == 1
    driver.member(T0, epoch=2)
    driver.poll()
    assert len(driver.sent) == 2
    driver.committed({T0: 1})  # of the old generation
    driver.poll()
    assert driver.reader.position(T0) is None
    driver.committed({T0: 2})
    driver.poll()
    assert driver.reader.position(T0) == 2


def test_a_seek_during_the_lookup_stays():
    """K-POS-05, K-POS-08."""
    driver = started(Client.CLASSIC, T0, T1)
    driver.do(Seek(driver.now, T0, 40))
    driver.committed({T0: 5, T1: 6})
    driver.poll()
    assert driver.reader.position(T0) == 40


@pytest.mark.parametrize("client", ALL)
@pytest.mark.parametrize(
    "errors",
    [
        {"partition": ErrorCode.UNSTABLE_OFFSET_COMMIT},
        {"group": ErrorCode.COORDINATOR_LOAD_IN_PROGRESS},
        {"group": ErrorCode.NOT_COORDINATOR},
    ],
    ids=str,
)
def test_retriable_errors_are_retried_after_a_backoff(client, errors):
    """K-OFF-01."""
    driver = started(client)
    driver.committed({}, **errors)
    if errors.get("group") is ErrorCode.NOT_COORDINATOR:
        assert driver.reader.coordinator.node is None
        driver.coordinator()
    driver.now += 99
    driver.poll()
    driver.unasked(OffsetFetchRequest)
    driver.now += 1
    driver.poll()
    driver.committed({T0: 3})
    driver.poll()
    assert driver.reader.position(T0) == 3


@pytest.mark.parametrize("client", ALL)
def test_a_lost_lookup_forgets_the_coordinator(client):
    """K-ERR-13."""
    driver = started(client)
    driver.lose(OffsetFetchRequest)
    assert driver.reader.coordinator.node is None


@pytest.mark.parametrize("client", JAVA)
def test_a_fatal_answer_is_thrown_once(client):
    driver = started(client)
    driver.committed({}, group=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    problem = driver.poll().problem
    assert problem is not None
    assert problem.error is ErrorCode.GROUP_AUTHORIZATION_FAILED
    assert driver.poll().problem is None
    driver.asked(OffsetFetchRequest)


def test_an_unknown_topic_is_fatal_to_a_classic_consumer_and_retried_by_the_new_one():
    """Until the time of the look-up is over; then missing offsets count as not committed (N-CMT-04)."""
    driver = started(Client.CLASSIC)
    driver.committed({}, partition=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    problem = driver.poll().problem
    assert problem is not None
    assert problem.kind is ProblemKind.KAFKA
    driver = started(Client.CONSUMER, default_api_timeout_ms=150)
    for wait in (100, 0):
        driver.committed({}, partition=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        assert not [each for each in driver.sent if isinstance(each.body, OffsetFetchRequest)]
        driver.now += wait
        driver.poll()
    driver.asked(ListOffsetsRequest)


def test_the_new_consumer_sends_its_member_and_topic_ids():
    """N-CMT-01, N-CMT-04."""
    _, body = started(Client.CONSUMER).asked(OffsetFetchRequest)
    (group,) = body.groups
    assert (group.member_id, group.member_epoch) == ("m", 1)
    assert group.topics[0].topic_id == b"\1" * 16
    _, body = started(Client.CLASSIC).asked(OffsetFetchRequest)
    (group,) = body.groups
    assert (group.member_id, group.member_epoch, group.topics[0].name) == (None, -1, "t")


@pytest.mark.parametrize("epoch", [1, -1])
def test_a_stale_epoch_is_retried_only_if_one_is_known(epoch):
    """N-CMT-04."""
    driver = Driver(Client.CONSUMER).leaders().coordinator().member(T0, epoch=epoch)
    driver.poll()
    driver.committed({}, group=ErrorCode.STALE_MEMBER_EPOCH)
    driver.now += 100
    assert (driver.poll().problem is None) == (epoch > 0)


# --- resets ---


def resetting(policy=EARLIEST):
    driver = started(reset=policy)
    driver.committed({})
    driver.poll()
    return driver


def test_an_answer_for_another_policy_or_after_a_seek_is_dropped():
    """K-POS-03."""
    driver = resetting()
    driver.do(SeekToEnd(driver.now, (T0,), Reset.LATEST))
    driver.listed(ListedOffset(T0, offset=1))
    assert state(driver) is FetchState.AWAIT_RESET
    driver = resetting()
    driver.do(Seek(driver.now, T0, 30))
    driver.listed(ListedOffset(T0, offset=1))
    assert driver.reader.position(T0) == 30


@pytest.mark.parametrize(
    "error", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.OFFSET_NOT_AVAILABLE]
)
def test_a_reset_is_tried_again_with_new_metadata(error):
    driver = resetting()
    driver.listed(ListedOffset(T0, error_code=error))
    driver.only(RequestMetadata)
    driver.poll()
    driver.unasked(ListOffsetsRequest)
    driver.now += 100
    driver.poll()
    driver.listed(ListedOffset(T0, offset=2))
    assert driver.reader.position(T0) == 2


def test_a_leader_is_asked_once_in_a_requests_time():
    driver = resetting()
    driver.now += 29_999
    driver.poll()
    assert len([each for each in driver.sent if isinstance(each.body, ListOffsetsRequest)]) == 1
    driver.now += 1
    driver.poll()
    assert len([each for each in driver.sent if isinstance(each.body, ListOffsetsRequest)]) == 2


def test_a_denied_reset_is_thrown_by_the_next_poll():
    driver = resetting()
    driver.listed(ListedOffset(T0, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    problem = driver.poll().problem
    assert problem is not None
    assert problem.partitions == (T0,)
    assert driver.poll().problem is None


def test_without_a_leader_metadata_is_asked_for_once():
    driver = Driver().coordinator()
    driver.do(Subscribe(driver.now, frozenset({"t", "u"})))
    driver.only(RequestMetadata)
    driver.member(T0)
    driver.none(RequestMetadata)
    driver.poll()
    driver.committed({})
    driver.poll()
    driver.none(RequestMetadata)
    driver.unasked(ListOffsetsRequest)
    driver.leaders()
    driver.poll()
    driver.asked(ListOffsetsRequest)


# --- validation ---


def unsure(policy=EARLIEST, client=Client.CLASSIC):
    """Return a reader at offset 10 of epoch 3, whose leader has moved to epoch 5."""
    driver = Driver(client, reset=policy).leaders(epoch=3).coordinator().member(T0)
    driver.do(Seek(driver.now, T0, 10, 3))
    driver.poll()
    driver.answer(OffsetForLeaderEpochRequest, ends(EpochEnd(T0, leader_epoch=3, end_offset=20)))
    assert state(driver) is FetchState.FETCHING
    driver.do(LeadersChanged(driver.now, ((T0, Leader(2, 5)),)))
    driver.poll()
    return driver


def ends(*found):
    return OffsetForLeaderEpochResponse(found)


def test_a_new_leader_is_asked_before_anything_is_read():
    """K-POS-07."""
    driver = unsure()
    sent, body = driver.asked(OffsetForLeaderEpochRequest)
    assert sent.node == 2
    (asked,) = body.partitions
    assert (asked.current_leader_epoch, asked.leader_epoch) == (5, 3)
    assert state(driver) is FetchState.AWAIT_VALIDATION
    assert not driver.reader.fetchable(T0)
    driver.answer(OffsetForLeaderEpochRequest, ends(EpochEnd(T0, leader_epoch=3, end_offset=10)))
    assert driver.reader.position(T0) == 10


def test_a_log_that_was_cut_off_moves_the_position_back():
    """K-POS-07."""
    driver = unsure()
    driver.answer(OffsetForLeaderEpochRequest, ends(EpochEnd(T0, leader_epoch=2, end_offset=7)))
    assert driver.reader.position(T0) == 7
    assert driver.reader.partitions[T0].position.epoch == 2


def test_an_undefined_end_resets():
    """K-POS-07."""
    driver = unsure()
    driver.answer(OffsetForLeaderEpochRequest, ends(EpochEnd(T0)))
    assert state(driver) is FetchState.AWAIT_RESET


@pytest.mark.parametrize("end", [EpochEnd(T0), EpochEnd(T0, leader_epoch=2, end_offset=7)])
def test_without_policy_truncation_is_thrown(end):
    """K-POS-07."""
    driver = unsure(NONE)
    driver.answer(OffsetForLeaderEpochRequest, ends(end))
    problem = driver.poll().problem
    assert problem is not None
    assert (problem.kind, problem.partitions) == (ProblemKind.TRUNCATION, (T0,))
    assert state(driver) is FetchState.AWAIT_VALIDATION


def test_an_answer_about_another_position_is_dropped():
    """K-POS-07."""
    driver = unsure()
    driver.do(Seek(driver.now, T0, 50))
    driver.answer(OffsetForLeaderEpochRequest, ends(EpochEnd(T0, leader_epoch=2, end_offset=7)))
    assert driver.reader.position(T0) == 50


def test_a_leader_that_does_not_know_is_asked_again():
    driver = unsure()
    driver.answer(OffsetForLeaderEpochRequest, ends(EpochEnd(T0, error_code=ErrorCode.FENCED_LEADER_EPOCH)))
    driver.poll()
    driver.unasked(OffsetForLeaderEpochRequest)
    driver.now += 100
    driver.poll()
    driver.asked(OffsetForLeaderEpochRequest)


def test_a_position_without_epoch_is_used():
    """K-POS-07."""
    driver = Driver().reading(T0, at=4)
    driver.do(LeadersChanged(driver.now, ((T0, Leader(2, 5)),)))
    driver.poll()
    assert state(driver) is FetchState.FETCHING
    driver.unasked(OffsetForLeaderEpochRequest)


def test_kafka_python_checks_nothing():
    """K-PY-02."""
    driver = Driver(Client.KAFKA_PYTHON).leaders(epoch=3).coordinator().member(T0)
    driver.poll()
    driver.committed({T0: 4})
    driver.poll()
    driver.do(LeadersChanged(driver.now, ((T0, Leader(2, 5)),)))
    driver.poll()
    assert state(driver) is FetchState.FETCHING


def test_kafka_python_resets_before_it_fetches_committed_offsets():
    """Partitions marked for a reset come first, and the fetch waits for that (K-PY-02)."""
    python, java = (
        Driver(client).leaders().coordinator().member(T0) for client in (Client.KAFKA_PYTHON, Client.CLASSIC)
    )
    for driver in (python, java):
        driver.do(SeekToEnd(driver.now, (T0,)))
        driver.member(T0, T1)
        driver.poll()
    python.asked(ListOffsetsRequest)
    python.unasked(OffsetFetchRequest)
    java.asked(OffsetFetchRequest)
    java.unasked(ListOffsetsRequest)
    python.listed(ListedOffset(T0, offset=0))
    python.poll()
    python.asked(OffsetFetchRequest)


def test_a_committed_epoch_makes_older_metadata_useless():
    """K-POS-01, K-POS-08."""
    driver = Driver().leaders(epoch=3).coordinator().member(T0)
    driver.poll()
    driver.committed({T0: 9}, epoch=4)
    driver.poll()
    assert RequestMetadata in map(type, driver.commands)
    assert driver.reader.partitions[T0].position.leader == Leader(None, 4)
    driver.leaders(epoch=3)
    assert driver.reader.last_epochs[T0] == 4
    driver.unasked(FetchRequest)
    driver.leaders(epoch=4)
    driver.poll()
    driver.asked(OffsetForLeaderEpochRequest)


def test_positions_wait_for_a_rebalance_in_a_classic_group():
    """K-POLL-05."""
    driver = Driver().leaders().coordinator().member(T0, settled=False)
    driver.poll()
    driver.unasked(OffsetFetchRequest)
    driver = Driver(Client.CONSUMER).leaders().coordinator().member(T0, settled=False)
    driver.poll()
    driver.asked(OffsetFetchRequest)


@pytest.mark.parametrize("client", ALL)
def test_a_lookup_does_not_count_for_a_partition_that_was_away(client):
    """Another owner may have committed meanwhile (K-POS-08)."""
    driver = started(client, T0)
    driver.member(epoch=1)
    driver.committed({T0: 5})
    driver.member(T0, epoch=1)
    driver.poll()
    assert driver.reader.position(T0) is None
    driver.committed({T0: 8})
    driver.poll()
    assert driver.reader.position(T0) == 8


@pytest.mark.parametrize("client", ALL)
def test_an_abandoned_answer_still_loses_the_coordinator(client):
    """K-OFF-11."""
    driver = started(client, T0)
    driver.member(T0, T1, epoch=2)
    driver.poll()
    driver.committed({}, group=ErrorCode.NOT_COORDINATOR)
    assert driver.reader.coordinator.node is None


def test_an_answer_about_another_position_that_is_in_doubt_too_is_dropped():
    """K-POS-07."""
    driver = unsure()
    driver.do(Seek(driver.now, T0, 50, 3))
    assert state(driver) is FetchState.AWAIT_VALIDATION
    driver.answer(OffsetForLeaderEpochRequest, ends(EpochEnd(T0, leader_epoch=2, end_offset=7)))
    assert state(driver) is FetchState.AWAIT_VALIDATION
    assert driver.reader.partitions[T0].position.offset == 50


def two_unsure(**more):
    """Return a reader at offset 10 of epoch 3 of two partitions, whose leader has moved to epoch 5 and is asked."""
    driver = Driver(**more).leaders(epoch=3).coordinator().member(T0, T1)
    for each in (T0, T1):
        driver.do(Seek(driver.now, each, 10, 3))
    driver.do(LeadersChanged(driver.now, ((T0, Leader(2, 5)), (T1, Leader(2, 5)))))
    return driver


def test_a_position_that_is_found_looks_for_no_other():
    """A request of a call that no longer waits does not begin a reset (K-POS-01, K-POS-07)."""
    driver = two_unsure()
    driver.do(AskCommitted(driver.now, (T2,), 100))
    driver.wait(100)  # the answer may still serve the next call
    driver.do(AskPosition(driver.now, T0))
    driver.answer(
        OffsetForLeaderEpochRequest, ends(EpochEnd(T0, leader_epoch=3, end_offset=10), EpochEnd(T1, end_offset=-1))
    )
    assert driver.only(CallReturned).value == 10
    assert state(driver, T1) is FetchState.AWAIT_RESET
    driver.unasked(ListOffsetsRequest)


@pytest.mark.parametrize(("profile", "taken"), [(KAFKA_4_4, False), (INTENDED, True)])
@pytest.mark.parametrize("client", JAVA)
def test_an_error_about_a_partition_that_is_gone(client, profile, taken):
    """In Kafka the whole answer is ignored (K-POS-07, fault_gone_partition_voids_answer)."""
    driver = two_unsure(client=client, profile=profile)
    driver.poll()
    driver.member(T0)
    gone = EpochEnd(T1, error_code=ErrorCode.KAFKA_STORAGE_ERROR)
    driver.answer(OffsetForLeaderEpochRequest, ends(EpochEnd(T0, leader_epoch=3, end_offset=10), gone))
    assert (state(driver) is FetchState.FETCHING) is taken


@pytest.mark.parametrize(("profile", "again"), [(KAFKA_4_4, False), (INTENDED, True)])
def test_partitions_behind_a_deleted_one_in_an_answer(profile, again):
    """Java's hash set has t-1 before t-0 (K-POS-07, fault_gone_partition_voids_answer)."""
    driver = two_unsure(profile=profile)
    driver.poll()
    driver.member(T0)
    driver.answer(OffsetForLeaderEpochRequest, ends(*(EpochEnd(each, error_code=ErrorCode(56)) for each in (T0, T1))))
    driver.now += 100
    driver.poll()
    assert any(isinstance(each.body, OffsetForLeaderEpochRequest) for each in driver.sent) is again


def test_a_wakeup_comes_before_a_permanent_look_up_error():
    """A call for committed offsets first processes network events (K-POLL-06, K-FIND-01)."""
    driver = Driver().leaders()
    driver.do(Assign(driver.now, (T0,)))
    driver.do(CommitAsync(driver.now, ((T0, OffsetAndMetadata(5)),)))
    driver.do(LookupFailed(driver.now, ErrorCode.GROUP_AUTHORIZATION_FAILED))
    driver.do(Wakeup(driver.now))
    driver.do(AskCommitted(driver.now, (T0,)))
    assert driver.only(CallReturned).problem.kind is ProblemKind.WAKEUP
    driver.do(AskCommitted(driver.now, (T0,)))
    assert driver.only(CallReturned).problem.error is ErrorCode.GROUP_AUTHORIZATION_FAILED


def test_a_call_for_other_partitions_forgets_the_look_up_even_if_it_throws():
    """K-POS-08, K-FIND-01."""
    driver = Driver().leaders().coordinator()
    driver.do(Assign(driver.now, (T0,)))
    driver.poll()
    driver.committed({T0: 5})
    driver.do(CoordinatorLost(driver.now))
    driver.do(CommitAsync(driver.now, ((T0, OffsetAndMetadata(5)),)))
    driver.do(LookupFailed(driver.now, ErrorCode.GROUP_AUTHORIZATION_FAILED))
    driver.do(AskCommitted(driver.now, (T1,)))
    assert driver.only(CallReturned).problem.error is ErrorCode.GROUP_AUTHORIZATION_FAILED
    driver.coordinator()
    driver.poll()
    assert driver.reader.position(T0) is None
    driver.asked(OffsetFetchRequest)


def test_a_waiting_call_keeps_its_look_up_across_generations():
    """It checks nothing else meanwhile (K-POS-08)."""
    driver = Driver().leaders(epoch=3).coordinator().member(T0, T1)
    driver.do(Seek(driver.now, T0, 10, 3))
    driver.do(LeadersChanged(driver.now, ((T0, Leader(2, 5)), (T1, Leader(2, 5)))))
    driver.do(AskPosition(driver.now, T0))
    driver.member(T0, T1, epoch=2)
    driver.answer(OffsetForLeaderEpochRequest, ends(EpochEnd(T0, leader_epoch=3, end_offset=10)))
    driver.none(CallReturned)
    driver.committed({T1: 4})
    assert driver.only(CallReturned).value == 10


def test_a_member_checks_the_coordinator_before_it_uses_a_finished_look_up():
    """In a call that begins when the answer has already arrived (K-POS-08)."""
    driver = started(Client.CLASSIC, T0)
    driver.committed({}, group=ErrorCode.UNKNOWN_MEMBER_ID)
    driver.do(CoordinatorLost(driver.now))
    driver.do(AskPosition(driver.now, T0))
    driver.none(CallReturned)
    driver.coordinator()
    assert driver.only(CallReturned).problem.error is ErrorCode.UNKNOWN_MEMBER_ID


def test_epochs_of_topics_that_a_leader_watches_for_its_group_are_kept():
    """A leader also gets metadata of topics that it does not read itself (K-POS-08, K-JOIN-10)."""
    driver = Driver().leaders(epoch=3).coordinator().member(T0)
    driver.do(CommitAsync(driver.now, ((U0, OffsetAndMetadata(5, 7)),)))
    driver.do(Subscribe(driver.now, frozenset({"t"})))
    driver.leaders(epoch=3)
    assert driver.reader.last_epochs[U0] == 7
    driver.do(LeadersChanged(driver.now, ((T0, Leader(1, 3)),)))
    assert U0 not in driver.reader.last_epochs


def test_each_call_counts_its_own_failed_look_ups():
    """The first back-off of a call is the shortest, whatever has failed before (K-FIND-01)."""
    driver = Driver().leaders()
    driver.do(Assign(driver.now, (T0,)))
    driver.poll()
    driver.do(LookupFailed(driver.now, None))
    driver.now += 100
    driver.do(AskPosition(driver.now, T0))
    driver.do(LookupFailed(driver.now, None))
    driver.wait(99)
    driver.none(FindCoordinator)
    driver.wait(1)
    driver.only(FindCoordinator)
    driver.do(LookupFailed(driver.now, None))
    driver.wait(199)
    driver.none(FindCoordinator)


def test_a_lookup_survives_a_commit_that_fails_over_the_coordinator():
    """With a manual assignment the commit throws the failure; the look-up of positions stays for the next poll, which
    looks up the coordinator again (K-FIND-01, K-POS-08)."""
    driver = Driver(Client.CLASSIC).leaders()
    driver.do(Assign(driver.now, (T0,)))
    driver.poll()
    driver.do(CommitSync(driver.now, ((T0, OffsetAndMetadata(5)),)))
    driver.do(LookupFailed(driver.now, ErrorCode.GROUP_AUTHORIZATION_FAILED))
    assert driver.returned().problem.error is ErrorCode.GROUP_AUTHORIZATION_FAILED
    driver.wait(1_000)
    driver.poll()
    driver.only(FindCoordinator)
    driver.coordinator()
    assert driver.poll().problem is None
    driver.asked(OffsetFetchRequest)


def test_the_new_consumer_takes_the_epoch_of_a_committed_offset_that_it_does_not_use():
    """The application has set the position meanwhile (K-POS-08)."""
    driver = Driver(Client.CONSUMER).leaders(epoch=3).coordinator().member(T0)
    driver.poll()
    driver.do(Seek(driver.now, T0, 7))
    driver.committed({T0: 5}, epoch=5)
    assert driver.reader.last_epochs[T0] == 5
    assert driver.reader.position(T0) == 7


def test_the_new_consumer_sets_no_position_of_a_partition_that_is_about_to_be_revoked():
    """K-POS-08."""
    driver = Driver(Client.CONSUMER).leaders().coordinator().member(T0)
    driver.poll()
    driver.member(T0, pending_revocation=frozenset({T0}))
    driver.committed({T0: 5})
    assert state(driver) is FetchState.INITIALIZING


def test_the_new_consumer_forgets_a_permanent_look_up_error_when_it_unsubscribes():
    """Else the next poll would throw it (N-TR-07, K-FIND-01)."""
    driver = Driver(Client.CONSUMER).leaders()
    driver.do(Assign(driver.now, (T0,)))
    driver.do(LookupFailed(driver.now, ErrorCode.GROUP_AUTHORIZATION_FAILED))
    driver.do(Unsubscribe(driver.now))
    driver.do(Assign(driver.now, (T0,)))
    assert driver.poll().problem is None
