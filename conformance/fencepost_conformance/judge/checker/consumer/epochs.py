"""Bounds of the group epoch and of the epoch of the target assignment.

The trace shows neither, but they only grow (INV-KIP-04), and the trace shows what makes them grow:

* *Lower bound.* The epoch of any member is at most that of the target (INV-KIP-03). After a change that must raise the
  group's epoch (M-EPOCH-01, 02, 04), the first request at or after the assignment interval computes a target for it
  (M-TGT-01, M-TGT-08).
* *Upper bound.* Each epoch has its cause: a request that may bump it, a member that may have been removed, topics that
  changed, a regex that was resolved. The number of all possible causes is at least the epoch.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from fencepost.protocol.settings import Settings

from ..search import Limits


@dataclass(slots=True)
class Epochs:
    """The bounds of one group. ``seen``: the target's epoch is at least this. ``due``: pairs of a time and the epoch
    that the target has at least, once a request after that time computes it. ``anew``: up to this line the group may
    have been replaced, so answers to earlier requests may be about the previous group. ``deleted``: the same for a
    check for expired offsets, which deletes an empty group."""

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

    def answered(self, epoch: int, sent: int, *, inside: bool = False) -> None:
        """Note that the answer to the request of line ``sent`` shows this epoch. ``inside``: its member is certainly in
        the group now, so that the group was not deleted since."""
        if sent > self.anew and (inside or sent > self.deleted):
            self.seen = max(self.seen, epoch)

    def computed(self, now: int) -> None:
        """Note that a request that computes a target, sent at this time, was answered."""
        self.seen = self.floor(now)
        self.due = [(due, epoch) for due, epoch in self.due if epoch > self.seen]

    def bumped(self, before: int, answered_ms: int, sent: int) -> None:
        """Note that the request of line ``sent`` certainly raised the group's epoch.

        The target's epoch was at least ``before`` when it was sent.
        """
        if sent <= max(self.anew, self.deleted):
            return
        interval = self.settings.group_consumer_assignment_interval_ms
        self.due.append((answered_ms + interval + self.limits.tolerance_ms, before + 1))

    def may_bump(self, times: int = 1) -> None:
        self.ceiling += times

    def may_be_deleted(self, line: int) -> None:
        """Note that a check for expired offsets may have deleted the group (O-EXP-20); a new one starts at epoch 0."""
        self.seen, self.deleted = 0, line
        self.due.clear()

    def begin_anew(self, line: int) -> None:
        """Note that a new group, which starts at epoch 0, may have replaced it (C-JOIN-10, C-JOIN-15, M-VAL-22)."""
        self.seen, self.anew = 0, line
        self.due.clear()
