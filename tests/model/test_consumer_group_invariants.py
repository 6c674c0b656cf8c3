"""Promises that hold in every state of a consumer group, whatever requests arrive (rule book, 12.2)."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatRequest, TopicPartitions
from fencepost.protocol.consumer_view import ResolvedRegex
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Topic
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED, KAFKA_4_3, KAFKA_4_4
from fencepost.protocol.settings import Settings
from fencepost_model.consumer import (
    CanonicalOracle,
    ConsumerGroup,
    ConsumerGroupModel,
    ConsumerHeartbeat,
    Environment,
    Expire,
    Image,
    Member,
    Resolution,
    Resolve,
    heartbeat,
)
from fencepost_model.consumer.invariants import broken, broken_by_answer, view_of
from fencepost_model.consumer.replay import replay
from fencepost_model.consumer.state import REBALANCE, SESSION
from fencepost_model.promises import PROMISES, GroupStep, GroupView

TOPICS = (Topic("t1", b"1" * 16, 4), Topic("t2", b"2" * 16, 2), Topic("t1", b"3" * 16, 3))
IMAGES = tuple(Image(topics, at) for at, topics in enumerate([TOPICS[:2], TOPICS[:1], TOPICS[1:]]))
IDS = st.sampled_from(["m1", "m2", "m3"])
INSTANCES = st.sampled_from([None, None, "i1", "i2"])
NAMES = st.sampled_from([None, (), ("t1",), ("t1", "t2"), ("t2",)])
VOTES = st.sampled_from([None, None, "range", "uniform"])
REGEXES = st.sampled_from([None, None, None, "", "t.*", "t2", "none"])


def _matcher(regex: str) -> Callable[[str], bool] | None:
    return lambda name: re.fullmatch(regex, name) is not None


class Intended(RuleBasedStateMachine):
    """Drive one group with heartbeats, timers, resolutions and changes of topics in any order."""

    profile: Profile = INTENDED
    room = 9

    def __init__(self) -> None:
        super().__init__()
        settings = Settings(group_consumer_assignment_interval_ms=2_000, group_consumer_max_size=self.room)
        self.model = ConsumerGroupModel(settings, self.profile)
        self.group: ConsumerGroup | None = None
        self.image = IMAGES[0]
        self.now = 1_000
        self.task: Resolution | None = None

    def do(self, step: ConsumerHeartbeat | Expire | Resolve, choice: int = 0) -> None:
        environment = Environment(self.now, self.image, oracle=CanonicalOracle(_matcher), busy=self.task is not None)
        successors = self.model.successors(self.group, step, environment)
        found = successors[choice % len(successors)]
        before, after = self.group, found.group
        hash(after)
        if found.task is not None:
            self.task = found.task
        replayed = before
        for record in found.records:
            replayed = replay(self.model.variant, replayed, record)
        if after is not None:
            assert replayed is not None
            assert replayed._replace(refresh=after.refresh) == after  # INV-REPLAY-01
            assert broken(before, after, self.profile) == []
        reply = found.reply
        if reply is not None and isinstance(step, ConsumerHeartbeat) and after is not None:
            assert broken_by_answer(step.body, reply, before, after, self.profile) == []
            assert reply.error_code is ErrorCode.NONE or found.records == ()
            joins = step.body.member_epoch == 0 and reply.error_code is ErrorCode.NONE
            assert not joins or reply.assignment is not None  # M-RSP-01
        self.group = after

    def member(self, member_id: str) -> Member | None:
        return None if self.group is None else self.group.member(member_id)

    @rule(member_id=IDS, instance=INSTANCES, wanted=st.tuples(NAMES, REGEXES), vote=VOTES, choice=st.integers(0, 1))
    def join(
        self,
        member_id: str,
        instance: str | None,
        wanted: tuple[tuple[str, ...] | None, str | None],
        vote: str | None,
        choice: int,
    ) -> None:
        names, regex = wanted
        if names is None and regex is None:
            names = ("t1",)
        body = ConsumerGroupHeartbeatRequest(
            "g",
            member_id=member_id,
            member_epoch=0,
            instance_id=instance,
            rebalance_timeout_ms=5_000,
            subscribed_topic_names=names,
            subscribed_topic_regex=regex,
            server_assignor=vote,
            topic_partitions=(),
        )
        self.ask(body, choice)

    @rule(member_id=IDS, lag=st.sampled_from([0, 0, 0, 1]), names=NAMES, regex=REGEXES, mask=st.integers(0, 255))
    def beat(self, member_id: str, lag: int, names: tuple[str, ...] | None, regex: str | None, mask: int) -> None:
        """Send a heartbeat of a member, which owns some of its partitions or does not say."""
        member = self.member(member_id)
        if member is None:
            self.ask(
                ConsumerGroupHeartbeatRequest(
                    "g", member_id=member_id, member_epoch=1, subscribed_topic_names=names, subscribed_topic_regex=regex
                )
            )
            return
        owned = None
        if mask < 200:
            both = (*member.assigned, *member.revoking)
            owned = tuple(TopicPartitions(t, (n,)) for at, (t, n, _) in enumerate(both) if mask < 100 or mask >> at & 1)
            if mask < 50:
                owned = tuple(TopicPartitions(t, (n,)) for t, n, _ in member.assigned)
        epoch = member.epoch - lag
        body = ConsumerGroupHeartbeatRequest(
            "g",
            member_id=member_id,
            member_epoch=epoch,
            instance_id=member.instance,
            subscribed_topic_names=names,
            subscribed_topic_regex=regex,
            topic_partitions=owned,
        )
        self.ask(body, mask % 2)

    @rule(member_id=IDS, epoch=st.sampled_from([-1, -2]))
    def leave(self, member_id: str, epoch: int) -> None:
        member = self.member(member_id)
        instance = None if member is None else member.instance
        if epoch == -2 and instance is None:
            epoch = -1
        self.ask(ConsumerGroupHeartbeatRequest("g", member_id=member_id, member_epoch=epoch, instance_id=instance))

    def ask(self, body: ConsumerGroupHeartbeatRequest, choice: int = 0) -> None:
        self.do(ConsumerHeartbeat(body, 1, "c", "/h"), choice)

    @rule(member_id=IDS)
    def session_ends(self, member_id: str) -> None:
        self.do(Expire(SESSION, member_id))

    @rule(member_id=IDS, back=st.integers(0, 1))
    def rebalance_ends(self, member_id: str, back: int) -> None:
        member = self.member(member_id)
        self.do(Expire(REBALANCE, member_id, 0 if member is None else member.epoch - back))

    @precondition(lambda self: self.task is not None)
    @rule(failed=st.booleans())
    def resolved(self, failed: bool) -> None:
        task, self.task = self.task, None
        assert task is not None
        self.do(Resolve(task, failed))

    @rule(image=st.sampled_from(IMAGES))
    def topics_change(self, image: Image) -> None:
        self.image = image
        if self.group is not None:
            self.group = self.group._replace(refresh=None)

    @rule(by=st.sampled_from([1, 500, 2_000, 10_001]))
    def time_passes(self, by: int) -> None:
        self.now += by

    @invariant()
    def holds(self) -> None:
        assert self.group is None or len(self.group.members) <= self.room  # M-VAL-25


class Kafka(Intended):
    """Kafka's faults break none of the promises that have no exception."""

    profile = KAFKA_4_3


