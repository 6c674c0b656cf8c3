"""What the closed system does not put off for ever: the fairness under which liveness is checked."""

from __future__ import annotations

from collections.abc import Callable

from ..explore.interface import Fairness, Label
from .closed import ClosedSystem


def fairness(system: ClosedSystem) -> tuple[Fairness, ...]:
    """Messages arrive, timers run out, clients go on. Nothing is fair about the environment."""
    whole = (
        "AppendSucceeds",
        "CoordinatorGetsJoin",
        "CoordinatorGetsSync",
        "CoordinatorGetsLeave",
        "ClientGetsJoinReply",
        "ClientGetsSyncReply",
        "JoinTimerFires",
        "SyncTimerFires",
    )

    def covering(*words: str) -> Callable[[Label], bool]:
        return lambda label: label[: len(words)] == words

    found = [Fairness(name, covering(name)) for name in whole]
    each = [
        (action, c)
        for action in ("ClientSendsJoin", "ClientHeartbeats", "ClientTimesOut")
        for c in system.config.clients
    ]
    each += [("SessionTimerFires", member) for member in system.config.member_ids]
    found += [Fairness(" ".join(pair), covering(*pair)) for pair in each]
    return tuple(found)
