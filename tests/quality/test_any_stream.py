"""Arbitrary streams of events, legal and illegal: an event is rejected and changes nothing, or handled and breaks
nothing."""

from __future__ import annotations

import pickle
from dataclasses import fields, is_dataclass, replace

import pytest
from coordinator_machine import chosen
from hypothesis import Phase, given
from hypothesis import strategies as st

from fencepost.coordinator import IllegalEvent, reversion
from fencepost.coordinator.classic import membership
from fencepost.coordinator.classic.group import ClassicGroup, GroupDraft
from fencepost.coordinator.kernel import contract, timers
from fencepost.coordinator.kernel.state import Status
from fencepost.protocol import consumer_messages as c
from fencepost.protocol import events as ev
from fencepost.protocol import messages as m
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.profiles import INTENDED, KAFKA_4_0, KAFKA_4_1, KAFKA_4_2, KAFKA_4_3, KAFKA_4_4
from fencepost.protocol.settings import Settings
from fencepost_conformance.generate.simulate.choices import Smallest
from fencepost_conformance.generate.simulate.session import WatchedSession
from fencepost_conformance.targets.core import CoreSession

SETTINGS = Settings(
    group_min_session_timeout_ms=1,
    group_initial_rebalance_delay_ms=50,
    group_max_size=3,
    group_consumer_max_size=3,
    group_consumer_assignment_interval_ms=0,
)
PROFILES = (INTENDED, KAFKA_4_0, KAFKA_4_1, KAFKA_4_2, KAFKA_4_3, KAFKA_4_4)
GROUPS = ("g", "g-m")
JUNK = (None, -1, 2**31, 2**70, "7", b"7", True, 1.5, (), [], ("x",), (None,), frozenset({1}), ErrorCode.NONE)
TOPICS = (ev.Topic("a", bytes(15) + b"a", 2), ev.Topic("b", bytes(15) + b"b", 1), ev.Topic("c", b"short", 1))
FAILED = (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.NOT_LEADER_OR_FOLLOWER)
CLASSIC = ("join", "join", "join", "sync", "sync", "heartbeat", "leave", "admin")
BODIES = {"classic": CLASSIC, "consumer": ("beat",) * 4 + ("admin",), "mixed": (*CLASSIC, *("beat",) * 6)}
KINDS = ("request",) * 10 + ("timer",) * 3 + ("replicated",) * 4 + ("failed", "task", "topics", "config", "partition")