class Newer(Intended):
    """Neither do the faults that remain in 4.4, nor its other differences (V-120…123, V-127)."""

    profile = KAFKA_4_4


class Full(Newer):
    """The same, with room for two members."""

    room = 2


_SETTINGS = settings(
    max_examples=60, stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
TestIntended = Intended.TestCase
TestIntended.settings = _SETTINGS
TestKafka = Kafka.TestCase
TestKafka.settings = _SETTINGS
TestNewer = Newer.TestCase
TestNewer.settings = _SETTINGS
TestFull = Full.TestCase
TestFull.settings = _SETTINGS


@pytest.mark.parametrize("kind", [Intended, Kafka, Newer])
def test_a_replacement_may_leave_a_resolved_regex_behind(kind: type[Intended]) -> None:
    """The old regular expression stays resolved although no member uses it (M-STATIC-15, INV-KIP-18)."""
    state = kind()
    state.join("m1", None, (None, "t.*"), None, 0)
    state.join("m2", "i1", (("t1",), None), None, 0)
    state.resolved(failed=False)
    state.leave("m2", -2)
    state.join("m1", "i1", (("t1",), None), None, 0)
    assert state.group is not None
    promise = PROMISES["INV-KIP-18"]
    assert promise.holds(view_of(state.group)) is (promise.under(kind.profile) is promise.how)


@pytest.mark.parametrize("kind", [Intended, Kafka, Newer])
def test_a_member_may_be_replaced_through_its_former_instance_id(kind: type[Intended]) -> None:
    """The new member gets the partitions of one that is another instance now (M-STATIC-13). No promise that the profile
    keeps is broken (INV-KIP-09)."""
    state = kind()
    for instance in ("i1", "i2"):
        state.join("m1", instance, (("t1",), None), None, 0)
    state.beat("m1", 0, None, None, 20)
    state.leave("m1", -2)
    state.join("m2", "i1", (("t1",), None), None, 0)
    assert state.group is not None
    assert (state.member("m1") is None) is getattr(kind.profile, PROMISES["INV-KIP-09"].faults[0])


def _never_held(members: object) -> dict[object, int]:
    return {}


@pytest.mark.parametrize(
    "fault", [pytest.param("held partitions count as free", marks=pytest.mark.all), "instances are not looked up"]
)
def test_a_faulty_model_breaks_the_invariants(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model breaks the promises if it grants held partitions, or an instance id to a second member."""
    if fault == "held partitions count as free":
        monkeypatch.setattr(heartbeat, "holders", _never_held)
    else:
        monkeypatch.setattr(ConsumerGroup, "held_by", lambda self, instance: None)
    with pytest.raises(AssertionError):
        run_state_machine_as_test(
            Intended, settings=settings(_SETTINGS, max_examples=300, database=None, phases=[Phase.generate])
        )  # any failing run will do, not the shortest


def test_every_promise_is_about_something() -> None:
    """Each promise refuses some group, or some step."""
    held = ((b"1" * 16, 0, 9),)
    spoilt = ConsumerGroup(
        epoch=1,
        assignment_epoch=2,
        members=(
            Member("m1", "i", epoch=2, assigned=held, revoking=held),
            Member("m2", "i", epoch=3, assigned=held),
        ),
        target=(("m1", ((b"1" * 16, 0),)), ("m2", ((b"1" * 16, 0),))),
        regexes=(ResolvedRegex("t.*", (), version=1, timestamp=1),),
    )
    later = spoilt._replace(epoch=0, members=(Member("m3", epoch=1, assigned=held),))
    about = {name for name, promise in PROMISES.items() if promise.about in (GroupView, GroupStep)}
    assert {*broken(None, spoilt), *broken(spoilt, later)} == about
