"""One classic group, input by input: the effect of each switch of a profile."""

from __future__ import annotations

from dataclasses import replace

import pytest
from classic_play import JOIN, RANGE, SYNC, Play, error

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import (
    DeletedGroup,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    JoinGroupRequest,
    LeaveGroupMember,
    LeaveGroupRequest,
    Protocol,
    SyncGroupResponse,
)
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED
from fencepost.protocol.settings import Settings
from fencepost_model.classic import (
    AppendError,
    Arrive,
    Durable,
    Fire,
    GroupModel,
    Lose,
    TimeOut,
)
from fencepost_model.machines import COMPLETING, EMPTY, PREPARING, STABLE

BOTH = pytest.mark.parametrize("faulty", [False, True], ids=["fixed", "kafka"])


def profile(faulty: bool, switch: str) -> Profile:
    """The intended protocol, with or without one of Kafka's faults."""
    return replace(INTENDED, **{switch: faulty})


@BOTH
def test_new_member_added(faulty: bool) -> None:
    """Kafka keeps ``newMemberAdded`` after the delay, so that a later delay is extended without reason (C-JOIN-71)."""
    play = Play(profile(faulty, "fault_new_member_added_survives"), group_initial_rebalance_delay_ms=3_000)
    for member_id in ("a", "b"):
        play.join(new_id=member_id)
        play.join(member_id, rebalance=2_000)
    play.do(Fire(JOIN))
    assert play.group.state == COMPLETING
    assert play.group.new_member_added is faulty
    play.leave("b")
    play.leave("a")
    assert play.group.state == EMPTY
    play.join(new_id="c")
    play.join("c", rebalance=20_000)
    play.do(Fire(JOIN))
    assert play.group.state == (PREPARING if faulty else COMPLETING)


@BOTH
def test_refusal_of_the_last_one_missing(faulty: bool) -> None:
    """Kafka refuses the last member that is missing, and does not end the join phase (C-JOIN-23)."""
    play = Play(profile(faulty, "fault_refusal_leaves_join_phase"), group_max_size=2).stable("a", "b")
    play.join(new_id="p")  # refused: the group is full and Stable
    smaller = GroupModel(Settings(group_initial_rebalance_delay_ms=0, group_max_size=1), play.model.profile)
    play.model = smaller
    play.join("a")
    assert play.group.state == PREPARING
    assert error(play.join("b")) is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert play.group.state == (PREPARING if faulty else COMPLETING)


@BOTH
def test_returning_static_member_at_capacity(faulty: bool) -> None:
    """Kafka counts a returning static member as new, so that a full group refuses it (C-JOIN-75)."""
    play = Play(profile(faulty, "fault_static_return_counts_as_new"), group_max_size=1).static("s", "i")
    answer = play.join(new_id="s2", instance="i")
    assert error(answer) is (ErrorCode.GROUP_MAX_SIZE_REACHED if faulty else ErrorCode.NONE)


@BOTH
def test_protocol_listed_twice(faulty: bool) -> None:
    """In Kafka the generation is used up, and the group has no join timer (C-JOIN-72)."""
    play = Play(profile(faulty, "fault_duplicate_protocol_accepted"))
    answer = play.join(new_id="a", protocols=RANGE + RANGE, version=3)
    if not faulty:
        assert error(answer) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        return
    play.do(Fire(JOIN))
    assert (play.group.state, play.group.generation) == (PREPARING, 1)
    assert JOIN not in play.state.timers


@BOTH
def test_parked_join_when_earlier_writes_are_late(faulty: bool) -> None:
    """Kafka answers the client with an error and still counts it as joined (C-JOIN-70)."""
    play = Play(profile(faulty, "fault_parked_fail_early"), instant=False)
    play.join(new_id="a")
    play.join("a")
    answers = play.do(TimeOut(2))
    assert [error(body) for body in answers.values()] == ([ErrorCode.COORDINATOR_NOT_AVAILABLE] if faulty else [])
    assert play.member("a").join is not None
    assert (2 in play.do(Fire(JOIN))) is not faulty
    assert [member.member_id for member in play.group.members] == ["a"]


