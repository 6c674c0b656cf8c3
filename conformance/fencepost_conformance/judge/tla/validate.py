"""The verdict of TLC about recorded traces: ``spec/TraceClassic.tla`` decides, on data generated from the trace."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from fencepost.protocol.profile import Profile
from fencepost.protocol.settings import Settings
from fencepost_model.classic.scala import ScalaProfile
from fencepost_model.tlc.run import TlcBroke, TlcMissing, TlcRun, TlcSlow, run_tlc
from fencepost_model.tlc.values import Function, ParseError, parse

from ...common import repository
from ...common.errors import CannotRun
from ...traces.files import BrokenTrace, EventTrace, WireTrace, read_traces
from ...traces.lines import Setting
from ...traces.wire.settings import changed
from ..checker.check import alive_before
from ..checker.history import Event, History, histories
from ..checker.text import answer_text, request_text
from ..checker.verdict import Outcome, Refusal, Verdict
from .classic import Inexpressible, classic_data, group_events
from .module import SEARCHES, classic_cfg, data_module

#: traces have hundreds of lines, and few states for each
_HEAP_MB: Final = 2048
#: the most time for one search of one trace
_SECONDS: Final = 120.0
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
class Export:
    """The modules and configurations of one group, in a separate folder."""

    folder: Path
    history: History
    events: list[Event]
    profile: Profile

    @classmethod
    def write(cls, folder: Path, history: History, settings: Settings, profile: Profile) -> Export:
        """Write the files to the folder. Raises Inexpressible."""
        events = group_events(history)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "TraceData.tla").write_text(data_module(classic_data(history, settings)), encoding="utf-8")
        for search in SEARCHES:
            (folder / f"{search}.cfg").write_text(classic_cfg(profile, search), encoding="utf-8")
        return cls(folder, history, events, profile)

    def check(self) -> tuple[Refusal | None, int]:
        """A refusal or None, and the number of states. Raises TlcBroke, TlcSlow and TlcMissing.

        The searches are repeated from the quickest on until one explains the trace. The last one only finds the line
        for the report; if it takes too long, the one before has found a line that is not later."""
        states, furthest = 0, Furthest()
        for search in SEARCHES:
            try:
                run = self._run(search)
            except TlcSlow:
                if search != SEARCHES[-1]:
                    raise
                break
            states += run.distinct
            if run.violated is not None:
                return None, states
            furthest = read_progress(run.output)
        return self._refusal(furthest), states

    def _run(self, search: str) -> TlcRun:
        module, cfg = repository.root() / "spec" / "TraceClassic.tla", self.folder / f"{search}.cfg"
        return run_tlc(module, cfg, include=(self.folder,), short=True, heap_mb=_HEAP_MB, seconds=_SECONDS)

    def _refusal(self, furthest: Furthest) -> Refusal:
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
class Choices:
    """How to check: ``profile`` and ``given`` (settings by field) replace those of the traces. ``export``: a folder
    that keeps the generated modules, for runs of TLC without Fencepost."""

    profile: Profile | None = None
    given: Mapping[str, Setting] = field(default_factory=dict)
    export: Path | None = None


def check_by_tlc(path: Path, choices: Choices) -> list[Verdict]:
    """The verdict about each trace of a file. Raises CannotRun if TLC is missing."""
    found = []
    try:
        for number, trace in enumerate(read_traces(path), 1):
            if isinstance(trace, BrokenTrace):
                found.append(Verdict(str(path), "", "broken", trace.line, trace.reason))
            elif isinstance(trace, EventTrace):
                reason = "a trace of kind 'events'; validate checks traces of kind 'wire'"
                found.append(Verdict(str(path), trace.name, "broken", 1, reason))
            else:
                found.append(_verdict(trace, path, number, choices))
    except OSError as error:
        return [Verdict(str(path), "", "broken", 0, error.strerror or str(error))]
    except TlcMissing as missing:
        raise CannotRun(str(missing)) from missing
    return found


def _verdict(trace: WireTrace, path: Path, number: int, choices: Choices) -> Verdict:
    def at(line: int) -> int:
        return trace.numbers[line] if trace.numbers else line

    def without(outcome: Outcome, reason: str, line: int = 0) -> Verdict:
        return Verdict(str(path), trace.name, outcome, at(line), reason)

    profile = choices.profile or trace.profile
    if isinstance(profile, ScalaProfile):
        return without("undecided", f"the specification has no coordinator of {profile.name}")
    try:
        settings = changed(trace.settings, choices.given)
    except ValueError as contradiction:
        return without("broken", f"these settings do not go together: {contradiction}")
    began = time.perf_counter()
    refusals, states, events = [], 0, 0
    groups = histories(trace)
    if not groups:
        return without("undecided", "it has no request about a group: there is nothing to check")
    with tempfile.TemporaryDirectory(prefix="fencepost-trace-") as scratch:
        for index, history in enumerate(groups.values(), 1):
            alive, perhaps = alive_before(history, scala=False)
            if (before := alive or perhaps) is not None:
                return without("undecided", f"group {history.group_id!r} was alive before the trace began", before.line)
            folder = (choices.export or Path(scratch)) / f"{path.name.split('.')[0]}-{number}-{index}"
            try:
                if history.foreign is not None:
                    raise Inexpressible(*history.foreign)
                written = Export.write(folder, history, settings, profile)
                refusal, count = written.check()
            except Inexpressible as foreign:
                return without("undecided", f"group {history.group_id!r}: {foreign.why}", foreign.line)
            except TlcSlow as slow:
                return without("undecided", f"group {history.group_id!r}: {slow}")
            except TlcBroke as broke:
                return without("broken", f"TLC: {' '.join(str(broke).split())}")
            states, events = states + count, events + len(written.events)
            if refusal is not None:
                refusals.append(
                    Refusal(refusal.group_id, at(refusal.line), refusal.at_ms, refusal.seen, refusal.allowed, ())
                )
    outcome: Outcome = "refused" if refusals else "accepted"
    seconds = time.perf_counter() - began
    return Verdict(str(path), trace.name, outcome, 0, "", tuple(refusals), len(groups), events, states, seconds)
