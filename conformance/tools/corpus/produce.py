"""Runs scenarios, several at a time, each with its own group and recorder, and keeps the recordings."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.metadata import version as installed
from pathlib import Path

from fencepost_conformance.common.addresses import Address, parse_address
from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.judge.checker.check import check_file
from fencepost_conformance.judge.checker.positions.judge import JUDGED, POSITIONS
from fencepost_conformance.targets.broker import DEFAULT_VERSION, HOST, Broker
from fencepost_conformance.traces.recorder.output import part_of
from fencepost_conformance.traces.recorder.run import record

from .asking import create_topic
from .scenarios import SCENARIOS, Scenario
from .stage import Java, Stage, Stuck

#: Sessions of the consumer protocol as short as the classic ones, so that a trace does not take minutes.
BROKER_SETTINGS = {
    "group.max.size": "7",
    "group.consumer.max.size": "7",
    "group.consumer.min.session.timeout.ms": "6000",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.heartbeat.interval.ms": "500",
}
#: Partitions of the two topics of each scenario.
PARTITIONS = (8, 4)
#: Attempts at a scenario that gets stuck.
TRIES = 3


@dataclass(frozen=True, slots=True)
class Take:
    """A scenario with one library."""

    scenario: Scenario
    library: str

    @property
    def name(self) -> str:
        return f"{self.scenario.title}-{self.library}"


@dataclass(frozen=True, slots=True)
class Made:
    """The result of a take: ``problem`` is None if its trace is in the folder; ``accepted``: the checker's verdict."""

    name: str
    problem: str | None
    accepted: bool = False
    lines: int = 0


def takes(names: Iterable[str] = (), *, java: bool = True) -> list[Take]:
    """Return all takes, or those whose name begins with one of ``names``; without Java only those that need none.

    Raises CannotRun for a name that no take begins with.
    """
    every = [Take(scenario, library) for scenario in SCENARIOS.values() for library in scenario.libraries]
    wanted = tuple(names)
    for name in wanted:
        if not any(take.name.startswith(name) for take in every):
            raise CannotRun(f"no trace begins with {name!r}; docs/recording.md lists the scenarios")
    return [
        take
        for take in every
        if (not wanted or take.name.startswith(wanted)) and (java or take.library not in ("java", "mixed"))
    ]


def _clients(take: Take) -> dict[str, str]:
    """Return the libraries of a take, with their versions."""
    libraries = ("confluent-kafka", "kafka-python", "aiokafka", "java") if take.library == "mixed" else (take.library,)
    versions = {name: DEFAULT_VERSION if name == "java" else installed(name) for name in libraries}
    return {"client": ", ".join(f"{name} {number}" for name, number in versions.items())}


async def play(take: Take, broker: Broker, java: Java | None, attempt: int, path: Path) -> None:
    """Play and record once, to a trace at ``path``. Raises Stuck."""
    group = take.name + f"-{attempt}" * bool(attempt)  # each attempt needs a new group
    until, ready = asyncio.Event(), asyncio.Queue[Address]()
    stage = Stage("", group, {}, take.library, take.scenario.assignors, java, take.scenario.protocol)
    stage.broker = broker if take.scenario.own_broker else None
    names = {f"{group}-{letter}": number for letter, number in zip("ab", PARTITIONS, strict=True)}
    if take.scenario.topics_before:
        for name, number in names.items():
            await asyncio.to_thread(create_topic, parse_address(broker.bootstrap, "bootstrap"), name, number)
        stage.topics.update(names)
    provenance = {
        "broker": f"Apache Kafka {broker.version}",
        "scenario": take.scenario.about,
        "assignors": ",".join(take.scenario.assignors),
        **_clients(take),
        **({} if take.scenario.seeks else {POSITIONS: JUDGED}),
    }
    recording = asyncio.create_task(
        record(
            Address(HOST, 0),
            parse_address(broker.bootstrap, "bootstrap"),
            path,
            until,
            groups=frozenset({group}),
            provenance=provenance,
            name=take.name,
            ready=ready.put_nowait,
            watch=stage.watch,
            replace=True,
            patience_s=60.0 if take.scenario.own_broker else 0.0,
        )
    )
    stage.bootstrap = str(await ready.get())
    try:
        for name, number in names.items():
            if name not in stage.topics:
                await stage.create_topic(name, number)
        await take.scenario.play(stage)
    finally:
        await stage.clear()
        await asyncio.sleep(0.2)  # the last member's requests are still in the proxy
        until.set()
        await recording


async def _make(take: Take, broker: Broker, java: Java | None, folder: Path) -> Made:
    problem = ""
    for attempt in range(TRIES):
        path = folder / f"{take.name}.jsonl.gz"
        part_of(path).unlink(missing_ok=True)
        try:
            await play(take, broker, java, attempt, path)
        except Stuck as stuck:
            problem = f"attempt {attempt + 1}: {stuck}"
            path.unlink(missing_ok=True)
            continue
        verdicts = list(check_file(path))
        accepted = all(verdict.outcome == "accepted" for verdict in verdicts)
        return Made(take.name, None, accepted, sum(verdict.events for verdict in verdicts))
    return Made(take.name, problem)


async def produce(
    wanted: list[Take],
    folder: Path,
    *,
    java: Java | None,
    jobs: int,
    report: Callable[[Made], None],
    release: str = DEFAULT_VERSION,
) -> list[Made]:
    """Record all takes into the folder. Takes with the same broker settings share a broker, except those that restart
    it."""
    folder.mkdir(parents=True, exist_ok=True)
    made: list[Made] = []
    shared: dict[int, list[Take]] = {}
    for take in wanted:
        if not take.scenario.own_broker:
            shared.setdefault(take.scenario.initial_delay_ms, []).append(take)
    alone = [(take.scenario.initial_delay_ms, [take]) for take in wanted if take.scenario.own_broker]
    for delay, mine in (*sorted(shared.items()), *alone):
        with Broker(release, initial_rebalance_delay_ms=delay, settings=BROKER_SETTINGS) as broker:
            seats = asyncio.Semaphore(jobs)

            async def one(take: Take, broker: Broker = broker, seats: asyncio.Semaphore = seats) -> Made:
                async with seats:
                    result = await _make(take, broker, java, folder)
                report(result)
                return result

            made += await asyncio.gather(*[one(take) for take in mine])
    return made
