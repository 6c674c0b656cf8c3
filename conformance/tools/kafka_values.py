"""Kafka's own values of everything that core, model and suite share, so that they cannot all be wrong together.

These are the defaults of all settings, and the bytes that Kafka reads and writes as embedded subscriptions and
assignments (section 10.1). ``conformance/evidence/kafka-values.json`` keeps them. One test compares the core with the
file, without a JVM, and another one compares the file with the classes of each release.

``python -m tools.kafka_values`` writes the file again.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from fencepost.member.settings import MemberSettings
from fencepost.protocol.embedded import (
    Assignment,
    SchemaError,
    Subscription,
    encode_assignment,
    encode_subscription,
)
from fencepost.protocol.kafka_names import BROKER_NAMES, text_of, value_of
from fencepost.protocol.partitions import TopicPartition
from fencepost.protocol.settings import Settings
from fencepost_conformance.common import repository
from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.judge.rulebook.standing import evidence_folder
from fencepost_conformance.targets.jvm.assignors import KafkaAssignors, client
from fencepost_conformance.targets.jvm.defaults import Defaults, ask_defaults
from fencepost_conformance.targets.jvm.releases import RELEASES

FILE = "kafka-values.json"
#: settings of a member by Kafka's names (G-CFG-41…43, 49, 50)
CONSUMER_NAMES = {
    "session_timeout_ms": "session.timeout.ms",
    "heartbeat_interval_ms": "heartbeat.interval.ms",
    "max_poll_interval_ms": "max.poll.interval.ms",
    "request_timeout_ms": "request.timeout.ms",
    "retry_backoff_ms": "retry.backoff.ms",
    "retry_backoff_max_ms": "retry.backoff.max.ms",
    "group_instance_id": "group.instance.id",
}
#: constants, by the name that the field has in one release or another (G-CFG-26, 27, 33)
CONSTANT_NAMES = {
    "new_member_join_timeout_ms": ("CLASSIC_GROUP_NEW_MEMBER_JOIN_TIMEOUT_MS",),
    "metadata_refresh_interval_ms": ("METADATA_REFRESH_INTERVAL_MS",),
    "regex_min_refresh_interval_ms": ("REGEX_BATCH_REFRESH_MIN_INTERVAL_MS", "REGEX_BATCH_REFRESH_INTERVAL_MS"),
}
VECTORS = 120
#: names whose order by code points differs from that by UTF-16 units, and that need one to four bytes a character
_NAMES = ("a", "t10", "t9", "B", "_", "ä", "\u0915\u094d", "\uffee", "\U0001f980", "x" * 249)


def ours(settings: Settings, member: MemberSettings) -> dict[str, dict[str, str]]:
    """Return the core's values where ``of_kafka`` returns Kafka's, by the core's names."""
    return {
        "broker": {name: text_of(name, getattr(settings, name)) for name in BROKER_NAMES},
        "consumer": {name: as_text(getattr(member, name)) for name in CONSUMER_NAMES}
        | {"assignors": ",".join(type(each).__name__ for each in member.assignors)},
        "constant": {name: as_text(getattr(settings, name)) for name in CONSTANT_NAMES},
    }


def of_kafka(defaults: Defaults) -> dict[str, dict[str, str]]:
    """Return the defaults of a release by the core's names, without those that the release lacks."""
    return {
        "broker": {
            name: text_of(name, value_of(kafka, defaults.broker[kafka]))
            for name, kafka in BROKER_NAMES.items()
            if kafka in defaults.broker
        },
        "consumer": {name: defaults.consumer[kafka] for name, kafka in CONSUMER_NAMES.items()}
        | {"assignors": defaults.consumer["partition.assignment.strategy"]},
        "constant": {
            name: next(defaults.constant[field] for field in fields if field in defaults.constant)
            for name, fields in CONSTANT_NAMES.items()
        },
    }


def as_text(value: object) -> str:
    """Return a value in the form in which Kafka's classes show it."""
    if value is None:
        return "null"
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def written(kafka: KafkaAssignors, seed: str = "values", count: int = VECTORS) -> list[dict[str, Any]]:
    """Return random subscriptions and assignments, each with the bytes that Kafka writes for it."""
    draw = Random(seed)
    rows = [(_subscription(draw), draw.randint(0, 4)) for _ in range(count)]
    shares = [(Assignment(each.owned_partitions, each.user_data), version) for each, version in rows]
    asked = [client.write_subscription(*row) for row in rows] + [client.write_assignment(*row) for row in shares]
    cases: list[tuple[Subscription | Assignment, int]] = [*rows, *shares]
    return [
        {"version": version, **_as_json(value), "bytes": client.written(answer).hex()}
        for (value, version), answer in zip(cases, kafka.ask(asked), strict=True)
    ]


