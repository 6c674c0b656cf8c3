"""The verdict of TLC about recorded traces: ``spec/TraceClassic.tla`` decides, on data generated from the trace."""

from __future__ import annotations

import re
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from fencepost.protocol.profile import Profile
from fencepost.protocol.settings import Settings
from fencepost_model.classic.scala import ScalaProfile
from fencepost_model.tlc.run import TlcMissing, TlcRun, TlcSlow, run_tlc
from fencepost_model.tlc.values import Function, ParseError, parse

from ...common import repository
from ...common.errors import CannotRun
from ...traces.files import BrokenTrace, EventTrace, WireTrace, read_traces
from ...traces.lines import Setting
from ...traces.wire.settings import changed
from ..checker.check import alive_before
from ..checker.consumer.topics import topic_events, topic_names
from ..checker.consumer.watch import first_consumer_event
from ..checker.history import Event, History, histories
from ..checker.text import answer_text, request_text
from ..checker.verdict import Outcome, Refusal, Verdict
from .classic import classic_data, group_events
from .consumer import consumer_data, consumer_events
from .module import CLASSIC, CONSUMER, SEARCHES, Family, cfg_text, data_module
from .text import Constants, Data, Inexpressible

#: traces have hundreds of lines, and few states for each
_HEAP_MB: Final = 2048
#: the most time for one search of one trace, and for each further trace in it
_SECONDS: Final = 300.0
_MORE_SECONDS: Final = 30.0
#: How many possible answers a refusal lists.
_SHOWN: Final = 8


@dataclass(slots=True)
class Furthest:
    """How far the behaviours of the specification get: the number of the next line, the requests that must have been
    answered before, and the answers that are possible there."""

    number: int = 0
    missing: list[str] = field(default_factory=list)
    possible: list[dict[str, Any]] = field(default_factory=list)


def read_progress(output: str) -> Furthest:
    """Read what the constraint Progress has printed."""
    found = Furthest()
    for said in _printed(output):
        if said["reached"] > found.number:
            found = Furthest(said["reached"], sorted(said.get("missing", ())))
        found.possible += [dict(each) for each in said.get("possible", ()) if dict(each) not in found.possible]
    return found


def _printed(output: str) -> Iterator[dict[str, Any]]:
    """The printed records; each starts a line of the output and may be spread over more lines."""
    lines: list[str] = []
    for line in output.splitlines():
        if line.startswith("@!@!@"):  # a message of TLC
            lines = []
        elif lines or line.startswith("["):
            lines.append(line)
            try:
                value = parse("\n".join(lines))
            except (ParseError, IndexError):
                continue
            lines = []
            if isinstance(value, Function):
                yield dict(value)


def possible_text(reply: Mapping[str, Any]) -> str:
    """A reply of the specification in words, such as ``NONE, generation 3, leader 'a-1'``."""
    words = [str(reply["error"])]
    if "includesAssignment" in reply:
        if reply["error"] != "NONE":
            return words[0]
        held = ", ".join(sorted(reply["assignment"])) or "no partitions"
        assignment = f"assignment {held}" if reply["includesAssignment"] else "no assignment"
        return f"NONE, epoch {reply['epoch']}, {assignment}"
    if reply["error"] == "NONE" and reply["api"] == "JoinGroup":
        words += [
            f"generation {reply['generation']}",
            f"leader {reply['leader']!r}",
            f"member id {reply['memberId']!r}",
        ]
        listed = sorted(dict(each)["memberId"] for each in reply["members"])
        words += [f"members {', '.join(map(repr, listed))}"] if listed else []
        words += ["skip assignment"] if reply["skipAssignment"] else []
    elif reply["error"] == "MEMBER_ID_REQUIRED":
        words.append(f"member id {reply['memberId']!r}")
    elif reply["error"] == "NONE" and reply["api"] == "SyncGroup":
        words.append(f"assignment {', '.join(sorted(reply['assignment'])) or 'of no bytes'}")
    elif reply["api"] == "LeaveGroup":
        words += reply["errors"]
    return ", ".join(words)


