"""Reconciliation: the partitions and epochs that a member moves to."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from fencepost.quirks import quirk

from ...consumer import describe, reconcile
from ...consumer.group import ConsumerMember, Share
from ...kernel.numbers import next_epoch
from ...kernel.step import Step


@quirk("old_revocation_advances_epoch", of=reconcile.epoch_after_revocation)
def one_epoch_further(step: Step, member: ConsumerMember) -> int:
    """Up to 4.1 a confirmed revocation moves the member on by one epoch, wherever the target is (V-52)."""
    return next_epoch(member.epoch)


@quirk("old_whole_target", of=reconcile.reachable)
def whole_target(step: Step, goal: reconcile.Goal) -> Share:
    """Up to 4.1 the whole target counts, whatever the member subscribes to now (V-50)."""
    return goal.target


@quirk("old_whole_target", of=reconcile.prune)
def nothing_is_pruned(step: Step, member: ConsumerMember, goal: reconcile.Goal) -> ConsumerMember:
    """Up to 4.1 a member keeps what it no longer subscribes to until a target is computed without it (V-51)."""
    return member


@quirk("old_prune_keeps_previous_epoch", of=reconcile.previous_epoch)
def previous_epoch_stays(step: Step, member: ConsumerMember) -> int:
    """In 4.2 pruning leaves the previous epoch as it was: an answer that was lost before is still forgiven (V-51)."""
    return member.previous_epoch


@quirk("old_describe_without_pending", of=describe.shown_as_assigned)
def without_pending(step: Step, member: ConsumerMember) -> Mapping[bytes, Collection[int]]:
    """Before 4.3 a description leaves out partitions to be revoked, though the member may still own them (V-16)."""
    return member.assigned
