"""What Kafka's classic consumer does otherwise."""

from __future__ import annotations

from fencepost.protocol.errors import ErrorCode
from fencepost.quirks import quirk

from .. import answers
from ..turn import Turn


@quirk("fault_sync_load_is_thrown", of=answers.still_loading)
def loading_is_unexpected(turn: Turn) -> None:
    """A SyncGroup that finds the coordinator loading throws out of poll, as if the code meant nothing (K-ERR-02, the
    consumer's side of D-01)."""
    answers.unexpected(turn, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
