"""The same for Apache Kafka's own coordinator: its log, loaded again, compared with its live state and with the core.

A trace is cut where everything is replicated, and continues in several ways: the coordinator is asked about its state,
or it loses the partition, loads one reading of the log, and is asked then. At every step Kafka and the core under its
profile must do the same. If Kafka's state after the load differs from before, one of its bugs must explain it
(``core.fault``).

Traces with a limit on the members of classic groups are left out, since a group over it rebalances once it is loaded
(F-LOAD-06). The same holds for loads of traces in which the core needed one of Kafka's choices: their log differs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple, Self

from fencepost.protocol.consumer_view import ConsumerGroupView
from fencepost.protocol.events import Appended, Event, Load, Request, Unload
from fencepost.protocol.messages import VERSIONS
from fencepost.protocol.records import Record
from fencepost.protocol.settings import Settings
from fencepost.protocol.view import GroupView

from ...generate.cleaner import Reading, readings
from ...generate.generator import Generated
from ...targets.core import CoreSession
from ...targets.hard_state import AT_REST, Groups, lost
from ...targets.ids import MemberIds
from ...targets.java_order import JavaOrder
from ...targets.kafka_jvm import KafkaJvm
from ...traces.observation import Observation
from ..compare.lockstep import compare
from .core import Checked, Moment, fault, groups_of, moments, questions

_EPOCH = 1_000_000  #: leader epoch of the load, above those of any trace
_QUESTIONS = 1_000_000  #: ids of requests, likewise


class Branch(NamedTuple):
    """A trace up to a moment, and how it continues. ``reading`` is None where nothing is loaded."""

    name: str
    trace: Generated
    moment: Moment
    reading: Reading | None = None
    records: tuple[Record, ...] = ()
    events: tuple[Event, ...] = ()
    ours: Sequence[Observation] = ()


@dataclass(slots=True)
class OnKafka(Checked):
    """``steps``: number of steps at which Kafka and core did the same. ``followed``: number of branches in which the
    core got one of Kafka's choices."""

    steps: int = 0
    followed: int = 0

    def __iadd__(self, other: Checked) -> Self:
        Checked.__iadd__(self, other)  # slots create a new class, and ``super()`` would mean the old one
        if isinstance(other, OnKafka):
            self.steps += other.steps
            self.followed += other.followed
        return self


def check_on_kafka(kafka: KafkaJvm, traces: Mapping[str, Generated]) -> OnKafka:
    """Check these traces of the core, by name; their profile is that of Kafka's release."""
    result = OnKafka()
    branches = [branch for name, trace in traces.items() for branch in _branches(name, trace)]
    seen = kafka.run_many([(branch.trace.settings, branch.events) for branch in branches])
    for branch, theirs in zip(branches, seen, strict=True):
        where = f"{branch.name}, event {branch.moment.event}, {branch.reading or 'asked'}"
        found = compare(branch.trace.settings, branch.trace.profile, branch.events, branch.ours, theirs)
        result.steps += found.steps
        result.followed += bool(found.followed)
        if found.difference is not None:
            result.complaints.append(f"{where}: core / Kafka: {found.difference}")
        elif branch.reading is not None and not found.followed:
            _judge(branch, branch.reading, theirs, result, where)
    return result


def _branches(name: str, trace: Generated) -> list[Branch]:
    if trace.settings.group_max_size < Settings().group_max_size:
        return []
    quiet = [each for each in moments(trace, trace.profile) if each.state.committed == each.state.end]
    if not quiet:
        return []
    moment = quiet[-1]
    before = trace.events[: moment.event + 1]
    found = [_branch(Branch(name, trace, moment), before)]
    for reading, records in readings(moment.log, Random(f"compaction {name}")).items():
        loads = (
            *before,
            Unload(moment.at_ms, leader_epoch=None),
            Load(moment.at_ms, leader_epoch=_EPOCH, records=records),
        )
        found.append(_branch(Branch(name, trace, moment, reading, records), loads))
    return found


def _branch(branch: Branch, events: Sequence[Event]) -> Branch:
    """Continue with the events and ask all possible questions about the groups that were live, one after the other;
    records of an answer are replicated."""
    trace, moment = branch.trace, branch.moment
    session = CoreSession(trace.settings, trace.profile, JavaOrder(MemberIds()))
    ours = [session.feed(event) for event in events]
    asked = list(events)
    end = len(moment.log.records if branch.reading is None else branch.records)
    live = groups_of(moment.state)
    resting = {name for name, view in live.classic.items() if view.state in AT_REST}
    for number, body in enumerate(questions(live, resting), _QUESTIONS):
        version = VERSIONS[type(body)][1]
        asked.append(
            Request(moment.at_ms, id=number, version=version, client_id="asks", client_host="/127.0.0.1", body=body)
        )
        ours.append(session.feed(asked[-1]))
        if ours[-1].records:
            end += len(ours[-1].records)
            asked.append(Appended(moment.at_ms, offset=end))
            ours.append(session.feed(asked[-1]))
    return branch._replace(events=tuple(asked), ours=ours)


def _judge(branch: Branch, reading: Reading, seen: Sequence[Observation], result: OnKafka, where: str) -> None:
    """Check whether the load leaves Kafka's state unchanged."""
    moment = branch.moment
    at_load = moment.event + 2
    live, loaded = _standing(seen[: moment.event + 1]), _standing(seen[: at_load + 1])
    result.loads[reading] += 1
    result.groups += len(live.classic) + len(live.consumer)
    if seen[at_load].error is not None:
        differ = [f"the load fails: {seen[at_load].error}"]
    else:
        found = lost(live, loaded, moment.log.records, moment.unwritten)
        differ = [f"{group}: {what}" for group, what in found]
    if not differ:
        return
    name = fault(branch.trace, moment, branch.records)
    if name is not None:
        result.named[name] += 1
    else:
        result.complaints += [f"{where}: {each}" for each in differ]


def _standing(observations: Sequence[Observation]) -> Groups:
    """Return the groups that Kafka shows at the end."""
    classic: dict[str, GroupView] = {}
    consumer: dict[str, ConsumerGroupView] = {}
    for seen in observations:
        for name, view in seen.groups.items():
            classic.pop(name, None)
            if view is not None:
                classic[name] = view
        for name, shown in seen.consumer_groups.items():
            consumer.pop(name, None)
            if shown is not None:
                consumer[name] = shown
    return Groups(classic, consumer)
