"""Counter-examples of the model checker, as traces of events that any coordinator can replay.

The closed system has no time, and names members in the order in which they come. So the translation runs the core
beside the counter-example: a timer fires at its deadline on the core, and a member has the id that the core gave it.
Steps of clients and of the network alone have no event. Only classic groups are translated.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from fencepost.protocol.errors import IllegalEvent
from fencepost.protocol.events import Appended, AppendFailed, Event, Load, Request, TimerFired, TimerKey, Unload
from fencepost.protocol.messages import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    RequestBody,
    SyncGroupRequest,
)
from fencepost.protocol.profile import Profile
from fencepost.protocol.records import Record
from fencepost.protocol.settings import Settings
from fencepost_model.classic import AppendError, Arrive, Durable, Fire
from fencepost_model.classic.state import Lose, Timer
from fencepost_model.explore.interface import Outcome, State, successors
from fencepost_model.system.cfg import BadConfiguration
from fencepost_model.system.closed import GROUP, ClosedSystem
from fencepost_model.system.coordinator import FIRST_RECORD, GROUP_ID, Loaded, existing
from fencepost_model.system.families import family_of
from fencepost_model.system.manifest import BadManifest, Entry, read_manifest
from fencepost_model.system.mutants import mutated
from fencepost_model.system.user_model import read_model, user_entry
from fencepost_model.system.variables import values_in
from fencepost_model.tlc.itf import itf_state

from ..common.errors import CannotRun
from ..targets.core import CoreSession
from ..targets.ids import MemberIds
from ..targets.java_order import JavaOrder
from ..traces.files import EventTrace
from ..traces.observation import Observation

_KINDS: Final = {"join": "join", "sync": "sync", "session": "heartbeat"}


def is_counter_example(data: Any) -> bool:
    """Return whether ITF data are a counter-example that ``check --itf`` wrote."""
    for key in ("#meta", "fencepost"):
        data = data.get(key) if isinstance(data, dict) else None
    return isinstance(data, dict) and data.get("type") == "counter-example"


def read_counter_example(path: Path, spec: Path) -> EventTrace | None:
    """Return the trace of a counter-example, None if the file is another one. Raises CannotRun if it cannot be
    translated, OSError."""
    try:
        data = json.loads(path.read_bytes())
    except ValueError:
        return None
    if not is_counter_example(data):
        return None
    name = str(data["#meta"]["fencepost"].get("configuration", ""))
    try:
        return translated(_entry(name, spec), data.get("states", []), str(path))
    except (BadConfiguration, BadManifest) as reason:
        raise CannotRun(f"{path}: {reason}") from None


def _entry(name: str, spec: Path) -> Entry:
    for entry in read_manifest(spec):
        if entry.name == name and entry.has_model:
            return entry
    if not Path(name).is_file():
        raise BadConfiguration(f"no configuration {name!r}, and no file of that name")
    return user_entry(Path(name), spec)


def translated(entry: Entry, states: Sequence[dict[str, Any]], name: str) -> EventTrace:
    """Return the events of a counter-example in ITF. Raises CannotRun if the model does not take its steps, or the core
    does something else."""
    problem = read_model(entry).problem
    with mutated(*problem.mutants):
        system = family_of(problem.config).build(problem.config)
        if not isinstance(system, ClosedSystem):
            raise CannotRun(f"{name}: only counter-examples of classic groups are translated, not of {entry.protocol}")
        path = list(_followed(system, states, name))
    driver = _Driver(system.config.settings, system.config.profile)
    for number, (outcome, state) in enumerate(path, 1):
        stimuli: Any = outcome.note
        for _, stimulus in stimuli or ():
            driver.take(stimulus)
        if difference := driver.differs(state):
            said = " ".join(outcome.label)
            raise CannotRun(f"{name}: the core does not take step {number} ({said}) as the model does: {difference}")
    provenance = (("configuration", entry.name),)
    return EventTrace(
        driver.settings, driver.profile, tuple(driver.events), tuple(driver.seen), name=name, provenance=provenance
    )


def _followed(system: ClosedSystem, states: Sequence[dict[str, Any]], name: str) -> Iterator[tuple[Outcome, State]]:
    """Yield the model's outcome and state for each step of a counter-example."""
    makers = family_of(system.config).makers(system)
    (now,) = system.initial()
    for number, shown in enumerate(states[1:], 1):
        action = tuple(shown.get("#meta", {}).get("action", ()))
        wanted = {key: value for key, value in shown.items() if key != "#meta"}
        for outcome, after in successors(system, now):
            if outcome.label[: len(action)] == action and itf_state(values_in(makers, after)) == wanted:
                now = after
                yield outcome, after
                break
        else:
            raise CannotRun(f"{name}: state {number} is not a successor of the state before it ({' '.join(action)})")


