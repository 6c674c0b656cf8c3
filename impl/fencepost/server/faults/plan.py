"""What is to go wrong, and when.

A plan is a seed and a list of faults. A fault says what it does (``do``), to which requests (``api``, ``client``), and
which of these: the ``nth``, ``every`` so many, by ``chance``, only ``after_ms`` and ``until_ms`` of the server's life,
at most ``times``. ``move`` and ``fail_append`` are no matter of one request: the one happens every ``ms``, the other to
writes of groups. With the same plan and the same requests in the same order the same goes wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from random import Random
from typing import Any, Final, Literal, get_args

from fencepost.protocol.errors import ErrorCode

Do = Literal["lose", "delay", "double", "reorder", "close", "error", "move", "fail_append"]
DOES: Final[tuple[str, ...]] = get_args(Do)


class BadPlan(ValueError):
    """What is wrong with a plan, in a line that says where."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """``api``: kio's name, as ``join_group``, with ``*``; ``client``: a client id, with ``*``.

    ``lose``: the request is handled, and its answer goes nowhere. ``delay``: the answer comes ``ms`` later.
    ``double``: it comes twice. ``reorder``: it comes behind that of the connection's next request, or after ``ms`` if
    there is none. ``close``: the connection is closed instead of the answer; with ``handled`` false, before the request
    is handled. ``error``: the request is refused with ``code`` and not handled. ``move``: every ``ms`` the coordinator
    of each group is nowhere for ``for_ms``, then here again, loaded from the log. ``fail_append``: the write of a group
    fails."""

    do: Do
    api: str = "*"
    client: str = "*"
    nth: int | None = None
    every: int = 1
    chance: float = 1.0
    after_ms: int = 0
    until_ms: int | None = None
    times: int | None = None
    ms: int = 1_000
    for_ms: int = 200
    code: str = "NOT_COORDINATOR"
    handled: bool = True

    def __post_init__(self) -> None:
        if self.do not in DOES:
            raise BadPlan(f"{self.do!r} is nothing that can go wrong: {', '.join(DOES)}")
        if not 0 <= self.chance <= 1:
            raise BadPlan(f"chance is between 0 and 1, not {self.chance}")
        for name in ("nth", "every", "times", "ms"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise BadPlan(f"{name} is 1 or more, not {value}")
        if self.code not in ErrorCode.__members__:
            raise BadPlan(f"{self.code!r} is no error code of groups; NOT_COORDINATOR is one")

    def concerns(self, api: str, client: str) -> bool:
        """Whether it may happen to requests of that API and client."""
        return fnmatchcase(api, self.api) and fnmatchcase(client, self.client)


@dataclass(frozen=True, slots=True)
class Plan:
    """``seed``: of whatever is left to chance."""

    faults: tuple[Fault, ...]
    seed: int = 0


class Chances:
    """The faults of a plan that are about requests, or writes, with what has come of them so far."""

    def __init__(self, plan: Plan, *kinds: Do) -> None:
        self._faults = [each for each in plan.faults if each.do in kinds]
        self._rng = Random(f"faults {plan.seed} {kinds}")
        self._seen = [0] * len(self._faults)
        self._done = [0] * len(self._faults)

    def next(self, api: str, client: str, now_ms: float) -> Fault | None:
        """The fault that happens to this request, if any: the first of the plan whose turn it is."""
        found: Fault | None = None
        for place, fault in enumerate(self._faults):
            if not fault.concerns(api, client):
                continue
            self._seen[place] += 1
            number, drawn = self._seen[place], self._rng.random()
            due = (
                (fault.nth is None or number == fault.nth)
                and number % fault.every == 0
                and drawn < fault.chance
                and fault.after_ms <= now_ms
                and (fault.until_ms is None or now_ms < fault.until_ms)
                and (fault.times is None or self._done[place] < fault.times)
            )
            if due and found is None:
                self._done[place] += 1
                found = fault
        return found


def parse(told: Any) -> Plan:
    """A plan from JSON: ``{"seed": 7, "faults": [{"do": "lose", "api": "heartbeat", "nth": 3}, ...]}``. Raises
    ``BadPlan``."""
    if not isinstance(told, Mapping) or not isinstance(told.get("faults"), list):
        raise BadPlan('a plan is an object with "faults", a list')
    unknown = told.keys() - {"faults", "seed"}
    if unknown:
        raise BadPlan(f"a plan has no {sorted(unknown)[0]!r}: faults, seed")
    seed = told.get("seed", 0)
    if not isinstance(seed, int):
        raise BadPlan(f"seed is a number, not {seed!r}")
    return Plan(tuple(_fault(number, row) for number, row in enumerate(told["faults"], 1)), seed)


_KINDS: Final[dict[str, tuple[type, ...]]] = {
    "int": (int,),
    "int | None": (int,),
    "float": (int, float),
    "str": (str,),
    "bool": (bool,),
    "Do": (str,),
}


def _fault(number: int, row: Any) -> Fault:
    if not isinstance(row, Mapping) or "do" not in row:
        raise BadPlan(f'fault {number} is an object with "do": {", ".join(DOES)}')
    kinds = {field.name: str(field.type) for field in fields(Fault)}
    for name, value in row.items():
        if name not in kinds:
            raise BadPlan(f"fault {number} has no {name!r}: {', '.join(kinds)}")
        fits = isinstance(value, _KINDS[kinds[name]]) and (isinstance(value, bool) == (kinds[name] == "bool"))
        if not fits:
            raise BadPlan(f"fault {number}: {name} is no {_KINDS[kinds[name]][0].__name__}: {value!r}")
    try:
        return Fault(**row)
    except BadPlan as reason:
        raise BadPlan(f"fault {number}: {reason}") from None


def by_seed(seed: int) -> Plan:
    """A bit of everything, as often as this seed says."""
    rng = Random(f"plan {seed}")

    def some(most: float) -> float:
        return round(rng.uniform(most / 5, most), 4)

    faults = [
        Fault(do="lose", chance=some(0.03)),
        Fault(do="delay", chance=some(0.1), ms=rng.randint(50, 1_500)),
        Fault(do="double", chance=some(0.02)),
        Fault(do="reorder", chance=some(0.03), ms=rng.randint(50, 500)),
        Fault(do="close", chance=some(0.02), handled=rng.random() < 0.5),
        Fault(do="error", api="*group*", chance=some(0.02), code="NOT_COORDINATOR"),
        Fault(do="error", api="*heartbeat*", chance=some(0.02), code="COORDINATOR_LOAD_IN_PROGRESS"),
        Fault(do="error", api="offset_*", chance=some(0.02), code="COORDINATOR_NOT_AVAILABLE"),
        Fault(do="move", ms=rng.randint(5_000, 30_000), for_ms=rng.randint(50, 1_000)),
        Fault(do="fail_append", chance=some(0.03), code="NOT_ENOUGH_REPLICAS"),
    ]
    return Plan(tuple(faults), seed)
