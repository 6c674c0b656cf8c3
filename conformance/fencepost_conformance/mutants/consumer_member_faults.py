"""Faults of the KIP-848 member: what a client must not keep, forget, hide or say too early."""

from __future__ import annotations

from dataclasses import replace as changed

from fencepost.member.consumer import answers, application, heartbeats, reconciling, requests
from fencepost.member.consumer.state import (
    Beat,
    ConsumerMember,
    ConsumerState,
    LastSent,
    LocalAssignment,
    Sent,
    TopicIdPartition,
)
from fencepost.member.consumer.turn import ConsumerTurn
from fencepost.member.events import Call, CloseOption, Command, Failure, MemberTimer, Send
from fencepost.protocol.consumer_messages import (
    JOIN_EPOCH,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from fencepost.protocol.errors import ErrorCode

from .mutant import Side
from .patched import Patches, patched


def _heartbeat_while_fenced(patches: Patches) -> None:
    def thrown_out(working: ConsumerTurn) -> None:
        original(working)
        if working.member.state is ConsumerState.FENCED:
            working.join()

    original = patches.attribute(answers, "_thrown_out", thrown_out)


def _old_reconciliation_outlives_rejoin(patches: Patches) -> None:
    def wanted(working: ConsumerTurn) -> bool:
        reconciliation = working.member.reconciliation
        if reconciliation is not None:
            working.change(reconciliation=changed(reconciliation, outdated=False))
        return original(working)  # type: ignore[no-any-return]

    original = patches.attribute(reconciling, "wanted", wanted)


def _equal_sets_are_the_same(patches: Patches) -> None:
    def accepted(working: ConsumerTurn, body: ConsumerGroupHeartbeatResponse) -> None:
        original(working, body)
        target, current = working.member.target, working.member.current
        if target is not None and current is not None and target.partitions == current.partitions:
            working.change(target=current)

    original = patches.attribute(answers, "_accepted", accepted)


def _leave_waits_for_the_answer(patches: Patches) -> None:
    def leave(working: ConsumerTurn) -> None:
        if working.member.in_flight is not None and not working.member.expired:
            working.move(ConsumerState.UNSUBSCRIBED)
            working.left()
        else:
            original(working)

    original = patches.attribute(heartbeats, "_leave", leave)


def _poll_interval_not_watched(patches: Patches) -> None:
    def running(working: ConsumerTurn, timer: MemberTimer) -> bool:
        return timer is MemberTimer.POLL or original(working, timer)

    original = patches.attribute(ConsumerTurn, "running", running)


def _fatal_code_retried(patches: Patches) -> None:
    def fail(working: ConsumerTurn, failure: Failure) -> None:
        if failure.error is not ErrorCode.UNRELEASED_INSTANCE_ID:
            original(working, failure)

    original = patches.attribute(ConsumerTurn, "fail", fail)


def _fenced_keeps_its_epoch(patches: Patches) -> None:
    def thrown_out(working: ConsumerTurn) -> None:
        epoch = working.member.epoch
        original(working)
        if working.member.state is ConsumerState.FENCED:
            working.change(epoch=epoch)

    original = patches.attribute(answers, "_thrown_out", thrown_out)


def _joins_at_its_last_epoch(patches: Patches) -> None:
    def join(working: ConsumerTurn) -> None:
        epoch = working.member.epoch
        original(working)
        working.change(epoch=epoch)

    original = patches.attribute(ConsumerTurn, "join", join)


def _leaves_before_it_tells(patches: Patches) -> None:
    def give_up(working: ConsumerTurn, call: Call, reason: object) -> bool:
        told: bool = original(working, call, reason)
        return told and working.member.state is not ConsumerState.PREPARE_LEAVING

    original = patches.attribute(ConsumerTurn, "give_up", give_up)


def _static_member_leaves_for_good(patches: Patches) -> None:
    def epoch(working: ConsumerTurn, option: CloseOption) -> int:
        return -1

    patches.attribute(heartbeats, "leave_epoch", epoch)
    patches.attribute(application, "leave_epoch", epoch)


def _nothing_told_anew_after_a_failure(patches: Patches) -> None:
    def failed(working: ConsumerTurn) -> None:
        last = working.member.last_sent
        original(working)
        working.change(last_sent=last)

    original = patches.attribute(heartbeats, "failed", failed)


def _acknowledged_before_revoked(patches: Patches) -> None:
    def start(working: ConsumerTurn, *, polled: bool) -> bool:
        begun: bool = original(working, polled=polled)
        reconciliation = working.member.reconciliation
        if begun and reconciliation is not None and reconciliation.revoked:
            working.change(current=reconciliation.assignment, taken=reconciliation.assignment.partitions)
        return begun

    original = patches.attribute(reconciling, "start", start)


def _untold_partitions_unreported(patches: Patches) -> None:
    def reported(member: ConsumerMember) -> frozenset[TopicIdPartition]:
        current: LocalAssignment | None = member.current
        return current.partitions if current is not None else frozenset()

    patches.attribute(requests, "_reported", reported)


def _late_answers_count(patches: Patches) -> None:
    def answered(working: ConsumerTurn, sent: Sent, body: ConsumerGroupHeartbeatResponse) -> None:
        original(working, changed(sent, beat=Beat.CURRENT) if sent.beat is Beat.LATE else sent, body)

    original = patches.attribute(answers, "answered", answered)


def _commit_not_awaited(patches: Patches) -> None:
    def commit(working: ConsumerTurn) -> None:
        original(working)
        reconciling._revoke(working)

    original = patches.attribute(reconciling, "_commit", commit)


def _join_counts_as_not_sent(patches: Patches) -> None:
    def send(working: ConsumerTurn, beat: Beat) -> None:
        original(working, beat)
        if working.member.state is ConsumerState.JOINING:
            working.change(last_sent=LastSent())

    original = patches.attribute(requests, "send_heartbeat", send)


def _subscription_told_once(patches: Patches) -> None:
    def emit(working: ConsumerTurn, command: Command) -> None:
        if isinstance(command, Send) and isinstance(command.body, ConsumerGroupHeartbeatRequest):
            again = command.body.member_epoch == JOIN_EPOCH and command.request_id > 0
            command = changed(command, body=changed(command.body, subscribed_topic_names=None)) if again else command
        original(working, command)

    original = patches.attribute(ConsumerTurn, "emit", emit)


M = Side.CONSUMER_MEMBER
FAULTS = (
    patched(
        "joins-while-fenced", M, "KAFKA-16251", "a fenced member joins before its program has let go",
        _heartbeat_while_fenced,
    ),
    patched(
        "old-reconciliation-after-rejoin", M, "KAFKA-16375", "what was being reconciled is taken up after a rejoin",
        _old_reconciliation_outlives_rejoin,
    ),
    patched(
        "equal-sets-are-the-same", M, "KAFKA-16185, KAFKA-16312", "what is given back is not acknowledged",
        _equal_sets_are_the_same,
    ),
    patched(
        "leave-skipped-while-in-flight", M, "KAFKA-16639, KAFKA-17403",
        "no leave is sent while a heartbeat is unanswered", _leave_waits_for_the_answer,
    ),
    patched(
        "consumer-poll-interval-not-watched", M, "KAFKA-15818", "a program that stalls stays in the group",
        _poll_interval_not_watched,
    ),
    patched(
        "unreleased-instance-retried", M, "KAFKA-16815", "a second process of an instance id goes on asking",
        _fatal_code_retried,
    ),
    patched(
        "fenced-keeps-its-epoch", M, "KAFKA-16933", "a fenced member commits at its old epoch", _fenced_keeps_its_epoch
    ),
    patched(
        "joins-at-its-last-epoch", M, "KAFKA-19335", "after a leave the member asks to join at epoch -1",
        _joins_at_its_last_epoch,
    ),
    patched(
        "leaves-before-it-tells", M, "librdkafka#5541", "the leave goes out before the program has let go",
        _leaves_before_it_tells,
    ),
    patched(
        "static-consumer-leaves-for-good", M, "N-HB-09", "a static member leaves with -1",
        _static_member_leaves_for_good,
    ),
    patched(
        "nothing-told-anew", M, "N-HB-04", "after a lost heartbeat only what changed since is told",
        _nothing_told_anew_after_a_failure,
    ),
    patched(
        "acknowledged-before-revoked", M, "INV-CL-05", "a partition is reported as given up before the program knows",
        _acknowledged_before_revoked,
    ),
    patched(
        "untold-partitions-unreported", M, "N-HB-05", "what the program was just given is not reported",
        _untold_partitions_unreported,
    ),
    patched(
        "late-answers-count", M, "N-HB-11", "an answer from before the leave is taken for the join's",
        _late_answers_count,
    ),
    patched(
        "revoked-before-committed", M, "N-REC-04", "partitions are given up before their positions are committed",
        _commit_not_awaited,
    ),
    patched(
        "joins-tell-everything-twice", M, "N-HB-02", "the heartbeat after the join tells everything again",
        _join_counts_as_not_sent,
    ),
    patched(
        "subscription-told-once", M, "KAFKA-16190", "a member that joins again does not repeat what it subscribes to",
        _subscription_told_once,
    ),
)  # fmt: skip