class Stream:
    """The knowledge of a driver, right or wrong, and the next event that it makes."""

    def __init__(self, data, protocol, profile):
        self.draw = data.draw
        self.bodies = BODIES[protocol]
        kind = WatchedSession if profile is INTENDED else CoreSession
        self.watched = profile is INTENDED
        self.session = kind(SETTINGS, profile, Smallest())
        self.now, self.requests, self.epoch, self.images = 1, 0, 1, 1
        self.log = []
        self.refused = 0

    @property
    def state(self):
        return self.session._state

    def pick(self, *things):
        return self.draw(st.sampled_from(things))

    def rarely(self):
        return self.draw(st.integers(0, 11)) == 11

    def next(self):
        at_ms = self.now + self.pick(0, 0, 0, 0, 0, 1, 60, 5_000, -1)
        event = getattr(self, f"_{self.pick(*KINDS)}")(at_ms)
        return self._spoilt(event) if self.rarely() else event

    def _spoilt(self, thing):
        """Return the body with a wrong value at some depth."""
        if not is_dataclass(thing):
            return self.pick(*JUNK)
        field = self.pick(*(each.name for each in fields(thing)))
        value = getattr(thing, field)
        if isinstance(value, tuple) and value:
            return replace(thing, **{field: (self._spoilt(value[0]), *value[1:])})
        return replace(thing, **{field: self._spoilt(value)})

    def _request(self, at_ms):
        self.requests += 1
        body = getattr(self, f"_{self.pick(*self.bodies)}")(self.pick(*GROUPS))
        first, last = m.VERSIONS[type(body)]
        version = last if not self.rarely() else self.pick(first, last + 1, -1)
        number = self.requests if not self.rarely() else self.pick(*range(-2, self.requests + 1))
        return ev.Request(at_ms, id=number, version=version, client_id="c", client_host="/h", body=body)

    def _member(self, group):
        """Return the members that exist there, with their generation or epoch."""
        classic, consumer = self.session.groups.get(group), self.session.consumer_groups.get(group)
        known = [("", 0), ("m", 0), ("n", 1)]
        if classic is not None:
            known += [(each.member_id, classic.generation_id) for each in classic.members] * 3
            known += [(each, 0) for each in sorted(classic.pending_join)] * 3
        if consumer is not None:
            known += [(each.member_id, each.member_epoch) for each in consumer.members] * 3
        return self.pick(*known)

    def _join(self, group):
        member_id, _ = self._member(group)
        metadata = b"\0\1\0\0\0\1\0\1a\xff\xff\xff\xff\0\0\0\0"
        protocols = (m.Protocol("range", metadata), m.Protocol("other", b""))[: self.pick(1, 2)]
        instance = self.pick(None, None, None, "i")
        return m.JoinGroupRequest(
            group,
            session_timeout_ms=self.pick(100, 10_000),
            rebalance_timeout_ms=500,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type="consumer",
            protocols=protocols,
        )

    def _sync(self, group):
        member_id, generation = self._member(group)
        shares = tuple(m.SyncGroupAssignment(each, b"share") for each in (member_id, "m"))
        return m.SyncGroupRequest(
            group,
            generation_id=generation,
            member_id=member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=shares,
        )

    def _heartbeat(self, group):
        member_id, generation = self._member(group)
        return m.HeartbeatRequest(group, generation_id=generation, member_id=member_id)

    def _leave(self, group):
        member_id, _ = self._member(group)
        return m.LeaveGroupRequest(
            group, (m.LeaveGroupMember(member_id, group_instance_id=self.pick(None, None, "i")),)
        )

    def _beat(self, group):
        member_id, epoch = self._member(group)
        epoch = self.pick(epoch, epoch, epoch, 0, -1, -2)
        names = self.pick(("a",), ("a", "b"), None) if epoch else self.pick(("a",), ("a", "b"))
        owned = self.pick(None, (), (c.TopicPartitions(TOPICS[0].topic_id, (0, 1)),)) if epoch > 0 else ()
        regex = self.pick(None, None, "a|b", "") if epoch >= 0 else None
        instance = self.pick(None, None, None, "i")
        return c.ConsumerGroupHeartbeatRequest(
            group,
            member_id=member_id or "x",
            member_epoch=epoch,
            instance_id=instance,
            rebalance_timeout_ms=self.pick(500, 30_000),
            subscribed_topic_names=names,
            subscribed_topic_regex=regex,
            topic_partitions=owned,
        )

    def _admin(self, group):
        return self.pick(
            m.DeleteGroupsRequest((group,)),
            m.ListGroupsRequest(),
            m.DescribeGroupsRequest((group,)),
            c.ConsumerGroupDescribeRequest((group,)),
        )

    def _timer(self, at_ms):
        armed = sorted(self.session.armed.items(), key=lambda row: (row[1], str(row[0])))
        if not armed or self.rarely():
            key = ev.TimerKey(self.pick(*ev.TimerKind), self.pick(*GROUPS), self.pick("", "m"), self.pick(0, 1, -1))
            return ev.TimerFired(at_ms, key)
        key, due = self.pick(*armed[:4])
        return ev.TimerFired(max(self.now, due) if not self.rarely() else at_ms, key)

    def _replicated(self, at_ms):
        end, committed = self.state.end, self.state.committed
        return ev.Appended(
            at_ms, offset=end if not self.rarely() else self.pick(end - 1, end + 1, committed, committed - 1)
        )

    def _failed(self, at_ms):
        return ev.AppendFailed(at_ms, self.pick(*FAILED))

    def _task(self, at_ms):
        return ev.TaskDone(
            at_ms, ev.TaskKey(ev.TaskKind.REGEX, self.pick(*GROUPS)), failed=self.pick(False, False, True)
        )

    def _topics(self, at_ms):
        self.images += 1
        rows = self.pick(TOPICS[:1], TOPICS[:2], TOPICS[:2], TOPICS, (TOPICS[0],) * 2, ())
        return ev.TopicsChanged(at_ms, rows, version=self.images - self.pick(0, 0, 0, 2))

    def _config(self, at_ms):
        config = self.pick(
            None,
            ev.GroupConfig(),
            ev.GroupConfig(
                consumer_session_timeout_ms=50_000,
                consumer_heartbeat_interval_ms=6_000,
                consumer_assignment_interval_ms=0,
            ),
            ev.GroupConfig(consumer_session_timeout_ms=0),
        )
        return ev.GroupConfigChanged(at_ms, self.pick(*GROUPS), config)

    def _partition(self, at_ms):
        self.epoch += 1
        if self.state.status is Status.ACTIVE:  # a load would be late now; the watched session takes it for a real one
            late = self.pick(True, False) and not self.watched
            return (
                ev.LoadStarted(at_ms, leader_epoch=self.epoch)
                if late
                else ev.Unload(at_ms, leader_epoch=self.pick(None, self.epoch + 9, -1))
            )
        kept = tuple(self.log) if self.pick(True, False) else tuple(self.log[: self.state.committed])
        return self.pick(
            ev.Load(at_ms, leader_epoch=self.epoch, records=kept), ev.LoadStarted(at_ms, leader_epoch=self.epoch)
        )

    def feed(self, event):
        state, kept = self.state, pickle.dumps(self.state)
        driver = pickle.dumps((self.session.armed, self.session._versions))
        try:
            seen = self.session.feed(event)
        except IllegalEvent:
            assert self.state is state
            assert state == pickle.loads(kept)
            assert driver == pickle.dumps((self.session.armed, self.session._versions))
            self.refused += 1
            return
        self.now = event.at_ms
        if isinstance(event, ev.AppendFailed):
            del self.log[state.base :]
        elif isinstance(event, ev.Load) and state.status is not Status.ACTIVE:
            self.log = list(event.records)
        self.log += seen.records
        sound(self.session)


