"""Deviations of Kafka in the parts common to all groups: late operations, and the first image of topics.

In Kafka, an operation that fails answers its request without the group. A timeout runs its callback as if the append
had failed, although the record is in the log and may still be replicated: memory is restored, the log is not.
"""

from __future__ import annotations

from fencepost.protocol.errors import ErrorCode
from fencepost.quirks import Next, quirk

from ..kernel import operations
from ..kernel.state import Operation
from ..kernel.step import Step


@quirk("fault_timeout_undoes_memory", of=operations.give_up_waiting)
def undoes_memory(_: Next[None], step: Step, number: int, operation: Operation) -> None:
    """A write that times out counts as failed: its changes in memory are undone, while its record stays in the log,
    where every reload finds it (F-RT-09, C-SYNC-33, C-STATIC-06)."""
    operations.fail(step, number, operation, ErrorCode.REQUEST_TIMED_OUT)
