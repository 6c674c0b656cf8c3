"""``fencepost conform``: play the named cases on a broker, or run random traces against a target."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Group, RenderableType
from rich.markup import escape

from ...common.counting import counted
from ...common.errors import BrokerFault, CannotRun, NotOffered
from ...common.interruption import interruptible
from ...common.nearest import unknown
from ...generate.plan import GroupProtocol
from ...judge.client.kinds import Half
from ...judge.known import read_known, unmatched
from ...judge.rows.job import CONCURRENCY, Job
from ...judge.rows.summary import Summary
from ...judge.verdict import Tally
from ...show.console import Result, finish, progress
from ...show.files import write_report
from ...show.report.terminal import WORDS, counts, details, tables
from ...targets.jvm.process import ProcessFault
from ...targets.registry import absolute, parse_target, profiles_for, report_build
from ...traces.profiles import JUDGED
from ...traces.wire.settings import ACCESS_HELP, OPTION_HELP, given
from ..pipeline.engines import Engine, opened
from ..pipeline.plan import Plan
from .spark_options import USUAL_WAIT, Conf, Master, Wait, place_for

#: the parts of a group that can be under test
SIDES = ("coordinator", *Half)
#: how many cases with a client run at the same time: clients take processor time, and heartbeats must be in time
CLIENTS_AT_ONCE = 4
#: random traces of each protocol that follow the named cases, unless a number is given
AFTER_CASES: Final = 8
#: counts with the same meaning for every protocol
_ADDED = ("traces", "steps", "replies", "records", "timers", "diverged", "known", "choices_followed")


#: options of random traces that cannot follow the named cases, and why
_NOT_WITH_BROKER: Final = {
    "target": "BROKER is the target",
    "side": "a broker is a coordinator",
    "engine": "a broker is tested from this machine",
    "master": "a broker is tested from this machine",
    "conf": "a broker is tested from this machine",
    "rows": "a broker is tested from this machine",
    "wait": "a broker is tested from this machine",
    "model": "only the model judges a broker's traces",
}


#: options that go with saved traces
_WITH_SAVED: Final = ("saved", "target", "profile", "model", "out", "known", "as_json")
#: options that the cases with a client do not have
_NOT_WITH_CLIENT: Final = (
    "family",
    "html",
    "traces",
    "seed",
    "protocol",
    "target",
    "side",
    "engine",
    "known",
)


def conform(  # noqa: PLR0917 — options of a command line
    context: typer.Context,
    broker: Annotated[
        str | None,
        typer.Argument(
            metavar="[BROKER]",
            help="play the named cases on a broker, then some random traces: HOST:PORT, broker:RELEASE, kfake or serve",
        ),
    ] = None,
    target: Annotated[
        str,
        typer.Option(help="run random traces: core, kafka:RELEASE, kafka:DIR (of jars), broker:RELEASE or HOST:PORT"),
    ] = "core",
    profile: Annotated[
        str | None,
        typer.Option(
            help=f"{', '.join(sorted(JUDGED))}; default: the target's (core: intended and the newest Kafka's)"
        ),
    ] = None,
    side: Annotated[
        str,
        typer.Option(help="coordinator; member, reader or group-reader: step functions of clients against Kafka's own"),
    ] = "coordinator",
    traces: Annotated[
        int,
        typer.Option(
            min=0,
            help=f"number of traces; with BROKER: of each protocol, after the cases (default: {AFTER_CASES}, none with "
            "--case or --family)",
        ),
    ] = 1_000,
    steps_per_trace: Annotated[
        int, typer.Option("--steps-per-trace", "--steps", min=1, help="events in each trace")
    ] = 60,
    seed: Annotated[int, typer.Option(min=0, help="the first seed; the others follow it")] = 0,
    protocol: Annotated[
        str,
        typer.Option(help="protocol of the clients: classic, consumer, mixed or all (default with BROKER: all)"),
    ] = "classic",
    engine: Annotated[str, typer.Option(help="local or spark")] = "local",
    master: Master = None,
    conf: Conf = None,
    rows: Annotated[
        str | None, typer.Option(metavar="URL", help="with --engine spark: folder for rows (default: below --output)")
    ] = None,
    wait: Wait = USUAL_WAIT,
    workers: Annotated[int, typer.Option(min=0, help="processes (local) or cores (spark); 0: all cores")] = 0,
    setting: Annotated[list[str] | None, typer.Option(help=OPTION_HELP)] = None,
    client_config: Annotated[Path | None, typer.Option(metavar="FILE", help=ACCESS_HELP)] = None,
    topic: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="with a broker: use this existing topic; may be repeated (default: create topics)"
        ),
    ] = None,
    concurrency: Annotated[
        int, typer.Option(min=1, help="with a broker: number of traces played at the same time")
    ] = CONCURRENCY,
    model: Annotated[bool, typer.Option(help="also check every step with the model")] = True,
    out: Annotated[
        Path | None, typer.Option("--output", "-o", help="directory for rows, report.html, junit.xml, failures")
    ] = None,
    known: Annotated[
        Path | None, typer.Option(help="file of accepted groups of failures: KEY -- REASON in each line")
    ] = None,
    case: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="with BROKER: only this case, or those below it (classic.join); repeatable"),
    ] = None,
    family: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="with BROKER: only this family of cases, such as classic; repeatable"),
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="list the named cases, and play none")] = False,
    strict: Annotated[
        bool,
        typer.Option(help="with BROKER or --client: known faults of Apache Kafka or of the client count as failures"),
    ] = False,
    junit: Annotated[
        Path | None, typer.Option(metavar="FILE", help="with BROKER: write JUnit XML, one test case each")
    ] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="with BROKER: write one self-contained page")
    ] = None,
    client: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND",
            help="play the broker for a client, which this command starts: '… {bootstrap} … {group} … {topic} …', or "
            "the name of a driver in conformance/peers; with BROKER: only make the trouble in front of that broker",
        ),
    ] = None,
    saved: Annotated[
        list[Path] | None,
        typer.Option(
            "--trace",
            metavar="FILE",
            help="run the traces of events in this file, such as a session of fencepost lab, instead of random ones; "
            "repeatable",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="one JSON object on standard output")] = False,
) -> None:
    """Play the named cases on a broker or with a client, or run random traces against a target and compare every
    step."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    # by its name, since typer and click each have the class
    given_on_line = {name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"}
    if saved:
        for name in given_on_line - set(_WITH_SAVED):
            raise CannotRun(f"--{name.replace('_', '-')} does not go with --trace: the files have whole traces")
        if out is not None:
            require_folder(out)
        from .conform_saved import conform_saved  # noqa: PLC0415 — as below

        accepted = {} if known is None else read_known(known)
        conform_saved(
            saved, parse_target(target), absolute(target), profile, model=model, out=out, accepted=accepted,
            as_json=as_json,
        )  # fmt: skip
        return
    if client is not None or (listed and case and all(name.split(".")[0] == "client" for name in case)):
        for name in _NOT_WITH_CLIENT:
            if name in given_on_line:
                raise CannotRun(f"--{name} does not go with --client, whose cases are chosen by --case")
        from .conform_clients import conform_clients, list_client_cases  # noqa: PLC0415 — as below

        if listed or client is None:
            list_client_cases(case or (), as_json=as_json)
            return
        if out is not None:
            require_folder(out)
        conform_clients(
            client,
            broker=None if broker is None else parse_target(broker),
            profile=profile,
            names=case or (),
            at_once=workers or CLIENTS_AT_ONCE,
            strict=strict,
            out=out,
            junit=junit,
            as_json=as_json,
        )
        return
    names = (*(case or ()), *families(family or ()))
    if listed:
        from .conform_cases import list_cases  # noqa: PLC0415 — as below

        list_cases(names, as_json=as_json)
        return
    if broker is not None:
        from .conform_cases import Output, conform_cases  # noqa: PLC0415 — connections, which other runs do not need
        from .conform_traces import Traces  # noqa: PLC0415

        for name, why in _NOT_WITH_BROKER.items():
            if name in given_on_line:
                option = "--no-model" if name == "model" and not model else f"--{name}"
                raise CannotRun(f"{option} does not go with the named cases of {broker}: {why}")
        if out is not None:
            require_folder(out)
        conform_cases(
            parse_target(broker),
            broker,
            profile=profile,
            names=names,
            client_config=client_config,
            strict=strict,
            traces=Traces(
                number=traces if "traces" in given_on_line else 0 if names else AFTER_CASES,
                steps=steps_per_trace,
                seed=seed,
                protocols=protocols_of(protocol if "protocol" in given_on_line else "all"),
                settings=given(setting),
                topics=tuple(dict.fromkeys(topic or ())),
                concurrency=concurrency,
                workers=workers,
                accepted={} if known is None else read_known(known),
            ),
            output=Output(out=out, junit=junit, html=html, as_json=as_json),
        )
        return
    if names or strict or junit or html:
        raise CannotRun(
            "--case, --family, --strict, --junit and --html belong to the named cases: fencepost conform HOST:PORT"
        )
    if not traces:
        raise CannotRun("--traces must be at least 1 (got 0); 0 is for the named cases: fencepost conform HOST:PORT")
    if side not in SIDES:
        raise CannotRun(unknown("side", side, SIDES, f"known: {', '.join(SIDES)}"))
    place = place_for(engine, master, conf, workers, wait)
    named, target = parse_target(target), absolute(target)
    if side != "coordinator":
        if engine != "local" or setting or rows:
            raise CannotRun(
                f"--side {side} runs on this machine and draws its settings; leave out --engine, --rows, --setting"
            )
        if out is not None:
            require_folder(out)
        accepted = {} if known is None else read_known(known)
        seeds = range(seed, seed + traces)
        from .conform_member import conform_member  # noqa: PLC0415 — the clients are of no use to the other commands

        conform_member(
            Half(side), named, profile, protocol, seeds, steps_per_trace, workers, out, accepted, as_json=as_json
        )
        return
    protocols = protocols_of(protocol)
    settings, topics = given(setting), tuple(dict.fromkeys(topic or ()))
    if settings and named.kind != "broker":
        raise CannotRun("--setting is for a broker; for other targets each trace draws its settings")
    if client_config is not None and not named.host:
        raise CannotRun("--client-config is for a broker at HOST:PORT only")
    if topic and named.kind != "broker":
        raise CannotRun("--topic is for a broker; for other targets each trace draws its topics")
    if out is not None:
        require_folder(out)
    profiles = profiles_for(named, profile)
    report_build(named, profiles[0])
    accepted = {} if known is None else read_known(known)
    seen: set[str] = set()
    stops: list[str] = []
    left_out: dict[GroupProtocol, str] = {}
    found: dict[str, dict[str, Result]] = {}
    shown: list[RenderableType] = []
    plans = list(product(profiles, protocols))
    planned = counted(traces * len(plans), "traces")
    with opened(engine, named, place, rows) as run:
        for name, each in plans:
            job = Job(
                target, name, steps_per_trace, model, each, tuple(settings.items()), client_config, topics, concurrency,
                usual=profile is None and bool(named.host),
            )  # fmt: skip
            plan = Plan(job, seed, traces)
            own = None if out is None else out.joinpath(*[name] * (len(profiles) > 1), *[each] * (len(protocols) > 1))
            try:
                summary, seconds = _run(plan, run, workers or os.cpu_count() or 1, own)
            except NotOffered as lacks:
                if len(protocols) == 1:
                    raise
                left_out[each] = str(lacks)
                shown.append(f"[bold]{each} groups[/]: skipped: {escape(str(lacks))}")
                continue
            if summary.stopped:
                stops.append(f"{summary.stopped}; {_done(found, summary)} of {planned} done")
            summary.accepted = accepted
            seen |= summary.groups.keys()
            if own is not None:
                summary.folder = own
                stops += _report(own, summary, seconds, seed)
            found.setdefault(name, {})[each] = Result(
                "conform",
                summary.tally,
                counts(summary, seconds),
                details(summary),
                words=WORDS,
                unsettled=summary.unsettled(),
            )
            title = [f"{each} groups"] * (len(protocols) > 1) + [f"profile {name}"] * (len(profiles) > 1)
            shown += [f"[bold]{', '.join(title)}[/]"] * bool(title) + [tables(summary)]
            if summary.stopped:
                break
    if not found:
        raise CannotRun(next(iter(left_out.values())))
    result = _together("profiles", {name: _together("protocols", results) for name, results in found.items()})
    if left_out:
        result.details["left_out"] = {str(each): why for each, why in left_out.items()}
    if known is not None:
        result.details["never_met"] = [key for key in accepted if key not in seen]
        shown += [unmatched(entry) for key, entry in accepted.items() if key not in seen]
    result.stopped = "; ".join(stops) or None
    finish(result, as_json=as_json, table=None if as_json else Group(*shown))


def families(names: Sequence[str]) -> Sequence[str]:
    """Return the names if each is a family of cases. Raises ``CannotRun``."""
    if not names:
        return names
    from ...judge.cases.catalogue import chosen  # noqa: PLC0415 — as above

    known = dict.fromkeys(each.family for each in chosen(()))
    for name in names:
        if name not in known:
            raise CannotRun(unknown("family of cases", name, known, f"there are {', '.join(known)}"))
    return names


def require_folder(out: Path) -> None:
    """Check that the folder can be written, before the work and not after it."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as reason:
        raise CannotRun(f"cannot make the folder {out}: {reason.strerror}") from None
    if not os.access(out, os.W_OK):
        raise CannotRun(f"cannot write into {out}")


def _done(before: dict[str, dict[str, Result]], summary: Summary) -> str:
    """Return how many traces are done, of earlier plans and of the last one."""
    traces = sum(result.counts["traces"] for results in before.values() for result in results.values())
    return f"{traces + summary.traces:,}"


def _report(out: Path, summary: Summary, seconds: float, seed: int) -> list[str]:
    """Write the report; returns why it is missing or incomplete, if it is. The command still prints its results."""
    try:
        with interruptible() as cut:
            write_report(out, summary, seconds, seed)
    except (OSError, ProcessFault, BrokerFault) as reason:
        return [f"the report could not be written: {reason}"]
    return ["the report was interrupted and is incomplete"] if cut.happened else []


def protocols_of(name: str) -> list[GroupProtocol]:
    if name == "all":
        return list(GroupProtocol)
    if name not in list(GroupProtocol):
        raise CannotRun(unknown("protocol", name, [*GroupProtocol, "all"], f"known: {', '.join(GroupProtocol)}, all"))
    return [GroupProtocol(name)]


def _run(plan: Plan, engine: Engine, workers: int, out: Path | None) -> tuple[Summary, float]:
    """Return the summary of one plan, and its duration in seconds; ``out``: where an engine may store rows."""
    began = time.monotonic()
    try:
        with progress(f"{plan.job.target}, {plan.job.profile}, {plan.job.protocol}", total=plan.count) as meter:
            summary = engine(plan, workers, out, meter.advance)
    except (ProcessFault, BrokerFault) as fault:
        raise CannotRun(str(fault)) from None
    return summary, time.monotonic() - began


def _together(by: str, results: dict[str, Result]) -> Result:
    """Merge results: add up verdicts and counts, and list the details under each name; ``by``: the kind of these
    names."""
    if len(results) == 1:
        return next(iter(results.values()))
    total = {name: sum(result.counts[name] for result in results.values()) for name in _ADDED}
    found = {
        name: {"verdict": result.outcome, "counts": result.all_counts(), **result.details}
        for name, result in results.items()
    }
    tally = sum((result.tally or Tally() for result in results.values()), Tally())
    unsettled = [each for result in results.values() for each in result.unsettled]
    return Result("conform", tally, total, {by: found}, words=WORDS, unsettled=unsettled)
