"""Upgrades: when waiting members are answered, and what happens to their assignments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from fencepost.quirks import intended, quirk

from ...classic.group import ClassicGroup
from ...consumer import records
from ...consumer.group import Share
from ...consumer.group_epoch import TopicsLook
from ...kernel.step import Step
from ...mixed import upgrade
from ..consumer import partition_metadata


@quirk("fault_upgrade_answers_before_checks", of=upgrade.convert)
def answers_first(step: Step, group: ClassicGroup) -> upgrade.Upgrade:
    """Kafka answers the waiting members before it reads their subscriptions, and sets their timers before it checks
    whether there is room for the new member. If the upgrade is refused then, the group is still a classic one, but its
    members have been answered as if it were not (X-UP-03, X-UP-06, X-UP-09)."""
    upgrade.answer_parked(step, group)
    result = intended(upgrade.convert)(step, group)
    upgrade.watch(step, group)
    return result


@quirk("fault_upgrade_answers_before_checks", of=upgrade.release_classic_members)
def all_were_told(step: Step, group: ClassicGroup) -> None:
    """All members have been answered already (X-UP-03)."""


@quirk("fault_upgrade_without_bump", of=upgrade.upgrade_bumps)
def goes_on_at_its_generation(step: Step) -> bool:
    """An upgrade by a member that continues a classic one begins no epoch: partitions that the interrupted rebalance
    would have distributed are assigned to no member (X-UP-15, LIV-16)."""
    return False


@quirk("fault_upgrade_overlooks_owned", of=upgrade.shares_of)
def believes_assignments(step: Step, found: Sequence[upgrade.ReadMember]) -> Mapping[str, Share]:
    """Kafka takes over the assignments only. Partitions whose assignment a rebalance in progress has cleared are given
    to other members, while a cooperative member still has them (X-UP-05, C-JOIN-42, INV-KIP-01)."""
    return {each.member.member_id: each.share for each in found}


@quirk("old_partition_metadata", of=upgrade.topics_as_known)
def writes_partitions(step: Step, group_id: str, names: Iterable[str]) -> TopicsLook:
    """4.0 keeps a record of the topics, and writes it even if it is empty (V-34, V-66)."""
    return TopicsLook(
        0, True, [records.partition_metadata(group_id, partition_metadata.partitions_of(step.topics, names))]
    )
