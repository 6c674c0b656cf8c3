"""Find the shortest run of the whole coordinator that breaks a property, as a trace that any coordinator can replay.

The search goes breadth first over the model of a coordinator that leads one partition. There are a few moves: a
request, a timer that runs out, a request whose records cannot be appended, are late, or stay open, and the loss and
return of the partition. Only timers advance the clock. Records are replicated at once, unless an earlier record is not
replicated. Where the model leaves a choice open, the search takes the first one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatRequest
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import (
    Appended,
    AppendFailed,
    Event,
    Load,
    Request,
    SetTimer,
    TaskDone,
    TaskKey,
    TaskKind,
    TimerFired,
    TimerKey,
    TimerKind,
    Topic,
    TopicsChanged,
    Unload,
)
from fencepost.protocol.messages import VERSIONS, RequestBody, ResponseBody
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED, KAFKA_4_3, KAFKA_4_4
from fencepost.protocol.records import Record
from fencepost.protocol.settings import Settings
from fencepost_conformance.targets.ids import kafka_uuid, member_id
from fencepost_conformance.traces.files import EventTrace, read_traces
from fencepost_model.classic.coordinator import CoordinatorModel
from fencepost_model.classic.coordinator_state import CoordinatorState

#: A zero interval: the coordinator computes a target at every bump (M-TGT-08).
NOW = Settings(group_consumer_assignment_interval_ms=0)
FINDINGS = Path(__file__).parents[2] / "docs" / "findings" / "consumer"
TOPICS = (Topic("t", b"1" * 16, 2), Topic("u", b"2" * 16, 1))


class Ask(NamedTuple):
    """A request.

    - ``fails``: its records cannot be appended.
    - ``late``: its records are replicated only after its operation has timed out (F-RT-09).
    - ``later``: how many ms pass before the request.
    - ``open``: neither its records nor any later ones are replicated before ``Replicate``.
    """

    body: RequestBody
    fails: bool = False
    later: int = 0
    late: bool = False
    open: bool = False


class Fire(NamedTuple):
    """A timer of this kind runs out, if one is armed."""

    kind: TimerKind


class Resolve(NamedTuple):
    """The regular expressions of group ``g`` are resolved."""


class Replicate(NamedTuple):
    """All records written so far are replicated."""


class Lose(NamedTuple):
    """The coordinator loses the partition."""


class Win(NamedTuple):
    """The coordinator gets the partition back; the log holds all records written so far."""


class Grow(NamedTuple):
    """Topic ``t`` gets one more partition, once."""


Move = Ask | Fire | Resolve | Replicate | Lose | Win | Grow


class Play(NamedTuple):
    """A run so far.

    - ``answers``: the answers to the last move, by request.
    - ``answered``: the requests that have been answered so far.
    - ``ends``: the replicated length of the log after each replication.
    """

    state: CoordinatorState
    events: tuple[Event, ...]
    now: int
    moves: tuple[Move, ...] = ()
    armed: tuple[tuple[TimerKey, int], ...] = ()
    answers: tuple[tuple[int, ResponseBody], ...] = ()
    log: tuple[Record, ...] = ()
    ends: tuple[int, ...] = (0,)
    drawn: int = 0
    asked: int = 0
    answered: frozenset[int] = frozenset()

    @property
    def open(self) -> bool:
        """Whether some record is written but not replicated."""
        return self.ends[-1] != len(self.log)

    @property
    def situation(self) -> object:
        """Everything on which the future depends."""
        return self.state._replace(handled=0), self.armed, self.drawn

    @property
    def last(self) -> Event:
        """The event of the last move."""
        return next(each for each in reversed(self.events) if not isinstance(each, Appended | AppendFailed))

    def answer(self) -> ResponseBody | None:
        """Return the answer to the request that was the last move, if there is one."""
        return next((body for number, body in self.answers if number == self.asked), None)


Holds = Callable[["Search", Play], bool]


class Search:
    """A search. ``first``: the log when the coordinator loads it."""

    def __init__(
        self, settings: Settings, profile: Profile, moves: Iterable[Move], first: Sequence[Record] = ()
    ) -> None:
        now = 1_000
        self.model = CoordinatorModel(settings, profile)
        self.moves = tuple(moves)
        begun = Play(self.model.initial(), (), now)
        begun = self._event(begun, TopicsChanged(now, TOPICS, version=1))
        self.start = self._event(begun, Load(now, leader_epoch=1, records=tuple(first)))._replace(
            log=tuple(first), ends=(0, len(first))
        )

    def shortest(self, holds: Holds, depth: int) -> Play | None:
        """Return the shortest run of at most ``depth`` moves that breaks the property, or None."""
        seen = {self.start.situation}
        level = [self.start]
        for _ in range(depth):
            following = []
            for play in level:
                for move in self.moves:
                    after = self.take(play, move)
                    if after is None:
                        continue
                    if not holds(self, after):
                        return after
                    if after.situation not in seen:
                        seen.add(after.situation)
                        following.append(after)
            level = following
        return None

    def take(self, play: Play, move: Move) -> Play | None:
        """Return the run after one more move, or None if the move is impossible."""
        play = play._replace(answers=(), moves=(*play.moves, move))
        if isinstance(move, Resolve):
            return self._written(play, TaskDone(play.now, TaskKey(TaskKind.REGEX, "g")), fails=False)
        if isinstance(move, Replicate):
            return self._replicated(play) if play.open else None
        if isinstance(move, Grow):
            grown = TopicsChanged(play.now, (replace(TOPICS[0], partitions=3), *TOPICS[1:]), version=2)
            return None if grown in play.events else self._event(play, grown)
        if isinstance(move, Lose):
            return self._event(play, Unload(play.now, leader_epoch=None))
        if isinstance(move, Win):
            after = self._event(play, Load(play.now, leader_epoch=1, records=play.log))
            return after._replace(ends=(*play.ends, len(play.log)))
        if isinstance(move, Fire):
            due = next((row for row in play.armed if row[0].kind is move.kind), None)
            if due is None:
                return None
            now = max(play.now, due[1])
            return self._written(play._replace(now=now), TimerFired(now, due[0]), fails=False)
        number, now = play.asked + 1, play.now + move.later
        version = VERSIONS[type(move.body)][1]
        request = Request(now, id=number, version=version, client_id="client", client_host="/127.0.0.1", body=move.body)
        play = play._replace(asked=number, now=now)
        if move.late:
            return self._late(play, request)
        if move.open:
            after = self._event(play, request)
            return after if len(after.log) > len(play.log) else None
        after = self._written(play, request, fails=move.fails)
        return None if move.fails and after.events[-1] is request else after  # nothing was written that could fail

    def _late(self, play: Play, request: Request) -> Play | None:
        after = self._event(play, request)
        due = next((row for row in after.armed if row[0].operation == request.id), None)
        if due is None:
            return None
        return self._replicated(self._event(after._replace(now=due[1]), TimerFired(due[1], due[0])))

    def _replicated(self, play: Play) -> Play:
        after = play._replace(ends=(*play.ends, len(play.log)))
        return self._event(after, Appended(after.now, offset=len(after.log)))

    def again(self, moves: Iterable[Move]) -> Play:
        """Return the run of these moves. Raise ``ValueError`` if one of them is impossible."""
        play = self.start
        for move in moves:
            after = self.take(play, move)
            if after is None:
                raise ValueError(f"{move} cannot be made")
            play = after
        return play

    def _written(self, play: Play, event: Event, *, fails: bool) -> Play:
        after = self._event(play, event)
        if len(after.log) == len(play.log):
            return after
        if fails:
            after = after._replace(log=play.log)
            return self._event(after, AppendFailed(after.now, ErrorCode.NOT_ENOUGH_REPLICAS))
        return after if play.open else self._replicated(after)

    def _event(self, play: Play, event: Event) -> Play:
        new_id = self._new_id(play, event)
        step = self.model.successors(play.state, event, new_id)[0]
        armed: dict[TimerKey, int] = dict(play.armed)
        if isinstance(event, TimerFired):
            armed.pop(event.key, None)
        if step.cancels_all:
            armed.clear()
        for command in step.outcome.timers:
            armed.pop(command.key, None)
            if isinstance(command, SetTimer):
                armed[command.key] = event.at_ms + command.delay_ms
        answers = (*play.answers, *((reply.request_id, reply.body) for reply in step.outcome.replies))
        return play._replace(
            state=step.state,
            events=(*play.events, event),
            armed=tuple(sorted(armed.items(), key=lambda row: (row[1], row[0].kind.value, row[0].member_id))),
            answers=answers,
            answered=play.answered | {reply.request_id for reply in step.outcome.replies},
            log=(*play.log, *step.outcome.records),
            drawn=play.drawn + _member_of(step.state, new_id),
        )

    def _new_id(self, play: Play, event: Event) -> str:
        """Return the id that Kafka's harness would draw next (G-WIRE-28)."""
        if not isinstance(event, Request) or getattr(event.body, "member_id", None) != "":
            return ""
        if play.state.consumer_group(_group_of(event.body)) is not None:
            return kafka_uuid(play.drawn)
        return member_id(getattr(event.body, "group_instance_id", None) or event.client_id, play.drawn)


