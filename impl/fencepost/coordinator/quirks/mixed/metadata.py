"""What members say of themselves in bytes, and who reads that when."""

from __future__ import annotations

from collections.abc import Iterable

from fencepost.protocol.embedded import LengthError, SchemaError
from fencepost.protocol.messages import Protocol
from fencepost.quirks import intended, quirk

from ...classic.group import ClassicGroup, Member
from ...kernel.errors import InternalError, Refused
from ...kernel.step import Step
from ...mixed import embedded, upgrade


@quirk("fault_downgrade_reads_unread_metadata", of=embedded.require_readable)
def reads_no_further(step: Step, protocols: Iterable[Protocol]) -> None:
    """Kafka reads only what it needs at once: by a JoinGroup the first protocol, by an upgrade the selected one. On the
    others a later downgrade may fail, or a SyncGroup (X-DOWN-09, X-SYNC-07)."""


@quirk("fault_upgrade_without_protocol", of=upgrade.require_protocol)
def needs_no_protocol(step: Step, group: ClassicGroup) -> None:
    """Kafka does not look whether a protocol is selected yet (X-UP-07)."""


@quirk("fault_upgrade_without_protocol", of=upgrade.selected_metadata)
def fails_without_metadata(step: Step, group: ClassicGroup, member: Member) -> bytes:
    """It does not foresee a member without metadata for the protocol, and so fails to convert a group in its first
    rebalance (X-UP-07)."""
    if member.metadata(group.protocol_name) is None:
        raise InternalError
    return intended(upgrade.selected_metadata)(step, group, member)


@quirk("fault_bad_subscription_is_thrown", of=upgrade.unreadable)
def lengths_are_thrown(step: Step, broken: SchemaError) -> Refused | InternalError:
    """An impossible length is not among the errors that Kafka foresees, so this is an internal one (X-UP-06, V-124)."""
    return InternalError() if isinstance(broken, LengthError) else intended(upgrade.unreadable)(step, broken)
