"""One trace over the wire: clients join, send heartbeats, commit, leave and restart, among forged requests.

Each client has its own connection and waits for each answer, as real clients do. Forged requests that are answered at
once share a connection. A forged JoinGroup or SyncGroup may be parked, so it gets its own connection and delays no
other request. A forged request may replace one that a client waits for, and the client then gets no answer (C-JOIN-59,
C-SYNC-19). It gives up and connects again, as a real client does after its request timeout.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final, NamedTuple

from fencepost.protocol.messages import (
    DeleteGroupsRequest,
    JoinGroupRequest,
    ListGroupsRequest,
    RequestBody,
    ResponseBody,
    SyncGroupRequest,
)
from fencepost.wire.convert import api_of
from fencepost.wire.frames import API_KEYS, MalformedFrame, NoAnswer

from ...common.addresses import Address
from ...common.errors import CannotRun
from ...generate.plan import GroupProtocol
from ...generate.wire.asking import Offer, coordinator_of, coordinator_ready
from ...generate.wire.cast import Cast, Player
from ...generate.wire.classic_cast import ClassicCast
from ...generate.wire.connection import LATE_S, Connection, Notes
from ...generate.wire.consumer_cast import ConsumerCast
from ...generate.wire.leaving import leave_and_delete
from ...generate.wire.mixed_cast import MixedCast
from ...generate.wire.transactions import transactions
from ...judge.checker.coordination import COORDINATED, NODES
from ...judge.checker.listings import ALL, LISTS
from ...judge.checker.verdict import failed_inside
from ...judge.rows.job import Job
from ...traces.files import WireTrace
from ...traces.profiles import JUDGED
from ...traces.wire.access import OPEN, Access
from ...traces.wire.questions import questions
from ...traces.wire.settings import Known

#: maximum wait for answers after the last request of a trace, in seconds
PATIENCE_S: Final = 8.0
#: how often the groups of a trace are renamed, until one broker of a cluster coordinates them all
_NAMES: Final = 200
#: the share of traces at whose end empty groups are deleted
_DELETES: Final = 0.25
#: how long a client still waits for an answer after a forged request has replaced its own, in seconds
_GIVES_UP_S: Final = 1.0
_CASTS: Final[dict[GroupProtocol, Callable[[Random, str, Offer, int], Cast]]] = {
    GroupProtocol.CLASSIC: ClassicCast,
    GroupProtocol.CONSUMER: ConsumerCast,
    GroupProtocol.MIXED: MixedCast,
}


@dataclass(frozen=True, slots=True)
class Place:
    """A broker, and the one of its cluster that changes topics."""

    address: Address
    controller: Address
    offer: Offer
    access: Access = OPEN


@dataclass(slots=True)
class Stage:
    """The state of a played trace; ``budget``: number of requests that may still be sent. ``forged``: when a request
    was last forged in the name of each member, by group and member id."""

    at: Address
    place: Place
    cast: Cast
    notes: Notes
    budget: int
    forged: dict[tuple[str, str], float] = field(default_factory=dict)

    def takes(self) -> bool:
        self.budget -= 1
        return self.budget >= 0

    async def connect(self, at: Address | None = None, notes: Notes | None = None) -> Connection:
        where = at or self.at
        return await Connection.open(notes or self.notes, where.host, where.port, self.place.access)

    def offers(self, version: int, body: RequestBody) -> bool:
        """Whether the broker has the API in this version."""
        low, high = self.place.offer.ranges.get(API_KEYS[api_of(body)], (1, 0))
        return low <= version <= high


@asynccontextmanager
async def ended(tasks: Sequence[asyncio.Task[Any]]) -> AsyncIterator[None]:
    """On exit, cancel the tasks that still run and retrieve their exceptions."""
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def cast_for(place: Place, seed: int, job: Job, prefix: str) -> tuple[Random, Cast, Address]:
    """Return the random generator, the cast, and the broker that coordinates all its groups. In a cluster the groups
    are renamed until one broker coordinates them all. Raises ``CannotRun``."""
    async with questions(place.address.host, place.address.port, place.access) as broker:
        for step in range(1, _NAMES + 1):
            rng = Random(seed)
            cast = _CASTS[GroupProtocol(job.protocol)](rng, prefix, place.offer, step)
            if not place.offer.locates:
                return rng, cast, place.address
            found = {await coordinator_of(broker, name, place.address) for name in cast.groups}
            if place.offer.nodes == 1:  # the given address leads to it, whatever address it advertises
                return rng, cast, place.address
            if len(found) == 1:
                return rng, cast, found.pop()
    raise CannotRun(
        f"found no names for {len(cast.groups)} groups that one of the {place.offer.nodes} brokers coordinates alone"
    )


class Played(NamedTuple):
    """A trace. ``fault``: why it ended early, if it did: a request without an answer in time, or an answer that cannot
    be read. ``failure``: an error of the player itself, in one line; the trace has the lines up to then."""

    trace: WireTrace
    fault: str = ""
    failure: str = ""


async def play(place: Place, seed: int, job: Job, known: Known, *, prefix: str) -> Played:
    """Play one trace. Raises ``OSError`` or ``MalformedFrame`` if the broker goes away, and ``CannotRun``."""
    notes, fault, failure = Notes(), "", ""
    groups: tuple[str, ...] = ()
    try:
        groups, fault = await _play(place, seed, job, known, notes, prefix=prefix)
    except (OSError, MalformedFrame, CannotRun):
        raise
    except Exception as error:
        failure = failed_inside(error, "player")
    provenance = (
        ("target", job.target),
        (NODES, str(place.offer.nodes)),
        (COORDINATED, " ".join(groups)),
        (LISTS, ALL),
    )
    profile, lines = JUDGED[job.profile], tuple(notes.lines)
    trace = WireTrace(known.settings, profile, lines, seed, f"seed {seed}", provenance, known.assumed)
    return Played(trace, fault, failure)


async def _play(
    place: Place, seed: int, job: Job, known: Known, notes: Notes, *, prefix: str
) -> tuple[tuple[str, ...], str]:
    """Play into ``notes``. Returns the groups of the trace, and why it ended early, if it did."""
    rng, cast, at = await cast_for(place, seed, job, prefix)
    groups = (*cast.groups, *cast.apart)
    async with questions(at.host, at.port, place.access) as broker:
        await coordinator_ready(broker, groups, at)
    # no request waits longer than the clients' timeouts, or the initial delay (C-JOIN-43)
    longest = max(known.settings.group_initial_rebalance_delay_ms / 1_000, cast.longest_s)
    notes.begin(longest + LATE_S, frozenset(groups))
    stage = Stage(at, place, cast, notes, job.steps)
    administrator = await stage.connect(stage.place.controller)
    try:
        await cast.set_up(administrator.ask_plain)
        fault = await _acted(stage, administrator, prefix, rng) or await _last_look(stage, rng)
    finally:
        administrator.close()
        await _clear_away(stage)
    return groups, fault


async def _acted(stage: Stage, administrator: Connection, prefix: str, rng: Random) -> str:
    """Let all clients act until the budget is spent; returns the reason of an early end, or an empty string."""
    cast = stage.cast
    tasks = [asyncio.create_task(_client(stage, client, Random(rng.random()))) for client in cast.clients]
    tasks.append(asyncio.create_task(_forger(stage, Random(rng.random()))))
    tasks.append(asyncio.create_task(cast.meanwhile(administrator.ask_plain, Random(rng.random()))))
    tasks.append(asyncio.create_task(_parker(stage, Random(rng.random()))))
    tasks.append(asyncio.create_task(transactions(stage, prefix, Random(rng.random()))))
    async with ended(tasks):
        waiting = set(tasks)
        while waiting and stage.budget > 0:
            _, waiting = await asyncio.wait(waiting, timeout=0.2)
        if waiting:  # they may wait for their answers, up to the limit
            await asyncio.wait(waiting, timeout=PATIENCE_S)
    fault = ""
    for outcome in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(outcome, MalformedFrame):
            fault = fault or str(outcome)
        elif isinstance(outcome, Exception):
            raise outcome
    return fault


async def _last_look(stage: Stage, rng: Random) -> str:
    """List the groups; in some traces delete the empty ones, and list them again. Returns why the trace ended early, if
    it did. Only some traces delete, since the checker's search is slower in them."""
    groups = (*stage.cast.groups, *stage.cast.apart)
    asked: list[RequestBody] = [ListGroupsRequest()]
    if rng.random() < _DELETES:
        asked += [DeleteGroupsRequest(groups), ListGroupsRequest()]
    connection = await stage.connect()
    try:
        for body in asked:
            _, version = stage.place.offer.ranges.get(API_KEYS[api_of(body)], (0, -1))
            if version >= 0:
                await connection.ask(version, body, "admin")
    except MalformedFrame as broken:
        return str(broken)
    finally:
        connection.close()
    return ""


