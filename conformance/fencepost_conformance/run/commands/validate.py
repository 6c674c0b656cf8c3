"""``fencepost validate``: check whether the model could have produced recorded traces."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.markup import escape

from ...judge.checker.search import Limits
from ...judge.checker.verdict import Verdict
from ...judge.rulebook.texts import rule_lines
from ...judge.verdict import Tally, Unsettled
from ...show.console import Result, finish
from ...show.listing import Listing
from ...traces.wire.settings import given
from ..cluster.folder import is_url
from ..validate.plan import Plan
from ..validate.run import find_traces, validate_traces
from .spark_options import USUAL_WAIT, Conf, Master, Wait, place_for


def table(verdicts: list[Verdict]) -> Listing | None:
    failed = [verdict for verdict in verdicts if verdict.refusals]
    if not failed:
        return None
    columns = ("trace", "line", "group", "what is wrong", "expected", "rules")
    listing = Listing(columns, title="Traces that failed")
    for verdict in failed:
        for refusal in verdict.refusals:
            allowed = escape(refusal.expected)
            if refusal.hint:
                allowed += f"\n[yellow]{escape(refusal.hint)}[/]"
            rules = "\n".join(map(escape, rule_lines(refusal.rules)))
            line, group = str(refusal.line), escape(refusal.group_id)
            listing.add(escape(verdict.path), line, group, escape(refusal.sentence), allowed, rules)
    return listing


def validate(  # noqa: PLR0917
    traces: Annotated[list[str], typer.Argument(help="trace files, folders or patterns; with Spark also their URLs")],
    engine: Annotated[str, typer.Option(help="local (the cores of this machine), spark or tlc")] = "local",
    profile: Annotated[str, typer.Option(help="use this profile instead of the trace's own")] = "",
    slack_ms: Annotated[int, typer.Option(min=0, help="how late a timer or an answer may be")] = Limits().slack_ms,
    master: Master = None,
    conf: Conf = None,
    wait: Wait = USUAL_WAIT,
    setting: Annotated[
        list[str] | None,
        typer.Option(help="NAME=VALUE: a broker setting by Kafka's name; overrides the trace's header"),
    ] = None,
    workers: Annotated[int, typer.Option(min=0, help="processes (local) or cores (spark); 0: all cores")] = 0,
    clients: Annotated[bool, typer.Option("--clients", help="a client that breaks a promise fails the trace")] = False,
    export: Annotated[
        Path | None, typer.Option(help="with --engine tlc: keep the generated TLA+ modules in this folder")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="one JSON object on standard output")] = False,
) -> None:
    """Decide for each recorded trace whether the model could have produced it, and what its clients did wrong."""
    place = place_for(engine, master, conf, workers, wait)
    files = find_traces([name for name in traces if not is_url(name)])
    urls = tuple(filter(is_url, traces))
    plan = Plan(files, engine, profile, Limits(slack_ms=slack_ms), workers, urls, place, given(setting), export)
    verdicts, seconds, interrupted = validate_traces(plan)
    if clients:
        verdicts = [verdict.with_clients() for verdict in verdicts]
    events = sum(verdict.events for verdict in verdicts)
    result = Result(
        "validate",
        Tally.of(verdict.verdict for verdict in verdicts),
        counts={
            "traces": len(verdicts),
            "events": events,
            "events_per_second": round(events / seconds) if seconds else 0,
            "broken_promises": sum(len(verdict.breaches) for verdict in verdicts),
        },
        details={"verdicts": [verdict.as_json() for verdict in verdicts]},
        unsettled=[unsettled(verdict) for verdict in verdicts if verdict.outcome in ("undecided", "broken")],
        stopped=f"interrupted; {len(verdicts)} traces checked" if interrupted else None,
    )
    finish(result, as_json=as_json, table=None if as_json else _tables(verdicts))


def _tables(verdicts: list[Verdict]) -> RenderableType | None:
    found = [each for each in (table(verdicts), breaches(verdicts)) if each is not None]
    return Group(*found) if found else None


def breaches(verdicts: list[Verdict]) -> Listing | None:
    """Return the requests of clients that break a promise; None if there are none."""
    columns = ("trace", "line", "group", "what a client sent", "expected", "rules")
    listing = Listing(columns, title="Promises that clients broke")
    for verdict in verdicts:
        for each in verdict.breaches:
            rules = "\n".join(map(escape, rule_lines(each.cited)))
            cells = (verdict.path, str(each.number), each.group, each.sent, each.may)
            listing.add(*map(escape, cells), rules)
    return listing if any(verdict.breaches for verdict in verdicts) else None


def unsettled(verdict: Verdict) -> Unsettled:
    """Describe an undecided or broken trace, by its file and line."""
    place = {"path": verdict.path, "name": verdict.name, "line": verdict.line}
    return Unsettled(verdict.verdict, f"{verdict.path}:{verdict.line}", verdict.reason, place)
