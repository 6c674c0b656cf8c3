"""Random traces at exact boundaries: they reach the boundaries, the model agrees, and other traces are unchanged."""

from __future__ import annotations

from random import Random

import pytest

from fencepost.protocol.events import Request, TimerFired, TimerKind
from fencepost.protocol.offset_messages import OffsetCommitRequest, TxnOffsetCommitRequest
from fencepost.protocol.profiles import INTENDED
from fencepost_conformance.generate.edge_moves import text_of_units, units
from fencepost_conformance.generate.generator import Generated, generate
from fencepost_conformance.generate.plan import GroupProtocol
from fencepost_conformance.judge.compare.model import follow

SEEDS = range(500, 512)


@pytest.fixture(scope="module")
def made() -> list[Generated]:
    return [
        generate(seed, INTENDED, 80, protocol, offsets=0.6, edges=True) for protocol in GroupProtocol for seed in SEEDS
    ]


def test_the_model_follows_the_core_to_the_edges(made: list[Generated]) -> None:
    for trace in made:
        assert trace.failure is None, trace.seed
        assert follow(trace.settings, trace.profile, trace.events, trace.observations).refused is None, trace.seed


def test_boundary_values_occur(made: list[Generated]) -> None:
    """Boundaries of metadata in UTF-16 units, of 64-bit numbers, of partitions and of times."""
    lengths, offsets, partitions, producers = set(), set(), set(), set()
    times = set()
    for trace in made:
        limit = trace.settings.offset_metadata_max_bytes
        fired = {event.at_ms for event in trace.events if isinstance(event, TimerFired)}
        for event in trace.events:
            if not isinstance(event, Request):
                continue
            times |= {event.at_ms - at for at in fired if abs(event.at_ms - at) <= 1}
            if isinstance(event.body, TxnOffsetCommitRequest):
                producers.add(event.body.producer_id)
            if isinstance(event.body, OffsetCommitRequest | TxnOffsetCommitRequest):
                for topic in event.body.topics:
                    for row in topic.partitions:
                        offsets.add(row.committed_offset)
                        partitions.add(row.partition_index)
                        if row.committed_metadata and limit > 0:
                            lengths.add(units(row.committed_metadata) - limit)
    assert {-1, 0, 1} <= lengths
    assert {-(1 << 63), -1, 0, (1 << 63) - 1} <= offsets
    assert {-(1 << 31), -1, 0, (1 << 31) - 1} <= partitions
    assert {0, (1 << 63) - 1} <= producers
    assert len({number & 0xFFFF_FFFF for number in producers}) < len(producers)
    assert {-1, 0, 1} <= times


def test_other_seeds_are_unchanged() -> None:
    """About a third of the seeds that draw offsets have boundary values; all other seeds draw the same values as
    without them."""
    same = 0
    for seed in SEEDS:
        without = generate(seed, INTENDED, 60, offsets=None, edges=False)
        same += generate(seed, INTENDED, 60, offsets=None).events == without.events
        fixed = generate(seed, INTENDED, 60, offsets=0.5)
        assert fixed.events == generate(seed, INTENDED, 60, offsets=0.5, edges=False).events
    assert len(SEEDS) / 2 <= same < len(SEEDS)


def test_texts_have_the_length_that_java_counts() -> None:

    for length in range(40):
        assert units(text_of_units(Random(length), length)) == length


def test_a_timer_is_met_exactly(made: list[Generated]) -> None:
    """A session ends in the millisecond in which it is due, after a request in that same millisecond."""
    kinds = {
        event.key.kind
        for trace in made
        for before, event in zip(trace.events, trace.events[1:], strict=False)
        if isinstance(event, TimerFired) and before.at_ms == event.at_ms
    }
    assert {TimerKind.EXPIRY, TimerKind.SESSION, TimerKind.CONSUMER_SESSION} <= kinds
