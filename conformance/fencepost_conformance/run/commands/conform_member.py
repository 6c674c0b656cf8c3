"""``fencepost conform --side member`` and ``--side reader``: compare halves of clients with Kafka's own, over random
schedules."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table

from ...common.counting import counted
from ...common.errors import CannotRun
from ...common.interruption import interruptible
from ...common.nearest import unknown
from ...judge.client.judge import Difference, protocols
from ...judge.client.kinds import Half, MemberProtocol
from ...judge.client.run import Found, Job, run
from ...judge.known import Accepted, unmatched
from ...judge.verdict import Tally, Unsettled, Verdict
from ...show.console import Result, finish, progress
from ...targets.jvm import clients
from ...targets.jvm.process import ProcessFault, in_a_line
from ...targets.registry import TargetName, profile_for, report_build

WORDS = {"traces": "schedules", "steps": "events", "known": "with accepted differences"}


def conform_member(  # noqa: PLR0917 — options of a command line
    half: Half,
    target: TargetName,
    profile: str | None,
    protocol: str,
    seeds: range,
    length: int,
    workers: int,
    out: Path | None,
    accepted: dict[str, Accepted],
    *,
    as_json: bool,
) -> None:
    """Run random schedules through half of the core's client and Kafka's; ``accepted``: groups of differences by
    name."""
    if target.kind != "kafka":
        raise CannotRun(
            f"{half}s are compared with Kafka's own client: use --target kafka:RELEASE, such as kafka:4.4.0"
        )
    named = profile_for(target, profile)
    report_build(target, named)
    named_protocols = _protocols(half, protocol)
    for each in named_protocols:
        clients.command(target.build, each, half)  # fetched and compiled once, before any worker starts
    found: dict[MemberProtocol, Found] = {}
    began = time.monotonic()
    stopped = ""
    with interruptible() as cut:
        try:
            for each in named_protocols:
                found[each] = Found()
                job = Job(target.build, named, each, length, half)
                with progress(f"kafka:{target.release}, {named}, {each} {half}", total=len(seeds)) as meter:
                    for rows in run(job, seeds, workers or os.cpu_count() or 1):
                        for row in rows:
                            found[each].add(row)
                        meter.advance(len(rows))
        except ProcessFault as fault:
            stopped = in_a_line(fault)
    result = _result(half, found, accepted, time.monotonic() - began)
    done = f"{result.counts['traces']:,} of {counted(len(seeds) * len(named_protocols), 'schedules')} done"
    result.stopped = cut.reason(done) or (f"{stopped}; {done}" if stopped else None)
    if out is not None:
        (out / f"{half}.json").write_text(json.dumps(result.as_json(), indent=1) + "\n", encoding="utf-8")
    finish(result, as_json=as_json, table=None if as_json else _tables(half, found, accepted))


def _protocols(half: Half, name: str) -> list[MemberProtocol]:
    spoken = protocols(half)
    if name == "all":
        return spoken
    if name not in spoken:
        known = f"a {half} uses {' or '.join(spoken)}; all runs each of them"
        raise CannotRun(unknown("protocol", name, [*spoken, "all"], known))
    return [MemberProtocol(name)]


def _result(half: Half, found: dict[MemberProtocol, Found], accepted: dict[str, Accepted], seconds: float) -> Result:
    groups = {name for each in found.values() for name in each.groups}
    counts: dict[str, int | float] = {
        "traces": sum(each.schedules for each in found.values()),
        "steps": sum(each.steps for each in found.values()),
        "known": sum(each.differing - each.tally(accepted).failed for each in found.values()),
        "groups": len(groups),
        "seconds": round(seconds, 1),
    }
    protocols: dict[str, Any] = {
        protocol: {
            "counts": {"traces": each.schedules, **each.tally(accepted).as_counts(), "steps": each.steps},
            **each.as_json(),
        }
        for protocol, each in found.items()
    }
    details: dict[str, Any] = {"side": half.value, "protocols": protocols}
    if accepted:
        details["never_met"] = [key for key in accepted if key not in groups]
    tally = sum((each.tally(accepted) for each in found.values()), Tally())
    unsettled = [
        Unsettled(Verdict.BROKEN, f"{protocol} seed {row.seed}", row.broken, {"protocol": protocol, "seed": row.seed})
        for protocol, each in found.items()
        for row in each.broken
    ]
    return Result("conform", tally, counts, details, words=WORDS, things="schedules", unsettled=unsettled)


def _tables(half: Half, found: dict[MemberProtocol, Found], accepted: dict[str, Accepted]) -> RenderableType:
    shown: list[RenderableType] = []
    for protocol, each in found.items():
        if each.groups:
            shown.append(_table(f"{protocol} {half}", each, accepted))
    seen = {name for each in found.values() for name in each.groups}
    shown += [unmatched(entry) for key, entry in accepted.items() if key not in seen]
    return Group(*shown)


def _table(whose: str, found: Found, accepted: dict[str, Accepted]) -> Table:
    table = Table(title=f"{whose}: first differences from Kafka's", title_justify="left")
    for name in ("event: fields", "schedules", "seed", "core", "Kafka"):
        table.add_column(name, overflow="fold", justify="right" if name in ("schedules", "seed") else "left")
    for name, group in found.ordered():
        first = group.first[0]
        known = f" (accepted: {accepted[name].reason})" if name in accepted else ""
        table.add_row(name + known, f"{group.schedules:,}", str(first.seed), *_sides(first))
    return table


def _sides(difference: Difference) -> tuple[str, str]:
    """Return both values of the first field that differs."""
    ours, theirs = next(iter(difference.fields.values()))
    return _short(ours), _short(theirs)


def _short(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 120 else f"{text[:119]}…"
