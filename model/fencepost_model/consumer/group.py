"""One consumer group as a transition system: a pure function of group and step, for explorers and for the coordinator.

There is no clock: the time of the step is in its ``Environment``. There is no log either: the records of a step are its
change, and a caller that wants a failed append keeps the previous group.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatResponse
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED
from fencepost.protocol.records import Record
from fencepost.protocol.settings import Settings

from ..classic.choice import Chooser, every
from .group_step import Environment, GroupStep, StepContext
from .heartbeat import heartbeat
from .leave import expired_member, fence_members, leave
from .refusal import Refused
from .regex import resolve
from .state import RETRY_MS, ConsumerGroup, ConsumerHeartbeat, Expire, Resolution, Resolve, Timer

Step: TypeAlias = ConsumerHeartbeat | Expire | Resolve


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
        from ..variant import variant_of  # noqa: PLC0415  the families import this module

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


def run_step(group_step: GroupStep, step: Step) -> ConsumerGroupHeartbeatResponse | None:
    """Run the step on one group. Returns the answer if it is a request. A refusal writes nothing."""
    if isinstance(step, ConsumerHeartbeat):
        return answer_heartbeat(group_step, step)
    if group_step.fresh:
        return None
    if isinstance(step, Expire):
        member = expired_member(group_step, step)
        if member is not None:
            try:
                fence_members(group_step, [member])
            except Refused as refused:
                group_step.rule(refused.rule)
                if refused.error is ErrorCode.UNKNOWN_SERVER_ERROR:  # not X-DOWN-09, which Kafka expects
                    group_step.failed = True
                    group_step.armed = {Timer(step.kind, step.member_id): RETRY_MS}  # F-RT-17
    elif not step.failed:
        resolve(group_step, step.resolution)
    return None


def answer_heartbeat(group_step: GroupStep, request: ConsumerHeartbeat) -> ConsumerGroupHeartbeatResponse:
    """Return the answer to a heartbeat. An error leaves no records."""
    body = request.body
    try:
        group_step.denied_topics = request.denied_topics
        if group_step.fresh and body.member_epoch != 0:
            raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, "M-VAL-20" if body.member_epoch > 0 else "M-LEAVE-01")
        if group_step.fresh:
            group_step.rule("M-VAL-21")
        return leave(group_step, body) if body.member_epoch < 0 else heartbeat(group_step, request)
    except Refused as refused:
        group_step.rule(refused.rule)
        group_step.records.clear()
        group_step.armed.clear()
        group_step.rebalance_epochs.clear()
        return ConsumerGroupHeartbeatResponse(refused.error)
