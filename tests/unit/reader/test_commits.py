"""Commits and waiting calls: K-OFF-02…22, K-CB-01, K-LEAVE-04, N-CMT-01…06, N-CLOSE-01."""

from __future__ import annotations

import pytest

from fencepost.member.events import (
    Close,
    CommitFinished,
    CommitRefused,
    CommitResult,
    CoordinatorLost,
    Disconnect,
    FindCoordinator,
    LookupFailed,
    Unsubscribe,
)
from fencepost.protocol.errors import ErrorCode, IllegalEvent
from fencepost.protocol.offset_messages import OffsetCommitRequest, OffsetFetchRequest
from fencepost.protocol.profiles import INTENDED, KAFKA_4_4
from fencepost_consumer import Client
from fencepost_consumer.broker import FetchedPartition
from fencepost_consumer.events import (
    AskCommitted,
    AskPosition,
    Assign,
    CallReturned,
    CommitAsync,
    CommitSync,
    CommitWanted,
    MembershipChanged,
    OffsetAndMetadata,
    PassToMember,
    Pause,
    ProblemKind,
    Refused,
    RunCallbacks,
    Seek,
    Wakeup,
)
from fencepost_consumer.membership import Membership, Phase

from .driver import T0, T1, Driver, records

_E, _K = ErrorCode, ProblemKind
JAVA = [Client.CLASSIC, Client.CONSUMER]
FIVE = ((T0, OffsetAndMetadata(5)),)


def commits(driver):
    return [each.body for each in driver.sent if isinstance(each.body, OffsetCommitRequest)]


def sync(driver, offsets=FIVE, **more):
    driver.do(CommitSync(driver.now, offsets, **more))
    return driver


def asynchronous(driver, number, offset=5):
    driver.do(CommitAsync(driver.now, ((T0, OffsetAndMetadata(offset)),), number))
    return driver


def callbacks(driver):
    return [(each.callback, each.problem and each.problem.kind) for each in driver.callbacks]


# --- what is sent ---


def test_members_send_their_identity():
    """The new consumer commits by topic ids (K-OFF-02, N-CMT-01, G-WIRE-30)."""
    for client, name in ((Client.CLASSIC, "t"), (Client.CONSUMER, "")):
        (body,) = commits(sync(Driver(client, group_instance_id="i").reading(T0)))
        assert (body.member_id, body.generation_id_or_member_epoch, body.group_instance_id) == ("m", 1, "i")
        assert body.topics[0].name == name
        assert bool(name) != any(body.topics[0].topic_id)


def test_a_manual_assignment_commits_without_a_member():
    """K-OFF-03."""
    driver = Driver(group_instance_id="i").leaders().coordinator()
    driver.do(Assign(driver.now, (T0,)))
    (body,) = commits(sync(driver))
    assert (body.member_id, body.generation_id_or_member_epoch, body.group_instance_id) == ("", -1, None)


def test_positions_are_committed():
    """Valid positions are committed, also of paused partitions (K-OFF-05)."""
    driver = Driver().reading(T0, T1)
    driver.do(Pause(0, (T0,)))
    driver.do(Seek(0, T0, 7))
    driver.member(T0, T1, T0._replace(partition=2))
    (body,) = commits(sync(driver, None))
    assert [(each.partition_index, each.committed_offset) for each in body.topics[0].partitions] == [(0, 7), (1, 0)]


@pytest.mark.parametrize(
    ("phase", "kind"),
    [(Phase.PREPARING, _K.REBALANCE), (Phase.COMPLETING, _K.REBALANCE), (Phase.OUT, _K.COMMIT_FAILED)],
)
def test_a_classic_member_commits_in_a_stable_generation_alone(phase, kind):
    """No request is sent (K-OFF-02), and the commit is not retried (K-OFF-22)."""
    driver = Driver().reading(T0)
    driver.member(T0, phase=phase)
    sync(driver)
    assert driver.returned().problem.kind is kind
    asynchronous(driver, 1)
    driver.do(RunCallbacks(driver.now))
    assert callbacks(driver) == [(1, kind)]
    assert commits(driver) == []


