"""Random clients against a broker: what passes is written down and given to the checker.

The seed decides who takes part and what each is inclined to do. What happens then is up to the broker, the network and
the clock, so unlike a trace of events, this one is not the same a second time; a trace that is refused is kept.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from threading import Thread
from typing import Any, Final

from fencepost.protocol.profiles import PROFILES
from fencepost.server.settings import BROKER_NAMES
from fencepost.server.wire.convert import api_of
from fencepost.server.wire.frames import API_KEYS, MalformedFrame

from ..answers import errors_of
from ..checker.check import check_trace
from ..checker.coordination import COORDINATED, NODES
from ..checker.verdict import Outcome, Refusal
from ..console import CannotRun
from ..coverage.catalogue import PLACE, bitmap
from ..coverage.wire import visible
from ..generate.plan import GroupProtocol
from ..record.addresses import Address
from ..record.upstream import inspect
from ..targets.registry import TargetName, require_open
from ..trace import WireTrace
from ..trace.convert import wire_request, wire_response
from ..trace.lines import API_OF_KEY, ReceivedLine, SentLine
from ..wire.access import OPEN, Access, read_access
from ..wire.questions import questions
from ..wire.settings import OF_CLASSIC, Known, settle
from .asking import Offer, coordinator_of, coordinator_ready, offer
from .cast import Cast, Player
from .classic_cast import ClassicCast
from .connection import LATE_S, Connection, Notes
from .consumer_cast import ConsumerCast
from .job import Job, Row, TraceOutcome
from .mixed_cast import MixedCast
from .plan import Plan
from .summary import Judged, Summary

#: traces at a time; most of their time is waiting for the broker's timers
_TOGETHER: Final = 12
#: no trace waits longer than this, in seconds, for answers after its last request
_PATIENCE: Final = 8.0
#: how often the groups of a trace are given other names, until one broker of a cluster coordinates them all
_NAMES: Final = 200
#: who plays each protocol, and the settings of a broker by which what they see goes
_CASTS: Final[dict[GroupProtocol, Callable[[Random, str, Offer, int], Cast]]] = {
    GroupProtocol.CLASSIC: ClassicCast,
    GroupProtocol.CONSUMER: ConsumerCast,
    GroupProtocol.MIXED: MixedCast,
}
#: the checker's words
_OUTCOMES: Final[dict[Outcome, TraceOutcome]] = {
    "accepted": TraceOutcome.AGREED,
    "refused": TraceOutcome.REFUSED,
    "undecided": TraceOutcome.UNDECIDED,
    "broken": TraceOutcome.BROKEN,
}
_ALL: Final = frozenset(BROKER_NAMES)
_SETTINGS: Final = {GroupProtocol.CLASSIC: OF_CLASSIC, GroupProtocol.CONSUMER: _ALL, GroupProtocol.MIXED: _ALL}


def run_over_wire(plan: Plan, target: TargetName, summary: Summary, advance: Callable[[int], None]) -> None:
    """Play and check every trace of the plan, into the summary.

    A broker that goes away ends the run, as the summary then says. Raises ``CannotRun`` if it cannot be spoken to.
    """
    require_open(target)
    try:
        asyncio.run(_all(plan, target, summary, advance))
    except (OSError, MalformedFrame) as broken:
        told = f"{target.host}:{target.port}: {getattr(broken, 'strerror', None) or broken}"
        if not summary.traces:
            raise CannotRun(told) from None
        summary.stopped = told


@dataclass(frozen=True, slots=True)
class Place:
    """A broker, and the one of its cluster that changes topics."""

    address: Address
    controller: Address
    offer: Offer
    access: Access = OPEN


async def _all(plan: Plan, target: TargetName, summary: Summary, advance: Callable[[int], None]) -> None:
    address, access = Address(target.host, target.port), read_access(plan.job.client_config)
    try:
        upstream = await inspect(address, access)
    except MalformedFrame as odd:
        raise MalformedFrame(f"{odd}; is this a Kafka broker?") from None
    protocol = GroupProtocol(plan.job.protocol)
    known = summary.known = settle(upstream.settings, dict(plan.job.given), _SETTINGS[protocol])
    place = Place(address, upstream.controller, offer(upstream.versions, protocol, address, upstream.nodes), access)
    summary.absent = place.offer.absent
    summary.visible = visible({API_OF_KEY[key]: bounds for key, bounds in place.offer.ranges.items()})
    run = os.urandom(4).hex()
    gate = asyncio.Semaphore(_TOGETHER)

    async def one(seed: int) -> Judged:
        async with gate:
            prefix = f"fencepost-{run}-{seed}"
            trace, fault = await play(place, seed, plan.job, known, prefix=prefix)
        # the search is in Python: another thread keeps the connections of other traces served
        return await _beside(partial(judge, plan.job, seed, trace, fault))

    traces = [asyncio.create_task(one(seed)) for seed in range(plan.first, plan.first + plan.count)]
    async with _ended(traces):
        for done in asyncio.as_completed(traces):
            summary.add_judged(await done)
            advance(1)


@asynccontextmanager
async def _ended(tasks: Sequence[asyncio.Task[Any]]) -> AsyncIterator[None]:
    """Whatever happens, none of the tasks is left running, or with an exception that nobody has looked at."""
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _beside(work: Callable[[], Judged]) -> Judged:
    """The work in a thread that nobody waits for when the run is interrupted: a search can take a minute."""
    loop = asyncio.get_running_loop()
    result: asyncio.Future[Judged] = loop.create_future()

    def settle_with(set_: Callable[[Any], None], value: Any) -> None:
        if not result.done():
            set_(value)

    def thread() -> None:
        try:
            done = partial(settle_with, result.set_result, work())
        except Exception as reason:
            done = partial(settle_with, result.set_exception, reason)
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(done)

    Thread(target=thread, daemon=True).start()
    return await result


@dataclass(slots=True)
class _Stage:
    """Where a trace is played; ``budget`` counts down what may still be done."""

    at: Address
    place: Place
    cast: Cast
    notes: Notes
    budget: int

    def takes(self) -> bool:
        self.budget -= 1
        return self.budget >= 0

    async def connect(self, at: Address | None = None, notes: Notes | None = None) -> Connection:
        where = at or self.at
        return await Connection.open(notes or self.notes, where.host, where.port, self.place.access)


async def _cast(place: Place, seed: int, job: Job, prefix: str) -> tuple[Random, Cast, Address]:
    """Who plays, what is drawn after them, and the broker that coordinates all their groups: in a cluster their names
    are made anew until one does. Raises ``CannotRun``."""
    async with questions(place.address.host, place.address.port, place.access) as broker:
        for step in range(1, _NAMES + 1):
            rng = Random(seed)
            cast = _CASTS[GroupProtocol(job.protocol)](rng, prefix, place.offer, step)
            found = {await coordinator_of(broker, name, place.address) for name in cast.groups}
            if place.offer.nodes == 1:  # whatever address it gives: the one that was given leads to it
                return rng, cast, place.address
            if len(found) == 1:
                return rng, cast, found.pop()
    raise CannotRun(
        f"no names for {len(cast.groups)} groups that one of the {place.offer.nodes} brokers coordinates alone"
    )


async def play(place: Place, seed: int, job: Job, known: Known, *, prefix: str) -> tuple[WireTrace, str]:
    """One trace: clients join, beat, leave and restart, and somebody forges requests in between. And what broke it off,
    if so: a request that was not answered in time, or not with an answer that can be read."""
    rng, cast, at = await _cast(place, seed, job, prefix)
    async with questions(at.host, at.port, place.access) as broker:
        await coordinator_ready(broker, cast.groups, at)
    # nobody is kept waiting for longer than clients allow, or the initial delay (C-JOIN-43)
    longest = max(known.settings.group_initial_rebalance_delay_ms / 1_000, cast.longest_s)
    stage = _Stage(at, place, cast, Notes(longest + LATE_S), job.steps)
    administrator = await stage.connect(stage.place.controller)
    await cast.set_up(administrator.ask_plain)
    tasks = [asyncio.create_task(_client(stage, client, Random(rng.random()))) for client in cast.clients]
    tasks.append(asyncio.create_task(_forger(stage, Random(rng.random()))))
    tasks.append(asyncio.create_task(cast.meanwhile(administrator.ask_plain, Random(rng.random()))))
    async with _ended(tasks):
        waiting = set(tasks)
        while waiting and stage.budget > 0:
            _, waiting = await asyncio.wait(waiting, timeout=0.2)
        if waiting:  # they have what time they need to be answered, and no more
            await asyncio.wait(waiting, timeout=_PATIENCE)
    fault = ""
    for outcome in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(outcome, MalformedFrame):
            fault = fault or str(outcome)
        elif isinstance(outcome, Exception):
            raise outcome
    administrator.close()
    trace = WireTrace(
        known.settings, PROFILES[job.profile], tuple(stage.notes.lines), seed, f"seed {seed}",
        (("target", job.target), (NODES, str(place.offer.nodes)), (COORDINATED, " ".join(cast.groups))), known.assumed,
    )  # fmt: skip
    await _clear_away(stage)
    return trace, fault


async def _clear_away(stage: _Stage) -> None:
    """What was made for the trace goes, if the broker lets it; none of it is noted."""
    with suppress(OSError, MalformedFrame):
        connection = await stage.connect(stage.place.controller, Notes())
        await stage.cast.clear_away(connection.ask_plain)
        connection.close()


async def _client(stage: _Stage, client: Player, rng: Random) -> None:
    connection = await stage.connect()
    request_id = 0
    try:
        while stage.takes():
            await asyncio.sleep(rng.choice((0.0, 0.01, 0.05, 0.3)))
            wanted = client.next_request(rng, stage.cast.restart)
            if client.silent:
                client.silent = rng.random() < 0.7
            if wanted is None:
                stage.budget += 1  # nothing was done; the forger goes on, so that there is an end
                continue
            request_id += 1
            client.sent(request_id, *wanted)
            version, body = wanted
            answer = await connection.ask(version, stage.cast.as_sent(body), client.plan.client_id)
            stage.cast.heard(answer)
            client.answered(request_id, answer)
    finally:
        connection.close()


async def _forger(stage: _Stage, rng: Random) -> None:
    """Sends what no client would; only what is answered at once, since a connection waits for each answer."""
    connection = await stage.connect()
    try:
        while stage.takes():
            await asyncio.sleep(rng.choice((0.02, 0.1, 0.4)))
            version, body = stage.cast.forged(rng)
            low, high = stage.place.offer.ranges.get(API_KEYS[api_of(body)], (1, 0))
            if low <= version <= high:
                await connection.ask(version, stage.cast.as_sent(body), "forger")
    finally:
        connection.close()


def judge(job: Job, seed: int, trace: WireTrace, fault: str = "") -> Judged:
    """What the checker says of a trace, as a row; a trace that ended early by a ``fault`` of the broker is refused."""
    told = check_trace(trace)
    outcome = _OUTCOMES[told.outcome]
    received = [line for line in trace.lines if isinstance(line, ReceivedLine)]
    event, field, left, right, hint = -1, "", told.reason, "", ""
    if told.refusals:
        refusal = told.refusals[0]
        event, left, right, hint = refusal.line, refusal.sentence, refusal.expected, refusal.hint
        field = refusal.kind
    elif fault:
        outcome, event, field, left, right = TraceOutcome.REFUSED, len(trace.lines), "no answer", fault, "an answer"
    row = Row(
        seed=seed,
        outcome=outcome.value,
        divergence="",
        event=event,
        field=field,
        left=left,
        right=right,
        steps=sum(isinstance(line, SentLine) for line in trace.lines),
        replies=len(received),
        records=0,
        timers=0,
        followed=0,
        coverage=bitmap(name for name in _features(trace) if name in PLACE),
        digest="",
        group="" if not outcome.failed else f"refused: {field}" if field else "refused",
    )
    return Judged(row, trace, hint, _further(row, told.refusals[1:]))


def _further(first: Row, refusals: Sequence[Refusal]) -> tuple[Row, ...]:
    """Rows of the refusals that belong to other failure groups than the first, one for each group."""
    rows = {first.group: first}
    for each in refusals:
        group = f"refused: {each.kind}"
        change = replace(first, event=each.line, field=each.kind, left=each.sentence, right=each.expected, group=group)
        rows.setdefault(group, change)
    return tuple(rows.values())[1:]


def _features(trace: WireTrace) -> set[str]:
    reached = set()
    for line in trace.lines:
        if isinstance(line, SentLine) and wire_request(line) is not None:
            reached.add(f"version {API_OF_KEY[line.api_key]} {line.api_version}")
        elif isinstance(line, ReceivedLine) and (body := wire_response(line)) is not None:
            reached |= {f"error {API_OF_KEY[line.api_key]} {error.name}" for error in errors_of(body)}
    return reached
