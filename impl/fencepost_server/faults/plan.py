"""Plans of faults to inject.

A plan is a seed and a list of faults. A fault has a kind (``do``) and selects requests: by ``api`` and ``client``, and
of these the ``nth``, each ``every``-th, by ``chance``, between ``after_ms`` and ``until_ms`` after the server's start,
at most ``times``. ``move`` and ``fail_append`` do not concern single requests: the first happens every ``ms``, the
second to writes of groups. The same plan has the same effect on the same requests in the same order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from random import Random
from typing import Final, Literal, get_args

from fencepost.protocol.errors import ErrorCode

Do = Literal["lose", "delay", "double", "reorder", "close", "error", "move", "fail_append"]
DOES: Final[tuple[str, ...]] = get_args(Do)


class BadPlan(ValueError):
    """A plan is invalid; the message is one line that says where."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A fault. ``api`` is kio's name of an API, such as ``join_group``, and ``client`` a client id; both may contain
    ``*``. The kinds (``do``):

    - ``lose``: the request is handled, but its answer is not sent.
    - ``delay``: the answer is sent ``ms`` later.
    - ``double``: the answer is sent twice.
    - ``reorder``: the answer is sent after that of the connection's next request, or after ``ms`` if there is none.
    - ``close``: the connection is closed instead of sending the answer; with ``handled`` false, before the request is
      handled.
    - ``error``: the request is rejected with ``code`` and not handled.
    - ``move``: every ``ms``, each coordinator is unavailable for ``for_ms``, then loaded again from the log.
    - ``fail_append``: the write of a group fails with ``code``.
    """

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
            raise BadPlan(f"do must be one of {', '.join(DOES)} (got {self.do!r})")
        if not 0 <= self.chance <= 1:
            raise BadPlan(f"chance must be between 0 and 1 (got {self.chance})")
        for name in ("nth", "every", "times", "ms"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise BadPlan(f"{name} must be >= 1 (got {value})")
        if self.code not in ErrorCode.__members__:
            raise BadPlan(f"code must be an error code of groups, such as NOT_COORDINATOR (got {self.code!r})")

    def concerns(self, api: str, client: str) -> bool:
        """Return whether the fault selects requests of this API and client."""
        return fnmatchcase(api, self.api) and fnmatchcase(client, self.client)


@dataclass(frozen=True, slots=True)
class Plan:
    """A list of faults, and the seed of their random decisions."""

    faults: tuple[Fault, ...]
    seed: int = 0


class Chances:
    """The faults of these kinds, with counts of the requests or writes that each has seen, and of its effects."""

    def __init__(self, plan: Plan, *kinds: Do) -> None:
        self._faults = [each for each in plan.faults if each.do in kinds]
        self._rng = Random(f"faults {plan.seed} {kinds}")
        self._seen = [0] * len(self._faults)
        self._done = [0] * len(self._faults)

    def next(self, api: str, client: str, now_ms: float) -> Fault | None:
        """Return the first fault of the plan that is due for this request; None if none is."""
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


def parse(value: object) -> Plan:
    """Return the plan of a JSON value: ``{"seed": 7, "faults": [{"do": "lose", "api": "heartbeat", "nth": 3}, ...]}``.
    Raises ``BadPlan``."""
    if not isinstance(value, Mapping) or not isinstance(value.get("faults"), list):
        raise BadPlan('a plan must be an object with a list "faults"')
    unknown = value.keys() - {"faults", "seed"}
    if unknown:
        raise BadPlan(f"a plan has no field {sorted(unknown)[0]!r}; the fields are faults, seed")
    seed = value.get("seed", 0)
    if not isinstance(seed, int):
        raise BadPlan(f"seed must be a whole number (got {seed!r})")
    return Plan(tuple(_fault(number, row) for number, row in enumerate(value["faults"], 1)), seed)


_KINDS: Final[dict[str, tuple[type, ...]]] = {
    "int": (int,),
    "int | None": (int,),
    "float": (int, float),
    "str": (str,),
    "bool": (bool,),
    "Do": (str,),
}


def _fault(number: int, row: object) -> Fault:
    if not isinstance(row, Mapping) or "do" not in row:
        raise BadPlan(f'fault {number} must be an object with "do", one of {", ".join(DOES)}')
    kinds = {field.name: str(field.type) for field in fields(Fault)}
    for name, value in row.items():
        if name not in kinds:
            raise BadPlan(f"fault {number}: there is no field {name!r}; the fields are {', '.join(kinds)}")
        fits = isinstance(value, _KINDS[kinds[name]]) and (isinstance(value, bool) == (kinds[name] == "bool"))
        if not fits:
            raise BadPlan(f"fault {number}: {name} must be of type {_KINDS[kinds[name]][0].__name__} (got {value!r})")
    try:
        return Fault(**row)
    except BadPlan as reason:
        raise BadPlan(f"fault {number}: {reason}") from None


def by_seed(seed: int) -> Plan:
    """Return a plan with all kinds of faults; the seed decides how often each happens."""
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
