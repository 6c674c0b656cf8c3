"""Logs for the tests of histories: what the core writes while it plays a trace, and files of log segments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from fencepost import coordinator
from fencepost.codec import Codec
from fencepost.coordinator import CoordinatorState
from fencepost.coordinator.kernel.state import Status
from fencepost.functions import KafkaFunctions
from fencepost.protocol.events import AppendFailed, Load
from fencepost.protocol.offset_records import ControlKey
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED
from fencepost.protocol.rebalances import RebalanceReport
from fencepost.protocol.records import Record
from fencepost_conformance.generate.generator import generate
from fencepost_conformance.generate.plan import GroupProtocol
from fencepost_conformance.targets.ids import MemberIds
from fencepost_conformance.targets.java_order import JavaOrder, WithoutHyphens
from fencepost_conformance.traces.offsets_log.rows import LogRow
from fencepost_server.data.encoding import encode_batch

CODEC = Codec()


@dataclass(slots=True)
class Played:
    """The log of a coordinator from one load to the next: ``loaded`` records of the load, then those it wrote.
    ``reports``: its own reports of rebalances, each with its time and the offset after its records."""

    state: CoordinatorState
    loaded: int
    rows: list[LogRow]
    reports: list[tuple[int, int, RebalanceReport]] = field(default_factory=list)


def rows_of(records: Iterable[Record], at_ms: int, base: int, partition: int = 0) -> Iterator[LogRow]:
    """Return records as a log has them."""
    for place, record in enumerate(records, base):
        key, value = CODEC.encode(record)
        yield LogRow(partition, place, at_ms, key, value, record.producer, isinstance(record.key, ControlKey))


def play(seed: int, protocol: GroupProtocol, steps: int = 120, profile: Profile = INTENDED) -> Iterator[Played]:
    """Play a random trace on the core; yield its log at each load and at the end. A failed append is not in the log."""
    trace = generate(seed, profile, steps, protocol, offsets=0.3)
    state = coordinator.initial_state(trace.settings, profile, functions=KafkaFunctions())
    ids = JavaOrder(MemberIds())
    choices = WithoutHyphens(ids) if profile.draws_no_hyphens else ids
    played = Played(state, 0, [])
    for event in trace.events[: len(trace.observations)]:
        before = state.status
        state, outcome = coordinator.step(state, event, choices)
        if isinstance(event, Load) and before is not Status.ACTIVE and state.status is Status.ACTIVE:  # else ignored
            if played.rows:
                yield played
            rows = [*rows_of(event.records, event.at_ms, 0)]
            played = Played(state, len(rows), rows)
        if isinstance(event, AppendFailed):
            end = state.end - len(outcome.records)
            del played.rows[end:]
            played.reports = [each for each in played.reports if each[1] <= end]
        played.rows += rows_of(outcome.records, event.at_ms, len(played.rows))
        played.reports += [(event.at_ms, len(played.rows), each) for each in outcome.rebalances]
        if state.end == len(played.rows):  # else it was unloaded
            played.state = state
    yield played


def write_segments(folder: Path, rows: Sequence[LogRow], most: int = 50) -> Path:
    """Write log segments of ``most`` batches, as a broker does; return the folder with the folders of partitions."""
    for number, of_partition in groupby(sorted(rows), key=lambda row: row.partition):
        batches = []
        for (at_ms, producer, control), some in groupby(
            of_partition, key=lambda row: (row.at_ms, row.producer, row.control)
        ):
            records = [(row.offset, row.key, row.value) for row in some]
            batches.append((records[0][0], encode_batch(records, max(at_ms, 0), producer=producer, control=control)))
        below = folder / f"__consumer_offsets-{number}"
        below.mkdir(parents=True, exist_ok=True)
        for begin in range(0, len(batches), most):
            some_batches = batches[begin : begin + most]
            (below / f"{some_batches[0][0]:020}.log").write_bytes(b"".join(data for _, data in some_batches))
    return folder
