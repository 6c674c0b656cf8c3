"""The server's assignors: their rules one by one, and the properties of section 10.7 for random groups."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.coordinator.consumer.assignors import ASSIGNORS, AssignorError, GroupSpec, MemberSpec, Target
from fencepost.protocol.consumer_view import SubscriptionType

ALIKE, MIXED = SubscriptionType.HOMOGENEOUS, SubscriptionType.HETEROGENEOUS
T, U, V = (bytes(15) + bytes([number]) for number in (1, 2, 3))
TOPIC_IDS = st.binary(min_size=16, max_size=16)


def member(*topics: bytes, instance: str | None = None, **held: tuple[int, ...]) -> MemberSpec:
    names = {"t": T, "u": U, "v": V}
    return MemberSpec(instance, None, frozenset(topics), {names[each]: row for each, row in held.items()})


def sizes(target: Target) -> list[int]:
    return [sum(map(len, share.values())) for share in target.values()]


def pairs(share: Mapping[bytes, object]) -> set[tuple[bytes, int]]:
    return {(topic, number) for topic, row in share.items() for number in row}  # type: ignore[attr-defined]


@st.composite
def groups(draw: st.DrawFn, alike: bool | None = None) -> GroupSpec:
    """Draw a group whose previous target is disjoint and has existing topics, as every target does."""
    topics = draw(st.dictionaries(TOPIC_IDS, st.integers(1, 12), min_size=1, max_size=4))
    same = draw(st.booleans()) if alike is None else alike
    names = draw(st.lists(st.text("abcxyz", min_size=1, max_size=3), min_size=1, max_size=7, unique=True))
    held: dict[str, dict[bytes, set[int]]] = {name: {} for name in names}
    for topic_id, size in topics.items():
        for number in range(size):
            owner = draw(st.sampled_from([None, *names]))
            if owner is not None:
                held[owner].setdefault(topic_id, set()).add(number)
    members = {}
    for place, name in enumerate(names):
        wanted = frozenset(topics) if same else draw(st.frozensets(st.sampled_from(sorted(topics))))
        instance = f"i{-place}" if draw(st.booleans()) else None
        rows = {topic_id: tuple(sorted(row)) for topic_id, row in held[name].items() if not same or topic_id in wanted}
        members[name] = MemberSpec(instance, None, wanted, rows)
    return GroupSpec(members, ALIKE if same else MIXED, topics)


def fed_back(spec: GroupSpec, target: Target) -> GroupSpec:
    return spec._replace(members={name: each._replace(assigned=target[name]) for name, each in spec.members.items()})


@pytest.mark.parametrize("name", ASSIGNORS)
@given(spec=groups())
@settings(deadline=None, max_examples=300)
def test_complete_disjoint_and_subscribed(name: str, spec: GroupSpec) -> None:
    target = ASSIGNORS[name](spec)
    given_out = [each for share in target.values() for each in pairs(share)]
    assert len(set(given_out)) == len(given_out)  # A-PROP-02
    wanted = {topic for each in spec.members.values() for topic in each.topic_ids}
    assert set(given_out) == {(topic, number) for topic in wanted for number in range(spec.topics[topic])}  # A-PROP-01
    assert target.keys() == spec.members.keys()
    for each, share in target.items():
        assert share.keys() <= spec.members[each].topic_ids  # A-PROP-03
        assert all(row == tuple(sorted(row)) != () for row in share.values())


@pytest.mark.parametrize("name", ASSIGNORS)
@given(spec=groups())
@settings(deadline=None, max_examples=200)
def test_fed_back_it_stays(name: str, spec: GroupSpec) -> None:
    target = ASSIGNORS[name](spec)
    assert ASSIGNORS[name](fed_back(spec, target)) == target  # A-PROP-05


@given(spec=groups(alike=True), order=st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=200)
def test_uniform_is_even_and_moves_little(spec: GroupSpec, order) -> None:
    target = ASSIGNORS["uniform"](spec)
    loads = sizes(target)
    assert max(loads) - min(loads) <= 1  # A-PROP-04
    for name, each in spec.members.items():  # A-UHOM-04
        kept = pairs(each.assigned) & pairs(target[name])
        assert len(kept) == min(len(pairs(each.assigned)), len(pairs(target[name])))
    again = fed_back(spec, target)
    turned = dict(order.sample(list(again.members.items()), len(again.members)))
    assert ASSIGNORS["uniform"](again._replace(members=turned)) == target
    if len(turned) > 1:
        gone = next(iter(turned))
        staying = {name: each for name, each in turned.items() if name != gone}
        after = ASSIGNORS["uniform"](again._replace(members=staying))
        assert all(pairs(target[name]) <= pairs(after[name]) for name in staying)  # A-PROP-06


@given(spec=groups(), order=st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=100)
def test_range_does_not_depend_on_orders(spec: GroupSpec, order) -> None:
    turned = spec._replace(
        members=dict(order.sample(list(spec.members.items()), len(spec.members))),
        topics=dict(reversed(spec.topics.items())),
    )
    assert ASSIGNORS["range"](turned) == ASSIGNORS["range"](spec)  # A-PROP-07


def test_range_divides_topics_in_the_same_way() -> None:
    group = GroupSpec({name: member(T, U) for name in "ab"}, ALIKE, {T: 3, U: 3})
    assert ASSIGNORS["range"](group) == {"a": {T: (0, 1), U: (0, 1)}, "b": {T: (2,), U: (2,)}}  # A-SRANGE-02


def test_range_puts_static_members_first() -> None:
    group = GroupSpec({"a": member(T), "z": member(T, instance="i")}, ALIKE, {T: 1})
    assert ASSIGNORS["range"](group) == {"a": {}, "z": {T: (0,)}}  # A-SRANGE-01


def test_uniform_leaves_the_extra_where_it_is() -> None:
    held = {"a": member(T, t=(0,)), "b": member(T, t=(1, 2))}
    assert ASSIGNORS["uniform"](GroupSpec(held, ALIKE, {T: 3})) == {"a": {T: (0,)}, "b": {T: (1, 2)}}  # A-UHOM-01


def test_uniform_gives_extras_to_the_last() -> None:
    group = GroupSpec({name: member(T) for name in "abc"}, ALIKE, {T: 4})
    assert sizes(ASSIGNORS["uniform"](group)) == [1, 1, 2]  # A-UHOM-01


def test_uniform_drops_unsubscribed_partitions() -> None:
    group = GroupSpec({"a": member(T, u=(0,)), "b": member(T, t=(0,))}, ALIKE, {T: 2, U: 1})
    assert ASSIGNORS["uniform"](group) == {"a": {T: (1,)}, "b": {T: (0,)}}  # A-UHOM-02


def test_a_stale_type_takes_one_members_topics_for_all() -> None:
    group = GroupSpec({"a": member(T), "b": member(U)}, ALIKE, {T: 2, U: 2})
    assert ASSIGNORS["uniform"](group) == {"a": {T: (0,)}, "b": {T: (1,)}}  # LIV-13
    nothing = GroupSpec({"a": member(), "b": member(U, u=(0, 1))}, ALIKE, {U: 2})
    assert ASSIGNORS["uniform"](nothing) == {"a": {}, "b": {}}  # A-UHOM-05


def test_uniform_balances_over_topics() -> None:
    group = GroupSpec({"a": member(T, t=(0, 1, 2, 3)), "b": member(T, U)}, MIXED, {T: 4, U: 2})
    assert sizes(ASSIGNORS["uniform"](group)) == [3, 3]  # A-UHET-03
    assert pairs(ASSIGNORS["uniform"](group)["a"]) == {(T, 0), (T, 1), (T, 2)}


def test_uniform_sets_aside_members_that_own_nothing_of_a_topic() -> None:
    group = GroupSpec(
        {"a": member(T, U, t=(0, 1, 2, 3, 4)), "b": member(U), "c": member(U, u=(0,))}, MIXED, {T: 5, U: 1}
    )
    assert ASSIGNORS["uniform"](group)["a"] == {T: (0, 1, 2, 3, 4)}  # A-UHET-04


@pytest.mark.parametrize("kind", SubscriptionType)
@pytest.mark.parametrize("name", ASSIGNORS)
def test_a_topic_without_metadata_is_an_error(name: str, kind: SubscriptionType) -> None:
    with pytest.raises(AssignorError, match="does not exist"):
        ASSIGNORS[name](GroupSpec({"a": member(T, V)}, kind, {T: 1}))


@pytest.mark.parametrize("name", ASSIGNORS)
def test_without_members_nothing_is_assigned(name: str) -> None:
    assert ASSIGNORS[name](GroupSpec({}, ALIKE, {T: 1})) == {}


def test_a_partition_that_two_own_leaves_too_many() -> None:
    """No target is like that; it must not pass unnoticed (A-UHOM-06)."""
    group = GroupSpec({"a": member(T, t=(0,)), "b": member(T, t=(0, 1, 2))}, ALIKE, {T: 2})
    with pytest.raises(AssignorError, match="left unassigned"):
        ASSIGNORS["uniform"](group)


def topic(number: int) -> bytes:
    return bytes(15) + bytes([number])


def test_topics_come_in_the_order_of_a_hash_table() -> None:
    """As observed in Kafka 4.3.1: 1 and 17 share a bucket of sixteen, 2 and 33 come after them (A-UHOM-07)."""
    ids = [topic(number) for number in (17, 2, 1, 33)]
    group = GroupSpec({name: member(*ids) for name in "ab"}, ALIKE, dict.fromkeys(ids, 1))
    assert ASSIGNORS["uniform"](group)["a"].keys() == {topic(1), topic(17)}
    held = dict.fromkeys(ids, (0, 1))
    group = GroupSpec({"a": member(*ids)._replace(assigned=held), "b": member(*ids)}, ALIKE, dict.fromkeys(ids, 2))
    assert ASSIGNORS["uniform"](group)["b"].keys() == {topic(2), topic(33)}


def test_partitions_are_revoked_in_the_order_of_a_hash_table() -> None:
    """Eleven numbers are in sixteen buckets, so 19 comes before 4 (A-UHOM-07)."""
    group = GroupSpec(
        {"a": member(T, t=(0, 1, 2, 3, 4, 5, 6, 16, 17, 18, 19)), "b": member(T, t=(7, 8, 9, 10))}, ALIKE, {T: 20}
    )
    assert ASSIGNORS["uniform"](group)["a"][T] == (0, 1, 2, 3, 4, 5, 16, 17, 18, 19)
