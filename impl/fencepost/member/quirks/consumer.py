"""Differences of Kafka's KIP-848 consumer, and of its older releases, from the intended protocol."""

from __future__ import annotations

from dataclasses import replace

from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatResponse
from fencepost.protocol.errors import ErrorCode
from fencepost.quirks import Next, quirk

from ..consumer import answers, application, heartbeats, reconciling, requests
from ..consumer import turn as turns
from ..consumer.state import Beat, ConsumerState, LocalAssignment, Reason, Sent, TopicIdPartition
from ..consumer.turn import ConsumerTurn
from ..events import Call, CloseOption
from ..partitions import TopicPartition
from ..state import Coordinator
from ..subscription import SubscriptionState

#: Jitter of a back-off, as a share of it (N-HB-07).
_JITTER = 0.2

# --- responses ---


@quirk("fault_late_heartbeat_counts", of=answers.overtaken)
def counts_late(_: Next[None], turn: ConsumerTurn, sent: Sent, body: ConsumerGroupHeartbeatResponse) -> None:
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


@quirk("old_leave_without_group_is_fatal", of=answers.harmless)
def minds_every_code(_: Next[bool], turn: ConsumerTurn, error: ErrorCode) -> bool:
    """Up to 4.1, accept no error code in the response to a leave, not even GROUP_ID_NOT_FOUND (V-94, N-ERR-05)."""
    return False


@quirk("fault_leave_answer_is_fatal", of=answers.harmless)
def minds_other_codes(_: Next[bool], turn: ConsumerTurn, error: ErrorCode) -> bool:
    """Accept only GROUP_ID_NOT_FOUND in the response to a leave, unless the member is joining again already. Any other
    code puts a member that has left into FATAL (N-TR-08)."""
    return error is ErrorCode.GROUP_ID_NOT_FOUND and turn.member.state is ConsumerState.UNSUBSCRIBED


@quirk("old_negative_epoch_adopted", of=answers.tells_epoch)
def any_epoch_counts(_: Next[bool], turn: ConsumerTurn, epoch: int) -> bool:
    """In 4.0, adopt any epoch of a response (V-91)."""
    return True


@quirk("old_fenced_member_fetches", of=turns.stops_fetching)
def goes_on_fetching(_: Next[bool], turn: ConsumerTurn) -> bool:
    """Before 4.3, a fenced member fetches until its callback has run; another member may own the partitions (V-98)."""
    return False


# --- sending heartbeats ---


@quirk("fault_joining_skips_backoff", of=heartbeats.may_join)
def joins_at_once(_: Next[bool], turn: ConsumerTurn) -> bool:
    """Retry a rejected join at round-trip speed (N-HB-07, N-ERR-03)."""
    return True


@quirk("old_backoff_jitter", of=heartbeats.backoff)
def wild_backoff(_: Next[int], turn: ConsumerTurn, attempts: int) -> int:
    """Up to 4.1, the poll interval is used as the jitter: the factor is drawn from 1 ± the interval in ms (V-93)."""
    settings = turn.member.settings
    factor = 1 + (turn.jitter - 1) / _JITTER * settings.max_poll_interval_ms
    delay = settings.retry_backoff_ms * 2 ** min(attempts, 30) * factor
    return max(0, int(min(delay, settings.retry_backoff_max_ms)))


@quirk("old_static_remains_silently", of=heartbeats.stays_silent)
def static_says_nothing(_: Next[bool], turn: ConsumerTurn) -> bool:
    """In 4.1, a static member that closes to remain sends nothing, and a dynamic one leaves (V-92)."""
    static = turn.member.settings.group_instance_id is not None
    return static and turn.member.option is CloseOption.REMAIN_IN_GROUP


@quirk("fault_remaining_member_leaves", of=heartbeats.stays_silent)
def always_leaves(_: Next[bool], turn: ConsumerTurn) -> bool:
    """Let a dynamic member that should remain in its group leave (N-HB-09)."""
    return False


@quirk("fault_remaining_member_leaves", of=heartbeats.holds_leave)
def leaves_when_heard(_: Next[bool], turn: ConsumerTurn) -> bool:
    """Delay that leave until no heartbeat is unanswered: it is sent like an acknowledgement (N-HB-06, N-HB-09)."""
    member = turn.member
    remains = member.option is CloseOption.REMAIN_IN_GROUP and member.settings.group_instance_id is None
    return remains and not member.expired and member.in_flight is not None


@quirk("old_no_rack_in_heartbeats", of=requests.rack)
def no_rack(_: Next[str | None], turn: ConsumerTurn) -> str | None:
    """In 4.0, never fill the field (V-90)."""
    return None


