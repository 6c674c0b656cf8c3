"""Kafka's faults of the runtime: a search in the model finds each, as in ``test_coordinator_faults``.

The faults concern timers, late or lost writes, loads, and the loss of the partition.
"""

from __future__ import annotations

from typing import Final

import pytest
from classic_moves import (
    I1,
    I2,
    IMPOSSIBLE,
    OF_U,
    OTHER,
    PLAIN,
    ROUND,
    SHORT,
    TIMED_OUT,
    joins,
    leaves,
    stable_group,
    syncs,
)
from shortest import Ask, Grow, Lose, Play, Search, Whole, Win, join, read_events
from test_coordinator_faults import joining_member_learns_its_error

from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import TimerKind
from fencepost.protocol.records import GroupMetadataKey, GroupMetadataValue
from fencepost_conformance.targets.ids import member_id
from fencepost_model.classic.load import load_groups
from fencepost_model.machines import EMPTY

_OF_CLASSIC_GROUPS: Final = (TimerKind.JOIN, TimerKind.SYNC, TimerKind.SESSION)


def every_member_has_a_session_timer(search: Search, play: Play) -> bool:
    """Every member of every consumer group has a session timer (M-TMR-01, LIV-08)."""
    watched = {(key.group_id, key.member_id) for key, _ in play.armed if key.kind is TimerKind.CONSUMER_SESSION}
    groups = ((slot.group_id, play.state.consumer_group(slot.group_id)) for slot in play.state.slots)
    return all((name, each.member_id) in watched for name, group in groups if group for each in group.members)


def what_is_written_can_be_read(search: Search, play: Play) -> bool:
    """The log of the partition can be loaded, whatever requests clients send (INV-REPLAY-02)."""
    return load_groups(search.model.variant, play.log) is not None


def memory_matches_the_log(search: Search, play: Play) -> bool:
    """A replicated classic group has the members and assignments of its last record (INV-REPLAY-01, F-SURV-05).

    This holds in the generation of that record, except for members that have left since.
    """
    for name, value in _last_records(play):
        group = play.state.group(name)
        if play.open or group is None or group.generation != value.generation:
            continue
        live = {member.instance or member.member_id: member for member in group.members}
        for logged in value.members:
            member = live.get(logged.group_instance_id or logged.member_id)
            if member is not None and (member.member_id, member.assignment) != (logged.member_id, logged.assignment):
                return False
    return True


def _last_records(play: Play) -> list[tuple[str, GroupMetadataValue]]:
    rows = {record.key.group: record.value for record in play.log if isinstance(record.key, GroupMetadataKey)}
    return [(name, value) for name, value in rows.items() if isinstance(value, GroupMetadataValue)]


def awaiting_member_has_an_open_request(search: Search, play: Play) -> bool:
    """A member that counts as parked has a request without an answer (C-JOIN-70)."""
    groups = (play.state.group(slot.group_id) for slot in play.state.slots)
    parked = [number for group in groups if group for each in group.members for number in (each.join, each.sync)]
    return all(
        number in range(1, play.asked + 1) and number not in play.answered for number in parked if number is not None
    )


def nobody_waits_in_vain(search: Search, play: Play) -> bool:
    """Each request is answered, or known to a group or operation, or was sent again (LIV-01, LIV-03)."""
    groups = (play.state.group(slot.group_id) for slot in play.state.slots)
    parked = {number for group in groups if group for each in group.members for number in (each.join, each.sync)}
    known = play.answered | parked | {operation.id for operation in play.state.operations}
    asked = (move.body for move in play.moves if isinstance(move, Ask))
    newest = {(type(body), getattr(body, "member_id", "")): number for number, body in enumerate(asked, 1)}
    return all(number in known for number in newest.values())


def empty_group_matches_the_log(search: Search, play: Play) -> bool:
    """An empty group has the generation that the log says (INV-REPLAY-01, C-ST-27)."""
    rows = dict(_last_records(play))
    groups = ((slot.group_id, play.state.group(slot.group_id)) for slot in play.state.slots)
    return all(
        name in rows and rows[name].generation == group.generation
        for name, group in groups
        if group is not None and group.state == EMPTY
    )


def only_existing_groups_have_timers(search: Search, play: Play) -> bool:
    """No move leaves a new timer for a classic group that does not exist afterwards (X-UP-16, C-TMR-12)."""
    before = set(search.again(play.moves[:-1]).armed)
    return all(
        play.state.group(key.group_id) is not None
        for key, at in play.armed
        if key.kind in _OF_CLASSIC_GROUPS and (key, at) not in before
    )


def a_refused_consumer_disturbs_nobody(search: Search, play: Play) -> bool:
    """A request for an upgrade that fails because of the members' bytes causes no other answer (X-UP-06)."""
    answer = play.answer()
    refused = isinstance(answer, ConsumerGroupHeartbeatResponse) and answer.error_code is ErrorCode.GROUP_ID_NOT_FOUND
    return not refused or len(play.answers) == 1


