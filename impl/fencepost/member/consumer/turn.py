"""The working copy of a KIP-848 member during one step."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from ..events import Call, Failure, MemberTimer
from ..partitions import TopicPartition
from ..turn import AnyTurn
from .state import (
    BackgroundEvent,
    ConsumerMember,
    ConsumerState,
    ListenerCall,
    Reason,
    ReconciliationStage,
    SentHeartbeat,
    WaitingConsumerCall,
)

_S = ConsumerState
#: N-ST-20…29, without transitions that are legal but never happen.
LEGAL: dict[ConsumerState, frozenset[ConsumerState]] = {
    _S.UNSUBSCRIBED: frozenset({_S.JOINING, _S.FATAL}),
    _S.JOINING: frozenset({_S.RECONCILING, _S.FENCED, _S.FATAL, _S.PREPARE_LEAVING}),
    _S.RECONCILING: frozenset({_S.ACKNOWLEDGING, _S.STABLE, _S.FENCED, _S.FATAL, _S.PREPARE_LEAVING}),
    _S.ACKNOWLEDGING: frozenset({_S.RECONCILING, _S.STABLE, _S.FENCED, _S.FATAL, _S.PREPARE_LEAVING}),
    _S.STABLE: frozenset({_S.RECONCILING, _S.FENCED, _S.FATAL, _S.PREPARE_LEAVING}),
    _S.FENCED: frozenset({_S.JOINING, _S.UNSUBSCRIBED}),
    _S.PREPARE_LEAVING: frozenset({_S.LEAVING, _S.UNSUBSCRIBED, _S.FATAL}),
    _S.LEAVING: frozenset({_S.UNSUBSCRIBED, _S.STALE, _S.FATAL}),
    _S.STALE: frozenset({_S.JOINING}),
    _S.FATAL: frozenset(),
}


def armed(member: ConsumerMember) -> dict[MemberTimer, int]:
    """Return the timers that are set, with their deadlines. Heartbeat timers and the poll interval count only while the
    coordinator is known (N-TR-13)."""
    known, state = member.coordinator.node is not None, member.state
    beats = known and state.heartbeats and member.in_flight is None
    matters = {
        MemberTimer.HEARTBEAT: beats,
        MemberTimer.BACKOFF: beats,
        MemberTimer.POLL: known and state.in_group,
        MemberTimer.LOOKUP: not known and not member.coordinator.looking_up,
    }
    return {timer: at for timer, at in member.deadlines.items() if matters.get(timer, True)}


class ConsumerTurn(AnyTurn[ConsumerMember]):
    """The working copy of a KIP-848 member."""

    def move(self, state: ConsumerState) -> None:
        """Change the state, along a legal transition (INV-CL-07); staying is always legal (N-ST-30)."""
        before = self.member.state
        assert state is before or state in LEGAL[before], f"{before.value} to {state.value}"
        self.member = self.member._replace(state=state)

    def number(self) -> int:
        """Return a fresh id for a request or commit."""
        number = self.member.next_request_id
        self.member = self.member._replace(next_request_id=number + 1)
        return number

    def fly(self, sent: SentHeartbeat) -> None:
        """Record a request as sent and unanswered."""
        self.member = self.member._replace(sent=(*self.member.sent, sent))

    # --- membership ---

    def join(self) -> None:
        """Join as a new member, at epoch 0 (N-TR-15). A reconciliation in progress becomes outdated (N-REC-05)."""
        self.move(_S.JOINING)
        self.member = self.member._replace(
            epoch=0, target=None, current=None, names=MappingProxyType({}), expired=False, back=False
        )  # N-TR-15
        reconciliation = self.member.reconciliation
        if reconciliation is not None:
            self.member = self.member._replace(reconciliation=replace(reconciliation, outdated=True))  # N-REC-05

    def release(self) -> None:
        """Drop all partitions, the target and the target's topic names."""
        if self.member.subscription.subscribed:
            self.remember(frozenset())
        self.member = self.member._replace(
            subscription=self.member.subscription.assign(()),
            current=None,
            delivered=frozenset(),
            target=None,
            names=MappingProxyType({}),
        )

    def remember(self, owned: frozenset[TopicPartition]) -> None:
        """Store what the application's thread knows to be owned."""
        self.member = self.member._replace(remembered=replace(self.member.remembered, owned=owned))

    def left(self) -> None:
        """Mark the leave as ended: it was answered, failed or skipped (N-TR-08, N-TR-12)."""
        self.member = self.member._replace(leaving=False)

    def fail(self, failure: Failure, *, leaving: bool = False) -> None:
        """Fail the member fatally, and queue the failure for the application (N-TR-11). From STALE and FENCED the
        transition would be illegal. Kafka then stays in the state, but still reports the failure (N-ERR-02).
        ``leaving``: the member was leaving until this response."""
        before = self.member.state
        self.put(failure)
        if _S.FATAL not in LEGAL[before]:
            return
        self.move(_S.FATAL)  # N-TR-11
        if before is _S.UNSUBSCRIBED and not (self.member.leaving or leaving):
            self.release()  # nothing is owned, but this also updates what the application's thread knows
        elif not before.in_group:
            self.left()
        elif not self.give_up(Call.LOST, Reason.FATAL):
            self.release()

    # --- the application's thread ---

    def put(self, event: BackgroundEvent) -> None:
        """Queue an event for the application's thread."""
        self.member = self.member._replace(queue=(*self.member.queue, event))

    def give_up(self, call: Call, reason: Reason) -> bool:
        """Queue the listener call for the loss of all owned partitions. Return false if none is owned or there is no
        listener.

        A reconciliation that has not reached the application is cancelled, so the listener gets each partition as
        revoked or lost once, not twice (INV-CL-01).
        """
        if self.rules.queued_callback_withdrawn:
            withdraw(self)
        owned = self.member.subscription.owned
        if not owned or not self.member.settings.listener:
            return False
        if call is Call.REVOKED or self.rules.lost_partitions_not_fetched:  # N-TR-06
            self.member = self.member._replace(subscription=self.member.subscription.mark_all())
        self.put(ListenerCall(call, owned, reason))
        return True

    def wait(self, waiting: WaitingConsumerCall) -> None:
        """Set what the application's call waits for."""
        self.member = self.member._replace(waiting=waiting)

    @property
    def waiting(self) -> WaitingConsumerCall:
        """The application's call in progress; there must be one."""
        waiting = self.member.waiting
        assert waiting is not None
        return waiting


def withdraw(turn: ConsumerTurn) -> None:
    """Cancel a reconciliation that waits for the application, with its listener calls (INV-CL-01)."""

    def reconciles(event: BackgroundEvent | None) -> bool:
        return isinstance(event, ListenerCall) and event.reason.reconciles

    member = turn.member
    waiting, reconciliation = member.waiting, member.reconciliation
    turn.member = turn.member._replace(queue=tuple(each for each in member.queue if not reconciles(each)))
    if waiting is not None:
        background_events = tuple(each for each in waiting.background_events if not reconciles(each))
        turn.member = turn.member._replace(waiting=replace(waiting, background_events=background_events))
    runs = waiting is not None and reconciles(waiting.running)
    if (
        reconciliation is not None
        and reconciliation.stage in (ReconciliationStage.REVOKE, ReconciliationStage.ASSIGN)
        and not runs
    ):
        turn.member = turn.member._replace(reconciliation=None)
