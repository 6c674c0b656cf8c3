"""A consumer that reads, in any stream of events: each step agrees with a ledger, and in the end every record is read.

The ledger (``generate/simulate/reading/ledger.py``) checks these properties:

- A position moves only when records are handed out, and by a seek, a reset or a truncation.
- Each record is handed out once, in order, from the position on.
- No record is handed out of a partition that is revoked, about to be revoked or paused, or of a dropped topic.
- Commits contain positions of records that were handed out.
- Callbacks of asynchronous commits run in the order of the calls.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fencepost.protocol.partitions import TopicPartition
from fencepost_conformance.generate.simulate.broken import Broken, demand
from fencepost_conformance.generate.simulate.reading import World, walk
from fencepost_conformance.generate.simulate.reading import world as worlds
from fencepost_conformance.run.mutants.replacement import Replacement, in_place
from fencepost_consumer import Client, Reader, step
from fencepost_consumer.broker import ListOffsetsResponse, OffsetForLeaderEpochResponse
from fencepost_consumer.events import Arrived, MembershipChanged, PollReturned, Seek


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_any_stream_holds_against_the_ledger(data: st.DataObject) -> None:
    world = World(lambda options: data.draw(st.sampled_from(options)))
    for _ in range(data.draw(st.integers(0, 40))):
        world.happen()
    world.settle()


def test_walks_read_and_are_of_every_kind() -> None:
    """Without these states, a check that reports nothing would mean nothing."""
    clients, handed, moved = set(), 0, set()
    for seed in range(1_000, 1_030):
        world = walk(seed)
        clients.add(world.client)
        handed += world.ledger.handed
        moved |= {kind.name for kind in world.thrown}
    assert clients == set(Client)
    assert handed > 150
    assert {"TIMEOUT", "WAKEUP", "NO_OFFSET"} <= moved


class Offsets:
    """A check that knows only the records that were handed out: offsets of a partition rise until its position is moved
    (INV-CL-03). It replaces the ledger."""

    def __init__(self, reader: Reader) -> None:
        self.last: dict[TopicPartition, int] = {}
        self.handed = 0
        self.called: list[int] = []

    def before(self, event: object, reader: Reader) -> None:
        match event:
            case Seek(partition=partition):
                self.last.pop(partition, None)
            case Arrived(body=ListOffsetsResponse(partitions=rows) | OffsetForLeaderEpochResponse(partitions=rows)):
                for row in rows:
                    self.last.pop(row.partition, None)
            case MembershipChanged(membership=membership):
                self.last = {each: last for each, last in self.last.items() if each in membership.owned}

    def after(self, event: object, commands: Iterable[object], reader: Reader) -> None:
        for command in commands:
            for partition, records in command.records if isinstance(command, PollReturned) else ():
                for record in records:
                    demand(record.offset > self.last.get(partition, -1), "INV-CL-03", f"{record.offset} again")
                    self.last[partition] = record.offset
                    self.handed += 1

    def automatic(self, *_: object) -> None: ...
    def coordinator_lost(self) -> None: ...


def test_offsets_rise_until_something_moves_the_position(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worlds, "Ledger", Offsets)

    def handed() -> int:
        return sum(walk(seed).ledger.handed for seed in range(300, 340))

    assert handed() > 200
    stays = Replacement(
        "fencepost_consumer/handing.py",
        "_hand_out",
        "replace(state, position=moved)",
        "replace(state, position=position)",
    )
    with in_place([stays]), pytest.raises(Broken, match="INV-CL-03"):
        handed()


@pytest.mark.all
@pytest.mark.parametrize("first", range(2_000, 12_000, 500))
def test_many_walks(first: int) -> None:
    for seed in range(first, first + 500):
        walk(seed)


def test_a_step_is_a_function(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same arguments give the same result, and the given state is unchanged."""

    def twice(reader: Reader, event: object) -> object:
        before = repr(reader)
        result = step(reader, event)  # type: ignore[arg-type]
        assert step(reader, event) == result  # type: ignore[arg-type]
        assert repr(reader) == before
        return result

    monkeypatch.setattr(worlds, "step", twice)
    for seed in range(6):
        world = World(Random(f"reading {seed}").choice)
        for _ in range(60):
            world.happen()
