"""Asks Kafka's own classes what an assignor decides and what embedded bytes mean.

Batches of questions go to one child process as lines and come back as lines; see ``Assignors.java`` for their form.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import as_file, files

from fencepost.member.assignors.base import GroupMember
from fencepost.member.consumer_protocol import Assignment, SchemaError, Subscription
from fencepost.member.partitions import TopicPartition
from fencepost.protocol.events import Topic

from .. import jars
from ..process import LineProcess

SOURCE = "Assignors.java"
ARTIFACT = "org.apache.kafka:kafka-group-coordinator"  #: brings the clients of its release along


class KafkaAssignors:
    """One JVM with the clients of one Kafka release. Raises ``CannotRun`` without a JDK or without the jars."""

    def __init__(self, version: str = "4.3.1") -> None:
        libraries = jars.fetch(f"{ARTIFACT}:{version}")
        # Java runs a single source file as it is: it is compiled in memory, in about a second.
        self._source = as_file(files(__package__) / SOURCE)
        source = str(self._source.__enter__())
        path = os.pathsep.join(map(str, libraries))
        self._child = LineProcess([jars.java(), "-Xmx256m", "-cp", path, source])

    def close(self) -> None:
        self._child.close()
        self._source.__exit__(None, None, None)

    def ask(self, questions: Sequence[str]) -> list[str]:
        """One answer a question, in order; an answer that begins with ``!`` names Kafka's exception."""
        data = "".join(question + "\n" for question in questions).encode()
        return [line.decode() for line in self._child.exchange(data, len(questions))]


# --- questions ---


def assign(name: str, topics: Iterable[Topic], members: Mapping[str, GroupMember]) -> str:
    rows = ",".join(
        f"{_text(member_id)}:{_text(member.group_instance_id)}:{_text(member.subscription.rack_id)}:"
        + ("|".join(map(_text, member.subscription.topics)) or '""')
        for member_id, member in members.items()
    )
    cluster = ",".join(
        f"{_text(topic.name)}:{topic.partitions}:"
        + (";".join("|".join(map(_text, sorted(racks))) for racks in topic.racks) if topic.racks else "-")
        for topic in topics
    )
    return f"assign {name} {cluster or chr(34) * 2} {rows or chr(34) * 2}"


def write_subscription(subscription: Subscription, version: int) -> str:
    topics = ",".join(map(_text, subscription.topics)) or '""'
    owned = _partitions(subscription.owned_partitions)
    data, rack = _bytes(subscription.user_data), _text(subscription.rack_id)
    return f"write-subscription {version} {topics} {data} {owned} {subscription.generation_id} {rack}"


def write_assignment(assignment: Assignment, version: int) -> str:
    return f"write-assignment {version} {_partitions(assignment.partitions)} {_bytes(assignment.user_data)}"


def read_subscription(data: bytes) -> str:
    return f"read-subscription {_bytes(data)}"


def read_assignment(data: bytes) -> str:
    return f"read-assignment {_bytes(data)}"


# --- answers ---


def shares(answer: str) -> dict[str, tuple[TopicPartition, ...]]:
    """What ``assign`` was answered: the partitions of each member, in Kafka's order."""
    if not answer:
        return {}
    rows = (word.split("=") for word in answer.split(" "))
    return {bytes.fromhex(member).decode(): _read_partitions(share) for member, share in rows}


def written(answer: str) -> bytes:
    """What a writing question was answered. Raises ``SchemaError`` where Kafka raised."""
    return _read_bytes(_good(answer)) or b""


def subscription(answer: str) -> Subscription:
    topics, data, owned, generation, rack = _good(answer).split(" ")
    names = tuple(bytes.fromhex(word).decode() for word in topics[1:-1].split(",")) if topics != "[]" else ()
    rack_id = None if rack == "-" else bytes.fromhex(rack).decode()
    return Subscription(names, _read_bytes(data), _read_partitions(owned), int(generation), rack_id)


def assignment(answer: str) -> Assignment:
    partitions, data = _good(answer).split(" ")
    return Assignment(_read_partitions(partitions), _read_bytes(data))


def _good(answer: str) -> str:
    if answer.startswith("!"):
        raise SchemaError(answer)
    return answer


def _text(value: str | None) -> str:
    return "-" if value is None else value.encode().hex()


def _bytes(value: bytes | None) -> str:
    return "-" if value is None else value.hex() or '""'


def _read_bytes(word: str) -> bytes | None:
    return None if word == "-" else bytes.fromhex(word.strip('"'))


def _partitions(partitions: Iterable[TopicPartition]) -> str:
    return ",".join(f"{_text(topic)}:{number}" for topic, number in partitions) or '""'


def _read_partitions(word: str) -> tuple[TopicPartition, ...]:
    if word == "[]":
        return ()
    rows = (entry.split(":") for entry in word[1:-1].split(","))
    return tuple(TopicPartition(bytes.fromhex(topic).decode(), int(number)) for topic, number in rows)
