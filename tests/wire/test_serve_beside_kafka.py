"""The same script on a broker of Kafka 4.4.0 and on ``fencepost serve --profile kafka-4.4``: answers are compared."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest
from beside import play
from served import Served

from fencepost.wire import frames
from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.targets.broker import Broker
from fencepost_conformance.targets.jvm import jars
from fencepost_conformance.targets.jvm.releases import broker_artifacts
from fencepost_server.apis.table import ANNOUNCED, TABLE

pytestmark = [pytest.mark.broker, pytest.mark.slow]
RELEASE = "4.4.0"


def differences(one: Any, other: Any, path: str = "") -> list[str]:
    """Return the places where two answers differ, with both values."""
    if isinstance(one, dict) and isinstance(other, dict):
        names = sorted({*one, *other})
        return [row for name in names for row in differences(one.get(name), other.get(name), f"{path}.{name}")]
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = enumerate(zip(one, other, strict=True))
        return [row for at, (first, second) in pairs for row in differences(first, second, f"{path}[{at}]")]
    return [] if one == other else [f"{path}: Kafka {one!r}, here {other!r}"]


def versions(bootstrap: str) -> list[dict[str, int]]:
    """Return the APIs that a broker announces."""
    host, _, port = bootstrap.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.sendall(frames.framed(b"\x00\x12\x00\x00\x00\x00\x00\x01\xff\xff"))
        with connection.makefile("rb") as stream:
            answer = stream.read(int.from_bytes(stream.read(4), "big"))
    rows = frames.read_response("api_versions", 0, answer).api_keys
    return [{"api_key": row.api_key, "min_version": row.min_version, "max_version": row.max_version} for row in rows]


def test_answers_equal_kafkas() -> None:
    try:
        jars.fetch(*broker_artifacts(RELEASE))
    except CannotRun as reason:
        pytest.skip(str(reason).splitlines()[0])
    with Broker(RELEASE, initial_rebalance_delay_ms=0, offsets_partitions=4) as broker:
        announced = versions(broker.bootstrap)
        theirs = asyncio.run(play(broker.bootstrap, "Kafka"))
    options = ("--profile", "kafka-4.4", "--partitions", "4", "--setting", "group.initial.rebalance.delay.ms=0")
    with Served(*options, topics=()) as server:
        here = versions(server.bootstrap)
        ours = asyncio.run(play(server.bootstrap, "here"))
    assert here == [row for row in announced if row["api_key"] in TABLE] == ANNOUNCED
    found = [
        f"{words[:300]}\n    {row}"
        for (words, answer), (_, other) in zip(theirs.answers, ours.answers, strict=True)
        for row in differences(answer, other)
    ]
    assert found == []
    assert len(ours.answers) > 400
