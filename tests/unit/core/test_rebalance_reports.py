"""Each cause of a rebalance that the core reports, and the reports until the rebalance ends."""

from __future__ import annotations

import pytest

from fencepost.protocol import messages as m
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Load, Outcome, Topic, Unload
from fencepost.protocol.rebalances import (
    GenerationBegan,
    GroupType,
    MemberIdentity,
    RebalanceCause,
    RebalanceEnded,
    RebalanceReason,
    RebalanceReport,
    RebalanceStarted,
)

from .consumer_scene import LATER, TOPICS, A, B
from .mixed_scene import MixedScene, wants
from .scene import GROUP

C = "(client c at /127.0.0.1)"


class Reported(MixedScene):
    """A scene that keeps the reports of rebalances."""

    def feed(self, event: object) -> Outcome:
        outcome = super().feed(event)  # type: ignore[arg-type]
        if not hasattr(self, "reports"):
            self.reports: list[RebalanceReport] = []
        self.reports += outcome.rebalances
        return outcome

    @property
    def started(self) -> list[RebalanceStarted]:
        return [each for each in self.reports if isinstance(each, RebalanceStarted)]

    @property
    def last(self) -> str:
        """Return the cause of the last rebalance."""
        return str(self.started[-1].cause)

    def joined_alone(self, *protocols: str) -> str:
        """Return a scene with the static member i1, Stable in generation 1."""
        ask = self.join("", *protocols, instance="i1")
        self.pass_time(self.state.settings.group_initial_rebalance_delay_ms * 2)
        member_id = self.joined(ask).member_id
        self.sync(member_id, 1, {member_id: b"all"})
        return member_id

    def settled(self) -> None:
        """Return a scene with members m1 and m2 of a consumer group, both Stable."""
        self.come("m1", "a")
        self.pass_time(LATER)
        self.come("m2", "a")
        answer = self.ok("m1", self.who("m1").member_epoch, None, {A: range(4)})
        kept = {row.topic_id: row.partitions for row in answer.assignment or ()}
        self.ok("m1", self.who("m1").member_epoch, None, kept)
        self.ok("m2", self.who("m2").member_epoch, None, {})
        self.pass_time(LATER)


def test_a_classic_group_from_its_first_member_to_stable() -> None:
    scene = Reported()
    (leader,) = scene.stable(1)
    assert [type(each) for each in scene.reports] == [RebalanceStarted, GenerationBegan, RebalanceEnded]
    start, began, end = scene.reports
    assert isinstance(start, RebalanceStarted)
    assert isinstance(began, GenerationBegan)
    assert isinstance(end, RebalanceEnded)
    assert (start.group_id, start.group_type, start.generation) == (GROUP, GroupType.CLASSIC, 1)
    assert str(start.cause) == f"join of member {leader} {C}"
    assert not start.converted
    assert (began.generation, began.leader, began.members, began.removed) == (1, leader, 1, ())
    assert (end.generation, end.state) == (1, scene.now_in)


def test_the_first_of_two_members_is_the_leader() -> None:
    scene = Reported()
    leader, _ = scene.stable(2)
    (began,) = [each for each in scene.reports if isinstance(each, GenerationBegan)]
    assert (began.generation, began.leader, began.members) == (1, leader, 2)


def test_a_second_member_joins_and_gives_a_reason() -> None:
    scene = Reported()
    scene.stable(1)
    body = m.JoinGroupRequest(
        GROUP, session_timeout_ms=10_000, member_id="", protocol_type="consumer", protocols=(m.Protocol("range", b""),),
        rebalance_timeout_ms=10_000, group_instance_id="i", reason="hello",
    )  # fmt: skip
    scene.ask(body)
    assert scene.last == "join of member i-2 (instance i, client c at /127.0.0.1); client reason: hello"


def test_a_leader_rejoins() -> None:
    scene = Reported()
    leader, _ = scene.stable(2)
    scene.join(leader)
    assert scene.last == f"leader {leader} {C} rejoined"


@pytest.mark.parametrize("which", [0, 1])
def test_a_member_changes_its_protocols(which: int) -> None:
    scene = Reported()
    member = scene.stable(2)[which]
    scene.join(member, data=b"other")
    assert scene.last == f"member {member} {C} changed its protocols or subscription"


def test_a_follower_rejoins_with_the_same_protocols() -> None:
    """It gets the generation, and the group does not rebalance (C-JOIN-55)."""
    scene = Reported()
    _, follower = scene.stable(2)
    count = len(scene.reports)
    scene.join(follower)
    assert len(scene.reports) == count