def test_a_member_of_a_consumer_group_commits_in_any_state():
    """A member that left commits with (id, -1) (N-CMT-01)."""
    driver = Driver(Client.CONSUMER).reading(T0)
    driver.member(T0, phase=Phase.OUT, epoch=-1)
    (body,) = commits(sync(driver))
    assert (body.member_id, body.generation_id_or_member_epoch) == ("m", -1)


def test_without_a_group_there_is_no_coordinator_to_commit_to():
    driver = Driver(group_id="").leaders()
    for event in (CommitSync(0), CommitAsync(0), AskCommitted(0, (T0,))):
        driver.do(event)
        assert driver.returned().problem.kind is _K.INVALID_GROUP


def test_a_negative_offset_is_refused():
    """K-OFF-21."""
    driver = Driver().reading(T0)
    with pytest.raises(Refused, match="offset of t-0 must be >= 0"):
        sync(driver, ((T0, OffsetAndMetadata(-1)),))


# --- synchronous ---


@pytest.mark.parametrize("client", JAVA)
def test_a_synchronous_commit_returns_with_its_answer(client):
    driver = sync(Driver(client).reading(T0))
    driver.none(CallReturned)
    with pytest.raises(IllegalEvent, match="not returned yet"):
        driver.poll()
    driver.commit_answer()
    assert driver.returned() == CallReturned()


@pytest.mark.parametrize("client", JAVA)
@pytest.mark.parametrize(
    ("error", "forgets"),
    [
        (_E.COORDINATOR_LOAD_IN_PROGRESS, False),
        (_E.UNKNOWN_TOPIC_OR_PARTITION, False),
        (_E.COORDINATOR_NOT_AVAILABLE, True),
        (_E.NOT_COORDINATOR, True),
        (_E.REQUEST_TIMED_OUT, True),
    ],
)
def test_retriable_errors_are_retried_until_the_timeout(client, error, forgets):
    """K-OFF-10, K-OFF-11, K-OFF-18, N-CMT-06."""
    driver = sync(Driver(client).reading(T0), timeout_ms=150)
    driver.commit_answer(error)
    assert (driver.reader.coordinator.node is None) == forgets
    assert (Disconnect in map(type, driver.commands)) == (forgets and client is not Client.CONSUMER)
    if forgets:
        driver.wait(100)
        driver.only(FindCoordinator)
        driver.coordinator()
    else:
        driver.wait(99)
        assert commits(driver) == []
        driver.wait(1)
    assert len(commits(driver)) == 1
    driver.commit_answer(error)
    driver.wait(50)
    assert driver.returned().problem.kind is _K.TIMEOUT
    assert driver.timers == {} or client is Client.CONSUMER  # whose background thread looks for the coordinator again


@pytest.mark.parametrize("client", JAVA)
@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (_E.OFFSET_METADATA_TOO_LARGE, _K.API),
        (_E.INVALID_COMMIT_OFFSET_SIZE, _K.API),
        (_E.GROUP_AUTHORIZATION_FAILED, _K.API),
        (_E.TOPIC_AUTHORIZATION_FAILED, _K.API),
        (_E.GROUP_ID_NOT_FOUND, _K.KAFKA),
        (_E.UNKNOWN_MEMBER_ID, _K.COMMIT_FAILED),
    ],
)
def test_errors_that_retrying_cannot_fix_are_thrown(client, error, kind):
    """K-OFF-13, K-OFF-15…17, N-CMT-03."""
    driver = sync(Driver(client).reading(T0))
    driver.commit_answer(error)
    problem = driver.returned().problem
    assert (problem.kind, problem.error) == (kind, error)


@pytest.mark.parametrize("error", [_E.FENCED_INSTANCE_ID, _E.ILLEGAL_GENERATION, _E.REBALANCE_IN_PROGRESS])
def test_errors_that_the_new_consumer_does_not_expect(error):
    """The member does not get the error (N-CMT-03)."""
    driver = sync(Driver(Client.CONSUMER).reading(T0))
    driver.commit_answer(error)
    assert driver.returned().problem.kind is _K.KAFKA
    driver.none(PassToMember)


