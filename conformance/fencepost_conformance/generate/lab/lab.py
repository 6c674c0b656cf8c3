"""One session: plays actions on a group in virtual time, and keeps a journal of everything that happens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from fencepost.functions import KafkaFunctions
from fencepost.member.consumer import ConsumerMember
from fencepost.member.partitions import TopicPartition
from fencepost.protocol.choices import Choices
from fencepost.protocol.consumer_view import ConsumerGroupView
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import (
    AppendFailed,
    Event,
    GroupConfig,
    GroupConfigChanged,
    Load,
    Request,
    TimerFired,
    TimerKey,
)
from fencepost.protocol.profile import Profile
from fencepost.protocol.records import Record
from fencepost.protocol.settings import Settings
from fencepost.protocol.view import GroupView
from fencepost_model.trace import Follower

from ...targets.core import CoreSession
from ...targets.ids import MemberIds
from ...targets.java_order import JavaOrder
from ...traces.observation import Observation
from ..simulate.broken import Broken
from ..simulate.broker import Broker
from ..simulate.clockwork import Clockwork
from ..simulate.host import AnyHost
from ..simulate.owners import check_owners
from ..simulate.plan import HostPlan, Plan
from ..simulate.programs import QUIET
from .actions import Action
from .clients import AnyClient, ClassicClient, ConsumerClient
from .journal import COORDINATOR, Journal, Kind, Row, Step
from .ownership import Ownership
from .quiet import is_quiet
from .start import GROUP, TOPIC, ActionError, Protocol, Start
from .wires import Wires

#: the most clients of a session
MOST_CLIENTS: Final = 8
#: the longest session, in ms of virtual time
MOST_MS: Final = 1_800_000
#: how long the log takes to replicate a record, in ms
_APPEND_MS: Final = 5
#: a step that finds nothing to do within this time ends
_HORIZON_MS: Final = 120_000
#: until a running client learns of new partitions, in ms
_METADATA_MS: Final = 300


class Coordinator(CoreSession):
    """The core with its log. The choices are those of Kafka, so that a saved session replays there."""

    def __init__(self, settings: Settings, profile: Profile) -> None:
        choices: Choices = JavaOrder(MemberIds())
        super().__init__(settings, profile, choices)
        self.log: list[Record] = []
        self.unanswered: list[Request] = []
        self._last = 0

    def feed(self, event: Event) -> Observation:
        seen = super().feed(event)
        if isinstance(event, Load):
            self.log = list(event.records)
        elif isinstance(event, AppendFailed) and self._last:
            del self.log[-self._last :]
        self.log += seen.records
        self._last = len(seen.records)
        return seen


class LabBroker(Broker):
    """A broker whose log takes a few ms, and rejects an append when the user says so."""

    append_fails = False

    def _append(self) -> None:
        if self.append_fails:
            self.append_fails = False
            self._world.feed(AppendFailed(self._world.now, ErrorCode.NOT_ENOUGH_REPLICAS))
            return
        leader_epoch, end = self.leader_epoch, len(self.core.log)
        self._ends.append(end)
        self._world.later(_APPEND_MS, lambda: self._replicate(leader_epoch, end))


class Lab(Clockwork[TimerKey]):
    """A session. ``actions``: those that it has played. ``acts``: when the user acted (time, and how much had happened
    by then at that very time), without steps of time.

    ``high``: the end of what was processed of each partition; ``repeated``: records that were processed again."""

    def __init__(self, start: Start) -> None:
        super().__init__(f"lab {start.seed}")
        self.start = start
        self.delay_ms, self.commit_ms = start.delay_ms, start.commit_ms
        self.actions: list[Action] = []
        self.acts: list[tuple[tuple[int, int], Action]] = []
        self._turned = (0, 0)
        self.journal = Journal()
        self.ownership = Ownership()
        self.high: dict[TopicPartition, int] = {}
        self.repeated = 0
        settings, profile = start.settings(), start.release
        self.plan = Plan(start.seed, settings, profile, QUIET, ((TOPIC, start.partitions),), (), (), 0)
        self.core = Coordinator(settings, profile)
        self.network = Wires(self)
        self.broker = LabBroker(self, self.core, {TOPIC: start.partitions})
        self.hosts: list[AnyHost] = []
        self._timeouts = start
        self._lives: Counter[str] = Counter()
        self._follower: Follower | None = Follower(settings, profile, KafkaFunctions().matcher)
        self.broker.load(0)
        self.publish_topics()

    # --- actions ---

    def play(self, actions: Sequence[Action]) -> Lab:
        """Play the actions in order. Raises ``ActionError``, with the number of the action, if one cannot be played."""
        for action in actions:
            try:
                self.apply(action)
            except ActionError as reason:
                raise ActionError(f"actions[{len(self.actions)}]: {reason}") from None
        return self

    def extend(self, actions: Sequence[Action]) -> bool:
        """Play what is new in a list that continues this session, and return True; False if it does not continue it.

        A last action that lets time pass may have become longer. Raises ``ActionError`` as ``play`` does; the session
        is then of no use."""
        played = len(self.actions)
        if played > len(actions):
            return False
        last = self.actions[-1] if self.actions else None
        if last is not None and last.do == "run" and actions[played - 1].do == "run":
            more = actions[played - 1].ms - last.ms
            if more < 0 or self.actions[:-1] != list(actions[: played - 1]):
                return False
            self._run(more)
            self.actions[-1] = actions[played - 1]
        elif self.actions != list(actions[:played]):
            return False
        self.play(actions[played:])
        return True

    def apply(self, action: Action) -> None:
        """Play one action. Raises ``ActionError`` if it is not possible now; the session is then unchanged."""
        if action.moves_time:
            self._let_time_pass(action)
        else:
            number = len(self.journal.rows)
            text = self._act(action)
            self.journal.rows.insert(number, Row(self.now, Kind.ACT, action.client or COORDINATOR, text))
            self.acts.append((self.moment, action))
        self.actions.append(action)
        self._look()

    @property
    def moment(self) -> tuple[int, int]:
        """The time, and how many things have happened at that very time."""
        at_ms, turns = self._turned
        return self.now, turns if at_ms == self.now else 0

    def run_to(self, moment: tuple[int, int]) -> None:
        """Run to a moment of another session."""
        at_ms, turns = moment
        self.run_until(at_ms)
        while self.moment[1] < turns and self._next(at_ms + 1):
            pass

    def run_until(self, end: int) -> None:
        """Run everything that is due before ``end``."""
        while self._next(end):
            pass
        self.now = max(self.now, end)

    def _run(self, ms: int) -> None:
        if self.now + ms > MOST_MS:
            raise ActionError(
                f"a session lasts at most {MOST_MS // 60_000} minutes of virtual time; go back, or restart"
            )
        self.run_until(self.now + ms)
        self._look()

    def _let_time_pass(self, action: Action) -> None:
        if action.do == "run":
            self._run(action.ms)
            return
        rows, messages, end = self.journal.rows, self.journal.messages, self.now + _HORIZON_MS
        seen, sent = len(rows), len(messages)

        def is_over() -> bool:
            """Whether something has happened: for a step also a message that was sent, for a change no routine."""
            if action.do == "step":
                return len(rows) > seen or len(messages) > sent
            return not all(row.quiet for row in rows[seen:])

        while not is_over():
            if not self._next(end):
                what = "nothing" if action.do == "step" else "nothing but routine"
                raise ActionError(f"{what} happens within {_HORIZON_MS // 1_000} s; act, or start a client")

    def _next(self, end: int) -> bool:
        found = self._turn(end)
        if found:
            self._turned = (self.now, self.moment[1] + 1)
            self._look()
        return found

    def _act(self, action: Action) -> str:
        match action.do:
            case "start":
                return self._start(action)
            case "grow":
                return self._grow(action.by)
            case "lose":
                return f"the user loses message {self.network.lose(action.message).number}"
            case "delay":
                message = self.network.put_off(action.message, action.ms)
                return f"the user delays message {message.number} by {action.ms} ms"
            case "repeat":
                return f"the user repeats message {self.network.repeat(action.message).number} later"
            case "fail-append":
                self.broker.append_fails = True
                return "the next append will fail"
            case "move":
                return self._move(action.ms)
            case "timeouts":
                return self._change_timeouts(action.changes)
            case _:
                return self._act_on(self.client(action.client), action)

    def _act_on(self, client: AnyClient, action: Action) -> str:
        name = client.plan.name
        if not client.running:
            raise ActionError(f"client {name!r} does not run; start it first")
        match action.do:
            case "stop":
                client.stop()
                return f"the user stops {name}"
            case "crash":
                client.crash()
                return f"the user crashes {name}"
            case "freeze":
                client.stall(action.ms)
                return f"{name} does not poll for {action.ms} ms"
            case _:
                client.processing_ms = action.ms
                return f"{name} needs {action.ms} ms for the records of a poll"

    def client(self, name: str) -> AnyClient:
        """Return the client with that name. Raises ``ActionError`` if there is none."""
        for host in self.clients:
            if host.plan.name == name:
                return host
        known = ", ".join(host.plan.name for host in self.hosts) or "none"
        raise ActionError(f"there is no client {name!r} (clients: {known})")

    @property
    def clients(self) -> list[AnyClient]:
        return [host for host in self.hosts if isinstance(host, ClassicClient | ConsumerClient)]

    def _start(self, action: Action) -> str:
        protocol = action.protocol
        assert protocol is not None
        plan = self._timeouts.client(action.client, protocol, static=action.static)
        text = f"the user starts {action.client} ({protocol}{', static' if action.static else ''})"
        for place, host in enumerate(self.hosts):
            if host.plan.name == action.client:
                if host.running:
                    raise ActionError(f"client {action.client!r} already runs; stop or crash it first")
                successor = self.host(plan)
                successor.process = host.process
                self.hosts[place] = successor
                successor.start()
                return text
        if len(self.hosts) == MOST_CLIENTS:
            raise ActionError(f"a session has at most {MOST_CLIENTS} clients")
        self.hosts.append(self.host(plan))
        self.hosts[-1].start()
        return text

    def _grow(self, by: int) -> str:
        topic = self.broker.topics[TOPIC]
        if topic.partitions + by > 24:
            raise ActionError(f"the topic may have at most 24 partitions (it has {topic.partitions})")
        self.broker.topics[TOPIC] = replace(topic, partitions=topic.partitions + by)
        self.publish_topics()
        for number, host in enumerate(self.hosts):
            if host.running:
                self.later(_METADATA_MS * (number + 1), lambda to=host: self.network.fetch_metadata(to))  # type: ignore[misc]
        return f"{TOPIC} now has {topic.partitions + by} partitions"

    def _move(self, gap_ms: int) -> str:
        if not self.broker.active:
            raise ActionError("the coordinator is already moving")
        self.broker.fail_over(gap_ms)
        return f"the coordinator is lost; another broker loads the log after {gap_ms} ms"

    def _change_timeouts(self, changes: Mapping[str, int]) -> str:
        values = {name: changes.get(name, getattr(self._timeouts, name)) for name in changes}
        changed = replace(self._timeouts, **values)
        if changed.heartbeat_ms >= changed.session_ms:
            raise ActionError(
                f"heartbeat_ms must be less than session_ms (got {changed.heartbeat_ms} and {changed.session_ms})"
            )
        self._timeouts = changed
        config = GroupConfig(
            consumer_session_timeout_ms=changed.session_ms, consumer_heartbeat_interval_ms=changed.heartbeat_ms
        )
        self.feed(GroupConfigChanged(self.now, GROUP, config))
        new_values = ", ".join(f"{name} {value}" for name, value in changes.items())
        return f"{new_values}: for the consumer group now, for clients when they start"

    # --- what the parts of the simulation ask for ---

    @property
    def timers(self) -> Mapping[TimerKey, int]:
        return self.core.armed

    def fire(self, timer: TimerKey) -> None:
        self.feed(TimerFired(self.now, timer))

    def host(self, plan: HostPlan) -> AnyHost:
        return ConsumerClient(plan, self) if plan.is_consumer else ClassicClient(plan, self)

    def publish_topics(self) -> None:
        self.broker.publish_topics()

    def life(self, host: AnyHost) -> tuple[int, int]:
        return self.broker.leader_epoch, self._lives[host.plan.settings.group_id]

    def adopted(self, host: AnyHost) -> None:
        """Nothing: the owners are compared after each step of the coordinator."""

    def rival(self, host: AnyHost) -> bool:
        """Whether another process runs with the host's instance id; names are unique here."""
        return False

    def jitter(self) -> float:
        return 1.0

    def alert(self, broken: Broken) -> None:
        """Show a property that does not hold; under a Kafka release this may be one of its bugs."""
        self.journal.rows.append(Row(self.now, Kind.ALERT, COORDINATOR, broken.text, rules=(broken.rule,)))

    def feed(self, event: Event) -> None:
        before: dict[str, GroupView | ConsumerGroupView] = {**self.core.groups, **self.core.consumer_groups}
        seen = self.core.feed(event)
        verdict = None if self._follower is None else self._follower.feed(event, seen)
        rules = () if verdict is None else verdict.rules
        number = len(self.journal.steps)
        self.journal.steps.append(Step(event, seen, rules))
        quiet = is_quiet(event, seen)
        if isinstance(event, Request):  # the row of its message is the last one
            row = self.journal.rows.pop()
            self.journal.rows.append(replace(row, step=number, rules=rules, quiet=quiet))
        else:
            self.journal.rows.append(Row(self.now, Kind.COORDINATOR, COORDINATOR, "", None, number, rules, quiet))
        if verdict is not None and not verdict.ok:
            self._follower = None
            text = f"the model disagrees with this step, and follows no further: {verdict}"
            self.journal.rows.append(Row(self.now, Kind.ALERT, COORDINATOR, text, rules=rules))
        for name, group in (*seen.groups.items(), *seen.consumer_groups.items()):
            old = before.get(name)
            if group is not None and group.members and (old is None or not old.members):
                self._lives[name] += 1
        self.network.answer(seen.replies)
        self.broker.carry_out(seen)
        self._check_owners()

    def _check_owners(self) -> None:
        group = self.core.consumer_groups.get(GROUP)
        ids = {name: topic.topic_id for name, topic in self.broker.topics.items()}
        try:
            check_owners(group, [host for host in self.hosts if host.running], ids)
        except Broken as broken:
            self.alert(broken)

    # --- what a view shows ---

    def owners(self) -> dict[int, tuple[str, ...]]:
        """Return the clients that believe to own each partition."""
        found: dict[int, list[str]] = {number: [] for number in range(self.broker.topics[TOPIC].partitions)}
        for host in self.hosts:
            if host.running:
                for each in host.member.assignment:
                    found[each.partition].append(host.plan.name)
        return {number: tuple(names) for number, names in found.items()}

    def _look(self) -> None:
        self.ownership.observe(self.now, self.owners())


def protocol_of(client: AnyClient) -> Protocol:
    """Return how the client takes part."""
    if isinstance(client.member, ConsumerMember):
        return Protocol.CONSUMER
    settings = client.member.settings
    return Protocol.EAGER if settings.protocol.name == "EAGER" else Protocol.COOPERATIVE
