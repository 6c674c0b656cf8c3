"""Reconciliation: the member moves from its current assignment to the coordinator's target (8.11).

It begins in the background (``start``), where it waits for a commit. Then the application's thread runs up to two
listener calls. After each wait the member checks whether the reconciliation still counts (N-REC-05). A newer target
does not stop it (N-REC-12): the member acknowledges the reached assignment, and reconciles the next one.
"""

from __future__ import annotations

from dataclasses import replace

from fencepost.quirks import varies

from ..events import Call, Commit, CommitResult, MemberTimer, RequestMetadata
from ..partitions import TopicPartition
from ..subscription import SubscriptionState
from .state import (
    ConsumerState,
    ListenerCall,
    LocalAssignment,
    Reason,
    Reconciliation,
    ReconciliationStage,
)
from .turn import ConsumerTurn


def start(turn: ConsumerTurn, *, polled: bool) -> bool:
    """Begin a reconciliation if the target differs and none is in progress. Return true if something happened.

    ``polled``: the application polls. Without a poll, only work that does not need the application begins (N-REC-01).
    """
    member = turn.member
    if member.state is not ConsumerState.RECONCILING or member.reconciliation is not None:
        return False
    target = member.target
    if target is None or target == member.current:
        return False
    names = _resolve(turn, target)
    resolved = LocalAssignment(target.epoch, frozenset(each for each in target.partitions if each.topic_id in names))
    partitions = frozenset(TopicPartition(names[each.topic_id], each.partition) for each in resolved.partitions)
    same = member.current is not None and member.current.partitions == resolved.partitions
    if same and owns_exactly(turn, partitions):
        if not is_news(turn, resolved):
            return False  # the other topics cannot be resolved yet
        turn.member = turn.member._replace(current=resolved, subscription=unmarked(turn))  # N-REC-03
        turn.move(ConsumerState.ACKNOWLEDGING)
        return True
    revoked = member.subscription.owned - partitions
    settings = member.settings
    if needs_poll(turn, revoked) and not polled:
        return False
    deadline = turn.now + settings.max_poll_interval_ms
    turn.member = turn.member._replace(
        subscription=replace(
            member.subscription, pending_revocation=member.subscription.pending_revocation | revoked
        ),  # N-REC-04: before the commit
        reconciliation=Reconciliation(resolved, partitions, revoked, ReconciliationStage.COMMIT, deadline),
    )
    if settings.auto_commit and member.subscription.owned:
        _commit(turn)
    else:
        _revoke(turn)
    return True


def owns_exactly(turn: ConsumerTurn, partitions: frozenset[TopicPartition]) -> bool:
    """Return whether the application owns exactly these partitions. It may own more: those whose listener call threw
    (N-REC-03, N-REC-09)."""
    return turn.member.subscription.owned == partitions or not turn.rules.unchanged_target_compared


def is_news(turn: ConsumerTurn, resolved: LocalAssignment) -> bool:
    """Return whether an acknowledgement would contain more than the last one (N-REC-03)."""
    return resolved != turn.member.current or not turn.rules.acknowledged_once


def needs_poll(turn: ConsumerTurn, revoked: frozenset[TopicPartition]) -> bool:
    """Return whether the application's thread is needed, for a commit or a revocation callback (N-REC-01)."""
    return turn.member.settings.auto_commit or (bool(revoked) and turn.rules.revocation_waits_for_poll)


def watched(turn: ConsumerTurn, topic_ids: frozenset[bytes]) -> frozenset[bytes]:
    """Return the target's topics whose metadata is requested by id: all, if the member subscribes by an expression. One
    that subscribes by name requests by name only (N-REC-02)."""
    by_name = turn.member.subscription.topics or not turn.rules.target_topics_watched
    return frozenset() if by_name else topic_ids


def _resolve(turn: ConsumerTurn, target: LocalAssignment) -> dict[bytes, str]:
    """Return the known names of the target's topics; request metadata for the others (N-REC-02)."""
    member = turn.member
    known = {topic.topic_id: topic.name for topic in member.cluster.values()}
    wanted = {each.topic_id for each in target.partitions}
    resolvable = {**member.names, **known}
    names = {each: resolvable[each] for each in wanted if each in resolvable}
    turn.member = turn.member._replace(names=names)
    if len(names) < len(wanted) and not member.metadata_requested:
        turn.member = turn.member._replace(metadata_requested=True, metadata_arrived=False)
        turn.emit(RequestMetadata(member.subscription.topics, watched(turn, frozenset(wanted))))
    return names


def working(turn: ConsumerTurn) -> Reconciliation:
    """Return the reconciliation in progress; there must be one."""
    reconciliation = turn.member.reconciliation
    assert reconciliation is not None
    return reconciliation


def wanted(turn: ConsumerTurn) -> bool:
    """Return whether a reconciliation is in progress and still counts. Drop one that does not (N-REC-05)."""
    reconciliation = turn.member.reconciliation
    if reconciliation is None:
        return False
    if turn.member.state is ConsumerState.RECONCILING and not reconciliation.outdated:
        return True
    turn.member = turn.member._replace(reconciliation=None)
    return False


# --- the commit ---


