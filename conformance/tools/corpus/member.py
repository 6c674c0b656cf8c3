"""One member of a group, in its own process: ``python -m tools.corpus.member CONFIG``.

CONFIG is ``MemberConfig`` as JSON. Standard input takes one command a line, standard output has one JSON object a line:

    subscribe A,B    subscribe to these topics instead
    stall SECONDS    do not poll for so long (heartbeats continue)
    slow SECONDS     from now on, block for so long in each rebalance callback
    unsubscribe      leave the group but keep running
    commit           commit the positions, and wait for the answer
    seek OFFSET      seek to it in all owned partitions
    pause, resume    stop fetching the partitions that it owns now; fetch again
    transact WHAT    ``begin`` a transaction with the positions in it, ``commit`` or ``abort`` it
    close            leave as the library does on close, and end

    {"event": "ready"}                                    the client exists and polls
    {"event": "assigned", "partitions": [["t", 0], …]}    its owned partitions changed
    {"event": "read", "count": 3}                         total number of records so far
    {"event": "done", "command": "commit"}                a command that reads or writes offsets has ended
    {"event": "error", "text": …}                         the library raised; the member continues
    {"event": "closed"}                                   it has left, and ends

The parent causes failures itself: SIGKILL (crash), SIGSTOP and SIGCONT (a machine that stops).
"""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Callable

from pydantic import TypeAdapter

from .config import MemberConfig
from .events import emit
from .libraries import LIBRARIES, Client


class Commands:
    """The lines that have arrived on standard input."""

    def __init__(self) -> None:
        self._rest = b""

    def next(self, wait: float) -> str | None:
        """Return the next line, None if there is none yet; ``close`` at the end of the input."""
        while b"\n" not in self._rest:
            if not select.select([0], [], [], wait)[0]:
                return None
            chunk = os.read(0, 4096)
            if not chunk:
                return "close"
            self._rest += chunk
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode()


def _command(client: Client, line: str) -> bool:
    """Carry out a command; returns False if the member must end."""
    word, _, rest = line.strip().partition(" ")
    if word == "subscribe":
        client.subscribe(rest.split(","))
    elif word == "stall":
        getattr(client, "sleep", time.sleep)(float(rest))
    elif word == "slow":
        client.slow = float(rest)
    elif word == "unsubscribe":
        client.unsubscribe()
    elif word in _OF_OFFSETS:
        try:
            _OF_OFFSETS[word](client, rest)
            emit("done", command=word)
        except Exception as error:  # as at the end of this file
            emit("error", text=f"{type(error).__name__}: {error}")
    else:
        return False
    return True


_OF_OFFSETS: dict[str, Callable[[Client, str], None]] = {
    "commit": lambda client, _: client.commit(),
    "seek": lambda client, offset: client.seek(int(offset)),
    "pause": lambda client, _: client.pause(),
    "resume": lambda client, _: client.resume(),
    "transact": lambda client, what: client.transact(what),
}


def run(config: MemberConfig) -> None:
    client = LIBRARIES[config.library](config)
    commands = Commands()
    emit("ready")
    owned: list[tuple[str, int]] | None = None
    subscribed, alive, total = True, True, 0
    while alive:
        try:
            if subscribed:
                count = client.poll()
                if count:
                    total += count
                    emit("read", count=total)
            now = sorted(client.owned())
            if now != owned:
                owned = now
                emit("assigned", partitions=owned)
        except Exception as error:  # any exception of the library is part of the scenario
            emit("error", text=f"{type(error).__name__}: {error}")
            time.sleep(0.1)
        line = commands.next(0 if subscribed else 0.1)
        if line is not None:
            alive = _command(client, line)
            subscribed = line.startswith("subscribe") or (subscribed and not line.startswith("unsubscribe"))
    client.close()
    emit("closed")


if __name__ == "__main__":
    run(TypeAdapter(MemberConfig).validate_json(sys.argv[1]))
