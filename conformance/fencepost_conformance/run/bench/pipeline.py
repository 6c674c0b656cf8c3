"""The pipeline from plan to row: the cost of each phase of a trace, for each protocol, including Kafka's JVM.

Every figure is the processor time of one phase, run separately for the same traces, in microseconds a step. It is the
least of a few rounds, since other users of the machine can only add to it. The cost of the whole pipeline is beside it.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fencepost.codec import Codec, layout_of
from fencepost.protocol.profiles import KAFKA_4_4

from ...generate.generator import Generated, generate
from ...generate.plan import GroupProtocol
from ...judge.compare.lockstep import compare
from ...judge.compare.model import follow
from ...judge.coverage.features import features_of
from ...judge.rows.check import Checker, digest
from ...judge.rows.job import Job
from ...targets.core import Core
from ...targets.jvm import decode, encode, harness
from ...targets.jvm.process import LineProcess
from ...targets.jvm.releases import NEWEST
from ...traces.observation import Observation
from .measure import Row, processor_seconds

_TRACES, _STEPS = 100, 60
_CODEC = Codec(layout_of(KAFKA_4_4))
_ROUNDS = 3
#: how often a JVM gets the traces: the second figure is of a warm JVM
_WARM, _MEASURED = 6, 18


@dataclass(frozen=True, slots=True)
class _Given:
    """Traces of one protocol, and Kafka's results: its lines, decoded."""

    protocol: GroupProtocol
    traces: Sequence[Generated]
    lines: Sequence[bytes]
    others: Sequence[Sequence[Observation]]
    steps: int


def pipeline() -> list[Row]:
    """Measure the pipeline. Raises ``CannotRun`` without a Java runtime or Kafka's jars."""
    command = harness.command(NEWEST)
    return [row for protocol in GroupProtocol for row in _of(protocol, command)]


def _of(protocol: GroupProtocol, command: Sequence[str]) -> list[Row]:
    traces = [generate(seed, KAFKA_4_4, _STEPS, protocol) for seed in range(_TRACES)]
    process = LineProcess(command)
    process.read(1)
    lines = process.exchange(_asked(traces), len(traces))
    process.close()
    given = _Given(
        protocol,
        traces,
        lines,
        [decode.observations(line, _CODEC) for line in lines],
        sum(len(each.events) for each in traces),
    )
    figures = {name: _least(work, given) for name, work in _PHASES.items()}
    warm, cold = _jvm(command, given)
    whole = _whole(given) + warm
    rates = {**figures, "Kafka's JVM, once it is warm": warm}
    rows = [
        Row("pipeline", f"{protocol}: {name}", value, "µs a step", "all of it", whole, value / whole)
        for name, value in rates.items()
    ]
    rows.append(Row("pipeline", f"{protocol}: a JVM until it is warm, once", cold, "seconds"))
    return rows


def _generated(given: _Given) -> None:
    for seed in range(len(given.traces)):
        generate(seed, KAFKA_4_4, _STEPS, given.protocol)


def _core(given: _Given) -> None:
    core = Core()
    for trace in given.traces:
        core.run_until_raised(trace.settings, trace.profile, trace.events)


def _model(given: _Given) -> None:
    for trace in given.traces:
        follow(trace.settings, trace.profile, trace.events, trace.observations)


def _coverage(given: _Given) -> None:
    for trace in given.traces:
        features_of(trace.settings, trace.events, trace.observations)


def _digest(given: _Given) -> None:
    for trace in given.traces:
        digest(trace.observations)


def _encode(given: _Given) -> None:
    _asked(given.traces)


def _decode(given: _Given) -> None:
    for line in given.lines:
        decode.observations(line, _CODEC)


def _compare(given: _Given) -> None:
    for trace, other in zip(given.traces, given.others, strict=True):
        compare(trace.settings, trace.profile, trace.events, trace.observations, other)


_PHASES: dict[str, Callable[[_Given], None]] = {
    "making the trace, the core in it": _generated,
    "of this the core and its observations": _core,
    "the model": _model,
    "coverage": _coverage,
    "digest": _digest,
    "asking Kafka (encoding)": _encode,
    "reading its answers (decoding)": _decode,
    "comparing": _compare,
}


def _asked(traces: Sequence[Generated]) -> bytes:
    return b"".join(encode.trace(each.settings, each.events, _CODEC, views=True, merged=False) for each in traces)


def _least(work: Callable[[_Given], None], given: _Given) -> float:
    """Return microseconds a step, without garbage collection, as in the pipeline."""
    found = []
    for _ in range(_ROUNDS):
        gc.collect()
        gc.disable()
        began = time.process_time()
        work(given)
        found.append(time.process_time() - began)
        gc.enable()
    return min(found) / given.steps * 1e6


def _whole(given: _Given) -> float:
    """Return the cost of everything that happens in Python, with Kafka."""
    checker = Checker(Job(f"kafka:{NEWEST}", KAFKA_4_4.name, _STEPS, protocol=given.protocol))
    try:
        checker.check(range(1))
        return _least(lambda _: _checked(checker), given)
    finally:
        checker.close()


def _checked(checker: Checker) -> None:
    checker.check(range(_TRACES))


def _jvm(command: Sequence[str], given: _Given) -> tuple[float, float]:
    """Return microseconds a step of a warm JVM, and the additional seconds until it is warm."""
    asked = _asked(given.traces)
    taken = []
    for times in (_WARM, _MEASURED):
        before = processor_seconds() - time.process_time()
        process = LineProcess(command)
        process.read(1)
        for _ in range(times):
            process.exchange(asked, len(given.traces))
        process.close()
        taken.append(processor_seconds() - time.process_time() - before)
    warm = (taken[1] - taken[0]) / (_MEASURED - _WARM)
    return warm / given.steps * 1e6, taken[0] - _WARM * warm
