"""Arbitrary streams of events that concern offsets: no event fails, a rejected event changes nothing, and the log gives
the live state.

There are few groups, of every kind, so that commits meet members, rebalances, transactions and the records of other
commits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from coordinator_machine import chosen
from hypothesis import Phase, given
from hypothesis import strategies as st

from fencepost import coordinator
from fencepost.aio.choices import RandomChoices
from fencepost.coordinator import CoordinatorState
from fencepost.coordinator.kernel.stored_offsets import OffsetStore
from fencepost.log import left
from fencepost.protocol import consumer_messages as c
from fencepost.protocol import events as ev
from fencepost.protocol import messages as m
from fencepost.protocol import offset_messages as o
from fencepost.protocol.embedded import Subscription, encode_subscription
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED, KAFKA_4_0, KAFKA_4_4
from fencepost.protocol.records import Record
from fencepost.protocol.settings import Settings
from fencepost_conformance.generate.carried import as_carried

SETTINGS = Settings(
    group_initial_rebalance_delay_ms=0,
    offset_metadata_max_bytes=3,
    offsets_retention_ms=20_000,
    offsets_retention_check_interval_ms=5_000,
)
IDS = [bytes(15) + bytes([number]) for number in range(4)]  # the first one is not an id
GROUPS = st.sampled_from(["g", "h", "i"])
MEMBERS = st.sampled_from(["", "m1", "m2", "m3"])
EPOCHS = st.integers(-2, 4)
NAMES = st.sampled_from(["a", "b", "x"])
PARTITIONS = st.integers(-1, 2)
PRODUCERS = st.integers(0, 2)
SUBSCRIPTIONS = [encode_subscription(Subscription(topics)) for topics in ((), ("a",), ("a", "b"))]
KAFKA_COMMITS = st.sampled_from([2, 4, 9, 10])


@st.composite
def topics(draw: st.DrawFn) -> tuple[o.OffsetCommitRequestTopic, ...]:
    parts = st.builds(
        o.OffsetCommitRequestPartition,
        PARTITIONS,
        committed_offset=st.integers(-1, 9),
        committed_metadata=st.sampled_from([None, "", "m", "long"]),
    )
    rows = st.builds(
        o.OffsetCommitRequestTopic,
        name=NAMES,
        topic_id=st.sampled_from(IDS),
        partitions=st.lists(parts, max_size=2).map(tuple),
    )
    return tuple(draw(st.lists(rows, max_size=2)))


WANTED = st.none() | st.lists(
    st.builds(
        o.OffsetFetchRequestTopic,
        name=NAMES,
        topic_id=st.sampled_from(IDS),
        partition_indexes=st.lists(PARTITIONS, max_size=2).map(tuple),
    ),
    max_size=2,
).map(tuple)
BODIES = (
    (
        KAFKA_COMMITS,
        st.builds(
            o.OffsetCommitRequest,
            GROUPS,
            generation_id_or_member_epoch=EPOCHS,
            member_id=MEMBERS,
            group_instance_id=st.sampled_from([None, None, "i"]),
            retention_time_ms=st.sampled_from([-1, 0, 3_000]),
            topics=topics(),
        ),
    ),
    (
        st.sampled_from([1, 3, 5, 6]),
        st.builds(
            o.TxnOffsetCommitRequest,
            GROUPS,
            transactional_id=st.just("tx"),
            producer_id=PRODUCERS,
            producer_epoch=st.just(0),
            generation_id=EPOCHS,
            member_id=MEMBERS,
            topics=topics(),
        ),
    ),
    (
        st.just(2),
        st.builds(
            o.WriteTxnMarkerRequest,
            producer_id=PRODUCERS,
            producer_epoch=st.just(0),
            coordinator_epoch=st.just(0),
            committed=st.booleans(),
        ),
    ),
    (
        st.sampled_from([7, 9, 10]),
        st.builds(
            o.OffsetFetchRequest,
            st.lists(
                st.builds(
                    o.OffsetFetchRequestGroup,
                    GROUPS,
                    member_id=st.none() | MEMBERS,
                    member_epoch=EPOCHS,
                    topics=WANTED,
                ),
                min_size=1,
                max_size=2,
            ).map(tuple),
            require_stable=st.booleans(),
        ),
    ),
    (
        st.just(0),
        st.builds(
            o.OffsetDeleteRequest,
            GROUPS,
            st.lists(
                st.builds(
                    o.OffsetDeleteRequestTopic,
                    name=NAMES,
                    partition_indexes=st.lists(PARTITIONS, max_size=2).map(tuple),
                ),
                max_size=2,
            ).map(tuple),
        ),
    ),
    (st.just(2), st.builds(m.DeleteGroupsRequest, st.lists(GROUPS, min_size=1, max_size=2).map(tuple))),
    (
        st.just(1),
        st.builds(
            c.ConsumerGroupHeartbeatRequest,
            GROUPS,
            member_id=st.sampled_from(["m1", "m2"]),
            member_epoch=st.sampled_from([0, 0, -1, 1, 2, 3]),
            rebalance_timeout_ms=st.just(5_000),
            subscribed_topic_names=st.sampled_from([("a",), ("a", "b")]),
            topic_partitions=st.just(()),
        ),
    ),
    (
        st.just(3),  # this assigns an id to members with an instance id immediately
        st.builds(
            m.JoinGroupRequest,
            GROUPS,
            session_timeout_ms=st.just(6_000),
            rebalance_timeout_ms=st.just(6_000),
            member_id=MEMBERS,
            group_instance_id=st.none(),
            protocol_type=st.sampled_from(["consumer", "consumer", "connect"]),
            protocols=st.sampled_from(SUBSCRIPTIONS).map(lambda each: (m.Protocol("range", each),)),
        ),
    ),
    (st.just(1), st.builds(m.LeaveGroupRequest, GROUPS, MEMBERS.map(lambda each: (m.LeaveGroupMember(each),)))),
)
WEIGHTS = st.sampled_from([0] * 6 + [1] * 5 + [2] * 3 + [3] * 3 + [4] * 2 + [5, 6, 6, 7, 7, 8])
IMAGES = st.sampled_from(
    [
        (ev.Topic("a", IDS[1], 2), ev.Topic("b", IDS[2], 1)),
        (ev.Topic("a", IDS[1], 2),),
        (ev.Topic("a", IDS[3], 2), ev.Topic("b", IDS[2], 1)),
    ]
)


class Counting(RandomChoices):
    """Count member ids, and take the first option of every other choice."""

    def __init__(self) -> None:
        self.count = 0

    def member_id(self, prefix: str) -> str:
        self.count += 1
        return f"m{self.count}"

    def leader(self, group_id: str, candidates: Sequence[str]) -> str:
        return candidates[0]

    def protocol(self, group_id: str, tied: Sequence[str]) -> str:
        return tied[0]


class Play:
    """A coordinator with its log and its driver."""

    def __init__(self, profile: Profile) -> None:
        self.state = coordinator.initial_state(SETTINGS, profile)
        self.choices = Counting()
        self.log: list[Record] = []
        self.now = self.number = self.images = 0
        self.answered: set[int] = set()
        self.feed(ev.Load(0, leader_epoch=1, records=()))

    def feed(self, event: ev.Event) -> None:
        before = self.state
        kept = hash_of(before)
        self.state, outcome = coordinator.step(before, event, self.choices)
        assert hash_of(before) == kept, "a step changed the state that it was given"
        if isinstance(event, ev.AppendFailed):
            del self.log[before.base :]
        self.log += outcome.records
        for reply in outcome.replies:
            assert reply.request_id not in self.answered, "answered twice"
            self.answered.add(reply.request_id)
        sound(self.state)

    def reloaded(self) -> CoordinatorState:
        fresh = coordinator.initial_state(SETTINGS, self.state.profile)
        return coordinator.replay(fresh, self.log)


def hash_of(state: CoordinatorState) -> str:
    return repr(state.offsets)


def sound(state: CoordinatorState) -> None:
    """Check that derived parts of the store fit the parts that they derive from (G-DATA-41), and that nothing is kept
    empty."""
    store = state.offsets
    holders: dict[int, set[str]] = {}
    for name, group in store.groups.items():
        assert group.committed or group.pending, "a group of nothing"
        counts: dict[Any, int] = {}
        for producer, mine in group.pending.items():
            assert mine, "a producer of nothing"
            holders.setdefault(producer, set()).add(name)
            for partition in mine:
                counts[partition] = counts.get(partition, 0) + 1
        assert dict(group.unstable) == counts
    assert {producer: set(groups) for producer, groups in store.producers.items()} == holders


def values(store: OffsetStore) -> object:
    """Return the stored values without their places in the log."""
    return {
        name: (
            {partition: stored.value for partition, stored in group.committed.items()},
            {
                (producer, partition): stored.value
                for producer, mine in group.pending.items()
                for partition, stored in mine.items()
            },
        )
        for name, group in store.groups.items()
    }


def unowned(state: CoordinatorState) -> set[str]:
    """Return the names that have offsets but no group."""
    return set(state.offsets.groups) - set(state.groups)


def one(play: Play, data: st.DataObject) -> None:
    state = play.state
    play.now += data.draw(st.sampled_from([0, 0, 0, 100, 4_000]))
    what = data.draw(
        st.sampled_from(["request"] * 12 + ["timer"] * 2 + ["appended"] * 4 + ["failed", "topics", "load"])
    )
    due = sorted((armed for armed in state.timers.values()), key=repr)
    if what == "timer" and due:
        armed = data.draw(st.sampled_from(due))
        play.now = max(play.now, armed.due)
        play.feed(ev.TimerFired(play.now, armed.key))
    elif what == "appended" and state.ends:
        play.feed(ev.Appended(play.now, offset=data.draw(st.sampled_from(state.ends))))
    elif what == "failed" and state.base < state.end:
        play.feed(ev.AppendFailed(play.now, data.draw(st.sampled_from([ErrorCode.NOT_ENOUGH_REPLICAS]))))
    elif what == "topics":
        play.images += 1
        play.feed(ev.TopicsChanged(play.now, data.draw(IMAGES), version=play.images))
    elif what == "load":
        log = left(play.log) if data.draw(st.booleans()) else play.log
        play.feed(ev.Unload(play.now, leader_epoch=None))
        play.log = list(log)
        play.feed(ev.Load(play.now, leader_epoch=2, records=tuple(play.log)))
    else:
        versions, bodies = BODIES[data.draw(WEIGHTS)]
        version = data.draw(versions)
        play.number += 1
        play.feed(
            ev.Request(
                play.now,
                id=play.number,
                version=version,
                client_id="c",
                client_host="/h",
                body=as_carried(data.draw(bodies), version),
                denied_topics=frozenset(data.draw(st.sampled_from(["", "", "", "b"]))),
            )
        )


def play(data: st.DataObject, profile: Profile, length: int = 40) -> None:
    """Run a stream of events; the log, whole and compacted, must give the live offsets."""
    stage = Play(profile)
    stage.images = 1
    stage.feed(ev.TopicsChanged(0, (ev.Topic("a", IDS[1], 2), ev.Topic("b", IDS[2], 1)), version=1))
    for _ in range(data.draw(st.integers(1, length))):
        one(stage, data)
    live, whole = stage.state, stage.reloaded()
    assert whole.offsets == live.offsets
    again = coordinator.replay(coordinator.initial_state(SETTINGS, profile), left(stage.log))
    assert values(again.offsets) == values(live.offsets)
    for state in (live, whole, again) if profile is INTENDED else (whole, again):  # C-JOIN-15
        assert not unowned(state)
    half = len(stage.log) // 2
    parts = coordinator.replay(coordinator.initial_state(SETTINGS, profile), stage.log[:half])
    if profile is not INTENDED:  # this takes the last record of each key of a group, and so needs all records
        assert coordinator.replay(parts, stage.log[half:]).offsets == live.offsets


@pytest.mark.parametrize("profile", [INTENDED, KAFKA_4_4, KAFKA_4_0], ids=lambda profile: profile.name)
def test_any_stream_of_offsets(profile: Profile) -> None:
    @chosen(60, 40, database=None, phases=[Phase.generate])
    @given(st.data())
    def run(data: st.DataObject) -> None:
        play(data, profile)

    run()
