"""Play cases with a client, several at once, and return what became of each."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Final

from ...traces.lines import ReceivedLine, SentLine
from ..cases.answers import Exchange, Mismatch, NotSupported
from ..cases.peer import NotReached
from ..cases.play import Ending, Played
from ..members.judge import breaches
from ..promises import Breach
from .case import ClientCase
from .events import judge_events
from .stage import NAMES, ClientRun, ClientUnderTest, Stage, Unkept

#: no case takes longer
_LONGEST_S: Final = 150.0
#: APIs that a failure shows
_SHOWN: Final = frozenset(NAMES.values()) - {"Fetch"}


class _Found(Exception):
    """The judge of members found a breach in the requests of a client."""

    def __init__(self, run: ClientRun, breach: Breach) -> None:
        super().__init__(breach.sentence)
        self.run, self.breach = run, breach


async def play(case: ClientCase, client: ClientUnderTest) -> Played:
    """Play one case, and end every process that it started."""
    began = time.monotonic()
    ending, why = Ending.PASSED, ""
    mismatch: Mismatch | None = None
    exchanges: tuple[Exchange, ...] = ()
    rules: tuple[str, ...] = ()
    async with Stage(client) as stage:
        try:
            async with asyncio.timeout(_LONGEST_S):
                await _played(case, stage)
                why = stage.remark
        except _Found as found:
            ending, why, rules = Ending.FAILED, f"{found.run.name} {found.breach.sentence}", found.breach.cited
            exchanges = exchanges_of(found.run, found.breach.number)
            mismatch = _mismatch(exchanges, found.breach.promise, found.breach.may, found.breach.sent)
        except Unkept as unkept:
            ending, why = Ending.FAILED, str(unkept)
            exchanges = next((exchanges_of(run) for run in stage.runs if run.name == unkept.run), ())
            mismatch = _mismatch(exchanges, "requests", unkept.may, unkept.sent)
        except NotSupported as lacks:
            ending, why = Ending.NOT_SUPPORTED, str(lacks)
        except NotReached as reason:
            ending, why = Ending.NOT_REACHED, str(reason)
        except TimeoutError:
            ending, why = Ending.NOT_REACHED, f"the case did not end within {_LONGEST_S:g} s"
        if ending is Ending.NOT_REACHED and not exchanges:
            exchanges = tuple(each for run in stage.runs for each in exchanges_of(run))
    return Played(case, ending, why, mismatch, exchanges, frozenset(), time.monotonic() - began, rules)


async def _played(case: ClientCase, stage: Stage) -> None:
    """Play a case, and judge what its clients sent and said, also if the case itself fails: a breach explains more."""
    unkept: Unkept | None = None
    try:
        await case.play(stage)
        for run in stage.runs:
            if run.closing_s is None:
                await run.close()
    except Unkept as wrong:
        unkept = wrong
    for run in stage.runs:
        for breach in breaches(run.trace(), heartbeats=case.heartbeats, until_ms=run.until_ms()):
            raise _Found(run, breach)
    judge_events(stage.runs, exclusive=case.exclusive)
    if unkept is not None:
        raise unkept
    for run in stage.runs if case.leaves else ():
        if run.closed and run.assignment() is not None and not has_left(run):
            raise Unkept(run.name, f"{run.name} ended without leaving its group", "LeaveGroup, or a heartbeat with -1")


def has_left(run: ClientRun) -> bool:
    """Return whether a client has sent LeaveGroup, or the heartbeat of a member that leaves."""
    leaves = [line for line in run.sent("ConsumerGroupHeartbeat") if int(str(line.body["member_epoch"])) < 0]
    return bool(leaves or run.sent("LeaveGroup"))


def _mismatch(exchanges: tuple[Exchange, ...], path: str, expected: str, received: str) -> Mismatch | None:
    return Mismatch(exchanges[-1], path, expected, received) if exchanges else None


def exchanges_of(run: ClientRun, upto: int | None = None) -> tuple[Exchange, ...]:
    """Return the requests of a client to its coordinator with their answers, up to this line of its trace."""
    found: list[Exchange] = []
    places: dict[tuple[int, int], int] = {}
    for line in run.trace().lines[:upto]:
        if isinstance(line, SentLine) and (api := NAMES.get(line.api_key)) in _SHOWN and api is not None:
            places[line.connection, line.correlation_id] = len(found)
            who = f"{run.name} (connection {line.connection})"
            found.append(Exchange(len(found), who, api, line.api_version, line.body, None, line.at_ms / 1000, 0.0))
        elif (
            isinstance(line, ReceivedLine)
            and (at := places.pop((line.connection, line.correlation_id), None)) is not None
        ):
            asked = found[at]
            took_s = line.at_ms / 1000 - asked.at_s
            found[at] = Exchange(
                asked.number, asked.client, asked.api, asked.version, asked.request, line.body, asked.at_s, took_s
            )
    return tuple(found)


async def play_all(
    cases: Iterable[ClientCase],
    client: ClientUnderTest,
    at_once: int = 4,
    done: Callable[[Played], None] = lambda _: None,
) -> list[Played]:
    """Play cases beside each other; return them in the given order."""
    room = asyncio.Semaphore(at_once)

    async def one(case: ClientCase) -> Played:
        async with room:
            played = await play(case, client)
        done(played)
        return played

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(case)) for case in cases]
    return [task.result() for task in tasks]
