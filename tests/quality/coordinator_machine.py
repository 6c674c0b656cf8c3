"""Base of the state machines of Hypothesis: a watched core, its log, its timers, and the reports of its failures."""

from __future__ import annotations

import re

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Appended, AppendFailed, Load, Request, TaskDone, TimerFired, Unload
from fencepost.protocol.profiles import INTENDED
from fencepost_conformance.generate.carried import as_carried
from fencepost_conformance.generate.simulate import Broken
from fencepost_conformance.generate.simulate.choices import Smallest
from fencepost_conformance.generate.simulate.session import WatchedSession


def chosen(max_examples, steps, **more):
    """Settings that choose the same examples in every run that has imported the same modules."""
    return settings(
        max_examples=max_examples,
        stateful_step_count=steps,
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
        **more,
    )


class CoordinatorMachine(RuleBasedStateMachine):
    """Drive a watched core. It raises ``Broken`` with the rule's id; the rules of the machine only make events."""

    SETTINGS = None

    @initialize(prompt=st.booleans())
    def load(self, prompt):
        self.core = WatchedSession(self.SETTINGS, INTENDED, Smallest())
        self.prompt = prompt  # every record is replicated immediately
        self.now = 1
        self.requests = self.replicated = self.epoch = 0
        self.written = False
        self.tasks = []
        self.before_load()
        self._load()

    def before_load(self):
        """Give the coordinator the events that it needs before it reads its log."""

    def _load(self):
        self.epoch += 1
        self.replicated = len(self.core.log)
        self.feed(Load(self.now, leader_epoch=self.epoch, records=tuple(self.core.log)))

    def feed(self, event):
        seen = self.core.feed(event)
        self.tasks += seen.tasks
        self.written = bool(seen.records)
        if self.written and self.prompt:
            self.replicated = len(self.core.log)
            self.feed(Appended(self.now, offset=self.replicated))

    def ask(self, body, version):
        self.requests += 1
        carried = as_carried(body, version)
        self.feed(Request(self.now, id=self.requests, version=version, client_id="c", client_host="/h", body=carried))

    @precondition(lambda self: self.core.armed)
    @rule(which=st.sampled_from([0, 0, 1, 2]))
    def time_passes(self, which):
        timers = sorted(self.core.armed.items(), key=lambda row: (row[1], str(row[0])))
        key, at = timers[which % len(timers)]
        self.now = max(self.now, at)
        self.feed(TimerFired(self.now, key))

    @precondition(lambda self: self.tasks)
    @rule(failed=st.booleans())
    def a_task_is_done(self, failed):
        self.feed(TaskDone(self.now, self.tasks.pop(0), failed=failed))

    @precondition(lambda self: self.replicated < len(self.core.log))
    @rule()
    def is_replicated(self):
        self.replicated = len(self.core.log)
        self.feed(Appended(self.now, offset=self.replicated))

    @precondition(lambda self: self.written)
    @rule(error=st.sampled_from([ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.NOT_LEADER_OR_FOLLOWER]))
    def append_fails(self, error):
        self.feed(AppendFailed(self.now, error))

    @rule()
    def moves(self):
        self.feed(Unload(self.now, leader_epoch=None))
        del self.core.log[self.replicated :]
        self.tasks.clear()
        self._load()


def broken_by(machine, phases, max_examples=3_000, steps=15):
    """Return the ``Broken`` that ends a run of the machine in these phases.

    Most runs fail within a hundred examples. Which examples are tried depends on the other imports, from which
    Hypothesis takes constants, so the bound is far higher."""
    with pytest.raises(Broken) as caught:
        run_state_machine_as_test(machine, settings=chosen(max_examples, steps, database=None, phases=phases))
    return caught.value


def shrunk(machine):
    """Return the rule that a run of the machine breaks, the steps of the shortest program that does, and the
    program."""
    broken = broken_by(machine, [Phase.generate, Phase.shrink])
    program = "\n".join(getattr(broken, "__notes__", []))
    done = re.findall(r"^(?:\w+(?:, \w+)* = )?state\.(\w+)\(", program, re.MULTILINE)
    assert done[-1] == "teardown"
    return broken.rule, [name for name in done if name not in ("teardown", "load")], program
