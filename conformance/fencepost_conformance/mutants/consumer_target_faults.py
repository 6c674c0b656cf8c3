"""Faults of consumer groups: targets, what is known of topics, sizes, replay."""

from __future__ import annotations

from typing import Any

from fencepost.coordinator.consumer import metadata, replay, subscription, target
from fencepost.coordinator.consumer.draft import ConsumerDraft
from fencepost.coordinator.consumer.group import ConsumerGroup, ConsumerMember, Resolution
from fencepost.coordinator.kernel.errors import InternalError
from fencepost.coordinator.kernel.replay import Replay
from fencepost.coordinator.kernel.step import Step
from fencepost.protocol.consumer_records import AssignedPartitions
from fencepost.protocol.consumer_view import SubscriptionType

from .mutant import Mutant, Side
from .patched import Patches, patched


def _interval_ignored(patches: Patches) -> None:
    patches.attribute(target, "allowed", lambda step, group: True)


def _votes_ignored(patches: Patches) -> None:
    patches.attribute(target, "preferred", lambda step, *_: step.settings.group_consumer_assignors[0])


def _targets_written_again(patches: Patches) -> None:
    patches.attribute(target, "_same", lambda one, other: False)


def _target_from_nothing(patches: Patches) -> None:
    def computed(step: Step, group: ConsumerGroup, member: ConsumerMember, epoch: int, kind: SubscriptionType) -> Any:
        return original(step, group._replace(target={}), member, epoch, kind)

    original = patches.attribute(target, "_computed", computed)


def _topics_not_watched(patches: Patches) -> None:
    patches.attribute(metadata, "changed", lambda step, image: None)


def _hash_not_compared(patches: Patches) -> None:
    def look(step: Step, group: ConsumerGroup, names: Any) -> metadata.Facts:
        facts: metadata.Facts = original(step, group, names)
        return facts._replace(differ=False)

    original = patches.attribute(metadata, "look", look)


def _always_homogeneous(patches: Patches) -> None:
    patches.attribute(subscription, "type_of", lambda *_: SubscriptionType.HOMOGENEOUS)


def _epoch_must_be_free(patches: Patches) -> None:
    def hold(draft: ConsumerDraft, holding: Any, epoch: int) -> None:
        for topic_id, partitions in holding.items():
            if any(partition in draft.partition_epochs.get(topic_id, {}) for partition in partitions):
                raise InternalError
        original(draft, holding, epoch)

    original = patches.attribute(ConsumerDraft, "_hold", hold)


def _assignment_epochs_lost(patches: Patches) -> None:
    def holding(work: Replay, rows: tuple[AssignedPartitions, ...], epoch: int) -> Any:
        return original(work, tuple(AssignedPartitions(row.topic_id, row.partitions) for row in rows), epoch)

    original = patches.attribute(replay, "holding", holding)


def _regex_forgotten(patches: Patches) -> None:
    def resolve(draft: ConsumerDraft, regex: str, resolution: Resolution | None) -> None:
        if resolution is not None:
            original(draft, regex, resolution)

    original = patches.attribute(ConsumerDraft, "resolve", resolve)


FAULTS: tuple[Mutant, ...] = tuple(
    patched(name, Side.CONSUMER_GROUP, source, text, plant)
    for name, source, text, plant in (
        ("interval-ignored", "M-TGT-08", "a target is computed at every bump", _interval_ignored),
        ("votes-ignored", "M-TGT-02", "the default assignor is used whatever the members ask for", _votes_ignored),
        ("targets-written-again", "M-TGT-04",
         "targets that did not change are written too", _targets_written_again),
        ("target-from-nothing", "M-TGT-03",
         "the assignor does not see the target that there was", _target_from_nothing),
        ("topics-not-watched", "M-META-03", "a change of topics is not noticed", _topics_not_watched),
        ("hash-not-compared", "M-EPOCH-03",
         "new partitions and topics do not bump the group epoch", _hash_not_compared),
        ("always-homogeneous", "M-TGT-05",
         "all members are taken to subscribe to the same topics", _always_homogeneous),
        ("epoch-must-be-free", "KAFKA-19862",
         "a partition that changes hands in a compacted log fails the load", _epoch_must_be_free),
        ("assignment-epochs-lost", "M-PE-06",
         "the assignment epochs of a record are not read", _assignment_epochs_lost),
        ("regex-never-forgotten", "F-REC-16",
         "what a regex matched stays after its last user left", _regex_forgotten),
    )
)  # fmt: skip
