"""Differences of Kafka's KIP-848 consumer, and of its older releases, from the intended protocol."""

from __future__ import annotations

from dataclasses import replace

from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatResponse
from fencepost.protocol.errors import ErrorCode
from fencepost.quirks import Next, quirk

from ..consumer import answers, application, heartbeats, reconciling, requests
from ..consumer.state import Beat, ConsumerState, Reason, SentHeartbeat, TopicIdPartition
from ..consumer.turn import ConsumerTurn
from ..events import Call
from ..partitions import TopicPartition
from ..state import Coordinator

#: Jitter of a back-off, as a share of it (N-HB-07).
_JITTER = 0.2

# --- responses ---


@quirk("fault_late_heartbeat_counts", of=answers.overtaken)
def counts_late(_: Next[None], turn: ConsumerTurn, sent: SentHeartbeat, body: ConsumerGroupHeartbeatResponse) -> None:
    """Treat a late response as the response to whatever is unanswered, because Kafka cannot tell the two apart
    (N-HB-11). An error in it ends a leave (N-TR-08). A member that it fences once more calls the listener once more
    (N-TR-06)."""
    member = turn.member
    late = (replace(each, beat=Beat.LATE) if each.beat is not Beat.IGNORED else each for each in member.sent)
    left = member.leaving and member.state is ConsumerState.UNSUBSCRIBED
    ends_leave = left and (body.error_code is not ErrorCode.NONE or body.member_epoch < 0)
    turn.member = member._replace(sent=tuple(late))
    answers.heard(turn, replace(sent, beat=Beat.LEAVE if ends_leave else Beat.CURRENT), body)
    if member.state is ConsumerState.FENCED and body.error_code in answers.THROWN_OUT:
        turn.give_up(Call.LOST, Reason.FENCED)


@quirk("fault_late_heartbeat_counts", of=heartbeats.late_loss_counts)
def counts_late_loss(_: Next[bool], turn: ConsumerTurn) -> bool:
    """Treat the loss of a late heartbeat like any other loss (N-HB-11): the next heartbeat sends everything, after a
    longer back-off, and an unanswered leave has ended."""
    if turn.member.state is ConsumerState.UNSUBSCRIBED:
        turn.left()
    return True


@quirk("fault_late_heartbeat_counts", of=heartbeats.let_go)
def keeps_waiting(_: Next[None], turn: ConsumerTurn) -> None:
    """Keep requests to the former coordinator: they are answered or lost like any other (N-HB-11)."""
    if turn.member.coordinator.node is not None:
        turn.member = turn.member._replace(coordinator=Coordinator())


# --- sending heartbeats ---


@quirk("old_backoff_jitter", of=heartbeats.backoff)
def wild_backoff(_: Next[int], turn: ConsumerTurn, attempts: int) -> int:
    """Up to 4.1, the poll interval is used as the jitter: the factor is drawn from 1 ± the interval in ms (V-93)."""
    settings = turn.member.settings
    factor = 1 + (turn.jitter - 1) / _JITTER * settings.max_poll_interval_ms
    delay = settings.retry_backoff_ms * 2 ** min(attempts, 30) * factor
    return max(0, int(min(delay, settings.retry_backoff_max_ms)))


@quirk("fault_pending_partitions_unreported", of=requests.reported)
def reports_reconciled(_: Next[frozenset[TopicIdPartition]], turn: ConsumerTurn) -> frozenset[TopicIdPartition]:
    """Report only what was reconciled last. A coordinator that revokes another partition takes that as given up
    (M-REC-23) and assigns it elsewhere, while the member adopts it from the older target (N-HB-05, INV-KIP-09)."""
    return requests.partitions_of(turn.member.current)


# --- reconciling ---


@quirk("old_background_replaces_assignment", of=reconciling.assign)
def assigns_in_background(_: Next[None], turn: ConsumerTurn) -> None:
    """Before 4.3, replace the assignment in the background at any time; the application's thread only runs the callback
    (V-97)."""
    added = reconciling.working(turn).partitions - turn.member.subscription.owned
    reconciling.replace_assignment(turn)
    reconciling.enter_assign(turn)
    if turn.member.settings.listener:
        reconciling.queue_assigned_callback(turn, added)
    else:
        reconciling.adopt(turn)


# --- leaving ---


@quirk("fault_close_gives_up_again", of=application.given_up)
def gives_up_remembered(
    _: Next[tuple[Call, frozenset[TopicPartition]]], turn: ConsumerTurn
) -> tuple[Call, frozenset[TopicPartition]]:
    """Give up remembered partitions again at close. The application's thread does not learn that an unsubscribe took
    everything away, or that the membership ended; it reports lost partitions as revoked (N-CLOSE-01, INV-CL-01)."""
    remembered = turn.member.remembered
    return Call.REVOKED if remembered.joined else Call.LOST, remembered.owned