async def _clear_away(stage: Stage) -> None:
    """Delete what was made for the trace, if the broker allows it; not noted."""
    with suppress(OSError, MalformedFrame):
        connection = await stage.connect(notes=Notes())
        await leave_and_delete(connection.ask_plain, stage.place.offer, (*stage.cast.groups, *stage.cast.apart))
        connection.close()
    with suppress(OSError, MalformedFrame):
        connection = await stage.connect(stage.place.controller, Notes())
        await stage.cast.clear_away(connection.ask_plain)
        connection.close()


async def _client(stage: Stage, client: Player, rng: Random) -> None:
    connection = await stage.connect()
    request_id = 0
    try:
        while stage.takes():
            await asyncio.sleep(rng.choice((0.0, 0.01, 0.05, 0.3)))
            if (aside := stage.cast.aside(rng, client)) is not None:
                await connection.ask(*aside, client.plan.client_id)
                continue
            wanted = client.next_request(rng, stage.cast.restart)
            if client.silent:
                client.silent = rng.random() < 0.7
            if wanted is None:
                stage.budget += 1  # no request was sent; the forger still uses up the budget
                continue
            request_id += 1
            client.sent(request_id, *wanted)
            version, body = wanted
            body = stage.cast.as_sent(body)
            answer = await _answered(stage, connection.ask(version, body, client.plan.client_id), body)
            if answer is None:
                connection.close()
                connection = await stage.connect()
                continue
            stage.cast.heard(answer)
            client.answered(request_id, answer)
    finally:
        connection.close()