def test_a_stale_epoch():
    """commitSync fails; the callback of commitAsync gets the error itself (N-CMT-02)."""
    driver = sync(Driver(Client.CONSUMER).reading(T0))
    driver.commit_answer(_E.STALE_MEMBER_EPOCH)
    assert driver.returned().problem.kind is _K.COMMIT_FAILED
    asynchronous(driver, 1)
    driver.commit_answer(_E.STALE_MEMBER_EPOCH)
    driver.poll()
    (callback,) = driver.callbacks
    assert (callback.problem.kind, callback.problem.error) == (_K.API, _E.STALE_MEMBER_EPOCH)


@pytest.mark.parametrize(
    ("error", "now", "kind", "refused"),
    [
        (_E.REBALANCE_IN_PROGRESS, {}, _K.REBALANCE, True),
        (_E.UNKNOWN_MEMBER_ID, {}, _K.COMMIT_FAILED, True),
        (_E.ILLEGAL_GENERATION, {}, _K.COMMIT_FAILED, True),
        (_E.ILLEGAL_GENERATION, {"epoch": 2}, _K.COMMIT_FAILED, True),
        (_E.ILLEGAL_GENERATION, {"epoch": 2, "phase": Phase.PREPARING}, _K.REBALANCE, False),
        (_E.FENCED_INSTANCE_ID, {}, _K.FENCED_INSTANCE, False),
        (_E.FENCED_INSTANCE_ID, {"epoch": 2}, _K.COMMIT_FAILED, False),
        (_E.FENCED_INSTANCE_ID, {"epoch": 2, "phase": Phase.PREPARING}, _K.REBALANCE, False),
        (_E.STALE_MEMBER_EPOCH, {}, _K.KAFKA, False),
    ],
)
def test_commit_errors_of_a_classic_member_depend_on_its_state(error, now, kind, refused):
    """K-OFF-12…14, K-OFF-16."""
    driver = sync(Driver().reading(T0))
    driver.member(T0, **now)
    driver.commit_answer(error)
    assert driver.returned().problem.kind is kind
    assert [each.event for each in driver.commands if isinstance(each, PassToMember)] == (
        [CommitRefused(driver.now, error)] if refused else []
    )


@pytest.mark.parametrize("client", JAVA)
def test_an_empty_commit_waits_for_pending_commits(client):
    """K-OFF-21."""
    driver = sync(Driver(client).reading(T0), ())
    assert driver.returned() == CallReturned()
    asynchronous(driver, 1)
    sync(driver, ())
    driver.none(CallReturned)
    driver.commit_answer()
    assert driver.returned() == CallReturned()
    assert callbacks(driver) == [(1, None)]


def test_the_new_consumer_waits_for_earlier_ones_too():
    for client, waits in ((Client.CLASSIC, False), (Client.CONSUMER, True)):
        driver = sync(asynchronous(Driver(client).reading(T0), 1))
        driver.sent = [each for each in driver.sent if isinstance(each.body, OffsetCommitRequest)][::-1]
        driver.commit_answer()
        assert (CallReturned not in map(type, driver.commands)) == waits


@pytest.mark.parametrize("client", JAVA)
def test_a_wakeup_ends_the_waiting(client):
    driver = sync(Driver(client).reading(T0))
    driver.do(Wakeup(driver.now))
    assert driver.returned().problem.kind is _K.WAKEUP
    driver.commit_answer()
    driver.none(CallReturned)


# --- asynchronous ---


@pytest.mark.parametrize("client", JAVA)
def test_callbacks_run_in_a_poll_in_the_order_of_the_calls(client):
    """K-OFF-18."""
    driver = asynchronous(asynchronous(Driver(client).reading(T0), 1), 2)
    driver.sent = [each for each in driver.sent if isinstance(each.body, OffsetCommitRequest)][::-1]
    driver.commit_answer(_E.NOT_COORDINATOR)
    assert callbacks(driver) == []
    driver.poll()
    if client is Client.CONSUMER:  # the other one may still be answered
        assert callbacks(driver) == []
        driver.commit_answer()
        driver.poll()
        assert [number for number, _ in callbacks(driver)] == [1, 2]
        return
    assert [number for number, _ in callbacks(driver)] == [1, 2]
    assert callbacks(driver)[1][1] is _K.RETRIABLE_COMMIT