def partition_loss_fences_no_member(search: Search, play: Play) -> bool:
    """When the partition is lost, waiting requests are answered NOT_COORDINATOR (F-UNLOAD-01)."""
    errors = [getattr(body, "error_code", None) for _, body in play.answers]
    return not isinstance(play.moves[-1], Lose) or all(error is ErrorCode.NOT_COORDINATOR for error in errors)


def topic_change_refreshes_subscribed_groups_only(search: Search, play: Play) -> bool:
    """A change of topic t does not expire the metadata of a group without subscribers to t (X-DOWN-30, M-META-03)."""
    if play.moves[-1] != Grow():
        return True
    before, now = (each.consumer_group("g") for each in (search.again(play.moves[:-1]).state, play.state))
    if before is None or now is None or any("t" in member.names for member in now.members):
        return True
    return before.refresh == now.refresh


FAULTS = (
    Whole(  # M-TMR-01
        "fault_timer_keys_collide",
        "timer-key-collision",
        (Ask(join("0-x")), Ask(join("x", group="g-0"))),
        every_member_has_a_session_timer,
        2,
        shown=(Ask(ConsumerGroupHeartbeatRequest("g-0", member_id="x", member_epoch=-1)),),
    ),
    Whole(  # F-LOAD-02
        "fault_bad_subscription_is_thrown",
        "../shortest/unloadable-log",
        (joins("", instance="i1"), joins("", IMPOSSIBLE, instance="i1"), ROUND, syncs(I1, 1, 0)),
        what_is_written_can_be_read,
        4,
        shown=(Lose(), Win(), syncs(I1, 1, 0)),
    ),
    Whole(  # F-RT-09, F-SURV-05
        "fault_timeout_undoes_memory",
        "../shortest/failed-but-written",
        (joins("", instance="i1"), ROUND, syncs(I1, 1, 0), syncs(I1, 1, 0)._replace(late=True)),
        memory_matches_the_log,
        3,
        shown=(Lose(), Win(), syncs(I1, 1)),
    ),
    Whole(  # F-RT-13
        "fault_parked_fail_early",
        "../shortest/answered-too-early",
        (joins("")._replace(open=True), joins(member_id("client", 0)), TIMED_OUT),
        awaiting_member_has_an_open_request,
        4,
        shown=(ROUND,),
    ),
    Whole(  # C-JOIN-16 (ii)
        "fault_parked_fail_early",
        "../shortest/first-member-answered-too-early",
        (joins("", instance="i1")._replace(late=True), ROUND),
        awaiting_member_has_an_open_request,
        1,
        shown=(ROUND,),
    ),
    Whole(  # F-RT-08, C-TMR-12
        "fault_timers_outlive_reverted_group",
        "../shortest/stale-timer-bumps-generation",
        (joins("", instance="i1")._replace(fails=True), joins(""), ROUND),
        empty_group_matches_the_log,
        3,
    ),
    Whole(  # F-UNLOAD-01, C-LEAVE-24
        "fault_leave_forgets_parked_sync",
        "../shortest/sync-of-removed-member",
        (joins("", instance="i1"), joins("", instance="i2"), ROUND, syncs(I2, 1), leaves("i2")),
        nobody_waits_in_vain,
        6,
        shown=(Lose(),),
    ),
    Whole(  # F-UNLOAD-01, C-STATIC-06
        "fault_timeout_undoes_memory",
        "../shortest/fenced-on-partition-loss",
        (
            joins("", instance="i1")._replace(open=True),
            joins("two", PLAIN, OTHER, instance="i2"),
            syncs(member_id("i1", 0), 2),
            Lose(),
        ),
        partition_loss_fences_no_member,
        4,
        first=stable_group(),
    ),
    Whole(  # X-UP-16
        "fault_timeout_undoes_memory",
        "join-timer-after-upgrade",
        (joins("", instance="i1"), ROUND, syncs(I1, 1, 0)._replace(open=True), Ask(join("m1")), TIMED_OUT),
        only_existing_groups_have_timers,
        5,
    ),
    Whole(  # X-UP-06
        "fault_upgrade_answers_before_checks",
        "upgrade-with-unreadable-subscription",
        (joins("", SHORT, instance="i1"), ROUND, Ask(join("m1")), joins("", instance="i2")),
        a_refused_consumer_disturbs_nobody,
        4,
    ),
    Whole(  # X-DOWN-20
        "fault_relabelled_instance_stays",
        "downgrade-by-former-instance-id",
        (Ask(join("m1", instance="i1")), Ask(join("m1", instance="i2")), joins("", instance="i1")),
        joining_member_learns_its_error,
        3,
    ),
    Whole(  # X-DOWN-30
        "fault_downgrade_leaves_topics",
        "unsubscribed-topic-still-watched",
        (Ask(join("m1", instance="i1")), joins("", OF_U, instance="i1"), ROUND, Ask(join("m2", ("u",))), Grow()),
        topic_change_refreshes_subscribed_groups_only,
        5,
    ),
)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.trace)
def test_fault_of_the_runtime_is_found(fault: Whole) -> None:
    fault.is_found()


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.trace)
def test_the_trace_of_the_runtime_is_in_the_findings(fault: Whole) -> None:
    """The trace in the findings has these events; other tests compare it with what Kafka did."""
    assert read_events(fault.trace) == (fault.settings, fault.events())
