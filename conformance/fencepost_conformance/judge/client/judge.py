"""Run schedules through the core's member and Kafka's; report the first event of each where they differ."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from fencepost.protocol.profile import Profile

from ...targets.jvm import clients
from ...targets.jvm.builds import Build
from ...targets.jvm.process import LineProcess, ProcessFault
from . import (
    consumer_outcomes,
    consumer_schedule,
    outcomes,
    reading_in_consumer_group,
    reading_in_group,
    reading_outcomes,
    reading_schedule,
    schedule,
)
from .kinds import Half, MemberProtocol
from .outcomes import Outcome
from .schedule import Schedule

_SCHEDULES: dict[tuple[Half, MemberProtocol], Callable[[int, int, Profile], Schedule]] = {
    (Half.MEMBER, MemberProtocol.CLASSIC): schedule.schedule,
    (Half.MEMBER, MemberProtocol.CONSUMER): consumer_schedule.schedule,
    (Half.READER, MemberProtocol.CLASSIC): reading_schedule.schedule,
    (Half.GROUP_READER, MemberProtocol.CLASSIC): reading_in_group.schedule,
    (Half.READER, MemberProtocol.CONSUMER): reading_schedule.consumer_schedule,
    (Half.GROUP_READER, MemberProtocol.CONSUMER): reading_in_consumer_group.schedule,
}
_OF_KAFKA: dict[tuple[Half, MemberProtocol], Callable[[Outcome], Outcome]] = {
    (Half.MEMBER, MemberProtocol.CLASSIC): outcomes.of_kafka,
    (Half.MEMBER, MemberProtocol.CONSUMER): consumer_outcomes.of_kafka,
    (Half.READER, MemberProtocol.CLASSIC): reading_outcomes.of_kafka,
    (Half.GROUP_READER, MemberProtocol.CLASSIC): reading_outcomes.of_kafka,
    (Half.READER, MemberProtocol.CONSUMER): reading_outcomes.of_new_kafka,
    (Half.GROUP_READER, MemberProtocol.CONSUMER): reading_outcomes.of_new_kafka,
}


def protocols(half: Half) -> list[MemberProtocol]:
    """Return the protocols of clients whose half can be compared."""
    return [protocol for each, protocol in _SCHEDULES if each is half]


def schedule_of(half: Half, protocol: MemberProtocol, seed: int, length: int, profile: Profile) -> Schedule:
    """Return the schedule of that seed, with the core's outcomes."""
    return _SCHEDULES[half, protocol](seed, length, profile)


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference. ``given``: the event as both got it; ``fields``: the differing fields with (core's, Kafka's)
    values."""

    seed: int
    event: int
    given: dict[str, Any]
    fields: dict[str, tuple[Any, Any]]

    @property
    def group(self) -> str:
        """A key for grouping: differences with one cause mostly occur at events of one kind, in the same fields."""
        return f"{self.given['kind']}: {', '.join(sorted(self.fields))}"


@dataclass(frozen=True, slots=True)
class Judged:
    """The verdict on one schedule: how many events agreed, and the first that did not. ``broken``: why Kafka's client
    could not run it; then there is no verdict."""

    seed: int
    steps: int
    difference: Difference | None
    broken: str = ""


class Judge:
    """Kafka's own client in a JVM, until it is closed. Raises ``CannotRun`` if there is no such client."""

    def __init__(
        self, build: Build, profile: Profile, protocol: MemberProtocol, length: int, half: Half = Half.MEMBER
    ) -> None:
        self.profile = profile
        self.compared = half, protocol
        self.length = length
        self._process = LineProcess(clients.command(build, protocol, half))
        self._process.read(1)

    def judge(self, seed: int) -> Judged:
        """Run the seed's schedule through both. Raises ``ProcessFault`` when the JVM fails."""
        made, kafkas = self.outcomes(seed)
        return _compare(seed, made, kafkas)

    def outcomes(self, seed: int) -> tuple[Schedule, list[Outcome]]:
        """Return the schedule with the core's outcomes, and Kafka's outcomes."""
        made = schedule_of(*self.compared, seed, self.length, self.profile)
        (line,) = self._process.exchange(json.dumps(made.as_json()).encode() + b"\n", 1)
        answer = json.loads(line)
        if "fault" in answer:
            raise ProcessFault(f"seed {seed}: {answer['fault']}: {self._process.tail()}")
        return made, [_OF_KAFKA[self.compared](each) for each in answer["outcomes"]]

    def close(self) -> None:
        self._process.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def judge(  # noqa: PLR0917 — the arguments of a Judge
    build: Build,
    profile: Profile,
    seeds: Iterable[int],
    length: int,
    protocol: MemberProtocol = MemberProtocol.CLASSIC,
    half: Half = Half.MEMBER,
) -> Iterator[Judged]:
    """Run each seed's schedule through both. Raises ``ProcessFault`` when the JVM fails."""
    with Judge(build, profile, protocol, length, half) as kafka:
        yield from map(kafka.judge, seeds)


def _compare(seed: int, made: Schedule, kafkas: list[Outcome]) -> Judged:
    for index, (ours, theirs) in enumerate(zip(made.outcomes, kafkas, strict=False)):
        if "fault" in theirs:
            first = ours["event"]
            return Judged(seed, index, Difference(seed, first, made.events[first], {"fault": (None, theirs["fault"])}))
        names = dict.fromkeys([*ours, *theirs])  # also fields that only one of them has
        fields = {name: (ours.get(name), theirs.get(name)) for name in names if ours.get(name) != theirs.get(name)}
        if fields:
            first = ours["event"]
            return Judged(seed, index, Difference(seed, first, made.events[first], fields))
    if len(made.outcomes) != len(kafkas):
        raise ProcessFault(f"seed {seed}: {len(kafkas)} outcomes of {len(made.outcomes)}")
    return Judged(seed, len(kafkas), None)
