"""An accepted trace of Kafka stays accepted if its requests take longer: overlaps make no certainty of the checker
wrong.

``kafka-4.4.0.jsonl.gz`` has traces of ``fencepost conform --target broker:4.4.0``. The checker once rejected the first
two of them, and copies of eight others, although Kafka had answered.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from fencepost_conformance.judge.checker.check import check_trace
from fencepost_conformance.judge.checker.search import Limits
from fencepost_conformance.run.falsify.overlaps import MOST_MS, widened
from fencepost_conformance.traces.files import WireTrace, read_traces
from fencepost_conformance.traces.lines import ReceivedLine, SentLine

HERE = Path(__file__).parent
KAFKA = {trace.name: trace for trace in read_traces(HERE / "kafka-4.4.0.jsonl.gz") if isinstance(trace, WireTrace)}
CORPUS = sorted((HERE.parent / "corpus").glob("*.jsonl.gz"))
#: The share of the lines of a trace that move: some, so that much stays certain, up to all.
SHARES = (0.05, 0.3, 1.0)
#: Requests that overlap can be handled in many orders; a search that takes longer decides nothing.
LIMITS = Limits(steps=10_000)


def accepted(trace: WireTrace, seeds: range) -> None:
    for seed in seeds:
        verdict = check_trace(widened(trace, Random(seed), SHARES[seed % len(SHARES)]), limits=LIMITS)
        assert verdict.outcome != "refused", (seed, verdict.refusals)


@pytest.mark.parametrize("name", KAFKA)
def test_kafka_is_accepted(name: str) -> None:
    verdict = check_trace(KAFKA[name])
    assert verdict.outcome == "accepted", verdict.refusals


@pytest.mark.parametrize("name", KAFKA)
def test_an_accepted_trace_stays_accepted_with_slower_answers(name: str) -> None:
    accepted(KAFKA[name], range(3))


@pytest.mark.all
@pytest.mark.parametrize("name", KAFKA)
def test_however_long_they_take(name: str) -> None:
    accepted(KAFKA[name], range(3, 60))


@pytest.mark.all
@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.name.removesuffix(".jsonl.gz"))
def test_corpus_traces_stay_accepted_with_slower_answers(path: Path) -> None:
    (trace,) = read_traces(path)
    assert isinstance(trace, WireTrace)
    accepted(trace, range(6))


def test_a_copy_holds_the_same_lines_in_the_order_of_each_connection() -> None:
    trace = KAFKA["mixed 41337055"]
    copy = widened(trace, Random(1), 1.0)
    times = [line.at_ms for line in copy.lines]
    assert times == sorted(times)
    for connection in {line.connection for line in trace.lines}:
        before, after = ([line for line in each.lines if line.connection == connection] for each in (trace, copy))
        assert [line.model_copy(update={"at_ms": 0}) for line in before] == [
            line.model_copy(update={"at_ms": 0}) for line in after
        ]
        moved = [two.at_ms - one.at_ms for one, two in zip(before, after, strict=True)]
        assert all(-MOST_MS <= ms <= MOST_MS for ms in moved)
        assert all(ms <= 0 for ms, line in zip(moved, before, strict=True) if isinstance(line, SentLine))
        assert all(ms >= 0 for ms, line in zip(moved, before, strict=True) if isinstance(line, ReceivedLine))
    assert copy.lines != trace.lines
