"""The working copy of a KIP-848 member during one step."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from fencepost.quirks import varies

from ..events import Call, Failure, MemberTimer
from ..partitions import TopicPartition
from ..turn import AnyTurn
from .state import ConsumerMember, ConsumerState, Errand, ListenerCall, Reason, Sent, Stage, Waiting

_S = ConsumerState
#: N-ST-20…29, without the transitions that are legal and never taken.
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
    """The timers that are set, with their deadlines: heartbeats and the poll interval count only while the coordinator
    is known (N-TR-13)."""
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
        """Go to another state, along a transition that there is (INV-CL-07); staying is always legal (N-ST-30)."""
        before = self.member.state
        assert state is before or state in LEGAL[before], f"{before.value} to {state.value}"
        self.member = self.member._replace(state=state)

    def number(self) -> int:
        """A fresh id for a request or commit."""
        number = self.member.next_request_id
        self.member = self.member._replace(next_request_id=number + 1)
        return number

    def fly(self, sent: Sent) -> None:
        """A request is under way."""
        self.member = self.member._replace(sent=(*self.member.sent, sent))

    # --- membership ---

    def join(self) -> None:
        """Begin as somebody new, at epoch 0 (N-TR-15). What is still being reconciled belongs to the past
        (N-REC-05)."""
        self.move(_S.JOINING)
        self.member = self.member._replace(
            epoch=0, target=None, current=None, names=MappingProxyType({}), expired=False, back=False
        )  # N-TR-15
        reconciliation = self.member.reconciliation
        if reconciliation is not None:
            self.member = self.member._replace(reconciliation=replace(reconciliation, outdated=True))  # N-REC-05

    def release(self) -> None:
        """Own nothing, and work on nothing."""
        if self.member.subscription.subscribed:
            self.remember(frozenset())
        self.member = self.member._replace(
            subscription=self.member.subscription.assign(()),
            current=None,
            taken=frozenset(),
            target=None,
            names=MappingProxyType({}),
        )

    def remember(self, owned: frozenset[TopicPartition]) -> None:
        """The application's thread hears what is owned now."""
        self.member = self.member._replace(remembered=replace(self.member.remembered, owned=owned))

    def left(self) -> None:
        """The leave is over: answered, failed or skipped (N-TR-08, N-TR-12)."""
        self.member = self.member._replace(leaving=False)

    def fail(self, failure: Failure, *, leaving: bool = False) -> None:
        """The member can go on no more, and the application is told why (N-TR-11). From STALE and FENCED the transition
        would be illegal, and Kafka swallows that, but not the failure (N-ERR-02). ``leaving``: it was, until this."""
        before = self.member.state
        self.put(failure)
        if _S.FATAL not in LEGAL[before]:
            return
        self.move(_S.FATAL)  # N-TR-11
        if before is _S.UNSUBSCRIBED and not (self.member.leaving or leaving):
            self.release()  # nothing is owned, but the application's thread hears of it once more
        elif not before.in_group:
            self.left()
        elif not self.give_up(Call.LOST, Reason.FATAL):
            self.release()

    # --- the application's thread ---

    def put(self, errand: Errand) -> None:
        """Leave something for the application's thread to do."""
        self.member = self.member._replace(queue=(*self.member.queue, errand))

    def give_up(self, call: Call, reason: Reason) -> bool:
        """Have the application told that all it owns is gone; false if there is nothing to tell, or nobody.

        A reconciliation that has not got to the application comes to nothing: what it would have revoked is told as
        gone once, not twice (INV-CL-01).
        """
        withdraw(self)
        owned = self.member.subscription.owned
        if not owned or not self.member.settings.listener:
            return False
        if call is Call.REVOKED or stops_fetching(self):
            self.member = self.member._replace(subscription=self.member.subscription.mark_all())
        self.put(ListenerCall(call, owned, reason))
        return True

    def wait(self, waiting: Waiting) -> None:
        """The call of the application goes on waiting, for this."""
        self.member = self.member._replace(waiting=waiting)

    @property
    def waiting(self) -> Waiting:
        """The call of the application that is under way; there is one."""
        waiting = self.member.waiting
        assert waiting is not None
        return waiting


@varies
def stops_fetching(turn: ConsumerTurn) -> bool:
    """Whether lost partitions, which are its own until the application has heard of that, are fetched no more
    (N-TR-06)."""
    return True


@varies
def withdraw(turn: ConsumerTurn) -> None:
    """A reconciliation that waits for the application is over, and its callbacks are not told any more (INV-CL-01)."""

    def reconciles(errand: Errand | None) -> bool:
        return isinstance(errand, ListenerCall) and errand.reason.reconciles

    member = turn.member
    waiting, reconciliation = member.waiting, member.reconciliation
    turn.member = turn.member._replace(queue=tuple(each for each in member.queue if not reconciles(each)))
    if waiting is not None:
        errands = tuple(each for each in waiting.errands if not reconciles(each))
        turn.member = turn.member._replace(waiting=replace(waiting, errands=errands))
    runs = waiting is not None and reconciles(waiting.running)
    if reconciliation is not None and reconciliation.stage in (Stage.REVOKE, Stage.ASSIGN) and not runs:
        turn.member = turn.member._replace(reconciliation=None)
