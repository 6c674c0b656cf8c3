"""Random traces of the core, each loaded again in every way at some of its moments.

Under ``intended`` every reading restores the live state, and the coordinator that loaded it answers as the live one
does. Under a ``kafka-*`` profile Kafka's bugs show.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from random import Random
from typing import NamedTuple

from fencepost import coordinator
from fencepost.coordinator import CoordinatorState, consumer_views, initial_state, step, views
from fencepost.coordinator.consumer.group import ConsumerGroup
from fencepost.coordinator.kernel.state import Status
from fencepost.functions import KafkaFunctions
from fencepost.protocol.choices import Choices
from fencepost.protocol.consumer_messages import ConsumerGroupDescribeRequest, ConsumerGroupHeartbeatRequest
from fencepost.protocol.events import (
    Appended,
    AppendFailed,
    Event,
    GroupConfigChanged,
    Load,
    LoadStarted,
    Request,
    SetTimer,
    TimerFired,
    TimerKey,
    TopicsChanged,
)
from fencepost.protocol.messages import (
    VERSIONS,
    DescribeGroupsRequest,
    HeartbeatRequest,
    ListGroupsRequest,
    ListGroupsResponse,
    RequestBody,
    ResponseBody,
)
from fencepost.protocol.profile import SWITCH_NAMES, Profile
from fencepost.protocol.records import Record
from fencepost.protocol.settings import Settings

from ...generate.cleaner import Log, Reading, readings
from ...generate.generator import Generated, generate
from ...generate.plan import GroupProtocol
from ...targets.hard_state import AT_REST, Groups, lost
from ...targets.ids import MemberIds
from ...targets.java_order import JavaOrder, WithoutHyphens

STEPS = 60
#: number of moments of a trace that are tested
MOMENTS = 3
_FUNCTIONS = KafkaFunctions()
_NUMBER = 1_000_000  #: id of the first question, above those of any trace


class Moment(NamedTuple):
    """A leading coordinator, its surroundings, and the log behind it. ``event``: the position of the last event.
    ``unwritten``: groups whose last record could not be appended."""

    event: int
    at_ms: int
    state: CoordinatorState
    outside: tuple[Event, ...]
    log: Log
    unwritten: frozenset[str]


@dataclass(slots=True)
class Checked:
    """The results of some traces. ``named``: readings that did not restore the live state, by the Kafka bug that
    explains it; ``complaints``: those without an explanation."""

    loads: Counter[Reading] = field(default_factory=Counter)
    groups: int = 0
    named: Counter[str] = field(default_factory=Counter)
    complaints: list[str] = field(default_factory=list)

    def __iadd__(self, other: Checked) -> Checked:
        self.loads += other.loads
        self.groups += other.groups
        self.named += other.named
        self.complaints += other.complaints
        return self


def check(seed: int, profile: Profile, protocol: GroupProtocol, steps: int = STEPS) -> Checked:
    """Check the trace of a seed."""
    return check_trace(f"{protocol} {seed}", generate(seed, profile, steps, protocol))


def check_trace(name: str, trace: Generated) -> Checked:
    """Check one trace. Its name seeds the random draws, and complaints begin with it."""
    rng = Random(f"compaction {name}")
    result = Checked()
    if trace.failure is not None:
        result.complaints.append(f"{name}: {trace.failure}")
    found = list(moments(trace, trace.profile))
    for place in sorted(rng.sample(range(len(found)), min(MOMENTS, len(found)))):
        moment = found[place]
        for reading, records in readings(moment.log, rng).items():
            result.loads[reading] += 1
            result.groups += len(moment.state.groups)
            differ = differences(moment, records)
            reason = fault(trace, moment, records) if differ else None
            if reason is not None:
                result.named[reason] += 1
            else:
                result.complaints += [f"{name}, event {moment.event}, {reading}: {each}" for each in differ]
    return result


def fault(trace: Generated, moment: Moment, records: tuple[Record, ...]) -> str | None:
    """Return the switch of the trace's profile that explains a difference, or None. There are two cases: without the
    switch the same events lead to groups that these records restore. Or some reading of the log does not restore the
    live groups, because the log is wrong or the events took another path; but without the switch every reading of the
    log that is then written does."""
    switches = [name for name in SWITCH_NAMES if name.startswith("fault_") and getattr(trace.profile, name)]
    fixed: dict[str, Profile] = {name: replace(trace.profile, **{name: False}) for name in switches}  # type: ignore[arg-type]
    for name in switches:
        same = _at(moment.event, trace, fixed[name])
        if same is not None and not differences(same, records):
            return name
    if _every_reading(moment):
        return None
    for name in switches:
        other = _at(moment.event, trace, fixed[name], own=True)
        if other is not None and _every_reading(other):
            return name
    return None


def _every_reading(moment: Moment) -> bool:
    """Whether each reading restores the live state."""
    return not any(differences(moment, records) for records in readings(moment.log, Random(0)).values())


def _at(event: int, trace: Generated, profile: Profile, *, own: bool = False) -> Moment | None:
    """Return the moment after this event; None if the events are impossible under the profile."""
    try:
        return next((each for each in moments(trace, profile, own=own) if each.event == event), None)
    except ValueError:
        return None


def moments(trace: Generated, profile: Profile, *, own: bool = False) -> Iterator[Moment]:
    """Yield the moment after each event of a trace, if the coordinator leads then. The log is the trace's, or with
    ``own`` the coordinator's: then a partial replication in the trace covers all of it, and impossible events are left
    out. Raises what the core raises."""
    state = initial_state(trace.settings, profile, functions=_FUNCTIONS)
    choices: Choices = JavaOrder(MemberIds())
    if profile.draws_no_hyphens:
        choices = WithoutHyphens(choices)
    log = Log()
    armed: set[TimerKey] = set()
    outside: tuple[Event, ...] = ()
    unwritten: frozenset[str] = frozenset()
    for place, (event, seen) in enumerate(zip(trace.events, trace.observations, strict=False)):
        if isinstance(event, TopicsChanged | GroupConfigChanged):
            outside = (*outside, event)
        led = state.status is Status.ACTIVE
        if isinstance(event, AppendFailed):
            unwritten |= {record.key.group for record in log.last_batch}
        elif isinstance(event, Load) and not led:
            unwritten = frozenset()
        taken = replace(event, offset=state.end) if own and isinstance(event, Appended) else event
        written: tuple[Record, ...] = ()
        try:
            if isinstance(event, TimerFired):
                _fired(armed, event.key)
            state, outcome = step(state, taken, choices)
        except ValueError:
            if not own:
                raise
        else:
            for command in outcome.timers:
                (armed.add if isinstance(command, SetTimer) else armed.discard)(command.key)
            written = outcome.records if own else seen.records
            if not (isinstance(event, Load) and led):  # otherwise it has no effect (F-LOAD-03)
                log = log.after(event, written)
        unwritten -= {record.key.group for record in written}
        if state.status is Status.ACTIVE:
            yield Moment(place, event.at_ms, state, outside, log, unwritten)


def _fired(armed: set[TimerKey], key: TimerKey) -> None:
    if key not in armed:
        raise ValueError(f"{key} is not armed")
    armed.discard(key)


def differences(moment: Moment, records: tuple[Record, ...]) -> list[str]:
    """Return how a coordinator that has loaded these records differs from the live one, in state or answers."""
    fresh = load(moment, records)
    if fresh is None:
        return ["the load fails"]
    live, loaded = groups_of(moment.state), groups_of(fresh)
    differ = lost(live, loaded, moment.log.records, moment.unwritten)
    return [f"{group}: {field}" for group, field in differ] or _other_answers(moment, fresh, live)


def groups_of(state: CoordinatorState) -> Groups:
    return Groups(views(state), consumer_views(state))


def load(moment: Moment, records: tuple[Record, ...]) -> CoordinatorState | None:
    """Return a fresh coordinator that has loaded the records; None if it could not. It has room for any group, since
    one over capacity would rebalance at once (F-LOAD-06)."""
    settings = replace(moment.state.settings, group_max_size=Settings().group_max_size)
    choices = JavaOrder(MemberIds())
    fresh = initial_state(settings, moment.state.profile, functions=_FUNCTIONS)
    for event in (
        *moment.outside,
        LoadStarted(moment.at_ms, leader_epoch=1),
        Load(moment.at_ms, leader_epoch=1, records=records),
    ):
        fresh, _ = step(fresh, event, choices)
    return fresh if fresh.status is Status.ACTIVE else None


def _other_answers(moment: Moment, fresh: CoordinatorState, live: Groups) -> list[str]:
    """Ask both the same questions, each question in the same state."""
    resting = {each for each, view in live.classic.items() if view.state in AT_REST} - moment.unwritten
    listed = resting | live.consumer.keys()
    before = _without_deadlines(moment.state)
    found = []
    for body in questions(live, resting):
        one, other = (_answer(state, moment.at_ms, body, listed) for state in (before, fresh))
        if one != other:
            found.append(f"{body}: live {one}, loaded {other}")
    return found


def questions(groups: Groups, resting: set[str]) -> list[RequestBody]:
    """Return the questions about the groups: of an administrator, and of each member in its state."""
    bodies: list[RequestBody] = [
        ListGroupsRequest(),
        DescribeGroupsRequest(tuple(sorted(resting))),
        ConsumerGroupDescribeRequest(tuple(sorted(groups.consumer))),
    ]
    for name in sorted(resting):
        view = groups.classic[name]
        for member in view.members:
            bodies.append(
                HeartbeatRequest(
                    name,
                    generation_id=view.generation_id,
                    member_id=member.member_id,
                    group_instance_id=member.group_instance_id,
                )
            )
    for name, group in sorted(groups.consumer.items()):
        for each in group.members:
            if each.classic is None:
                bodies.append(
                    ConsumerGroupHeartbeatRequest(
                        name, member_id=each.member_id, member_epoch=each.member_epoch, instance_id=each.instance_id
                    )
                )
            else:
                bodies.append(
                    HeartbeatRequest(
                        name,
                        generation_id=each.member_epoch,
                        member_id=each.member_id,
                        group_instance_id=each.instance_id,
                    )
                )
    return bodies


def _answer(
    state: CoordinatorState, at_ms: int, body: RequestBody, listed: set[str]
) -> tuple[tuple[Record, ...], list[ResponseBody]]:
    """Return the records and the answers after everything is replicated. A list omits the other groups."""
    request = Request(
        at_ms, id=_NUMBER, version=VERSIONS[type(body)][1], client_id="asks", client_host="/127.0.0.1", body=body
    )
    choices = JavaOrder(MemberIds())
    if state.committed < state.end:
        state, _ = step(state, Appended(at_ms, offset=state.end), choices)
    state, outcome = coordinator.step(state, request, choices)
    replies = outcome.replies
    if outcome.records:
        state, later = step(state, Appended(at_ms, offset=state.end), choices)
        replies += later.replies
    bodies: list[ResponseBody] = []
    for reply in replies:
        if isinstance(reply.body, ListGroupsResponse):
            rows = [row for row in reply.body.groups if row.group_id in listed]
            bodies.append(replace(reply.body, groups=tuple(sorted(rows, key=lambda row: row.group_id))))
        elif reply.request_id == _NUMBER:
            bodies.append(reply.body)
    return outcome.records, bodies


def _without_deadlines(state: CoordinatorState) -> CoordinatorState:
    """Remove the only soft state that can change an answer: a loaded group refreshes its topics at once (M-META-04)."""
    groups = {
        name: group._replace(refresh=None) if isinstance(group, ConsumerGroup) else group
        for name, group in state.groups.items()
    }
    return state._replace(groups=groups)
