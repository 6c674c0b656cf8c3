"""Differences that are known: each by name, with its reason, recognised on the very step and difference.

A trace ends at a named divergence, for after it the two coordinators are no longer in the same state.
``docs/divergences.md`` explains each. A difference that no entry recognises is a failure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fencepost.protocol.events import Event
from fencepost.protocol.view import GroupState

from ..targets.base import Observation
from .difference import Difference


@dataclass(frozen=True, slots=True)
class Step:
    """The step at which two coordinators part: the events so far, what each did at the last, and where they differ."""

    events: Sequence[Event]
    left: Observation
    right: Observation
    difference: Difference


@dataclass(frozen=True, slots=True)
class Divergence:
    """``rules``: the rules that speak of it."""

    name: str
    rules: tuple[str, ...]
    reason: str
    recognise: Callable[[Step], bool]


def _malformed_subscription(step: Step) -> bool:
    # the join phase completes and the core goes on, while Kafka raises on metadata that it cannot read
    return (
        step.right.error == "RuntimeException"
        and not step.right.replies
        and any(
            view is not None and view.state is GroupState.COMPLETING_REBALANCE for view in step.left.groups.values()
        )
    )


DIVERGENCES: tuple[Divergence, ...] = (
    Divergence(
        "malformed-subscription-stalls-join",
        ("G-DATA-10", "C-ST-27"),
        "a subscription whose list of topics claims more entries than there are bytes makes Kafka raise when the join "
        "phase completes: nobody is answered and the group stays PreparingRebalance without a join timer",
        _malformed_subscription,
    ),
)


def name_of(step: Step, known: Sequence[Divergence] = DIVERGENCES) -> str | None:
    """The name of the divergence that this step shows, None if it is none of the known."""
    for divergence in known:
        if divergence.recognise(step):
            return divergence.name
    return None
