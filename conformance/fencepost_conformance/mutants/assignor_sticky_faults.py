"""Faults of the sticky assignors and of the server's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from fencepost.coordinator.consumer.assignors import ASSIGNORS, Assignor, GroupSpec, Target, uniform, uniform_mixed
from fencepost.coordinator.consumer.assignors import range as server_range
from fencepost.member.assignors import claims, constrained, general, sticky, sticky_data
from fencepost.member.assignors.base import GroupMember
from fencepost.member.assignors.claims import Claims
from fencepost.member.consumer_protocol import Subscription
from fencepost.member.partitions import TopicPartition
from fencepost.protocol.events import Topic

from .mutant import Side
from .patched import Patches, patched

Members = Mapping[str, GroupMember]
Topics = Mapping[str, Topic]
Told = Mapping[str, sticky_data.Claim]
Settle = Callable[..., Claims]


def _every_claim_counts(patches: Patches) -> None:
    def settle(order: Sequence[str], members: Members, told: Told, topics: Topics, newest: int, **how: bool) -> Claims:
        settled = original(order, members, told, topics, newest, **how)
        held = {name: dict.fromkeys(each for each in told[name].partitions if each.topic in topics) for name in order}
        return replace(settled, held=held, void=frozenset())

    original: Settle = patches.attribute(sticky, "settle", settle)


def _last_claim_wins(patches: Patches) -> None:
    def settle(order: Sequence[str], members: Members, told: Told, topics: Topics, newest: int, **how: bool) -> Claims:
        last = {each: name for name in order for each in told[name].partitions}
        only = {
            name: replace(told[name], partitions=tuple(each for each in told[name].partitions if last[each] == name))
            for name in order
        }
        return original(order, members, only, topics, newest, **how)

    original: Settle = patches.attribute(sticky, "settle", settle)


def _oldest_claim_wins(patches: Patches) -> None:
    def turned(claim: sticky_data.Claim) -> sticky_data.Claim:
        return replace(claim, generation=1_000 - claim.age)

    def settle(order: Sequence[str], members: Members, told: Told, topics: Topics, newest: int, **how: bool) -> Claims:
        others = {
            name: replace(
                member,
                subscription=replace(member.subscription, generation_id=1_000 - member.subscription.generation_id),
            )
            for name, member in members.items()
        }
        return original(order, others, {name: turned(claim) for name, claim in told.items()}, topics, newest, **how)

    original: Settle = patches.attribute(sticky, "settle", settle)


def _generation_is_lost(patches: Patches) -> None:
    def decoded(subscription: Subscription) -> sticky_data.Claim:
        return original(replace(subscription, generation_id=-1))

    original: Callable[[Subscription], sticky_data.Claim] = patches.attribute(sticky_data, "owned", decoded)


def _moves_in_one_round(patches: Patches) -> None:
    def nothing(members: Members, shares: Mapping[str, list[TopicPartition]]) -> dict[TopicPartition, str]:
        return {}

    def give(self: constrained._Deal, partition: TopicPartition, name: str) -> None:
        self.shares[name].append(partition)

    patches.attribute(sticky, "_changing_hands", nothing)
    patches.attribute(constrained._Deal, "_give", give)


def _balance_test_turned(patches: Patches) -> None:
    def look(self: general._Work) -> bool:
        return bool(self.queue) and self.queue[-1][0] >= self.queue[0][0] - 1

    patches.attribute(general._Work, "_look", look)


def _keeps_in_order_of_arrival(patches: Patches) -> None:
    def order(partition: TopicPartition) -> tuple[str, int]:
        return partition.topic, partition.partition

    patches.attribute(constrained, "_keeping_order", order)


def _former_owner_unsubscribed(patches: Patches) -> None:
    def assign(*given: Any, faults: bool) -> dict[str, list[TopicPartition]]:
        return original(*given, faults=True)

    original: Callable[..., dict[str, list[TopicPartition]]] = patches.attribute(general, "assign", assign)


def _nothing_is_like_everything(patches: Patches) -> None:
    def settle(order: Sequence[str], members: Members, told: Told, topics: Topics, newest: int, **how: bool) -> Claims:
        return claims.settle(order, members, told, topics, newest, faults=True)

    patches.attribute(sticky, "settle", settle)


def _gives_up_above_the_minimum(patches: Patches) -> None:
    def assign(spec: GroupSpec) -> Target:
        total = sum(spec.topics.get(each, 0) for each in next(iter(spec.members.values())).topic_ids)
        room = total // len(spec.members)
        members = {}
        for name, member in spec.members.items():
            kept = sorted((topic_id, number) for topic_id, row in member.assigned.items() for number in row)[:room]
            rows = {topic_id: frozenset(n for t, n in kept if t == topic_id) for topic_id, _ in kept}
            members[name] = member._replace(assigned=rows)
        return original(spec._replace(members=members))

    original: Assignor = patches.attribute(uniform, "_alike", assign)


def _topics_are_not_balanced(patches: Patches) -> None:
    patches.attribute(uniform_mixed._Work, "balance", lambda self: None)


def _starts_anew(patches: Patches) -> None:
    def assign(spec: GroupSpec) -> Target:
        return original(spec._replace(members={n: m._replace(assigned={}) for n, m in spec.members.items()}))

    original: Assignor = patches.item(ASSIGNORS, "uniform", assign)  # type: ignore[arg-type]


def _server_extras_to_the_last(patches: Patches) -> None:
    def cut(size: int, takers: int) -> list[tuple[int, ...]]:
        quota, extras = divmod(size, takers)
        rows, start = [], 0
        for position in range(takers):
            end = start + quota + (position >= takers - extras)
            rows.append(tuple(range(start, end)))
            start = end
        return rows

    patches.attribute(server_range, "_cut", cut)


A = Side.ASSIGNOR
FAULTS = (
    patched(
        "every-claim-counts", A, "KAFKA-7026", "members that come back with old claims keep what others hold now",
        _every_claim_counts,
    ),
    patched(
        "last-claim-wins", A, "KAFKA-12984", "of two claims the one that is read last counts", _last_claim_wins,
    ),
    patched(
        "oldest-claim-wins", A, "librdkafka 4252", "of two claims the older generation's counts", _oldest_claim_wins,
    ),
    patched(
        "generation-is-lost", A, "KAFKA-13715", "the leader does not see the generation of a subscription",
        _generation_is_lost,
    ),
    patched(
        "moves-in-one-round", A, "KAFKA-14639", "cooperative-sticky hands on what its owner has not given up",
        _moves_in_one_round,
    ),
    patched(
        "balance-test-turned", A, "KAFKA-15106", "least and most loaded are swapped in the test for balance",
        _balance_test_turned,
    ),
    patched(
        "keeps-in-order-of-arrival", A, "KAFKA-16277", "a member gives up whole topics", _keeps_in_order_of_arrival,
    ),
    patched(
        "former-owner-unsubscribed", A, "A-STICKY-25", "a partition goes back to a member that unsubscribed from it",
        _former_owner_unsubscribed,
    ),
    patched(
        "nothing-is-like-everything", A, "A-STICKY-26", "a member without topics gets those of the others",
        _nothing_is_like_everything,
    ),
    patched(
        "gives-up-above-the-minimum", A, "KAFKA-18688", "uniform takes the extra partition from who has it",
        _gives_up_above_the_minimum,
    ),
    patched("topics-are-not-balanced", A, "A-UHET-03", "uniform only deals what is free", _topics_are_not_balanced),
    patched("starts-anew", A, "KAFKA-5277", "uniform does not look at the previous target", _starts_anew),
    patched(
        "server-extras-to-the-last", A, "A-SRANGE-02", "the last members get the longer ranges",
        _server_extras_to_the_last,
    ),
)  # fmt: skip
