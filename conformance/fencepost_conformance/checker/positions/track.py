"""From where one client may read one partition."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

#: What a client has given up it may have asked for just before: two of its connections are two streams, whose order the
#: recorder sees only roughly.
GRACE_MS: Final = 1_000


@dataclass(slots=True)
class Track:
    """``told``: offsets that the client was told to begin at, and has not begun at yet, with who told them.
    ``reached``: from its last Fetch to what that brought. ``resets``: whatever ListOffsets has ever told it: librdkafka
    begins there again, without asking, when nothing is committed. ``lost_ms``: when it gave the partition up."""

    told: dict[int, str] = field(default_factory=dict)
    reached: tuple[int, int] | None = None
    resets: set[int] = field(default_factory=set)
    lost_ms: int | None = None

    def gain(self) -> None:
        """The partition is the client's, and it knows of no position in it (K-SUB-02)."""
        self.told.clear()
        self.reached, self.lost_ms = None, None

    def may_begin_at(self, offset: int, by: str) -> None:
        """By a committed offset (K-POS-01) or a truncation (K-POS-07)."""
        self.told[offset] = by

    def may_reset_to(self, offset: int) -> None:
        """By the policy of the client (K-POS-03)."""
        self.resets.add(offset)
        self.told[offset] = "ListOffsets"

    def nothing_committed(self) -> None:
        """The client is to reset (K-POS-02)."""
        self.told.update(dict.fromkeys(self.resets, "an earlier ListOffsets"))

    def brought(self, behind: int) -> None:
        """The records of the last Fetch end before this offset; the client may have handed out some of them only."""
        if self.reached is not None:
            self.reached = self.reached[0], max(self.reached[1], behind)

    def fetches(self, offset: int, at_ms: int) -> bool:
        """The client reads from here; whether it may."""
        if self.lost_ms is not None and at_ms > self.lost_ms + GRACE_MS:
            return False
        if offset not in self.told and (self.reached is None or not self.reached[0] <= offset <= self.reached[1]):
            return False
        self.told.pop(offset, None)
        self.reached = offset, offset
        return True

    def allowed(self) -> tuple[str, ...]:
        """In words, from where it might have read."""
        if self.lost_ms is not None:
            return (f"nothing: it gave the partition up at {self.lost_ms} ms",)
        words = [f"from {offset}, which {by} told it" for offset, by in sorted(self.told.items())]
        if self.reached is not None:
            first, last = self.reached
            words.append(f"from {first}, as before" if first == last else f"from {first} to {last}, going on")
        return tuple(words) or ("nothing: no answer told it where to begin",)
