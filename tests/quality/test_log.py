"""What the log says is what the coordinator holds: a random trace's log, whole or compacted, loads to the live state.

Judged under profile ``intended``; Kafka's own faults break it on purpose (INV-REPLAY-01 lists them).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from fencepost import coordinator
from fencepost.coordinator import CoordinatorState, initial_state, step, views
from fencepost.protocol.events import Appended, AppendFailed, Load, LoadStarted
from fencepost.protocol.records import Record
from fencepost.protocol.settings import INTENDED, Settings
from fencepost.protocol.view import GroupState, GroupView
from fencepost_conformance.generate.generator import generate
from fencepost_conformance.generate.java_order import JavaOrder
from fencepost_conformance.targets.ids import MemberIds

SEEDS = range(60)
STEPS = 120


def loaded(state: CoordinatorState, records: tuple[Record, ...]) -> dict[str, GroupView]:
    """A fresh coordinator that has loaded the records (INV-REPLAY-02: it never fails on what the core wrote). It has
    room for any group, since one over capacity would rebalance at once (F-LOAD-06)."""
    settings = replace(state.settings, group_max_size=Settings().group_max_size)
    choices = JavaOrder(MemberIds())
    fresh, _ = step(initial_state(settings, state.profile), LoadStarted(0, 1), choices)
    fresh, _ = step(fresh, Load(0, 1, records), choices)
    return views(fresh)


def compacted(log: list[Record]) -> tuple[Record, ...]:
    """Only the last record of each key; a tombstone may go too, so it does (F-REPLAY-14)."""
    last = {record.key: record for record in log}
    return tuple(record for record in log if last[record.key] is record and record.value is not None)


def hard(view: GroupView) -> object:
    """What a record keeps of a group (F-REC-12); the rest is soft state (F-REC-21)."""
    members = tuple(
        (
            member.member_id,
            member.group_instance_id,
            member.client_id,
            member.client_host,
            member.rebalance_timeout_ms,
            member.session_timeout_ms,
            tuple(p.metadata for p in member.protocols if p.name == view.protocol_name),
            member.assignment,
        )
        for member in view.members
    )
    return view.state, view.generation_id, view.protocol_type, view.protocol_name, view.leader, members


def durable_moments(seed: int) -> Iterator[tuple[CoordinatorState, list[Record], set[str]]]:
    """The states of a trace in which every record is replicated, each with the log so far, and the groups that could
    not write their last record: a group that became Empty stays so although that append failed (C-JOIN-47)."""
    trace = generate(seed, INTENDED, STEPS)
    state, choices = initial_state(trace.settings, trace.profile), JavaOrder(MemberIds())
    log: list[Record] = []
    unwritten: set[str] = set()
    for event in trace.events:
        if isinstance(event, AppendFailed):
            unwritten |= {record.key.group for record in log[state.base :]}
            del log[state.base :]
        if isinstance(event, Load):
            log, unwritten = list(event.records), set()
        state, outcome = step(state, event, choices)
        log += outcome.records
        unwritten -= {record.key.group for record in outcome.records}
        if isinstance(event, Appended) and event.offset == len(log):
            yield state, log, unwritten


@pytest.mark.parametrize("seed", SEEDS)
def test_a_reload_gives_the_live_groups(seed: int) -> None:
    """INV-REPLAY-01, F-CONS-03: a group at rest is in the log as it is; one that rebalances as it last was."""
    for state, log, unwritten in durable_moments(seed):
        live = {name: view for name, view in views(state).items() if name not in unwritten}
        for records in (tuple(log), compacted(log)):
            again = {name: view for name, view in loaded(state, records).items() if name not in unwritten}
            assert set(again) == set(live)
            for name, view in live.items():
                assert again[name].state in (GroupState.EMPTY, GroupState.STABLE)  # F-SURV-03
                if view.state in (GroupState.EMPTY, GroupState.STABLE):
                    assert hard(again[name]) == hard(view)
                else:
                    assert again[name].generation_id <= view.generation_id  # F-SURV-02, INV-GEN-02


@pytest.mark.parametrize("seed", SEEDS)
def test_a_failed_append_leaves_what_the_log_says(seed: int) -> None:
    """INV-ATOM-01: a group whose creation failed is gone, no generation is taken back, no offset is used up."""
    trace = generate(seed, INTENDED, STEPS)
    state, choices = initial_state(trace.settings, trace.profile), JavaOrder(MemberIds())
    before = state
    for event in trace.events:
        previous, state = state, step(state, event, choices)[0]
        if isinstance(event, AppendFailed):
            for name, view in views(state).items():
                held = coordinator.view(before, name)
                assert held is not None, "a group whose creation failed is gone again (C-JOIN-16)"
                assert view.generation_id >= held.generation_id  # a generation is used up, never taken back
            assert state.end == before.end
        before = previous


def test_the_moments_are_not_empty() -> None:
    """The two tests above look at something."""
    moments = [state for seed in SEEDS for state, _, _ in durable_moments(seed)]
    at_rest = [view for state in moments for view in views(state).values() if view.state is GroupState.STABLE]
    assert len(moments) > 100
    assert any(view.members and view.static_members for view in at_rest)
