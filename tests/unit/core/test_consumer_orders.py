"""Orders that Kafka takes from hash tables, and the host chooses (A-UHOM-07)."""

from __future__ import annotations

from collections.abc import Sequence

from fencepost.hash_order import of_uuid
from fencepost.protocol.events import Topic

from .consumer_scene import ConsumerScene
from .scene import FirstOf

#: Two topics that share a bucket, and a third in another bucket.
ONE, OTHER, ALONE = bytes(15) + b"\x01", bytes(15) + b"\x11", bytes(15) + b"\x02"
TOPICS = Topic("one", ONE, 1), Topic("other", OTHER, 1), Topic("alone", ALONE, 1)


class LastIn(FirstOf):
    """Tables that were filled in the opposite order."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[bytes, ...]] = []

    def topics(self, group_id: str, topic_ids: Sequence[bytes]) -> Sequence[bytes]:
        self.asked.append(tuple(topic_ids))
        return topic_ids[::-1]


def scene_of(choices: FirstOf, *topics: Topic) -> ConsumerScene:
    scene = ConsumerScene(group_consumer_assignors=("uniform",), group_consumer_assignment_interval_ms=0)
    scene.choices = choices
    scene.topics(*topics)
    return scene


def target(scene: ConsumerScene, member: str) -> set[bytes]:
    return {row.topic_id for row in dict(scene.seen.target)[member]}


def given_up(scene: ConsumerScene, *names: str) -> set[bytes]:
    """Return the topic that the first member loses: it has two topics, and a second member joins."""
    scene.come("m1", *names)
    before = target(scene, "m1")
    assert len(before) == 2
    scene.come("m2", *names)
    return before - target(scene, "m1")


def test_revocations_follow_the_order_of_topics_in_one_bucket() -> None:
    assert of_uuid(ONE) & 15 == of_uuid(OTHER) & 15 != of_uuid(ALONE) & 15
    assert given_up(scene_of(FirstOf(), *TOPICS[:2]), "one", "other") == {OTHER}
    assert given_up(scene_of(LastIn(), *TOPICS[:2]), "one", "other") == {ONE}


def test_the_order_is_not_asked_where_each_topic_has_its_bucket() -> None:
    choices = LastIn()
    assert given_up(scene_of(choices, TOPICS[0], TOPICS[2]), "one", "alone") == {ALONE}
    assert choices.asked == []


def test_assignments_follow_the_order_of_topics_in_one_bucket() -> None:
    for choices, first in ((FirstOf(), ONE), (LastIn(), OTHER)):
        scene = scene_of(choices)
        scene.come("m1", "one", "other")
        scene.come("m2", "one", "other")
        scene.topics(*TOPICS[:2])
        scene.ok("m1", scene.who("m1").member_epoch)
        assert target(scene, "m1") == {first}
