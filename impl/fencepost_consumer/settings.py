"""Configuration of a reader (1.5, client part). Times in milliseconds."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from fencepost.member.settings import ClientSettings
from fencepost.protocol.settings import BadSettings
from fencepost_consumer.rules import ReaderRules, reader_rules_of


class Client(Enum):
    """The client whose behaviour a reader follows: Java's two consumers, or kafka-python according to article S1."""

    CLASSIC = "classic"  #: ``ClassicKafkaConsumer`` (K-POLL-01)
    CONSUMER = "consumer"  #: ``AsyncKafkaConsumer``, of KIP-848 groups (N-POLL-01)
    KAFKA_PYTHON = "kafka-python"  #: its polls, positions and buffer (K-PY-01…04)


class Reset(Enum):
    """Where to start without a committed offset (G-CFG-46)."""

    EARLIEST = "earliest"
    LATEST = "latest"
    BY_DURATION = "by_duration"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class ResetPolicy:
    """``auto.offset.reset``; ``duration_ms`` is used only with ``BY_DURATION``."""

    reset: Reset = Reset.LATEST
    duration_ms: int = 0

    def timestamp(self, now: int) -> int:
        """Return the timestamp for ListOffsets: the time, or Kafka's special values for the two ends (K-POS-02)."""
        match self.reset:
            case Reset.EARLIEST:
                return -2
            case Reset.BY_DURATION:
                return now - self.duration_ms
            case _:
                return -1


_DURATION: Final = re.compile(
    r"P(?:(?P<days>\d+)D)?(?:T(?=\d)(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+)(?:\.(?P<part>\d+))?S)?)?",
    re.IGNORECASE,
)


def reset_policy(text: str) -> ResetPolicy:
    """Parse a policy of Kafka's configuration: ``earliest``, ``latest``, ``none``, ``by_duration:P3D`` (K-POS-02).

    Raises ``BadSettings`` for anything else, also for a negative duration."""
    word, _, rest = text.partition(":")
    plain = {each.value: each for each in Reset if each is not Reset.BY_DURATION}
    if not rest and word.lower() in plain:
        return ResetPolicy(plain[word.lower()])
    found = _DURATION.fullmatch(rest)
    if word.lower() != Reset.BY_DURATION.value or found is None or not any(found.groups()):
        raise BadSettings(
            f"reset policy must be earliest, latest, none, or by_duration:<ISO-8601 duration, as P3D> (got {text!r})"
        )
    days, hours, minutes, seconds = (int(found[name] or 0) for name in ("days", "hours", "minutes", "seconds"))
    whole = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    return ResetPolicy(Reset.BY_DURATION, whole * 1_000 + int((found["part"] or "").ljust(3, "0")[:3]))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderSettings(ClientSettings):
    """Settings of a reader. ``group_id`` ``""``: the consumer has no group. ``read_committed``: the isolation level,
    for lag and fetches.

    Raises ``BadSettings`` for values that Kafka's consumer rejects, as automatic commits without a group (G-CFG-45)."""

    client: Client = Client.CLASSIC
    reset: ResetPolicy = ResetPolicy()
    max_poll_records: int = 500  # G-CFG-44
    auto_commit_interval_ms: int = 5_000  # G-CFG-45
    default_api_timeout_ms: int = 60_000
    reconnect_backoff_ms: int = 50
    metadata_max_age_ms: int = 300_000
    read_committed: bool = False
    reading_rules: ReaderRules = field(init=False, repr=False, compare=False)  #: of the profile

    def __post_init__(self) -> None:
        ClientSettings.__post_init__(self)
        object.__setattr__(self, "reading_rules", reader_rules_of(self.profile))
        if self.auto_commit and not self.group_id:
            raise BadSettings("auto_commit needs a group_id (got an empty one)")  # G-CFG-45
        if self.max_poll_records < 1:
            raise BadSettings(f"max_poll_records must be >= 1 (got {self.max_poll_records})")
