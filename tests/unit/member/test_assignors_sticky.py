"""sticky and cooperative-sticky: accepted claims, kept and withheld partitions; and whole groups that use them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fencepost.member.assignors import general, sticky_data
from fencepost.member.assignors.base import Assignor, GroupMember, RebalanceProtocol
from fencepost.member.assignors.range import RangeAssignor
from fencepost.member.assignors.sticky import CooperativeStickyAssignor, StickyAssignor
from fencepost.member.consumer_protocol import (
    Assignment,
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_subscription,
)
from fencepost.member.events import Send
from fencepost.member.partitions import TopicPartition
from fencepost.member.settings import MemberSettings
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Topic
from fencepost_conformance.generate.simulate import draw_plan, simulate

from .driver import Driver

TOPICS = {name: Topic(name, b"", 4) for name in "tu"}


def parts(text: str) -> tuple[TopicPartition, ...]:
    """Return partitions from names: ``t0 u1`` are partition 0 of t and partition 1 of u."""
    return tuple(TopicPartition(word[0], int(word[1:])) for word in text.split())


def owner(held: str = "", topics: str = "tu", generation: int = 1, rack: str | None = None) -> GroupMember:
    return GroupMember(Subscription(tuple(topics), None, parts(held), generation, rack))


def eager(held: str, topics: str = "tu", generation: int = 1, reported: int | None = None) -> GroupMember:
    data = sticky_data.write(parts(held), generation)
    return GroupMember(Subscription(tuple(topics), data, (), generation if reported is None else reported))


def shares(assignor: Assignor, topics: dict[str, Topic], **members: GroupMember) -> dict[str, str]:
    assigned = assignor.assign(topics, members).assignments
    return {
        name: " ".join(f"{topic}{number}" for topic, number in sorted(share.partitions))
        for name, share in assigned.items()
    }


STICKY, COOPERATIVE = StickyAssignor(), CooperativeStickyAssignor()


def test_protocols() -> None:
    assert StickyAssignor().protocols == {RebalanceProtocol.EAGER}  # A-PROTO-01
    assert MemberSettings("g", assignors=(COOPERATIVE,)).protocol is RebalanceProtocol.COOPERATIVE  # A-PROTO-02
    assert MemberSettings("g", assignors=(RangeAssignor(), COOPERATIVE)).protocol is RebalanceProtocol.EAGER


def test_a_member_reports_its_last_assignment() -> None:
    assert STICKY.user_data(frozenset()) is None  # nothing yet
    after = STICKY.on_assignment(Assignment(parts("u1 t0 u0")), 7)
    claim = sticky_data.previous(Subscription((), after.user_data(frozenset())))
    assert (sorted(claim.partitions), claim.generation) == (sorted(parts("u1 t0 u0")), 7)  # A-STICKY-01
    assert COOPERATIVE.user_data(frozenset()) == b"\xff\xff\xff\xff"
    assert COOPERATIVE.on_assignment(Assignment(()), 7).user_data(frozenset()) == b"\0\0\0\7"


@pytest.mark.parametrize(
    ("data", "claim"),
    [
        (None, sticky_data.Claim((), None)),
        (b"", sticky_data.Claim((), None)),
        (sticky_data.write(parts("t1"), 3)[:-4], sticky_data.Claim(parts("t1"), None)),  # version 0
        (b"\0\0", sticky_data.Claim((), -1)),  # unreadable
    ],
)
def test_user_data_of_old_clients(data: bytes | None, claim: sticky_data.Claim) -> None:
    assert sticky_data.previous(Subscription((), data, parts("t3"), 9)) == claim  # A-STICKY-01


@pytest.mark.parametrize(
    ("reported", "generation"), [((None, 5), 5), ((None, -1), None), ((b"\0\0\0\4", -1), 4), ((b"\0", -1), -1)]
)
def test_generation_of_cooperative_members(reported: tuple[bytes | None, int], generation: int | None) -> None:
    subscription = Subscription((), reported[0], parts("t3"), reported[1])
    assert sticky_data.owned(subscription) == sticky_data.Claim(parts("t3"), generation)  # A-STICKY-02


def test_members_keep_their_partitions() -> None:
    result = shares(COOPERATIVE, TOPICS, a=owner("t0 t1 u0"), b=owner("t2 t3 u1"))
    assert result == {"a": "t0 t1 u0 u2", "b": "t2 t3 u1 u3"}


def test_a_partition_that_changes_owner_waits_one_round() -> None:
    result = shares(COOPERATIVE, TOPICS, a=owner("t0 t1 t2 t3 u0 u1 u2 u3"), b=owner())
    assert result == {"a": "t0 t1 u0 u1", "b": ""}  # A-STICKY-11, A-COOP-01, A-COOP-02
    assert shares(COOPERATIVE, TOPICS, a=owner("t0 t1 u0 u1"), b=owner())["b"] == "t2 t3 u2 u3"
    assert shares(STICKY, TOPICS, a=eager("t0 t1 t2 t3 u0 u1 u2 u3"), b=eager(""))["b"] == "t2 t3 u2 u3"


def test_the_newer_of_two_claims_counts() -> None:
    result = shares(COOPERATIVE, TOPICS, a=owner("t0 t1 u0 u1", generation=2), b=owner("t0 t1 u2 u3", generation=1))
    assert result == {"a": "t0 t1 u0 u1", "b": "t2 t3 u2 u3"}  # A-STICKY-04, A-COOP-05


def test_two_claims_of_one_generation_cancel_each_other() -> None:
    result = shares(COOPERATIVE, TOPICS, a=owner("t0 t1 u0 u1"), b=owner("t0 t2 u2 u3"))
    assert result == {"a": "t1 u0 u1", "b": "t2 t3 u2 u3"}  # t0 is withheld


def test_the_other_members_generation_is_that_of_its_subscription() -> None:
    """A sticky client that sends no generation loses against any later claim (A-STICKY-04)."""
    late = {"a": eager("t0 t1 u0 u1", generation=5, reported=-1), "b": eager("t0 t1 u2 u3", generation=4)}
    assert shares(STICKY, TOPICS, **late)["b"].startswith("t0 t1")


def test_the_newest_generation_is_remembered() -> None:
    assigned = STICKY.assign(TOPICS, {"a": eager("t0", generation=9)})
    assert isinstance(assigned.assignor, StickyAssignor)
    assert assigned.assignor.newest == 9  # A-STICKY-05
    assert assigned.assignor.assign(TOPICS, {"a": eager("t0", generation=3)}).assignor == assigned.assignor


def test_different_subscriptions() -> None:
    topics = {name: Topic(name, b"", size) for name, size in (("t", 1), ("u", 2), ("v", 3))}
    members = {"a": owner(topics="t"), "b": owner(topics="tu"), "c": owner(topics="tuv")}
    assert shares(STICKY, topics, **members) == {"a": "t0", "b": "u0 u1", "c": "v0 v1 v2"}  # Kafka's own example
    left = {"b": eager("u0 u1", "tu"), "c": eager("v0 v1 v2", "tuv")}
    assert shares(STICKY, topics, **left) == {"b": "t0 u0 u1", "c": "v0 v1 v2"}


def test_moves_that_do_not_help_are_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    held = {"a": eager("t0 t1 t2 t3", "t"), "b": eager("", "t"), "c": eager("", "u")}
    assert shares(STICKY, TOPICS, **held)["b"] == "t0 t1"
    monkeypatch.setattr(general, "_score", lambda shares: 0)
    assert shares(STICKY, TOPICS, **held)["b"] == ""  # A-STICKY-23


def test_near_members_first() -> None:
    near = {"t": Topic("t", b"", 2, (frozenset({"r2"}), frozenset({"r1"})))}
    members = {"a": owner(topics="t", rack="r1"), "b": owner(topics="t", rack="r2")}
    assert shares(STICKY, near, **members) == {"a": "t1", "b": "t0"}  # A-STICKY-12b


def test_claims_to_partitions_that_do_not_exist() -> None:
    """A deleted topic, and a partition number that a recreated topic of that name does not have (A-STICKY-03,
    A-STICKY-27)."""
    result = shares(STICKY, {"t": Topic("t", b"", 2)}, a=eager("x0 t5", "t"), b=eager("", "t"))
    assert sorted(result.values()) == ["t0", "t1"]


def test_a_member_without_topics_gets_no_partitions() -> None:
    members = {"a": owner(topics=""), "b": owner(topics="t")}
    assert shares(STICKY, TOPICS, **members) == {"a": "", "b": "t0 t1 t2 t3"}
    faulty = StickyAssignor(faults=True)
    assert shares(faulty, TOPICS, **members) == {"a": "t0 t2", "b": "t1 t3"}  # A-STICKY-26, as Kafka does


def test_a_sticky_member_reports_its_last_assignment_in_its_next_join() -> None:
    driver = Driver(assignors=(STICKY,))
    driver.start()
    assert decode_subscription(driver.only(Send).body.protocols[0].metadata).user_data is None
    driver.settle(*parts("t1 t0"))
    driver.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    driver.poll()
    subscription = decode_subscription(driver.only(Send).body.protocols[0].metadata)
    assert subscription.owned_partitions == ()  # eager: revoked
    assert sticky_data.previous(subscription) == sticky_data.Claim(parts("t1 t0"), 1)  # A-STICKY-01


def test_a_cooperative_member_reports_its_partitions_and_their_generation() -> None:
    driver = Driver(assignors=(COOPERATIVE,))
    driver.settle(*parts("t1 t0"), generation=4)
    driver.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    driver.poll()
    subscription = decode_subscription(driver.only(Send).body.protocols[0].metadata)
    assert (subscription.owned_partitions, subscription.generation_id, subscription.user_data) == (
        parts("t0 t1"),
        4,
        b"\0\0\0\4",
    )


def test_a_leader_remembers_the_newest_generation() -> None:
    driver = Driver(assignors=(STICKY,))
    driver.start()
    driver.lead(("n", encode_subscription(eager("t0", "t", generation=9).subscription)))
    (assignor,) = driver.member.assignors
    assert isinstance(assignor, StickyAssignor)
    assert assignor.newest == 9  # A-STICKY-05
    shared = {row.member_id: decode_assignment(row.assignment) for row in driver.only(Send).body.assignments}
    assert TopicPartition("t", 0) in shared["n"].partitions


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    "assignors", [(STICKY,), (COOPERATIVE,), (RangeAssignor(), COOPERATIVE)], ids=["sticky", "cooperative", "upgrade"]
)
def test_groups_settle(seed: int, assignors: tuple[Assignor, ...]) -> None:
    """Members that use them, with the real coordinator and an unreliable network (A-COOP-06, LIV-05)."""
    plan = draw_plan(seed)
    hosts = tuple(replace(host, settings=replace(host.settings, assignors=assignors)) for host in plan.hosts)
    assert simulate(replace(plan, hosts=hosts)).broken is None