@dataclass(slots=True)
class _Driver:
    """The core, driven by the inputs of the model's group machine."""

    settings: Settings
    profile: Profile
    events: list[Event] = field(default_factory=list)
    seen: list[Observation] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)  #: the closed system's name of a member to its id
    log: list[Record] = field(default_factory=lambda: [FIRST_RECORD])
    replicated: int = 1
    now: int = 1_000
    asked: int = 0
    epoch: int = 1
    ids: MemberIds = field(default_factory=MemberIds)
    core: CoreSession = field(init=False)

    def __post_init__(self) -> None:
        self.core = CoreSession(self.settings, self.profile, JavaOrder(self.ids))
        self._feed(Load(self.now, leader_epoch=self.epoch, records=tuple(self.log)))

    def _feed(self, event: Event) -> None:
        try:
            observed = self.core.feed(event)
        except IllegalEvent as refused:
            raise CannotRun(f"the core refuses event {len(self.events)}: {refused}") from None
        self.events.append(event)
        self.seen.append(observed)
        self.log.extend(observed.records)

    def take(self, stimulus: object) -> None:
        """Give the core what the group machine took."""
        match stimulus:
            case Arrive():
                self._request(stimulus)
            case Fire(timer=timer):
                key = self._key(timer)
                self.now = max(self.now, self.core.armed.get(key, self.now))
                self._feed(TimerFired(self.now, key))
            case Durable(records=records):
                self.replicated += records
                self._feed(Appended(self.now, offset=self.replicated))
            case AppendError(error=error):
                written = len(self.seen[-1].records)
                self._feed(AppendFailed(self.now, error))
                del self.log[len(self.log) - written :]
            case Lose():
                self._feed(Unload(self.now, leader_epoch=None))
            case Loaded(record=record):
                self._load(record)

    def _request(self, arrive: Arrive) -> None:
        self.asked += 1
        drawn = self.ids.drawn
        body = _renamed(arrive.body, self.names)
        self._feed(
            Request(
                self.now,
                id=self.asked,
                version=arrive.version,
                client_id=arrive.client_id,
                client_host=arrive.client_host,
                body=body,
            )
        )
        if self.ids.drawn > drawn:
            known = {*self.names.values()}
            group = self.core.groups[GROUP_ID]
            fresh = {*group.pending_join, *(member.member_id for member in group.members)} - known
            self.names[arrive.new_id] = next(iter(fresh), "")

    def _load(self, record: Record) -> None:
        """Load what survives: the replicated records, and the open ones up to the record that the model loads."""
        wanted = None if record.group_metadata is None else record.group_metadata.generation
        end = self.replicated
        while end < len(self.log) and _generation(self.log[end - 1]) != wanted:
            end += 1
        del self.log[end:]
        self.replicated, self.epoch = end, self.epoch + 1
        self._feed(Load(self.now, leader_epoch=self.epoch, records=tuple(self.log)))

    def _key(self, timer: Timer) -> TimerKey:
        name = self.names.get(timer.member_id, timer.member_id)
        for key in self.core.armed:
            if key.kind.value == _KINDS[timer.kind] and key.member_id == name and key.group_id == GROUP_ID:
                return key
        raise CannotRun(f"the core has no timer {timer.kind} {name}".rstrip())

    def differs(self, state: State) -> str:
        """Return how the core's group differs from the model's, or an empty string."""
        group: Any = existing(state[GROUP])  # type: ignore[arg-type]
        view = self.core.groups[GROUP_ID]
        mine = {self.names.get(member.member_id, member.member_id) for member in group.members}
        leader = self.names.get(group.leader or "", group.leader)
        for what, model, core in (
            ("state", group.state, view.state.value),
            ("generation", group.generation, view.generation_id),
            ("leader", leader or None, view.leader or None),
            ("members", sorted(mine), sorted(member.member_id for member in view.members)),
        ):
            if model != core:
                return f"{what} is {core}, not {model}"
        return ""


def _generation(record: Record) -> int | None:
    value = record.group_metadata
    return None if value is None else value.generation


def _renamed(body: RequestBody, names: dict[str, str]) -> RequestBody:
    """Return the request with the ids that the core gave the members."""
    if isinstance(body, LeaveGroupRequest):
        members = tuple(replace(each, member_id=names.get(each.member_id, each.member_id)) for each in body.members)
        return replace(body, members=members)
    if isinstance(body, SyncGroupRequest):
        rows = tuple(replace(row, member_id=names.get(row.member_id, row.member_id)) for row in body.assignments)
        return replace(body, member_id=names.get(body.member_id, body.member_id), assignments=rows)
    if isinstance(body, JoinGroupRequest | HeartbeatRequest):
        return replace(body, member_id=names.get(body.member_id, body.member_id))
    raise TypeError(f"the closed system sends no {type(body).__name__}")
