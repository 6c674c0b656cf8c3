"""Random clients against a broker: what passes is written down and given to the checker.

The seed decides who takes part and what each is inclined to do. What happens then is up to the broker, the network and
the clock, so unlike a trace of events, this one is not the same a second time; a trace that is refused is kept.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from threading import Thread
from typing import Any

from kio.index import load_request_schema
from kio.schema.types import GroupId
from kio.static.primitive import i8

from fencepost.protocol import messages as m
from fencepost.protocol.profiles import PROFILES
from fencepost.protocol.view import GroupView
from fencepost.server.wire.frames import (
    API_KEYS,
    ASK_S,
    MalformedFrame,
    NoAnswer,
    RequestHeader,
    connect,
    framed,
    read_answer,
    read_response,
    write_request,
)

from ..answers import errors_of
from ..checker.check import check_trace
from ..console import CannotRun
from ..coverage.catalogue import PLACE, bitmap
from ..coverage.wire import visible
from ..generate import hostile
from ..generate.clients import Client
from ..generate.plan import Plan as TracePlan
from ..generate.plan import draw_plan
from ..record.addresses import Address, SeveralBrokers
from ..record.upstream import inspect
from ..targets.registry import TargetName, require_open
from ..trace import WireTrace
from ..trace.convert import wire_request, wire_response
from ..trace.lines import API_OF_KEY, ReceivedLine, SentLine
from ..wire.settings import OF_CLASSIC, Known, settle
from .connection import LATE_S, Connection, Notes
from .job import Job, Row, Verdict
from .plan import Plan
from .summary import Judged, Summary

#: traces at a time; most of their time is waiting for the broker's timers
_TOGETHER = 12
#: no trace waits longer than this, in seconds, for answers after its last request
_PATIENCE = 8.0
_SESSION_TIMEOUTS = (6_000, 10_000)
_REBALANCE_TIMEOUTS = (500, 2_000, 5_000)
Ranges = Mapping[int, tuple[int, int]]


class _Scene:
    """What a forger can know of one trace (``hostile.Surroundings``)."""

    strange_groups: Sequence[str] = ("",)

    def __init__(self, plan: TracePlan, clients: list[Client]) -> None:
        self.plan = plan
        self.clients = clients
        self.known_ids: list[str] = []
        self.groups: dict[str, GroupView] = {}


def run_over_wire(plan: Plan, target: TargetName, summary: Summary, advance: Callable[[int], None]) -> None:
    """Play and check every trace of the plan, into the summary.

    A broker that goes away ends the run, as the summary then says. Raises ``CannotRun`` if it cannot be spoken to.
    """
    require_open(target)
    try:
        asyncio.run(_all(plan, target, summary, advance))
    except SeveralBrokers as several:
        raise CannotRun(str(several)) from None
    except (OSError, MalformedFrame) as broken:
        told = f"{target.host}:{target.port}: {getattr(broken, 'strerror', None) or broken}"
        if not summary.traces:
            raise CannotRun(told) from None
        summary.stopped = told


async def _all(plan: Plan, target: TargetName, summary: Summary, advance: Callable[[int], None]) -> None:
    try:
        upstream = await inspect(Address(target.host, target.port))
    except NoAnswer as mute:
        raise MalformedFrame(f"{mute}; is this a Kafka broker?") from None
    known = summary.known = settle(upstream.settings, dict(plan.job.given), OF_CLASSIC)
    ranges = await _versions(target)
    summary.visible = visible({API_OF_KEY[key]: bounds for key, bounds in ranges.items()})
    run = os.urandom(4).hex()
    gate = asyncio.Semaphore(_TOGETHER)

    async def one(seed: int) -> Judged:
        async with gate:
            prefix = f"fencepost-{run}-{seed}"
            trace, fault = await play(target, seed, plan.job, known, prefix=prefix, ranges=ranges)
        # the search is in Python: another thread keeps the connections of other traces served
        return await _beside(partial(judge, plan.job, seed, trace, fault))

    for done in asyncio.as_completed([one(seed) for seed in range(plan.first, plan.first + plan.count)]):
        summary.add_judged(await done)
        advance(1)


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


async def _ask(target: TargetName, api: str, version: int, **fields: Any) -> Any:
    """One question on a connection of its own. Raises ``MalformedFrame`` for whoever is no Kafka broker."""
    reader, writer = await connect(target.host, target.port)
    try:
        header = RequestHeader(API_KEYS[api], version, 1, "fencepost")
        writer.write(framed(write_request(header, load_request_schema(API_KEYS[api], version)(**fields))))
        await writer.drain()
        frame = await read_answer(reader, api, ASK_S)
    except NoAnswer as mute:
        raise MalformedFrame(f"{mute}; is this a Kafka broker?") from None
    finally:
        writer.close()
    if frame is None:
        raise MalformedFrame("the connection was closed; is this a Kafka broker?")
    return read_response(api, version, frame)


async def _versions(target: TargetName) -> Ranges:
    """The versions of each group API that broker and suite share. Raises ``CannotRun`` if one is missing."""
    answer = await _ask(target, "api_versions", 0)
    told = {int(row.api_key): (int(row.min_version), int(row.max_version)) for row in answer.api_keys}
    ranges = {}
    for name in _REQUEST_OF:
        low, high = told.get(name, (1, 0))
        first, last = m.VERSIONS[_REQUEST_OF[name]]
        ranges[name] = max(low, first), min(high, last)
        if ranges[name][0] > ranges[name][1]:
            raise CannotRun(f"{target.host}:{target.port} does not offer {API_OF_KEY[name]} in a version known here")
    return ranges


async def _coordinator_ready(target: TargetName, groups: Sequence[str]) -> None:
    """A new broker makes the log of its coordinator when somebody asks for it (F-FIND-02), and then loads it. Waits for
    both, so that traces are about groups."""
    waiting = list(groups)
    for _ in range(200):
        found = await _ask(target, "find_coordinator", 3, key=waiting[0], key_type=i8(0))
        told = await _ask(target, "describe_groups", 0, groups=tuple(GroupId(name) for name in waiting))
        waiting = [row.group_id for row in told.groups if row.error_code.value != 0]
        if not waiting and found.error_code.value == 0:
            return
        await asyncio.sleep(0.1)
        waiting = waiting or list(groups)
    raise CannotRun(f"{target.host}:{target.port} does not become coordinator of its groups")


_REQUEST_OF: dict[int, type] = {
    11: m.JoinGroupRequest, 12: m.HeartbeatRequest, 13: m.LeaveGroupRequest, 14: m.SyncGroupRequest,
    15: m.DescribeGroupsRequest, 16: m.ListGroupsRequest, 42: m.DeleteGroupsRequest,
}  # fmt: skip


@dataclass(slots=True)
class _Stage:
    """Where a trace is played; ``budget`` counts down what may still be done."""

    target: TargetName
    ranges: Ranges
    scene: _Scene
    notes: Notes
    budget: int

    def takes(self) -> bool:
        self.budget -= 1
        return self.budget >= 0

    async def connect(self) -> Connection:
        return await Connection.open(self.notes, self.target.host, self.target.port)


async def play(
    target: TargetName, seed: int, job: Job, known: Known, *, prefix: str, ranges: Ranges
) -> tuple[WireTrace, str]:
    """One trace: clients join, sync, beat, leave and restart, and somebody forges requests in between. And what broke
    it off, if so: a request that was not answered in time, or not with an answer that can be read."""
    rng = Random(seed)
    plan = _for_the_wire(draw_plan(rng), rng, prefix, ranges)
    clients = [Client(client) for client in plan.clients]
    await _coordinator_ready(target, plan.groups)
    # nobody is kept waiting for longer than a rebalance timeout, or the initial delay (C-JOIN-43)
    longest = max(known.settings.group_initial_rebalance_delay_ms, *_REBALANCE_TIMEOUTS) / 1_000
    stage = _Stage(target, ranges, _Scene(plan, clients), Notes(longest + LATE_S), job.steps)
    tasks = [asyncio.create_task(_client(stage, client, Random(rng.random()))) for client in clients]
    tasks.append(asyncio.create_task(_forger(stage, Random(rng.random()))))
    waiting = set(tasks)
    while waiting and stage.budget > 0:
        _, waiting = await asyncio.wait(waiting, timeout=0.2)
    if waiting:  # they have what time they need to be answered, and no more
        _, waiting = await asyncio.wait(waiting, timeout=_PATIENCE)
    for task in waiting:
        task.cancel()
    fault = ""
    for outcome in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(outcome, MalformedFrame):
            fault = fault or str(outcome)
        elif isinstance(outcome, Exception):
            raise outcome
    trace = WireTrace(
        known.settings, PROFILES[job.profile], tuple(stage.notes.lines), seed, f"seed {seed}",
        (("target", job.target),), known.assumed,
    )  # fmt: skip
    return trace, fault


async def _client(stage: _Stage, client: Client, rng: Random) -> None:
    connection = await stage.connect()
    request_id = 0
    try:
        while stage.takes():
            await asyncio.sleep(rng.choice((0.0, 0.01, 0.05, 0.3)))
            wanted = client.next_request(rng, stage.scene.plan.mood.restart)
            if client.silent:
                client.silent = rng.random() < 0.7
            if wanted is None:
                continue
            request_id += 1
            client.sent(request_id, *wanted)
            answer = await connection.ask(*wanted, client.plan.client_id)
            if isinstance(answer, m.JoinGroupResponse) and answer.member_id:
                stage.scene.known_ids.append(answer.member_id)
            client.answered(request_id, answer)
    finally:
        connection.close()


async def _forger(stage: _Stage, rng: Random) -> None:
    """Sends what no client would; only what is answered at once, since a connection waits for each answer."""
    connection = await stage.connect()
    scene = stage.scene
    try:
        while stage.takes():
            await asyncio.sleep(rng.choice((0.02, 0.1, 0.4)))
            client = rng.choice(scene.clients)
            draw = rng.random()
            if draw < 0.4:
                version, body = hostile.heartbeat(rng, scene, client)
            elif draw < 0.4 + 2 * scene.plan.mood.hostile:
                version, body = hostile.leave(rng, scene, client)
            elif draw < 0.95:
                version, body = hostile.describe(rng, scene)
            else:
                version, body = hostile.delete(rng, scene)
            low, high = stage.ranges[_KEY_OF[type(body)]]
            if low <= version <= high:
                await connection.ask(version, body, "forger")
    finally:
        connection.close()


_KEY_OF = {request: key for key, request in _REQUEST_OF.items()}


def _for_the_wire(plan: TracePlan, rng: Random, prefix: str, ranges: Ranges) -> TracePlan:
    """The plan with groups of its own, timeouts that a run can wait for, and versions that the broker has."""
    names = {name: f"{prefix}-{number}" for number, name in enumerate(plan.groups)}

    def within(key: int, version: int) -> int:
        low, high = ranges[key]
        return min(max(version, low), high)

    clients = tuple(
        replace(
            client,
            group_id=names[client.group_id],
            session_timeout_ms=rng.choice(_SESSION_TIMEOUTS),
            rebalance_timeout_ms=rng.choice(_REBALANCE_TIMEOUTS),
            join_version=within(11, client.join_version),
            sync_version=within(14, client.sync_version),
            heartbeat_version=within(12, client.heartbeat_version),
            leave_version=within(13, client.leave_version),
        )
        for client in plan.clients
    )
    return replace(plan, groups=tuple(names.values()), clients=clients)


def judge(job: Job, seed: int, trace: WireTrace, fault: str = "") -> Judged:
    """The checker's word on a trace, as a row; a trace that broke off by a ``fault`` of the broker is refused."""
    told = check_trace(trace)
    verdict = {"accepted": Verdict.AGREED, "refused": Verdict.REFUSED}.get(told.outcome, Verdict.UNDECIDED)
    received = [line for line in trace.lines if isinstance(line, ReceivedLine)]
    event, field, left, right, hint = -1, "", told.reason, "", ""
    if told.refusals:
        refusal = told.refusals[0]
        event, left, right, hint = refusal.line, refusal.seen, " or ".join(refusal.allowed), refusal.hint
        field = f"rules {', '.join(refusal.rules)}" if refusal.rules else ""
    elif fault:
        verdict, event, field, left, right = Verdict.REFUSED, len(trace.lines), "no answer", fault, "an answer"
    row = Row(
        seed=seed,
        verdict=verdict.value,
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
        group="" if not verdict.failed else f"refused: {field}" if field else "refused",
    )
    return Judged(row, trace, hint)


def _features(trace: WireTrace) -> set[str]:
    reached = set()
    for line in trace.lines:
        if isinstance(line, SentLine) and wire_request(line) is not None:
            reached.add(f"version {API_OF_KEY[line.api_key]} {line.api_version}")
        elif isinstance(line, ReceivedLine) and (body := wire_response(line)) is not None:
            reached |= {f"error {API_OF_KEY[line.api_key]} {error.name}" for error in errors_of(body)}
    return reached
