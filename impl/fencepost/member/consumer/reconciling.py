"""Reconciliation: from the assignment that the coordinator wants to the one that the application has (8.11).

It begins in the background (``start``), waits for a commit there, and goes over to the application's thread twice, for
the listener. Whenever it comes back it looks whether it is still wanted (N-REC-05). A newer target does not stop it
(N-REC-12): what it has reached is acknowledged, and the next one begins.
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
    same = member.current is not None and member.current.partitions == resolved.partitions
    if same and owns_exactly(turn, partitions):
        if not is_news(turn, resolved):
            return False  # the rest cannot be resolved yet
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
        reconciliation=Reconciliation(resolved, partitions, revoked, Stage.COMMIT, deadline),
    )
    if settings.auto_commit and member.subscription.owned:
        _commit(turn)
    else:
        _revoke(turn)
    return True


@varies
def owns_exactly(turn: ConsumerTurn, partitions: frozenset[TopicPartition]) -> bool:
    """Whether the application has these; it may own more, that a callback which threw was to tell (N-REC-03,
    N-REC-09)."""
    return turn.member.subscription.owned == partitions


@varies
def is_news(turn: ConsumerTurn, resolved: LocalAssignment) -> bool:
    """Whether an acknowledgement would tell the coordinator more than the last one (N-REC-03)."""
    return resolved != turn.member.current


@varies
def needs_poll(turn: ConsumerTurn, revoked: frozenset[TopicPartition]) -> bool:
    """A commit and a callback that revokes are for the application's thread (N-REC-01)."""
    return turn.member.settings.auto_commit or bool(revoked)


@varies
def watched(turn: ConsumerTurn, topic_ids: frozenset[bytes]) -> frozenset[bytes]:
    """The topics of the target that metadata is asked for by their ids (N-REC-02)."""
    return topic_ids


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
        turn.emit(RequestMetadata(member.subscription.topics, watched(turn, frozenset(wanted))))
    return names


def working(turn: ConsumerTurn) -> Reconciliation:
    """The reconciliation in progress; there must be one."""
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
    turn.member = turn.member._replace(reconciliation=replace(working(turn), stage=Stage.COMMIT, commit_id=commit_id))
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
    """The back-off after a commit that failed has passed."""
    reconciliation = turn.member.reconciliation
    if reconciliation is not None and reconciliation.stage is Stage.COMMIT_BACKOFF and wanted(turn):
        _commit(turn)


# --- the listener ---


def _revoke(turn: ConsumerTurn) -> None:
    reconciliation = replace(working(turn), stage=Stage.REVOKE, commit_id=None)
    turn.member = turn.member._replace(reconciliation=reconciliation)
    if reconciliation.revoked and turn.member.settings.listener:
        turn.put(ListenerCall(Call.REVOKED, reconciliation.revoked, Reason.REVOCATION))  # N-REC-06
    else:
        assign(turn)


def revoked(turn: ConsumerTurn, error: str | None) -> None:
    """The listener returned. If it threw, the reconciliation begins anew at the next poll (N-REC-09)."""
    if error is not None:
        turn.member = turn.member._replace(reconciliation=None)
    elif wanted(turn):
        assign(turn)


@varies
def assign(turn: ConsumerTurn) -> None:
    """The application's thread is asked to take over the new assignment when it gets there (N-REC-07)."""
    enter_assign(turn)
    tell_assigned(turn, working(turn).partitions - turn.member.subscription.owned)


def enter_assign(turn: ConsumerTurn) -> None:
    """The reconciliation is at its last stage."""
    turn.member = turn.member._replace(reconciliation=replace(working(turn), stage=Stage.ASSIGN))


def tell_assigned(turn: ConsumerTurn, added: frozenset[TopicPartition]) -> None:
    """The listener is to hear of these, and of an assignment that adds nothing too (N-REC-08)."""
    turn.put(ListenerCall(Call.ASSIGNED, added, Reason.ASSIGNMENT))


@varies
def replace_assignment(turn: ConsumerTurn) -> None:
    """The application owns what was reconciled; what is new is not fetched before its callback has run (N-REC-08)."""
    reconciliation, subscription = working(turn), turn.member.subscription
    pending = subscription.pending_callback | (reconciliation.partitions - subscription.owned)
    turn.member = turn.member._replace(
        subscription=replace(subscription, pending_callback=pending).assign(reconciliation.partitions),
        taken=reconciliation.assignment.partitions,
    )
    turn.remember(reconciliation.partitions)


def take_over(turn: ConsumerTurn) -> bool:
    """The application's thread has got there: replace the assignment. True if the listener is to be told."""
    if turn.member.reconciliation is None or not (still_taken(turn) or wanted(turn)):
        return False
    replace_assignment(turn)
    if turn.member.settings.listener:
        return True
    if wanted(turn):
        adopt(turn)
    return False


@varies
def still_taken(turn: ConsumerTurn) -> bool:
    """Whether what waits for the application is taken over whatever has become of the member (N-REC-05)."""
    return False


def assigned(turn: ConsumerTurn, error: str | None) -> None:
    """The listener knows the new partitions, whatever has become of the reconciliation meanwhile (N-REC-07). If it
    threw, they stay unfetchable until a retry succeeds (N-REC-09)."""
    if error is not None:
        turn.member = turn.member._replace(reconciliation=None)
        return
    told = replace(turn.member.subscription, pending_callback=frozenset())
    turn.member = turn.member._replace(subscription=told)
    if wanted(turn):
        adopt(turn)


def adopt(turn: ConsumerTurn) -> None:
    """The application knows: all that is assigned may be fetched (N-REC-08)."""
    subscription = replace(unmarked(turn), pending_callback=frozenset())
    turn.member = turn.member._replace(current=working(turn).assignment, reconciliation=None, subscription=subscription)
    turn.move(ConsumerState.ACKNOWLEDGING)


@varies
def unmarked(turn: ConsumerTurn) -> SubscriptionState:
    """What was to be taken away and was given back is fetched again (N-REC-11)."""
    return replace(turn.member.subscription, pending_revocation=frozenset())
