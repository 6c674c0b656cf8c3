"""The promises of the closed consumer group about its steps: epochs, memberships, and requests with their answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from ...explore.interface import Invariant, Label, StepInvariant
from ...promises import PROMISES, GroupStep, HeartbeatView
from ..durable import Durable, follows
from ..gather import Part
from .closed import GROUP, LOG, ConsumerSystem
from .properties import Property, can_commit, holding, view_of
from .state import AWAY, NO_PARTITIONS, NOTHING, Client, Endpoint, Hard, Heartbeat, Log, Member, Reply, names

#: The steps in which the coordinator handles a heartbeat, and those in which a timer fires.
HEARTBEAT: Final = frozenset({"CoordinatorHandlesHeartbeat"})
TIMER_FIRES: Final = {
    "session": frozenset({"SessionTimerFires", "SessionTimerFiresEarly"}),
    "rebalance": frozenset({"RebalanceTimerFires", "RebalanceTimerFiresEarly"}),
}


# ---- epochs and members ----------------------------------------------------------------------------------------------


def no_epoch_decreases(system: ConsumerSystem) -> Iterable[Part]:
    """No replicated epoch falls."""

    def holds(_: Label, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
        return PROMISES["INV-KIP-04"].holds(GroupStep(view_of(before[0]), view_of(after[0])))

    yield StepInvariant("NoEpochDecreases", (system.replicated,), holds, changed=(system.replicated,))


def no_member_is_between_epochs(system: ConsumerSystem) -> Iterable[Part]:
    """A member that confirms a revocation moves to the assignment epoch or stays (M-REC-19)."""

    def holds(label: Label, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
        known = dict(before[0].members)
        return all(
            name not in known or member.epoch in (known[name].epoch, after[0].assignment_epoch, AWAY)
            for name, member in after[0].members
        )

    actions = {"CoordinatorHandlesHeartbeat", "CoordinatorHandlesLeave"}
    yield StepInvariant("NoMemberIsBetweenEpochs", (system.hard,), holds, frozenset(actions), (system.hard,))


def the_first_member_need_not_wait(system: ConsumerSystem) -> Iterable[Part]:
    """The first member of an empty group does not wait for an interval that earlier members began (M-LEAVE-08)."""

    def holds(_: Label, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
        comes = after[0].members and not before[0].members
        return not comes or after[0].assignment_epoch == after[0].group_epoch

    handles_heartbeat = frozenset({"CoordinatorHandlesHeartbeat"})
    yield StepInvariant("TheFirstMemberNeedNotWait", (system.hard,), holds, handles_heartbeat, (system.hard,))


def every_grown_topic_bumps_the_epoch(system: ConsumerSystem) -> Iterable[Part]:
    """The next heartbeat after a topic has grown bumps the epoch, so that the next target has the new partitions
    (M-META-03, M-HB-04, M-EPOCH-03)."""
    for number, endpoint in enumerate(system.endpoints):

        def holds(_: Label, before: tuple[Any, ...], after: tuple[Any, ...], number: int = number) -> bool:
            (hard, log, endpoint, existing), (hard2, log2, lane2, _existing) = before, after
            new = _answers(number, log2, lane2) - _answers(number, log, endpoint)
            if all(reply.error != "NONE" for reply in new):
                return True
            grown = hard.hashed != existing
            return bool(hard2.hashed == existing and (not grown or hard2.group_epoch > hard.group_epoch))

        reads = (system.hard, LOG, endpoint, system.existing)
        yield StepInvariant("EveryGrownTopicBumpsTheEpoch", reads, holds, HEARTBEAT, (endpoint,))


def every_target_begins_an_interval(system: ConsumerSystem) -> Iterable[Part]:
    """A computed target begins an interval, and none is computed while one runs (M-TGT-08, M-TGT-09)."""

    def holds(_: Label, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
        (old,), (new,) = before, after
        if new.hard.assignment_epoch <= old.hard.assignment_epoch:
            return True
        return not old.blocked and new.blocked == system.config.interval

    yield StepInvariant("EveryTargetBeginsAnInterval", (GROUP,), holds, HEARTBEAT, (GROUP,))


def _ended(before: Hard, after: Hard) -> list[tuple[str, Member]]:
    """Return the members whose membership the step ended or suspended."""
    stay = dict(after.members)
    return [
        (name, member)
        for name, member in before.members
        if name not in stay or (stay[name].epoch == AWAY and member.epoch != AWAY)
    ]


def _is_slow_to_revoke(member: Member) -> bool:
    return member.epoch >= 0 and member.state == "UNREVOKED"


def every_membership_ends_for_a_reason(system: ConsumerSystem) -> Iterable[Part]:
    """A membership ends, or is suspended, by its owner, or by a timer whose reason applies to the member (M-LEAVE-02 to
    05, M-STATIC-03, M-TMR-02). A live static member is not displaced."""
    promise = "EveryMembershipEndsForAReason"

    def by_itself(label: Label, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
        action = label[0]
        if action.startswith("CoordinatorHandles") or action == "CoordinatorFailsOver":
            return True
        return all(
            label[1:2] == (name,)
            and (
                action in TIMER_FIRES["session"] or (action in TIMER_FIRES["rebalance"] and _is_slow_to_revoke(member))
            )
            for name, member in _ended(before[0], after[0])
        )

    def by_request(_: Label, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
        if before[1] == after[1]:  # the request of another endpoint was handled
            return True
        handled = _handled_requests(before[1], after[1])
        leaves = {request.member_id for request in handled if request.epoch < 0}
        returns = {request.instance for request in handled if request.epoch == 0} - {""}
        return all(
            name in leaves or (member.instance in returns and member.epoch == AWAY)
            for name, member in _ended(before[0], after[0])
        )

    yield StepInvariant(promise, (system.hard,), by_itself, changed=(system.hard,))
    handles = frozenset({"CoordinatorHandlesHeartbeat", "CoordinatorHandlesLeave"})
    for endpoint in system.endpoints:
        yield StepInvariant(promise, (system.hard, endpoint), by_request, handles, (endpoint,))


def a_rebalance_timer_fences_only_a_revoking_member(system: ConsumerSystem) -> Iterable[Part]:
    """A rebalance timer that fires ends only the membership of a member that is present and has to revoke (M-TMR-02,
    M-LEAVE-05)."""

    def holds(_: Label, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
        return all(_is_slow_to_revoke(member) for _, member in _ended(before[0], after[0]))

    promise = "ARebalanceTimerFencesOnlyARevokingMember"
    yield StepInvariant(promise, (system.hard,), holds, TIMER_FIRES["rebalance"], (system.hard,))


def every_replacement_starts_at_zero(system: ConsumerSystem) -> Iterable[Part]:
    """A member that replaces another starts at epoch 0, whatever the other's was (M-STATIC-03, M-STATIC-10)."""

    def holds(_: Label, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
        known, members = dict(before[0].instances), dict(after[0].members)
        return all(
            known.get(instance, name) == name or members[name].previous == 0 for instance, name in after[0].instances
        )

    yield StepInvariant("EveryReplacementStartsAtZero", (system.hard,), holds, HEARTBEAT, (system.hard,))


def every_unreleased_member_waits_for_another(system: ConsumerSystem) -> Iterable[Part]:
    """A member that is UNRELEASED after its heartbeat waits for a partition that another member holds (M-MS-03,
    M-REC-11, M-REC-21)."""

    def holds(_: Label, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
        known, hard = dict(before[0].members), after[0]
        target = dict(hard.target)
        for name, member in hard.members:
            if member == known.get(name) or member.state != "UNRELEASED" or member.epoch != hard.assignment_epoch:
                continue
            others = (holding(other) for each, other in hard.members if each != name)
            waits_for = target.get(name, NO_PARTITIONS) - names(member.assigned)
            if not waits_for.intersection(frozenset[str]().union(*others)):
                return False
        return True

    yield StepInvariant("EveryUnreleasedMemberWaitsForAnother", (system.hard,), holds, HEARTBEAT, (system.hard,))


# ---- requests and answers -------------------------------------------------------------------------------------------


def _handled_requests(before: Endpoint, after: Endpoint) -> frozenset[Heartbeat]:
    return before.requests - after.requests


def is_stale(hard: Hard, heartbeat: Heartbeat) -> bool:
    """Return whether the coordinator must refuse the heartbeat: M-FENCE-01, 03, 05, written again from the rules."""
    member = dict(hard.members).get(heartbeat.member_id)
    if member is None or member.epoch == AWAY:
        return True
    forgiven = (
        heartbeat.epoch == member.previous and heartbeat.owned is not None and heartbeat.owned <= names(member.assigned)
    )
    return heartbeat.epoch != member.epoch and not forgiven


def a_stale_heartbeat_changes_nothing(system: ConsumerSystem) -> Iterable[Part]:
    """A stale heartbeat changes nothing and is refused (M-FENCE-01, 03, 05, INV-KIP-17)."""

    def holds(_: Label, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
        (group, log, endpoint), (group2, log2, lane2) = before, after
        if not any(
            heartbeat.epoch > 0 and is_stale(group.hard, heartbeat) for heartbeat in _handled_requests(endpoint, lane2)
        ):
            return True
        new: frozenset[Reply] = lane2.replies - endpoint.replies
        return group == group2 and log == log2 and all(reply.error != "NONE" for reply in new)

    for endpoint in system.endpoints:
        yield StepInvariant("AStaleHeartbeatChangesNothing", (GROUP, LOG, endpoint), holds, HEARTBEAT, (endpoint,))


def is_replaced(hard: Hard, member_id: str, instance: str) -> bool:
    """Return whether another member has the instance id of this one."""
    return dict(hard.instances).get(instance, member_id) != member_id if instance else False


def every_replaced_member_is_fenced(system: ConsumerSystem) -> Iterable[Part]:
    """No request of a replaced member succeeds, whatever the API, and the answer ends the old process (INV-FENCE-01,
    M-STATIC-02, M-STATIC-05, M-LEAVE-02). To join it must wait until the other is away."""
    promise = "EveryReplacedMemberIsFenced"

    def must_be_refused(hard: Hard, request: Heartbeat) -> bool:
        if not is_replaced(hard, request.member_id, request.instance):
            return False
        return request.epoch != 0 or dict(hard.members)[dict(hard.instances)[request.instance]].epoch >= 0

    def is_refused(_: Label, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
        (group, endpoint), (group2, lane2) = before, after
        if not any(must_be_refused(group.hard, request) for request in _handled_requests(endpoint, lane2)):
            return True
        errors = {reply.error for reply in lane2.replies - endpoint.replies}
        return bool(group == group2 and errors <= {"FENCED_INSTANCE_ID", "UNRELEASED_INSTANCE_ID"})

    def may_not_commit(hard: Hard, client: Client) -> bool:
        return not is_replaced(hard, client.member_id, client.instance) or not any(
            can_commit(system, hard, client, partition) for partition in client.owned
        )

    handles = frozenset({"CoordinatorHandlesHeartbeat", "CoordinatorHandlesLeave"})
    for endpoint, view in zip(system.endpoints, system.members, strict=True):
        yield StepInvariant(promise, (GROUP, endpoint), is_refused, handles, (endpoint,))
        yield Invariant(promise, (system.hard, view), may_not_commit)


def no_answer_overtakes_an_open_batch(system: ConsumerSystem) -> Iterable[Part]:
    """No answer NONE overtakes a batch that was appended before it (F-RT-16)."""

    def holds(label: Label, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
        if label[0] == "AppendSucceeds" or not before[0]:
            return True
        return all(reply.error != "NONE" for reply in after[1].replies - before[1].replies)

    for endpoint in system.endpoints:
        yield StepInvariant("NoAnswerOvertakesAnOpenBatch", (system.open, endpoint), holds, changed=(endpoint,))


def _answered(sent: int, reply: Reply, before: Member | None, after: Member | None) -> HeartbeatView:
    """Return what promises see of an answer. ``sent``: the epoch of the request; ``before`` and ``after``: its
    member."""
    assigned = tuple(NOTHING if member is None else member.assigned for member in (before, after))
    stored = None if after is None else after.epoch
    return HeartbeatView(sent, reply.error, reply.epoch, reply.assignment is not None, stored, assigned)


def every_answered_epoch_is_replicated(system: ConsumerSystem) -> Iterable[Part]:
    """The epoch in an answer NONE is stored and replicated."""

    def holds(_: Label, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
        member = dict(after[0].members).get(before[1].client.member_id)
        new = after[1].replies - before[1].replies
        return all(PROMISES["INV-KIP-10"].holds(_answered(0, reply, None, member)) for reply in new)

    for endpoint in system.endpoints:
        yield StepInvariant("EveryAnsweredEpochIsReplicated", (system.replicated, endpoint), holds, changed=(endpoint,))


def _answers(number: int, log: Log, endpoint: Endpoint) -> frozenset[Reply]:
    """Return the answers to the client, released or not."""
    return endpoint.replies | {reply for batch in log.open for to, reply in batch.answers if to == number}


def every_changed_assignment_is_answered(system: ConsumerSystem) -> Iterable[Part]:
    """An answer without assignment means that A did not change."""
    for number, endpoint in enumerate(system.endpoints):

        def holds(_: Label, before: tuple[Any, ...], after: tuple[Any, ...], number: int = number) -> bool:
            (hard, log, endpoint), (hard2, log2, lane2) = before, after
            old, now = dict(hard.members), dict(hard2.members)
            return all(
                PROMISES["INV-KIP-15"].holds(
                    _answered(sent.epoch, reply, old.get(sent.member_id), now.get(sent.member_id))
                )
                for sent in _handled_requests(endpoint, lane2)
                for reply in _answers(number, log2, lane2) - _answers(number, log, endpoint)
            )

        reads = (system.hard, LOG, endpoint)
        yield StepInvariant("EveryChangedAssignmentIsAnswered", reads, holds, HEARTBEAT, (endpoint,))


def _never_answered(name: str, error: str, concerns: Callable[[Hard, Heartbeat], bool]) -> Property:
    """Make the property that no such request is answered with the error."""

    def parts(system: ConsumerSystem) -> Iterable[Part]:
        def holds(_: Label, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
            hard, endpoint = before
            new = after[1].replies - endpoint.replies
            return not (
                any(reply.error == error for reply in new)
                and any(concerns(hard, heartbeat) for heartbeat in _handled_requests(endpoint, after[1]))
            )

        return (
            StepInvariant(name, (system.hard, endpoint), holds, HEARTBEAT, (endpoint,)) for endpoint in system.endpoints
        )

    return parts


def _is_join(_: Hard, heartbeat: Heartbeat) -> bool:
    return heartbeat.epoch == 0


def _holds_the_instance(hard: Hard, heartbeat: Heartbeat) -> bool:
    return dict(hard.instances).get(heartbeat.instance) == heartbeat.member_id


def the_group_refines_durable(system: ConsumerSystem) -> Iterable[Part]:
    """The log behaves as ``Durable`` says."""

    def holds(_: Label, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
        logs = (Durable(log.replicated, tuple(batch.hard for batch in log.open)) for (log,) in (before, after))
        return follows(*logs)

    yield StepInvariant("TheGroupRefinesDurable", (LOG,), holds, changed=(LOG,))


STEPS: Final[dict[str, Property]] = {
    "TheGroupRefinesDurable": the_group_refines_durable,
    "EveryGrownTopicBumpsTheEpoch": every_grown_topic_bumps_the_epoch,
    "EveryTargetBeginsAnInterval": every_target_begins_an_interval,
    "EveryMembershipEndsForAReason": every_membership_ends_for_a_reason,
    "ARebalanceTimerFencesOnlyARevokingMember": a_rebalance_timer_fences_only_a_revoking_member,
    "EveryReplacementStartsAtZero": every_replacement_starts_at_zero,
    "EveryUnreleasedMemberWaitsForAnother": every_unreleased_member_waits_for_another,
    "EveryReplacedMemberIsFenced": every_replaced_member_is_fenced,
    "NoAnswerOvertakesAnOpenBatch": no_answer_overtakes_an_open_batch,
    "NoEpochDecreases": no_epoch_decreases,
    "NoMemberIsBetweenEpochs": no_member_is_between_epochs,
    "TheFirstMemberNeedNotWait": the_first_member_need_not_wait,
    "AStaleHeartbeatChangesNothing": a_stale_heartbeat_changes_nothing,
    "EveryAnsweredEpochIsReplicated": every_answered_epoch_is_replicated,
    "EveryChangedAssignmentIsAnswered": every_changed_assignment_is_answered,
    # An unknown member that joins becomes a new one, whatever its instance id maps to (M-FENCE-02, M-STATIC-13).
    "NoJoiningMemberIsUnknown": _never_answered("NoJoiningMemberIsUnknown", "UNKNOWN_MEMBER_ID", _is_join),
    # Epoch 0 of a known member is accepted, whatever the stored epoch is (M-FENCE-07).
    "NoJoiningMemberIsFenced": _never_answered("NoJoiningMemberIsFenced", "FENCED_MEMBER_EPOCH", _is_join),
    # A static member that joins again under its own id is not refused (M-STATIC-02).
    "NoStaticMemberBlocksItself": _never_answered(
        "NoStaticMemberBlocksItself", "UNRELEASED_INSTANCE_ID", _holds_the_instance
    ),
}
