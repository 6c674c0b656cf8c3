"""The kinds of schedules, and the judgement of one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from . import requests, workers
from .loop import Ran
from .worker_plan import Way


@dataclass(frozen=True, slots=True)
class Judged:
    """The result of one schedule. ``broken``: the guarantee that did not hold, empty if all did. ``seen``: counts of
    events."""

    kind: str
    seed: int
    broken: str
    seen: Counter[str]


def _requests(seed: int) -> tuple[Ran, Counter[str]]:
    ran, schedule = requests.play(seed)
    return ran, schedule.answered


def _workers(seed: int, *, way: Way) -> tuple[Ran, Counter[str]]:
    ran, schedule = workers.play(seed, way)
    return ran, schedule.seen


#: runs the schedule of a seed
KINDS: Final[dict[str, Callable[[int], tuple[Ran, Counter[str]]]]] = {
    "requests": _requests,
    "workers": partial(_workers, way=Way.WITHIN),
    "remote": partial(_workers, way=Way.PORT),
    "secured": partial(_workers, way=Way.SECURED),
}


def judge(kind: str, seed: int) -> Judged:
    """Run the schedule of that kind and seed. A raised exception, a leaked task and an unhandled exception count as
    broken guarantees, too."""
    ran, seen = KINDS[kind](seed)
    broken = ""
    if ran.failure is not None:
        broken = f"{type(ran.failure).__name__}: {ran.failure}"
    elif ran.unhandled:
        broken = f"unhandled: {ran.unhandled[0]}"
    elif ran.leaked:
        broken = f"leaked tasks: {', '.join(ran.leaked)}"
    return Judged(kind, seed, broken, seen)
