"""The follower accepts what the core and Kafka do, and refuses each false observation at its step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random

import pytest

from fencepost.functions import KafkaFunctions
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Appended, AppendFailed, Load, Reply, Request, TimerFired, TimerKey, TimerKind
from fencepost.protocol.messages import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribeGroupsResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    ListGroupsRequest,
    ListGroupsResponse,
    Protocol,
    RequestBody,
)
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED, KAFKA_4_3, KAFKA_4_4
from fencepost.protocol.settings import Settings
from fencepost.protocol.view import GroupState
from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.generate.generator import Generated, generate
from fencepost_conformance.generate.plan import GroupProtocol
from fencepost_conformance.targets.jvm import harness
from fencepost_conformance.targets.kafka_jvm import KafkaJvm
from fencepost_conformance.traces.observation import Observation
from fencepost_model.classic.coordinator import CoordinatorModel
from fencepost_model.trace import Follower

PROFILES = pytest.mark.parametrize("profile", [INTENDED, KAFKA_4_3, KAFKA_4_4], ids=lambda profile: profile.name)
#: Errors of a target when a trace asks for something impossible; the trace ends there.
IMPOSSIBLE = ("NoSuchTimer", "OffsetBeyondLog", "NothingToAppend")


def follow(trace: Generated, observations: list[Observation], profile: Profile) -> int:
    """Return how many steps were accepted; fail with the verdict at the first refused one."""
    follower = Follower(trace.settings, profile)
    for step, (event, seen) in enumerate(zip(trace.events, observations, strict=False)):
        if seen.error in IMPOSSIBLE:
            return step
        verdict = follower.feed(event, seen)
        assert verdict.ok, f"seed {trace.seed}: {verdict}"
    return len(observations)


def test_the_choice_of_a_leader_branches_once_however_many_members_leave(kept: Callable[..., list[Generated]]) -> None:
    """The choice of a leader branches once, however many members leave together (C-JOIN-76).

    Each of the leaving members might have been leader in between, in ten factorial ways, but no answer shows which.
    """
    (trace,) = kept(GroupProtocol.MIXED, KAFKA_4_3, 7400040599)
    follower = Follower(trace.settings, KAFKA_4_3)
    ways = [len(follower.feed(*each).taken) for each in zip(trace.events, trace.observations, strict=True)]
    assert max(ways) <= 20


@PROFILES
def test_the_model_allows_the_steps_of_the_core(profile: Profile, kept: Callable[..., list[Generated]]) -> None:
    steps = 0
    for trace in kept(GroupProtocol.CLASSIC, profile):
        steps += follow(trace, list(trace.observations), profile)
    for seed in range(40):
        trace = generate(seed, profile, 120)
        steps += follow(trace, list(trace.observations), profile)
    assert steps > 3_000


@pytest.mark.jvm
@pytest.mark.parametrize(("release", "profile"), [("4.3.1", KAFKA_4_3), ("4.4.0", KAFKA_4_4)])
def test_the_model_allows_the_steps_of_kafka(
    release: str, profile: Profile, kept: Callable[..., list[Generated]]
) -> None:
    try:
        harness.command(release)
    except CannotRun as reason:
        pytest.skip(str(reason).splitlines()[0])
    traces = [generate(seed, profile, 120) for seed in range(40)] + kept(GroupProtocol.CLASSIC, profile)
    with KafkaJvm(release) as kafka:
        steps = sum(follow(trace, kafka.run(trace.settings, profile, trace.events), profile) for trace in traces)
    assert steps > 3_000


# ---- what did not happen is refused -------------------------------------------------------------------------------


def _without_reply(seen: Observation, rng: Random) -> Observation | None:
    return replace(seen, replies=seen.replies[1:]) if seen.replies else None


def _other_error(seen: Observation, rng: Random) -> Observation | None:
    if not seen.replies or isinstance(seen.replies[0].body, DescribeGroupsResponse | DeleteGroupsResponse):
        return None
    first = seen.replies[0]
    code = ErrorCode.FENCED_INSTANCE_ID if first.body.error_code is ErrorCode.NONE else ErrorCode.NONE
    return replace(seen, replies=(Reply(first.request_id, replace(first.body, error_code=code)), *seen.replies[1:]))


def _other_generation(seen: Observation, rng: Random) -> Observation | None:
    for at, reply in enumerate(seen.replies):
        if isinstance(reply.body, JoinGroupResponse) and reply.body.error_code is ErrorCode.NONE:
            body = replace(reply.body, generation_id=reply.body.generation_id + 1)
            return replace(seen, replies=(*seen.replies[:at], Reply(reply.request_id, body), *seen.replies[at + 1 :]))
    return None


def _without_record(seen: Observation, rng: Random) -> Observation | None:
    return replace(seen, records=()) if seen.records else None


def _other_record(seen: Observation, rng: Random) -> Observation | None:
    value = seen.records[0].value if seen.records else None
    if value is None:
        return None
    return replace(seen, records=(replace(seen.records[0], value=replace(value, generation=value.generation + 1)),))


def _other_timer(seen: Observation, rng: Random) -> Observation | None:
    set_ = [key for key, deadline in seen.timers.items() if deadline is not None]
    return replace(seen, timers={**seen.timers, rng.choice(set_): 1}) if set_ else None


def _no_timers(seen: Observation, rng: Random) -> Observation | None:
    of_groups = [key for key, deadline in seen.timers.items() if deadline is not None and key.group_id]
    return replace(seen, timers={}) if of_groups else None


def _other_state(seen: Observation, rng: Random) -> Observation | None:
    for name, view in seen.groups.items():
        if view is not None:
            return replace(seen, groups={**seen.groups, name: replace(view, state=GroupState.DEAD)})
    return None


def _no_groups(seen: Observation, rng: Random) -> Observation | None:
    return replace(seen, groups={}) if seen.groups else None


FALSE: list[Callable[[Observation, Random], Observation | None]] = [
    _without_reply,
    _other_error,
    _other_generation,
    _without_record,
    _other_record,
    _other_timer,
    _no_timers,
    _other_state,
    _no_groups,
]


@PROFILES
@pytest.mark.parametrize("falsify", FALSE, ids=lambda falsify: falsify.__name__.strip("_"))
def test_a_false_observation_is_refused_there(
    profile: Profile, falsify: Callable[[Observation, Random], Observation | None]
) -> None:
    tried = 0
    for seed in range(12):
        rng = Random(seed)
        trace = generate(seed, profile, 60)
        follower = Follower(trace.settings, profile)
        for index, (event, seen) in enumerate(zip(trace.events, trace.observations, strict=False)):
            false = falsify(seen, rng)
            if false is not None:
                verdict, _ = follower.accepts(event, false)
                assert not verdict.ok, (seed, index)
                assert verdict.index == index
                assert verdict.alternatives
                tried += 1
            assert follower.feed(event, seen).ok
    assert tried > 20


def test_unobserved_outcomes_are_not_checked() -> None:
    """The follower needs only the answers, as long as each new member id appears in one of them."""

    class Answers:
        records = None
        timers = None
        groups = None
        consumer_groups = None
        tasks = None
        offsets = None
        error = None

        def __init__(self, seen: Observation) -> None:
            self.replies = seen.replies

    for trace in _dynamic_traces():
        follower = Follower(trace.settings, INTENDED)
        for event, seen in zip(trace.events, trace.observations, strict=False):
            assert follower.feed(event, Answers(seen)).ok


def _dynamic_traces() -> Iterator[Generated]:
    """Yield traces in which an answer MEMBER_ID_REQUIRED shows each new id, and no leader is chosen."""
    found = 0
    for seed in range(200):
        trace = generate(seed, INTENDED, 60)
        joins = [
            event
            for event in trace.events
            if isinstance(event, Request) and isinstance(event.body, JoinGroupRequest) and not event.body.member_id
        ]
        if all(join.version >= 4 and join.body.group_instance_id is None for join in joins):  # type: ignore[union-attr]
            found += 1
            yield trace
            if found == 5:
                return
    raise AssertionError("no such traces")


def test_a_timer_that_is_not_due_cannot_fire() -> None:
    settings = Settings()
    follower = Follower(settings, INTENDED)
    assert follower.feed(Load(0, leader_epoch=1, records=()), Observation()).ok
    key = TimerKey(TimerKind.SESSION, "g", "m")
    verdict = follower.feed(TimerFired(5, key), Observation())
    assert "is not armed" in verdict.reason
    request = Request(
        5,
        id=1,
        version=9,
        client_id="c",
        client_host="/h",
        body=JoinGroupRequest(
            "g",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            member_id="",
            protocol_type="consumer",
            protocols=(Protocol("range", b""),),
        ),
    )
    alternatives, _ = follower.accepts(request, Observation())
    step = alternatives.alternatives[0].step
    assert {m.part.split()[0] for m in alternatives.alternatives[0].mismatches} >= {"reply", "records", "group"}
    model_id = next(iter(step.state.slots[0].group.pending_join))  # type: ignore[union-attr]
    seen = Observation(
        step.outcome.records,
        step.outcome.replies,
        {
            TimerKey(TimerKind.SESSION, "g", model_id): 10_005,
            TimerKey(TimerKind.OPERATION, operation=1): 5_005,
        },
        follower.model.views(step.state),
    )
    assert follower.feed(request, seen).ok
    early = follower.feed(TimerFired(10_004, TimerKey(TimerKind.SESSION, "g", model_id)), Observation())
    assert "is due at 10005" in early.reason


def test_a_rejected_observation_names_the_answers_that_would_pass() -> None:
    follower = Follower(Settings(), INTENDED)
    assert follower.feed(Load(0, leader_epoch=1, records=()), Observation()).ok
    beat = Request(
        1, id=1, version=4, client_id="c", client_host="/h", body=HeartbeatRequest("g", generation_id=1, member_id="m")
    )
    verdict = follower.feed(beat, Observation(replies=(Reply(1, HeartbeatResponse(ErrorCode.NONE)),)))
    assert verdict.rules == ("C-HB-05",)
    assert "UNKNOWN_MEMBER_ID" in str(verdict)
    assert follower.index == 1  # the follower does not advance
    assert follower.feed(beat, Observation(replies=(Reply(1, HeartbeatResponse(ErrorCode.UNKNOWN_MEMBER_ID)),))).ok


@pytest.mark.parametrize("faulty", [False, True], ids=["fixed", "kafka"])
def test_a_deletion_that_failed_lists_the_group_twice(faulty: bool) -> None:
    """Kafka lists the group twice until the high watermark moves (C-ADM-05)."""
    model = CoordinatorModel(Settings(), replace(INTENDED, fault_failed_deletion_lists_twice=faulty))
    state = model.initial()
    listed: list[list[int]] = []
    member = JoinGroupRequest(
        "g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id="",
        protocol_type="consumer",
        protocols=(Protocol("range", b""),),
    )
    other = replace(member, group_id="h")

    def ask(number: int, version: int, body: RequestBody) -> Request:
        return Request(0, id=number, version=version, client_id="c", client_host="/h", body=body)

    for event in (
        Load(0, leader_epoch=1, records=()),
        ask(1, 9, member),
        Appended(0, offset=1),
        ask(2, 2, DeleteGroupsRequest(("g",))),
        AppendFailed(0, ErrorCode.KAFKA_STORAGE_ERROR),
        ask(3, 5, ListGroupsRequest()),
        ask(4, 9, other),
        Appended(0, offset=2),
        ask(5, 5, ListGroupsRequest()),
    ):
        steps = model.successors(state, event, "m")
        state = steps[0].state
        lists = [r.body for step in steps for r in step.outcome.replies if isinstance(r.body, ListGroupsResponse)]
        if lists:
            listed.append([[row.group_id for row in body.groups].count("g") for body in lists])
        else:
            assert len(steps) == 1
    assert listed == [[2, 1] if faulty else [1], [1]]  # Kafka may overlook the second one


def test_a_second_join_of_a_returning_member_leaves_the_first_one_an_answer() -> None:
    """The record of the return is not replicated yet, the member joins again, and the partition is lost. So the first
    JoinGroup is answered NOT_COORDINATOR, although the member waits for the second one (F-UNLOAD-01)."""
    made = generate(1_480_638_885, INTENDED, 60, GroupProtocol.CLASSIC, offsets=None)
    follower = Follower(made.settings, INTENDED, KafkaFunctions().matcher)
    for event, seen in zip(made.events, made.observations, strict=True):
        verdict = follower.feed(event, seen)
        assert verdict.ok, verdict
