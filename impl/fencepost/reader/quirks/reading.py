"""What older consumers of Kafka do otherwise when they look for positions and records."""

from __future__ import annotations

from fencepost.protocol.partitions import TopicPartition
from fencepost.quirks import quirk

from .. import committed, handing, state
from ..events import Problem, ProblemKind
from ..state import Reader
from ..turn import Turn


@quirk("old_dropped_topic_is_read", of=state.is_subscribed)
def whatever_is_owned(reader: Reader, topic: str) -> bool:
    """In 4.0 a topic that is not subscribed to any more is read until it is taken away (V-81)."""
    return True


@quirk("old_revoked_is_initialised", of=state.not_initialised)
def only_untold(reader: Reader) -> frozenset[TopicPartition]:
    """Up to 4.1 a committed offset is looked up for a partition that is about to be revoked (V-82)."""
    return reader.membership.pending_callback


@quirk("fault_unknown_error_loses_records", of=handing.waits)
def at_once(turn: Turn, problem: Problem) -> bool:
    """A code that no fetch knows is thrown by the poll that has read what came before it: positions have moved, and
    nobody gets the records (K-FETCH-04)."""
    return problem.kind is not ProblemKind.ILLEGAL_STATE


@quirk("old_unknown_topic_fails_lookup", of=committed.unknown_passes)
def is_fatal(turn: Turn) -> bool:
    """Up to 4.1 an unknown topic or id ends a look-up of committed offsets (V-100)."""
    return False
