"""Faults of groups with members of both protocols: conversions, and how classic members of a consumer group fare."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from fencepost.coordinator import lifecycle
from fencepost.coordinator.classic import rebalance
from fencepost.coordinator.classic.group import ClassicGroup
from fencepost.coordinator.consumer import access, identity
from fencepost.coordinator.consumer.group import NO_SHARE, ConsumerGroup, ConsumerMember
from fencepost.coordinator.kernel.errors import Refused
from fencepost.coordinator.kernel.replay import Replay
from fencepost.coordinator.kernel.step import Step
from fencepost.coordinator.kernel.topics import TopicImage
from fencepost.coordinator.mixed import (
    claims,
    classic_join,
    classic_leave,
    classic_member,
    departure,
    downgrade,
    upgrade,
)
from fencepost.coordinator.mixed.callbacks import ClassicJoined
from fencepost.coordinator.mixed.embedded import owned_rows
from fencepost.protocol.consumer_messages import STATIC_LEAVE_EPOCH
from fencepost.protocol.consumer_records import ConsumerGroupMemberMetadataValue
from fencepost.protocol.consumer_view import MemberState
from fencepost.protocol.embedded import Subscription
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Request, TimerKey, TimerKind
from fencepost.protocol.messages import JoinGroupRequest, LeaveGroupMember, Protocol
from fencepost.protocol.records import Record

from .mutant import Mutant, Side
from .patched import Patches, patched

# --- conversions -----------------------------------------------------------------------------------------------------


def _classic_instance_must_leave_first(patches: Patches) -> None:
    def find(step: Step, group: ConsumerGroup, instance_id: str, claim: identity.Claim) -> identity.Found:
        found: identity.Found = original(step, group, instance_id, claim)
        if found.replaced is not None and found.replaced.epoch != STATIC_LEAVE_EPOCH:
            raise Refused(ErrorCode.UNRELEASED_INSTANCE_ID)
        return found

    original = patches.attribute(identity, "find_static", find)


def _last_one_replaced_and_no_downgrade(patches: Patches) -> None:
    patches.attribute(downgrade, "is_last", lambda step, group, instance_id: None)


def _downgrade_above_the_size(patches: Patches) -> None:
    def allowed(step: Step, group: ConsumerGroup, leaving: Collection[str], size: int) -> bool:
        return bool(original(step, group, leaving, 0))

    original = patches.attribute(downgrade, "_allowed", allowed)


def _departure_does_not_downgrade(patches: Patches) -> None:
    patches.attribute(downgrade, "is_due", lambda step, group, leaving: False)


def _downgrade_without_rebalance(patches: Patches) -> None:
    others = vars(rebalance) | {"prepare": lambda step, group: None}
    patches.attribute(downgrade, "rebalance", SimpleNamespace(**others))


def _downgrade_hands_out_targets(patches: Patches) -> None:
    def share(step: Step, group: ConsumerGroup, member: ConsumerMember, heir_of: str) -> Any:
        return group.target.get(heir_of, NO_SHARE)

    patches.attribute(downgrade, "_share", share)


def _downgrade_owes(patches: Patches) -> None:
    patches.attribute(downgrade, "_has_its_target", lambda group, member: True)


def _upgrade_overlooks_claims(patches: Patches) -> None:
    patches.attribute(claims, "taken_over", lambda shares, said, topics: shares)


def _oldest_claim_is_taken_over(patches: Patches) -> None:
    def taken_over(shares: Any, said: Mapping[str, Subscription], topics: TopicImage) -> Any:
        turned = {member_id: replace(each, generation_id=-each.generation_id) for member_id, each in said.items()}
        return original(shares, turned, topics)

    original = patches.attribute(claims, "taken_over", taken_over)


def _parked_forgotten_by_the_upgrade(patches: Patches) -> None:
    patches.attribute(upgrade, "_answer_parked", lambda step, group: None)


def _converted_are_not_watched(patches: Patches) -> None:
    patches.attribute(upgrade, "_watch", lambda step, group: None)


def _upgrade_begins_at_the_first_epoch(patches: Patches) -> None:
    def upgraded(step: Step, group: ClassicGroup, written: list[Any]) -> ConsumerGroup:
        return original(step, group._replace(generation=1), written)  # type: ignore[no-any-return]

    original = patches.attribute(upgrade, "upgraded", upgraded)


# --- classic members of a consumer group -----------------------------------------------------------------------------


def _owned_is_not_read(patches: Patches) -> None:
    for module in (classic_join, claims):
        patches.attribute(module, "owned_rows", lambda partitions, topics: ())


def _fenced_joins_again(patches: Patches) -> None:
    def confirmed(member: Any, subscription: Subscription, topics: TopicImage) -> Any:
        return owned_rows(subscription.owned_partitions, topics)

    patches.attribute(claims, "confirmed", confirmed)


def _any_assignor_passes(patches: Patches) -> None:
    def supported(group: ConsumerGroup, protocols: tuple[Protocol, ...]) -> bool:
        return bool(protocols)

    patches.attribute(classic_join, "_supported", supported)


def _stays_a_consumer(patches: Patches) -> None:
    def updated(request: Request, body: JoinGroupRequest, member: ConsumerMember, subscription: Any) -> ConsumerMember:
        after: ConsumerMember = original(request, body, member, subscription)
        # a member that never spoke the other protocol has no epoch yet
        return after if member.epoch <= 0 or member.classic is not None else after._replace(epoch=0)

    original = patches.attribute(classic_join, "_updated", updated)


def _any_generation_passes(patches: Patches) -> None:
    def asking(group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int) -> ConsumerMember:
        known = group.members.get(member_id)
        return original(  # type: ignore[no-any-return]
            group, member_id, instance_id, generation if known is None else known.epoch
        )

    original = patches.attribute(classic_member, "asking", asking)


def _lagging_member_is_content(patches: Patches) -> None:
    def behind(step: Step, group: ConsumerGroup, member: ConsumerMember) -> bool:
        return False

    patches.attribute(classic_member, "is_behind", behind)


def _revoking_member_is_not_told(patches: Patches) -> None:
    def told(step: Step, group: ConsumerGroup, member: ConsumerMember) -> bool:
        return member.state is not MemberState.UNREVOKED_PARTITIONS and bool(original(step, group, member))

    original = patches.attribute(classic_member, "should_rejoin", told)


def _waiting_member_is_told(patches: Patches) -> None:
    patches.attribute(classic_member, "_waits", lambda group, member: False)


def _rejoin_is_not_awaited(patches: Patches) -> None:
    patches.attribute(classic_member, "expect_join", lambda step, group_id, member: None)


def _rejoin_is_put_off(patches: Patches) -> None:
    def expect(step: Step, group_id: str, member: ConsumerMember) -> None:
        step.set_timer(TimerKey(TimerKind.CONSUMER_JOIN, group_id, member.member_id), member.rebalance_timeout)

    patches.attribute(classic_member, "expect_join", expect)


def _sync_is_not_awaited(patches: Patches) -> None:
    def joined(done: ClassicJoined, step: Step, request: Request) -> None:
        original(done, step, request)
        step.cancel_timer(TimerKey(TimerKind.CONSUMER_SYNC, done.group_id, done.member_id))

    original = patches.attribute(ClassicJoined, "replicated", joined)


def _session_of_the_group(patches: Patches) -> None:
    def watch(step: Step, group_id: str, member: ConsumerMember) -> None:
        key = TimerKey(TimerKind.CONSUMER_SESSION, group_id, member.member_id)
        step.set_timer(key, step.settings.group_consumer_session_timeout_ms)

    patches.attribute(classic_member, "watch_session", watch)


def _only_classic_members_can_be_removed(patches: Patches) -> None:
    def meant(group: ConsumerGroup, entry: LeaveGroupMember) -> ConsumerMember:
        member: ConsumerMember = original(group, entry)
        if member.classic is None:
            raise Refused(ErrorCode.UNKNOWN_MEMBER_ID)
        return member

    original = patches.attribute(classic_leave, "_meant", meant)


def _protocol_is_not_loaded(patches: Patches) -> None:
    class Forgetful(Replay):
        """Applies records, but for what they say of the classic protocol."""

        __slots__ = ()

        def apply(self, record: Record) -> None:
            value = record.value
            if isinstance(value, ConsumerGroupMemberMetadataValue):
                record = Record(record.key, replace(value, classic_member_metadata=None))
            super().apply(record)

    patches.attribute(lifecycle, "Replay", Forgetful)


def _each_leaver_bumps(patches: Patches) -> None:
    def fence(step: Step, group: ConsumerGroup, members: Sequence[ConsumerMember]) -> None:
        for member in members:
            now = access.find(step, group.group_id)
            if now is not None:
                original(step, now, [member])

    original = patches.attribute(departure, "fence", fence)


FAULTS: tuple[Mutant, ...] = tuple(
    patched(name, Side.MIXED_GROUP, source, text, plant)
    for name, source, text, plant in (
        ("classic-instance-must-leave-first", "KAFKA-17228",
         "a static member of the consumer protocol cannot replace a classic one that has not left",
         _classic_instance_must_leave_first),
        ("last-one-replaced-and-no-downgrade", "KAFKA-17317",
         "a group stays a consumer group when its last such member is replaced by a classic one",
         _last_one_replaced_and_no_downgrade),
        ("downgrade-above-the-size", "KAFKA-16861",
         "a group is downgraded that is larger than a classic one may be", _downgrade_above_the_size),
        ("departure-does-not-downgrade", "X-DOWN-01",
         "a group stays a consumer group when its last such member leaves", _departure_does_not_downgrade),
        ("downgrade-without-rebalance", "X-DOWN-06",
         "after a downgrade nobody gets the partitions of those who left", _downgrade_without_rebalance),
        ("downgrade-hands-out-targets", "X-DOWN-04",
         "a downgrade assigns members their targets rather than what they hold", _downgrade_hands_out_targets),
        ("downgrade-owes", "X-DOWN-22",
         "after a downgrade by replacement nobody tells a member that it still waits for a part of its target",
         _downgrade_owes),
        ("upgrade-overlooks-claims", "X-UP-05",
         "what a member owns and nobody is assigned is free after an upgrade", _upgrade_overlooks_claims),
        ("oldest-claim-is-taken-over", "X-UP-05",
         "of several claims to a partition an upgrade believes the oldest", _oldest_claim_is_taken_over),
        ("parked-forgotten-by-the-upgrade", "X-UP-03",
         "who waits in a join or sync phase is not answered when the group is converted",
         _parked_forgotten_by_the_upgrade),
        ("converted-are-not-watched", "X-UP-08",
         "converted members have no session timers", _converted_are_not_watched),
        ("upgrade-begins-at-the-first-epoch", "X-UP-04",
         "a converted group does not go on from its generation", _upgrade_begins_at_the_first_epoch),
        ("owned-is-not-read", "X-JOIN-17",
         "what a classic member says that it owns is not read, so it is taken to have given up everything",
         _owned_is_not_read),
        ("fenced-joins-again", "X-JOIN-12",
         "a JoinGroup is accepted whatever generation its subscription tells", _fenced_joins_again),
        ("any-assignor-passes", "X-JOIN-04",
         "classic members are let in with assignors that the others do not have", _any_assignor_passes),
        ("stays-a-consumer", "X-JOIN-13",
         "a member that goes over to the classic protocol begins anew at epoch 0", _stays_a_consumer),
        ("any-generation-passes", "X-SYNC-03",
         "classic members may sync and heartbeat with any generation", _any_generation_passes),
        ("lagging-member-is-content", "X-HB-03, X-SYNC-05",
         "a classic member is not told of a newer target", _lagging_member_is_content),
        ("revoking-member-is-not-told", "X-HB-07",
         "a classic member that must give up partitions is not told to rejoin", _revoking_member_is_not_told),
        ("waiting-member-is-told", "X-HB-03",
         "a classic member is told to rejoin while what it waits for is still held", _waiting_member_is_told),
        ("rejoin-is-not-awaited", "X-TMR-02",
         "nobody watches for classic members that do not rejoin", _rejoin_is_not_awaited),
        ("rejoin-is-put-off", "X-HB-04",
         "each heartbeat gives a classic member more time to rejoin", _rejoin_is_put_off),
        ("sync-is-not-awaited", "X-TMR-03",
         "nobody watches for classic members that do not sync", _sync_is_not_awaited),
        ("session-of-the-group", "X-HB-02",
         "classic members get the group's session timeout instead of their own", _session_of_the_group),
        ("only-classic-members-can-be-removed", "X-LEAVE-02",
         "a LeaveGroup does not find members of the consumer protocol", _only_classic_members_can_be_removed),
        ("protocol-is-not-loaded", "F-REC-13, X-TMR-04",
         "after a fail-over classic members count as members of the consumer protocol", _protocol_is_not_loaded),
        ("each-leaver-bumps", "X-LEAVE-04, X-LEAVE-06",
         "a LeaveGroup of several members bumps the group epoch for each", _each_leaver_bumps),
    )
)  # fmt: skip
