"""Core, model and Kafka's harness reject impossible events with the same words.

The tests compare the events of ``test_illegal_events`` that name a timer, a task or a place of the log that does not
exist. The others concern neither Kafka nor the model: values of a wrong type cannot pass a typed driver or enter the
JVM; a driver keeps the order of times, open ids, epochs and versions.

Core and model do not count a rejected event; the harness does. After one, the writes of timers, which are named by
their place, have other names there.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fencepost.protocol import events as ev
from fencepost.protocol.errors import IMPOSSIBLE
from fencepost.protocol.messages import DescribeGroupsRequest, ListGroupsRequest
from fencepost.protocol.profiles import NEWEST_KAFKA
from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.judge.compare.lockstep import first_difference
from fencepost_conformance.judge.compare.model import follow
from fencepost_conformance.judge.shrink.references import renamed
from fencepost_conformance.targets.core import Core
from fencepost_conformance.targets.ids import MemberIds
from fencepost_conformance.targets.jvm import harness
from fencepost_conformance.targets.jvm.releases import NEWEST
from fencepost_conformance.targets.kafka_jvm import KafkaJvm
from fencepost_conformance.traces.observation import Observation

from .scene import GROUP
from .test_illegal_events import ALL, Bad

WORDED = [bad for bad in ALL if bad.reason in IMPOSSIBLE]
#: the harness keeps the log of a lost partition, and accepts events about it, which have no effect
KAFKA_TAKES = {"an append after the unload"}
ROWS = pytest.mark.parametrize("bad", WORDED, ids=[bad.name for bad in WORDED])


def staged(bad: Bad) -> tuple[ev.Event, ...]:
    """Return the events of the scene, the event, and two requests after it; member ids are those that the targets
    draw."""
    scene = bad.make()
    event = bad.event(scene)
    ids = MemberIds()
    drawn = {f"c-{number}": ids("c") for number in range(1, scene.choices.count + 1)}
    after = [
        ev.Request(event.at_ms, id=1_000 + version, version=version, client_id="c", client_host="/127.0.0.1", body=body)
        for version, body in ((4, ListGroupsRequest()), (5, DescribeGroupsRequest((GROUP,))))
    ]
    return tuple(renamed(each, drawn) for each in (*scene.fed, event, *after))


@pytest.fixture(scope="module")
def kafka() -> Iterator[KafkaJvm]:
    try:
        harness.command(NEWEST)
    except CannotRun as reason:
        pytest.skip(str(reason).splitlines()[0])
    with KafkaJvm(NEWEST) as target:
        yield target


def test_every_word_is_in_the_table() -> None:
    assert {bad.reason for bad in WORDED} == set(IMPOSSIBLE)


@ROWS
def test_core_and_model_refuse_it(bad: Bad) -> None:
    """Only this event is rejected, and it has no effect."""
    events = staged(bad)
    settings = bad.make().state.settings
    seen = Core().run(settings, NEWEST_KAFKA, events)
    assert [step.error for step in seen] == [None] * (len(events) - 3) + [bad.reason, None, None]
    assert seen[-3] == Observation(error=bad.reason)
    assert seen[-2:] == Core().run(settings, NEWEST_KAFKA, events[:-3] + events[-2:])[-2:]
    assert follow(settings, NEWEST_KAFKA, events, seen).refused is None

    place = len(events) - 3
    other = IMPOSSIBLE[IMPOSSIBLE.index(bad.reason) - 1]
    for lie in (
        Observation(),
        Observation(error=other),
        Observation(error=bad.reason, replies=seen[-1].replies),
        Observation(error=bad.reason, timers={ev.TimerKey(ev.TimerKind.JOIN, GROUP): None}),
    ):
        refused = follow(settings, NEWEST_KAFKA, events, [*seen[:-3], lie, *seen[-2:]]).refused
        assert refused is not None, lie
        assert refused.event == place


def test_the_model_rejects_no_possible_event() -> None:
    events = staged(WORDED[0])[:-3]
    settings = WORDED[0].make().state.settings
    seen = Core().run(settings, NEWEST_KAFKA, events)
    for word in IMPOSSIBLE:
        refused = follow(settings, NEWEST_KAFKA, events, [*seen[:-1], Observation(error=word)]).refused
        assert refused is not None
        assert refused.event == len(events) - 1


@pytest.mark.jvm
@ROWS
def test_the_harness_refuses_it(bad: Bad, kafka: KafkaJvm) -> None:
    events = staged(bad)
    settings = bad.make().state.settings
    ours, theirs = Core().run(settings, NEWEST_KAFKA, events), kafka.run(settings, NEWEST_KAFKA, events)
    assert first_difference(ours, theirs) is None
    assert [step.error for step in theirs[:-3]] == [None] * (len(events) - 3)
    assert theirs[-3] == Observation(error=None if bad.name in KAFKA_TAKES else bad.reason)
