"""Deviations of Kafka in loading a partition."""

from __future__ import annotations

from collections.abc import Container, Sequence

from fencepost.protocol.embedded import PROTOCOL_TYPE
from fencepost.protocol.records import Record
from fencepost.quirks import HasQuirks, Next, quirk

from .. import lifecycle, replay
from ..kernel.replay import Replay
from ..kernel.step import Step
from .readable import read_topics


@quirk("fault_superseded_records_loaded", of=replay.superseded)
def superseded_too(_: Next[Container[int]], replayed: HasQuirks, log: Sequence[Record]) -> Container[int]:
    """Kafka applies every record that it reads. If the log is compacted meanwhile, it passes through states that never
    existed. One of them may be impossible, and then the load fails (F-REPLAY-18, M-PE-02, F-REPLAY-06)."""
    return ()


@quirk("fault_bad_subscription_is_thrown", of=lifecycle.take_up)
def reads_subscriptions(call_next: Next[None], step: Step, replayed: Replay, record: Record) -> None:
    """Kafka reads the topics that the members of a classic group subscribe to. Impossible lengths in one subscription
    raise an exception that is not caught, and the whole partition is not loaded (G-DATA-10, V-124)."""
    call_next(step, replayed, record)
    value = record.group_metadata
    if value is not None and value.protocol_type == PROTOCOL_TYPE and value.protocol is not None:
        logged = {member.member_id: member.subscription for member in value.members}
        read_topics(step.choices, record.key.group, logged, lengths_throw=True)
