"""Bounds of the group epoch and of the epoch of the target assignment.

Neither is told, but they only grow (INV-KIP-04), and what makes them grow is seen:

* *from below*. The epoch of any member is at most that of the target (INV-KIP-03). A change that must raise the group's
  epoch (M-EPOCH-01, 02, 04) is followed by a target for it in the first request at or after the assignment interval
  (M-TGT-01, M-TGT-08).
* *from above*. Each epoch has its cause: a request that may bump, a member that may have ended, topics that changed, a
  regex that was resolved. Counting every possible cause gives more than there can be.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from fencepost.protocol.settings import Settings

from ..search import Limits


@dataclass(slots=True)
class Epochs:
    """``seen``: the target's epoch is at least this. ``due``: from a time on, the epoch is at least that, once a
    request computes. ``anew``: the line until which the group may have been replaced: answers to earlier requests may
    speak of the group before. ``deleted``: the same of a look for expired offsets, which deletes an empty group."""

    settings: Settings
    limits: Limits
    seen: int = 0
    ceiling: int = 1
    due: list[tuple[int, int]] = field(default_factory=list)
    anew: int = -1
    deleted: int = -1

    def floor(self, now: int) -> int:
        """The least epoch of the target after a request that computes and was sent at this time."""
        return max([self.seen, *[epoch for due, epoch in self.due if due < now]])

    def told(self, epoch: int, sent: int, *, inside: bool = False) -> None:
        """An answer to the request of line ``sent`` shows this epoch. ``inside``: its member is certainly in the group
        now, so that the group was not deleted since."""
        if sent > self.anew and (inside or sent > self.deleted):
            self.seen = max(self.seen, epoch)

    def computed(self, now: int) -> None:
        """A request that computes, sent at this time, was answered."""
        self.seen = self.floor(now)
        self.due = [(due, epoch) for due, epoch in self.due if epoch > self.seen]

    def bumped(self, before: int, answered_ms: int, sent: int) -> None:
        """The request of line ``sent`` certainly raised the group's epoch.

        The target's epoch was at least ``before`` when it was sent.
        """
        if sent <= max(self.anew, self.deleted):
            return
        interval = self.settings.group_consumer_assignment_interval_ms
        self.due.append((answered_ms + interval + self.limits.tolerance_ms, before + 1))

    def may_bump(self, times: int = 1) -> None:
        self.ceiling += times

    def may_be_deleted(self, line: int) -> None:
        """A look for expired offsets may have deleted the group (O-EXP-20); the next one counts from the start."""
        self.seen, self.deleted = 0, line
        self.due.clear()

    def begin_anew(self, line: int) -> None:
        """The group may have been replaced by one that counts from the start (C-JOIN-10, C-JOIN-15, M-VAL-22)."""
        self.seen, self.anew = 0, line
        self.due.clear()
