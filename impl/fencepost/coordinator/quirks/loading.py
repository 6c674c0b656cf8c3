"""Deviations of Kafka in loading a partition."""

from __future__ import annotations

from fencepost.protocol.embedded import PROTOCOL_TYPE
from fencepost.protocol.records import Record
from fencepost.quirks import Next, quirk

from .. import lifecycle
from ..kernel.replay_context import Replay
from ..kernel.step import Step
from .readable import read_topics


@quirk("fault_bad_subscription_is_thrown", of=lifecycle.take_up)
def reads_subscriptions(call_next: Next[None], step: Step, replayed: Replay, record: Record) -> None:
    """Kafka reads the topics that the members of a classic group subscribe to. Impossible lengths in one subscription
    raise an exception that is not caught, and the whole partition is not loaded (G-DATA-10, V-124)."""
    call_next(step, replayed, record)
    value = record.group_metadata
    if value is not None and value.protocol_type == PROTOCOL_TYPE and value.protocol is not None:
        logged = {member.member_id: member.subscription for member in value.members}
        read_topics(step.choices, record.key.group, logged, lengths_throw=True)
