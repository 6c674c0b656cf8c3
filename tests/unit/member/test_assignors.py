"""Assignors and embedded bytes: their rules, and thousands of random inputs compared with Kafka's own classes."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace

import pytest

from fencepost.member.assignors.base import GroupMember, RebalanceProtocol, common_protocol
from fencepost.member.assignors.range import RangeAssignor
from fencepost.member.assignors.round_robin import RoundRobinAssignor
from fencepost.member.consumer_protocol import (
    Assignment,
    SchemaError,
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from fencepost.member.partitions import TopicPartition, partition_order
from fencepost.member.settings import MemberSettings
from fencepost.protocol.events import Topic
from fencepost_conformance.targets.jvm.assignors import KafkaAssignors, client
from fencepost_conformance.targets.jvm.releases import NEWEST

ASSIGNORS = {"range": RangeAssignor(), "roundrobin": RoundRobinAssignor()}
# Names whose order by code points differs from that by UTF-16 units (A-COM-02).
NAMES = ["a", "b", "t10", "t9", "ä", "\uffee", "\U0001f980", "B", "_"]
RACKS = ["r1", "r2", "r3"]


def group(random: random.Random, *, racks: bool) -> tuple[dict[str, Topic], dict[str, GroupMember]]:
    names = random.sample(NAMES, random.randint(1, 5))
    sizes = [random.randint(0, 7) for _ in range(2)]
    topics = {}
    for name in names:
        size = random.choice(sizes)
        known = racks and random.random() < 0.8
        rows = tuple(frozenset(random.sample(RACKS, random.randint(0, 3))) for _ in range(size)) if known else ()
        topics[name] = Topic(name, b"", size, rows)
    members = {}
    wanted = [random.sample([*names, "gone"], random.randint(0, len(names))) for _ in range(2)]
    for member_id in random.sample(NAMES, random.randint(1, 6)):
        rack = random.choice([*RACKS, "r9", None]) if racks else None
        subscription = Subscription(tuple(random.choice(wanted)), rack_id=rack)
        instance = f"i{member_id}" if random.random() < 0.3 else None
        members[member_id] = GroupMember(subscription, instance)
    return topics, members


def assigned(name: str, topics: dict[str, Topic], members: dict[str, GroupMember]) -> dict[str, tuple]:
    result = ASSIGNORS[name].assign(topics, members).assignments
    return {member: assignment.partitions for member, assignment in result.items()}


AssignorsOf = Callable[[str], AbstractContextManager[KafkaAssignors]]


@pytest.fixture(scope="module")
def kafka(assignors_of: AssignorsOf) -> Iterator[KafkaAssignors]:
    with assignors_of(NEWEST) as asked:
        yield asked


@pytest.mark.jvm
@pytest.mark.parametrize("racks", [False, True], ids=["plain", "racks"])
@pytest.mark.parametrize("name", ASSIGNORS)
def test_same_shares_as_kafka(kafka, name, racks):
    draw = random.Random(f"{name} {racks}")
    groups = [group(draw, racks=racks) for _ in range(3_000)]
    answers = kafka.ask([client.assign(name, topics.values(), members) for topics, members in groups])
    for (topics, members), answer in zip(groups, answers, strict=True):
        ours, theirs = assigned(name, topics, members), client.shares(answer)
        if name == "range":  # Kafka lists a member's topics in the order of a hash map (A-RANGE-07)
            ours, theirs = by_topic(ours), by_topic(theirs)
        assert ours == theirs, (topics, members)


def by_topic(shares: dict[str, tuple[TopicPartition, ...]]) -> dict[str, list[TopicPartition]]:
    """Return topics in order, the partitions of each in the order of the assignor."""
    return {member: sorted(share, key=lambda each: partition_order(each)[0]) for member, share in shares.items()}


def some_subscription(draw: random.Random) -> Subscription:
    owned = {TopicPartition(draw.choice(NAMES), draw.randint(0, 300)) for _ in range(draw.randint(0, 6))}
    order = sorted(owned)
    draw.shuffle(order)
    return Subscription(
        tuple(draw.sample(NAMES, draw.randint(0, 5))),
        draw.choice([None, b"", b"data"]),
        tuple(order),
        draw.randint(-1, 5),
        draw.choice([None, "r1"]),
    )


@pytest.mark.jvm
def test_same_bytes_as_kafka(kafka):
    draw = random.Random("bytes")
    rows = [(some_subscription(draw), draw.randint(0, 4)) for _ in range(3_000)]
    answers = kafka.ask([client.write_subscription(each, version) for each, version in rows])
    for (each, version), answer in zip(rows, answers, strict=True):
        assert encode_subscription(each, version) == client.written(answer)
    shares = [(Assignment(each.owned_partitions, each.user_data), version) for each, version in rows]
    answers = kafka.ask([client.write_assignment(each, version) for each, version in shares])
    for (share, version), answer in zip(shares, answers, strict=True):
        assert encode_assignment(share, version) == client.written(answer)


@pytest.mark.jvm
def test_reads_and_refuses_the_same_bytes_as_kafka(kafka):
    draw = random.Random("damage")
    data = []
    for _ in range(6_000):
        each = some_subscription(draw)
        good = (
            encode_subscription(each, draw.randint(0, 3))
            if draw.random() < 0.7
            else encode_assignment(Assignment(each.owned_partitions, each.user_data))
        )
        data.append(damaged(draw, good))
    refused = 0
    questions = ((client.read_subscription, client.subscription, decode_subscription),
                 (client.read_assignment, client.assignment, decode_assignment))  # fmt: skip
    for ask, read, decode in questions:
        for each, answer in zip(data, kafka.ask([ask(each) for each in data]), strict=True):
            try:
                theirs = read(answer)
            except SchemaError:
                refused += 1
                with pytest.raises(SchemaError):
                    decode(each)
            else:
                assert decode(each) == theirs, each.hex()
    assert 1_000 < refused < 11_000


def damaged(draw: random.Random, data: bytes) -> bytes:
    """Cut, lengthen, change the version, or overwrite one byte outside texts (Java replaces invalid UTF-8)."""
    kind = draw.randint(0, 4)
    if kind == 0:
        return data[: draw.randint(0, len(data))]
    if kind == 1:
        return data + b"\0\1\2"
    if kind == 2:
        return draw.choice([-1, 4, 9, 32_767]).to_bytes(2, "big", signed=True) + data[2:]
    if kind == 3 and len(data) > 5:
        at = draw.randrange(2, 6)  # the length of the first array
        return data[:at] + bytes([draw.choice([0, 1, 2, 255])]) + data[at + 1 :]
    return data


# --- without Kafka at hand ---


@pytest.mark.parametrize("name", ASSIGNORS)
@pytest.mark.parametrize("seed", range(200))
def test_every_partition_once_and_only_to_subscribers(name, seed):
    topics, members = group(random.Random(seed), racks=seed % 2 == 1)
    shares = assigned(name, topics, members)
    assert shares.keys() == members.keys()  # A-COM-03
    given = [partition for share in shares.values() for partition in share]
    wanted = {topic for member in members.values() for topic in member.subscription.topics} & topics.keys()
    assert sorted(given) == sorted(
        TopicPartition(name, number) for name in wanted for number in range(topics[name].partitions)
    )  # A-PROP-01, A-PROP-02
    for member, share in shares.items():
        assert {each.topic for each in share} <= set(members[member].subscription.topics)  # A-PROP-03


@pytest.mark.parametrize("name", ASSIGNORS)
@pytest.mark.parametrize("seed", range(50))
def test_shares_depend_on_nothing_but_the_set_of_members(name, seed):
    """The order of the input and the previously owned partitions make no difference (A-PROP-05, A-PROP-07)."""
    dice = random.Random(seed)
    topics, members = group(dice, racks=False)
    shares = assigned(name, topics, members)
    shuffled = {member: members[member] for member in dice.sample(list(members), len(members))}
    fed_back = {
        member: replace(each, subscription=replace(each.subscription, owned_partitions=shares[member]))
        for member, each in shuffled.items()
    }
    assert assigned(name, dict(reversed(topics.items())), fed_back) == shares


@pytest.mark.parametrize(("name", "sizes"), [("range", [1, 1, 1, 0, 0]), ("roundrobin", [1, 1, 1, 0, 0])])
def test_members_beyond_the_partitions_stay_idle(name, sizes):
    """A-IDLE-01, A-PROP-04."""
    members = {member: GroupMember(Subscription(("t",))) for member in "abcde"}
    shares = assigned(name, {"t": Topic("t", b"", 3)}, members)
    assert [len(share) for share in shares.values()] == sizes


def test_range_gives_the_extras_to_the_first():
    members = {name: GroupMember(Subscription(("t", "u"))) for name in "abc"}
    topics = {name: Topic(name, b"", 4) for name in "tu"}
    shares = assigned("range", topics, members)
    assert [len(share) for share in shares.values()] == [4, 2, 2]  # A-RANGE-01, A-RANGE-02
    assert {each.partition for each in shares["a"] if each.topic == "t"} == {0, 1}


def test_round_robin_deals_over_topics():
    members = {name: GroupMember(Subscription(("t", "u"))) for name in "abc"}
    topics = {name: Topic(name, b"", 4) for name in "tu"}
    assert [len(share) for share in assigned("roundrobin", topics, members).values()] == [3, 3, 2]  # A-RR-02


def test_static_members_come_first():
    members = {
        "a": GroupMember(Subscription(("t",))),
        "z": GroupMember(Subscription(("t",)), "i1"),
        "y": GroupMember(Subscription(("t",)), "i2"),
    }
    shares = assigned("range", {"t": Topic("t", b"", 4)}, members)
    assert {member: len(share) for member, share in shares.items()} == {"z": 2, "y": 1, "a": 1}  # A-COM-02


def test_range_puts_partitions_near_where_it_can():
    members = {
        "a": GroupMember(Subscription(("t",), rack_id="r2")),
        "b": GroupMember(Subscription(("t",), rack_id="r1")),
    }
    near = Topic("t", b"", 2, (frozenset({"r1"}), frozenset({"r2"})))
    shares = assigned("range", {"t": near}, members)
    assert shares == {"a": (TopicPartition("t", 1),), "b": (TopicPartition("t", 0),)}  # A-RANGE-04


def test_range_ignores_racks_that_hold_everything():
    members = {
        "a": GroupMember(Subscription(("t",), rack_id="r2")),
        "b": GroupMember(Subscription(("t",), rack_id="r1")),
    }
    everywhere = Topic("t", b"", 2, (frozenset({"r1", "r2"}),) * 2)
    assert assigned("range", {"t": everywhere}, members)["a"] == (TopicPartition("t", 0),)  # A-COM-04


def test_protocol_is_the_highest_that_all_support():
    both = RangeAssignor("both", protocols=frozenset(RebalanceProtocol))
    assert common_protocol((RangeAssignor(), both)) is RebalanceProtocol.EAGER  # A-PROTO-02
    assert common_protocol((both,)) is RebalanceProtocol.COOPERATIVE
    only = RangeAssignor("only", protocols=frozenset({RebalanceProtocol.COOPERATIVE}))
    with pytest.raises(ValueError, match="in common"):
        MemberSettings("g", assignors=(RangeAssignor(), only))


@pytest.mark.parametrize(
    "settings",
    [
        {"heartbeat_interval_ms": 45_000},
        {"group_instance_id": ""},
        {"group_instance_id": ".."},
        {"group_instance_id": "a b"},
        {"assignors": (RangeAssignor(), RangeAssignor())},
    ],
)
def test_settings_that_kafka_refuses(settings):
    with pytest.raises(ValueError, match=r"."):
        MemberSettings("g", **settings)
