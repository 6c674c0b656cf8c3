"""A KIP-848 member while it handles one input."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...machines import FATAL, FENCED, IN_GROUP, RECONCILING, STALE, UNSUBSCRIBED
from ...table import CONSUMER_CLIENT_TABLE
from ..base import AnyDraft
from .state import ClientConfig, ClientState, SentFields, Task

if TYPE_CHECKING:
    from .variant import ClientVariant


class ClientDraft(AnyDraft[ClientState]):
    """A KIP-848 member's draft. ``ignored``: an unsubscribe has ignored an error, and now waits for the leave
    (N-TR-07)."""

    __slots__ = ("config", "ignored", "variant")
    table = CONSUMER_CLIENT_TABLE

    def __init__(self, config: ClientConfig, variant: ClientVariant, state: ClientState) -> None:
        super().__init__(state)
        self.config = config
        self.variant = variant
        self.ignored = False

    @property
    def in_group(self) -> bool:
        return self.now.state in IN_GROUP

    def number(self) -> int:
        self.set(next_request=self.now.next_request + 1)
        return self.now.next_request - 1

    # ---- what is owned ------------------------------------------------------------------------------------------

    def release(self) -> None:
        """Release all partitions, owned or waited for (N-TR-06, N-REC-02)."""
        if self.now.subscribed:
            self.set(app_owned=frozenset())
        self.set(
            had=frozenset(),
            owned=frozenset(),
            blocked=frozenset(),
            fresh=frozenset(),
            current=None,
            target=None,
            cache=frozenset(),
        )

    def adopt(self) -> None:
        """Adopt the reconciled assignment, which the next heartbeat reports (N-REC-08)."""
        work = self.now.work
        assert work is not None
        self.rule("N-REC-08")
        self.set(current=work.local, fresh=frozenset(), work=None)
        self.unblock()
        self.transition("reconciled")

    def unblock(self) -> None:
        """End the marks of revocation, with the reconciliation that has set them (N-REC-11)."""
        if self.now.blocked and self.variant.revocation_mark_ends:
            self.rule("N-REC-11")
            self.set(blocked=frozenset())

    @property
    def aborted(self) -> bool:
        """Return whether the reconciliation is aborted (N-REC-05)."""
        work = self.now.work
        return work is None or work.stale or self.now.state != RECONCILING

    def join(self, cause: str) -> None:
        """Start to join: epoch 0, no target, no assignment (N-TR-15)."""
        self.rule("N-TR-15")
        self.transition(cause)
        self.set(epoch=0, target=None, current=None, cache=frozenset())
        if self.now.work is not None:
            self.set(work=self.now.work._replace(stale=True))

    # ---- the application ----------------------------------------------------------------------------------------

    def give_up(self, call: str, reason: str) -> bool:
        """Queue a listener call for all owned partitions. Returns False if there is nothing to report."""
        self.variant.drop_callbacks(self)
        if not self.now.owned or not self.config.listens:
            return False
        if call == "revoked" or self.variant.fenced_member_stops_fetching:
            self.set(blocked=self.now.owned)  # N-TR-06, N-TR-07
        self.set(queue=(*self.now.queue, Task(call, self.now.owned, reason)))
        return True

    def throw(self, error: str) -> None:
        """Make the next poll throw the error."""
        self.set(queue=(*self.now.queue, Task("throw", error=error)))

    # ---- the coordinator ----------------------------------------------------------------------------------------

    def forget_coordinator(self) -> None:
        """Forget the coordinator; requests in flight to it have failed (K-ERR-13)."""
        if self.now.coordinator:
            self.lose_everything()

    def lose_everything(self) -> None:
        """Lose the connection, and with it all requests in flight, to this coordinator or another (N-ERR-06)."""
        now, counts = self.now, self.variant.late_answers_count
        if now.in_flight is not None or (counts and now.late):
            self.set(sent_fields=SentFields(), failing=True, due=False)
        if now.leave_request is not None or (counts and now.late and now.state == UNSUBSCRIBED):
            self.left()
        self.set(coordinator=False, in_flight=None, leave_request=None, late=frozenset(), ignored=frozenset())

    def left(self) -> None:
        """Note that the leave is over, so no call waits for it any more (N-TR-08, N-TR-12)."""
        self.set(leaving=False)

    def fatal(self, error: str, *, parting: bool = False) -> None:
        """Fail for ever (N-TR-11). ``parting``: the error answered a leave."""
        before = self.now.state
        self.throw(error)
        if before in (STALE, FENCED, FATAL):
            self.rule("N-ERR-02")  # an illegal transition is swallowed, but its error is thrown
            return
        self.rule("N-TR-11", "N-ERR-04", "N-ERR-05")
        self.transition("fatal")
        self.set(known_member=True)  # N-CMT-01
        if before == UNSUBSCRIBED and not (self.now.leaving or parting):
            self.release()
        elif before not in IN_GROUP:
            self.left()
        elif not self.give_up("lost", "fatal"):
            self.release()


def drop_callbacks(d: ClientDraft) -> None:
    """Drop the queued callbacks of the reconciliation, which is aborted (INV-CL-01)."""
    d.rule("INV-CL-01")
    kept = [task for task in d.now.queue if task.reason not in ("revoke", "assign")]
    later = [task for task in d.now.batch if task.reason not in ("revoke", "assign")]
    d.set(queue=tuple(kept), batch=tuple(later))
    running, work = d.now.running, d.now.work
    here = running is not None and running.reason in ("revoke", "assign")
    if work is not None and work.stage in ("revoke", "assign") and not here:
        d.set(work=None)
