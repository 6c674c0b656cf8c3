"""Flushing step by step equals Kafka's own linger 0, in which a failing append is part of its operation."""

from __future__ import annotations

import pytest
from jvm_traces import LOADED, RELEASE, KafkaOf, join, keep, request, run

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Appended, AppendFailed, Event, TimerKey, TimerKind
from fencepost.protocol.messages import DeletedGroup, DeleteGroupsRequest, DeleteGroupsResponse
from fencepost.protocol.profiles import KAFKA_4_3
from fencepost.protocol.view import GroupView
from fencepost_conformance.generate.generator import generate
from fencepost_conformance.targets.kafka_jvm import KafkaJvm
from fencepost_conformance.traces.observation import Observation

pytestmark = pytest.mark.jvm

TRACES = 100
#: the behaviour of a trace between two points without a pending append
Stretch = tuple[list[object], list[object], dict[TimerKey, int], dict[str, GroupView], list[str]]


def stretches(events: tuple[Event, ...], seen: list[Observation]) -> list[Stretch]:
    """Return the observations, with each failed append joined to its step."""
    result: list[Stretch] = []
    timers: dict[TimerKey, int] = {}
    groups: dict[str, GroupView] = {}
    for event, step in zip(events, seen, strict=True):
        if not isinstance(event, AppendFailed) or not result:
            result.append(([], [], timers.copy(), groups.copy(), []))
        records, replies, timers, groups, errors = result[-1]
        records += step.records
        replies += step.replies
        errors += [step.error] if step.error else []
        keep(timers, step.timers)
        keep(groups, step.groups)
    return result


def test_a_separately_flushed_step_behaves_like_linger_zero(kafka_of: KafkaOf) -> None:
    traces = [generate(seed, KAFKA_4_3, 80) for seed in range(TRACES)]
    asked = [(trace.settings, trace.events) for trace in traces]
    apart = kafka_of(RELEASE).run_many(asked)
    with KafkaJvm(RELEASE, merged=True) as merged:
        pairs = zip(traces, apart, merged.run_many(asked), strict=True)
    failures = 0
    for trace, one, other in pairs:
        events = tuple(trace.events)
        assert stretches(events, one) == stretches(events, other), trace.seed
        failures += sum(isinstance(event, AppendFailed) for event in events)
    assert failures > 25
    assert any(key.kind is TimerKind.OPERATION for step in one for key in step.timers)


def test_operations_of_one_step_are_flushed_one_by_one(kafka_of: KafkaOf) -> None:
    """The changes of the first operation that were not appended are undone before the second runs, which then has
    nothing to fail with."""
    events = (
        LOADED,
        join(1, 1),
        request(2, 2, 2, DeleteGroupsRequest(("g",))),
        request(3, 3, 2, DeleteGroupsRequest(("none",))),
        Appended(4, offset=1),
        AppendFailed(4, ErrorCode.KAFKA_STORAGE_ERROR),
    )
    seen = run(kafka_of(RELEASE), *events)
    with KafkaJvm(RELEASE, merged=True) as merged:
        assert stretches(events, seen) == stretches(events, run(merged, *events))
    answers = {reply.request_id: reply.body for reply in (*seen[4].replies, *seen[5].replies)}
    assert answers == {
        2: DeleteGroupsResponse((DeletedGroup("g", ErrorCode.NOT_COORDINATOR),)),
        3: DeleteGroupsResponse((DeletedGroup("none", ErrorCode.GROUP_ID_NOT_FOUND),)),
    }
