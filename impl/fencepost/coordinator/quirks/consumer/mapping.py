"""The mapping from instance ids to members, while records are applied."""

from __future__ import annotations

from fencepost.quirks import quirk

from ...consumer.draft import ConsumerDraft
from ...consumer.group import ConsumerMember


@quirk("fault_relabelled_instance_stays", of=ConsumerDraft.relabelled)
def instance_stays(draft: ConsumerDraft, old: ConsumerMember) -> None:
    """An instance id that a member had stays mapped to it, also after it has gone: no member can join with that id any
    more (M-STATIC-13, V-123)."""


@quirk("fault_relabelled_instance_stays", of=ConsumerDraft.unmaps)
def unmaps_anybody(draft: ConsumerDraft, member: ConsumerMember, mapped: str) -> bool:
    """When a member goes, Kafka does not check whether the mapping is its own. It may belong to another member if the
    first one got a new instance id (M-STATIC-13)."""
    return True


@quirk("fault_superseded_records_loaded", of=ConsumerDraft.unmaps)
def unmaps_what_never_was(draft: ConsumerDraft, member: ConsumerMember, mapped: str) -> bool:
    """The same where a load passes through states that never existed (F-REPLAY-18)."""
    return True
