"""``fencepost conform TARGET``: play the named cases on a broker."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import Group
from rich.text import Text

from fencepost.protocol.profiles import PROFILES
from fencepost_server.look.made import made_now

from ...common.addresses import Address
from ...common.errors import CannotRun
from ...common.interruption import interruptible
from ...judge.cases.case import CASES, Case
from ...judge.cases.catalogue import chosen
from ...judge.cases.peer import BrokerUnderTest
from ...judge.cases.play import Ending, Played, play_all
from ...judge.verdict import Tally, Unsettled, Verdict
from ...show.console import Result, finish, progress
from ...show.files import write_report
from ...show.listing import Listing
from ...show.report import cases as shown
from ...show.report.cases_page import cases_page
from ...targets.registry import PROGRAMS, TargetName, profile_for
from ...traces.wire.access import Access, read_access
from ...traces.wire.settings import spelled
from ..brokers import running
from .conform_traces import Traced, Traces, run_traces, with_traces
from .other_release import advice

#: settings of a broker that is started for the cases: sessions of consumer groups end within the cases' patience
_SETTINGS: Final = {
    "group.consumer.session.timeout.ms": "10000",
    "group.consumer.min.session.timeout.ms": "10000",
    "group.consumer.heartbeat.interval.ms": "3000",
    "group.consumer.min.heartbeat.interval.ms": "3000",
}


def list_cases(names: Sequence[str], *, as_json: bool) -> None:
    """Print the cases with their texts and rules, and exit."""
    listed(chosen(names), as_json=as_json)


def listed(cases: Sequence[Case], *, as_json: bool) -> None:
    """Print these cases with their texts and rules, and exit."""
    listing = Listing(("case", "text", "rules"))
    for each in cases:
        listing.add(each.name, each.text, " ".join(each.rules))
    details = {"cases": [{"case": each.name, "text": each.text, "rules": list(each.rules)} for each in cases]}
    finish(Result("conform", None, {"cases": len(cases)}, details), as_json=as_json, table=listing)


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """Where results go beside the terminal. ``out``: a folder for ``junit.xml``, ``cases.json`` and ``report.html``,
    and one folder for each protocol of the random traces."""

    out: Path | None = None
    junit: Path | None = None
    html: Path | None = None
    as_json: bool = False


def conform_cases(
    named: TargetName,
    target: str,
    *,
    profile: str | None,
    names: Sequence[str],
    client_config: Path | None,
    strict: bool,
    traces: Traces,
    output: Output,
) -> None:
    """Play cases on a broker, then random traces, print what became of them, and exit. ``names``: as in ``chosen``.
    ``strict``: known faults of Apache Kafka count as failures. Raises ``CannotRun``."""
    if named.kind != "broker":
        raise CannotRun(f"the named cases are for a broker: {', '.join(PROGRAMS)}, broker:RELEASE or HOST:PORT")
    cases = chosen(names)
    kafka = PROFILES.get(profile_for(named, profile))
    if kafka is None:
        raise CannotRun("the named cases know the profiles of Kafka 4.0 and later; give one by --profile")
    if client_config is not None and not named.host:
        raise CannotRun("--client-config is for a broker at HOST:PORT only")
    access = read_access(client_config)
    # a broker that is started takes the settings; of one at an address they say what it has
    given = dict(spelled(field, value).split("=", 1) for field, value in traces.settings.items())
    settings = _SETTINGS | given
    for file in (output.junit, output.html):
        if file is not None:
            file.touch()  # a path that cannot be written is reported before the work
    began = time.monotonic()
    done: list[Played] = []
    after: list[Traced] = []
    with interruptible() as cut, running(named, kafka.name, settings) as here:
        address = Address(here.host, here.port)
        asyncio.run(_look(address, access))
        with progress("cases", total=len(cases)) as meter:

            def note(played: Played) -> None:
                done.append(played)
                meter.advance()

            broker = BrokerUnderTest(address, kafka, access, given)
            asyncio.run(play_all(cases, broker, done=note))
        seconds = time.monotonic() - began
        is_release_unknown = profile is None and bool(named.host)
        if traces.number:
            after = run_traces(
                traces,
                here,
                target,
                kafka.name,
                client_config,
                usual=is_release_unknown or (profile is None and named.program == "kfake"),
            )
        drawn = [each.summary for each in after if each.summary]
        hint = asyncio.run(advice(done, drawn, broker)) if is_release_unknown and not cut.happened else ""
    order = {name: index for index, name in enumerate(CASES)}
    done.sort(key=lambda each: order[each.case.name])
    result = result_of(done, cases, seconds, strict=strict)
    stopped = cut.reason(f"{len(done)} of {len(cases)} cases played")
    result.details |= {
        "target": target,
        "profile": kafka.name,
        "hint": hint,
        "cases": [shown.as_json(each) for each in done],
    }
    result = with_traces(result, after)
    result.stopped = "; ".join(part for part in (stopped, result.stopped) if part) or None
    again = f"fencepost conform {target}" + (f" --profile {profile}" if profile else "")
    xml = shown.junit(done, target, seconds)
    made = made_now(target=target, profile=kafka.name, seeds=_seeds(traces))
    page = cases_page(done, target, kafka.name, again, result, drawn, made, hint)
    for file, text in ((output.junit, xml), (output.html, page)):
        if file is not None:
            file.write_text(text, encoding="utf-8")
    if output.out is not None:
        (output.out / "junit.xml").write_text(xml, encoding="utf-8")
        (output.out / "report.html").write_text(page, encoding="utf-8")
        (output.out / "cases.json").write_text(json.dumps(result.details, indent=1, default=str) + "\n")
        for each in after:
            if each.summary is not None:
                write_report(output.out / each.protocol, each.summary, each.seconds, traces.seed)
    tables = [shown.table(done, again), *(part for each in after for part in each.tables())]
    table = Group(*tables, *[Text(hint, "bold yellow")] * bool(hint))
    finish(result, as_json=output.as_json, table=None if output.as_json else table)


def _seeds(traces: Traces) -> str | None:
    return f"{traces.seed} to {traces.seed + traces.number - 1}" if traces.number else None


async def _look(address: Address, access: Access) -> None:
    """Raise ``CannotRun`` if the address does not answer ApiVersions: no case could begin."""
    try:
        connection = await access.open(address.host, address.port)
    except OSError as reason:
        raise CannotRun(f"{address.host}:{address.port}: {reason}; is this a Kafka broker?") from None
    await connection.close()


def result_of(played: Sequence[Played], cases: Sequence[Case], seconds: float, *, strict: bool) -> Result:
    """Return the result of played cases: a known fault passes unless ``strict``, and a case that was not reached is
    undecided."""
    endings = Counter(each.ending for each in played)
    known = endings[Ending.KNOWN_FAULT]
    tally = Tally(
        passed=endings[Ending.PASSED] + (0 if strict else known),
        failed=endings[Ending.FAILED] + (known if strict else 0),
        undecided=endings[Ending.NOT_REACHED],
    )
    unsettled = [
        Unsettled(Verdict.UNDECIDED, each.case.name, each.why) for each in played if each.ending is Ending.NOT_REACHED
    ]
    counts: dict[str, int | float] = {
        "cases": len(cases),
        "known_faults": known,
        "not_supported": endings[Ending.NOT_SUPPORTED],
        "seconds": round(seconds, 1),
    }
    return Result("conform", tally, counts, {}, things="cases", unsettled=unsettled)
