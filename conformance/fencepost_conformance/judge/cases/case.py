"""A case, and the register of all cases."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Container, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from .peer import Peer

Play: TypeAlias = "Callable[[Peer], Awaitable[None]]"

#: all cases by name, in the order in which their modules define them
CASES: Final[dict[str, Case]] = {}


@dataclass(frozen=True, slots=True)
class KnownFault:
    """A fault of Apache Kafka that a case meets (``docs/findings.md``). ``switch``: its name in the profiles.
    ``path`` and ``value``: the field that differs, and what Kafka answers there."""

    switch: str
    path: str
    value: Any


_NAME: Final = re.compile(r"[a-z]+\.[a-z_]+\.\d+")


@dataclass(frozen=True, slots=True)
class Case:
    """A case. ``needs``: by kio's name of an API, the lowest version that the case needs; a broker that does not
    announce it does not support the case. ``settings``: by the name of a broker's setting, the values with which the
    case can succeed. ``waits_s``: about how long the case waits for timers of the broker, so that
    long cases start first. ``fault``: what Apache Kafka itself does wrong here."""

    name: str
    rules: tuple[str, ...]
    text: str
    play: Callable[[Any], Awaitable[None]] = field(compare=False)
    needs: Mapping[str, int] = field(default_factory=dict, compare=False)
    waits_s: float = 0.0
    fault: KnownFault | None = None
    settings: Mapping[str, tuple[str, ...]] = field(default_factory=dict, compare=False)

    @property
    def family(self) -> str:
        """The first part of the name: ``classic``, ``consumer``, ``mixed``, ``offsets``, ``admin`` …"""
        return self.name.partition(".")[0]


def described(name: str, rules: tuple[str, ...], text: str, play: Callable[..., object], taken: Container[str]) -> str:
    """Return the text of a case: ``text``, or the docstring of its function. Raises ``ValueError`` for a name that is
    taken, and for a case without text or rules."""
    if name in taken:
        raise ValueError(f"{name} is the name of two cases")
    said = text or inspect.getdoc(play)
    if not said or not rules:
        raise ValueError(f"{name} needs a docstring and at least one rule")
    return " ".join(said.split())


def case(
    name: str,
    *rules: str,
    needs: Mapping[str, int] = MappingProxyType({}),
    waits_s: float = 0.0,
    fault: KnownFault | None = None,
    settings: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
    text: str = "",
) -> Callable[[Play], Play]:
    """Register a case; its docstring is its text, unless ``text`` is given. Raises ``ValueError`` for a name that is
    malformed or taken, and for a case without text or rules."""

    def register(play: Play) -> Play:
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name}: a case is named FAMILY.TOPIC.NUMBER")
        said = described(name, rules, text, play, CASES)
        CASES[name] = Case(name, rules, said, play, needs, waits_s, fault, settings)
        return play

    return register
