"""Play cases on a broker, many at once, and return what became of each."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, TypeAlias

from fencepost.protocol.profile import Profile

from .answers import Exchange, Mismatch, NotSupported
from .broker_settings import not_allowed
from .case import CASES, Case
from .peer import NO_ANSWER, BrokerUnderTest, Falsify, NotReached, Peer, reported

#: how many cases run at the same time; most of their time they wait
AT_ONCE: Final = 40
#: no case takes longer
_LONGEST_S: Final = 150.0


#: an API and its version
Asked: TypeAlias = tuple[str, int]


class Ending(StrEnum):
    """How a case ends."""

    PASSED = "passed"
    FAILED = "failed"
    KNOWN_FAULT = "known fault"  #: it failed as Apache Kafka of this profile does, which ``docs/findings.md`` lists
    NOT_SUPPORTED = "not supported"  #: the broker does not announce what the case needs, or is configured without it
    NOT_REACHED = "not reached"  #: the case did not come to the point that it tests


@dataclass(frozen=True, slots=True)
class Played:
    """A case that was played. ``why``: the reason, or a remark if it passed. ``mismatch``: what a failure compared.
    ``compared``: each field that the case compared: connection, number of the answer on it, and path. ``rules``: those
    of a failure, if they are not the case's. ``avoided``: versions that the broker announces, and whose answers cannot
    be read; the case used others."""

    case: Case
    ending: Ending
    why: str
    mismatch: Mismatch | None
    exchanges: tuple[Exchange, ...]
    compared: frozenset[tuple[str, int, str]]
    seconds: float
    rules: tuple[str, ...] = ()
    avoided: frozenset[Asked] = frozenset()

    @property
    def cited(self) -> tuple[str, ...]:
        """The rules that the report shows."""
        return self.rules or self.case.rules


async def play(
    case: Case, broker: BrokerUnderTest, falsify: Falsify | None = None, trying: frozenset[Asked] = frozenset()
) -> Played:
    """Play one case. A broker that cannot be reached, or that fails before the case begins, leaves it not reached.

    If an answer cannot be read, and the simplest exchange of that API and version ends so too, ``broker.broken`` gets
    the version, and the case is played again with the next lower one. ``trying``: versions whose simplest exchange is
    being played."""
    while True:
        played, unread = await _play_once(case, broker, falsify)
        if unread is None or unread in played.avoided:
            return played
        is_simplest = case.name == _simplest(unread)
        if not is_simplest and (unread in trying or not await _is_broken(unread, broker, trying | {unread})):
            return played
        broker.broken.add(unread)
        if is_simplest:
            return played


def _simplest(asked: Asked) -> str:
    """The name of the case with the simplest exchange of an API in a version (``admin/versions.py``)."""
    return f"versions.{asked[0]}.{asked[1]}"


async def _is_broken(asked: Asked, broker: BrokerUnderTest, trying: frozenset[Asked]) -> bool:
    """Return whether the answers of an API in this version can never be read. An API without cases only prepares what
    cases test: there one answer is enough."""
    simplest = CASES.get(_simplest(asked))
    if asked in broker.broken or simplest is None:
        return True
    played = await play(simplest, broker, trying=trying)
    return asked in broker.broken or _unread(played.mismatch) == asked


def _unread(wrong: BaseException | None) -> Asked | None:
    """Return the API and version of an answer that could not be read."""
    if isinstance(wrong, Mismatch) and wrong.path == NO_ANSWER:
        return wrong.exchange.api, wrong.exchange.version
    return None


async def _play_once(case: Case, broker: BrokerUnderTest, falsify: Falsify | None) -> tuple[Played, Asked | None]:
    """Play one case; return also the API and version of the answer that ended it, if it could not be read."""
    began = time.monotonic()
    mismatch, unread = None, None
    peer = Peer(broker, falsify)
    async with peer:
        try:
            async with asyncio.timeout(_LONGEST_S):
                await _ready(peer)
                client = await peer.client()
                for api, least in case.needs.items():
                    client.newest(api, least=least)
                await case.play(peer)
            ending, why = Ending.PASSED, ""
        except Mismatch as wrong:
            ending = Ending.KNOWN_FAULT if _known(case, broker.profile, wrong) else Ending.FAILED
            why, mismatch, unread = str(wrong), wrong, _unread(wrong)
        except (LookupError, TypeError, ValueError) as odd:
            # a null where the case reads a row: the answer has the right form, and not the content
            ending, why = Ending.FAILED, f"an answer lacks what the case reads ({type(odd).__name__}: {odd})"
        except NotSupported as reason:
            ending, why = Ending.NOT_SUPPORTED, str(reason)
        except NotReached as reason:
            ending, why, unread = Ending.NOT_REACHED, str(reason), _unread(reason.__cause__)
        except TimeoutError:
            ending, why = Ending.NOT_REACHED, f"the case did not end within {_LONGEST_S:g} s"
        except OSError as broken:  # of a new connection: ``Client.ask`` judges those that are open
            ending, why = Ending.NOT_REACHED, f"no connection: {broken}"
    if ending in (Ending.FAILED, Ending.NOT_REACHED):
        lacks = not_allowed(broker.settings, case.settings, peer.exchanges, peer.clients)
        if lacks is not None:
            ending, why, mismatch, unread = Ending.NOT_SUPPORTED, lacks, None, None
    compared = frozenset(peer.compared)
    seconds = time.monotonic() - began
    return Played(case, ending, why, mismatch, tuple(peer.exchanges), compared, seconds, avoided=peer.avoided), unread


async def _ready(peer: Peer) -> None:
    """Find the coordinator. Raises ``NotReached`` for answers that show a fault already there."""
    try:
        await peer.ready()
    except Mismatch as wrong:
        raise NotReached(f"before the case, {wrong}") from wrong
    except (LookupError, TypeError, ValueError) as odd:
        raise NotReached(f"before the case, an answer lacks a field ({type(odd).__name__}: {odd})") from None


def _known(case: Case, profile: Profile, mismatch: Mismatch) -> bool:
    """Return whether the case failed by the fault that it names, which Kafka of this profile has."""
    fault = case.fault
    return (
        fault is not None
        and getattr(profile, fault.switch)
        and (fault.path, repr(fault.value)) == (mismatch.path, mismatch.received)
    )


async def play_all(
    cases: Iterable[Case],
    broker: BrokerUnderTest,
    at_once: int = AT_ONCE,
    done: Callable[[Played], None] = lambda _: None,
) -> list[Played]:
    """Play cases beside each other, those that wait longest first; return them in the given order. Settings that the
    broker reports count, unless ``broker`` has others."""
    broker = replace(broker, settings=await reported(broker) | dict(broker.settings))
    room = asyncio.Semaphore(at_once)
    wanted = list(cases)

    async def one(case: Case) -> Played:
        async with room:
            played = await play(case, broker)
        done(played)
        return played

    async with asyncio.TaskGroup() as group:
        tasks = {
            case.name: group.create_task(one(case))
            for case in sorted(wanted, key=lambda case: case.waits_s, reverse=True)
        }
    return [tasks[case.name].result() for case in wanted]
