"""``fencepost conform TARGET``: play the named cases on a broker."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from fencepost.protocol.profiles import PROFILES

from ...common.addresses import Address
from ...common.errors import BrokerFault, CannotRun
from ...common.interruption import interruptible
from ...judge.cases.case import CASES, Case
from ...judge.cases.catalogue import chosen
from ...judge.cases.peer import BrokerUnderTest
from ...judge.cases.play import Ending, Played, play_all
from ...judge.verdict import Tally, Unsettled, Verdict
from ...show.console import Result, finish, progress
from ...show.listing import Listing
from ...show.report import cases as shown
from ...targets.broker import Broker
from ...targets.registry import TargetName, profile_for, require_open
from ...traces.wire.access import Access

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


def conform_cases(
    named: TargetName,
    target: str,
    *,
    profile: str | None,
    names: Sequence[str],
    access: Access,
    out: Path | None,
    junit: Path | None,
    strict: bool,
    as_json: bool,
) -> None:
    """Play cases on a broker, print what became of them, and exit. ``names``: as in ``chosen``. ``strict``: known
    faults of Apache Kafka count as failures. Raises ``CannotRun``."""
    if named.kind != "broker":
        raise CannotRun("the named cases are for a broker: broker:RELEASE or HOST:PORT")
    cases = chosen(names)
    kafka = PROFILES.get(profile_for(named, profile))
    if kafka is None:
        raise CannotRun("the named cases know the profiles of Kafka 4.0 and later; give one by --profile")
    if junit is not None:
        junit.touch()  # a path that cannot be written is reported before the work
    began = time.monotonic()
    done: list[Played] = []
    with interruptible() as cut, _running(named) as address, progress("cases", total=len(cases)) as meter:

        def note(played: Played) -> None:
            done.append(played)
            meter.advance()

        asyncio.run(play_all(cases, BrokerUnderTest(address, kafka, access), done=note))
    seconds = time.monotonic() - began
    order = {name: index for index, name in enumerate(CASES)}
    done.sort(key=lambda each: order[each.case.name])
    result = result_of(done, cases, seconds, strict=strict)
    result.stopped = cut.reason(f"{len(done)} of {len(cases)} cases played")
    result.details |= {"target": target, "profile": kafka.name, "cases": [shown.as_json(each) for each in done]}
    xml = shown.junit(done, target, seconds)
    if junit is not None:
        junit.write_text(xml)
    if out is not None:
        (out / "junit.xml").write_text(xml)
        (out / "cases.json").write_text(json.dumps(result.details, indent=1) + "\n")
    again = f"fencepost conform {target}" + (f" --profile {profile}" if profile else "")
    finish(result, as_json=as_json, table=None if as_json else shown.table(done, again))


@contextmanager
def _running(named: TargetName) -> Iterator[Address]:
    """Yield the broker's address; start it if it is a release. Raises ``CannotRun``."""
    if named.host:
        require_open(named)
        yield Address(named.host, named.port)
        return
    try:
        with Broker(named.release, settings=_SETTINGS) as broker:
            yield Address("127.0.0.1", broker.port)
    except BrokerFault as fault:
        raise CannotRun(str(fault)) from None


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
