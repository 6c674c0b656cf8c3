"""``fencepost conform --client COMMAND``: play the broker for a client, and judge what the client does."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Sequence
from pathlib import Path

from ...common.interruption import interruptible
from ...judge.cases.play import Played
from ...judge.client_cases.case import CLIENT_CASES
from ...judge.client_cases.catalogue import chosen
from ...judge.client_cases.play import play_all
from ...judge.client_cases.process import words_of
from ...judge.client_cases.stage import ClientUnderTest
from ...show.console import finish, progress
from ...show.report import cases as shown
from .conform_cases import listed, result_of


def list_client_cases(names: Sequence[str], *, as_json: bool) -> None:
    """Print the cases with their texts and rules, and exit."""
    listed(chosen(names), as_json=as_json)


def conform_clients(
    command: str,
    *,
    names: Sequence[str],
    at_once: int,
    out: Path | None,
    junit: Path | None,
    as_json: bool,
) -> None:
    """Play cases with a client, print what became of them, and exit. Raises ``CannotRun`` for a command that cannot be
    run.

    Args:
        command: with ``{bootstrap}``, ``{group}`` and ``{topic}``.
        names: as in ``chosen``.
        at_once: how many cases run at the same time.
        out: a folder for the results.
        junit: a file for JUnit XML.
        as_json: print one JSON object.
    """
    client = ClientUnderTest(tuple(words_of(command)))
    cases = chosen(names)
    if junit is not None:
        junit.touch()  # a path that cannot be written is reported before the work
    logging.getLogger("fencepost_server").setLevel(logging.CRITICAL)  # the trouble is on purpose
    began = time.monotonic()
    done: list[Played] = []
    with interruptible() as cut, progress("cases", total=len(cases)) as meter:

        def note(played: Played) -> None:
            done.append(played)
            meter.advance()

        asyncio.run(play_all(cases, client, at_once, done=note))
    seconds = time.monotonic() - began
    order = {name: index for index, name in enumerate(CLIENT_CASES)}
    done.sort(key=lambda each: order[each.case.name])
    result = result_of(done, cases, seconds, strict=False)
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