def _commit(turn: ConsumerTurn) -> None:
    """Commit all positions, also of partitions that stay (N-REC-04)."""
    commit_id = turn.number()
    turn.member = turn.member._replace(
        reconciliation=replace(working(turn), stage=ReconciliationStage.COMMIT, commit_id=commit_id)
    )
    turn.emit(Commit(commit_id, turn.member.subscription.owned))


def commit_finished(turn: ConsumerTurn, commit_id: int, result: CommitResult) -> None:
    """Continue after the commit. A failure does not stop the reconciliation. A retriable one is tried again until the
    rebalance timeout."""
    reconciliation = turn.member.reconciliation
    if reconciliation is None or reconciliation.commit_id != commit_id or not wanted(turn):
        return
    if result is CommitResult.RETRIABLE and turn.now < reconciliation.deadline_ms:
        turn.member = turn.member._replace(
            reconciliation=replace(reconciliation, stage=ReconciliationStage.COMMIT_BACKOFF, commit_id=None)
        )
        turn.set_deadline(MemberTimer.RETRY, turn.member.settings.retry_backoff_ms)
    else:
        _revoke(turn)


def commit_again(turn: ConsumerTurn) -> None:
    """Commit again after the back-off of a failed commit."""
    reconciliation = turn.member.reconciliation
    if reconciliation is not None and reconciliation.stage is ReconciliationStage.COMMIT_BACKOFF and wanted(turn):
        _commit(turn)


# --- the listener ---


def _revoke(turn: ConsumerTurn) -> None:
    reconciliation = replace(working(turn), stage=ReconciliationStage.REVOKE, commit_id=None)
    turn.member = turn.member._replace(reconciliation=reconciliation)
    if reconciliation.revoked and turn.member.settings.listener:
        turn.put(ListenerCall(Call.REVOKED, reconciliation.revoked, Reason.REVOCATION))  # N-REC-06
    else:
        assign(turn)


def revoked(turn: ConsumerTurn, error: str | None) -> None:
    """Continue after the revocation callback. If it threw, the reconciliation restarts at the next poll (N-REC-09)."""
    if error is not None:
        turn.member = turn.member._replace(reconciliation=None)
    elif wanted(turn):
        assign(turn)


@varies
def assign(turn: ConsumerTurn) -> None:
    """Queue the new assignment for the application's thread (N-REC-07)."""
    enter_assign(turn)
    queue_assigned_callback(turn, working(turn).partitions - turn.member.subscription.owned)


def enter_assign(turn: ConsumerTurn) -> None:
    """Put the reconciliation into its last stage."""
    turn.member = turn.member._replace(reconciliation=replace(working(turn), stage=ReconciliationStage.ASSIGN))


def queue_assigned_callback(turn: ConsumerTurn, added: frozenset[TopicPartition]) -> None:
    """Queue the listener call for the added partitions, even if there are none (N-REC-08)."""
    turn.put(ListenerCall(Call.ASSIGNED, added, Reason.ASSIGNMENT))


def replace_assignment(turn: ConsumerTurn) -> None:
    """Own the reconciled partitions. New ones are not fetched before their callback has run (N-REC-08)."""
    reconciliation, subscription = working(turn), turn.member.subscription
    pending = subscription.pending_callback | (reconciliation.partitions - subscription.owned)
    turn.member = turn.member._replace(
        subscription=replace(subscription, pending_callback=pending).assign(reconciliation.partitions),
        delivered=reconciliation.assignment.partitions,
    )
    turn.remember(reconciliation.partitions)


def take_over(turn: ConsumerTurn) -> bool:
    """Replace the assignment in the application's thread. Return true if the listener must be called."""
    if turn.member.reconciliation is None or (turn.rules.queued_callback_withdrawn and not wanted(turn)):
        return False
    if turn.rules.poll_replaces_assignment:
        replace_assignment(turn)  # N-REC-07
    if turn.member.settings.listener:
        return True
    if wanted(turn):
        adopt(turn)
    return False


def assigned(turn: ConsumerTurn, error: str | None) -> None:
    """Finish after the assignment callback, even if the reconciliation no longer counts (N-REC-07). If the callback
    threw, the new partitions are not fetched until a retry succeeds (N-REC-09)."""
    if error is not None:
        turn.member = turn.member._replace(reconciliation=None)
        return
    subscription = replace(turn.member.subscription, pending_callback=frozenset())
    turn.member = turn.member._replace(subscription=subscription)
    if wanted(turn):
        adopt(turn)


def adopt(turn: ConsumerTurn) -> None:
    """Finish the reconciliation: the member may fetch all assigned partitions, and acknowledges them (N-REC-08)."""
    subscription = replace(unmarked(turn), pending_callback=frozenset())
    turn.member = turn.member._replace(current=working(turn).assignment, reconciliation=None, subscription=subscription)
    turn.move(ConsumerState.ACKNOWLEDGING)


def unmarked(turn: ConsumerTurn) -> SubscriptionState:
    """Return the subscription without revocation marks, so that partitions given back are fetched again (N-REC-11)."""
    subscription = turn.member.subscription
    if not turn.rules.revocation_marks_cleared:
        return subscription
    return replace(subscription, pending_revocation=frozenset())