async def _answered(stage: Stage, asking: Any, body: RequestBody) -> ResponseBody | None:
    """Return the answer; None if the client gives up because a forged request has replaced its own."""
    if not isinstance(body, JoinGroupRequest | SyncGroupRequest):
        answer: ResponseBody = await asking
        return answer
    began = time.monotonic()
    waiting: asyncio.Future[ResponseBody] = asyncio.ensure_future(asking)
    try:
        while not (await asyncio.wait({waiting}, timeout=0.5))[0]:
            forged = stage.forged.get((body.group_id, body.member_id), 0.0)
            if began < forged < time.monotonic() - _GIVES_UP_S:
                return None
        return waiting.result()
    finally:
        waiting.cancel()


async def _forger(stage: Stage, rng: Random) -> None:
    """Send requests that no client would send, and that are answered at once."""
    connection = await stage.connect()
    try:
        while stage.takes():
            await asyncio.sleep(rng.choice((0.02, 0.1, 0.4)))
            made = stage.cast.forged(rng)
            if made is not None and stage.offers(*made):
                _in_the_name_of(stage, made[1])
                await connection.ask(made[0], stage.cast.as_sent(made[1]), "forger")
    finally:
        connection.close()


async def _parker(stage: Stage, rng: Random) -> None:
    """Send forged requests that may be parked, each on its own connection."""
    parked: list[asyncio.Task[None]] = []
    try:
        while stage.budget > 0:
            await asyncio.sleep(rng.choice((0.1, 0.5, 1.5)))
            made = stage.cast.parked(rng)
            if made is None:
                return
            if stage.offers(*made) and stage.takes():
                parked.append(asyncio.create_task(_park(stage, *made)))
        await asyncio.gather(*parked)
    finally:
        async with ended(parked):
            pass


async def _park(stage: Stage, version: int, body: RequestBody) -> None:
    connection = await stage.connect()
    try:
        _in_the_name_of(stage, body)
        stage.cast.heard(await connection.ask(version, stage.cast.as_sent(body), "forger"))
    except NoAnswer:
        pass  # another request of the same member has replaced it
    finally:
        connection.close()


def _in_the_name_of(stage: Stage, body: RequestBody) -> None:
    """Note the members in whose name a request is forged."""
    rows: Any = getattr(body, "members", (body,))
    group_id = getattr(body, "group_id", "")
    for row in rows:
        if member_id := getattr(row, "member_id", ""):
            stage.forged[group_id, member_id] = time.monotonic()
