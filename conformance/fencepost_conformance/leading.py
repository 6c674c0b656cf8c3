"""Who leads the partition, as far as events tell (F-LOAD-03): which loads are loads, and which losses are none.

A load that comes at an epoch that is known, or where the partition is led already, does nothing: the log and what is
known of it stay. Whoever keeps a log beside a coordinator asks here first.
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
        """Note the event; whether it is what it says. True for events that are about something else."""
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
        """Told after a load that was one, and whether there are groups now: if there are none though the records hold
        some, it has failed (F-REPLAY-13). Offsets and ends of transactions tell nothing: whether they make a group is
        another matter (F-REPLAY-04), and they fail no load by themselves."""
        last = {
            record.key: record.value for record in records if not isinstance(record.key, OffsetCommitKey | ControlKey)
        }
        self.owned = groups or all(value is None for value in last.values())
