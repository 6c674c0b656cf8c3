"""Reconciliation: from the assignment that the coordinator wants to the one that the application has (8.11).

It begins in the background (``start``), waits for a commit there, and goes over to the application's thread twice, for
the listener. Whenever it comes back it looks whether it is still wanted (N-REC-05). A newer target does not stop it
(N-REC-12): what it has reached is acknowledged, and the next one begins.
"""

from __future__ import annotations

from dataclasses import replace

from ..events import Call, Commit, CommitResult, MemberTimer, RequestMetadata
from ..partitions import TopicPartition
from ..subscription import SubscriptionState
from .state import (
    ConsumerState,
    ListenerCall,
    LocalAssignment,
    Reason,
    Reconciliation,
    Stage,
)
from .turn import ConsumerTurn


def start(turn: ConsumerTurn, *, polled: bool) -> bool:
    """Begin if there is something to reconcile and nothing in progress; true if something happened.

    ``polled``: the application polls. Otherwise only what needs nothing of it begins (N-REC-01).
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
    if member.current is not None and member.current.partitions == resolved.partitions:
        profile = member.settings.profile
        if partitions == member.subscription.owned or profile.fault_failed_assignment_stays:
            if resolved == member.current and not profile.fault_part_acknowledged_again:
                return False  # the rest cannot be resolved yet
            turn.member = turn.member._replace(current=resolved, subscription=_unmarked(turn))  # N-REC-03
            turn.move(ConsumerState.ACKNOWLEDGING)
            return True
    revoked = member.subscription.owned - partitions
    settings = member.settings
    waits = settings.auto_commit or (revoked and not settings.profile.old_background_revokes)
    if waits and not polled:
        return False
    deadline = turn.now + settings.max_poll_interval_ms
    turn.member = turn.member._replace(
        subscription=replace(
            member.subscription, pending_revocation=member.subscription.pending_revocation | revoked
        ),  # N-REC-04: before the commit
        reconciliation=Reconciliation(resolved, partitions, revoked, Stage.COMMIT, deadline),
    )
    if settings.auto_commit and member.subscription.owned:
        _commit(turn)
    else:
        _revoke(turn)
    return True


def _resolve(turn: ConsumerTurn, target: LocalAssignment) -> dict[bytes, str]:
    """The names of the target's topics, as far as known; the others are asked for (N-REC-02)."""
    member = turn.member
    known = {topic.topic_id: topic.name for topic in member.cluster.values()}
    wanted = {each.topic_id for each in target.partitions}
    resolvable = {**member.names, **known}
    names = {each: resolvable[each] for each in wanted if each in resolvable}
    turn.member = turn.member._replace(names=names)
    if len(names) < len(wanted) and not member.metadata_requested:
        turn.member = turn.member._replace(metadata_requested=True, metadata_arrived=False)
        ids = frozenset() if member.settings.profile.old_target_topics_not_watched else frozenset(wanted)
        turn.emit(RequestMetadata(member.subscription.topics, ids))
    return names


def _working(turn: ConsumerTurn) -> Reconciliation:
    reconciliation = turn.member.reconciliation
    assert reconciliation is not None
    return reconciliation


def wanted(turn: ConsumerTurn) -> bool:
    """Is there a reconciliation, and does it still count? If not, it is over (N-REC-05)."""
    reconciliation = turn.member.reconciliation
    if reconciliation is None:
        return False
    if turn.member.state is ConsumerState.RECONCILING and not reconciliation.outdated:
        return True
    turn.member = turn.member._replace(reconciliation=None)
    return False


# --- the commit ---


def _commit(turn: ConsumerTurn) -> None:
    """Every position, also of what stays (N-REC-04)."""
    commit_id = turn.number()
    turn.member = turn.member._replace(reconciliation=replace(_working(turn), stage=Stage.COMMIT, commit_id=commit_id))
    turn.emit(Commit(commit_id, turn.member.subscription.owned))


