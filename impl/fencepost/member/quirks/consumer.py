"""What Kafka's consumer of KIP-848 does otherwise, and what its older releases did."""

from __future__ import annotations

from dataclasses import replace

from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatResponse
from fencepost.protocol.errors import ErrorCode
from fencepost.quirks import intended, quirk

from ..consumer import answers, application, heartbeats, reconciling, requests
from ..consumer import turn as turns
from ..consumer.state import Beat, ConsumerState, LocalAssignment, Reason, Sent, TopicIdPartition
from ..consumer.turn import ConsumerTurn
from ..events import Call, CloseOption
from ..partitions import TopicPartition
from ..state import Coordinator
from ..subscription import SubscriptionState

#: The share of a back-off by which it may be longer or shorter (N-HB-07).
_JITTER = 0.2

# --- what the answers do ---


@quirk("fault_late_heartbeat_counts", of=answers.overtaken)
def counts_late(turn: ConsumerTurn, sent: Sent, body: ConsumerGroupHeartbeatResponse) -> None:
    """Kafka cannot tell an answer from before the leave from any other: it counts as the answer to whatever is in
    flight (N-HB-11). It ends a leave if it says that the member is none (N-TR-08), and who is fenced by it once more is
    told so once more (N-TR-06)."""
    member = turn.member
    late = (replace(each, beat=Beat.LATE) if each.beat is not Beat.IGNORED else each for each in member.sent)
    left = member.leaving and member.state is ConsumerState.UNSUBSCRIBED
    ends_leave = left and (body.error_code is not ErrorCode.NONE or body.member_epoch < 0)
    turn.member = member._replace(sent=tuple(late))
    answers.heard(turn, replace(sent, beat=Beat.LEAVE if ends_leave else Beat.CURRENT), body)
    if member.state is ConsumerState.FENCED and body.error_code in answers.THROWN_OUT:
        turn.give_up(Call.LOST, Reason.FENCED)


@quirk("fault_late_heartbeat_counts", of=heartbeats.late_loss_counts)
def counts_late_loss(turn: ConsumerTurn) -> bool:
    """Nor can it tell the loss of such a heartbeat from that of any other: everything is told again, after a longer
    back-off, and a leave that is not answered yet is over (N-HB-11)."""
    if turn.member.state is ConsumerState.UNSUBSCRIBED:
        turn.left()
    return True


@quirk("fault_late_heartbeat_counts", of=heartbeats.let_go)
def keeps_waiting(turn: ConsumerTurn) -> None:
    """What was sent to who is no coordinator any more is answered, or lost, like anything else (N-HB-11)."""
    if turn.member.coordinator.node is not None:
        turn.member = turn.member._replace(coordinator=Coordinator())


@quirk("old_leave_without_group_is_fatal", of=answers.harmless)
def minds_every_code(turn: ConsumerTurn, error: ErrorCode) -> bool:
    """Up to 4.1 no code is expected in an answer to the leave, not even that the group is gone (V-94, N-ERR-05)."""
    return False


@quirk("fault_leave_answer_is_fatal", of=answers.harmless)
def minds_other_codes(turn: ConsumerTurn, error: ErrorCode) -> bool:
    """Of the codes that may answer a leave Kafka expects one, unless the member joins again already; any other makes a
    member fatal that has left (N-TR-08)."""
    return error is ErrorCode.GROUP_ID_NOT_FOUND and turn.member.state is ConsumerState.UNSUBSCRIBED


@quirk("old_negative_epoch_adopted", of=answers.tells_epoch)
def any_epoch_counts(turn: ConsumerTurn, epoch: int) -> bool:
    """4.0 takes over whatever epoch it is told (V-91)."""
    return True


@quirk("old_fenced_member_fetches", of=turns.stops_fetching)
def goes_on_fetching(turn: ConsumerTurn) -> bool:
    """Before 4.3 who was fenced fetches until its callback has run, from partitions that may be another's (V-98)."""
    return False


# --- when to send, and what ---


@quirk("fault_joining_skips_backoff", of=heartbeats.may_join)
def joins_at_once(turn: ConsumerTurn) -> bool:
    """A join that is refused is tried again at round-trip speed (N-HB-07, N-ERR-03)."""
    return True


@quirk("old_backoff_jitter", of=heartbeats.backoff)
def wild_backoff(turn: ConsumerTurn, attempts: int) -> int:
    """Up to 4.1 the poll interval stands where the share of the jitter belongs: the factor is drawn from 1 ± the
    interval in ms (V-93)."""
    settings = turn.member.settings
    factor = 1 + (turn.jitter - 1) / _JITTER * settings.max_poll_interval_ms
    delay = settings.retry_backoff_ms * 2 ** min(attempts, 30) * factor
    return max(0, int(min(delay, settings.retry_backoff_max_ms)))


@quirk("old_static_remains_silently", of=heartbeats.stays_silent)
def static_says_nothing(turn: ConsumerTurn) -> bool:
    """In 4.1 a static member that closes to remain says nothing, and a dynamic one leaves (V-92)."""
    static = turn.member.settings.group_instance_id is not None
    return static and turn.member.option is CloseOption.REMAIN_IN_GROUP