def test_an_unanswered_commit_delays_later_ones():
    """K-OFF-18."""
    driver = asynchronous(asynchronous(Driver().reading(T0), 1), 2)
    driver.sent.remove(next(each for each in driver.sent if isinstance(each.body, OffsetCommitRequest)))
    driver.commit_answer()
    driver.poll()
    assert callbacks(driver) == []


@pytest.mark.parametrize("client", JAVA)
def test_an_asynchronous_commit_is_not_retried(client):
    """K-OFF-18, N-CMT-06."""
    driver = asynchronous(Driver(client).reading(T0), 1)
    driver.commit_answer(_E.COORDINATOR_LOAD_IN_PROGRESS)
    driver.now += 5_000
    driver.poll()
    assert callbacks(driver) == [(1, _K.RETRIABLE_COMMIT)]
    assert commits(driver) == []


def test_a_classic_consumer_gives_up_when_the_coordinator_is_not_found():
    for client, over in ((Client.CLASSIC, True), (Client.CONSUMER, False)):
        driver = Driver(client).reading(T0)
        driver.do(CoordinatorLost(driver.now))
        asynchronous(driver, 1)
        if not over:  # its background thread keeps the back-off after the previous look-up
            driver.wait(100)
        driver.only(FindCoordinator)
        driver.do(LookupFailed(driver.now, None))
        driver.poll()
        assert (callbacks(driver) == [(1, _K.RETRIABLE_COMMIT)]) == over
        driver.coordinator()
        assert bool(commits(driver)) != over


def test_a_lost_coordinator_fails_all_that_was_sent():
    """K-ERR-13."""
    driver = asynchronous(asynchronous(Driver().reading(T0), 1), 2)
    driver.lose(OffsetCommitRequest)
    driver.poll()
    assert callbacks(driver) == [(1, _K.RETRIABLE_COMMIT), (2, _K.RETRIABLE_COMMIT)]


def test_a_fenced_one_makes_every_later_poll_and_commit_throw():
    """K-OFF-20."""
    driver = asynchronous(Driver().reading(T0), 1)
    driver.commit_answer(_E.FENCED_INSTANCE_ID)
    for _ in range(2):
        assert driver.poll().problem.kind is _K.FENCED_INSTANCE
        sync(driver)
        assert driver.returned().problem.kind is _K.FENCED_INSTANCE
    assert callbacks(driver) == []


# --- automatic ---


def test_classic_intervals_overlap_and_new_ones_do_not():
    """K-OFF-19."""
    for client, count in ((Client.CLASSIC, 2), (Client.CONSUMER, 1)):
        driver = Driver(client, auto_commit=True).reading(T0)
        for _ in range(2):
            driver.now += 5_000
            driver.poll()
        assert len(commits(driver)) == count
        driver.commit_answer()
        driver.poll()
        assert len(commits(driver)) == 1


@pytest.mark.parametrize("client", JAVA)
def test_after_a_retriable_error_the_next_commit_comes_sooner(client):
    """K-OFF-19."""
    driver = Driver(client, auto_commit=True).reading(T0)
    driver.now += 5_000
    driver.poll()
    driver.commit_answer(_E.COORDINATOR_LOAD_IN_PROGRESS)
    driver.poll()
    driver.now += 99
    driver.poll()
    assert commits(driver) == []
    driver.now += 1
    driver.poll()
    assert len(commits(driver)) == (1 if client is Client.CLASSIC else 0)  # the new consumer waits for its interval


def test_a_manual_assignment_commits_first_if_due():
    """K-OFF-04."""
    driver = Driver(auto_commit=True).leaders().coordinator()
    driver.do(Assign(driver.now, (T0,)))
    driver.do(Seek(driver.now, T0, 6))
    driver.do(Assign(driver.now, (T0, T1)))
    assert commits(driver) == []
    driver.now += 5_000
    driver.do(Assign(driver.now, (T1,)))
    (body,) = commits(driver)
    assert body.topics[0].partitions[0].committed_offset == 6


# --- for the member ---


