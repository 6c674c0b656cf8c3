"""The comparison with Kafka's own client compares orders, ids and requests for metadata: each fault planted here
changes nothing else, and the differing field shows it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from fencepost.member import answers, lookup
from fencepost.member.consumer import answers as consumer_answers
from fencepost.member.consumer import requests as consumer_requests
from fencepost.member.events import FindCoordinator
from fencepost.protocol import embedded
from fencepost.protocol.partitions import TopicPartition
from fencepost.protocol.profiles import PROFILES
from fencepost_conformance.judge.client.judge import Judge
from fencepost_conformance.judge.client.kinds import Half, MemberProtocol
from fencepost_conformance.targets.jvm.builds import Build
from fencepost_conformance.targets.jvm.releases import NEWEST
from fencepost_consumer import consumer as whole

PROFILE = PROFILES[f"kafka-{'.'.join(NEWEST.split('.')[:2])}"]
CLASSIC, CONSUMER = MemberProtocol.CLASSIC, MemberProtocol.CONSUMER
#: Among them three of a member that leads others and gets other ids (4, 11, 18).
SEEDS = range(24)

Patch = pytest.MonkeyPatch


def backwards(topic: str) -> tuple[int, ...]:
    return tuple(-ord(each) for each in topic)


def partitions_backwards(partition: TopicPartition) -> tuple[tuple[int, ...], int]:
    return backwards(partition.topic), -partition.partition


def topics_of_a_subscription(patch: Patch) -> None:
    patch.setattr(embedded, "java_order", backwards)


def partitions_owned(patch: Patch) -> None:
    patch.setattr(embedded, "partition_order", partitions_backwards)


def the_id_of_before(patch: Patch) -> None:
    """The fault: a member that has an id keeps it, whatever the coordinator answers."""
    accept = answers._accepted

    def accepted(turn: Any, body: Any) -> None:
        kept = turn.member.generation.member_id or body.member_id
        leader = kept if body.leader == body.member_id else body.leader
        accept(turn, replace(body, member_id=kept, leader=leader))

    patch.setattr(answers, "_accepted", accepted)


def the_id_of_the_answer(patch: Patch) -> None:
    """The fault: a member of a consumer group takes the id that its coordinator names."""
    heard = consumer_answers.heard

    def renamed(turn: Any, sent: Any, body: Any) -> None:
        if body.member_id is not None:
            turn.member = turn.member._replace(member_id=body.member_id)
        heard(turn, sent, body)

    patch.setattr(consumer_answers, "heard", renamed)


def no_metadata_after_a_failed_look_up(patch: Patch) -> None:
    patch.setattr(lookup, "start_again", lookup.start)


def metadata_as_soon_as_a_look_up_fails(patch: Patch) -> None:
    """The core's earlier behaviour: also if only the heartbeat thread has looked."""
    fail = lookup.failed

    def failed(turn: Any, error: Any) -> None:
        fail(turn, error)
        if turn.member.coordinator.failed_for_now:
            turn.emit(lookup.RequestMetadata(turn.member.subscription.watched))

    patch.setattr(lookup, "failed", failed)


def another_group_is_looked_for(patch: Patch) -> None:
    patch.setattr(lookup, "FindCoordinator", lambda group_id: FindCoordinator(f"{group_id}!"))


def topics_of_a_heartbeat(patch: Patch) -> None:
    patch.setattr(consumer_requests, "java_order", backwards)


def partitions_of_a_heartbeat(patch: Patch) -> None:
    by_topic = consumer_requests._by_topic
    patch.setattr(
        consumer_requests,
        "_by_topic",
        lambda owned: tuple(replace(row, partitions=row.partitions[::-1]) for row in by_topic(owned)),
    )


def heartbeats_before_commits(patch: Patch) -> None:
    patch.setattr(whole, "_SENT_FIRST", whole._SENT_FIRST[::-1])


@pytest.mark.jvm
@pytest.mark.parametrize(
    ("plant", "half", "protocol", "field"),
    [
        (topics_of_a_subscription, Half.MEMBER, CLASSIC, "sends"),
        (partitions_owned, Half.MEMBER, CLASSIC, "sends"),
        (the_id_of_before, Half.MEMBER, CLASSIC, "member"),
        (no_metadata_after_a_failed_look_up, Half.MEMBER, CLASSIC, "metadata"),
        (metadata_as_soon_as_a_look_up_fails, Half.MEMBER, CLASSIC, "metadata"),
        (another_group_is_looked_for, Half.MEMBER, CLASSIC, "sends"),
        (topics_of_a_heartbeat, Half.MEMBER, CONSUMER, "sends"),
        (partitions_of_a_heartbeat, Half.MEMBER, CONSUMER, "sends"),
        (the_id_of_the_answer, Half.MEMBER, CONSUMER, "sends"),
        (heartbeats_before_commits, Half.GROUP_READER, CONSUMER, "sends"),
    ],
    ids=lambda each: each.__name__ if callable(each) else None,
)
def test_hidden_fields_are_compared(
    monkeypatch: Patch, plant: Callable[[Patch], None], half: Half, protocol: MemberProtocol, field: str
) -> None:
    plant(monkeypatch)
    with Judge(Build(NEWEST), PROFILE, protocol, 40, half) as judge:
        judged = map(judge.judge, SEEDS)
        fields = {name for each in judged if each.difference is not None for name in each.difference.fields}
    assert field in fields
