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
    Pause,
    ProblemKind,
    Refused,
    RunCallbacks,
    Seek,
    TellMember,
    Wakeup,
)
from fencepost_consumer.membership import Membership, Phase

from .desk import T0, T1, Desk, records

_E, _K = ErrorCode, ProblemKind
JAVA = [Client.CLASSIC, Client.CONSUMER]
FIVE = ((T0, OffsetAndMetadata(5)),)


def commits(desk):
    return [each.body for each in desk.sent if isinstance(each.body, OffsetCommitRequest)]


def sync(desk, offsets=FIVE, **more):
    desk.do(CommitSync(desk.now, offsets, **more))
    return desk


def asynchronous(desk, number, offset=5):
    desk.do(CommitAsync(desk.now, ((T0, OffsetAndMetadata(offset)),), number))
    return desk


def told(desk):
    return [(each.callback, each.problem and each.problem.kind) for each in desk.callbacks]


# --- what is sent ---


def test_members_send_their_identity():
    """The new consumer commits by topic ids (K-OFF-02, N-CMT-01, G-WIRE-30)."""
    for client, name in ((Client.CLASSIC, "t"), (Client.CONSUMER, "")):
        (body,) = commits(sync(Desk(client, group_instance_id="i").reading(T0)))
        assert (body.member_id, body.generation_id_or_member_epoch, body.group_instance_id) == ("m", 1, "i")
        assert body.topics[0].name == name
        assert bool(name) != any(body.topics[0].topic_id)


def test_a_manual_assignment_commits_without_a_member():
    """K-OFF-03."""
    desk = Desk(group_instance_id="i").leaders().coordinator()
    desk.do(Assign(desk.now, (T0,)))
    (body,) = commits(sync(desk))
    assert (body.member_id, body.generation_id_or_member_epoch, body.group_instance_id) == ("", -1, None)


def test_positions_are_committed():
    """Valid positions are committed, also of paused partitions (K-OFF-05)."""
    desk = Desk().reading(T0, T1)
    desk.do(Pause(0, (T0,)))
    desk.do(Seek(0, T0, 7))
    desk.member(T0, T1, T0._replace(partition=2))
    (body,) = commits(sync(desk, None))
    assert [(each.partition_index, each.committed_offset) for each in body.topics[0].partitions] == [(0, 7), (1, 0)]


@pytest.mark.parametrize(
    ("phase", "kind"),
    [(Phase.PREPARING, _K.REBALANCE), (Phase.COMPLETING, _K.REBALANCE), (Phase.OUT, _K.COMMIT_FAILED)],
)
def test_a_classic_member_commits_in_a_stable_generation_alone(phase, kind):
    """No request is sent (K-OFF-02), and the commit is not retried (K-OFF-22)."""
    desk = Desk().reading(T0)
    desk.member(T0, phase=phase)
    sync(desk)
    assert desk.returned().problem.kind is kind
    asynchronous(desk, 1)
    desk.do(RunCallbacks(desk.now))
    assert told(desk) == [(1, kind)]
    assert commits(desk) == []


def test_a_member_of_a_consumer_group_commits_in_any_state():
    """A member that left commits with (id, -1) (N-CMT-01)."""
    desk = Desk(Client.CONSUMER).reading(T0)
    desk.member(T0, phase=Phase.OUT, epoch=-1)
    (body,) = commits(sync(desk))
    assert (body.member_id, body.generation_id_or_member_epoch) == ("m", -1)


def test_without_a_group_there_is_no_coordinator_to_commit_to():
    desk = Desk(group_id="").leaders()
    for event in (CommitSync(0), CommitAsync(0), AskCommitted(0, (T0,))):
        desk.do(event)
        assert desk.returned().problem.kind is _K.INVALID_GROUP


def test_a_negative_offset_is_refused():
    """K-OFF-21."""
    desk = Desk().reading(T0)
    with pytest.raises(Refused, match="offset of t-0 must be >= 0"):
        sync(desk, ((T0, OffsetAndMetadata(-1)),))


# --- synchronous ---


