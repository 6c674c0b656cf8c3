"""Product exploration (E2): every transition of a bounded configuration, taken on the real core and on the model.

DRIVEN: the core, event by event, with its log and timers. MODELLED: ``ClassicModel`` behind a ``Follower``, which must
explain each step: reply, records, timers and the view of the group. Breadth first, so that the first disagreement comes
with a shortest way to it.

What may happen is small: a few member ids, two lists of protocols, one instance id, few generations. What *can* happen
next is taken from what can be seen of the group, so both sides are asked the same. Time is not part of a state: any
timer that is armed may fire, and the clock then stands at its deadline. Two states count as one if their groups, armed
timers, open operations, log and written records are equal up to numbers of requests, times and offsets.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field, replace

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import (
    Appended,
    AppendFailed,
    Event,
    Load,
    Request,
    TimerFired,
    TimerKey,
    Unload,
)
from fencepost.protocol.messages import (
    DeleteGroupsRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupMember,
    LeaveGroupRequest,
    Protocol,
    RequestBody,
    SyncGroupAssignment,
    SyncGroupRequest,
)
from fencepost.protocol.records import Record
from fencepost.protocol.settings import INTENDED, Profile, Settings
from fencepost.protocol.view import GroupState, GroupView
from fencepost_model.trace import Follower

from ..targets.base import Observation
from ..targets.core import CoreSession
from .broken import Broken
from .group_rules import check_change, check_group

GROUP, INSTANCE = "g", "i"
RANGE = (Protocol("range", b"1"),)
BOTH = (Protocol("range", b"1"), Protocol("roundrobin", b"1"))
VERSIONS = {JoinGroupRequest: 9, SyncGroupRequest: 5, HeartbeatRequest: 4, LeaveGroupRequest: 5, DeleteGroupsRequest: 2}


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much may happen. ``ids``: member ids that are ever handed out. ``depth``: events of one run. ``prompt``: the
    next event after a write is its replication or its failure."""

    ids: int = 3
    generation: int = 2
    depth: int = 12
    transitions: int = 10_000
    max_size: int = 2
    static: bool = True
    prompt: bool = False
    settings: Settings = field(
        default_factory=lambda: Settings(group_min_session_timeout_ms=1, group_initial_rebalance_delay_ms=10)
    )
    profile: Profile = INTENDED


@dataclass(frozen=True, slots=True)
class Explored:
    """``trail``: the events of a shortest run to the ``problem``."""

    states: int
    transitions: int
    complete: bool
    inputs: Counter[str]
    answers: Counter[str]
    problem: str | None = None
    trail: tuple[str, ...] = ()


class _Numbered:
    """The next member id follows from how many there were; every other choice is the first."""

    def __init__(self, made: int) -> None:
        self.made = made

    def member_id(self, prefix: str) -> str:
        self.made += 1
        return f"m{self.made}"

    def leader(self, group_id: str, candidates: Sequence[str]) -> str:
        return min(candidates)

    def protocol(self, group_id: str, tied: Sequence[str]) -> str:
        return min(tied)

    def uuid(self) -> str:
        return self.member_id("")

    def assignor(self, group_id: str, tied: Sequence[str]) -> str:
        return min(tied)

    def order(self, group_id: str, keys: Sequence[str]) -> Sequence[str]:
        return keys

    def topics(self, group_id: str, topic_ids: Sequence[bytes]) -> Sequence[bytes]:
        return topic_ids


