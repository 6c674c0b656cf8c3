"""One page of each kind, made by its command as far as that needs no broker and no JVM."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from fencepost.codec import Codec
from fencepost.coordinator.routing import APIS
from fencepost.protocol import messages as m
from fencepost.protocol.profiles import KAFKA_4_3
from fencepost_conformance.cli import main
from fencepost_conformance.generate.generator import generate
from fencepost_conformance.generate.plan import GroupProtocol
from fencepost_conformance.judge.cases.case import CASES
from fencepost_conformance.judge.cases.catalogue import chosen as broker_cases
from fencepost_conformance.judge.cases.play import Ending, Played
from fencepost_conformance.judge.client_cases.catalogue import chosen as client_cases
from fencepost_conformance.judge.history.one_pass import history_of
from fencepost_conformance.run.commands.conform_cases import result_of
from fencepost_conformance.run.matrix.results import Row
from fencepost_conformance.run.matrix.subjects import Subject
from fencepost_conformance.run.matrix.verdicts import Entry
from fencepost_conformance.run.matrix.web import html as matrix_page
from fencepost_conformance.show.history.page import history_page
from fencepost_conformance.show.report.cases_page import cases_page
from fencepost_conformance.traces.offsets_log.rows import LogRow
from fencepost_server.look.made import Made
from fencepost_server.observe.page import status_page

DOCS: Final = Path(__file__).parents[2] / "docs"
MADE: Final = Made("1.2.3", "0123456789ab", "2026-01-02 03:04 UTC", "fencepost …", (("profile", "kafka-4.3"),))


def run(*words: str) -> None:
    """Run a command that ends with status 0 or 1."""
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    assert ended.value.code in (0, 1)


def replay(folder: Path) -> Path:
    run("replay", str(DOCS / "reconciliation.jsonl"), "--html", str(folder / "replay.html"))
    return folder / "replay.html"


def several(folder: Path) -> Path:
    """A random trace of several groups."""
    random = ("3", "--protocol", "consumer", "--profile", "kafka-4.3", "--steps", "200")
    run("replay", *random, "--html", str(folder / "replay.html"))
    return folder / "replay.html"


def report(folder: Path, traces: int = 60, steps: int = 150) -> Path:
    """A run with a planted fault: a heartbeat of the generation before is accepted."""

    def accept(handler: Callable[..., object], step: Any, request: Any, body: Any) -> None:
        group = step.memory.groups.get(body.group_id)
        if group is not None and body.generation_id == group.generation - 1 > 0:
            body = replace(body, generation_id=group.generation)
        handler(step, request, body)

    api = APIS[m.HeartbeatRequest]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(APIS, m.HeartbeatRequest, api._replace(handle=lambda *given: accept(api.handle, *given)))
        size = ("--traces", str(traces), "--steps", str(steps), "--workers", "1")
        run("conform", "--profile", "kafka-4.3", *size, "-o", str(folder))
    return folder / "report.html"


def cases(folder: Path) -> Path:
    some = [name for name in CASES if name.startswith("classic.join")]
    played = [
        Played(CASES[name], ending, "" if ending is Ending.PASSED else "a reason", None, (), frozenset(), 0.1)
        for name, ending in zip(some, Ending, strict=False)
    ]
    result = result_of(played, [], 0.1, strict=False)
    return _write(folder, cases_page(played, "a:1", "kafka-4.3", "fencepost conform a:1", result, [], MADE))


def diff(folder: Path) -> Path:
    size = ("--protocol", "consumer", "--traces", "2", "--workers", "1")
    run("diff", "core:kafka-4.2", "core:kafka-4.3", *size, "-o", str(folder))
    return folder / "report.html"


def counter_example(folder: Path) -> Path:
    run("check", "UnfencedHeartbeat", "--html", str(folder / "check.html"))
    return folder / "check.html"


def history(folder: Path, steps: int = 200) -> Path:
    rows = _log(5, steps)
    found = history_of(rows, next(each.group for each in history_of(rows, keep_events=True).groups if each.strips))
    return _write(folder, history_page(found, found.groups[0], ["a line about a record"], MADE))


def histories(folder: Path) -> Path:
    return _write(folder, history_page(history_of(_log(5, 200)), None, [], MADE))


def _log(seed: int, steps: int) -> Sequence[LogRow]:
    """Return the records that the core writes in a random trace."""
    trace, codec = generate(seed, KAFKA_4_3, steps, GroupProtocol.CONSUMER, offsets=0.3), Codec()
    written = [
        (event.at_ms, each)
        for event, seen in zip(trace.events, trace.observations, strict=False)
        for each in seen.records
    ]
    return [
        LogRow(0, place, 1_700_000_000_000 + at_ms, *codec.encode(each), each.producer, False)
        for place, (at_ms, each) in enumerate(written)
    ]


def matrix(folder: Path) -> Path:
    """A wide table of a broker and a client, with failures that have verdicts, and a long exchange."""
    exchange = {"client": "client 1", "api": "JoinGroup", "version": 9, "answer": None, "at_s": 0.5, "took_s": 0.1}
    sent = [exchange | {"request": {"group_id": "g" * 200}}] * 40
    failed = {"ending": "failed", "text": "A text.", "why": "error_code is NONE", "rules": ["C-JOIN-43"]}
    rows = []
    for kind, names in (("broker", broker_cases(())), ("client", client_cases(()))):
        entry = Entry(cases=(names[0].name,), verdict="fault", why="It is wrong.", ticket="https://example.org/7")
        cases = tuple({"case": each.name, "exchanges": sent, **failed} for each in names if each.name.endswith(".1"))
        subject = Subject(kind, kind, f"a {kind} of some vendor", "v0.0.0-20260918054303", ())
        rows.append(Row(subject, "2026-11-27", cases, entries=(entry,)))
    return _write(folder, matrix_page(rows, MADE))


def rules(folder: Path) -> Path:
    run("rules", "C-JOIN", "M-HB", "F-LOAD", "--html", str(folder / "rules.html"))
    return folder / "rules.html"


def status(folder: Path) -> Path:
    """The page of ``fencepost serve``; the test gives it the state."""
    return _write(folder, status_page(MADE))


def _write(folder: Path, text: str) -> Path:
    file = folder / "page.html"
    file.write_text(text, encoding="utf-8")
    return file


MAKERS: Final[dict[str, Callable[[Path], Path]]] = {
    each.__name__: each
    for each in (replay, several, report, cases, diff, counter_example, history, histories, matrix, rules)
}
