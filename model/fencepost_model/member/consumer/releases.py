"""What Kafka's consumer does differently in some releases (the table in ``switches``)."""

from __future__ import annotations

from collections.abc import Callable

from fencepost.protocol.errors import ErrorCode

from ...machines import UNSUBSCRIBED
from ..inputs import Partition
from .draft import ClientDraft


def count_after_leave(otherwise: Callable[[ClientDraft, ErrorCode], bool], d: ClientDraft, error: ErrorCode) -> bool:
    """Let the answer to a leave fail the consumer (N-TR-08), in most releases unless the group is unknown (V-94)."""
    gone = error is ErrorCode.GROUP_ID_NOT_FOUND and d.now.state == UNSUBSCRIBED
    return not gone or d.variant.unknown_group_counts


def give_up_again(
    otherwise: Callable[[ClientDraft], tuple[frozenset[Partition], bool]], d: ClientDraft
) -> tuple[frozenset[Partition], bool]:
    """Give up what the application's thread believes to be owned, as a member if there was an epoch since the last
    unsubscribe (N-CLOSE-01)."""
    return d.now.app_owned, d.now.in_since


def keep_callbacks(otherwise: Callable[[ClientDraft], None], d: ClientDraft) -> None:
    """Keep queued callbacks: they run although the partitions are reported as lost too (INV-CL-01)."""
