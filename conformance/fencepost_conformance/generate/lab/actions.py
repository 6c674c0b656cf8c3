"""The actions of a session, as JSON objects: ``{"do": "start", "client": "c1", "protocol": "consumer"}``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from .start import ActionError, Protocol, number

#: the most actions of one session
MOST_ACTIONS: Final = 2_000
#: the longest time that one action plays, in ms
LONGEST_MS: Final = 600_000

_CLIENT: Final = re.compile(r"[a-z][a-z0-9-]{0,11}\Z")
_TIME: Final = (1, LONGEST_MS)


@dataclass(frozen=True, slots=True)
class Action:
    """One action. ``do`` names it; the other fields are those that it has in ``FORMS``.

    ``client``: a name. ``ms``: a time. ``message``: the number of a message on its way; None: the one that arrives
    next. ``changes``: new timeouts, by the names that a start has.
    """

    do: str
    client: str = ""
    protocol: Protocol | None = None
    static: bool = False
    ms: int = 0
    message: int | None = None
    by: int = 1
    changes: Mapping[str, int] = field(default_factory=dict)

    @property
    def moves_time(self) -> bool:
        """Whether the action lets time pass, and changes nothing itself."""
        return self.do in ("step", "change", "run")


#: The fields of each action: required ones, then optional ones.
FORMS: Final[Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "start": (("client", "protocol"), ("static",)),
    "stop": (("client",), ()),
    "crash": (("client",), ()),
    "slow": (("client", "ms"), ()),
    "freeze": (("client", "ms"), ()),
    "grow": ((), ("by",)),
    "lose": ((), ("message",)),
    "delay": (("ms",), ("message",)),
    "repeat": ((), ("message",)),
    "fail-append": ((), ()),
    "move": (("ms",), ()),
    "timeouts": (("changes",), ()),
    "step": ((), ()),
    "change": ((), ()),
    "run": (("ms",), ()),
}
#: The timeouts that can change during a session, with their bounds.
TIMEOUTS: Final[Mapping[str, tuple[int, int]]] = {
    "session_ms": (1_000, 600_000),
    "heartbeat_ms": (100, 60_000),
    "poll_interval_ms": (1_000, 600_000),
}


def parse_actions(data: object) -> tuple[Action, ...]:
    """Return the actions in JSON data. Raises ``ActionError`` for the first one that is not valid."""
    if not isinstance(data, list):
        raise ActionError(f"actions must be a list (got {type(data).__name__})")
    if len(data) > MOST_ACTIONS:
        raise ActionError(f"a session has at most {MOST_ACTIONS} actions (got {len(data)})")
    return tuple(_parse(index, each) for index, each in enumerate(data))


def _parse(index: int, data: object) -> Action:
    where = f"actions[{index}]"
    do = data.get("do") if isinstance(data, dict) else None
    if not isinstance(data, dict) or not isinstance(do, str) or do not in FORMS:
        raise ActionError(f"{where}: unknown action {do!r}; there are {', '.join(FORMS)}")
    required, optional = FORMS[do]
    for name in data.keys() - {"do", *required, *optional}:
        raise ActionError(f"{where}: {do} has no field {name!r}")
    for name in required:
        if name not in data:
            raise ActionError(f"{where}: {do} needs the field {name!r}")
    return Action(do, **{name: _value(where, do, name, value) for name, value in data.items() if name != "do"})


def _value(where: str, do: str, name: str, value: Any) -> Any:
    if name == "client":
        if not isinstance(value, str) or not _CLIENT.match(value):
            raise ActionError(f"{where}.client must be 1 to 12 of a-z, 0-9 and '-', a letter first (got {value!r})")
        return value
    if name == "protocol":
        if value not in list(Protocol):
            raise ActionError(f"{where}.protocol must be one of {', '.join(Protocol)} (got {value!r})")
        return Protocol(value)
    if name == "static":
        if type(value) is not bool:
            raise ActionError(f"{where}.static must be true or false (got {value!r})")
        return value
    if name == "changes":
        return _changes(where, value)
    least, most = {"by": (1, 12), "message": (1, 10**9)}.get(name, (0, LONGEST_MS) if do == "slow" else _TIME)
    return number(where, name, value, least, most)


def _changes(where: str, value: object) -> dict[str, int]:
    if not isinstance(value, dict) or not value or (unknown := sorted(value.keys() - TIMEOUTS.keys())):
        got = unknown[0] if isinstance(value, dict) and value else value
        raise ActionError(f"{where}.changes must set some of {', '.join(TIMEOUTS)} (got {got!r})")
    return {name: number(f"{where}.changes", name, each, *TIMEOUTS[name]) for name, each in value.items()}
