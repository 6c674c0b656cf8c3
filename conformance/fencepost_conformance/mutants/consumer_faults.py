"""Faults of consumer groups: whom a heartbeat speaks for, what it is answered, and how a member is reconciled."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from fencepost.coordinator.consumer import (
    access,
    departure,
    group_heartbeat,
    identity,
    reconcile,
    records,
    regex,
    timers,
)
from fencepost.coordinator.consumer.draft import ConsumerDraft
from fencepost.coordinator.consumer.group import NOTHING, ConsumerGroup, ConsumerMember, Holding
from fencepost.coordinator.consumer.identity import Claim, Found
from fencepost.coordinator.consumer.reconcile import Goal
from fencepost.coordinator.consumer.regex import RegexChange
from fencepost.coordinator.kernel import state
from fencepost.coordinator.kernel import step as kernel_step
from fencepost.coordinator.kernel.errors import Refused
from fencepost.coordinator.kernel.step import Step
from fencepost.coordinator.kernel.timer_table import Slot
from fencepost.protocol.consumer_messages import (
    JOIN_EPOCH,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from fencepost.protocol.consumer_view import MemberState
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Request, TimerKey
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import KAFKA_4_3
from fencepost.protocol.records import Record

from .mutant import Mutant, Side
from .patched import Patches, patched

UNREVOKED = MemberState.UNREVOKED_PARTITIONS

# --- reconciliation --------------------------------------------------------------------------------------------------


def _epoch_lost_on_return(patches: Patches) -> None:
    def put(draft: ConsumerDraft, member: ConsumerMember) -> None:
        old = draft.members.get(member.member_id)
        original(draft, member)
        for topic_id, partitions in (old.revoking if old is not None else NOTHING).items():
            for partition in partitions:
                epochs = draft.partition_epochs.get(topic_id, {})
                if partition in epochs and partition in member.assigned.get(topic_id, {}):
                    changed = {number: epoch for number, epoch in epochs.items() if number != partition}
                    draft.edit("partition_epochs")[topic_id] = changed

    original = patches.attribute(ConsumerDraft, "put", put)


def _acknowledgement_missed(patches: Patches) -> None:
    def from_anew(step: Step, group: ConsumerGroup, member: ConsumerMember, goal: Goal) -> ConsumerMember:
        if member.state is UNREVOKED and goal.epoch > member.epoch + 1:
            goal = goal._replace(owned=None)
        return original(step, group, member, goal)  # type: ignore[no-any-return]

    original = patches.attribute(reconcile, "reconcile", from_anew)


def _own_pending_is_anothers(patches: Patches) -> None:
    def without_own(step: Step, group: ConsumerGroup, member: ConsumerMember, epoch: int, goal: Goal) -> ConsumerMember:
        return original(step, group, member._replace(revoking=NOTHING), epoch, goal)  # type: ignore[no-any-return]

    original = patches.attribute(reconcile, "_next", without_own)


def _taken_from_its_holder(patches: Patches) -> None:
    patches.attribute(ConsumerGroup, "partition_epoch", lambda group, topic_id, partition: -1)


def _epoch_before_revocation(patches: Patches) -> None:
    def ahead(step: Step, group: ConsumerGroup, member: ConsumerMember, epoch: int, goal: Goal) -> ConsumerMember:
        after: ConsumerMember = original(step, group, member, epoch, goal)
        return after._replace(epoch=goal.epoch) if after.state is UNREVOKED else after

    original = patches.attribute(reconcile, "_next", ahead)


def _revocation_not_awaited(patches: Patches) -> None:
    patches.attribute(reconcile, "owns", lambda owned, holding: False)


def _unsubscribed_stays(patches: Patches) -> None:
    patches.attribute(reconcile, "prune", lambda step, member, goal: member)


def _unsubscribed_is_given(patches: Patches) -> None:
    def whole(step: Step, group: ConsumerGroup, member: ConsumerMember, epoch: int, goal: Goal) -> ConsumerMember:
        return original(step, group, member, epoch, goal._replace(topic_ids=frozenset(goal.target)))  # type: ignore[no-any-return]

    original = patches.attribute(reconcile, "_next", whole)


# --- who speaks ------------------------------------------------------------------------------------------------------


def _known_member_at_zero_refused(patches: Patches) -> None:
    def check(step: Step, member: ConsumerMember, claim: Claim) -> None:
        if claim.epoch == JOIN_EPOCH and member.epoch > JOIN_EPOCH:
            raise Refused(ErrorCode.FENCED_MEMBER_EPOCH)
        original(step, member, claim)

    original = patches.attribute(identity, "check_epoch", check)


def _repeated_heartbeat_fenced(patches: Patches) -> None:
    patches.attribute(identity, "_within", lambda owned, assigned: False)


def _old_epoch_accepted(patches: Patches) -> None:
    def check(member: ConsumerMember, claim: Claim) -> None:
        original(member, claim._replace(epoch=max(claim.epoch, member.epoch)))

    original = patches.attribute(identity, "require_in_step", check)


def _epoch_from_the_future_accepted(patches: Patches) -> None:
    def check(member: ConsumerMember, claim: Claim) -> None:
        original(member, claim._replace(epoch=min(claim.epoch, member.epoch)))

    original = patches.attribute(identity, "require_in_step", check)


def _any_reported_set_will_do(patches: Patches) -> None:
    def within(owned: Iterable[TopicPartitions] | None, assigned: Holding) -> bool:
        return owned is not None

    patches.attribute(identity, "_within", within)


def _displaced_instance_goes_on(patches: Patches) -> None:
    def held(group: ConsumerGroup, instance_id: str, member_id: str) -> ConsumerMember:
        if instance_id in group.static_members and member_id not in group.members:
            return group.members[group.static_members[instance_id]]
        return original(group, instance_id, member_id)  # type: ignore[no-any-return]

    original = patches.attribute(identity, "held_by", held)


def _instance_taken_while_in_use(patches: Patches) -> None:
    def find(step: Step, group: ConsumerGroup, instance_id: str, claim: Claim) -> Found:
        holder = group.members.get(group.static_members.get(instance_id, ""))
        if claim.epoch == JOIN_EPOCH and holder is not None and holder.member_id != claim.member_id:
            fresh = holder._replace(member_id=claim.member_id, epoch=JOIN_EPOCH, previous_epoch=JOIN_EPOCH)
            return Found(fresh, holder)
        return original(step, group, instance_id, claim)  # type: ignore[no-any-return]

    original = patches.attribute(identity, "find_static", find)


def _static_leave_gives_up(patches: Patches) -> None:
    def go(step: Step, group: ConsumerGroup, member: ConsumerMember) -> None:
        departure.fence(step, group, [member])

    patches.attribute(departure, "_go_for_a_while", go)


# --- answers, regexes, timers ----------------------------------------------------------------------------------------


def _full_by_one_field(patches: Patches) -> None:
    def full(body: ConsumerGroupHeartbeatRequest) -> bool:
        return body.topic_partitions is not None

    patches.attribute(group_heartbeat, "_full", full)


def _target_is_answered(patches: Patches) -> None:
    def stay(
        step: Step, request: Request, body: ConsumerGroupHeartbeatRequest, *hooks: Any
    ) -> ConsumerGroupHeartbeatResponse:
        reply: ConsumerGroupHeartbeatResponse = original(step, request, body, *hooks)
        group = access.find(step, body.group_id)
        if reply.assignment is None or group is None or reply.member_id is None:
            return reply
        return replace(reply, assignment=records.share_rows(group.target.get(reply.member_id, {})))

    original = patches.attribute(group_heartbeat, "stay", stay)


def _regex_to_none_keeps_epoch(patches: Patches) -> None:
    def update(
        step: Step, request: Request, group: ConsumerGroup, old: ConsumerMember, new: ConsumerMember
    ) -> tuple[RegexChange, list[Record]]:
        change, written = original(step, request, group, old, new)
        return (RegexChange.UNRESOLVED if old.regex and not new.regex else change), written

    original = patches.attribute(regex, "update", update)


def _leaver_is_not_counted(patches: Patches) -> None:
    def fence(step: Step, group: ConsumerGroup, members: Any) -> None:
        original(step, group._replace(epoch=group.epoch - 1), members)

    original = patches.attribute(departure, "fence", fence)


def _session_runs_on(patches: Patches) -> None:
    def watch(step: Step, group_id: str, member_id: str) -> None:
        group = access.find(step, group_id)
        if group is None or member_id not in group.members or group.members[member_id].epoch <= JOIN_EPOCH + 1:
            original(step, group_id, member_id)

    original = patches.attribute(timers, "watch_session", watch)


def _revocation_without_end(patches: Patches) -> None:
    patches.attribute(timers, "watch_rebalance", lambda step, group_id, member: None)


def _revocation_timer_of_an_old_epoch(patches: Patches) -> None:
    patches.attribute(departure, "_too_late", lambda key, member, epoch: True)


def _timers_of_one_key(patches: Patches) -> None:
    def slot_of(key: TimerKey, _: Profile) -> Slot:
        return original(key, KAFKA_4_3)

    original: Callable[[TimerKey, Profile], Slot] = patches.attribute(kernel_step, "slot_of", slot_of)
    patches.attribute(state, "slot_of", slot_of)


FAULTS: tuple[Mutant, ...] = tuple(
    patched(name, Side.CONSUMER_GROUP, source, text, plant)
    for name, source, text, plant in (
        ("epoch-lost-on-return", "KAFKA-16147",
         "a partition that comes back to the member that was to give it up counts as free", _epoch_lost_on_return),
        ("acknowledgement-missed", "KAFKA-16249",
         "after a new target what the member still owns is not looked at", _acknowledgement_missed),
        ("own-pending-is-anothers", "KAFKA-19449",
         "what a member is to give up cannot be given back to it", _own_pending_is_anothers),
        ("taken-from-its-holder", "M-REC-21",
         "a partition is given to its next owner while the last one holds it", _taken_from_its_holder),
        ("epoch-before-revocation", "M-REC-10",
         "a member goes to the new epoch before it has given up anything", _epoch_before_revocation),
        ("revocation-not-awaited", "M-REC-18",
         "what a member is to give up is free at once", _revocation_not_awaited),
        ("unsubscribed-stays", "KAFKA-19431",
         "a member keeps partitions of topics that it no longer subscribes to, until the epoch changes",
         _unsubscribed_stays),
        ("unsubscribed-is-given", "M-REC-15",
         "a member is given partitions of its target that it no longer subscribes to", _unsubscribed_is_given),
        ("known-member-at-zero-refused", "KAFKA-19233",
         "a member that was fenced cannot join again under its id", _known_member_at_zero_refused),
        ("repeated-heartbeat-fenced", "apache/kafka#21319",
         "a heartbeat that is sent again since its answer was lost is fenced", _repeated_heartbeat_fenced),
        ("old-epoch-accepted", "M-FENCE-05", "heartbeats with an old epoch are accepted", _old_epoch_accepted),
        ("epoch-from-the-future-accepted", "M-FENCE-03",
         "heartbeats with an epoch that the member never had are accepted", _epoch_from_the_future_accepted),
        ("any-reported-set-will-do", "M-FENCE-04",
         "the previous epoch is accepted whatever the member says it owns", _any_reported_set_will_do),
        ("displaced-instance-goes-on", "M-STATIC-05",
         "who was replaced under its instance id speaks for the one that replaced it", _displaced_instance_goes_on),
        ("instance-taken-while-in-use", "M-STATIC-02",
         "a second process takes over an instance id whose member is alive", _instance_taken_while_in_use),
        ("static-leave-gives-up", "M-LEAVE-05",
         "a static member that leaves for a while is removed", _static_leave_gives_up),
        ("full-by-one-field", "KAFKA-16367",
         "whether a request is full is told by its owned partitions alone", _full_by_one_field),
        ("target-is-answered", "robot-head/crabka#521",
         "members are told their whole target before the last owner has given it up", _target_is_answered),
        ("regex-to-none-keeps-epoch", "KAFKA-19899",
         "a member that gives up its regex does not bump the group epoch", _regex_to_none_keeps_epoch),
        ("leaver-is-not-counted", "M-LEAVE-03",
         "the group epoch stays when a member leaves", _leaver_is_not_counted),
        ("session-runs-on", "M-HB-09", "a heartbeat does not put off the end of the session", _session_runs_on),
        ("revocation-without-end", "M-TMR-02",
         "nobody watches for members that do not give up their partitions", _revocation_without_end),
        ("revocation-timer-of-an-old-epoch", "M-TMR-05",
         "a rebalance timer removes a member that has gone on since", _revocation_timer_of_an_old_epoch),
        ("timers-of-one-key", "M-TMR-01",
         "a timer ends that of another group whose name and member read the same", _timers_of_one_key),
    )
)  # fmt: skip
