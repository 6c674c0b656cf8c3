"""Properties that no mutant breaks before another one: a fault made for each shows that the check can fail."""

from __future__ import annotations

from dataclasses import replace

import pytest
from coordinator_machine import shrunk
from mixed_faults import broken_by
from test_hypothesis_consumer import ConsumerCoordinator
from test_hypothesis_core import Coordinator

from fencepost.coordinator import lifecycle, reversion
from fencepost.member.consumer import ConsumerMember, application, requests
from fencepost.member.consumer.state import Beat
from fencepost_conformance.simulate import simulate
from fencepost_conformance.simulate.consumer_plan import draw_consumer_plan


def _keeps(patches, kept):
    """A failed append does not take back the changes for which ``kept`` holds."""

    def append_failed(step, error):
        step.changes = tuple(change for change in step.changes if not kept(change))
        original(step, error)

    original = patches.attribute(reversion, "append_failed", append_failed)


def keeps_new_groups(patches):
    """A group whose creation was not appended stays."""
    _keeps(patches, lambda change: change.before is None)


def keeps_changed_groups(patches):
    """A group that was there keeps what was not appended."""
    _keeps(patches, lambda change: change.before is not None)


def loads_all_but_the_last_record(patches):
    original = patches.attribute(lifecycle, "to_apply", lambda work, log: original(work, log)[:-1])


def sends_one_more(patches):
    """One heartbeat in flight does not hold back the next one; two do."""
    beats = (Beat.CURRENT, Beat.LEAVE)
    second = property(lambda member: next((each for each in member.sent[1:] if each.beat in beats), None))
    patches.attribute(ConsumerMember, "in_flight", second)


def takes_what_is_in_flight_for_late(patches):
    """Of one heartbeat in flight the answer is not awaited; a second one is sent."""

    def send_heartbeat(turn, beat):
        original(turn, beat)
        if len(turn.member.sent) == 1 and beat is Beat.CURRENT:
            turn.change(sent=tuple(replace(each, beat=Beat.LATE) for each in turn.member.sent))

    original = patches.attribute(requests, "send_heartbeat", send_heartbeat)


def does_not_await_the_listener(patches):
    """What the background wants done is done at once, also while a callback runs."""

    def finish(turn):
        waiting = turn.member.waiting
        if waiting is not None and waiting.running is not None and turn.member.queue:
            application._run_errands(turn)
        original(turn)

    original = patches.attribute(application, "finish", finish)


@pytest.mark.parametrize(
    ("machine", "plant", "rule_id", "most"),
    [
        (ConsumerCoordinator, keeps_new_groups, "INV-ATOM-01", 2),
        (ConsumerCoordinator, keeps_changed_groups, "INV-ATOM-01", 4),
        (ConsumerCoordinator, loads_all_but_the_last_record, "INV-REPLAY-01", 3),
        (Coordinator, loads_all_but_the_last_record, "INV-REPLAY-01", 3),
    ],
    ids=["kept, new", "kept, changed", "lost", "lost, classic"],
)
def test_a_machine_sees_it_and_shrinks_to_a_few_steps(machine, plant, rule_id, most):
    with broken_by(plant):
        broken, steps, program = shrunk(machine)
    assert 0 < len(steps) <= most, program
    assert broken == rule_id, program


@pytest.mark.parametrize(
    ("plant", "text"),
    [
        (sends_one_more, "heartbeats are in flight"),
        (takes_what_is_in_flight_for_late, "heartbeats are in flight"),
        (does_not_await_the_listener, "while another call runs"),
    ],
)
def test_a_group_in_virtual_time_sees_it(plant, text):
    """INV-CL-08, where callbacks outlast the poll interval, so that others are wanted meanwhile."""
    plans = [draw_consumer_plan(seed) for seed in range(8)]
    plans = [replace(plan, hosts=tuple(replace(host, listener_ms=8_000) for host in plan.hosts)) for plan in plans]
    with broken_by(plant):
        broken = [report.broken for plan in plans if (report := simulate(plan)).broken is not None]
    assert any(each.rule == "INV-CL-08" and text in str(each) for each in broken), broken
