"""In random traces each rebalance has exactly one cause, no cause is reported without a rebalance, and each cause fits.

The test finds the rebalances itself, from the groups before and after a step, and checks that the event of the step can
have had that cause. It does not use the code that reports causes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from fencepost import coordinator
from fencepost.coordinator.classic.group import ClassicGroup
from fencepost.coordinator.consumer.group import ConsumerGroup, new_group
from fencepost.coordinator.kernel.state import CoordinatorState, Group
from fencepost.coordinator.mixed.upgrade import left_off
from fencepost.functions import KafkaFunctions
from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatRequest
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import AppendFailed, Event, Load, Request, TaskDone, TimerFired, TimerKind
from fencepost.protocol.messages import JoinGroupRequest, LeaveGroupRequest
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED, KAFKA_4_4, PROFILES
from fencepost.protocol.rebalances import GroupType, RebalanceEnded, RebalanceReason, RebalanceStarted
from fencepost.protocol.view import GroupState
from fencepost_conformance.generate.generator import generate
from fencepost_conformance.generate.plan import GroupProtocol
from fencepost_conformance.targets.ids import MemberIds
from fencepost_conformance.targets.java_order import JavaOrder, WithoutHyphens

STEPS = 120
R = RebalanceReason
TIMERS = {
    R.SESSION_EXPIRED: {TimerKind.SESSION, TimerKind.CONSUMER_SESSION},
    R.REBALANCE_TIMEOUT: {TimerKind.CONSUMER_REBALANCE},
    R.JOIN_TIMEOUT: {TimerKind.CONSUMER_JOIN},
    R.SYNC_TIMEOUT: {TimerKind.SYNC, TimerKind.CONSUMER_SYNC},
}
AT_REST = {"Stable", "Empty"}


class Done(NamedTuple):
    """One step: its event, the groups before and after it, and its reports."""

    event: Event
    before: CoordinatorState
    after: CoordinatorState
    started: list[RebalanceStarted]
    ended: list[RebalanceEnded]


def steps_of(seed: int, profile: Profile, protocol: GroupProtocol) -> Iterator[Done]:
    trace = generate(seed, profile, STEPS, protocol)
    state = coordinator.initial_state(trace.settings, profile, functions=KafkaFunctions())
    ids = JavaOrder(MemberIds())
    choices = WithoutHyphens(ids) if profile.draws_no_hyphens else ids
    for event in trace.events[: len(trace.observations)]:
        after, outcome = coordinator.step(state, event, choices)
        started = [each for each in outcome.rebalances if isinstance(each, RebalanceStarted)]
        ended = [each for each in outcome.rebalances if isinstance(each, RebalanceEnded)]
        yield Done(event, state, after, started, ended)
        state = after


def rebalances(state: CoordinatorState, before: Group | None, after: Group) -> bool:
    """Whether a group went from one generation or epoch towards the next. ``state`` shows where a new group begins."""
    if isinstance(after, ConsumerGroup):
        if before is None:
            return after.epoch > new_group(state.rules, after.group_id, 0).epoch
        if isinstance(before, ClassicGroup) and before.state is GroupState.EMPTY:
            return after.epoch > new_group(state.rules, after.group_id, 0, left_off(state.rules, before)).epoch
        return after.epoch > (before.epoch if isinstance(before, ConsumerGroup) else before.generation)
    preparing = after.state is GroupState.PREPARING_REBALANCE
    if not isinstance(before, ClassicGroup):
        return preparing or after.generation > (before.epoch if before else 0)
    prepared = before.state is GroupState.PREPARING_REBALANCE
    return not prepared and (preparing or after.generation > before.generation)


def stays(done: Done, name: str) -> bool:
    """Whether the same group existed before the step."""
    before = done.before.groups.get(name)
    return before is not None and before.incarnation == done.after.groups[name].incarnation


def expected(done: Done) -> set[str]:
    """Return the groups that rebalance in this step. A load starts no rebalance of a group that may have so many
    members, and a failed append none of a group that is restored unchanged."""
    groups = done.after.groups
    if isinstance(done.event, Load):
        loaded = [name for name in groups if not stays(done, name)]
        return {name for name in loaded if groups[name].state is GroupState.PREPARING_REBALANCE}
    named = [name for name in groups if not isinstance(done.event, AppendFailed) or stays(done, name)]
    return {name for name in named if rebalances(done.before, done.before.groups.get(name), groups[name])}


def fits(done: Done, report: RebalanceStarted) -> bool:
    """Whether the event of a step can have had this cause, with the effect on the group that the cause describes."""
    event, cause, name = done.event, report.cause, report.group_id
    before: Any = done.before.groups.get(name)
    after: Any = done.after.groups[name]
    assert isinstance(after, ClassicGroup if report.group_type is GroupType.CLASSIC else ConsumerGroup)
    was, now = {} if before is None else before.members, after.members
    ids = {each.member_id for each in cause.members}
    match cause.reason, event:
        case ((R.SESSION_EXPIRED | R.REBALANCE_TIMEOUT | R.JOIN_TIMEOUT | R.SYNC_TIMEOUT), TimerFired(key=key)):
            own = ids == {key.member_id} or key.kind is TimerKind.SYNC
            return key.kind in TIMERS[cause.reason] and key.group_id == name and own and not now.keys() & ids
        case R.OVER_CAPACITY, Load():
            return len(now) > done.after.settings.group_max_size == cause.capacity
        case R.ASSIGNMENT_FAILED, AppendFailed(error=error):
            return cause.error is error
        case R.ASSIGNMENT_FAILED, TimerFired(key=key):
            return key.kind is TimerKind.OPERATION and cause.error is ErrorCode.REQUEST_TIMED_OUT
        case R.REGEX_CHANGED, TaskDone(key=key):
            return key.group_id == name and bool(cause.topics)
        case R.TOPICS_CHANGED, Request() | TaskDone():
            return not ids
        case R.MEMBER_LEFT, Request(body=LeaveGroupRequest()):
            return bool(ids) and not now.keys() & ids
        case R.MEMBER_LEFT, Request(body=ConsumerGroupHeartbeatRequest() as beat):
            return beat.member_epoch < 0 and len(ids) == 1 and ids <= was.keys() - now.keys()
        case _, Request(body=JoinGroupRequest() | ConsumerGroupHeartbeatRequest() as body):
            (member,) = cause.members
            return body.member_id in ("", member.member_id) and _fits_member(
                report, before, was.get(member.member_id), now[member.member_id]
            )
    return False


def _fits_member(report: RebalanceStarted, before: Any, was: Any, now: Any) -> bool:
    cause, classic = report.cause, report.group_type is GroupType.CLASSIC
    same = type(was) is type(now) and (
        was.protocols == now.protocols if classic else (was.topic_names, was.regex) == (now.topic_names, now.regex)
    )
    match cause.reason:
        case R.MEMBER_JOINED:
            return was is None and cause.replaced == ""
        case R.STATIC_MEMBER_REPLACED:
            return cause.replaced in before.members and now.instance_id is not None
        case R.LEADER_REJOINED:
            return same and before.leader == now.member_id and before.state is GroupState.STABLE
        case R.MEMBER_UPDATED:
            return was is not None and not same
        case R.ASSIGNOR_CHANGED:
            return same and not classic
    return False


def ends(done: Done) -> bool:
    """Whether the step reports the end of a rebalance, and how it ended, for each group that becomes stable."""
    states = {each.group_id: each.state for each in done.ended if each.state is not None}
    groups = {name: group for name, group in done.after.groups.items() if stays(done, name)}
    undone = isinstance(done.event, AppendFailed)
    rests = [
        name
        for name, group in groups.items()
        if done.before.groups[name].state.value not in AT_REST and group.state.value in AT_REST and not undone
    ]
    return states.keys() >= set(rests) and all(done.after.groups[name].state is state for name, state in states.items())


def check(seeds: range, profile: Profile, protocol: GroupProtocol) -> Counter[RebalanceReason]:
    causes: Counter[RebalanceReason] = Counter()
    for seed in seeds:
        loaded: set[int] = set()
        for place, done in enumerate(steps_of(seed, profile, protocol)):
            where = (profile.name, protocol, seed, place, done.event, done.started, done.ended)
            if isinstance(done.event, Load):
                loaded |= {group.incarnation for group in done.after.groups.values()}
            assert sorted(each.group_id for each in done.started) == sorted(expected(done)), where
            for report in done.started:
                assert fits(done, report), where
                if report.cause.reason is R.TOPICS_CHANGED and profile is INTENDED:
                    assert report.cause.topics or done.after.groups[report.group_id].incarnation in loaded, where
                causes[report.cause.reason] += 1
            assert ends(done), where
    return causes


@pytest.mark.parametrize("protocol", GroupProtocol)
@pytest.mark.parametrize(
    ("profile", "seeds"),
    [(INTENDED, range(40)), (KAFKA_4_4, range(50, 70)), (PROFILES["kafka-4.0"], range(108, 114))],
    ids=["intended", "kafka-4.4", "kafka-4.0"],
)
def test_each_rebalance_has_one_cause_that_fits(profile: Profile, seeds: range, protocol: GroupProtocol) -> None:
    assert len(check(seeds, profile, protocol)) >= 4


@pytest.mark.all
@pytest.mark.parametrize("profile", PROFILES.values(), ids=list(PROFILES))
def test_each_rebalance_has_one_cause_that_fits_in_many_traces(profile: Profile) -> None:
    causes = sum((check(range(100, 250), profile, protocol) for protocol in GroupProtocol), Counter())
    silent = {R.ASSIGNOR_CHANGED} if profile.old_vote_keeps_epoch else set()  # V-121
    assert set(causes) == set(RebalanceReason) - silent