@quirk("fault_untold_partitions_unreported", of=requests.reported)
def reports_reconciled(_: Next[frozenset[TopicIdPartition]], turn: ConsumerTurn) -> frozenset[TopicIdPartition]:
    """Report only what was reconciled last. A coordinator that revokes another partition takes that as given up
    (M-REC-23) and assigns it elsewhere, while the member adopts it from the older target (N-HB-05, INV-KIP-09)."""
    return requests.partitions_of(turn.member.current)


# --- reconciling ---


@quirk("fault_failed_assignment_stays", of=reconciling.owns_exactly)
def never_looks(_: Next[bool], turn: ConsumerTurn, partitions: frozenset[TopicPartition]) -> bool:
    """Do nothing while the target is unchanged. A partition whose callback threw stays assigned although the
    coordinator has withdrawn it (N-REC-03, N-REC-09)."""
    return True


@quirk("fault_part_acknowledged_again", of=reconciling.is_news)
def acknowledges_again(_: Next[bool], turn: ConsumerTurn, resolved: LocalAssignment) -> bool:
    """While a topic of the target cannot be resolved, acknowledge the rest again and again, at round-trip speed
    (N-REC-03)."""
    return True


@quirk("old_background_revokes", of=reconciling.needs_poll)
def only_commits_wait(_: Next[bool], turn: ConsumerTurn, revoked: frozenset[TopicPartition]) -> bool:
    """Up to 4.1, begin a revocation in the background too, unless the member commits (V-95)."""
    return turn.member.settings.auto_commit


@quirk("old_target_topics_not_watched", of=reconciling.watched)
def watches_nothing(_: Next[frozenset[bytes]], turn: ConsumerTurn, topic_ids: frozenset[bytes]) -> frozenset[bytes]:
    """In 4.0, request metadata of the subscribed topics only, not of the target's (V-96)."""
    return frozenset()


@quirk("old_background_replaces_assignment", of=reconciling.assign)
def assigns_in_background(_: Next[None], turn: ConsumerTurn) -> None:
    """Before 4.3, replace the assignment in the background at any time; the application's thread only runs the callback
    (V-97)."""
    added = reconciling.working(turn).partitions - turn.member.subscription.owned
    reconciling.replace_assignment(turn)
    reconciling.enter_assign(turn)
    if turn.member.settings.listener:
        reconciling.tell_assigned(turn, added)
    else:
        reconciling.adopt(turn)


@quirk("old_background_replaces_assignment", of=application.drops_assignments)
def tells_them(_: Next[bool], turn: ConsumerTurn) -> bool:
    """Call the callback of such an assignment as usual, since the assignment is in force (V-97)."""
    return False


@quirk("old_background_replaces_assignment", of=reconciling.replace_by_poll)
def is_replaced(_: Next[None], turn: ConsumerTurn) -> None:
    """Do nothing in the application's thread: the background has replaced the assignment (V-97)."""


@quirk("fault_revocation_mark_stays", of=reconciling.unmarked)
def keeps_marks(_: Next[SubscriptionState], turn: ConsumerTurn) -> SubscriptionState:
    """Keep the mark of a partition that is given back before it was revoked; it is never fetched again (N-REC-11)."""
    return turn.member.subscription


# --- leaving ---


@quirk("old_no_close_options", of=application.honoured)
def as_ever(_: Next[CloseOption], turn: ConsumerTurn, option: CloseOption) -> CloseOption:
    """In 4.0, ignore the options of close (V-21, V-80)."""
    return CloseOption.DEFAULT


@quirk("fault_close_tells_again", of=application.given_up)
def tells_what_it_remembers(
    _: Next[tuple[Call, frozenset[TopicPartition]]], turn: ConsumerTurn
) -> tuple[Call, frozenset[TopicPartition]]:
    """Give up remembered partitions again at close. The application's thread does not learn that an unsubscribe took
    everything away, or that the membership ended; it reports lost partitions as revoked (N-CLOSE-01, INV-CL-01)."""
    remembered = turn.member.remembered
    return Call.REVOKED if remembered.joined else Call.LOST, remembered.owned


@quirk("fault_queued_callback_survives", of=reconciling.still_taken)
def takes_it_over(_: Next[bool], turn: ConsumerTurn) -> bool:
    """Apply an assignment that waits for a poll although the member has left the group, or has joined it again. It then
    has partitions that the coordinator did not assign (N-REC-05, INV-CL-01)."""
    return True


@quirk("fault_queued_callback_survives", of=turns.withdraw)
def withdraws_nothing(_: Next[None], turn: ConsumerTurn) -> None:
    """Keep a revocation that waits for a poll, although the same partitions are reported as lost (N-TR-06, N-TR-07,
    N-TR-09, INV-CL-01)."""
