"""Parts: scripts that are played together on two brokers, which are then compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from fencepost_server.transactions.state import Transaction

from . import exhausted, rights, run
from .draw import scripts
from .play import NO_LOGINS, Logins
from .rights import Guarded, Right, guarded_scripts
from .script import Script
from .transactions import TRANSACTIONAL_IDS


@dataclass(frozen=True, slots=True)
class Part:
    """``named``: a ``token`` in the names of the scripts. ``guarded``: the scripts with their rules; empty if the
    brokers have no users. ``transactions``: those that exist when the scripts begin."""

    named: str
    scripts: tuple[Script, ...]
    guarded: tuple[Guarded, ...] = ()
    transactions: tuple[Transaction, ...] = ()

    @property
    def requests(self) -> int:
        """The number of requests."""
        return sum(map(len, self.scripts))

    @property
    def logins(self) -> Logins:
        """The users of the scripts."""
        return rights.logins(len(self.guarded)) if self.guarded else NO_LOGINS

    @property
    def lines(self) -> list[str]:
        """The rules in a file of ``fencepost serve --acl``."""
        return [each.line(prefix) for each, prefix in self._rules()]

    @property
    def rows(self) -> list[Mapping[str, Any]]:
        """The rules in a CreateAcls request."""
        return [each.row(prefix) for each, prefix in self._rules()]

    def _rules(self) -> list[tuple[Right, str]]:
        return [
            (each, run.prefix_of(self.named, at)) for at, script in enumerate(self.guarded) for each in script.rights
        ]


class Kind(StrEnum):
    """The kind of the scripts of a part."""

    PLAIN = "plain"
    RIGHTS = "rights"
    EXHAUSTED = "exhausted"


def part(kind: Kind, named: str, seed: int, requests: int, length: int, *, areas: tuple[str, ...] = ()) -> Part:
    """Draw a part with ``requests`` requests in total. ``areas``, ``length``: as in ``scripts``; ``areas`` counts only
    for plain scripts."""
    if kind is Kind.RIGHTS:
        guarded = tuple(guarded_scripts(seed, requests, length))
        return Part(named, tuple(each.script for each in guarded), guarded)
    if kind is Kind.PLAIN:
        return Part(named, tuple(scripts(seed, requests, length, areas)))
    drawn = tuple(scripts(seed, requests, length, ("transactions",)))
    names = [run.prefix_of(named, at) + name[1:] for at in range(len(drawn)) for name in TRANSACTIONAL_IDS]
    return Part(named, drawn, transactions=exhausted.transactions(seed, names))