def test_a_static_member_is_replaced_and_the_protocol_changes() -> None:
    """C-STATIC-08."""
    scene = Reported()
    old = scene.joined_alone("range", "roundrobin")
    scene.join("", "range", "roundrobin", instance="i1")
    assert len(scene.started) == 1  # the vote stays the same (C-STATIC-03)
    (kept,) = scene.group().members
    scene.join("", "roundrobin", "range", instance="i1")
    (new,) = scene.group().members
    assert old != kept.member_id
    assert scene.last == (
        f"static member {new.member_id} (instance i1, client c at /127.0.0.1) replaced {kept.member_id}"
    )


def test_a_static_member_is_replaced_while_the_group_waits_for_its_assignment() -> None:
    """C-STATIC-09."""
    scene = Reported()
    joins = [scene.join("", instance=each) for each in ("i1", "i2")]
    scene.pass_time(scene.state.settings.group_initial_rebalance_delay_ms * 2)
    old = scene.joined(joins[0]).member_id
    scene.join("", instance="i1")
    (new,) = [row.member_id for row in scene.group().members if row.group_instance_id == "i1"]
    assert scene.last == f"static member {new} (instance i1, client c at /127.0.0.1) replaced {old}"


def test_members_leave_in_one_request() -> None:
    scene = Reported()
    first, second, _ = scene.stable(3)
    scene.leave(m.LeaveGroupMember(first, reason="closed"), m.LeaveGroupMember(second, reason="closed"), "nobody")
    assert scene.last == f"member {first} {C}, {second} {C} left; client reason: closed"


def test_the_last_member_leaves() -> None:
    scene = Reported()
    (only,) = scene.stable(1)
    scene.leave(only)
    start, end = scene.reports[-2:]
    assert scene.last == f"member {only} {C} left"
    assert isinstance(start, RebalanceStarted)
    assert isinstance(end, RebalanceEnded)
    assert (start.generation, end.generation, end.state) == (2, 2, scene.now_in)


def test_a_session_expires_and_another_member_is_not_blamed() -> None:
    scene = Reported()
    first, second = scene.stable(2)
    scene.pass_time(9_000)
    scene.heartbeat(second, 1)
    scene.pass_time(1_000)
    assert scene.last == f"session of member {first} {C} expired after 10000 ms"
    assert len(scene.started) == 2


def test_members_that_do_not_rejoin_are_removed_when_their_rebalance_timeout_expires() -> None:
    scene = Reported()
    leader, silent = scene.stable(2)
    scene.join(leader)
    for _ in range(4):
        scene.pass_time(7_500)
        scene.heartbeat(silent, 1)
    began = scene.reports[-1]
    assert isinstance(began, GenerationBegan)
    assert ([str(each) for each in began.removed], began.timeout_ms) == ([f"{silent} {C}"], 30_000)
    assert (began.generation, began.leader, began.members) == (2, leader, 1)


def test_members_send_no_sync() -> None:
    scene = Reported()
    joins = [scene.newcomer(session=60_000) for _ in range(2)]
    scene.pass_time(scene.state.settings.group_initial_rebalance_delay_ms * 2)
    scene.sync(joins[0][0], 1)
    scene.pass_time(30_000)
    assert scene.last == f"no SyncGroup from member {joins[1][0]} {C} within the rebalance timeout of 30000 ms"


