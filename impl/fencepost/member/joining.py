"""One pass of the poll loop, and the join loop in it (8.5, 8.8).

The join loop of the Java consumer runs with a timeout of zero: it proceeds as far as it can without waiting for the
network, and the next poll resumes there (K-POLL-01). Here the loop also stops where the listener must run, and resumes
when the listener returns.
"""

from __future__ import annotations

from dataclasses import replace

from fencepost.protocol.errors import ErrorCode

from . import completing, leading, lookup, requests
from .completing import Progress
from .events import MemberTimer, RequestMetadata
from .state import ClassicMemberState, HeartbeatThread, JoinDone, JoinFailed, JoinOpen, Member, Retry
from .turn import Turn


def poll(turn: Turn) -> None:
    """Handle one poll: join if needed, and report the outcome of joins (K-POLL-01). The poll timer restarts even if the
    coordinator is unknown (K-POLL-02). A new heartbeat thread takes over the failure count of the old one (K-HB-05)."""
    leading.take_in_metadata(turn)  # K-POLL-01, 1
    if not turn.member.subscription.subscribed:
        turn.returns()
        return
    thread = turn.member.thread
    if thread.failure is not None:
        # K-HB-10: a new thread
        turn.member = turn.member._replace(thread=HeartbeatThread(failed_attempts=thread.failed_attempts))
        turn.returns(thread.failure)
        return
    if thread.exists:
        turn.set_deadline(MemberTimer.POLL, turn.member.settings.max_poll_interval_ms)  # K-HB-09
    if not _coordinator_known(turn):
        return
    if rejoin_needed_or_pending(turn):
        if turn.member.subscription.pattern is not None and turn.member.metadata_version == 0:
            # The pattern is matched at least once before the member joins (K-POLL-01).
            if not turn.member.metadata_requested:
                turn.member = turn.member._replace(metadata_requested=True)
                turn.emit(RequestMetadata(frozenset()))
            turn.returns()
            return
        turn.member = turn.member._replace(thread=replace(turn.member.thread, exists=True))  # K-HB-01
    join_if_needed(turn)


def _coordinator_known(turn: Turn) -> bool:
    """Return whether the coordinator is known. If not, look it up and end this poll (K-FIND-01)."""
    coordinator = turn.member.coordinator
    if coordinator.node is not None:
        return True
    turn.member = turn.member._replace(coordinator=replace(coordinator, failure=None))
    if coordinator.failure is None:
        lookup.start_again(turn)
    else:
        turn.drop_deadline(MemberTimer.LOOKUP)  # the failure is thrown now, so the next poll may look up immediately
    turn.returns(coordinator.failure)
    return False


def rejoin_needed_or_pending(turn: Turn) -> bool:
    """Return whether the member must join again (K-JOIN-18). The order of the checks is K-JOIN-02, K-JOIN-03,
    K-JOIN-01; an earlier reason is kept."""
    member = turn.member
    if not member.subscription.subscribed:
        return False
    reason = None
    if member.assignment_snapshot is not None and not member.assignment_snapshot.matches(member.snapshot):
        reason = "cached metadata has changed"  # K-JOIN-02
    elif member.joined_topics is not None and member.joined_topics != member.subscription.topics:
        reason = "subscription has changed"  # K-JOIN-03
    if reason is not None:
        if not member.rejoin_needed:
            turn.request_rejoin(reason)
        return True
    return member.rejoin_needed or member.join is not None


def join_if_needed(turn: Turn, *, prepared: bool = False) -> None:
    """Run the join loop until the poll ends or waits for the listener. ``prepared``: join prepare has just ended."""
    while rejoin_needed_or_pending(turn):
        if not prepared:
            if not _coordinator_known(turn):
                return
            if turn.running(MemberTimer.RETRY):  # K-ERR-14
                break
            if turn.member.needs_prepare:
                progress = completing.prepare(turn)
                if progress is Progress.LATER:
                    break
                if progress is not Progress.OVER:
                    return
        prepared = False
        if turn.member.join is None:
            requests.send_join(turn)
        match turn.member.join:
            case JoinOpen() | None:
                break
            case JoinFailed() as failed:
                if not _after_failure(turn, failed):
                    return
            case JoinDone(assignment):
                if turn.member.generation.reset or turn.member.state is not ClassicMemberState.STABLE:
                    # K-ST-16: the heartbeat thread reset the member before this poll adopted the assignment
                    turn.reset(_overtaken(turn.member), keep_id=False)
                    turn.member = turn.member._replace(join=None)
                    continue
                if completing.complete(turn, assignment) is not Progress.OVER:
                    return
                join_done(turn)
    turn.returns()


def _overtaken(member: Member) -> str:
    """Return Kafka's reason for this case; the next JoinGroup contains it (K-ERR-17)."""
    generation = member.generation
    name = "null" if generation.protocol_name is None else generation.protocol_name
    return (
        "rebalance failed since the generation/state was modified by heartbeat thread to "
        f"Generation{{generationId={generation.generation_id}, memberId='{generation.member_id}', protocol='{name}'}}/"
        f"{member.state.name} before the rebalance callback triggered"
    )


def join_done(turn: Turn) -> None:
    """End a join whose assignment is adopted; the next rebalance begins with join prepare."""
    turn.member = turn.member._replace(join=None, needs_prepare=True)


def _after_failure(turn: Turn, failed: JoinFailed) -> bool:
    """Return true if the join loop continues directly after the failure; else end this poll (K-ERR-14)."""
    turn.member = turn.member._replace(join=None)
    if failed.error is not ErrorCode.MEMBER_ID_REQUIRED:  # that error has set its own reason (K-ERR-07)
        turn.request_rejoin(f"rebalance failed due to {failed.cause}")
    match failed.retry:
        case Retry.AT_ONCE:
            return True
        case Retry.BACK_OFF:
            turn.set_deadline(MemberTimer.RETRY, turn.member.settings.retry_backoff_ms)
            turn.returns()
        case Retry.NEVER:
            turn.returns(failed.failure)
    return False
