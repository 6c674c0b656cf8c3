"""Deviations of Kafka in reading records of offsets."""

from __future__ import annotations

from fencepost.quirks import quirk

from ...kernel.replay import Replay
from ...offsets import replay


@quirk("fault_loaded_offset_makes_group", of=replay.meet_ownerless)
def makes_group(work: Replay, group_id: str) -> None:
    """Kafka creates a simple group immediately. If the group's own records begin with a tombstone, which is possible in
    a compacted log, the load may fail because of it (F-REPLAY-04, F-REPLAY-06)."""
    work.put(group_id, replay.simple_group(group_id, work.new_incarnation()))
