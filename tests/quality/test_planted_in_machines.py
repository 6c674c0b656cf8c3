"""Properties that every mutant breaks only after another property: a special fault for each shows that the check can
fail."""

from __future__ import annotations

from dataclasses import replace

import pytest
from coordinator_machine import shrunk
from test_hypothesis_consumer import ConsumerCoordinator
from test_hypothesis_core import Coordinator

from fencepost_conformance.generate.simulate import simulate
from fencepost_conformance.generate.simulate.consumer_plan import draw_consumer_plan
from fencepost_conformance.run.mutants.replacement import Replacement, in_place


def _keeps(which):
    """The fault: a failed append takes back only the changes that satisfy this condition."""
    return (
        Replacement(
            "coordinator/reversion.py", "append_failed",
            "base = step.state.base",
            f"base = step.state.base\nstep.memory.changes = tuple(change for change in step.memory.changes if {which})",
        ),
    )  # fmt: skip


#: A group whose creation was not appended stays.
KEEPS_NEW_GROUPS = _keeps("change.before is not None")

#: An existing group keeps changes that were not appended.
KEEPS_CHANGED_GROUPS = _keeps("change.before is None")

LOADS_ALL_BUT_THE_LAST_RECORD = (
    Replacement(
        "coordinator/lifecycle.py", "_apply",
        "if place - first not in skipped:",
        "if place - first not in skipped and place < end - 1:",
    ),
)  # fmt: skip

#: One heartbeat in flight does not delay the next one; two do.
SENDS_ONE_MORE = (
    Replacement("member/consumer/state.py", "ConsumerMember.in_flight", "in self.sent", "in self.sent[1:]"),
)  # fmt: skip

#: The answer to one heartbeat in flight is not awaited; a second one is sent.
TAKES_WHAT_IS_IN_FLIGHT_FOR_LATE = (
    Replacement(
        "member/consumer/requests.py", "send_heartbeat",
        "turn.fly(SentHeartbeat(request_id, beat))",
        "turn.fly(SentHeartbeat(request_id, beat if turn.member.sent or beat is not Beat.CURRENT else Beat.LATE))",
    ),
)  # fmt: skip

#: Work of the background thread is done immediately, even while a callback runs.
DOES_NOT_AWAIT_THE_LISTENER = (
    Replacement(
        "member/consumer/application.py", "finish",
        "waiting = turn.member.waiting",
        "waiting = turn.member.waiting\n"
        "if waiting is not None and waiting.running is not None and turn.member.queue:\n"
        "    _process_until_callback(turn)\n"
        "    waiting = turn.member.waiting",
    ),
)  # fmt: skip


@pytest.mark.parametrize(
    ("machine", "fault", "rule_id", "most"),
    [
        (ConsumerCoordinator, KEEPS_NEW_GROUPS, "INV-ATOM-01", 2),
        (ConsumerCoordinator, KEEPS_CHANGED_GROUPS, "INV-ATOM-01", 4),
        (ConsumerCoordinator, LOADS_ALL_BUT_THE_LAST_RECORD, "INV-REPLAY-01", 3),
        (Coordinator, LOADS_ALL_BUT_THE_LAST_RECORD, "INV-REPLAY-01", 3),
    ],
    ids=["kept, new", "kept, changed", "lost", "lost, classic"],
)
def test_a_machine_sees_it_and_shrinks_to_a_few_steps(machine, fault, rule_id, most):
    with in_place(fault):
        broken, steps, program = shrunk(machine)
    assert 0 < len(steps) <= most, program
    assert broken == rule_id, program


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        (SENDS_ONE_MORE, "heartbeats are in flight"),
        (TAKES_WHAT_IS_IN_FLIGHT_FOR_LATE, "heartbeats are in flight"),
        (DOES_NOT_AWAIT_THE_LISTENER, "while another call runs"),
    ],
)
def test_a_group_in_virtual_time_sees_it(fault, text):
    """Callbacks that outlast the poll interval meet the next ones (INV-CL-08)."""
    plans = [draw_consumer_plan(seed) for seed in range(8)]
    plans = [replace(plan, hosts=tuple(replace(host, listener_ms=8_000) for host in plan.hosts)) for plan in plans]
    with in_place(fault):
        broken = [report.broken for plan in plans if (report := simulate(plan)).broken is not None]
    assert any(each.rule == "INV-CL-08" and text in str(each) for each in broken), broken