@pytest.mark.parametrize("client", JAVA)
@pytest.mark.parametrize(
    ("error", "classic", "new"),
    [
        (_E.NONE, "done", "done"),
        (_E.COORDINATOR_LOAD_IN_PROGRESS, "retriable", None),
        (_E.UNKNOWN_TOPIC_OR_PARTITION, "retriable", "failed"),
        (_E.STALE_MEMBER_EPOCH, "failed", None),
        (_E.UNKNOWN_MEMBER_ID, "failed", "failed"),
    ],
)
def test_commits_that_the_member_asks_for(client, error, classic, new):
    """The positions of the named partitions are committed; the new consumer retries retriable errors (K-CB-01,
    N-REC-04, N-CMT-02)."""
    driver = Driver(client, auto_commit=True).reading(T0, T1, at=3)
    driver.do(CommitWanted(driver.now, commit_id=77, partitions=frozenset({T1})))
    (body,) = commits(driver)
    assert [(each.partition_index, each.committed_offset) for each in body.topics[0].partitions] == [(1, 3)]
    driver.commit_answer(error)
    result = classic if client is Client.CLASSIC else new
    events = [each.event for each in driver.commands if isinstance(each, PassToMember)]
    results = [each.result.value for each in events if isinstance(each, CommitFinished)]
    assert results == ([] if result is None else [result])


def test_a_commit_before_a_reconciliation_is_tried_again():
    """It is retried with the positions at its failure, whatever the member does meanwhile (N-REC-04)."""
    driver = Driver(Client.CONSUMER, auto_commit=True).reading(T0, at=3)
    driver.do(CommitWanted(driver.now, commit_id=7, partitions=frozenset({T0})))
    driver.do(Seek(driver.now, T0, 9))
    driver.commit_answer(_E.COORDINATOR_LOAD_IN_PROGRESS)
    driver.do(Seek(driver.now, T0, 12))
    driver.wait(120)
    (body,) = commits(driver)
    assert body.topics[0].partitions[0].committed_offset == 9
    driver.commit_answer()
    assert driver.only(PassToMember).event == CommitFinished(driver.now, commit_id=7, result=CommitResult.DONE)


def test_a_commit_before_a_reconciliation_is_given_up_in_the_end():
    """After a rebalance timeout (N-REC-04)."""
    driver = Driver(Client.CONSUMER, auto_commit=True, max_poll_interval_ms=300).reading(T0, at=3)
    driver.do(CommitWanted(driver.now, commit_id=7, partitions=frozenset({T0})))
    driver.now += 250
    driver.commit_answer(_E.COORDINATOR_LOAD_IN_PROGRESS)
    driver.wait(120)
    assert driver.only(PassToMember).event == CommitFinished(1_300, commit_id=7, result=CommitResult.FAILED)


def test_an_automatic_commit_waits_for_the_one_before_a_reconciliation():
    """But it does not wait once that commit is to be retried (K-OFF-19)."""
    driver = Driver(Client.CONSUMER, auto_commit=True, auto_commit_interval_ms=500).reading(T0, at=3)
    driver.do(CommitWanted(driver.now, commit_id=7, partitions=frozenset({T0})))
    driver.now += 600
    driver.poll()
    assert len(commits(driver)) == 1
    driver.commit_answer(_E.COORDINATOR_LOAD_IN_PROGRESS)
    driver.poll()
    assert len(commits(driver)) == 1


def test_a_member_without_positions_continues_immediately():
    driver = Driver(auto_commit=True).leaders().coordinator().member(T0)
    driver.do(CommitWanted(driver.now, commit_id=7, partitions=frozenset({T0})))
    assert driver.only(PassToMember).event == CommitFinished(driver.now, commit_id=7, result=CommitResult.DONE)


def test_a_classic_member_does_not_wait_for_a_coordinator():
    driver = Driver(auto_commit=True).reading(T0)
    driver.do(CoordinatorLost(driver.now))
    driver.do(CommitWanted(driver.now, commit_id=7, partitions=frozenset({T0})))
    assert driver.only(PassToMember).event == CommitFinished(driver.now, commit_id=7, result=CommitResult.RETRIABLE)


