"""What Kafka does otherwise in classic groups."""

from __future__ import annotations

from fencepost.quirks import quirk

from ..classic import sync
from ..classic.draft import GroupDraft
from ..kernel.step import Step


@quirk("fault_every_leader_sync_appends", of=sync.starts_append)
def every_sync_appends(step: Step, group: GroupDraft) -> bool:
    """Each SyncGroup of the leader appends an assignment: the first one that is replicated is handed out, the last one
    is what a reload restores (C-SYNC-19, F-SURV-05)."""
    return True
