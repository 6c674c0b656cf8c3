"""Random clients against a broker: all traffic is noted and checked.

The seed decides which clients take part and their tendencies. What happens then depends on the broker, the network and
the clock. So, unlike a trace of events, this one cannot be repeated; a rejected trace is kept.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from typing import Final

from fencepost.protocol.kafka_names import BROKER_NAMES
from fencepost.protocol.profiles import PROFILES
from fencepost.protocol.settings import Settings
from fencepost.wire.frames import MalformedFrame

from ...common.addresses import Address
from ...common.errors import CannotRun
from ...common.processes import worker_processes
from ...generate.plan import GroupProtocol
from ...generate.wire.asking import default_profile, offer
from ...judge.checker.check import check_trace
from ...judge.checker.verdict import Outcome, Refusal, failed_inside
from ...judge.coverage.catalogue import bitmap
from ...judge.coverage.wire import reached, visible
from ...judge.rows.job import Job, Row, TraceOutcome
from ...judge.rows.summary import Judged, Summary
from ...targets.registry import TargetName, require_open
from ...traces.api_names import api_name
from ...traces.files import WireTrace
from ...traces.lines import ReceivedLine, SentLine
from ...traces.recorder.upstream import inspect
from ...traces.wire.access import read_access
from ...traces.wire.settings import OF_CLASSIC, settle
from .plan import Plan
from .stage import Place, Played, ended, play

#: the checker's outcomes
_OUTCOMES: Final[dict[Outcome, TraceOutcome]] = {
    "accepted": TraceOutcome.AGREED,
    "refused": TraceOutcome.REFUSED,
    "undecided": TraceOutcome.UNDECIDED,
    "broken": TraceOutcome.BROKEN,
}
#: settings of a broker that its clients can observe
_ALL: Final = frozenset(BROKER_NAMES)
_SETTINGS: Final = {GroupProtocol.CLASSIC: OF_CLASSIC, GroupProtocol.CONSUMER: _ALL, GroupProtocol.MIXED: _ALL}


def run_over_wire(
    plan: Plan, target: TargetName, summary: Summary, advance: Callable[[int], None], workers: int = 1
) -> None:
    """Play every trace of the plan, ``plan.job.concurrency`` at a time, check them in ``workers`` processes, and add
    the results to the summary.

    A broker that goes away ends the run, as the summary then says. Raises ``CannotRun`` if it cannot be reached.
    """
    require_open(target)
    try:
        with worker_processes(min(workers, plan.count)) as pool:
            asyncio.run(_all(plan, target, summary, pool, advance))
    except (OSError, MalformedFrame) as broken:
        message = f"{target.host}:{target.port}: {getattr(broken, 'strerror', None) or broken}"
        if not summary.traces:
            raise CannotRun(message) from None
        summary.stopped = message


async def _all(
    plan: Plan, target: TargetName, summary: Summary, pool: ProcessPoolExecutor, advance: Callable[[int], None]
) -> None:
    address, access = Address(target.host, target.port), read_access(plan.job.client_config)
    try:
        upstream = await inspect(address, access)
    except MalformedFrame as odd:
        raise MalformedFrame(f"{odd}; is this a Kafka broker?") from None
    job = plan.job
    if job.usual:
        job = summary.job = replace(job, profile=default_profile(upstream.versions))
    protocol, given = GroupProtocol(job.protocol), job.topics
    offered = offer(upstream.versions, protocol, address, len(upstream.nodes), given)
    known = summary.known = settle(upstream.settings, dict(job.given), _SETTINGS[protocol])
    place = Place(address, upstream.controller, offered, access)
    summary.absent = offered.absent
    summary.visible = visible({api_name(key): bounds for key, bounds in offered.ranges.items()})
    run = os.urandom(4).hex()
    seeds = iter(range(plan.first, plan.first + plan.count))
    checks: set[asyncio.Task[Judged]] = set()

    async def some() -> None:
        """Play trace after trace; all these tasks run at the same time."""
        for seed in seeds:
            prefix = f"fencepost-{run}-{seed}"
            played = await play(place, seed, job, known, prefix=prefix)
            check = asyncio.create_task(_judged(pool, job, seed, played, prefix))
            checks.add(check)
            check.add_done_callback(take)
            await asyncio.wait({check})
            check.result()

    def take(check: asyncio.Task[Judged]) -> None:
        checks.discard(check)
        if not check.cancelled() and check.exception() is None:
            summary.add_judged(check.result())
            advance(1)

    players = [asyncio.create_task(some()) for _ in range(min(plan.job.concurrency, plan.count))]
    try:
        async with ended(players):
            await asyncio.gather(*players)
    except (OSError, MalformedFrame):  # the broker has gone away; the finished traces are still judged
        await asyncio.gather(*checks, return_exceptions=True)
        raise


#: stands for a trace that need not come back from a worker process
_NO_TRACE: Final = WireTrace(Settings(), PROFILES["kafka-4.4"], (), 0, "", (), ())


async def _judged(pool: ProcessPoolExecutor, job: Job, seed: int, played: Played, prefix: str) -> Judged:
    """Return the checker's verdict from a worker process: the search takes more time than everything else. If the
    player itself failed, the trace counts as broken, and the run continues."""
    trace = played.trace
    if played.failure:
        return Judged(_row(seed, trace, TraceOutcome.BROKEN, left=played.failure), trace)
    done = await asyncio.get_running_loop().run_in_executor(pool, _judge_only, job, seed, trace, played.fault, prefix)
    return replace(done, trace=trace)


def _judge_only(job: Job, seed: int, trace: WireTrace, fault: str, prefix: str) -> Judged:
    """Judge, and return the verdict without the trace. If the checker itself fails, the trace counts as broken."""
    try:
        return replace(judge(job, seed, trace, fault, created=prefix), trace=_NO_TRACE)
    except Exception as error:
        return Judged(_row(seed, trace, TraceOutcome.BROKEN, left=failed_inside(error)), _NO_TRACE)


def judge(job: Job, seed: int, trace: WireTrace, fault: str = "", *, created: str | None = None) -> Judged:
    """Return the checker's verdict on a trace as a row; one that ended early by a broker's ``fault`` is rejected.
    ``created``: the beginning of the ids of groups that the trace created."""
    verdict = check_trace(trace, created=created)
    outcome = _OUTCOMES[verdict.outcome]
    event, field, left, right, hint = -1, "", verdict.reason, "", ""
    if verdict.refusals:
        refusal = verdict.refusals[0]
        event, left, right, hint = refusal.line, refusal.sentence, refusal.expected, refusal.hint
        field = refusal.kind
    elif fault:
        outcome, event, field, left, right = TraceOutcome.REFUSED, len(trace.lines), "no answer", fault, "an answer"
    row = _row(seed, trace, outcome, event, field, left, right, coverage=bitmap(reached(trace)))
    return Judged(row, trace, hint, _further(row, verdict.refusals[1:]))


def _row(  # noqa: PLR0917
    seed: int,
    trace: WireTrace,
    outcome: TraceOutcome,
    event: int = -1,
    field: str = "",
    left: str = "",
    right: str = "",
    *,
    coverage: bytes = b"",
) -> Row:
    return Row(
        seed=seed,
        outcome=outcome.value,
        divergence="",
        event=event,
        field=field,
        left=left,
        right=right,
        steps=sum(isinstance(line, SentLine) for line in trace.lines),
        replies=sum(isinstance(line, ReceivedLine) for line in trace.lines),
        records=0,
        timers=0,
        followed=0,
        coverage=coverage,
        digest="",
        group="" if not outcome.failed else f"refused: {field}" if field else "refused",
    )


def _further(first: Row, refusals: Sequence[Refusal]) -> tuple[Row, ...]:
    """Return the rejections in other failure groups than the first, one row for each group."""
    rows = {first.group: first}
    for each in refusals:
        group = f"refused: {each.kind}"
        change = replace(first, event=each.line, field=each.kind, left=each.sentence, right=each.expected, group=group)
        rows.setdefault(group, change)
    return tuple(rows.values())[1:]
