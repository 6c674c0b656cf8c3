"""Events that no driver may send are rejected with a sentence, and change nothing."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from fencepost import coordinator
from fencepost.coordinator import IllegalEvent
from fencepost.protocol import consumer_messages as c
from fencepost.protocol import consumer_records as r
from fencepost.protocol import events as ev
from fencepost.protocol import messages as m
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.profiles import INTENDED, KAFKA_4_3
from fencepost.protocol.records import GroupMetadataKey, GroupMetadataValue, Record

from .consumer_scene import TOPICS, ConsumerScene
from .scene import GROUP, FirstOf, Scene

JOIN = m.JoinGroupRequest(
    GROUP,
    session_timeout_ms=10_000,
    rebalance_timeout_ms=30_000,
    member_id="",
    protocol_type="consumer",
    protocols=(m.Protocol("range", b""),),
)
BEAT = c.ConsumerGroupHeartbeatRequest(
    GROUP,
    member_id="m9",
    member_epoch=0,
    rebalance_timeout_ms=30_000,
    subscribed_topic_names=("a",),
    topic_partitions=(),
)
SESSION, SYNC = ev.TimerKind.SESSION, ev.TimerKind.SYNC
TASK = ev.TaskKey(ev.TaskKind.REGEX, GROUP)


def stable(log: str = "at once") -> Scene:
    """Return a scene with one member, Stable, at 6 s."""
    scene = Scene()
    scene.stable(1)
    scene.log = log
    return scene


def writing(records: int) -> Callable[[], Scene]:
    """Return a scene with a replicated record in the log, and at least so many unreplicated ones of one step."""

    def make() -> Scene:
        scene = ConsumerScene()
        scene.come("m1", "a")
        scene.log = "later"
        count = len(scene.records)
        if records:
            scene.beat("m2", 0, ("a",), {}, timeout=30_000)
            assert len(scene.records) - count >= records
        return scene

    return make


def parked() -> Scene:
    """Return a scene in which request 1 was answered, 2 waits in the join phase, and 9 waits for the log."""
    scene = Scene(log="later")
    scene.newcomer()
    return scene


def resolving() -> Scene:
    scene = ConsumerScene()
    scene.ok("m1", 0, None, {}, regex="a", timeout=5)
    return scene


def unloaded() -> Scene:
    scene = stable()
    scene.feed(ev.Unload(scene.now, leader_epoch=None))
    return scene


def loading() -> Scene:
    scene = unloaded()
    scene.feed(ev.LoadStarted(scene.now, leader_epoch=7))
    return scene


def fresh() -> Scene:
    scene = Scene()
    scene.state = coordinator.initial_state(scene.state.settings, INTENDED)
    scene.fed.clear()
    return scene


def request(body: Any, *, number: Any = 99, version: Any = 1, **more: Any) -> Callable[[Scene], ev.Event]:
    def make(scene: Scene) -> ev.Event:
        return replace(
            ev.Request(scene.now, id=number, version=version, client_id="c", client_host="/127.0.0.1", body=body),
            **more,
        )

    return make


def topics(*rows: ev.Topic, version: int = 50) -> Callable[[Scene], ev.Event]:
    return lambda scene: ev.TopicsChanged(scene.now, rows, version=version)


def loads(*records: Record) -> Callable[[Scene], ev.Event]:
    return lambda scene: ev.Load(scene.now, leader_epoch=9, records=records)


def config(**fields: Any) -> Callable[[Scene], ev.Event]:
    return lambda scene: ev.GroupConfigChanged(scene.now, GROUP, ev.GroupConfig(**fields))


def fires(kind: ev.TimerKind, member_id: str = "", wait: int = 0) -> Callable[[Scene], ev.Event]:
    return lambda scene: ev.TimerFired(scene.now + wait, ev.TimerKey(kind, GROUP, member_id))


@dataclass(frozen=True)
class Bad:
    """``make`` returns the scene, ``event`` is the event to reject, with the message ``words``."""

    name: str
    make: Callable[[], Scene]
    event: Callable[[Scene], Any]
    words: str
    reason: str = "IllegalEvent"


MEMBER = Record(
    r.ConsumerGroupCurrentMemberAssignmentKey(GROUP, "m"),
    r.ConsumerGroupCurrentMemberAssignmentValue(
        1,
        previous_member_epoch=0,
        state=0,
        assigned_partitions=(r.AssignedPartitions(b"short", (0,)),),
        partitions_pending_revocation=(),
    ),
)
ALL = (
    # --- timers
    Bad(
        "a timer that is not set",
        stable,
        fires(ev.TimerKind.JOIN),
        "the join timer of group 'g' is not set",
        "NoSuchTimer",
    ),
    Bad("a timer that was cancelled", stable, fires(SYNC), "the sync timer of group 'g' is not set", "NoSuchTimer"),
    Bad(
        "a timer of another member", stable, fires(SESSION, "who"), "group 'g', member 'who' is not set", "NoSuchTimer"
    ),
    Bad(
        "a timer that is not due",
        stable,
        fires(SESSION, "c-1", 9_999),
        "is due at 16000 ms, not at 15999",
        "NoSuchTimer",
    ),
    Bad("a timer after the unload", unloaded, fires(SESSION, "c-1", 10_000), "is not set", "NoSuchTimer"),
    Bad(
        "a timer of an operation that is done",
        stable,
        lambda scene: ev.TimerFired(scene.now + 5_000, ev.TimerKey(ev.TimerKind.OPERATION, operation=2)),
        "the operation timer of operation 2 is not set",
        "NoSuchTimer",
    ),
    # --- the log
    Bad(
        "an append beyond the log",
        writing(2),
        lambda s: ev.Appended(s.now, offset=len(s.records) + 1),
        "the log ends at",
        "OffsetBeyondLog",
    ),
    Bad(
        "an append inside an outcome",
        writing(2),
        lambda s: ev.Appended(s.now, offset=len(s.records) - 1),
        "are replicated together",
        "OffsetInsideBatch",
    ),
    Bad(
        "an append of what is replicated",
        writing(0),
        lambda s: ev.Appended(s.now, offset=len(s.records) - 1),
        "must not go back to",
    ),
    Bad(
        "an append after the unload",
        unloaded,
        lambda s: ev.Appended(s.now, offset=1),
        "the log ends at 0",
        "OffsetBeyondLog",
    ),
    Bad(
        "nothing was appended",
        writing(0),
        lambda s: ev.AppendFailed(s.now, ErrorCode.NOT_ENOUGH_REPLICAS),
        "the previous step wrote nothing",
        "NothingToAppend",
    ),
    Bad(
        "an append fails without a code",
        writing(2),
        lambda s: ev.AppendFailed(s.now, "no"),
        "AppendFailed.error must be ErrorCode",
    ),
    # --- requests
    Bad(
        "the id of a parked request",
        parked,
        request(m.HeartbeatRequest(GROUP, generation_id=1, member_id="x"), number=2),
        "request 2 is still open",
    ),
    Bad("the id of a request that waits for the log", parked, request(JOIN, number=1), "request 1 is still open"),
    Bad(
        "the id of a parked request, for another group",
        parked,
        request(replace(JOIN, group_id="h"), number=2),
        "request 2 is still open",
    ),
    Bad("a negative id", stable, request(JOIN, number=-1), "Request.id must be >= 0 (got -1)"),
    Bad(
        "a version that does not exist",
        stable,
        request(JOIN, version=10),
        "JoinGroupRequest has no version 10; use one of 0 to 9",
    ),
    Bad("a negative version", stable, request(JOIN, version=-1), "has no version -1"),
    Bad("a body that is none", stable, request({"group_id": "g"}), "Request.body must be JoinGroupRequest or"),
    Bad("a response for a request", stable, request(m.HeartbeatResponse(ErrorCode.NONE)), "Request.body must be"),
    Bad(
        "a text for a number",
        stable,
        request(replace(JOIN, session_timeout_ms="10")),
        "Request.body.session_timeout_ms must be int, not str ('10')",
    ),
    Bad("a truth for a number", stable, request(replace(JOIN, session_timeout_ms=True)), "must be int, not bool"),
    Bad(
        "a number too large", stable, request(replace(JOIN, session_timeout_ms=2**31)), "must be an integer of 32 bits"
    ),
    Bad(
        "a list for a tuple",
        stable,
        request(replace(JOIN, protocols=[])),
        "Request.body.protocols must be tuple, not list",
    ),
    Bad(
        "a text for bytes",
        stable,
        request(replace(JOIN, protocols=(m.Protocol("a", "b"),))),
        "Request.body.protocols[0].metadata must be bytes, not str",
    ),
    Bad(
        "a pair for a protocol",
        stable,
        request(replace(JOIN, protocols=(("a", b""),))),
        "protocols[0] must be Protocol",
    ),
    Bad(
        "nothing for a text",
        stable,
        request(m.HeartbeatRequest(GROUP, generation_id=1, member_id=None)),
        "Request.body.member_id must be str, not NoneType",
    ),
    Bad(
        "a member for a row",
        stable,
        request(m.LeaveGroupRequest(GROUP, ("m",)), version=3),
        "members[0] must be LeaveGroupMember",
    ),
    Bad("a client without a name", stable, request(JOIN, client_id=None), "Request.client_id must be str"),
    Bad("a group for the groups", stable, request(JOIN, denied="g"), "Request.denied must be frozenset, not str"),
    Bad(
        "a topic id of 3 bytes",
        stable,
        request(replace(BEAT, topic_partitions=(c.TopicPartitions(b"abc", (0,)),))),
        "Request.body.topic_partitions[0].topic_id must be 16 bytes, not 3",
    ),
    Bad(
        "a text for a partition",
        stable,
        request(replace(BEAT, topic_partitions=(c.TopicPartitions(bytes(16), ("0",)),))),
        "topic_partitions[0].partitions[0] must be int",
    ),
    # --- time
    Bad("time runs backwards", stable, request(JOIN, at_ms=5_999), "the time of the coordinator is already 6000 ms"),
    Bad("time before time", fresh, lambda _: ev.Load(-1, leader_epoch=1, records=()), "at_ms is -1"),
    Bad("a time that is not a number", stable, request(JOIN, at_ms=6_000.5), "Request.at_ms must be int, not float"),
    # --- the partition
    Bad("no epoch", fresh, lambda _: ev.Load(0, leader_epoch=-1, records=()), "leader_epoch must be >= 0 (got -1)"),
    Bad(
        "no epoch to unload", stable, lambda s: ev.Unload(s.now, leader_epoch=-1), "leader_epoch must be >= 0 (got -1)"
    ),
    Bad("a record that is none", loading, loads("record"), "Load.records[0] must be Record"),
    Bad(
        "a record of another key",
        loading,
        loads(Record(GROUP, None)),
        "Load.records[0].key must be GroupMetadataKey or",
    ),
    Bad(
        "a record's topic id",
        loading,
        loads(MEMBER),
        "Load.records[0].value.assigned_partitions[0].topic_id must be 16 bytes, not 5",
    ),
    Bad(
        "a record with a text for a number",
        loading,
        loads(
            Record(
                GroupMetadataKey(GROUP),
                GroupMetadataValue("", generation="0", protocol=None, leader=None, current_state_timestamp=-1),
            )
        ),
        "value.generation must be int",
    ),
    # --- topics and settings of groups
    Bad(
        "an image that is older",
        ConsumerScene,
        topics(version=0),
        "TopicsChanged.version is 0, but version 1 was delivered before",
    ),
    Bad(
        "a topic's id",
        stable,
        topics(ev.Topic("a", b"abc", 1)),
        "TopicsChanged.topics[0].topic_id must be 16 bytes, not 3",
    ),
    Bad(
        "two topics of a name",
        stable,
        topics(TOPICS[0], replace(TOPICS[1], name="a")),
        "two topics of an image have the same name",
    ),
    Bad(
        "two topics of an id",
        stable,
        topics(TOPICS[0], replace(TOPICS[0], name="b")),
        "two topics of an image have the same topic_id",
    ),
    Bad("fewer partitions than none", stable, topics(ev.Topic("a", bytes(16), -1)), "has -1 partitions"),
    Bad(
        "more racks than partitions", stable, topics(ev.Topic("a", bytes(16), 1, (frozenset(),) * 2)), "2 rows of racks"
    ),
    Bad("a timeout of 0", stable, config(consumer_session_timeout_ms=0), "must be >= 1 (got 0)"),
    Bad("a negative interval", stable, config(consumer_assignment_interval_ms=-1), "must be >= 0 (got -1)"),
    Bad(
        "a timeout that is not a number",
        stable,
        config(consumer_session_timeout_ms="1"),
        "consumer_session_timeout_ms must be int or None",
    ),
    # --- tasks, and events of a wrong type
    Bad(
        "a task that was not started",
        stable,
        lambda s: ev.TaskDone(s.now, TASK),
        "no regex task of group 'g' is running",
        "NoSuchTask",
    ),
    Bad(
        "a task of another group",
        resolving,
        lambda s: ev.TaskDone(s.now, replace(TASK, group_id="h")),
        "no regex task of",
        "NoSuchTask",
    ),
    Bad("an outcome for an event", stable, lambda _: ev.Outcome(), "Outcome is not an event type"),
    Bad("nothing for an event", stable, lambda _: None, "NoneType is not an event type"),
)


@pytest.mark.parametrize("bad", ALL, ids=[bad.name for bad in ALL])
def test_an_illegal_event_is_rejected_and_changes_nothing(bad: Bad) -> None:
    scene = bad.make()
    state, kept = scene.state, pickle.dumps(scene.state)
    event = bad.event(scene)
    with pytest.raises(IllegalEvent) as refused:
        coordinator.step(state, event, FirstOf())
    assert bad.words in str(refused.value)
    assert refused.value.reason == bad.reason
    assert isinstance(refused.value, ValueError)
    assert state == pickle.loads(kept)


def test_legal_events_with_little_effect() -> None:
    scene = ConsumerScene()
    scene.come("m1", "a")
    scene.feed(ev.Appended(scene.now, offset=len(scene.records)))  # the same high watermark again
    scene.feed(ev.Unload(scene.now, leader_epoch=1))  # late: F-LOAD-03
    scene.feed(ev.Load(scene.now, leader_epoch=1, records=()))  # it is already active
    scene.feed(ev.LoadFailed(scene.now, leader_epoch=1))
    scene.feed(ev.TopicsChanged(scene.now, TOPICS, version=1))
    assert scene.seen.members
    scene.feed(ev.Unload(scene.now, leader_epoch=None))
    scene.feed(ev.Unload(scene.now, leader_epoch=None))
    scene.feed(ev.LoadFailed(scene.now, leader_epoch=1))
    scene.feed(ev.TaskDone(scene.now, TASK))  # from before the unload
    scene.feed(ev.LoadStarted(scene.now, leader_epoch=4))
    scene.feed(ev.LoadStarted(scene.now, leader_epoch=6))
    scene.feed(ev.Load(scene.now, leader_epoch=4, records=()))  # the first of the two loads


def test_an_id_is_free_again_when_nothing_waits_for_it() -> None:
    scene = Scene(log="later")
    name, waits = scene.newcomer()
    with pytest.raises(IllegalEvent, match="is still open"):
        scene.feed(request(JOIN, number=waits)(scene))
    scene.replicate()
    again = scene.join(name)  # replaces the first request, which is never answered (C-JOIN-59)
    assert dict(scene.state.parked) == {again: GROUP}
    scene.pass_time(3_000)
    assert again in scene.answers
    assert not scene.state.parked
    scene.answers.clear()
    scene.feed(request(m.HeartbeatRequest(GROUP, generation_id=1, member_id=name), number=waits)(scene))
    assert scene.answers[waits] == m.HeartbeatResponse(ErrorCode.NONE)


def test_a_timer_that_was_early_can_still_fire_on_time() -> None:
    """Both early events are rejected; once the first of them lost the previous state."""
    scene = stable()
    key = ev.TimerKey(SESSION, GROUP, "c-1")
    for at_ms in (6_000, 15_999):
        with pytest.raises(IllegalEvent):
            coordinator.step(scene.state, ev.TimerFired(at_ms, key), scene.choices)
    scene.now = 16_000
    scene.feed(ev.TimerFired(16_000, key))
    assert not scene.group().members


def test_a_state_can_be_copied_and_pickled() -> None:
    """The state has many timers, so that the table is a tree; in another process texts hash differently."""
    scene = Scene(KAFKA_4_3)
    for number in range(60):
        scene.join(group=f"g{number}", instance="i")
    again = pickle.loads(pickle.dumps(scene.state))
    assert again == scene.state == copy.deepcopy(scene.state)
    key = ev.TimerKey(ev.TimerKind.JOIN, "g7")
    after = coordinator.step(again, ev.TimerFired(3_000, key), FirstOf())
    assert after == coordinator.step(scene.state, ev.TimerFired(3_000, key), FirstOf())