def _group_of(body: RequestBody) -> str:
    name: str = getattr(body, "group_id", "")
    return name


def _member_of(state: CoordinatorState, new_id: str) -> bool:
    if not new_id:
        return False
    classic = (state.group(slot.group_id) for slot in state.slots)
    consumer = (state.consumer_group(slot.group_id) for slot in state.slots)
    return any(
        new_id in [member.member_id for member in group.members] for group in (*classic, *consumer) if group is not None
    )


def join(
    member_id: str,
    names: tuple[str, ...] | None = ("t",),
    *,
    instance: str | None = None,
    regex: str | None = None,
    vote: str | None = None,
    group: str = "g",
) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group,
        member_id=member_id,
        member_epoch=0,
        instance_id=instance,
        rebalance_timeout_ms=5_000,
        subscribed_topic_names=names,
        subscribed_topic_regex=regex,
        server_assignor=vote,
        topic_partitions=(),
    )


class Whole(NamedTuple):
    """A fault of Kafka that shows in the whole coordinator.

    - ``switch``: the switch of the profile; ``also``: another switch that must be on.
    - ``trace``: the name of its trace in ``docs/findings/consumer``.
    - ``moves``, ``holds``: the moves that clients may make, and the property.
    - ``length``: the number of moves that break it; ``beyond``: how many more moves are searched without the fault.
    - ``shown``: the moves that make the fault visible afterwards.
    - ``first``: the log at the beginning.
    """

    switch: str
    trace: str
    moves: tuple[Move, ...]
    holds: Holds
    length: int
    settings: Settings = NOW
    shown: tuple[Move, ...] = ()
    first: tuple[Record, ...] = ()
    also: str = ""
    beyond: int = 1

    def beside(self) -> Profile:
        """The profile with every fault fixed, except one that this fault needs (``also``)."""
        return replace(INTENDED, **{self.also: True}) if self.also else INTENDED  # type: ignore[arg-type]

    def alone(self) -> Profile:
        return replace(self.beside(), **{self.switch: True})  # type: ignore[arg-type]

    def search(self, profile: Profile) -> Search:
        return Search(self.settings, profile, self.moves, self.first)

    def is_found(self) -> None:
        """Assert that the model finds the fault.

        The search must find it with the switch alone, in ``length`` moves and no fewer. It must find it under the
        profile of a release that has the fault, and under no other profile.
        """
        alone = self.search(self.alone())
        assert alone.shortest(self.holds, self.length) is not None
        assert alone.shortest(self.holds, self.length - 1) is None
        for kafka in (KAFKA_4_3, KAFKA_4_4):
            found = self.search(kafka).shortest(self.holds, self.length)
            assert (found is not None) is getattr(kafka, self.switch), kafka.name
        assert self.search(self.beside()).shortest(self.holds, self.length + self.beyond) is None

    def events(self) -> tuple[Event, ...]:
        """The events of the shortest trace and of the moves that make the fault visible."""
        play = self.search(self.alone()).shortest(self.holds, self.length)
        assert play is not None
        return self.search(KAFKA_4_3).again([*play.moves, *self.shown]).events


def read_events(name: str) -> tuple[Settings, tuple[Event, ...]]:
    (trace,) = read_traces(FINDINGS / f"{name}.jsonl")
    assert isinstance(trace, EventTrace)
    return trace.settings, trace.events
