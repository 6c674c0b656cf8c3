"""Which field of an answer differs from what the model allows, with both values in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from typing import Any, Final, TypeVar

from fencepost.member.consumer_protocol import decode_assignment, decode_subscription
from fencepost.protocol.consumer_messages import TopicPartitions

from .ids import UNSEEN

T = TypeVar("T")
#: Names of topics by their ids, as far as the trace shows them.
TopicNames = Mapping[bytes, str]
#: The field of a difference that concerns the whole answer.
ANSWER: Final = "answer"


@dataclass(frozen=True, slots=True)
class Difference:
    """One field of an answer that differs. ``api`` with its version and ``of`` (the member, instance and connection)
    name the answer. ``seen`` and ``expected`` are the values of ``field`` in words; ``because`` is a clause that says
    why, or empty."""

    api: str
    version: int
    of: str
    field: str
    seen: str
    expected: str
    because: str = ""
    request: bool = False  #: it is a field of the request, and ``of`` its sender

    def sentence(self, rules: Iterable[str]) -> str:
        """Such as ``Heartbeat v4 answer to member id 'a': error_code is NONE; expected UNKNOWN_MEMBER_ID``."""
        why = f", because {self.because}" if self.because else ""
        cited = ", ".join(rules)
        link = "of" if self.request else "answer to"
        return (
            f"{self.api} v{self.version} {link} {self.of}: {self.field} is {self.seen}; "
            f"expected {self.expected}{why}{f' ({cited})' if cited else ''}"
        )

    @property
    def kind(self) -> str:
        """The common key of failures with one cause: the API, the field and, for error codes, both values."""
        values = f" {self.seen} → {self.expected}" if self.field == "error_code" else ""
        return f"{self.api} {self.field}{values}"


def closest(seen: object, allowed: Iterable[T]) -> T | None:
    """The one of several answers that differs in the fewest fields; for an error, one with that error."""

    def distance(answer: T) -> tuple[bool, int]:
        other = getattr(answer, "error_code", None) is not getattr(seen, "error_code", None)
        return other, sum(1 for _ in differing(seen, answer))

    return min(allowed, key=distance, default=None)


def differing(seen: Any, expected: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """The fields in which two answers differ: path, seen value, expected value. Rows of lists by their number."""
    if is_dataclass(seen) and type(seen) is type(expected) and not isinstance(seen, TopicPartitions):
        for each in fields(seen):
            name = f"{path}.{each.name}" if path else each.name
            yield from differing(getattr(seen, each.name), getattr(expected, each.name), name)
    elif _rows(seen) and _rows(expected) and len(seen) == len(expected):
        for number, (one, two) in enumerate(zip(seen, expected, strict=True)):
            yield from differing(one, two, f"{path}[{number}]")
    elif seen != expected:
        yield path or ANSWER, seen, expected


def _rows(value: object) -> bool:
    return (
        isinstance(value, tuple)
        and bool(value)
        and is_dataclass(value[0])
        and not isinstance(value[0], TopicPartitions)
    )


def in_words(field: str, value: Any, names: TopicNames) -> str:
    """A value of an answer in words: null, quoted strings, errors by name, assignments and subscriptions decoded."""
    if value is None:
        return "null"
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, str):
        return "a new member id" if UNSEEN in value else f'"{value}"'
    if isinstance(value, bytes):
        return _decoded(field.rpartition(".")[2], value)
    if isinstance(value, tuple):
        return _list(value, names)
    if is_dataclass(value):
        parts = (f"{each.name} {in_words(each.name, getattr(value, each.name), names)}" for each in fields(value))
        return ", ".join(parts)
    return str(value).lower() if isinstance(value, bool) else str(value)


def both_in_words(field: str, seen: Any, expected: Any, names: TopicNames) -> tuple[str, str]:
    """Two values in words; if the words are the same, also the bytes on the wire."""
    texts = in_words(field, seen, names), in_words(field, expected, names)
    if texts[0] == texts[1] and isinstance(seen, bytes) and isinstance(expected, bytes):
        return f"{texts[0]} in bytes {seen.hex()}", f"bytes {expected.hex()}"
    return texts


def _list(rows: tuple[Any, ...], names: TopicNames) -> str:
    if not rows:
        return "an empty list"
    if all(isinstance(row, TopicPartitions) for row in rows):
        topics = ((names.get(row.topic_id, row.topic_id.hex()), row.partitions) for row in rows)
        return partitions_text(topics)
    if all(hasattr(row, "member_id") for row in rows):
        return ", ".join(in_words("member_id", row.member_id, names) for row in rows)
    if all(hasattr(row, "topic_name") and hasattr(row, "partitions") for row in rows):
        return partitions_text((row.topic_name, row.partitions) for row in rows)
    return ", ".join(in_words("", row, names) for row in rows)


def partitions_text(topics: Iterable[tuple[str, Iterable[int]]]) -> str:
    """Such as ``orders 4,5; payments 0``."""
    text = "; ".join(f"{name} {','.join(map(str, sorted(numbers)))}" for name, numbers in sorted(topics))
    return text or "no partitions"


def _decoded(field: str, content: bytes) -> str:
    """Bytes as an assignment or a subscription of the consumer protocol, else in hexadecimal."""
    try:
        if field == "assignment":
            return partitions_of(content) if content else "no bytes"
        if field == "metadata":
            said = decode_subscription(content)
            return f"a subscription to {', '.join(said.topics) or 'nothing'}"
    except ValueError:
        pass
    text = content.hex()
    return f"bytes {text[:48]}{'…' if len(text) > 48 else ''} ({len(content)})" if content else "no bytes"


def partitions_of(content: bytes) -> str:
    """The partitions of an assignment in the consumer protocol. Raises ValueError."""
    topics: dict[str, set[int]] = {}
    for row in decode_assignment(content).partitions:
        topics.setdefault(row.topic, set()).add(row.partition)
    return partitions_text(topics.items())
