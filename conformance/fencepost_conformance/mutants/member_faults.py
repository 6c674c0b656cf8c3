"""Faults of the member: what a client must not believe, keep or forget."""

from __future__ import annotations

from dataclasses import replace as changed

from fencepost.member import answers, completing, heartbeats, joining, leading, leaving, turn
from fencepost.member.completing import Progress
from fencepost.member.events import Call, CloseOption, MemberTimer
from fencepost.member.partitions import TopicPartition
from fencepost.member.state import JoinDone, JoinFailed, MemberState, PrepareCommit, Retry, Sent, Waiting
from fencepost.member.turn import Turn
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import HeartbeatResponse, JoinGroupResponse, SyncGroupResponse

from .mutant import Side
from .patched import Patches, patched


def _rejoin_forgotten_at_join(patches: Patches) -> None:
    def accepted(working: Turn, body: JoinGroupResponse) -> None:
        original(working, body)
        working.change(rejoin_needed=False, join=None)

    original = patches.attribute(answers, "_accepted", accepted)


def _generation_checked_after_the_state(patches: Patches) -> None:
    def assigned(working: Turn, body: SyncGroupResponse) -> None:
        working.change(state=MemberState.STABLE, rejoin_needed=False, rejoin_reason="", join=JoinDone(body.assignment))

    patches.attribute(answers, "_assigned", assigned)


def _join_kept_after_failure(patches: Patches) -> None:
    def after(working: Turn, failed: JoinFailed) -> bool:
        goes_on: bool = original(working, failed)
        if failed.retry is Retry.BACK_OFF:
            working.change(join=failed)
        return goes_on

    original = patches.attribute(joining, "_after_failure", after)


def _late_error_resets(patches: Patches) -> None:
    def answered(working: Turn, sent: Sent, body: HeartbeatResponse) -> None:
        original(working, changed(sent, generation=working.member.generation), body)

    original = patches.attribute(heartbeats, "answered", answered)


def _prepare_not_repeated(patches: Patches) -> None:
    def reset(working: Turn, reason: str, *, keep_id: bool) -> None:
        needed = working.member.needs_prepare
        original(working, reason, keep_id=keep_id)
        working.change(needs_prepare=needed)

    original = patches.attribute(turn.Turn, "reset", reset)


def _id_dropped_on_retriable_error(patches: Patches) -> None:
    def joined(working: Turn, sent: Sent, body: JoinGroupResponse) -> None:
        original(working, sent, body)
        if body.error_code in (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS):
            working.reset("retriable error", keep_id=False)

    original = patches.attribute(answers, "joined", joined)


def _id_dropped_with_the_generation(patches: Patches) -> None:
    def reset(working: Turn, reason: str, *, keep_id: bool) -> None:
        original(working, reason, keep_id=False)

    original = patches.attribute(turn.Turn, "reset", reset)


def _poll_interval_not_watched(patches: Patches) -> None:
    def running(working: Turn, timer: MemberTimer) -> bool:
        return timer is MemberTimer.POLL or original(working, timer)

    original = patches.attribute(turn.Turn, "running", running)


def _stall_only_resets(patches: Patches) -> None:
    def leave(working: Turn, option: CloseOption, reason: str) -> None:
        if "poll timeout" in reason:
            working.reset(reason, keep_id=False)
        else:
            original(working, option, reason)

    original = patches.attribute(leaving, "leave", leave)


def _static_member_leaves(patches: Patches) -> None:
    def leave(working: Turn, option: CloseOption, reason: str) -> None:
        original(working, CloseOption.LEAVE_GROUP, reason)

    original = patches.attribute(leaving, "leave", leave)


def _lost_told_as_nothing(patches: Patches) -> None:
    def call(working: Turn, what: Call, partitions: frozenset[TopicPartition], waiting: Waiting) -> None:
        told = frozenset[TopicPartition]() if what is Call.LOST else partitions
        original(working, what, told, waiting)

    original = patches.attribute(turn.Turn, "call", call)


def _eager_member_keeps_partitions(patches: Patches) -> None:
    def prepared(working: Turn, waiting: Waiting, error: str | None) -> Progress:
        keep = working.member.subscription.owned
        return original(working, changed(waiting, keep=keep), error)  # type: ignore[no-any-return]

    original = patches.attribute(completing, "prepared", prepared)


