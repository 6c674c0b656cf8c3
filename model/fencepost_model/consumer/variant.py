"""The rules of consumer groups that a profile can change; see ``differences``.

The rules import this type, so it has no functions; ``switches`` has them, and the table of the releases.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from fencepost.protocol.events import Topic

from ..differences import function, rule
from .state import Member, Target
from .target import GroupSpec

#: ``group_step.GroupStep`` holds these rules, so this module stands below its own.
GroupStep: TypeAlias = Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerVariant:
    """Values are as intended by default; ``switches.INTENDED`` adds the functions."""

    # requests and members
    checks_fields_first: bool = rule(
        True, "M-VAL-04", "V-29", says="the fields of a heartbeat are checked before the state of the partition"
    )
    returning_static_has_place: bool = rule(
        True, "M-VAL-30", "V-120", says="a full group accepts a static member that returns"
    )
    member_may_rejoin: bool = rule(True, "M-FENCE-07", "V-32", says="epoch 0 of a known member is accepted")
    rejoin_confirms_nothing: bool = rule(
        True, "M-FENCE-07", "INV-KIP-09", says="epoch 0 of a present member does not confirm its revocation"
    )
    static_may_rejoin: bool = rule(
        True, "M-STATIC-02", "L-06", says="a static member may return at epoch 0 with its own member id"
    )
    only_new_member_replaces: bool = rule(
        True, "M-STATIC-15", "A-UHOM-08", says="a member that is in the group does not replace another"
    )
    former_instance_is_free: bool = rule(
        True, "M-STATIC-13", "F-REPLAY-07", "V-123", says="a former instance id of a member is not mapped to it"
    )
    clamps_group_config: bool = rule(
        True, "M-CFG-01", "V-12", says="a group's own settings are clamped to the broker's bounds"
    )
    describes_revoking: bool = rule(
        True, "M-DESC-01", "V-16", says="a description includes the partitions that a member must revoke"
    )

    # the group epoch
    first_epoch: int = rule(1, "M-VAL-21", "V-30", "V-31", "F-REPLAY-11", says="the epoch of a group without records")
    dropped_regex_bumps: bool = rule(True, "M-HB-03", "V-33", says="a member that drops its regex begins a new epoch")
    changed_topics_bump: bool = rule(
        True, "LIV-15", says="a member whose topics change with its regex begins a new epoch"
    )
    assignor_changes: Callable[[GroupStep, tuple[Member, ...]], bool] = function(
        "M-HB-14",
        "M-HB-15",
        "M-TGT-02",
        "LIV-17",
        "V-121",
        says="votes that elect another assignor begin a new epoch",
    )
    absent_assignors_count: bool = rule(False, "M-TGT-02", says="only votes for configured assignors count")
    empty_group_reaches_target: bool = rule(
        True, "M-LEAVE-08", "V-122", says="the departure of the last member writes the target epoch too"
    )

    # topics
    first_image_version: int = rule(0, "M-RX-04", "V-43", says="the version of the image before the first one")
    refreshes_regexes: bool = rule(True, "M-RX-03", "V-10", says="regexes are resolved again after an interval")
    stores_hash: bool = rule(
        True,
        "M-META-07",
        "M-META-08",
        "V-34",
        "V-35",
        "V-37",
        "V-66",
        "V-72",
        "F-REPLAY-11",
        "F-REPLAY-12",
        says="the record of the group epoch has a hash of the metadata of the subscribed topics",
    )
    write_metadata: Callable[[GroupStep, tuple[Topic, ...], bool], None] = function(
        "F-ORD-06", "V-36", "V-71", says="the metadata have no separate record"
    )
    has_metadata: Callable[[GroupStep, tuple[Topic, ...]], bool] = function(
        "M-HB-04", "V-34", "V-35", says="metadata have changed if their hash has"
    )
    known_partitions: Callable[[GroupStep], dict[bytes, int]] = function(
        "M-TGT-03", "V-136", says="an assignor sees the topics of the newest image"
    )

    # targets
    spaces_targets: bool = rule(
        True,
        "M-TGT-08",
        "V-11",
        "V-38",
        "V-39",
        "V-40",
        "V-41",
        "V-63",
        "V-64",
        "V-73",
        "V-76",
        "F-REPLAY-10",
        says="a target has a timestamp, and the next one waits for the assignment interval",
    )
    recounts_type: bool = rule(
        True,
        "M-TGT-05",
        "M-TGT-06",
        "LIV-13",
        "V-42",
        says="a target is computed with the subscription type of the members after the request",
    )
    assign: Callable[[GroupStep, GroupSpec], dict[str, Target]] = function(
        "A-UHET-06", "X-UP-05", says="an assignor ignores partitions that their topic does not have"
    )
    replacement_has_target: bool = rule(
        True, "M-STATIC-10", "V-127", says="an unchanged target of a replacement is not written again"
    )
    stored_target: Callable[[GroupStep, Member], Target] = function(
        "M-HB-07",
        "LIV-16",
        says="a known member that comes with a new instance id keeps its target",
    )

    # reconciliation
    prunes: bool = rule(
        True,
        "M-REC-25",
        "V-50",
        "V-51",
        says="a member is reconciled with the part of its target to which it subscribes now",
    )
    prune_sets_previous_epoch: bool = rule(
        True, "M-REC-25", "V-51", says="pruning makes the current epoch the previous one too"
    )
    revocation_keeps_epoch: bool = rule(
        True, "M-REC-19", "V-52", says="a confirmed revocation does not advance the member's epoch"
    )
    stores_assignment_epochs: bool = rule(
        True,
        "M-PE-06",
        "V-53",
        "V-54",
        "V-55",
        "V-74",
        "V-77",
        "O-COMMIT-36",
        "F-REPLAY-08",
        says="the epoch at which a member got a partition is stored",
    )
