"""Deviations of Kafka in reading offsets."""

from __future__ import annotations

from fencepost.protocol.errors import ErrorCode
from fencepost.quirks import quirk

from ...kernel.step import Step
from ...offsets import validation


@quirk("fault_fetch_without_member_fails", of=validation.nameless)
def looks_up_nobody(step: Step) -> ErrorCode:
    """Kafka looks up a member without a name, which fails (O-FETCH-05)."""
    return ErrorCode.UNKNOWN_SERVER_ERROR
