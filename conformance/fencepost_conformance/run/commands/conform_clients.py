"""``fencepost conform --client COMMAND``: play the broker for a client, and judge what the client does."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import Final

from fencepost.protocol.settings import Settings

from ...common.addresses import Address
from ...common.errors import CannotRun
from ...common.interruption import interruptible
from ...common.nearest import unknown
from ...judge.cases.play import Ending, Played
from ...judge.client_cases.case import CLIENT_CASES
from ...judge.client_cases.catalogue import chosen
from ...judge.client_cases.play import play_all
from ...judge.client_cases.process import words_of
from ...judge.client_cases.stage import ClientUnderTest, settings_for
from ...show.console import finish, progress
from ...show.report import cases as shown
from ...targets.registry import TargetName, profile_for
from ...traces.wire.settings import spelled
from ..brokers import running
from ..matrix.clients import DRIVER_OPTIONS, installed, peers_folder, read_clients
from ..matrix.verdicts import KINDS, ODD, VERDICTS, Entry, entry_for, read_verdicts
from .conform_cases import listed, result_of

#: a client by its name, such as franz-go: one word without a placeholder or a path
_NAME: Final = re.compile(r"[a-z][a-z-]*")


def list_client_cases(names: Sequence[str], *, as_json: bool) -> None:
    """Print the cases with their texts and rules, and exit."""
    listed(chosen(names), as_json=as_json)


def conform_clients(
    command: str,
    *,
    broker: TargetName | None,
    profile: str | None,
    names: Sequence[str],
    at_once: int,
    strict: bool,
    out: Path | None,
    junit: Path | None,
    as_json: bool,
) -> None:
    """Play cases with a client, print what became of them, and exit. Raises ``CannotRun`` for a command that cannot be
    run.

    Args:
        command: with ``{bootstrap}``, ``{group}`` and ``{topic}``; or the name of a client that has a driver.
        broker: takes the place of the bundled server; the suite makes the trouble in front of it.
        profile: of that broker.
        names: as in ``chosen``.
        at_once: how many cases run at the same time.
        strict: known faults of the client count as failures.
        out: a folder for the results.
        junit: a file for JUnit XML.
        as_json: print one JSON object.
    """
    words, entries = _named(command)
    cases = chosen(names)
    if junit is not None:
        junit.touch()  # a path that cannot be written is reported before the work
    logging.getLogger("fencepost_server").setLevel(logging.CRITICAL)  # the trouble is on purpose
    began = time.monotonic()
    done: list[Played] = []
    with interruptible() as cut, _address(broker, profile) as here, progress("cases", total=len(cases)) as meter:

        def note(played: Played) -> None:
            done.append(played if strict else excused(played, entries))
            meter.advance()

        client = ClientUnderTest(tuple(words_of(words)), broker=here)
        asyncio.run(play_all(cases, client, at_once, done=note))
    seconds = time.monotonic() - began
    order = {name: index for index, name in enumerate(CLIENT_CASES)}
    done.sort(key=lambda each: order[each.case.name])
    result = result_of(done, cases, seconds, strict=strict)
    result.stopped = cut.reason(f"{len(done)} of {len(cases)} cases played")
    result.details |= {"client": command, "cases": [shown.as_json(each) for each in done]}
    xml = shown.junit(done, f"--client {command}", seconds)
    if junit is not None:
        junit.write_text(xml)
    if out is not None:
        (out / "junit.xml").write_text(xml)
        (out / "cases.json").write_text(json.dumps(result.details, indent=1) + "\n")
    finish(
        result, as_json=as_json, table=None if as_json else shown.table(done, f"fencepost conform --client '{command}'")
    )


@contextmanager
def _address(named: TargetName | None, profile: str | None) -> Iterator[Address | None]:
    """Yield the address of a broker, which is started if need be; None if there is none."""
    if named is None:
        yield None
        return
    if named.kind != "broker":
        raise CannotRun("with --client, BROKER is broker:RELEASE, kfake, serve or HOST:PORT")
    wanted = settings_for()
    changed = {each.name: getattr(wanted, each.name) for each in fields(Settings)}
    settings = dict(
        spelled(name, value).split("=", 1) for name, value in changed.items() if value != getattr(Settings(), name)
    )
    with running(named, profile_for(named, profile), settings) as here:
        yield Address(here.host, here.port)


def _named(command: str) -> tuple[str, tuple[Entry, ...]]:
    """Return the command of a client that is given by its name, and the verdicts about it; any other command as it is.
    Raises ``CannotRun`` for a client that has no driver, or is not installed."""
    if not _NAME.fullmatch(command):
        return command, ()
    known = {each.name: each for each in read_clients(peers_folder())}
    if (client := known.get(command)) is None:
        raise CannotRun(unknown("client", command, known, f"there are drivers of {', '.join(known)}"))
    if reason := installed(client).reason:
        raise CannotRun(reason)
    os.environ["PYTHON"] = sys.executable
    words = shlex.join(client.command)
    return f"{words} {DRIVER_OPTIONS}", read_verdicts(peers_folder() / VERDICTS).get(command, ())


def excused(played: Played, entries: Sequence[Entry]) -> Played:
    """Return a case that ended as a verdict says as a known fault, and any other as it is."""
    if played.ending.value not in ODD:
        return played
    entry = entry_for(entries, played.case.name, played.why)
    if entry is None or entry.verdict == "unknown":
        return played
    return replace(played, ending=Ending.KNOWN_FAULT, why=f"{played.why} ({KINDS[entry.verdict]}: {entry.why})")
