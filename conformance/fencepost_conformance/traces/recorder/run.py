"""One recording from beginning to end."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from fencepost.wire.frames import MalformedFrame

from ...common.addresses import Address
from ...common.counting import counted
from ...common.errors import CannotRun
from ..lines import Setting
from ..wire.access import OPEN, Access
from ..wire.settings import Known, assumed_words, settle
from .journal import Journal, Watch
from .output import Output, require_free
from .proxy import CannotListen, Proxy, UpstreamClosed
from .upstream import inspect


@dataclass(frozen=True, slots=True)
class Summary:
    events: int
    connections: int
    malformed: int
    undecoded: int
    known: Known


def _say(text: str) -> None:
    print(f"fencepost record: {text}", file=sys.stderr, flush=True)


async def record(
    listen: Address,
    upstream: Address,
    path: Path,
    until: asyncio.Event,
    *,
    groups: frozenset[str] = frozenset(),
    provenance: Mapping[str, str] | None = None,
    name: str = "",
    ready: Callable[[Address], None] = lambda _: None,
    complain: Callable[[str], None] = _say,
    watch: Watch | None = None,
    settings: Mapping[str, Setting] | None = None,
    replace: bool = False,
    patience_s: float = 0.0,
    access: Access = OPEN,
) -> Summary:
    """Record until the event is set. ``ready`` is called with the address for clients. ``settings``, by field, override
    the broker's own; ``replace``: overwrite an existing trace. ``patience_s``: for how long the broker may be down.
    ``access``: the recorder's connection to the broker; clients connect to the recorder without it.

    Raises CannotRun: the broker cannot be reached, no broker of the cluster can any longer, an address is not
    available, the file cannot be written. The file then has everything up to that point.
    """
    require_free(path, replace=replace)
    try:
        broker = await inspect(upstream, access)
    except OSError as error:
        raise CannotRun(f"no broker at {upstream}: {error.strerror or error}") from None
    except MalformedFrame as error:
        raise CannotRun(f"cannot record {upstream}: {error}") from None
    known = settle(broker.settings, settings or {})
    if known.assumed:
        complain(assumed_words(known))
    output = Output(path, complain, replace=replace)
    journal = Journal(
        output.write,
        known=known,
        provenance={"recorder": "fencepost record", "nodes": str(len(broker.nodes)), **(provenance or {})},
        name=name or path.name.removesuffix(".gz").removesuffix(".jsonl"),
        watch=watch,
    )
    proxy = Proxy(
        upstream, journal,
        groups=groups, patience_s=patience_s, complain=complain, access=access, nodes=broker.nodes, node=broker.node,
    )  # fmt: skip
    trouble = None
    try:
        first, *others = await proxy.start(listen)
        for here, other in others:
            complain(f"listening on {here} for the broker at {other}")
        ready(first[0])
        waits = [asyncio.ensure_future(until.wait()), asyncio.ensure_future(proxy.finished())]
        done, pending = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
        for task in done:
            task.result()
    except (UpstreamClosed, CannotListen) as error:
        trouble = str(error)
    finally:
        await proxy.stop()
        output.close()
    if trouble is not None and not journal.events:
        if output.path.is_file():  # a device, such as the null device, must stay
            output.path.unlink()
        raise CannotRun(trouble)
    if trouble is not None:
        raise CannotRun(f"{trouble}; the recording up to then ({counted(journal.events, 'events')}) is in {path}")
    return Summary(journal.events, proxy.connections, proxy.malformed, proxy.undecoded, known)


def record_until_stopped(
    listen: Address,
    upstream: Address,
    path: Path,
    *,
    groups: frozenset[str] = frozenset(),
    provenance: Mapping[str, str] | None = None,
    settings: Mapping[str, Setting] | None = None,
    replace: bool = False,
    patience_s: float = 0.0,
    access: Access = OPEN,
) -> Summary:
    """Record until SIGINT or SIGTERM."""

    async def run() -> Summary:
        until = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, until.set)

        def ready(here: Address) -> None:
            _say(f"clients connect to {here}; Ctrl-C ends the recording")

        return await record(
            listen, upstream, path, until,
            groups=groups, provenance=provenance, ready=ready, settings=settings, replace=replace,
            patience_s=patience_s, access=access,
        )  # fmt: skip

    return asyncio.run(run())
