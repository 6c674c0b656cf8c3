"""Asks Kafka's own serde for the meaning of bytes and the encoding of records.

Batches of questions go to a child process as lines, and the answers return as lines; ``Serde.java`` has the format.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from typing import Any

from fencepost.codec import RecordBytes
from fencepost.protocol.offset_records import OffsetCommitKey, OffsetCommitValue
from fencepost.protocol.records import Record

from .. import jars
from ..builds import Build
from ..compiled import classes, sources
from ..process import LineProcess
from ..releases import NEWEST
from ..text_form import id_to_text
from .json_form import as_json

Question = list[Any]
Answer = dict[str, Any]
_write = json.JSONEncoder(separators=(",", ":")).encode


class KafkaSerde:
    """One JVM with the serde of one Kafka release; ``timed``: it compiles as a broker's does, so that times count.

    Raises ``CannotRun`` without a JDK or the jars."""

    def __init__(self, version: str = NEWEST, *, timed: bool = False) -> None:
        build = Build(version)
        libraries = build.libraries()
        compiled = classes("serde", build, sources(__package__), libraries)
        path = os.pathsep.join(map(str, [compiled, *libraries]))
        self._child = LineProcess(
            [jars.java(), "-Xmx512m", *(() if timed else jars.SHORT_RUN), "-cp", path, "fencepost.serde.Serde"]
        )

    def close(self) -> None:
        self._child.close()

    def ask(self, questions: Sequence[Question]) -> list[Answer]:
        """Return one answer for each question, in order."""
        data = "".join(_write(question) + "\n" for question in questions).encode()
        return [json.loads(line) for line in self._child.exchange(data, len(questions))]


def read(key: bytes | None, value: bytes | None) -> Question:
    """Ask for the meaning of these bytes."""
    return ["read", _hex(key), _hex(value)]


def write(record: Record, version: int) -> Question:
    """Ask for the bytes of a record whose value has this version."""
    number, key, value = as_json(record)
    return ["write", number, key, version, value]


def commit(key: OffsetCommitKey, value: OffsetCommitValue) -> Question:
    """Ask for the bytes of a commit, in the version that Kafka chooses for it."""
    fields = [value.offset, value.leader_epoch, value.metadata, value.commit_timestamp, value.expire_timestamp]
    return ["commit", key.group, key.topic, key.partition, *fields, id_to_text(value.topic_id)]


def write_marker(committed: bool, coordinator_epoch: int) -> Question:
    """Ask for the bytes of a transaction's end."""
    return ["write marker", committed, coordinator_epoch]


def read_marker(key: bytes, value: bytes | None) -> Question:
    """Ask how a load reads a control record."""
    return ["read marker", _hex(key), _hex(value)]


def name(number: int) -> Question:
    """Ask for the name of the class of keys of this type."""
    return ["name", number]


def partition(group_id: str, partitions: int) -> Question:
    """Ask for the partition of a group, as Kafka's coordinator computes it (F-LOC-01)."""
    return ["partition", group_id, partitions]


def timed(rounds: int, records: Iterable[RecordBytes]) -> Question:
    """Ask for the nanoseconds to read and write all of these, for each round."""
    return ["time", rounds, [[_hex(key), _hex(value)] for key, value in records]]


def written(answer: Answer) -> RecordBytes | None:
    """Read the answer to ``write``, ``commit`` or ``write_marker``; None if Kafka raised."""
    if "refused" in answer:
        return None
    value = answer["value"]
    return bytes.fromhex(answer["key"]), None if value is None else bytes.fromhex(value)


def _hex(data: bytes | None) -> str | None:
    return None if data is None else data.hex()
