"""The leadership of the partition, as far as events show it (F-LOAD-03): which loads and losses take effect.

A load with a known epoch, or while the partition is led, has no effect: the log and its state stay. Code that keeps a
log beside a coordinator must ask here first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fencepost.protocol import events as ev
from fencepost.protocol.offset_records import ControlKey, OffsetCommitKey
from fencepost.protocol.records import Record


@dataclass(slots=True)
class Leading:
    """``known``: the leader epoch that the coordinator knows; -1: none (F-LOAD-08)."""

    known: int = -1
    owned: bool = False
    loading: bool = False

    def takes(self, event: ev.Event) -> bool:
        """Note the event, and return whether it takes effect. True for events about something else."""
        if isinstance(event, ev.LoadStarted):
            return self._elected(event.leader_epoch)
        if isinstance(event, ev.Load):
            if not self.loading and not self._elected(event.leader_epoch):
                return False
            self.owned, self.loading = True, False
        elif isinstance(event, ev.LoadFailed):
            self.loading = False
        elif isinstance(event, ev.Unload):
            if event.leader_epoch is not None and event.leader_epoch <= self.known:
                return False
            self.owned, self.loading, self.known = False, False, -1
        return True

    def _elected(self, epoch: int) -> bool:
        if epoch <= self.known:
            return False
        self.known = epoch
        self.loading = not self.owned
        return self.loading

    def loaded(self, records: Sequence[Record], *, groups: bool) -> None:
        """Note the result of a load that took effect. ``groups``: there are groups now. If there are none although the
        records contain some, the load has failed (F-REPLAY-13). Offsets and ends of transactions do not count: whether
        they create a group is another question (F-REPLAY-04), and they do not make a load fail."""
        last = {
            record.key: record.value for record in records if not isinstance(record.key, OffsetCommitKey | ControlKey)
        }
        self.owned = groups or all(value is None for value in last.values())