def test_a_close_with_nothing_to_commit_waits_for_asynchronous_commits():
    """A close with a commit of its member waits only for commits that were not sent yet (K-LEAVE-04, steps 1 and 2)."""
    driver = asynchronous(Driver(auto_commit=True).reading(T0), 1)
    driver.do(CommitWanted(driver.now, commit_id=7, partitions=frozenset(), closing=True))
    driver.none(PassToMember)
    driver.commit_answer()
    driver.only(PassToMember)
    assert callbacks(driver) == [(1, None)]

    driver = asynchronous(Driver(auto_commit=True).reading(T0), 1)
    driver.do(CommitWanted(driver.now, commit_id=7, partitions=frozenset({T0}), closing=True))
    first, second = (each for each in driver.sent if isinstance(each.body, OffsetCommitRequest))
    driver.sent = [second, first]
    driver.commit_answer()
    driver.only(PassToMember)
    assert callbacks(driver) == []


def test_the_members_close_commits_nothing_for_a_reader_that_assigned_manually():
    """The reader's own close does that (K-LEAVE-04)."""
    driver = Driver(auto_commit=True).leaders().coordinator()
    driver.do(Assign(driver.now, (T0,)))
    driver.do(CommitWanted(driver.now, commit_id=7, partitions=frozenset(), closing=True))
    driver.only(PassToMember)
    driver.unasked(OffsetCommitRequest)


# --- close and questions ---


def test_a_close_of_a_manual_assignment_commits():
    """K-LEAVE-04."""
    driver = Driver(auto_commit=True).leaders().coordinator()
    driver.do(Assign(driver.now, (T0,)))
    driver.do(Seek(driver.now, T0, 6))
    driver.do(Close(driver.now))
    driver.none(CallReturned)
    assert len(commits(driver)) == 1
    driver.commit_answer()
    assert driver.returned() == CallReturned()


@pytest.mark.parametrize("client", JAVA)
def test_a_close_waits_for_callbacks_up_to_its_timeout(client):
    """Failures are not thrown (N-CLOSE-01)."""
    driver = asynchronous(Driver(client).reading(T0), 1)
    driver.do(Close(driver.now))
    driver.do(Wakeup(driver.now))
    driver.none(CallReturned)
    driver.commit_answer(_E.NOT_COORDINATOR)
    assert driver.returned() == CallReturned()
    assert callbacks(driver) == [(1, _K.RETRIABLE_COMMIT)]
    driver = asynchronous(Driver(client).reading(T0), 1)
    driver.do(Close(driver.now))
    driver.wait(30_000)
    assert driver.returned() == CallReturned()


@pytest.mark.parametrize("client", JAVA)
def test_committed(client):
    driver = Driver(client).reading(T0)
    driver.do(AskCommitted(driver.now, (T0, T1)))
    driver.none(CallReturned)
    driver.committed({T0: 4}, epoch=2)
    assert driver.returned().value == ((T0, OffsetAndMetadata(4, 2)), (T1, None))
    driver.do(AskCommitted(driver.now, ()))
    assert driver.returned().value == ()
    driver.do(AskCommitted(driver.now, (T0,), timeout_ms=150))
    driver.committed({}, partition=_E.UNSTABLE_OFFSET_COMMIT)
    driver.wait(100)
    driver.asked(OffsetFetchRequest)
    driver.wait(50)
    assert driver.returned().problem.kind is _K.TIMEOUT


@pytest.mark.parametrize("client", JAVA)
def test_position_waits_until_there_is_one(client):
    driver = Driver(client).leaders().coordinator().member(T0)
    driver.do(AskPosition(driver.now, T0))
    driver.none(CallReturned)
    driver.committed({T0: 4})
    assert driver.returned().value == 4
    driver.do(AskPosition(driver.now, T0))
    assert driver.returned().value == 4
    with pytest.raises(Refused, match="t-1 is not assigned"):
        driver.do(AskPosition(driver.now, T1))


def test_a_handed_out_record_is_consumed():
    """K-OFF-05."""
    driver = Driver().reading(T0)
    driver.fetched(FetchedPartition(T0, records=records(0, 3)))
    driver.poll()
    (body,) = commits(sync(driver, None))
    assert body.topics[0].partitions[0].committed_offset == 4


