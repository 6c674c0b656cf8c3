"""Deviations of Kafka in the parts common to all groups: late operations, and the first image of topics.

In Kafka, an operation that fails answers its request without the group. A timeout runs its callback as if the append
had failed, although the record is in the log and may still be replicated: memory is restored, the log is not.
"""

from __future__ import annotations

from fencepost.protocol.errors import ErrorCode
from fencepost.quirks import HasQuirks, Next, quirk

from ..kernel import completion, topics
from ..kernel.state import Operation
from ..kernel.step import Step


@quirk("fault_timeout_undoes_memory", of=completion.give_up_waiting)
def undoes_memory(_: Next[None], step: Step, number: int, operation: Operation) -> None:
    """A write that times out counts as failed: its changes in memory are undone, while its record stays in the log,
    where every reload finds it (F-RT-09, C-SYNC-33, C-STATIC-06)."""
    completion.fail(step, number, operation, ErrorCode.REQUEST_TIMED_OUT)


@quirk("fault_parked_fail_early", of=completion.answers_failure)
def answers_parked_too(_: Next[bool], step: Step, operation: Operation) -> bool:
    """A JoinGroup or SyncGroup that wrote nothing is answered with the failure of earlier writes, while it still waits
    in the group (C-JOIN-70, F-RT-13)."""
    return True


@quirk("old_no_image_is_minus_one", of=topics.no_topics)
def version_before_all(_: Next[topics.TopicImage], state: HasQuirks) -> topics.TopicImage:
    """Up to 4.1 the empty image has version -1, so the first image counts as one with a new topic (V-43)."""
    return topics.TopicImage(version=-1, created=-1)