@pytest.mark.parametrize("client", JAVA)
def test_it_returns_when_it_is_answered(client):
    desk = sync(Desk(client).reading(T0))
    desk.none(CallReturned)
    with pytest.raises(IllegalEvent, match="not returned yet"):
        desk.poll()
    desk.commit_answer()
    assert desk.returned() == CallReturned()


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
    desk = sync(Desk(client).reading(T0), timeout_ms=150)
    desk.commit_answer(error)
    assert (desk.reader.coordinator.node is None) == forgets
    assert (Disconnect in map(type, desk.commands)) == (forgets and client is not Client.CONSUMER)
    if forgets:
        desk.wait(100)
        desk.only(FindCoordinator)
        desk.coordinator()
    else:
        desk.wait(99)
        assert commits(desk) == []
        desk.wait(1)
    assert len(commits(desk)) == 1
    desk.commit_answer(error)
    desk.wait(50)
    assert desk.returned().problem.kind is _K.TIMEOUT
    assert desk.timers == {} or client is Client.CONSUMER  # whose background thread looks for the coordinator again


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
    desk = sync(Desk(client).reading(T0))
    desk.commit_answer(error)
    problem = desk.returned().problem
    assert (problem.kind, problem.error) == (kind, error)


@pytest.mark.parametrize("error", [_E.FENCED_INSTANCE_ID, _E.ILLEGAL_GENERATION, _E.REBALANCE_IN_PROGRESS])
def test_errors_that_the_new_consumer_does_not_expect(error):
    """The member does not get the error (N-CMT-03)."""
    desk = sync(Desk(Client.CONSUMER).reading(T0))
    desk.commit_answer(error)
    assert desk.returned().problem.kind is _K.KAFKA
    desk.none(TellMember)


def test_a_stale_epoch():
    """commitSync fails; the callback of commitAsync gets the error itself (N-CMT-02)."""
    desk = sync(Desk(Client.CONSUMER).reading(T0))
    desk.commit_answer(_E.STALE_MEMBER_EPOCH)
    assert desk.returned().problem.kind is _K.COMMIT_FAILED
    asynchronous(desk, 1)
    desk.commit_answer(_E.STALE_MEMBER_EPOCH)
    desk.poll()
    (callback,) = desk.callbacks
    assert (callback.problem.kind, callback.problem.error) == (_K.API, _E.STALE_MEMBER_EPOCH)