def test_a_connection_that_is_lost_late_fails_its_requests():
    """The new consumer keeps the connection when a broker answers that it is not the coordinator; when the connection
    breaks, no request is answered (K-ERR-13)."""
    driver = asynchronous(asynchronous(Driver(Client.CONSUMER).reading(T0), 1), 2)
    sync(driver, timeout_ms=60_000)
    driver.sent.reverse()
    driver.commit_answer(_E.COORDINATOR_NOT_AVAILABLE)
    assert callbacks(driver) == []
    driver.lose(OffsetCommitRequest)
    assert callbacks(driver) == [(1, _K.RETRIABLE_COMMIT), (2, _K.RETRIABLE_COMMIT)]


def test_a_fence_while_another_commit_waits_throws_and_forgets_the_coordinator():
    """Both happen in one step (K-OFF-11, K-OFF-20)."""
    driver = asynchronous(Driver().reading(T0), 1)
    sync(driver)
    driver.commit_answer(_E.FENCED_INSTANCE_ID)
    driver.none(CallReturned)
    driver.commit_answer(_E.NOT_COORDINATOR)
    assert driver.returned().problem.kind is _K.FENCED_INSTANCE
    assert driver.reader.coordinator.node is None
    assert driver.reader.waiting is None


def test_a_fenced_reader_commits_nothing_in_a_close():
    """K-OFF-20, K-LEAVE-04."""
    driver = asynchronous(Driver(auto_commit=True).reading(T0), 1)
    driver.commit_answer(_E.FENCED_INSTANCE_ID)
    driver.do(CommitWanted(driver.now, commit_id=7, partitions=frozenset({T0}), closing=True))
    assert driver.only(PassToMember).event == CommitFinished(driver.now, commit_id=7, result=CommitResult.FAILED)
    assert commits(driver) == []
    assert callbacks(driver) == []


def closing_without_coordinator(**more):
    """Return a closing reader in which a commit of an offset and an empty commit wait for a coordinator."""
    driver = Driver(**more).reading(T0)
    driver.do(CoordinatorLost(driver.now))
    asynchronous(driver, 1)
    driver.do(CommitAsync(driver.now, (), 2))
    driver.do(Close(driver.now))
    return driver


def test_a_close_looks_for_a_coordinator_though_the_commits_have_failed():
    """Their callbacks run when a coordinator is found (K-LEAVE-04, step 2)."""
    driver = closing_without_coordinator()
    driver.do(LookupFailed(driver.now, None))
    driver.none(CallReturned)
    assert callbacks(driver) == []
    driver.wait(100)
    driver.only(FindCoordinator)
    driver.coordinator()
    assert callbacks(driver) == [(1, _K.RETRIABLE_COMMIT), (2, None)]
    driver.returned()


def test_a_close_that_finds_a_coordinator_sends_the_waiting_commits():
    """Callbacks of commits that are finished by then run (K-LEAVE-04)."""
    driver = Driver().reading(T0)
    driver.do(CoordinatorLost(driver.now))
    driver.do(CommitAsync(driver.now, (), 1))
    asynchronous(driver, 2)
    driver.do(Close(driver.now))
    driver.coordinator()
    assert callbacks(driver) == [(1, None)]
    driver.none(CallReturned)
    driver.commit_answer()
    driver.returned()


def test_a_close_gives_up_after_a_permanent_look_up_error_or_its_timeout():
    """K-LEAVE-04, K-FIND-01."""
    for profile, calls in ((KAFKA_4_4, []), (INTENDED, [1, 2])):
        driver = closing_without_coordinator(profile=profile)
        driver.do(LookupFailed(driver.now, _E.GROUP_AUTHORIZATION_FAILED))
        assert driver.returned().problem.kind is _K.KAFKA
        assert [number for number, _ in callbacks(driver)] == calls
    driver = closing_without_coordinator()
    driver.do(LookupFailed(driver.now, None))
    driver.wait(30_000)
    driver.returned()
    assert [number for number, _ in callbacks(driver)] == [1, 2]