@BOTH
def test_replacement_of_a_member_that_had_not_synced(faulty: bool) -> None:
    """In Kafka a replacement leaves the old id in the pending-sync set (C-STATIC-16)."""
    play = Play(profile(faulty, "fault_replacement_keeps_pending_sync"))
    for member_id, instance in (("a", "i"), ("b", "j")):
        play.join(new_id=member_id, instance=instance)
    while play.state.delay is not None:
        play.do(Fire(JOIN))
    play.sync("a", 1, "a", "b")
    assert play.group.state == STABLE
    play.join(new_id="b2", instance="j")
    assert play.group.pending_sync == ({"b"} if faulty else {"b2"})
    play.sync("b2", 1, instance="j")
    assert (SYNC in play.state.timers) is faulty


@BOTH
def test_second_replacement_while_the_first_is_open(faulty: bool) -> None:
    """If both replacements time out in Kafka, the counts of supported protocols stay wrong (C-STATIC-18)."""
    kafka = replace(INTENDED, fault_timeout_undoes_memory=True, fault_second_replacement_mixes_undo=faulty)
    play = Play(kafka, instant=False).static("s", "i")
    play.join(new_id="s2", instance="i", protocols=(*RANGE, Protocol("other", b"")))
    first = play.asked
    play.join(new_id="s3", instance="i")
    second = play.asked
    play.do(TimeOut(first))
    assert play.group.skew == ((("other", -1),) if faulty else ())
    play.do(TimeOut(second))
    assert [member.member_id for member in play.group.members] == ["s2"]


@BOTH
def test_leave_of_a_member_with_a_parked_sync(faulty: bool) -> None:
    """Kafka never answers the parked SyncGroup of a member that LeaveGroup removes (C-LEAVE-24)."""
    play = Play(profile(faulty, "fault_leave_forgets_parked_sync")).completing("a", "b")
    play.sync("b", 1)
    parked = play.asked
    play.asked += 1
    answers = play.do(Arrive(play.asked, 5, "c", "/h", LeaveGroupRequest("g", (LeaveGroupMember("b"),))))
    assert error(answers.get(parked)) is (None if faulty else ErrorCode.UNKNOWN_MEMBER_ID)
    assert parked not in play.do(Lose())


@BOTH
def test_second_sync_of_the_leader(faulty: bool) -> None:
    """Kafka's memory keeps the first assignment, but its log ends with the last one (C-SYNC-19)."""
    play = Play(profile(faulty, "fault_every_leader_sync_appends"), instant=False).completing("a")
    play.do(Durable(play.state.undurable))
    before = len(play.records)
    play.sync("a", 1, "a")
    play.sync("a", 1)
    assert len(play.records) - before == (2 if faulty else 1)
    answers = play.do(Durable(play.state.undurable))
    assert answers == {
        play.asked: SyncGroupResponse(ErrorCode.NONE, protocol_type="plain", protocol_name="range", assignment=b"a")
    }


@BOTH
def test_timeout_of_the_assignment(faulty: bool) -> None:
    """In Kafka memory and log differ after the timeout; with the fix, memory follows the log (C-SYNC-33, F-RT-09)."""
    play = Play(profile(faulty, "fault_timeout_undoes_memory"), instant=False).completing("a", "b")
    play.do(Durable(play.state.undurable))
    play.sync("b", 1)
    follower = play.asked
    play.sync("a", 1, "a", "b")
    leader = play.asked
    answers = play.do(TimeOut(leader))
    assert error(answers[leader]) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert (follower in answers) is faulty
    answers = play.do(Durable(1))
    assert play.group.state == (PREPARING if faulty else STABLE)
    assert (follower in answers) is not faulty
    assert play.member("a").assignment == (b"" if faulty else b"a")


@BOTH
def test_timeout_of_a_replacement(faulty: bool) -> None:
    """After a timeout Kafka puts the old member back; with the fix the new one stays (C-STATIC-06)."""
    play = Play(profile(faulty, "fault_timeout_undoes_memory"), instant=False).static("s", "i")
    play.join(new_id="s2", instance="i")
    assert error(play.do(TimeOut(play.asked))[play.asked]) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert play.member("s" if faulty else "s2").join is None


