"""One consumer group as a transition system: a pure function of group and step, for explorers and for the coordinator.

There is no clock: the time of the step is in its ``Environment``. There is no log either: the records of a step are its
change, and a caller that wants a failed append keeps the previous group.
"""

from __future__ import annotations

from typing import NamedTuple

from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatResponse
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED
from fencepost.protocol.records import Record
from fencepost.protocol.settings import Settings

from ..classic.choice import Chooser, every
from .group_step import Environment, GroupStep, StepContext
from .handle import Step, run_step
from .state import ConsumerGroup, Resolution, Timer


class Successor(NamedTuple):
    """One result of a step. ``group``: None if it does not exist. ``armed``: timers set, with their length in ms, or
    cancelled (None). ``rebalance_epochs``: the epochs of the rebalance timers set (M-TMR-02). ``task``: a resolution to
    run."""

    choice: str
    group: ConsumerGroup | None
    reply: ConsumerGroupHeartbeatResponse | None
    records: tuple[Record, ...]
    armed: tuple[tuple[Timer, int | None], ...]
    rebalance_epochs: tuple[tuple[str, int], ...]
    task: Resolution | None
    rules: tuple[str, ...]


class ConsumerGroupModel:
    """The coordinator's side of one consumer group named ``group_id``, under a profile."""

    def __init__(self, settings: Settings | None = None, profile: Profile = INTENDED, *, group_id: str = "g") -> None:
        self.settings = settings or Settings()
        self.profile = profile
        from ..switches import variant_of  # noqa: PLC0415  its rules are in packages that import this module

        self.variant = variant_of(profile)
        self.group_id = group_id

    def successors(self, group: ConsumerGroup | None, step: Step, environment: Environment) -> tuple[Successor, ...]:
        """Return all results of one step, one for each combination of choices that the protocol leaves open."""

        def run(chooser: Chooser) -> tuple[GroupStep, ConsumerGroupHeartbeatResponse | None]:
            context = StepContext(self.settings, self.variant, chooser, environment, [])
            group_step = GroupStep(context, self.group_id, group)
            return group_step, run_step(group_step, step)

        return tuple(
            Successor(
                label,
                group_step.updated_group(),
                reply,
                tuple(group_step.records),
                tuple(group_step.armed.items()),
                tuple(group_step.rebalance_epochs.items()),
                group_step.task,
                tuple(group_step.rules),
            )
            for label, (group_step, reply) in every(run)
        )