@quirk("fault_remaining_member_leaves", of=heartbeats.stays_silent)
def always_leaves(turn: ConsumerTurn) -> bool:
    """A dynamic member that is to remain in its group leaves it all the same (N-HB-09)."""
    return False


@quirk("fault_remaining_member_leaves", of=heartbeats.holds_leave)
def leaves_when_heard(turn: ConsumerTurn) -> bool:
    """It does so once no heartbeat is in flight: what makes it leave makes others acknowledge (N-HB-06, N-HB-09)."""
    member = turn.member
    remains = member.option is CloseOption.REMAIN_IN_GROUP and member.settings.group_instance_id is None
    return remains and not member.expired and member.in_flight is not None


@quirk("old_no_rack_in_heartbeats", of=requests.rack)
def no_rack(turn: ConsumerTurn) -> str | None:
    """4.0 knows the field and never fills it (V-90)."""
    return None


@quirk("fault_untold_partitions_unreported", of=requests.reported)
def reports_reconciled(turn: ConsumerTurn) -> frozenset[TopicIdPartition]:
    """Only what was reconciled last. A coordinator that wants something else back takes that as given up (M-REC-23),
    gives it away, and the member takes it from the older target (N-HB-05, INV-KIP-09)."""
    return requests.partitions_of(turn.member.current)


# --- reconciling ---


@quirk("fault_failed_assignment_stays", of=reconciling.owns_exactly)
def never_looks(turn: ConsumerTurn, partitions: frozenset[TopicPartition]) -> bool:
    """The target is what it was, so nothing is done: what a callback that threw was to add stays assigned although the
    coordinator has withdrawn it (N-REC-03, N-REC-09)."""
    return True


@quirk("fault_part_acknowledged_again", of=reconciling.is_news)
def acknowledges_again(turn: ConsumerTurn, resolved: LocalAssignment) -> bool:
    """While a topic of the target cannot be resolved the rest is acknowledged again and again, at round-trip speed
    (N-REC-03)."""
    return True


@quirk("old_background_revokes", of=reconciling.needs_poll)
def only_commits_wait(turn: ConsumerTurn, revoked: frozenset[TopicPartition]) -> bool:
    """Up to 4.1 a revocation begins in the background as well, unless it commits (V-95)."""
    return turn.member.settings.auto_commit


@quirk("old_target_topics_not_watched", of=reconciling.watched)
def watches_nothing(turn: ConsumerTurn, topic_ids: frozenset[bytes]) -> frozenset[bytes]:
    """4.0 asks for the metadata of what it subscribes to, and not of what its target names (V-96)."""
    return frozenset()


@quirk("old_background_replaces_assignment", of=reconciling.assign)
def assigns_in_background(turn: ConsumerTurn) -> None:
    """Before 4.3 the assignment is exchanged under the application, whatever it does; its thread only runs the
    callback (V-97)."""
    added = reconciling.working(turn).partitions - turn.member.subscription.owned
    intended(reconciling.replace_assignment)(turn)
    reconciling.enter_assign(turn)
    if turn.member.settings.listener:
        reconciling.tell_assigned(turn, added)
    else:
        reconciling.adopt(turn)


@quirk("old_background_replaces_assignment", of=application.drops_assignments)
def tells_them(turn: ConsumerTurn) -> bool:
    """Its callback is called like any other, since the assignment is in force (V-97)."""
    return False


@quirk("old_background_replaces_assignment", of=reconciling.replace_assignment)
def is_replaced(turn: ConsumerTurn) -> None:
    """When the application's thread gets there, the background has done it (V-97)."""


@quirk("fault_revocation_mark_stays", of=reconciling.unmarked)
def keeps_marks(turn: ConsumerTurn) -> SubscriptionState:
    """A partition that was to be revoked and is given back before it was stays marked, and is never fetched again
    (N-REC-11)."""
    return turn.member.subscription


# --- leaving ---


@quirk("old_no_close_options", of=application.honoured)
def as_ever(turn: ConsumerTurn, option: CloseOption) -> CloseOption:
    """4.0 has no options of close (V-21, V-80)."""
    return CloseOption.DEFAULT


@quirk("fault_close_tells_again", of=application.given_up)
def tells_what_it_remembers(turn: ConsumerTurn) -> tuple[Call, frozenset[TopicPartition]]:
    """The application's thread does not hear that an unsubscribe took everything away, nor of any end of a membership:
    close gives up once more what it remembers, and as revoked what was lost (N-CLOSE-01, INV-CL-01)."""
    remembered = turn.member.remembered
    return Call.REVOKED if remembered.joined else Call.LOST, remembered.owned


@quirk("fault_queued_callback_survives", of=reconciling.still_taken)
def takes_it_over(turn: ConsumerTurn) -> bool:
    """An assignment that waits for a poll is taken over although the member has left its group meanwhile, or has joined
    it anew: it has what nobody gave it (N-REC-05, INV-CL-01)."""
    return True


@quirk("fault_queued_callback_survives", of=turns.withdraw)
def withdraws_nothing(turn: ConsumerTurn) -> None:
    """A revocation that waits for a poll is told although the same partitions are told as lost (N-TR-06, N-TR-07,
    N-TR-09, INV-CL-01)."""