def sound(session):
    """Check the properties that hold under every profile: the state has the timers that the driver was asked to set."""
    state = session._state
    timers = {armed.key: armed.due for armed in state.timers.values()}
    assert timers == session.armed
    waiting = {
        number: name
        for name, group in state.groups.items()
        if isinstance(group, ClassicGroup)
        for member in group.members.values()
        for number in (member.join, member.sync)
        if number is not None and number >= 0
    }
    assert dict(state.parked) == waiting
    marks = [state.committed, *state.ends]
    assert marks == sorted(set(marks))
    assert marks[-1] == state.end
    offsets = [operation.offset for operation in state.operations.values()]
    assert offsets == sorted(offsets)
    assert all(state.committed < offset <= state.end for offset in offsets)
    assert all(change.offset > state.committed for change in state.changes)


def play(data, protocol, profile, steps=45):
    stream = Stream(data, protocol, profile)
    stream.feed(ev.TopicsChanged(1, TOPICS[:2], version=1))
    stream.feed(ev.Load(1, leader_epoch=1, records=()))
    for _ in range(steps):
        stream.feed(stream.next())
    if stream.state.status is Status.ACTIVE:  # the watched session checks INV-REPLAY-01
        stream.feed(ev.Unload(stream.now, leader_epoch=None))
        stream.feed(ev.Load(stream.now, leader_epoch=1_000, records=tuple(stream.log)))
    return stream


@pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: profile.name)
@pytest.mark.parametrize("protocol", list(BODIES))
def test_each_event_is_refused_or_handled(protocol, profile):
    refused = []

    @chosen(10, 50)
    @given(st.data())
    def run(data):
        refused.append(play(data, protocol, profile).refused)

    run()
    assert sum(refused) > 5


def anything(*_):
    """A check that passes everything."""


def never_appended(step, error):
    """A faulty undo: the records are lost, and their effect stays."""
    step.log.start = step.state.base
    step.log.ends = tuple(end for end in step.log.ends if end <= step.log.start)


PLANTED = {
    "a timer may fire at any time": lambda plant: plant.setitem(contract._CHECKS, ev.TimerFired, anything),
    "an id may be had twice": lambda plant: plant.setitem(contract._CHECKS, ev.Request, anything),
    "any offset is replicated": lambda plant: plant.setitem(contract._CHECKS, ev.Appended, anything),
    "fields are not looked at": lambda plant: plant.setattr(contract, "fault", anything),
    "no request is parked": lambda plant: plant.setattr(GroupDraft, "_park", anything),
    "a timer that fired stays": lambda plant: plant.setattr(
        timers.Timers, "fires", lambda those, key: those.armed(key)
    ),
    "a failed append takes nothing back": lambda plant: plant.setattr(reversion, "append_failed", never_appended),
    "every id is a member": lambda plant: plant.setattr(membership, "invalid", anything),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_found(name, monkeypatch):
    PLANTED[name](monkeypatch)

    @chosen(600, 50, database=None, phases=[Phase.generate])
    @given(st.data())
    def run(data):
        play(data, "mixed", INTENDED)

    with pytest.raises(BaseException) as found:  # noqa: PT011 — a broken rule, or whatever else the fault leads to
        run()
    assert not isinstance(found.value, KeyboardInterrupt | pytest.fail.Exception)
