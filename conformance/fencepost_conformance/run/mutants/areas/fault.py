"""A planted fault of an area: one realistic mistake, and how a user would see it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ..replacement import Replacement


class Area(StrEnum):
    """The part of the product that is faulty. A slash separates the parts of the server."""

    DATA = "server/data"
    SECURITY = "server/security"
    TRANSACTIONS = "server/transactions"
    CONFIGURATION = "server/configuration"
    CONNECTIONS = "server/connections"
    REBALANCES = "rebalances"
    STORE = "store"
    HOST = "host"
    AIO = "aio"
    WORK = "work"
    REMOTE = "remote"

    def within(self, name: str) -> bool:
        """Whether the area is the one of that name, or a part of it."""
        return self.value == name or self.value.startswith(f"{name}/")


@dataclass(frozen=True, slots=True)
class Fault:
    """``words``: what the faulty program does. ``shown``: the requests or events in which a user sees the difference,
    and the correct result. ``source``: the issue of a real system that it repeats; empty if there is none. ``tests``:
    test files that fit this fault, beside those of its area."""

    name: str
    area: Area
    words: str
    shown: str
    replacements: tuple[Replacement, ...]
    source: str = ""
    tests: tuple[str, ...] = ()