@dataclass(frozen=True, slots=True)
class Choices:
    """How to check: ``profile`` and ``given`` (settings by field) replace those of the traces. ``export``: a folder
    that keeps the generated modules, for runs of TLC without Fencepost. ``seconds``: the most time for one search."""

    profile: Profile | None = None
    given: Mapping[str, Setting] = field(default_factory=dict)
    export: Path | None = None
    seconds: float = _SECONDS


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """One group of a trace."""

    name: str
    history: History
    events: list[Event]
    settings: Settings
    profile: Profile
    family: Family
    topics: Mapping[bytes, str]  #: names of topics by their ids

    def data(self, prefix: str = "") -> tuple[dict[str, Data], Constants]:
        """The trace as a record of ``TraceData``, and its constants. Raises Inexpressible."""
        if self.family is CONSUMER:
            return consumer_data(self.history, self.events, self.settings, self.topics, prefix)
        return classic_data(self.history, self.settings, prefix)

    def refusal(self, furthest: Furthest) -> Refusal:
        event = self.events[furthest.number - 1]
        op = event.op
        seen = f"{request_text(op)} was answered {answer_text(op.answer, op)}"
        allowed = [possible_text(each) for each in furthest.possible]
        if furthest.missing:
            earlier = {f"line_{each.op.line}": each.op for each in self.events}
            allowed = [f"first the answer to {request_text(earlier[name])}" for name in furthest.missing]
        shown = tuple(sorted(set(allowed)))[:_SHOWN] or ("no answer yet: the request still has to wait",)
        return Refusal(self.history.group_id, event.line, event.at_ms, seen, shown, ())


@dataclass(frozen=True, slots=True)
class Found:
    """What TLC found about a recording: it is explained, there is a refusal, or the search was stopped (``slow``)."""

    refusal: Refusal | None = None
    states: int = 0
    slow: str = ""


@dataclass(frozen=True, slots=True)
class _Kind:
    """Recordings of one kind can be in one run of TLC."""

    family: Family
    profile: Profile
    constants: Constants

    def cfg(self, search: str, *, explain: bool = False) -> str:
        return cfg_text(self.family, self.profile, self.constants, search, explain=explain)


def _run(folder: Path, traces: Sequence[dict[str, Data]], kind: _Kind, cfg: str, seconds: float) -> TlcRun:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "TraceData.tla").write_text(data_module(traces, kind.constants), encoding="utf-8")
    (folder / "Trace.cfg").write_text(cfg, encoding="utf-8")
    module = repository.root() / "spec" / f"{kind.family.module}.tla"
    return run_tlc(module, folder / "Trace.cfg", include=(folder,), short=True, heap_mb=_HEAP_MB, seconds=seconds)


def _explained(output: str) -> set[int]:
    """The numbers of the traces that a run has explained."""
    return {int(number) for number in re.findall(r"^\[explained \|-> (\d+)\]$", output, re.MULTILINE)}


def _quick(recordings: Sequence[Recording], scratch: Path, seconds: float) -> dict[Recording, Found]:
    """Those that a quick search of all of them at once explains."""
    batches: dict[_Kind, list[tuple[Recording, dict[str, Data]]]] = defaultdict(list)
    for number, recording in enumerate(recordings):
        data, constants = recording.data(f"t{number}_")
        batches[_Kind(recording.family, recording.profile, constants)].append((recording, data))
    found = {}
    for number, (kind, rows) in enumerate(batches.items()):
        limit = seconds + _MORE_SECONDS * (len(rows) - 1)
        traces = [data for _, data in rows]
        try:
            run = _run(scratch / f"batch-{number}", traces, kind, kind.cfg(SEARCHES[0]), limit)
            output, states = run.output, run.distinct
        except TlcSlow as slow:
            output, states = slow.output, 0
        for place, each in enumerate(sorted(_explained(output))):
            found[rows[each - 1][0]] = Found(states=states if not place else 0)
    return found


def _thorough(recording: Recording, scratch: Path, seconds: float) -> Found:
    """A full search; if it finds no explanation, one for the line of the report. If that takes too long, the search
    before has found a line that is not later."""
    states, furthest = 0, Furthest()
    data, constants = recording.data()
    kind = _Kind(recording.family, recording.profile, constants)
    for search in SEARCHES[1:]:
        try:
            run = _run(scratch / search, [data], kind, kind.cfg(search, explain=True), seconds)
        except TlcSlow as slow:
            if search == SEARCHES[1]:
                return Found(slow=str(slow))
            break
        states += run.distinct
        if run.violated is not None:
            return Found(states=states)
        furthest = read_progress(run.output)
    return Found(recording.refusal(furthest), states)


