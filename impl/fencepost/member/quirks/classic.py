"""Differences of Kafka's classic consumer from the intended protocol."""

from __future__ import annotations

from fencepost.protocol.errors import ErrorCode
from fencepost.quirks import Next, quirk

from .. import answers
from ..turn import Turn


@quirk("fault_sync_load_is_thrown", of=answers.still_loading)
def loading_is_unexpected(_: Next[None], turn: Turn) -> None:
    """Throw from poll if a SyncGroup finds the coordinator loading, as for an unknown error code (K-ERR-02; the
    consumer's part of D-01)."""
    answers.unexpected(turn, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