@BOTH
def test_the_sync_timer_spares_a_static_member_that_is_joining(faulty: bool) -> None:
    """The sync timer spares the new static member while its own JoinGroup is open (C-STATIC-16, C-SYNC-20)."""
    play = Play(profile(faulty, "fault_replacement_keeps_pending_sync"), instant=False)
    play.newcomer("a")
    play.join(new_id="s", instance="i")
    while play.group.state == PREPARING:
        play.do(Fire(JOIN))
    play.sync("a", 1, "a", "s")
    play.do(Durable(play.state.undurable))
    assert play.group.state == STABLE
    play.join(new_id="s2", instance="i")
    back = play.asked
    assert play.group.pending_sync == {"s" if faulty else "s2"}
    play.do(Fire(SYNC))
    assert (play.group.state, play.member("s2").join) == (PREPARING, back)
    play.join("a")
    assert (play.group.state, play.group.generation) == (COMPLETING, 2)
    play.do(Durable(1))  # C-STATIC-17(iii)
    play.do(Fire(SYNC))
    assert play.group.state == EMPTY


@BOTH
def test_a_lost_partition_and_a_replacement_of_an_earlier_generation(faulty: bool) -> None:
    """Undoing the replacement first would fence a client that no other client replaced (C-STATIC-06, F-UNLOAD-01)."""
    play = Play(profile(faulty, "fault_timeout_undoes_memory"), instant=False).static("s", "i")
    play.join(new_id="s2", instance="i")
    play.join(new_id="a")
    play.join("a")  # the last member that was missing
    assert (play.group.state, play.group.generation) == (COMPLETING, 2)
    play.sync("s2", 2, "s2", instance="i")
    waits = play.asked
    answers = play.do(Lose())
    assert error(answers[waits]) is (ErrorCode.FENCED_INSTANCE_ID if faulty else ErrorCode.NOT_COORDINATOR)


def test_a_lost_partition_answers_a_later_join_of_a_replaced_member() -> None:
    play = Play(instant=False).static("s", "i")
    play.join(new_id="s2", instance="i")
    play.join(new_id="a")
    play.join("a")
    play.sync("a", 2)
    play.join("s2", instance="i", protocols=(Protocol("range", b"y"),))
    waits = play.asked
    assert play.group.state == PREPARING
    assert error(play.do(Lose())[waits]) is ErrorCode.NOT_COORDINATOR


@BOTH
def test_timers_of_a_reverted_group(faulty: bool) -> None:
    """The old delay timer ends a phase of a group that no longer exists, and uses up a generation (C-TMR-12)."""
    play = Play(profile(faulty, "fault_timers_outlive_reverted_group"), instant=False)
    play.join(new_id="s", instance="i")
    answers = play.do(AppendError(ErrorCode.NOT_ENOUGH_REPLICAS))
    assert error(answers[1]) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert play.state.group is None
    assert (JOIN in play.state.timers) is faulty
    if faulty:
        play.join(new_id="a")
        play.do(Fire(JOIN))
        assert (play.group.state, play.group.generation) == (EMPTY, 1)


@BOTH
def test_subscription_that_cannot_be_read(faulty: bool) -> None:
    play = Play(profile(faulty, "fault_bad_subscription_is_thrown"))
    body = JoinGroupRequest(
        "g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id="",
        protocol_type="consumer",
        protocols=(Protocol("range", b"\0\0\x7f\xff\xff\xff"),),
    )
    assert play.ask(body, "a", version=3) is None
    play.do(Fire(JOIN))
    assert (play.group.state, play.group.generation) == ((PREPARING if faulty else COMPLETING), 1)
    assert (JOIN in play.state.timers) is False


@BOTH
def test_deletion_in_two_operations(faulty: bool) -> None:
    """In Kafka the groups to delete are chosen when the earlier writes are done (C-ADM-09)."""
    play = Play(profile(faulty, "fault_deletion_waits_twice"), instant=False)
    play.join(new_id="a")
    play.ask(DeleteGroupsRequest(("g",)), version=2)
    assert (play.state.group is None) is not faulty
    answers = play.do(Durable(1))
    if faulty:
        assert play.state.group is None
        assert play.asked not in answers
        answers = play.do(Durable(1))
    else:
        answers = play.do(Durable(1))
    assert answers[play.asked] == DeleteGroupsResponse((DeletedGroup("g", ErrorCode.NONE),))
