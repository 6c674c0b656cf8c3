"""The kept values of Kafka's classes are current: defaults of settings, embedded bytes written and read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from random import SystemRandom

import pytest

from fencepost.protocol.embedded import (
    SchemaError,
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from fencepost_conformance.common import repository
from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.targets.jvm.assignors import KafkaAssignors
from fencepost_conformance.targets.jvm.defaults import ask_defaults
from tools import kafka_values as values

pytestmark = pytest.mark.jvm
KEPT = values.kept(repository.root())
NEWEST = max(KEPT["defaults"])
FRESH = 2_000
AssignorsOf = Callable[[str], AbstractContextManager[KafkaAssignors]]


@pytest.fixture(scope="module", params=["4.0.2", NEWEST])
def kafka(request: pytest.FixtureRequest, assignors_of: AssignorsOf) -> Iterator[KafkaAssignors]:
    with assignors_of(request.param) as asked:
        yield asked


@pytest.mark.parametrize("release", ["4.0.2", NEWEST])
def test_kept_defaults_match_the_release(release: str) -> None:
    try:
        defaults = ask_defaults(release)
    except CannotRun as reason:
        pytest.skip(str(reason))
    assert values.of_kafka(defaults) == KEPT["defaults"][release]


def test_kept_bytes_match_kafkas(kafka: KafkaAssignors) -> None:
    assert values.written(kafka) == KEPT["embedded"]["written"]
    assert values.read(kafka) == KEPT["embedded"]["read"]


def test_fresh_bytes_are_read_and_written_alike(kafka: KafkaAssignors) -> None:
    seed = str(SystemRandom().getrandbits(32))
    for row in values.written(kafka, seed, FRESH):
        value, version = values.meant(row), row["version"]
        encoded = (
            encode_subscription(value, version)
            if isinstance(value, Subscription)
            else encode_assignment(value, version)
        )
        assert encoded.hex() == row["bytes"], f"seed {seed}: {value}, version {version}"
    for row in values.read(kafka, seed, FRESH):
        decode = decode_subscription if row["as"] == "subscription" else decode_assignment
        try:
            mine = decode(bytes.fromhex(row["bytes"]))
        except SchemaError:
            assert row["read"] is None, f"seed {seed}: Kafka reads {row['bytes']}"
        else:
            assert row["read"] is not None, f"seed {seed}: Kafka refuses {row['bytes']}"
            assert mine == values.meant(row["read"]), f"seed {seed}: {row['bytes']}"
