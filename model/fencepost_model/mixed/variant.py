"""The rules of mixed groups and of conversions that a profile can change; see ``differences``.

The rules import this type, so it has no functions; ``switches`` has them, and the table of the releases.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from fencepost.protocol.errors import ErrorCode

from ..classic.state import Group
from ..consumer.state import ConsumerGroup, Converted, Member, Target
from ..differences import function, rule

#: ``consumer.work.ConsumerGroups`` and ``consumer.group_step.GroupStep`` hold these rules, so this module stands below
#: theirs.
ConsumerGroups: TypeAlias = Any
GroupStep: TypeAlias = Any


@dataclass(frozen=True, slots=True, kw_only=True)
class MixedVariant:
    """Values are as intended by default; ``switches.INTENDED`` adds the functions."""

    empty_group_keeps_epoch: bool = rule(
        True, "C-JOIN-16", "M-VAL-22", "INV-CONV-01", says="an empty group that changes its kind continues its epochs"
    )

    # requests of classic members
    disabled_policy_refuses: bool = rule(
        True, "X-POL-04", "V-60", says='with the policy "disabled" a consumer group refuses classic members'
    )
    malformed_join: ErrorCode = rule(
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "X-JOIN-09", "V-125", says="the error for an unreadable subscription"
    )
    checks_generation: bool = rule(
        True,
        "X-JOIN-06",
        "X-JOIN-10",
        "X-JOIN-12",
        "INV-KIP-09",
        says="the generation in a subscription decides what its owned partitions confirm",
    )
    checks_all_metadata: bool = rule(
        True, "X-DOWN-09", "X-SYNC-07", says="a join or an upgrade reads the metadata of every protocol"
    )
    is_behind: Callable[[GroupStep, Member], bool] = function(
        "X-HB-03",
        "X-SYNC-05",
        "LIV-14",
        "V-61",
        "V-62",
        says="a classic member rejoins for a target, and to compute one that is due",
    )

    # upgrades
    upgrade_checks_first: bool = rule(
        True, "X-UP-03", "X-UP-06", "X-UP-09", says="an upgrade responds and sets timers only after its last check"
    )
    upgrade_needs_protocol: bool = rule(
        True, "X-UP-07", says="an upgrade in the first rebalance of a group is refused, and may be tried again"
    )
    upgrade_bumps: bool = rule(True, "X-UP-15", "LIV-16", says="an upgrade begins a new epoch")
    brought_partitions: Callable[[Sequence[Converted]], dict[str, Target]] = function(
        "X-UP-05",
        "C-JOIN-42",
        "INV-KIP-01",
        says="a converted member keeps its assignment, and the free partitions that it claims",
    )
    bad_length: ErrorCode = rule(
        ErrorCode.GROUP_ID_NOT_FOUND, "X-UP-06", "V-124", says="the error of an upgrade for an impossible length"
    )

    # downgrades
    downgraded_assignment: Callable[[GroupStep, ConsumerGroup, Member, str], Target | None] = function(
        "X-DOWN-04", "INV-KIP-09", "V-67", says="a member keeps the partitions that it holds"
    )
    downgrade_follows_target: bool = rule(
        True, "X-DOWN-22", "V-65", "V-67", says="the classic group rebalances if the target is behind its epoch"
    )
    pays_what_it_owes: bool = rule(
        True, "X-DOWN-22", says="the classic group rebalances if a member is not at its target"
    )
    downgrade_keeps_bump: bool = rule(
        True, "X-DOWN-23", says="the classic group begins with the epoch that the request has begun"
    )
    downgrade_cancels_timers: bool = rule(
        True, "X-DOWN-06", "X-DOWN-33", says="the timers of the former consumer group are cancelled"
    )
    note_topics: Callable[[ConsumerGroups, str, ConsumerGroup, Group | ConsumerGroup | None], None] = function(
        "X-DOWN-30", "M-META-03", says="a classic group gets no updates of topics"
    )
