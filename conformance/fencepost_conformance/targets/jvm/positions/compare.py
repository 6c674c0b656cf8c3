"""Random calls on a consumer's partition state, in Kafka's class and in the reader (8.7).

A call is a line of words, as ``Positions.java`` reads it. The reader gets the corresponding event, or, for a broker's
answer, calls the function that handles it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random

from fencepost.member.events import Subscribe, Unsubscribe
from fencepost.protocol.partitions import TopicPartition
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED
from fencepost_consumer import Client, Reader, ReaderSettings, reset_policy, step
from fencepost_consumer import events as ev
from fencepost_consumer.broker import EpochEnd, ListedOffset, ListOffsetsResponse, OffsetForLeaderEpochResponse
from fencepost_consumer.clients import turn_of
from fencepost_consumer.membership import Membership
from fencepost_consumer.partition import FetchState, Leader, Partition, Position
from fencepost_consumer.positions import reset_answered, reset_initializing, validation_answered
from fencepost_consumer.state import SentReset, SentValidation
from fencepost_consumer.working_copy import Thrown

from .. import jars
from ..builds import Build
from ..compiled import classes, sources
from ..process import LineProcess
from ..releases import NEWEST

NUMBERS = (0, 1, 2, 10)
STEPS = 60


@dataclass(frozen=True, slots=True)
class Difference:
    """After ``calls`` the reader shows ``ours`` and Kafka ``theirs``."""

    seed: int
    calls: tuple[str, ...]
    ours: str
    theirs: str


class KafkaPositions:
    """One JVM with the class of one release. Raises ``CannotRun`` without a JDK or the jars."""

    def __init__(self, version: str = NEWEST) -> None:
        build = Build(version)
        libraries = build.libraries()
        compiled = classes("positions", build, sources(__package__), libraries)
        path = os.pathsep.join(map(str, [compiled, *libraries]))
        name = "org.apache.kafka.clients.consumer.internals.Positions"
        self._child = LineProcess([jars.java(), "-Xmx256m", *jars.SHORT_RUN, "-cp", path, name])

    def close(self) -> None:
        self._child.close()

    def ask(self, calls: Sequence[str]) -> list[str]:
        """Return the shown state after each call."""
        data = "".join(f"{call}\n" for call in calls).encode()
        return [bytes(line).decode().rstrip() for line in self._child.exchange(data, len(calls))]


def differences(kafka: KafkaPositions, seeds: Sequence[int], profile: Profile = INTENDED) -> Iterator[Difference]:
    """Yield the first difference of each seed that has one."""
    for seed in seeds:
        calls, ours = walk(seed, profile)
        for number, (own, theirs) in enumerate(zip(ours, kafka.ask(calls), strict=True)):
            if own != theirs:
                yield Difference(seed, tuple(calls[: number + 1]), own, theirs)
                break


def walk(seed: int, profile: Profile) -> tuple[list[str], list[str]]:
    """Return the calls of that seed, and what the reader shows after each."""
    rng = Random(f"positions {seed}")
    policy = rng.choice(("earliest", "latest", "none"))
    place = _Place(policy, profile)
    calls, shown = [f"new {policy}", "subscribe t,u"], []
    shown.append(place.take(calls[0]))
    shown.append(place.take(calls[1]))
    while len(calls) < STEPS:
        calls.append(place.draw(rng))
        shown.append(place.take(calls[-1]))
    return calls, shown


class _Place:
    """The reader, and the calls that are possible now."""

    def __init__(self, policy: str, profile: Profile) -> None:
        settings = ReaderSettings("g", client=Client.CONSUMER, reset=reset_policy(policy), profile=profile)
        self.reader = Reader(settings)
        self.marked: frozenset[TopicPartition] = frozenset()

    def draw(self, rng: Random) -> str:
        """Draw a call about assigned partitions, or one that assigns."""
        assigned = [_number(each) for each in self.reader.partitions]
        often = ("seek", "leader", "ended")
        kinds = (*often, *often, "reset", "listed", "read", "last", "pause", "resume")
        what = rng.choice((*kinds, "own", "mark", "subscribe", "initialise"))
        if what == "own" or not assigned:
            return " ".join(map(str, ("own", *rng.sample(NUMBERS, rng.randint(1, 4)))))
        one = rng.choice(assigned)
        words: tuple[object, ...]
        match what:
            case "subscribe":
                words = (rng.choice(("t", "u", "t,u")),)
            case "mark":
                words = tuple(rng.sample(assigned, rng.randint(0, len(assigned))))
            case "initialise":
                words = ()
            case "reset":
                words = (one, rng.choice(("earliest", "latest")))
            case "leader":
                words = (one, rng.choice((-1, 1, 2)), rng.choice((-1, 1, 2)))
            case "seek":
                words = (one, *self._position(rng))
            case "listed":
                words = (one, rng.randint(0, 9), -1, 1, 1, rng.choice(("earliest", "latest")))
            case "ended":
                words = (one, *self._asked(rng, one), *rng.choice(((-1, -1), (0, rng.randint(0, 9)), (1, 9))))
            case "read" if self._state(one).valid is not None:
                words = (one, *self._position(rng))
            case "pause" | "resume" | "last":
                words = (one,)
            case _:
                what, words = "last", (one,)
        return " ".join(map(str, (what, *words)))

    def _position(self, rng: Random) -> tuple[int, ...]:
        return rng.randint(0, 9), rng.choice((-1, 0, 1)), rng.choice((-1, 1, 2)), rng.choice((-1, 1, 2))

    def _asked(self, rng: Random, number: int) -> tuple[int, ...]:
        """Draw a position, mostly the current one."""
        position = self._state(number).position
        if position is None or rng.random() < 0.2:
            return self._position(rng)
        return position.offset, _or(position.epoch), _or(position.leader.node), _or(position.leader.epoch)

    def _state(self, number: int) -> Partition:
        return self.reader.partitions[_partition(number)]

    def take(self, call: str) -> str:
        """Make the call and return the shown state."""
        what, *rest = call.split()
        thrown = ""
        try:
            self._do(what, rest)
        except Thrown as problem:
            thrown = problem.problem.kind.value
        return f"{thrown}|{self._show()}"

    def _do(self, what: str, words: list[str]) -> None:
        match what:
            case "new":
                pass
            case "subscribe":
                self._event(Subscribe(0, frozenset(words[0].split(","))))
            case "unsubscribe":
                self._event(Unsubscribe(0))
            case "own":
                owned = tuple(_partition(int(each)) for each in words)
                self.marked &= frozenset(owned)
                self._event(ev.MembershipChanged(0, Membership(owned, self.marked)))
                self._event(ev.AssignmentAdopted(0))
            case "mark":
                self.marked |= {_partition(int(each)) for each in words}
                owned = self.reader.membership.owned
                self._event(ev.MembershipChanged(0, Membership(owned, self.marked)))
            case _:
                self._about(what, words)

    def _about(self, what: str, words: list[str]) -> None:
        turn = turn_of(self.reader, 0, 1.0)
        if what == "initialise":
            try:
                reset_initializing(turn, turn.reader.initializing)
            finally:
                self.reader = turn.reader
            return
        one, numbers = _partition(int(words[0])), [int(each) for each in words[1:] if each.lstrip("-").isdigit()]
        state = turn.reader.partitions[one]
        match what:
            case "pause" | "resume":
                self._event(ev.Pause(0, (one,)) if what == "pause" else ev.Resume(0, (one,)))
                return
            case "seek":
                turn.place(one, _at(numbers))
            case "read":
                turn.change(one, replace(state, position=_at(numbers)))
            case "reset":
                turn.change(one, state.await_reset(reset_policy(words[1])))
            case "listed":
                turn.reader = turn.reader._replace(leaders={one: Leader(numbers[2], numbers[3])})
                body = ListOffsetsResponse((ListedOffset(one, offset=numbers[0]),))
                reset_answered(turn, SentReset(1, {one: reset_policy(words[5])}), body)
            case "leader":
                turn.change(one, state.led_by(Leader(_known(numbers[0]), _known(numbers[1]))))
            case "ended":
                end = EpochEnd(one, leader_epoch=numbers[4], end_offset=numbers[5])
                sent = SentValidation(1, {one: _at(numbers)})
                validation_answered(turn, sent, OffsetForLeaderEpochResponse((end,)))
            case "last":
                turn.to_the_end(one)
        self.reader = turn.reader

    def _event(self, event: ev.ReaderEvent) -> None:
        self.reader, _ = step(self.reader, event)

    def _show(self) -> str:
        rows = []
        for each, state in self.reader.partitions.items():
            position = state.position
            where = "-"
            if position is not None:
                leader = f"{_or(position.leader.node)}/{_or(position.leader.epoch)}"
                where = f"{position.offset}/{_or(position.epoch)}/{leader}"
            name = state.state.value
            if state.state is FetchState.AWAIT_RESET and state.reset is not None:
                name += f" {state.reset.reset.value}"
            marks = " paused" * state.paused + " fetchable" * self.reader.fetchable(each)
            marks += " initialises" * (each in self.reader.initializing)
            rows.append(f"{_number(each)} {name} {where}{marks}")
        return "; ".join(rows)


def _partition(number: int) -> TopicPartition:
    return TopicPartition("t", number) if number < 10 else TopicPartition("u", number - 10)


def _number(partition: TopicPartition) -> int:
    return partition.partition + (10 if partition.topic == "u" else 0)


def _or(number: int | None) -> int:
    return -1 if number is None else number


def _known(number: int) -> int | None:
    return None if number < 0 else number


def _at(numbers: list[int]) -> Position:
    return Position(numbers[0], _known(numbers[1]), Leader(_known(numbers[2]), _known(numbers[3])))