class Both:
    """The core and the model after the same events. ``after`` leaves this object as it is."""

    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds
        settings = replace(bounds.settings, group_max_size=bounds.max_size)
        self.choices = _Numbered(0)
        self.core = CoreSession(settings, bounds.profile, self.choices)
        self.model = Follower(settings, bounds.profile)
        self.now = 0
        self.log: tuple[Record, ...] = ()
        self.replicated = 0
        self.last: tuple[Record, ...] = ()
        self.deletions: frozenset[int] = frozenset()  #: requests to delete that are not answered
        self.as_one = True  #: ``last`` was appended at once, so that one failure can be of all of it
        self.owned = False
        self.requests = 0
        self.answers: tuple[str, ...] = ()

    def after(self, event: Event) -> Both:
        """Both take the event; raises ``Broken`` where they part or a property does not hold."""
        other = copy(self)
        other.choices = _Numbered(self.choices.made)
        other.core = copy(self.core)
        vars(other.core).update(
            _choices=other.choices,
            _versions=dict(self.core._versions),
            armed=dict(self.core.armed),
            groups=dict(self.core.groups),
        )
        other.model = copy(self.model)
        other.model._versions = dict(self.model._versions)
        other._take(event)
        return other

    def _take(self, event: Event) -> None:
        before = self.core.groups.get(GROUP)
        self.now = event.at_ms
        seen = self.core.feed(event)
        verdict = self.model.feed(event, seen)
        if not verdict.ok:
            raise Broken("E2", str(verdict))
        self._keep_log(event, seen)
        # Deletions that go on together are appended one by one (C-ADM-09); AppendFailed cannot say which one failed.
        self.as_one = not (isinstance(event, Appended) and len(self.deletions) > 1)
        if isinstance(event, Request):
            self.requests = event.id
            if isinstance(event.body, DeleteGroupsRequest):
                self.deletions |= {event.id}
        self.deletions -= {reply.request_id for reply in seen.replies}
        self.answers = tuple(getattr(reply.body, "error_code", ErrorCode.NONE).name for reply in seen.replies)
        group = self.core.groups.get(GROUP)
        if group is not None and self.bounds.profile is INTENDED:  # a release has its faults
            check_group(group)
            if before is not None and not isinstance(event, Load | Unload):
                check_change(before, group)

    def _keep_log(self, event: Event, seen: Observation) -> None:
        if isinstance(event, Load):
            self.log, self.replicated, self.owned = event.records, len(event.records), True
        elif isinstance(event, Unload):
            self.owned = False
        elif isinstance(event, Appended):
            self.replicated = event.offset
        elif isinstance(event, AppendFailed):
            self.log = self.log[: len(self.log) - len(self.last)]
        self.last = seen.records
        self.log += seen.records

    def events(self) -> Iterator[tuple[str, Event]]:
        """Everything that may happen now, with a name."""
        if self.last and self.as_one:  # directly after the step that wrote, or never
            yield "append fails", AppendFailed(self.now, ErrorCode.NOT_ENOUGH_REPLICAS)
        if not self.owned:
            yield "loads", Load(self.now, 1 + len(self.log), self.log[: self.replicated])
            return
        if self.replicated < len(self.log):
            yield "replicated", Appended(self.now, len(self.log))
            if self.bounds.prompt:
                return
        group = self.core.groups.get(GROUP)
        for name, body in self._bodies(group):
            yield name, Request(self.now, self.requests + 1, VERSIONS[type(body)], "c", "/h", body)
        for key, at in sorted(self.core.armed.items(), key=lambda row: str(row[0])):
            yield f"timer {key.kind.value} {key.member_id}".strip(), TimerFired(max(self.now, at), key)
        yield "moves", Unload(self.now, None)

    def _bodies(self, group: GroupView | None) -> Iterator[tuple[str, RequestBody]]:
        fresh = self.choices.made < self.bounds.ids
        generation = 0 if group is None else group.generation_id
        if fresh:
            yield "joins", self._join("", None, RANGE)
            if self.bounds.static:
                yield "static joins", self._join("", INSTANCE, RANGE)
                yield "static joins with another list", self._join("", INSTANCE, BOTH)
        if group is None:
            return
        for member_id in sorted(group.pending_join):
            yield f"{member_id} uses its id", self._join(member_id, None, RANGE)
            yield f"{member_id} leaves", LeaveGroupRequest(GROUP, (LeaveGroupMember(member_id),))
        ids = [member.member_id for member in group.members]
        for member in group.members:
            name, instance = member.member_id, member.group_instance_id
            if generation < self.bounds.generation:
                yield f"{name} rejoins", self._join(name, instance, RANGE)
                yield f"{name} rejoins with another list", self._join(name, instance, BOTH)
            shares = tuple(SyncGroupAssignment(each, each.encode()) for each in ids) if name == group.leader else ()
            yield f"{name} syncs", self._sync(generation, name, instance, shares)
            if generation > 0:
                yield f"{name} syncs late", self._sync(generation - 1, name, instance, shares)
            yield f"{name} heartbeats", HeartbeatRequest(GROUP, generation, name, instance)
            yield f"{name} leaves", LeaveGroupRequest(GROUP, (LeaveGroupMember(name),))
        if group.state is GroupState.EMPTY:
            yield "is deleted", DeleteGroupsRequest((GROUP,))

    def _join(self, member_id: str, instance: str | None, protocols: tuple[Protocol, ...]) -> JoinGroupRequest:
        return JoinGroupRequest(GROUP, 100, 1_000, member_id, instance, "consumer", protocols)

    def _sync(
        self, generation: int, member_id: str, instance: str | None, shares: tuple[SyncGroupAssignment, ...]
    ) -> SyncGroupRequest:
        return SyncGroupRequest(GROUP, generation, member_id, instance, "consumer", "range", shares)

    def key(self) -> object:
        """Equal for states that behave alike."""
        written = {record.key: None if record.value is None else _untimed(record) for record in self.log}
        replicated = {
            record.key: None if record.value is None else _untimed(record) for record in self.log[: self.replicated]
        }
        operations = [_operation(each) for each in self.core._state.operations.values()]
        return (
            self.core.groups.get(GROUP),
            frozenset(_bare(key) for key in self.core.armed),
            tuple(operations),
            tuple(written.items()),
            tuple(replicated.items()),
            len(self.log) - self.replicated,
            bool(self.last) and self.as_one,
            self.owned,
            self.choices.made,
        )


