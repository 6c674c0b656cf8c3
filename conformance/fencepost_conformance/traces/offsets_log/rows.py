"""One record of the offsets topic as bytes, and what a reader of the topic could not read."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from fencepost.protocol.offset_records import Producer

TOPIC: Final = "__consumer_offsets"
#: the timestamp of a record without one
NO_TIME: Final = -1
#: different notices to keep; the rest is counted
_MOST: Final = 100


class LogRow(NamedTuple):
    """A record of the log. ``at_ms``: its timestamp; ``producer``: of its transaction; ``control``: it is in a control
    batch."""

    partition: int
    offset: int
    at_ms: int
    key: bytes | None
    value: bytes | None
    producer: Producer | None = None
    control: bool = False


@dataclass(slots=True)
class Notices:
    """The reasons why records could not be read, each once."""

    counts: Counter[str] = field(default_factory=Counter)
    left_out: int = 0

    def add(self, sentence: str, times: int = 1) -> None:
        """Note a sentence."""
        if sentence in self.counts or len(self.counts) < _MOST:
            self.counts[sentence] += times
        else:
            self.left_out += times

    def extend(self, later: Notices) -> None:
        """Note the sentences of a later part."""
        for sentence, times in later.counts.items():
            self.add(sentence, times)
        self.left_out += later.left_out

    def lines(self) -> list[str]:
        """Return the sentences, with the number of times that each was noted."""
        lines = [f"{text} ({count:,} times)" if count > 1 else text for text, count in self.counts.items()]
        return [*lines, f"and {self.left_out:,} more notices"] if self.left_out else lines
