"""One consumer group as a transition system: a pure function of group and step, for explorers and for the coordinator.

There is no clock: the time of the step is in its ``World``. There is no log either: the records of a step are its
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
from .heartbeat import heartbeat
from .leave import expire, fence, leave
from .refusal import Refused
from .regex import resolve
from .state import RETRY_MS, Beat, ConsumerGroup, Expire, Resolution, Resolve, Timer
from .turn import Around, Turn, World

Step: TypeAlias = Beat | Expire | Resolve


class Successor(NamedTuple):
    """One result of a step. ``group``: None if it does not exist. ``armed``: timers set, with their length in ms, or
    cancelled (None). ``alarms``: the epochs of the rebalance timers set (M-TMR-02). ``task``: a resolution to run."""

    choice: str
    group: ConsumerGroup | None
    reply: ConsumerGroupHeartbeatResponse | None
    records: tuple[Record, ...]
    armed: tuple[tuple[Timer, int | None], ...]
    alarms: tuple[tuple[str, int], ...]
    task: Resolution | None
    rules: tuple[str, ...]


class ConsumerGroupModel:
    """The coordinator's side of one consumer group named ``group_id``, under a profile."""

    def __init__(self, settings: Settings | None = None, profile: Profile = INTENDED, *, group_id: str = "g") -> None:
        self.settings = settings or Settings()
        self.profile = profile
        self.group_id = group_id

    def successors(self, group: ConsumerGroup | None, step: Step, world: World) -> tuple[Successor, ...]:
        """Return all results of one step, one for each combination of choices that the protocol leaves open."""

        def run(chooser: Chooser) -> tuple[Turn, ConsumerGroupHeartbeatResponse | None]:
            around = Around(self.settings, self.profile, chooser, world, [])
            turn = Turn(around, self.group_id, group)
            return turn, take(turn, step)

        return tuple(
            Successor(
                label,
                turn.after(),
                reply,
                tuple(turn.records),
                tuple(turn.armed.items()),
                tuple(turn.alarms.items()),
                turn.task,
                tuple(turn.rules),
            )
            for label, (turn, reply) in every(run)
        )


def take(turn: Turn, step: Step) -> ConsumerGroupHeartbeatResponse | None:
    """Run the step on one group. Returns the answer if it is a request. A refusal writes nothing."""
    if isinstance(step, Beat):
        return answer(turn, step)
    if turn.fresh:
        return None
    if isinstance(step, Expire):
        member = expire(turn, step)
        if member is not None:
            try:
                fence(turn, [member])
            except Refused as refused:
                turn.rule(refused.rule)
                if refused.error is ErrorCode.UNKNOWN_SERVER_ERROR:  # not X-DOWN-09, which Kafka expects
                    turn.failed = True
                    turn.armed = {Timer(step.kind, step.member_id): RETRY_MS}  # F-RT-17
    elif not step.failed:
        resolve(turn, step.resolution)
    return None


def answer(turn: Turn, beat: Beat) -> ConsumerGroupHeartbeatResponse:
    """Return the answer to a heartbeat. An error leaves no records."""
    body = beat.body
    try:
        turn.denied_topics = beat.denied_topics
        if turn.fresh and body.member_epoch != 0:
            raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, "M-VAL-20" if body.member_epoch > 0 else "M-LEAVE-01")
        return leave(turn, body) if body.member_epoch < 0 else heartbeat(turn, beat)
    except Refused as refused:
        turn.rule(refused.rule)
        turn.records.clear()
        turn.armed.clear()
        turn.alarms.clear()
        return ConsumerGroupHeartbeatResponse(refused.error)