def read(kafka: KafkaAssignors, seed: str = "values", count: int = VECTORS) -> list[dict[str, Any]]:
    """Return bytes, whole and damaged, each with Kafka's reading; None where it raises."""
    draw = Random(f"{seed} read")
    rows = [(draw.choice(("subscription", "assignment")), _bytes(draw)) for _ in range(count)]
    asks = {"subscription": client.read_subscription, "assignment": client.read_assignment}
    answers = kafka.ask([asks[kind](data) for kind, data in rows])
    return [
        {"as": kind, "bytes": data.hex(), "read": _read(kind, answer)}
        for (kind, data), answer in zip(rows, answers, strict=True)
    ]


def meant(row: dict[str, Any]) -> Subscription | Assignment:
    """Return the subscription or assignment in a row of ``written`` or a reading of ``read``."""
    data = row["user_data"]
    user_data = None if data is None else bytes.fromhex(data)
    pairs = tuple(TopicPartition(topic, number) for topic, number in row["partitions"])
    if "topics" not in row:
        return Assignment(pairs, user_data)
    return Subscription(tuple(row["topics"]), user_data, pairs, row["generation"], row["rack"])


def _as_json(value: Subscription | Assignment) -> dict[str, Any]:
    partitions = value.owned_partitions if isinstance(value, Subscription) else value.partitions
    row: dict[str, Any] = {
        "partitions": [list(pair) for pair in partitions],
        "user_data": None if value.user_data is None else value.user_data.hex(),
    }
    if isinstance(value, Subscription):
        row |= {"topics": list(value.topics), "generation": value.generation_id, "rack": value.rack_id}
    return row


def _read(kind: str, answer: str) -> dict[str, Any] | None:
    try:
        return _as_json(client.subscription(answer) if kind == "subscription" else client.assignment(answer))
    except SchemaError:
        return None


def _subscription(draw: Random) -> Subscription:
    owned = {
        TopicPartition(draw.choice(_NAMES), draw.choice((0, 1, 300, 2**31 - 1))) for _ in range(draw.randint(0, 6))
    }
    order = sorted(owned)
    draw.shuffle(order)
    return Subscription(
        tuple(draw.sample(_NAMES, draw.randint(0, 5))),
        draw.choice([None, b"", b"data", bytes(range(256))]),
        tuple(order),
        draw.choice((-(2**31), -2, -1, 0, 5, 2**31 - 1)),
        draw.choice([None, "r1", "\U0001f980"]),
    )


#: of the same length each, so that one may replace the other in encoded bytes: two names become one (A-EMB-11), or a
#: name becomes malformed, by a surrogate or by bytes that no encoder writes (A-EMB-10)
_EXCHANGED = (
    (b"_", b"a"),
    (b"B", b"a"),
    ("ä".encode(), b"\xed\xa4"),
    ("\uffee".encode(), b"\xed\xa0\x80"),
    ("\U0001f980".encode(), b"\xed\xb0\x41\xed"),
    ("\U0001f980".encode(), b"\xf4\x90\x80\x80"),
)


def _bytes(draw: Random) -> bytes:
    """Draw an encoded subscription or assignment of any version, in most cases damaged."""
    each = _subscription(draw)
    data = (
        encode_subscription(replace(each, rack_id=draw.choice((each.rack_id, ""))), draw.randint(0, 4))
        if draw.random() < 0.6
        else encode_assignment(Assignment(each.owned_partitions, each.user_data), draw.randint(0, 4))
    )
    for name, other in _EXCHANGED:
        if draw.random() < 0.3:
            data = data.replace(name, other)
    kind = draw.random()
    if kind < 0.2:
        return data[: draw.randint(0, len(data))]
    if kind < 0.3:
        return data + draw.randbytes(draw.randint(1, 9))
    if kind < 0.6:
        spoiled = bytearray(data)
        for _ in range(draw.randint(1, 5)):
            spoiled[draw.randrange(len(spoiled))] = draw.choice(
                (0, 1, 0x41, 0x7F, 0x80, 0xA0, 0xBF, 0xC2, 0xE0, 0xF0, 0xFF)
            )
        return bytes(spoiled)
    return data


def evidence(releases: Iterable[str] = RELEASES) -> dict[str, Any]:
    """Ask the releases again for everything in the file; the last one writes and reads the bytes."""
    names = tuple(releases)
    kafka = KafkaAssignors(names[-1])
    try:
        return {
            "defaults": {release: of_kafka(ask_defaults(release)) for release in names},
            "embedded": {"kafka": names[-1], "written": written(kafka), "read": read(kafka)},
        }
    finally:
        kafka.close()


def kept(root: Path) -> dict[str, Any]:
    """Return the contents of the file."""
    held: dict[str, Any] = json.loads((evidence_folder(root) / FILE).read_text(encoding="utf-8"))
    return held


def main(words: Sequence[str]) -> None:
    root = repository.root()
    try:
        document = evidence(words or RELEASES)
    except CannotRun as reason:
        raise SystemExit(f"values: {reason}") from None
    folder = evidence_folder(root)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / FILE).write_text(json.dumps(document, indent=0, ensure_ascii=True) + "\n", encoding="utf-8")
    print(f"wrote {FILE}: defaults of {', '.join(document['defaults'])}, {2 * 2 * VECTORS} embedded values")


if __name__ == "__main__":
    main(sys.argv[1:])
