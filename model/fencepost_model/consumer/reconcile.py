"""Reconciliation of one member with its target (rule book, 7.6).

Each outcome fires a trigger of the member's state machine, so the machine checks which outcome may follow which.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from fencepost.protocol.errors import ErrorCode

from ..machines import C_STABLE, C_UNRELEASED, C_UNREVOKED
from ..table import CONSUMER_MEMBER_TABLE
from ..widths import next_epoch
from .refusal import Refused
from .rows import without_epochs
from .state import Held, Member, Partition, Target

if TYPE_CHECKING:
    from ..variant import Variant


class Goal(NamedTuple):
    """The input of a reconciliation: the target T at epoch t, S(m), O, whether the subscription has just changed, and
    the epochs of all held partitions."""

    target: Target
    epoch: int
    topics: frozenset[bytes]
    owned: frozenset[Partition] | None
    subscription_changed: bool
    epochs: Mapping[Partition, int]


class Context(NamedTuple):
    """Context that the rules of a step share."""

    variant: Variant
    rules: list[str]
    pick: Callable[[str, list[str]], str]


def reconcile(context: Context, member: Member, goal: Goal) -> Member:
    """Return the member afterwards, the same object if nothing changes. Raises Refused (M-REC-06)."""
    variant, rules, _ = context
    if member.state == C_STABLE:
        if member.epoch != goal.epoch:
            rules.append("M-REC-02")
            return _advance(context, member, member.epoch, goal)
        rules.append("M-REC-01")
        return _maybe_prune(context, member, goal)
    if member.state == C_UNREVOKED:
        if goal.owned is None or not goal.owned.isdisjoint(without_epochs(member.revoking)):
            rules.append("M-REC-03")  # a missing list confirms nothing (M-REC-18)
            return _maybe_prune(context, member, goal)
        rules.append("M-REC-04")
        keeps = variant.consumer.revocation_keeps_epoch  # M-REC-19
        return _advance(context, member, member.epoch if keeps else next_epoch(member.epoch), goal)
    if member.state == C_UNRELEASED:
        rules.append("M-REC-05")
        return _advance(context, member, member.epoch, goal)
    if goal.owned is None or goal.owned:
        raise Refused(ErrorCode.FENCED_MEMBER_EPOCH, "M-REC-06")
    rules.append("M-REC-07")
    return _advance(context, member, goal.epoch, goal)


def _state_after(member: Member, trigger: str) -> str:
    return CONSUMER_MEMBER_TABLE[trigger][member.state]


def _advance(context: Context, member: Member, epoch: int, goal: Goal) -> Member:
    """Compute next(x, A) of the rule book. The current epoch becomes the previous one (M-REC-15)."""
    variant, rules, _ = context
    target = goal.target
    if variant.consumer.prunes:
        target = tuple([each for each in target if each[0] in goal.topics])
    wanted = frozenset(target)
    keep = tuple([row for row in member.assigned if (row[0], row[1]) in wanted])
    drop = tuple([row for row in member.assigned if (row[0], row[1]) not in wanted])
    if drop and (goal.owned is None or not goal.owned.isdisjoint(without_epochs(drop))):
        rules.append("M-REC-10")
        return member._replace(
            state=_state_after(member, "revoke"), epoch=epoch, previous=member.epoch, assigned=keep, revoking=drop
        )
    kept = frozenset(without_epochs(keep))
    own = frozenset(without_epochs(member.revoking))
    want = [each for each in target if each not in kept]
    free = [each for each in want if each not in goal.epochs or each in own]  # M-REC-21
    if free:
        rules.append("M-PE-06")
    granted = goal.epoch if variant.consumer.stores_assignment_epochs else 0
    assigned: Held = tuple(sorted([*keep, *[(topic, number, granted) for topic, number in free]])) if free else keep
    blocked = len(want) > len(free)
    rules.append(("M-REC-11" if free else "M-REC-13") if blocked else ("M-REC-12" if free else "M-REC-14"))
    return member._replace(
        state=_state_after(member, "wait" if blocked else "settle"),
        epoch=goal.epoch,
        previous=member.epoch,
        assigned=assigned,
        revoking=(),
    )


def _maybe_prune(context: Context, member: Member, goal: Goal) -> Member:
    """Give up topics that the member no longer subscribes to, without waiting for a target (M-REC-25)."""
    variant, rules, pick = context
    if not variant.consumer.prunes or not goal.subscription_changed:
        return member
    previous = member.epoch if variant.consumer.prune_sets_previous_epoch else member.previous
    gone = tuple([row for row in member.assigned if row[0] not in goal.topics])
    if not gone:
        empty = not goal.topics and not member.assigned and not member.revoking
        # A quirk: which of its empty maps Kafka holds decides whether it notices that nothing changed.
        if empty and previous != member.previous and pick("prune", ["nothing", "previous"]) == "previous":
            rules.append("M-REC-25")
            return member._replace(previous=previous)
        return member
    rules.append("M-REC-25")
    keep = tuple([row for row in member.assigned if row[0] in goal.topics])
    revoking = tuple(sorted((*member.revoking, *gone)))
    if goal.owned is None or not goal.owned.isdisjoint(without_epochs(revoking)):
        return member._replace(
            state=_state_after(member, "revoke"), previous=previous, assigned=keep, revoking=revoking
        )
    return member._replace(previous=previous, assigned=keep)
