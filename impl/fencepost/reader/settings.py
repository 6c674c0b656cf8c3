"""What the reading half of a consumer configures (1.5, client part). Times in milliseconds."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import Final

from fencepost.member.settings import ClientSettings
from fencepost.protocol.settings import BadSettings


class Client(Enum):
    """Whose order of things is kept: that of Java's two consumers, or that of kafka-python as article S1 has it."""

    CLASSIC = "classic"  #: ``ClassicKafkaConsumer`` (K-POLL-01)
    CONSUMER = "consumer"  #: ``AsyncKafkaConsumer``, of KIP-848 groups (N-POLL-01)
    KAFKA_PYTHON = "kafka-python"  #: its polls, positions and buffer (K-PY-01…04)


class Reset(Enum):
    """Where to begin without a committed offset (G-CFG-46)."""

    EARLIEST = "earliest"
    LATEST = "latest"
    BY_DURATION = "by_duration"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class ResetPolicy:
    """``auto.offset.reset``; ``duration_ms`` counts for ``BY_DURATION`` alone."""

    reset: Reset = Reset.LATEST
    duration_ms: int = 0

    def timestamp(self, now: int) -> int:
        """What ListOffsets is asked for: the time, or Kafka's numbers for the two ends (K-POS-02)."""
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
    """The policy as Kafka's configuration writes it: ``earliest``, ``latest``, ``none``, ``by_duration:P3D``
    (K-POS-02).

    Raises ``BadSettings`` for anything else, also for a negative duration."""
    word, _, rest = text.partition(":")
    plain = {each.value: each for each in Reset if each is not Reset.BY_DURATION}
    if not rest and word.lower() in plain:
        return ResetPolicy(plain[word.lower()])
    found = _DURATION.fullmatch(rest)
    if word.lower() != Reset.BY_DURATION.value or found is None or not any(found.groups()):
        raise BadSettings(
            f"{text!r} is no reset policy: earliest, latest, none, or by_duration: and an ISO-8601 duration"
        )
    days, hours, minutes, seconds = (int(found[name] or 0) for name in ("days", "hours", "minutes", "seconds"))
    whole = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    return ResetPolicy(Reset.BY_DURATION, whole * 1_000 + int((found["part"] or "").ljust(3, "0")[:3]))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderSettings(ClientSettings):
    """What a consumer configures about reading; ``group_id`` ``""``: it has no group.

    ``read_committed``: the isolation level, for lag and fetches. Raises ``BadSettings`` where Kafka's consumer refuses
    it: automatic commits without a group (G-CFG-45)."""

    client: Client = Client.CLASSIC
    reset: ResetPolicy = ResetPolicy()
    max_poll_records: int = 500  # G-CFG-44
    auto_commit_interval_ms: int = 5_000  # G-CFG-45
    default_api_timeout_ms: int = 60_000
    reconnect_backoff_ms: int = 50
    metadata_max_age_ms: int = 300_000
    read_committed: bool = False

    def __post_init__(self) -> None:
        ClientSettings.__post_init__(self)
        if self.auto_commit and not self.group_id:
            raise BadSettings("automatic commits need a group id")  # G-CFG-45
        if self.max_poll_records < 1:
            raise BadSettings("a poll hands out at least one record")
