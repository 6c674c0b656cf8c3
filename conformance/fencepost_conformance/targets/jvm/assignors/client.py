"""Asks Kafka's own classes for an assignor's result and for the meaning of embedded bytes.

Batches of questions go to a child process as lines, and the answers return as lines; ``Assignors.java`` has the format.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence

from fencepost.coordinator.consumer.assignors import AssignorError, GroupSpec
from fencepost.member.assignors.base import GroupMember
from fencepost.member.consumer_protocol import Assignment, SchemaError, Subscription
from fencepost.member.partitions import TopicPartition
from fencepost.protocol.events import Topic

from .. import jars
from ..builds import Build
from ..compiled import classes, sources
from ..process import LineProcess
from ..releases import NEWEST

NOTHING = '""'


class Raised(Exception):
    """Kafka's assignor raised an exception; the text is its name."""


class KafkaAssignors:
    """One JVM with the clients of one Kafka release; ``timed``: it compiles as a broker's does, so that times count.

    Raises ``CannotRun`` without a JDK or the jars."""

    def __init__(self, version: str = NEWEST, *, timed: bool = False) -> None:
        build = Build(version)
        libraries = build.libraries()
        compiled = classes("assignors", build, sources(__package__), libraries)
        path = os.pathsep.join(map(str, [compiled, *libraries]))
        self._child = LineProcess(
            [jars.java(), "-Xmx256m", *(() if timed else jars.SHORT_RUN), "-cp", path, "fencepost.assignors.Assignors"]
        )

    def close(self) -> None:
        self._child.close()

    def ask(self, questions: Sequence[str]) -> list[str]:
        """Return one answer for each question, in order; an answer that begins with ``!`` names Kafka's exception."""
        data = "".join(question + "\n" for question in questions).encode()
        return [line.decode() for line in self._child.exchange(data, len(questions))]


# --- questions ---


def assign(name: str, topics: Iterable[Topic], members: Mapping[str, GroupMember], remembering: str = "-") -> str:
    """Ask for an assignment. ``remembering``: a name for the assignor object to reuse; else a new one."""
    rows = ",".join(
        f"{_text(member_id)}:{_text(member.group_instance_id)}:{_subscription(member.subscription)}"
        for member_id, member in members.items()
    )
    cluster = ",".join(
        f"{_text(topic.name)}:{topic.partitions}:"
        + (";".join("|".join(map(_text, sorted(racks))) for racks in topic.racks) if topic.racks else "-")
        for topic in topics
    )
    return f"assign {name} {cluster or NOTHING} {rows or NOTHING} {remembering}"


def _subscription(value: Subscription) -> str:
    topics = "|".join(map(_text, value.topics)) or NOTHING
    owned = "|".join(f"{_text(topic)};{number}" for topic, number in value.owned_partitions) or NOTHING
    return f"{_text(value.rack_id)}:{topics}:{_bytes(value.user_data)}:{owned}:{value.generation_id}"


def target(name: str, spec: GroupSpec) -> str:
    """Ask for a server assignor's result for ``spec``, in all its orders."""
    topics = ",".join(f"{topic_id.hex()}:{count}" for topic_id, count in spec.topics.items())
    members = ",".join(
        f"{_text(member_id)}:{_text(member.instance_id)}:{_text(member.rack_id)}:"
        + ("|".join(topic_id.hex() for topic_id in sorted(member.topic_ids)) or NOTHING)
        + ":"
        + ("|".join(f"{topic_id.hex()}={';'.join(map(str, sorted(row)))}" for topic_id, row in member.assigned.items())
           or NOTHING)
        for member_id, member in spec.members.items()
    )  # fmt: skip
    return f"target {name} {spec.subscription_type.name} {topics or NOTHING} {members or NOTHING}"


def timed(question: str, rounds: int) -> str:
    """Ask for the nanoseconds of an ``assign`` or ``target``, in each of several rounds."""
    return f"time {rounds} {question}"


def order(names: Iterable[str]) -> str:
    """Ask in which order a coordinator whose members joined in this order passes them to a server assignor."""
    return f"order {','.join(map(_text, names)) or NOTHING}"


def user_data(name: str, received: Iterable[TopicPartition] | None, generation: int) -> str:
    """Ask for the user data of a member's next subscription after it received this; None: nothing yet."""
    return f"user-data {name} {'-' if received is None else _partitions(received)} {generation}"


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
    """Read the answer to ``assign``: the partitions of each member, in Kafka's order. Raises ``Raised``."""
    if answer.startswith("!"):
        raise Raised(answer[2:])
    if not answer:
        return {}
    rows = (word.split("=") for word in answer.split(" "))
    return {bytes.fromhex(member).decode(): _read_partitions(share) for member, share in rows}


def targets(answer: str) -> dict[str, dict[bytes, tuple[int, ...]]]:
    """Read the answer to ``target``: the partitions of each member by topic id. Raises ``AssignorError``."""
    if answer.startswith("!"):
        raise AssignorError(answer)
    rows = (row.split(":") for row in answer.split(",") if row)
    return {
        bytes.fromhex(member).decode(): {
            bytes.fromhex(topic): tuple(map(int, numbers.split(";")))
            for topic, numbers in (part.split("=") for part in share.split("|") if part)
        }
        for member, share in rows
    }


def seconds(answer: str) -> list[float]:
    """Read the answer to ``timed``, in seconds."""
    return [int(word) / 1e9 for word in _good(answer).split(" ")]


def names(answer: str) -> list[str]:
    """Read the answer to ``order``."""
    return [bytes.fromhex(word).decode() for word in answer.split(",") if word]


def data(answer: str) -> bytes | None:
    """Read the answer to ``user_data``."""
    return _read_bytes(_good(answer))


def written(answer: str) -> bytes:
    """Read the answer to a question about encoding. Raises ``SchemaError`` where Kafka raised."""
    return _read_bytes(_good(answer)) or b""


def subscription(answer: str) -> Subscription:
    topics, data, owned, generation, rack = _good(answer).split(" ")
    names = tuple(map(_read_text, topics[1:-1].split(","))) if topics != "[]" else ()
    rack_id = None if rack == "-" else _read_text(rack)
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


def _read_text(word: str) -> str:
    return bytes.fromhex(word.strip('"')).decode()


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
    return tuple(TopicPartition(_read_text(topic), int(number)) for topic, number in rows)