def test_a_reader_without_partitions_closes_like_a_manual_assignment():
    """The close commits nothing, but runs callbacks (K-LEAVE-04)."""
    driver = asynchronous(Driver(auto_commit=True).reading(T0), 1)
    driver.commit_answer()
    driver.do(Unsubscribe(driver.now))
    driver.do(MembershipChanged(driver.now, Membership()))
    assert callbacks(driver) == []
    driver.do(Close(driver.now))
    assert callbacks(driver) == [(1, None)]
    driver.returned()


def test_a_close_with_nothing_to_commit_does_not_wait_twice():
    """A commit that got its coordinator during the close is awaited; Kafka does not run its callback (K-LEAVE-04)."""
    for profile, calls in ((KAFKA_4_4, []), (INTENDED, [(1, None)])):
        driver = Driver(auto_commit=True, profile=profile).leaders()
        driver.do(Assign(driver.now, (T0,)))
        asynchronous(driver, 1)
        driver.do(Close(driver.now))
        driver.coordinator()
        driver.none(CallReturned)
        driver.commit_answer()
        driver.returned()
        assert callbacks(driver) == calls


def test_an_assignment_that_throws_has_dropped_the_fetched_records_of_others():
    """The next poll hands out none of them (K-SUB-02, K-FIND-01)."""
    driver = Driver(auto_commit=True).leaders()
    driver.do(Assign(driver.now, (T0,)))
    driver.do(Seek(driver.now, T0, 1))
    driver.poll()
    driver.fetched(FetchedPartition(T0, records=records(1, 2), high_watermark=3))
    asynchronous(driver, 1)
    driver.do(LookupFailed(driver.now, _E.GROUP_AUTHORIZATION_FAILED))
    driver.now += 5_000
    driver.do(Assign(driver.now, (T1,)))
    assert driver.returned().problem.error is _E.GROUP_AUTHORIZATION_FAILED
    assert driver.offsets() == []


def test_a_close_with_nothing_to_commit_waits_for_the_commit_before_a_rejoin():
    """K-LEAVE-04, K-OFF-21."""
    driver = Driver(auto_commit=True).reading(T0, at=3)
    driver.do(CommitWanted(driver.now, commit_id=6, partitions=frozenset({T0})))
    driver.do(CommitWanted(driver.now, commit_id=7, partitions=frozenset(), closing=True))
    driver.none(PassToMember)
    driver.commit_answer()
    assert [each.event.commit_id for each in driver.commands if isinstance(each, PassToMember)] == [6, 7]


@pytest.mark.parametrize("client", JAVA)
def test_a_member_whose_coordinator_moves(client):
    """The old consumer drops the connection, and a call that waits for asynchronous commits first looks for a
    coordinator; requests of the new consumer may still be answered (K-OFF-11, K-OFF-21)."""
    driver = asynchronous(Driver(client).reading(T0), 1)
    sync(driver, (), timeout_ms=10_000)
    driver.do(CoordinatorLost(driver.now, moved=True))
    driver.none(CallReturned)
    if client is Client.CONSUMER:
        driver.commit_answer()
    else:
        driver.coordinator()
    driver.returned()
    assert callbacks(driver) == [(1, None if client is Client.CONSUMER else _K.RETRIABLE_COMMIT)]


def test_finished_commits_call_back_before_an_empty_commit_looks_for_a_coordinator():
    """The callback of the other sent commit runs when a coordinator is found (K-OFF-18, K-OFF-21)."""
    driver = asynchronous(asynchronous(Driver(profile=KAFKA_4_4).reading(T0), 1), 2)
    sync(driver, (), timeout_ms=10_000)
    driver.sent = [each for each in driver.sent if isinstance(each.body, OffsetCommitRequest)][::-1]
    driver.commit_answer(_E.NOT_COORDINATOR)
    assert callbacks(driver) == [(2, _K.RETRIABLE_COMMIT)]
    driver.none(CallReturned)
    driver.coordinator()
    assert callbacks(driver) == [(2, _K.RETRIABLE_COMMIT), (1, _K.RETRIABLE_COMMIT)]
    driver.returned()
