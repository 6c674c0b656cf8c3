"""E2: every transition of a bounded configuration, on the real core and on the model; likewise for the member."""

from __future__ import annotations

import pytest

from fencepost.member import IllegalEvent, MemberSettings, step
from fencepost.member import events as ev
from fencepost.member.assignors.range import RangeAssignor
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import HeartbeatResponse
from fencepost.protocol.profiles import KAFKA_4_3
from fencepost_conformance.generate.simulate.cooperative import GradualAssignor
from fencepost_conformance.generate.simulate.member_rules import _NEXT
from fencepost_conformance.generate.simulate.pair import Pair
from fencepost_conformance.generate.simulate.pairs import explore_pairs
from fencepost_conformance.generate.simulate.product import Bounds, explore
from fencepost_conformance.run.mutants.catalogue import MUTANTS
from fencepost_conformance.run.mutants.mutant import planted

METADATA = (("t", 2), ("u", 1))


def test_two_ids_and_one_generation_completely():
    explored = explore(Bounds(ids=2, generation=1, depth=60, prompt=True))
    assert explored.problem is None, (explored.trail, explored.problem)
    assert explored.complete
    assert explored.states > 900
    assert explored.transitions > 5_000


@pytest.mark.parametrize(
    "bounds",
    [
        Bounds(ids=3, prompt=True, transitions=12_000),
        Bounds(ids=3, transitions=12_000),
        Bounds(ids=3, static=False, transitions=8_000, max_size=3),
        Bounds(ids=3, prompt=True, profile=KAFKA_4_3, transitions=8_000),
        Bounds(ids=3, profile=KAFKA_4_3, transitions=8_000),
    ],
    ids=["prompt", "slow log", "dynamic", "kafka", "kafka, slow log"],
)
def test_core_and_model_agree(bounds):
    explored = explore(bounds)
    assert explored.problem is None, (explored.trail, explored.problem)
    assert explored.transitions == bounds.transitions
    reached = {
        "joins",
        "uses its id",
        "rejoins",
        "syncs",
        "heartbeats",
        "leaves",
        "timer join",
        "timer heartbeat",
        "moves",
    }
    assert reached <= set(explored.inputs)
    assert {"NONE", "MEMBER_ID_REQUIRED", "UNKNOWN_MEMBER_ID", "REBALANCE_IN_PROGRESS"} <= set(explored.answers)


@pytest.mark.parametrize("ids", [1, 2])
def test_deletions_behind_a_late_write_agree(ids):
    """Several deletions at a time, each of which first waits for the pending write (C-ADM-09)."""
    explored = explore(Bounds(ids=ids, generation=1, static=False, depth=60, profile=KAFKA_4_3, transitions=8_000))
    assert explored.problem is None, (explored.trail, explored.problem)
    assert explored.inputs["is deleted"] > 100
    assert explored.inputs["append fails"] >= 40


@pytest.mark.parametrize(
    ("mutant", "steps"),
    [
        ("pending-cannot-leave", 2),
        ("stable-shortcut-while-completing", 4),
        ("sync-generation-unchecked", 4),
        ("no-sync-timer", 3),
    ],
)
def test_a_fault_is_found_by_a_shortest_run(mutant, steps):
    with planted(MUTANTS[mutant]):
        explored = explore(Bounds(ids=2, prompt=True, depth=60))
    assert explored.problem is not None
    assert len(explored.trail) <= steps + 1, explored.trail


# --- the member ---


@pytest.mark.parametrize("assignor", [RangeAssignor(), GradualAssignor()], ids=["eager", "cooperative"])
@pytest.mark.parametrize("instance", [None, "i"], ids=["dynamic", "static"])
def test_member_and_its_model_agree(assignor, instance):
    settings = MemberSettings("g", assignors=(assignor,), group_instance_id=instance, auto_commit=instance is None)
    explored = explore_pairs(Pair(settings, METADATA), 6_000)
    assert explored.problem is None, (explored.trail, explored.problem)
    assert explored.states > 200


@pytest.mark.parametrize("mutant", ["prepare-not-repeated", "stall-only-resets", "eager-keeps-partitions"])
def test_a_fault_of_the_member_is_found_by_a_shortest_run(mutant):
    with planted(MUTANTS[mutant]):
        explored = explore_pairs(Pair(MemberSettings("g", assignors=(RangeAssignor(),)), METADATA), 20_000)
    assert explored.problem is not None
    assert len(explored.trail) <= 8, explored.trail


def some_members(count):
    """Members in every state, breadth first from a new member and from a stable one."""
    start = stable = Pair(MemberSettings("g", assignors=(GradualAssignor(),)), METADATA)
    for what in ("subscribe", "coordinator", "poll", "answer", "answer", "poll"):
        stable = stable.after(next(each for each in stable.inputs() if each.what == what))
    queue, seen = [start, stable], set()
    while queue and len(seen) < count:
        pair = queue.pop(0)
        if (key := pair.key()) not in seen:
            seen.add(key)
            yield pair
            queue += [pair.after(what) for what in pair.inputs() if len(queue) < 4 * count]


def test_any_event_in_any_state_is_handled_or_refused_and_never_breaks_the_table():
    """The full product: an illegal event raises and changes nothing; a legal one makes a transition of 8.1."""
    states = set()
    for pair in some_members(150):
        member, now = pair.member, 10**12 + 1
        states.add(member.state)
        events = [
            ev.Poll(now),
            ev.Subscribe(now, frozenset("u")),
            ev.SubscribePattern(now, "t.*"),
            ev.Unsubscribe(now),
            ev.EnforceRebalance(now),
            ev.Close(now),
            ev.ListenerDone(now),
            ev.CoordinatorLost(now),
            ev.CoordinatorFound(now, node=7),
            ev.LookupFailed(now, None),
            ev.RequestLost(now, request_id=99),
            ev.MetadataChanged(now, ()),
            ev.LookupFailed(now, ErrorCode.GROUP_AUTHORIZATION_FAILED),
            ev.CommitFinished(now, commit_id=99, result=ev.CommitResult.DONE),
            ev.Answered(now, request_id=99, body=HeartbeatResponse(ErrorCode.NONE)),
            *(ev.MemberTimerFired(now, timer) for timer in ev.MemberTimer),
            *(
                ev.Answered(now, request_id=sent.request_id, body=HeartbeatResponse(ErrorCode.NONE))
                for sent in member.sent
            ),
        ]
        for event in events:
            kept = member._replace()
            try:
                after, _ = step(member, event)
            except (IllegalEvent, ValueError):
                assert member == kept
            else:
                assert after.state in _NEXT[member.state], (member.state, event)
    assert len(states) == 4
