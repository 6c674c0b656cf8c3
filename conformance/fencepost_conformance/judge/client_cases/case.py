"""A case for clients, and the register of all of them."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from ..cases.case import Case, described

if TYPE_CHECKING:
    from .stage import Stage

Play: TypeAlias = "Callable[[Stage], Awaitable[None]]"

#: all cases by name, in the order in which their modules define them
CLIENT_CASES: Final[dict[str, ClientCase]] = {}
_NAME: Final = re.compile(r"client\.[a-z]+\.\d+")


@dataclass(frozen=True, slots=True)
class ClientCase(Case):
    """A case for clients. ``heartbeats``: whether the client can send heartbeats in time all along, so that the judge
    expects them. ``exclusive``: whether no partition may be used by two members; false where a client cannot know that
    it was replaced. ``leaves``: whether a client leaves its group when it closes."""

    heartbeats: bool = True
    exclusive: bool = True
    leaves: bool = True

    @property
    def family(self) -> str:
        """The first two parts of the name, such as ``client.join``."""
        return self.name.rpartition(".")[0]


def client_case(
    name: str,
    *rules: str,
    text: str = "",
    heartbeats: bool = True,
    exclusive: bool = True,
    leaves: bool = True,
) -> Callable[[Play], Play]:
    """Register a case; its docstring is its text, unless ``text`` is given. Raises ``ValueError`` for a name that is
    malformed or taken, and for a case without text or rules."""

    def register(play: Play) -> Play:
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name}: a case for clients is named client.TOPIC.NUMBER")
        said = described(name, rules, text, play, CLIENT_CASES)
        CLIENT_CASES[name] = ClientCase(
            name, rules, said, play, heartbeats=heartbeats, exclusive=exclusive, leaves=leaves
        )
        return play

    return register