def test_the_log_does_not_take_an_assignment() -> None:
    scene = Reported(log="held")
    leader, _ = scene.newcomer()
    scene.replicate()
    scene.pass_time(scene.state.settings.group_initial_rebalance_delay_ms * 2)
    scene.sync(leader, 1)
    scene.fail(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert scene.last == f"the assignment of leader {leader} {C} could not be stored (NOT_ENOUGH_REPLICAS)"


def test_a_load_reports_nothing() -> None:
    scene = Reported()
    scene.stable(2)
    count = len(scene.reports)
    scene.load(scene.records)
    assert len(scene.reports) == count
    assert scene.now_in.value == "Stable"


def test_a_load_of_a_consumer_group_reports_nothing_until_its_topics_differ() -> None:
    scene = Reported()
    scene.settled()
    count = len(scene.started)
    scene.load(scene.records)
    scene.ok("m1", scene.who("m1").member_epoch)
    assert len(scene.started) == count
    scene.feed(Unload(scene.now, leader_epoch=None))
    scene.topics(Topic("a", A, 9), *TOPICS[1:])
    scene.feed(Load(scene.now, leader_epoch=5, records=tuple(scene.records)))
    scene.ok("m1", scene.who("m1").member_epoch)
    assert scene.last == "the topics differ from those that the group last saw"
    assert len(scene.started) == count + 1


def test_a_loaded_group_has_too_many_members() -> None:
    scene = Reported()
    scene.stable(3)
    small = Reported(group_max_size=2)
    small.load(scene.records)
    assert small.last == "the loaded group has more members than group.max.size (2)"
    full = Reported(group_max_size=3)
    full.load(scene.records)
    assert full.reports == []


def test_a_consumer_group_from_its_first_member_to_empty() -> None:
    scene = Reported()
    scene.come("m1", "a")
    start, end = scene.reports
    assert isinstance(start, RebalanceStarted)
    assert isinstance(end, RebalanceEnded)
    assert (start.group_type, start.generation) == (GroupType.CONSUMER, scene.seen.group_epoch)
    assert str(start.cause) == f"join of member m1 {C}"
    assert (end.generation, end.state) == (start.generation, scene.seen.state)
    scene.ok("m1", -1)
    assert scene.last == f"member m1 {C} left"
    assert isinstance(scene.reports[-1], RebalanceEnded)
    assert scene.reports[-1].state is scene.seen.state


def test_a_rebalance_of_a_consumer_group_ends_with_its_last_member() -> None:
    scene = Reported()
    scene.come("m1", "a")
    scene.pass_time(LATER)
    scene.come("m2", "a")
    assert isinstance(scene.reports[-1], RebalanceStarted)
    answer = scene.ok("m1", scene.who("m1").member_epoch, None, {A: range(4)})
    kept = {row.topic_id: row.partitions for row in answer.assignment or ()}
    scene.ok("m1", scene.who("m1").member_epoch, None, kept)
    assert isinstance(scene.reports[-1], RebalanceStarted)
    scene.ok("m2", scene.who("m2").member_epoch, None, {})
    assert scene.reports[-1] == RebalanceEnded(
        group_id=GROUP, generation=scene.seen.group_epoch, state=scene.seen.state
    )


def test_a_consumer_changes_its_subscription() -> None:
    scene = Reported()
    scene.settled()
    scene.ok("m2", scene.who("m2").member_epoch, ("a", "b"))
    assert scene.last == f"member m2 {C} changed its protocols or subscription"


def test_a_vote_changes_the_assignor() -> None:
    scene = Reported()
    scene.come("m1", "a", assignor="uniform")
    scene.pass_time(LATER)
    scene.ok("m1", scene.who("m1").member_epoch, assignor="range")
    assert scene.last == f"the vote of member m1 {C} changed the preferred assignor"


def test_topics_change_and_are_named_until_an_append_holds() -> None:
    scene = Reported(log="held")
    scene.beat("m1", 0, ("a", "b"), {}, timeout=30_000)
    scene.replicate()
    scene.pass_time(LATER)
    scene.topics(Topic("a", A, 5), TOPICS[1], TOPICS[2])
    scene.topics(Topic("a", A, 5), Topic("b", B, 3), Topic("d", bytes(15) + b"\x09", 1))
    count = len(scene.records)
    scene.beat("m1", scene.who("m1").member_epoch)
    assert scene.last == "topics changed: a, b"
    scene.fail(ErrorCode.NOT_ENOUGH_REPLICAS, len(scene.records) - count)
    undone = scene.reports[-1]
    assert isinstance(undone, RebalanceEnded)
    assert (undone.generation, undone.state) == (scene.seen.group_epoch + 1, None)
    scene.beat("m1", scene.who("m1").member_epoch)
    assert scene.last == "topics changed: a, b"
    scene.replicate()
    scene.pass_time(LATER)
    scene.topics(Topic("a", A, 6), Topic("b", B, 3))
    scene.beat("m1", scene.who("m1").member_epoch)
    assert scene.last == "topics changed: a"


def test_a_regular_expression_matches_other_topics() -> None:
    scene = Reported()
    scene.ok("m1", 0, None, {}, regex="[ab]", timeout=30_000)
    assert scene.started == []
    scene.resolved()
    assert scene.last == "a subscribed regular expression matches other topics: a, b"


def test_a_consumers_session_expires() -> None:
    scene = Reported()
    scene.settled()
    scene.pass_time(40_000)
    scene.ok("m1", scene.who("m1").member_epoch)
    scene.pass_time(5_000)
    assert scene.last == f"session of member m2 {C} expired after 45000 ms"


def test_a_consumer_does_not_give_up_its_partitions() -> None:
    scene = Reported()
    scene.come("m1", "a")
    scene.pass_time(LATER)
    scene.come("m2", "a")
    scene.ok("m1", scene.who("m1").member_epoch)
    scene.pass_time(30_000)
    assert scene.last == f"rebalance timeout of member m1 {C} expired after 30000 ms"


def test_a_static_consumer_is_replaced_with_another_subscription() -> None:
    scene = Reported()
    scene.come("m1", "a", instance="i")
    scene.ok("m1", -2, instance="i")
    scene.come("m2", "b", instance="i")
    assert scene.last == "static member m2 (instance i, client c at /127.0.0.1) replaced m1"


def test_an_unchanged_returning_static_consumer_causes_no_rebalance() -> None:
    scene = Reported()
    scene.come("m1", "a", instance="i")
    scene.ok("m1", -2, instance="i")
    count = len(scene.started)
    scene.come("m2", "a", instance="i")
    assert len(scene.started) == count


def test_a_group_is_upgraded_by_a_join_and_downgraded_by_a_departure() -> None:
    scene = Reported()
    scene.classic("i1", "i2")
    scene.come("m1", "a")
    assert scene.last == f"join of member m1 {C}"
    assert (scene.started[-1].group_type, scene.started[-1].converted) == (GroupType.CONSUMER, True)
    scene.ok("m1", -1)
    assert scene.last == f"member m1 {C} left"
    assert (scene.started[-1].group_type, scene.started[-1].converted) == (GroupType.CLASSIC, True)
    assert scene.started[-1].generation == scene.group().generation_id + 1


def test_a_group_is_downgraded_by_a_replacement() -> None:
    """There is one rebalance, although the request bumps the epoch too (X-DOWN-23)."""
    scene = Reported()
    scene.come("m1", "a", instance="i1")
    scene.pass_time(LATER)
    scene.rejoin("c1", "a", session=300_000, rebalance=300_000)
    count = len(scene.started)
    scene.join("", instance="i1", data=wants("a", "b"))
    assert len(scene.started) == count + 1
    assert scene.last.startswith("static member uuid-")
    assert scene.last.endswith("(instance i1, client c at /127.0.0.1) replaced m1")
    assert scene.started[-1].converted


def test_a_classic_member_of_a_consumer_group_does_not_rejoin_in_time() -> None:
    scene = Reported()
    first, second = scene.classic("i1", "i2", session=300_000)
    scene.come("m1", "a")
    scene.heartbeat(first, 1, "i1")
    scene.pass_time(30_000)
    reason_text = "did not rejoin within its rebalance timeout of 30000 ms"
    assert scene.last == f"member {first} (instance i1, client c at /127.0.0.1) {reason_text}"
    assert second in [row.member_id for row in scene.seen.members]


def test_a_classic_member_of_a_consumer_group_sends_no_sync() -> None:
    scene = Reported()
    scene.come("m1", "a")
    scene.rejoin("c1", "a", session=300_000, rebalance=20_000)
    scene.pass_time(20_000)
    assert scene.last == f"no SyncGroup from member c1 {C} within the rebalance timeout of 20000 ms"


def test_a_classic_member_leaves_a_consumer_group() -> None:
    scene = Reported()
    first, _ = scene.classic("i1", "i2")
    scene.come("m1", "a")
    scene.leave(m.LeaveGroupMember("", group_instance_id="i1", reason="admin"))
    assert scene.last == f"member {first} (instance i1, client c at /127.0.0.1) left; client reason: admin"


def test_a_new_group_whose_record_is_not_appended_is_undone() -> None:
    scene = Reported(log="held")
    scene.join("", instance="i")
    scene.fail(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert scene.reports[-1] == RebalanceEnded(group_id=GROUP, generation=1, state=None)


@pytest.mark.parametrize("reason", RebalanceReason)
def test_every_reason_has_a_text(reason: RebalanceReason) -> None:
    text = str(RebalanceCause(reason, (MemberIdentity("m"),), timeout_ms=1, topics=("t",), capacity=2))
    assert text
    assert "{" not in text


def test_the_session_of_a_classic_member_of_a_consumer_group_is_its_own() -> None:
    scene = Reported()
    scene.come("m1", "a")
    generation = scene.rejoin("c1", "a", session=10_000, rebalance=300_000).generation_id
    scene.fetched("c1", generation)
    scene.pass_time(10_000)
    assert scene.last == f"session of member c1 {C} expired after 10000 ms"
