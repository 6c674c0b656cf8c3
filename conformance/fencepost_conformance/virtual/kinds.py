"""The kinds of schedules, and the judgement of one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from . import requests, workers
from .loop import Ran


@dataclass(frozen=True, slots=True)
class Judged:
    """One schedule. ``broken`` says which promise did not hold, empty if all did; ``seen`` counts what happened."""

    kind: str
    seed: int
    broken: str
    seen: Counter[str]


def _requests(seed: int) -> tuple[Ran, Counter[str]]:
    ran, schedule = requests.play(seed)
    return ran, schedule.answered


def _workers(seed: int, *, remote: bool) -> tuple[Ran, Counter[str]]:
    ran, schedule = workers.play(seed, remote=remote)
    return ran, schedule.seen


#: what runs one schedule of a seed
KINDS: Final[dict[str, Callable[[int], tuple[Ran, Counter[str]]]]] = {
    "requests": _requests,
    "workers": partial(_workers, remote=False),
    "remote": partial(_workers, remote=True),
}


def judge(kind: str, seed: int) -> Judged:
    """Run the schedule of that kind and seed. An exception that leaves it, a task that it leaves over, and an
    unhandled exception are broken promises too."""
    ran, seen = KINDS[kind](seed)
    broken = ""
    if ran.failure is not None:
        broken = f"{type(ran.failure).__name__}: {ran.failure}"
    elif ran.unhandled:
        broken = f"unhandled: {ran.unhandled[0]}"
    elif ran.leaked:
        broken = f"tasks left over: {', '.join(ran.leaked)}"
    return Judged(kind, seed, broken, seen)