@pytest.mark.parametrize(
    ("error", "now", "kind", "tells"),
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
def test_commit_errors_of_a_classic_member_depend_on_its_state(error, now, kind, tells):
    """K-OFF-12…14, K-OFF-16."""
    desk = sync(Desk().reading(T0))
    desk.member(T0, **now)
    desk.commit_answer(error)
    assert desk.returned().problem.kind is kind
    assert [each.event for each in desk.commands if isinstance(each, TellMember)] == (
        [CommitRefused(desk.now, error)] if tells else []
    )


@pytest.mark.parametrize("client", JAVA)
def test_an_empty_commit_waits_for_pending_commits(client):
    """K-OFF-21."""
    desk = sync(Desk(client).reading(T0), ())
    assert desk.returned() == CallReturned()
    asynchronous(desk, 1)
    sync(desk, ())
    desk.none(CallReturned)
    desk.commit_answer()
    assert desk.returned() == CallReturned()
    assert told(desk) == [(1, None)]


def test_the_new_consumer_waits_for_earlier_ones_too():
    for client, waits in ((Client.CLASSIC, False), (Client.CONSUMER, True)):
        desk = sync(asynchronous(Desk(client).reading(T0), 1))
        desk.sent = [each for each in desk.sent if isinstance(each.body, OffsetCommitRequest)][::-1]
        desk.commit_answer()
        assert (CallReturned not in map(type, desk.commands)) == waits


@pytest.mark.parametrize("client", JAVA)
def test_a_wakeup_ends_the_waiting(client):
    desk = sync(Desk(client).reading(T0))
    desk.do(Wakeup(desk.now))
    assert desk.returned().problem.kind is _K.WAKEUP
    desk.commit_answer()
    desk.none(CallReturned)


# --- asynchronous ---


@pytest.mark.parametrize("client", JAVA)
def test_callbacks_run_in_a_poll_in_the_order_of_the_calls(client):
    """K-OFF-18."""
    desk = asynchronous(asynchronous(Desk(client).reading(T0), 1), 2)
    desk.sent = [each for each in desk.sent if isinstance(each.body, OffsetCommitRequest)][::-1]
    desk.commit_answer(_E.NOT_COORDINATOR)
    assert told(desk) == []
    desk.poll()
    if client is Client.CONSUMER:  # the other one may still be answered
        assert told(desk) == []
        desk.commit_answer()
        desk.poll()
        assert [number for number, _ in told(desk)] == [1, 2]
        return
    assert [number for number, _ in told(desk)] == [1, 2]
    assert told(desk)[1][1] is _K.RETRIABLE_COMMIT


def test_an_unanswered_commit_delays_later_ones():
    """K-OFF-18."""
    desk = asynchronous(asynchronous(Desk().reading(T0), 1), 2)
    desk.sent.remove(next(each for each in desk.sent if isinstance(each.body, OffsetCommitRequest)))
    desk.commit_answer()
    desk.poll()
    assert told(desk) == []


@pytest.mark.parametrize("client", JAVA)
def test_it_is_not_tried_again(client):
    """K-OFF-18, N-CMT-06."""
    desk = asynchronous(Desk(client).reading(T0), 1)
    desk.commit_answer(_E.COORDINATOR_LOAD_IN_PROGRESS)
    desk.now += 5_000
    desk.poll()
    assert told(desk) == [(1, _K.RETRIABLE_COMMIT)]
    assert commits(desk) == []


def test_a_classic_consumer_gives_up_when_the_coordinator_is_not_found():
    for client, over in ((Client.CLASSIC, True), (Client.CONSUMER, False)):
        desk = Desk(client).reading(T0)
        desk.do(CoordinatorLost(desk.now))
        asynchronous(desk, 1)
        if not over:  # its background thread keeps the back-off after the previous look-up
            desk.wait(100)
        desk.only(FindCoordinator)
        desk.do(LookupFailed(desk.now, None))
        desk.poll()
        assert (told(desk) == [(1, _K.RETRIABLE_COMMIT)]) == over
        desk.coordinator()
        assert bool(commits(desk)) != over


def test_a_lost_coordinator_fails_all_that_was_sent():
    """K-ERR-13."""
    desk = asynchronous(asynchronous(Desk().reading(T0), 1), 2)
    desk.lose(OffsetCommitRequest)
    desk.poll()
    assert told(desk) == [(1, _K.RETRIABLE_COMMIT), (2, _K.RETRIABLE_COMMIT)]


def test_a_fenced_one_makes_every_later_poll_and_commit_throw():
    """K-OFF-20."""
    desk = asynchronous(Desk().reading(T0), 1)
    desk.commit_answer(_E.FENCED_INSTANCE_ID)
    for _ in range(2):
        assert desk.poll().problem.kind is _K.FENCED_INSTANCE
        sync(desk)
        assert desk.returned().problem.kind is _K.FENCED_INSTANCE
    assert told(desk) == []


# --- automatic ---


def test_classic_intervals_overlap_and_new_ones_do_not():
    """K-OFF-19."""
    for client, count in ((Client.CLASSIC, 2), (Client.CONSUMER, 1)):
        desk = Desk(client, auto_commit=True).reading(T0)
        for _ in range(2):
            desk.now += 5_000
            desk.poll()
        assert len(commits(desk)) == count
        desk.commit_answer()
        desk.poll()
        assert len(commits(desk)) == 1


@pytest.mark.parametrize("client", JAVA)
def test_after_a_retriable_error_the_next_commit_comes_sooner(client):
    """K-OFF-19."""
    desk = Desk(client, auto_commit=True).reading(T0)
    desk.now += 5_000
    desk.poll()
    desk.commit_answer(_E.COORDINATOR_LOAD_IN_PROGRESS)
    desk.poll()
    desk.now += 99
    desk.poll()
    assert commits(desk) == []
    desk.now += 1
    desk.poll()
    assert len(commits(desk)) == (1 if client is Client.CLASSIC else 0)  # the new consumer waits for its interval


def test_an_assignment_by_hand_commits_first_if_due():
    """K-OFF-04."""
    desk = Desk(auto_commit=True).leaders().coordinator()
    desk.do(Assign(desk.now, (T0,)))
    desk.do(Seek(desk.now, T0, 6))
    desk.do(Assign(desk.now, (T0, T1)))
    assert commits(desk) == []
    desk.now += 5_000
    desk.do(Assign(desk.now, (T1,)))
    (body,) = commits(desk)
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
    desk = Desk(client, auto_commit=True).reading(T0, T1, at=3)
    desk.do(CommitWanted(desk.now, commit_id=77, partitions=frozenset({T1})))
    (body,) = commits(desk)
    assert [(each.partition_index, each.committed_offset) for each in body.topics[0].partitions] == [(1, 3)]
    desk.commit_answer(error)
    result = classic if client is Client.CLASSIC else new
    events = [each.event for each in desk.commands if isinstance(each, TellMember)]
    told = [each.result.value for each in events if isinstance(each, CommitFinished)]
    assert told == ([] if result is None else [result])


def test_a_commit_before_a_reconciliation_is_tried_again():
    """It is retried with the positions at its failure, whatever the member does meanwhile (N-REC-04)."""
    desk = Desk(Client.CONSUMER, auto_commit=True).reading(T0, at=3)
    desk.do(CommitWanted(desk.now, commit_id=7, partitions=frozenset({T0})))
    desk.do(Seek(desk.now, T0, 9))
    desk.commit_answer(_E.COORDINATOR_LOAD_IN_PROGRESS)
    desk.do(Seek(desk.now, T0, 12))
    desk.wait(120)
    (body,) = commits(desk)
    assert body.topics[0].partitions[0].committed_offset == 9
    desk.commit_answer()
    assert desk.only(TellMember).event == CommitFinished(desk.now, commit_id=7, result=CommitResult.DONE)


def test_a_commit_before_a_reconciliation_is_given_up_in_the_end():
    """After a rebalance timeout (N-REC-04)."""
    desk = Desk(Client.CONSUMER, auto_commit=True, max_poll_interval_ms=300).reading(T0, at=3)
    desk.do(CommitWanted(desk.now, commit_id=7, partitions=frozenset({T0})))
    desk.now += 250
    desk.commit_answer(_E.COORDINATOR_LOAD_IN_PROGRESS)
    desk.wait(120)
    assert desk.only(TellMember).event == CommitFinished(1_300, commit_id=7, result=CommitResult.FAILED)


def test_an_automatic_commit_waits_for_the_one_before_a_reconciliation():
    """But it does not wait once that commit is to be retried (K-OFF-19)."""
    desk = Desk(Client.CONSUMER, auto_commit=True, auto_commit_interval_ms=500).reading(T0, at=3)
    desk.do(CommitWanted(desk.now, commit_id=7, partitions=frozenset({T0})))
    desk.now += 600
    desk.poll()
    assert len(commits(desk)) == 1
    desk.commit_answer(_E.COORDINATOR_LOAD_IN_PROGRESS)
    desk.poll()
    assert len(commits(desk)) == 1


def test_a_member_without_positions_continues_immediately():
    desk = Desk(auto_commit=True).leaders().coordinator().member(T0)
    desk.do(CommitWanted(desk.now, commit_id=7, partitions=frozenset({T0})))
    assert desk.only(TellMember).event == CommitFinished(desk.now, commit_id=7, result=CommitResult.DONE)


def test_a_classic_member_does_not_wait_for_a_coordinator():
    desk = Desk(auto_commit=True).reading(T0)
    desk.do(CoordinatorLost(desk.now))
    desk.do(CommitWanted(desk.now, commit_id=7, partitions=frozenset({T0})))
    assert desk.only(TellMember).event == CommitFinished(desk.now, commit_id=7, result=CommitResult.RETRIABLE)


def test_a_close_with_nothing_to_commit_waits_for_asynchronous_commits():
    """A close with a commit of its member waits only for commits that were not sent yet (K-LEAVE-04, steps 1 and 2)."""
    desk = asynchronous(Desk(auto_commit=True).reading(T0), 1)
    desk.do(CommitWanted(desk.now, commit_id=7, partitions=frozenset(), closing=True))
    desk.none(TellMember)
    desk.commit_answer()
    desk.only(TellMember)
    assert told(desk) == [(1, None)]

    desk = asynchronous(Desk(auto_commit=True).reading(T0), 1)
    desk.do(CommitWanted(desk.now, commit_id=7, partitions=frozenset({T0}), closing=True))
    first, second = (each for each in desk.sent if isinstance(each.body, OffsetCommitRequest))
    desk.sent = [second, first]
    desk.commit_answer()
    desk.only(TellMember)
    assert told(desk) == []


def test_the_members_close_commits_nothing_for_a_reader_that_assigned_manually():
    """The reader's own close does that (K-LEAVE-04)."""
    desk = Desk(auto_commit=True).leaders().coordinator()
    desk.do(Assign(desk.now, (T0,)))
    desk.do(CommitWanted(desk.now, commit_id=7, partitions=frozenset(), closing=True))
    desk.only(TellMember)
    desk.unasked(OffsetCommitRequest)


# --- close and questions ---


def test_a_close_by_hand_commits():
    """K-LEAVE-04."""
    desk = Desk(auto_commit=True).leaders().coordinator()
    desk.do(Assign(desk.now, (T0,)))
    desk.do(Seek(desk.now, T0, 6))
    desk.do(Close(desk.now))
    desk.none(CallReturned)
    assert len(commits(desk)) == 1
    desk.commit_answer()
    assert desk.returned() == CallReturned()


@pytest.mark.parametrize("client", JAVA)
def test_a_close_waits_for_callbacks_up_to_its_timeout(client):
    """Failures are not thrown (N-CLOSE-01)."""
    desk = asynchronous(Desk(client).reading(T0), 1)
    desk.do(Close(desk.now))
    desk.do(Wakeup(desk.now))
    desk.none(CallReturned)
    desk.commit_answer(_E.NOT_COORDINATOR)
    assert desk.returned() == CallReturned()
    assert told(desk) == [(1, _K.RETRIABLE_COMMIT)]
    desk = asynchronous(Desk(client).reading(T0), 1)
    desk.do(Close(desk.now))
    desk.wait(30_000)
    assert desk.returned() == CallReturned()


@pytest.mark.parametrize("client", JAVA)
def test_committed(client):
    desk = Desk(client).reading(T0)
    desk.do(AskCommitted(desk.now, (T0, T1)))
    desk.none(CallReturned)
    desk.committed({T0: 4}, epoch=2)
    assert desk.returned().value == ((T0, OffsetAndMetadata(4, 2)), (T1, None))
    desk.do(AskCommitted(desk.now, ()))
    assert desk.returned().value == ()
    desk.do(AskCommitted(desk.now, (T0,), timeout_ms=150))
    desk.committed({}, partition=_E.UNSTABLE_OFFSET_COMMIT)
    desk.wait(100)
    desk.asked(OffsetFetchRequest)
    desk.wait(50)
    assert desk.returned().problem.kind is _K.TIMEOUT


@pytest.mark.parametrize("client", JAVA)
def test_position_waits_until_there_is_one(client):
    desk = Desk(client).leaders().coordinator().member(T0)
    desk.do(AskPosition(desk.now, T0))
    desk.none(CallReturned)
    desk.committed({T0: 4})
    assert desk.returned().value == 4
    desk.do(AskPosition(desk.now, T0))
    assert desk.returned().value == 4
    with pytest.raises(Refused, match="t-1 is not assigned"):
        desk.do(AskPosition(desk.now, T1))


def test_a_handed_out_record_is_consumed():
    """K-OFF-05."""
    desk = Desk().reading(T0)
    desk.fetched(FetchedPartition(T0, records=records(0, 3)))
    desk.poll()
    (body,) = commits(sync(desk, None))
    assert body.topics[0].partitions[0].committed_offset == 4


def test_a_connection_that_is_lost_late_fails_its_requests():
    """The new consumer keeps the connection when a broker answers that it is not the coordinator; when the connection
    breaks, no request is answered (K-ERR-13)."""
    desk = asynchronous(asynchronous(Desk(Client.CONSUMER).reading(T0), 1), 2)
    sync(desk, timeout_ms=60_000)
    desk.sent.reverse()
    desk.commit_answer(_E.COORDINATOR_NOT_AVAILABLE)
    assert told(desk) == []
    desk.lose(OffsetCommitRequest)
    assert told(desk) == [(1, _K.RETRIABLE_COMMIT), (2, _K.RETRIABLE_COMMIT)]


def test_a_fence_while_another_commit_waits_throws_and_forgets_the_coordinator():
    """Both happen in one step (K-OFF-11, K-OFF-20)."""
    desk = asynchronous(Desk().reading(T0), 1)
    sync(desk)
    desk.commit_answer(_E.FENCED_INSTANCE_ID)
    desk.none(CallReturned)
    desk.commit_answer(_E.NOT_COORDINATOR)
    assert desk.returned().problem.kind is _K.FENCED_INSTANCE
    assert desk.reader.coordinator.node is None
    assert desk.reader.waiting is None


def test_a_fenced_reader_commits_nothing_in_a_close():
    """K-OFF-20, K-LEAVE-04."""
    desk = asynchronous(Desk(auto_commit=True).reading(T0), 1)
    desk.commit_answer(_E.FENCED_INSTANCE_ID)
    desk.do(CommitWanted(desk.now, commit_id=7, partitions=frozenset({T0}), closing=True))
    assert desk.only(TellMember).event == CommitFinished(desk.now, commit_id=7, result=CommitResult.FAILED)
    assert commits(desk) == []
    assert told(desk) == []


def closing_without_coordinator(**more):
    """Return a closing reader in which a commit of an offset and an empty commit wait for a coordinator."""
    desk = Desk(**more).reading(T0)
    desk.do(CoordinatorLost(desk.now))
    asynchronous(desk, 1)
    desk.do(CommitAsync(desk.now, (), 2))
    desk.do(Close(desk.now))
    return desk


def test_a_close_looks_for_a_coordinator_though_the_commits_have_failed():
    """Their callbacks run when a coordinator is found (K-LEAVE-04, step 2)."""
    desk = closing_without_coordinator()
    desk.do(LookupFailed(desk.now, None))
    desk.none(CallReturned)
    assert told(desk) == []
    desk.wait(100)
    desk.only(FindCoordinator)
    desk.coordinator()
    assert told(desk) == [(1, _K.RETRIABLE_COMMIT), (2, None)]
    desk.returned()


def test_a_close_that_finds_a_coordinator_sends_the_waiting_commits():
    """Callbacks of commits that are finished by then run (K-LEAVE-04)."""
    desk = Desk().reading(T0)
    desk.do(CoordinatorLost(desk.now))
    desk.do(CommitAsync(desk.now, (), 1))
    asynchronous(desk, 2)
    desk.do(Close(desk.now))
    desk.coordinator()
    assert told(desk) == [(1, None)]
    desk.none(CallReturned)
    desk.commit_answer()
    desk.returned()


def test_a_close_gives_up_after_a_permanent_look_up_error_or_its_timeout():
    """K-LEAVE-04, K-FIND-01."""
    for profile, calls in ((KAFKA_4_4, []), (INTENDED, [1, 2])):
        desk = closing_without_coordinator(profile=profile)
        desk.do(LookupFailed(desk.now, _E.GROUP_AUTHORIZATION_FAILED))
        assert desk.returned().problem.kind is _K.KAFKA
        assert [number for number, _ in told(desk)] == calls
    desk = closing_without_coordinator()
    desk.do(LookupFailed(desk.now, None))
    desk.wait(30_000)
    desk.returned()
    assert [number for number, _ in told(desk)] == [1, 2]


def test_a_reader_without_partitions_closes_like_a_manual_assignment():
    """The close commits nothing, but runs callbacks (K-LEAVE-04)."""
    desk = asynchronous(Desk(auto_commit=True).reading(T0), 1)
    desk.commit_answer()
    desk.do(Unsubscribe(desk.now))
    desk.do(MembershipChanged(desk.now, Membership()))
    assert told(desk) == []
    desk.do(Close(desk.now))
    assert told(desk) == [(1, None)]
    desk.returned()


def test_a_close_with_nothing_to_commit_does_not_wait_twice():
    """A commit that got its coordinator during the close is awaited; Kafka does not run its callback (K-LEAVE-04)."""
    for profile, calls in ((KAFKA_4_4, []), (INTENDED, [(1, None)])):
        desk = Desk(auto_commit=True, profile=profile).leaders()
        desk.do(Assign(desk.now, (T0,)))
        asynchronous(desk, 1)
        desk.do(Close(desk.now))
        desk.coordinator()
        desk.none(CallReturned)
        desk.commit_answer()
        desk.returned()
        assert told(desk) == calls


def test_an_assignment_that_throws_has_dropped_the_fetched_records_of_others():
    """The next poll hands out none of them (K-SUB-02, K-FIND-01)."""
    desk = Desk(auto_commit=True).leaders()
    desk.do(Assign(desk.now, (T0,)))
    desk.do(Seek(desk.now, T0, 1))
    desk.poll()
    desk.fetched(FetchedPartition(T0, records=records(1, 2), high_watermark=3))
    asynchronous(desk, 1)
    desk.do(LookupFailed(desk.now, _E.GROUP_AUTHORIZATION_FAILED))
    desk.now += 5_000
    desk.do(Assign(desk.now, (T1,)))
    assert desk.returned().problem.error is _E.GROUP_AUTHORIZATION_FAILED
    assert desk.offsets() == []


def test_a_close_with_nothing_to_commit_waits_for_the_commit_before_a_rejoin():
    """K-LEAVE-04, K-OFF-21."""
    desk = Desk(auto_commit=True).reading(T0, at=3)
    desk.do(CommitWanted(desk.now, commit_id=6, partitions=frozenset({T0})))
    desk.do(CommitWanted(desk.now, commit_id=7, partitions=frozenset(), closing=True))
    desk.none(TellMember)
    desk.commit_answer()
    assert [each.event.commit_id for each in desk.commands if isinstance(each, TellMember)] == [6, 7]


@pytest.mark.parametrize("client", JAVA)
def test_a_member_that_hears_of_another_coordinator(client):
    """The old consumer drops the connection, and a call that waits for asynchronous commits first looks for a
    coordinator; requests of the new consumer may still be answered (K-OFF-11, K-OFF-21)."""
    desk = asynchronous(Desk(client).reading(T0), 1)
    sync(desk, (), timeout_ms=10_000)
    desk.do(CoordinatorLost(desk.now, moved=True))
    desk.none(CallReturned)
    if client is Client.CONSUMER:
        desk.commit_answer()
    else:
        desk.coordinator()
    desk.returned()
    assert told(desk) == [(1, None if client is Client.CONSUMER else _K.RETRIABLE_COMMIT)]


def test_finished_commits_call_back_before_an_empty_commit_looks_for_a_coordinator():
    """The callback of the other sent commit runs when a coordinator is found (K-OFF-18, K-OFF-21)."""
    desk = asynchronous(asynchronous(Desk(profile=KAFKA_4_4).reading(T0), 1), 2)
    sync(desk, (), timeout_ms=10_000)
    desk.sent = [each for each in desk.sent if isinstance(each.body, OffsetCommitRequest)][::-1]
    desk.commit_answer(_E.NOT_COORDINATOR)
    assert told(desk) == [(2, _K.RETRIABLE_COMMIT)]
    desk.none(CallReturned)
    desk.coordinator()
    assert told(desk) == [(2, _K.RETRIABLE_COMMIT), (1, _K.RETRIABLE_COMMIT)]
    desk.returned()
