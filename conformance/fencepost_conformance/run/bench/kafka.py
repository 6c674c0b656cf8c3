"""The core in lockstep with Kafka's own coordinator: the cost of the comparison, and Kafka's share of it."""

from __future__ import annotations

from ...judge.compare.lockstep import compare
from ...targets.kafka_jvm import KafkaJvm
from .measure import Row, pair
from .steps import run_core, traces

RELEASE = "4.3.1"


def kafka() -> list[Row]:
    given = traces()
    inputs = [(trace.settings, trace.events) for trace in given]
    target = KafkaJvm(RELEASE)

    def run_kafka() -> int:
        return sum(map(len, target.run_many(inputs)))

    def run_lockstep() -> int:
        agreed = 0
        for trace, other in zip(given, target.run_many(inputs), strict=True):
            agreed += compare(trace.settings, trace.profile, trace.events, trace.observations, other).steps
        return agreed

    try:
        run_kafka()  # warm up: a user's run is long enough for the JVM to compile hot code
        return [
            pair(
                "kafka",
                "core in lockstep with Kafka",
                "Kafka's coordinator in its JVM",
                "steps a second",
                work=run_lockstep,
                other=run_kafka,
            ),
            pair(
                "kafka",
                "core alone",
                "Kafka's coordinator in its JVM",
                "steps a second",
                work=lambda: run_core(given),
                other=run_kafka,
            ),
        ]
    finally:
        target.close()