def _no_rejoin_after_revoking(patches: Patches) -> None:
    def revoked(working: Turn, waiting: Waiting, error: str | None) -> Progress:
        needed = working.member.rejoin_needed
        progress: Progress = original(working, waiting, error)
        working.change(rejoin_needed=needed)
        return progress

    original = patches.attribute(completing, "revoked", revoked)


def _fenced_heartbeat_not_fatal(patches: Patches) -> None:
    def answered(working: Turn, sent: Sent, body: HeartbeatResponse) -> None:
        fenced = body.error_code is ErrorCode.FENCED_INSTANCE_ID
        original(working, sent, HeartbeatResponse(ErrorCode.UNKNOWN_MEMBER_ID) if fenced else body)

    original = patches.attribute(heartbeats, "answered", answered)


def _rebalance_in_heartbeat_ignored(patches: Patches) -> None:
    def answered(working: Turn, sent: Sent, body: HeartbeatResponse) -> None:
        rebalance = body.error_code is ErrorCode.REBALANCE_IN_PROGRESS
        original(working, sent, HeartbeatResponse(ErrorCode.NONE) if rebalance else body)

    original = patches.attribute(heartbeats, "answered", answered)


def _metadata_not_watched(patches: Patches) -> None:
    def tell(working: Turn, assignments: object) -> None:
        original(working, assignments)
        working.change(assignment_snapshot=None)

    original = patches.attribute(leading, "_tell", tell)


def _commit_not_awaited(patches: Patches) -> None:
    def over(working: Turn) -> bool:
        original(working)
        working.change(prepare_commit=PrepareCommit.OVER)
        return True

    original = patches.attribute(completing, "_commit_over", over)


M = Side.MEMBER
FAULTS = (
    patched(
        "rejoin-forgotten-at-join", M, "KAFKA-5154", "the join counts as done when JoinGroup is answered",
        _rejoin_forgotten_at_join,
    ),
    patched(
        "generation-checked-too-late", M, "KAFKA-8104",
        "an assignment is taken although the generation was reset meanwhile", _generation_checked_after_the_state,
    ),
    patched(
        "join-kept-after-failure", M, "KAFKA-9140", "a join that failed is not forgotten, and fails for ever",
        _join_kept_after_failure,
    ),
    patched(
        "late-error-resets", M, "KAFKA-9823", "an error for an older generation resets the present one",
        _late_error_resets,
    ),
    patched(
        "prepare-not-repeated", M, "KAFKA-12983", "after a reset the member joins without giving up what it owned",
        _prepare_not_repeated,
    ),
    patched(
        "id-dropped-on-retriable-error", M, "KAFKA-13214", "the member id is dropped on an error that passes",
        _id_dropped_on_retriable_error,
    ),
    patched(
        "id-dropped-with-generation", M, "K-ERR-05", "ILLEGAL_GENERATION drops the member id too",
        _id_dropped_with_the_generation,
    ),
    patched(
        "poll-interval-not-watched", M, "KAFKA-15818", "a program that stalls stays in the group",
        _poll_interval_not_watched,
    ),
    patched("stall-only-resets", M, "K-HB-03", "a program that stalls does not say that it leaves", _stall_only_resets),
    patched(
        "static-member-leaves", M, "thomhurst/Dekaf#1348", "a static member leaves when it is closed",
        _static_member_leaves,
    ),
    patched(
        "lost-told-as-nothing", M, "K-CB-02", "the listener does not learn which partitions were lost",
        _lost_told_as_nothing,
    ),
    patched(
        "eager-keeps-partitions", M, "INV-CL-06", "an eager member keeps its partitions while it joins",
        _eager_member_keeps_partitions,
    ),
    patched(
        "no-rejoin-after-revoking", M, "K-CB-06", "a cooperative member that gave up partitions does not join again",
        _no_rejoin_after_revoking,
    ),
    patched(
        "fenced-not-fatal", M, "KAFKA-16815", "a fenced process joins again under its instance id",
        _fenced_heartbeat_not_fatal,
    ),
    patched(
        "rebalance-in-heartbeat-ignored", M, "K-ERR-06", "a member that is told of a rebalance does not join it",
        _rebalance_in_heartbeat_ignored,
    ),
    patched(
        "metadata-not-watched", M, "K-JOIN-02", "a leader does not notice new partitions", _metadata_not_watched
    ),
    patched(
        "commit-not-awaited", M, "K-CB-01", "the member joins before its positions are committed", _commit_not_awaited
    ),
)  # fmt: skip
