"""JVMs that the tests of one process share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from functools import cache

import pytest
from jvm_traces import KafkaOf, require_harness

from fencepost_conformance.targets.kafka_jvm import KafkaJvm


@pytest.fixture(scope="session")
def kafka_of() -> Iterator[KafkaOf]:
    """Return Kafka's coordinator of a release; skip the test if it cannot run.

    A JVM takes a second of processor time to start, so the tests of a process share one for each release. Each trace
    begins with a new coordinator in it.
    """
    with ExitStack() as opened:

        @cache
        def of(release: str) -> KafkaJvm:
            require_harness(release)
            return opened.enter_context(KafkaJvm(release))

        yield of