def commit_finished(turn: ConsumerTurn, commit_id: int, result: CommitResult) -> None:
    """A failure does not stop the reconciliation, but what may pass is tried again for a rebalance timeout."""
    reconciliation = turn.member.reconciliation
    if reconciliation is None or reconciliation.commit_id != commit_id or not wanted(turn):
        return
    if result is CommitResult.RETRIABLE and turn.now < reconciliation.deadline_ms:
        turn.member = turn.member._replace(
            reconciliation=replace(reconciliation, stage=Stage.COMMIT_BACKOFF, commit_id=None)
        )
        turn.set_deadline(MemberTimer.RETRY, turn.member.settings.retry_backoff_ms)
    else:
        _revoke(turn)


def commit_again(turn: ConsumerTurn) -> None:
    reconciliation = turn.member.reconciliation
    if reconciliation is not None and reconciliation.stage is Stage.COMMIT_BACKOFF and wanted(turn):
        _commit(turn)


# --- the listener ---


def _revoke(turn: ConsumerTurn) -> None:
    reconciliation = replace(_working(turn), stage=Stage.REVOKE, commit_id=None)
    turn.member = turn.member._replace(reconciliation=reconciliation)
    if reconciliation.revoked and turn.member.settings.listener:
        turn.put(ListenerCall(Call.REVOKED, reconciliation.revoked, Reason.REVOCATION))  # N-REC-06
    else:
        _assign(turn)


def revoked(turn: ConsumerTurn, error: str | None) -> None:
    """The listener returned. If it threw, the reconciliation begins anew at the next poll (N-REC-09)."""
    if error is not None:
        turn.member = turn.member._replace(reconciliation=None)
    elif wanted(turn):
        _assign(turn)


def _assign(turn: ConsumerTurn) -> None:
    """N-REC-07: the application's thread replaces the assignment when it gets there."""
    reconciliation = replace(_working(turn), stage=Stage.ASSIGN)
    turn.member = turn.member._replace(reconciliation=reconciliation)
    added = reconciliation.partitions - turn.member.subscription.owned
    if turn.member.settings.profile.old_background_replaces_assignment:
        _replace_assignment(turn)
        if not turn.member.settings.listener:
            _adopt(turn)
            return
    turn.put(ListenerCall(Call.ASSIGNED, added, Reason.ASSIGNMENT))


def _replace_assignment(turn: ConsumerTurn) -> None:
    reconciliation, subscription = _working(turn), turn.member.subscription
    pending = subscription.pending_callback | (reconciliation.partitions - subscription.owned)
    turn.member = turn.member._replace(
        subscription=replace(subscription, pending_callback=pending).assign(reconciliation.partitions),
        taken=reconciliation.assignment.partitions,
    )


def take_over(turn: ConsumerTurn) -> bool:
    """The application's thread has got there: replace the assignment. True if the listener is to be told."""
    if not wanted(turn):
        return False
    if not turn.member.settings.profile.old_background_replaces_assignment:
        _replace_assignment(turn)
    if turn.member.settings.listener:
        return True
    _adopt(turn)
    return False


def assigned(turn: ConsumerTurn, error: str | None) -> None:
    """The listener knows the new partitions. If it threw, they stay unfetchable until a retry succeeds (N-REC-09)."""
    if error is not None:
        turn.member = turn.member._replace(reconciliation=None)
    elif wanted(turn):
        _adopt(turn)


def _adopt(turn: ConsumerTurn) -> None:
    """N-REC-08: all that is assigned may be fetched."""
    subscription = replace(_unmarked(turn), pending_callback=frozenset())
    turn.member = turn.member._replace(
        current=_working(turn).assignment, reconciliation=None, subscription=subscription
    )
    turn.move(ConsumerState.ACKNOWLEDGING)


def _unmarked(turn: ConsumerTurn) -> SubscriptionState:
    """What was to be taken away and was given back is fetched again (N-REC-11)."""
    subscription = turn.member.subscription
    if turn.member.settings.profile.fault_revocation_mark_stays:
        return subscription
    return replace(subscription, pending_revocation=frozenset())