def check_by_tlc(paths: Sequence[Path], choices: Choices) -> list[list[Verdict]]:
    """The verdicts about the traces of each file. Raises CannotRun if TLC is missing."""
    files = [list(_prepared(path, choices)) for path in paths]
    recordings = [each for file in files for trace in file if isinstance(trace, _Prepared) for each in trace.groups]
    try:
        with tempfile.TemporaryDirectory(prefix="fencepost-traces-") as scratch:
            found = _quick(recordings, Path(scratch), choices.seconds)
            for recording in recordings:
                if recording not in found:
                    found[recording] = _thorough(recording, Path(scratch), choices.seconds)
    except TlcMissing as missing:
        raise CannotRun(str(missing)) from missing
    return [[each.verdict(found) if isinstance(each, _Prepared) else each for each in file] for file in files]


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A trace whose groups can be checked."""

    path: str
    trace: WireTrace
    groups: list[Recording]
    seconds: float

    def verdict(self, found: Mapping[Recording, Found]) -> Verdict:
        said = [found[each] for each in self.groups]
        refusals = tuple(
            replace(each.refusal, line=_line(self.trace, each.refusal.line))
            for each in said
            if each.refusal is not None
        )
        outcome: Outcome = "refused" if refusals else "accepted"
        reason = next((each.slow for each in said if each.slow), "")
        if reason and not refusals:
            outcome = "undecided"
        events, states = sum(len(each.events) for each in self.groups), sum(each.states for each in said)
        return Verdict(
            self.path, self.trace.name, outcome, 0, reason, refusals, len(self.groups), events, states, self.seconds
        )


def _line(trace: WireTrace, number: int) -> int:
    return trace.numbers[number] if trace.numbers else number


def _prepared(path: Path, choices: Choices) -> Iterator[_Prepared | Verdict]:
    try:
        for number, trace in enumerate(read_traces(path), 1):
            if isinstance(trace, BrokenTrace):
                yield Verdict(str(path), "", "broken", trace.line, trace.reason)
            elif isinstance(trace, EventTrace):
                reason = "a trace of kind 'events'; validate checks traces of kind 'wire'"
                yield Verdict(str(path), trace.name, "broken", 1, reason)
            else:
                name = f"{path.name.split('.')[0]}-{number}"
                yield _groups_of(trace, path, name, choices)
    except OSError as error:
        yield Verdict(str(path), "", "broken", 0, error.strerror or str(error))


def _groups_of(trace: WireTrace, path: Path, name: str, choices: Choices) -> _Prepared | Verdict:
    began = time.perf_counter()

    def without(outcome: Outcome, reason: str, line: int = 0) -> Verdict:
        return Verdict(str(path), trace.name, outcome, _line(trace, line), reason)

    profile = choices.profile or trace.profile
    if isinstance(profile, ScalaProfile):
        return without("undecided", f"the specification has no coordinator of {profile.name}")
    try:
        settings = changed(trace.settings, choices.given)
    except ValueError as contradiction:
        return without("broken", f"these settings do not go together: {contradiction}")
    recordings = []
    about_topics = topic_events(trace)
    changes, names = [event.line for event in about_topics], topic_names(about_topics)
    for index, history in enumerate(histories(trace).values(), 1):
        alive, perhaps = alive_before(history, scala=False)
        before = alive or perhaps
        try:
            if history.foreign is not None:
                raise Inexpressible(*history.foreign)
            if before is not None:
                raise Inexpressible(before.line, "it was alive before the trace began")
            consumer = first_consumer_event(history) is not None
            events = consumer_events(history, changes) if consumer else group_events(history)
            family = CONSUMER if consumer else CLASSIC
            recording = Recording(f"{name}-{index}", history, events, settings, profile, family, names)
            data, constants = recording.data()
        except Inexpressible as foreign:
            return without("undecided", f"group {history.group_id!r}: {foreign.why}", foreign.line)
        if choices.export is not None:
            _export(choices.export / recording.name, data, _Kind(family, profile, constants))
        recordings.append(recording)
    if not recordings:
        return without("undecided", "it has no request about a group: there is nothing to check")
    return _Prepared(str(path), trace, recordings, time.perf_counter() - began)


def _export(folder: Path, data: dict[str, Data], kind: _Kind) -> None:
    """Write the modules of one group. Raises CannotRun."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "TraceData.tla").write_text(data_module([data], kind.constants), encoding="utf-8")
        for search in SEARCHES:
            (folder / f"{search}.cfg").write_text(kind.cfg(search, explain=True), encoding="utf-8")
    except OSError as error:
        raise CannotRun(f"--export {error.filename}: {error.strerror}") from error