def _operation(operation: object) -> tuple[object, ...]:
    """An open operation without numbers: what asked for it, what hangs on it."""
    request = getattr(operation, "request", None)
    callback = getattr(operation, "callback", None)
    body = None if request is None else request.body
    return (body, type(callback).__name__, getattr(operation, "answered", None))


def _bare(key: TimerKey) -> TimerKey:
    return replace(key, operation=0)


def _untimed(record: Record) -> object:
    value = record.group_metadata
    return None if value is None else replace(value, current_state_timestamp=0)


def explore(bounds: Bounds) -> Explored:
    """Breadth first over the product, from a coordinator that has just loaded an empty log."""
    start = Both(bounds).after(Load(0, 1, ()))
    queue: deque[tuple[Both, int, tuple[str, ...]]] = deque([(start, 0, ())])
    seen = {start.key()}
    inputs: Counter[str] = Counter()
    answers: Counter[str] = Counter()
    transitions, complete = 0, True
    while queue:
        both, depth, trail = queue.popleft()
        for name, event in both.events():
            if transitions == bounds.transitions:
                return Explored(len(seen), transitions, False, inputs, answers)
            transitions += 1
            inputs[" ".join(word for word in name.split() if not word.startswith("m") or word == "moves")] += 1
            try:
                after = both.after(event)
            except Broken as found:
                return Explored(len(seen), transitions, False, inputs, answers, str(found), (*trail, name))
            answers.update(after.answers)
            key = after.key()
            if key in seen:
                continue
            if depth + 1 == bounds.depth:
                complete = False
                continue
            seen.add(key)
            queue.append((after, depth + 1, (*trail, name)))
    return Explored(len(seen), transitions, complete, inputs, answers)
