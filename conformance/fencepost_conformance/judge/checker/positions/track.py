"""The offsets from which one client may read one partition."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

#: How long after it gave a partition up a client may still fetch from it. It may have sent the Fetch just before, on
#: another connection, and the recorder sees the order of two connections only roughly.
GRACE_MS: Final = 1_000


@dataclass(slots=True)
class Track:
    """The possible positions. ``beginnings``: offsets from answers at which the client may begin, and has not begun
    yet, each with the API of the answer. ``reached``: from the offset of its last Fetch to the end of the records that
    it got. ``resets``: all offsets from ListOffsets: if none is committed, librdkafka begins at one of them again
    without asking. ``lost_ms``: when it gave the partition up."""

    beginnings: dict[int, str] = field(default_factory=dict)
    reached: tuple[int, int] | None = None
    resets: set[int] = field(default_factory=set)
    lost_ms: int | None = None

    def gain(self) -> None:
        """Note that the client gets the partition, and has no position in it yet (K-SUB-02)."""
        self.beginnings.clear()
        self.reached, self.lost_ms = None, None

    def may_begin_at(self, offset: int, by: str) -> None:
        """Note a committed offset (K-POS-01) or a truncation (K-POS-07); ``by``: the API of the answer."""
        self.beginnings[offset] = by

    def may_reset_to(self, offset: int) -> None:
        """Note an offset to which the client's reset policy may lead (K-POS-03)."""
        self.resets.add(offset)
        self.beginnings[offset] = "ListOffsets"

    def nothing_committed(self) -> None:
        """Note that no offset is committed, so the client must reset (K-POS-02)."""
        self.beginnings.update(dict.fromkeys(self.resets, "an earlier ListOffsets"))

    def brought(self, behind: int) -> None:
        """Note that the records of the last Fetch end before this offset. The client may have handed out only some."""
        if self.reached is not None:
            self.reached = self.reached[0], max(self.reached[1], behind)

    def fetches(self, offset: int, at_ms: int) -> bool:
        """Note a Fetch from this offset; False if the client may not read from there."""
        if self.lost_ms is not None and at_ms > self.lost_ms + GRACE_MS:
            return False
        if offset not in self.beginnings and (self.reached is None or not self.reached[0] <= offset <= self.reached[1]):
            return False
        self.beginnings.pop(offset, None)
        self.reached = offset, offset
        return True

    def allowed(self) -> tuple[str, ...]:
        """The possible positions in words."""
        if self.lost_ms is not None:
            return (f"nothing: it gave the partition up at {self.lost_ms} ms",)
        words = [f"from {offset}, the answer to {by}" for offset, by in sorted(self.beginnings.items())]
        if self.reached is not None:
            first, last = self.reached
            behind = f"from {first} to {last}, behind earlier records"
            words.append(f"from {first}, again" if first == last else behind)
        return tuple(words) or ("nothing: no answer gave it an offset to begin at",)
