"""The coordination behind Kafka consumer groups, as a library.

    from fencepost import GroupBroker, MemoryStore

    async with GroupBroker(MemoryStore()) as groups:
        async with groups.worker("team", ["orders"]) as worker: ...

In an asyncio program: GroupBroker hosts coordinators, over a MemoryStore, SQLiteStore or PostgresStore (Store is the
protocol). Its workers (Worker, Share, ShareLost, CommitFailed, WorkerFailed) divide partitions among themselves.
``fencepost.remote.Groups`` does the same with a broker over TCP.

As a function: ``state, outcome = step(state, event, choices)``, with initial_state, replay, group_view and
committed_offset. Events: Request, Load, Unload, Appended, AppendFailed, TimerFired, TaskDone, TopicsChanged.

    messages   requests and answers         events     all events, and what a step returns
    records    records of the offsets topic errors     every error of the library
    member     members as step functions    host, log  many coordinators, and their logs

Settings, GroupConfig and MigrationPolicy configure a coordinator. INTENDED and PROFILES select the behaviour of a
release of Kafka. Wrong use raises MisuseError. ``rules["C-JOIN-43"]`` is the text of a rule that an error, a trace or a
source line cites. ``certificate()`` says what was checked for the installed files.

A name is imported on first use: a program that uses only the messages does not load the coordinator.
"""

from __future__ import annotations

import re
from importlib import import_module
from pkgutil import get_data
from typing import Any


def _read_stub() -> dict[str, str]:
    """Return the module of each public name, from the stub that type checkers read: there is no second list."""
    homes, home = {}, ""
    for line in (get_data(__name__, "__init__.pyi") or b"").decode().splitlines():
        home = found[1] if (found := re.match(r"from (\.\S*) import", line)) else home
        homes.update(dict.fromkeys(re.findall(r"(\w+) as \1\b", line), home))
    return homes


_HOMES = _read_stub()


def __getattr__(name: str) -> Any:
    """Return the object with that name, imported from its own module on first use."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = _HOMES[name]
    found = import_module(f".{name}", __name__) if home == "." else getattr(import_module(home, __name__), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
