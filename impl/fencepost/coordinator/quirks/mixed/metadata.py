"""The metadata bytes of members, and when they are read."""

from __future__ import annotations

from collections.abc import Iterable

from fencepost.protocol.embedded import LengthError, SchemaError
from fencepost.protocol.events import Request
from fencepost.protocol.messages import Protocol
from fencepost.quirks import intended, quirk

from ...classic.group import ClassicGroup, ClassicMember
from ...kernel.errors import InternalError, Rejected
from ...kernel.step import Step
from ...mixed import classic_join, classic_sync, embedded, upgrade


@quirk("fault_downgrade_reads_unread_metadata", of=embedded.require_readable)
def reads_no_further(step: Step, protocols: Iterable[Protocol]) -> None:
    """Kafka reads only what it needs at once: for a JoinGroup the first protocol, for an upgrade the selected one. A
    later downgrade or a SyncGroup may fail on the others (X-DOWN-09, X-SYNC-07)."""


@quirk("fault_downgrade_reads_unread_metadata", of=classic_sync.answer_unreadable)
def never_answered(step: Step, request: Request) -> None:
    """A converted member may have bytes that cannot be read, which Kafka does not expect when it answers: the request
    is never answered (X-SYNC-07)."""


@quirk("old_malformed_join_is_internal", of=classic_join.unreadable)
def fails_by_malformed(step: Step) -> Rejected | InternalError:
    """Before 4.4, except 4.2.2, no JoinGroup to a consumer group expects bytes that cannot be read (V-125)."""
    return InternalError()


@quirk("fault_upgrade_without_protocol", of=upgrade.require_protocol)
def needs_no_protocol(step: Step, group: ClassicGroup) -> None:
    """Kafka does not check whether a protocol is selected yet (X-UP-07)."""


@quirk("fault_upgrade_without_protocol", of=upgrade.selected_metadata)
def fails_without_metadata(step: Step, group: ClassicGroup, member: ClassicMember) -> bytes:
    """Kafka does not expect a member without metadata for the protocol, so it fails to convert a group in its first
    rebalance (X-UP-07)."""
    if member.metadata(group.protocol_name) is None:
        raise InternalError
    return intended(upgrade.selected_metadata)(step, group, member)


@quirk("fault_bad_subscription_is_thrown", of=upgrade.unreadable)
def lengths_are_thrown(step: Step, broken: SchemaError) -> Rejected | InternalError:
    """Kafka does not expect an impossible length, so the error is an internal one (X-UP-06, V-124)."""
    return InternalError() if isinstance(broken, LengthError) else intended(upgrade.unreadable)(step, broken)
