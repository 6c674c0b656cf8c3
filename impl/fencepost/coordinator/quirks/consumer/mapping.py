"""Which member has an instance id, while records are applied."""

from __future__ import annotations

from fencepost.quirks import quirk

from ...consumer.draft import ConsumerDraft
from ...consumer.group import ConsumerMember


@quirk("fault_relabelled_instance_stays", of=ConsumerDraft.relabelled)
def instance_stays(draft: ConsumerDraft, old: ConsumerMember) -> None:
    """The instance id that a member had stays mapped to it, also when it has gone: nobody can join with that id any
    more (M-STATIC-13, V-123)."""


@quirk("fault_relabelled_instance_stays", of=ConsumerDraft.unmaps)
def unmaps_anybody(draft: ConsumerDraft, member: ConsumerMember, mapped: str) -> bool:
    """Kafka does not look whose the mapping is that goes with a member. It may be another's after the member had a new
    instance id (M-STATIC-13)."""
    return True


@quirk("fault_superseded_records_loaded", of=ConsumerDraft.unmaps)
def unmaps_what_never_was(draft: ConsumerDraft, member: ConsumerMember, mapped: str) -> bool:
    """Likewise where a load goes through states that never were (F-REPLAY-18)."""
    return True
