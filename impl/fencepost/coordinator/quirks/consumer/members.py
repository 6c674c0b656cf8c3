"""Members: their identity and permissions, the instance ids that they have, and their regexes."""

from __future__ import annotations

from collections.abc import Iterable

from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatRequest, TopicPartitions
from fencepost.quirks import Next, quirk

from ...consumer import members, regex
from ...consumer.draft import ConsumerDraft
from ...consumer.group import ConsumerGroup, ConsumerMember
from ...kernel.step import Step

# Identity, permissions, and the partitions that a member claims to own


@quirk("old_full_group_refuses_statics", of=members.has_a_place)
def instance_is_no_place(_: Next[bool], step: Step, group: ConsumerGroup, instance_id: str | None) -> bool:
    """Before 4.4 a full group checks only the member id. A static member that returns with another member id finds its
    own place taken by itself (V-120)."""
    return False


@quirk("old_known_member_at_zero_fenced", of=members.check_epoch)
def joins_once(_: Next[None], step: Step, member: ConsumerMember, claim: members.Claim) -> None:
    """Up to 4.1 epoch 0 is an epoch like any other: a known member that joins again is fenced until its session has
    ended (V-32, LIV-12)."""
    members.reject_wrong_epoch(member, claim)


@quirk("fault_static_rejoin_unreleased", of=members.comes_back)
def instance_lets_nobody_in(_: Next[bool], step: Step, holder: ConsumerMember, member_id: str) -> bool:
    """Kafka does not check which member joins with an instance id that is in use: even its own member is refused until
    its session has ended (M-STATIC-02, L-06)."""
    return False


@quirk("fault_replacement_merges_members", of=members.may_take_place)
def anybody_may_take_place(
    _: Next[bool], step: Step, group: ConsumerGroup, holder: ConsumerMember, member_id: str
) -> bool:
    """Kafka does not check whether the member already has a place. Its partitions there are free at once, while it may
    still consume them (M-STATIC-15, A-UHOM-08)."""
    return True


@quirk("fault_rejoin_confirms_revocation", of=members.owned_partitions)
def believed(
    _: Next[Iterable[TopicPartitions] | None], step: Step, body: ConsumerGroupHeartbeatRequest, member: ConsumerMember
) -> Iterable[TopicPartitions] | None:
    """Kafka believes every join, which always claims to own nothing: a late copy confirms a revocation that the member
    has not received (M-FENCE-07, INV-KIP-09)."""
    return body.topic_partitions


# The mapping from instance ids to members, while records are applied


@quirk("fault_relabelled_instance_stays", of=ConsumerDraft.relabelled)
def instance_stays(_: Next[None], draft: ConsumerDraft, old: ConsumerMember) -> None:
    """An instance id that a member had stays mapped to it, also after it has gone: no member can join with that id any
    more (M-STATIC-13, V-123)."""


@quirk("fault_relabelled_instance_stays", of=ConsumerDraft.unmaps)
def unmaps_anybody(_: Next[bool], draft: ConsumerDraft, member: ConsumerMember, mapped: str) -> bool:
    """When a member goes, Kafka does not check whether the mapping is its own. It may belong to another member if the
    first one got a new instance id (M-STATIC-13)."""
    return True


@quirk("fault_superseded_records_loaded", of=ConsumerDraft.unmaps)
def unmaps_what_never_was(_: Next[bool], draft: ConsumerDraft, member: ConsumerMember, mapped: str) -> bool:
    """The same where a load passes through states that never existed (F-REPLAY-18)."""
    return True


# Regexes that a member adopts or gives up


@quirk("old_regex_removal_keeps_epoch", of=regex.given_up)
def given_up_for_nothing(_: Next[regex.RegexChange], step: Step) -> regex.RegexChange:
    """In 4.0 giving up a regex begins no epoch (V-33)."""
    return regex.RegexChange.UNRESOLVED


@quirk("fault_resolved_regex_change_no_bump", of=regex.loses_topics)
def topics_go_to_nobody(_: Next[bool], step: Step, before: frozenset[str], now: frozenset[str]) -> bool:
    """Kafka takes the topics of the old regex from the member at once (M-REC-25) and begins no epoch: they stay in its
    target, and no member owns them (LIV-15)."""
    return False


@quirk("old_whole_target", of=regex.loses_topics)
def topics_stay(_: Next[bool], step: Step, before: frozenset[str], now: frozenset[str]) -> bool:
    """Up to 4.1 the member keeps everything until there is a new target, so nothing is lost (V-51)."""
    return False
