"""The application's thread: its calls, and the listener calls in them (rule book, 8.12, N-TR-07)."""

from __future__ import annotations

from ...machines import FENCED, PREPARE_LEAVING, STALE, UNSUBSCRIBED
from ..inputs import Close, CloseOption, Partition
from ..outputs import Callback, Commit, Raise, Returns
from . import background
from .draft import ClientDraft
from .state import Task


def poll(d: ClientDraft) -> None:
    """Poll (N-POLL-01)."""
    d.set(call="poll")
    if d.now.subscribed:
        _begin(d)
        _run_tasks(d)


def _begin(d: ClientDraft) -> None:
    """Begin a turn of a poll's loop with the background."""
    d.rule("N-POLL-01")
    background.reconcile(d, polled=True)
    if d.now.changed and d.now.state == UNSUBSCRIBED:
        d.rule("N-TR-01", "N-TR-14")
        d.join("poll_subscribed")
    d.set(changed=False)
    if d.now.state == STALE:
        d.rule("N-TR-10")
        d.set(back=True)
        _return_from_poll(d)


def _return_from_poll(d: ClientDraft) -> None:
    """Rejoin after the application has learned what it lost (N-TR-10)."""
    pending = any(task.reason == "stale" for task in (*d.now.queue, *d.now.batch))
    if d.now.state == STALE and d.now.back and not pending:
        d.set(expired=False)
        d.join("poll_again")


def _run_tasks(d: ClientDraft) -> None:
    """Do what the background asked for, until a listener runs. Requests made meanwhile are for the next turn of the
    loop; if a listener has thrown, they wait."""
    while d.now.running is None:
        if not d.now.batch:
            leaves = d.now.call == "unsubscribe"
            if leaves and d.now.thrown in ("GROUP_AUTHORIZATION_FAILED", "TOPIC_AUTHORIZATION_FAILED"):
                d.set(thrown="")  # N-TR-07
                d.ignored = True
                return
            if d.now.thrown or not d.now.queue or (leaves and d.now.drained and not d.now.leaving):
                return
            if d.now.drained and d.now.call == "poll":
                _begin(d)
            d.set(batch=d.now.queue, queue=(), drained=True)
        task, *rest = d.now.batch
        d.set(batch=tuple(rest))
        if task.call == "throw":
            _threw(d, task.error)
        elif task.reason != "assign":
            _call(d, task)
        elif d.now.call == "unsubscribe" and d.variant.poll_replaces_assignment:
            d.set(work=None)  # N-TR-07: a leaving member takes no new partitions
        elif d.now.work is None or (d.aborted and d.variant.aborted_calls_nothing):
            d.rule("N-REC-05")
            d.set(work=None)
        else:
            if d.variant.poll_replaces_assignment:
                background.replace(d)
            if d.config.listens:
                _call(d, task)
            elif d.aborted:
                d.set(work=None)
            else:
                d.adopt()


def _call(d: ClientDraft, task: Task) -> None:
    d.rule("N-REC-10")
    d.set(running=task)
    d.outputs.append(Callback(task.call, task.partitions))


def _threw(d: ClientDraft, error: str) -> None:
    if not d.now.thrown:
        d.set(thrown=error)


def returned(d: ClientDraft, threw: bool) -> None:
    """End a listener call: the background learns of it, and the application continues."""
    task = d.now.running
    if task is None:
        raise ValueError("no listener is running")
    d.set(running=None)
    if threw:
        _threw(d, "KafkaException")
    if task.reason == "revoke":
        if threw or d.now.work is None:
            d.rule("N-REC-09")
            d.set(work=None)
        else:
            background.assign(d)
    elif task.reason == "assign":
        if not threw:
            d.set(fresh=frozenset())  # N-REC-07
        if threw or d.aborted:
            d.rule("N-REC-05", "N-REC-09")
            d.set(work=None)
        else:
            d.adopt()
    elif task.reason in ("leave", "close"):
        _leave(d, began=task.reason == "leave")
    else:
        d.release()
        if task.reason == "fenced" and d.now.state == FENCED:
            d.join("loss_reported")
        _return_from_poll(d)
    if d.now.call != "close":
        _run_tasks(d)


def unsubscribe(d: ClientDraft) -> None:
    """Unsubscribe (N-TR-07)."""
    d.rule("N-TR-07")
    d.set(call="unsubscribe", option=CloseOption.DEFAULT)
    if d.in_group:
        d.transition("leave")
        d.set(leaving=True)
        if not d.give_up("revoked" if d.now.epoch > 0 else "lost", "leave"):
            _leave(d, began=True)
    else:
        _leave(d)
    _run_tasks(d)


def close(d: ClientDraft, step: Close) -> None:
    """Close the consumer (N-CLOSE-01)."""
    d.rule("N-CLOSE-01")
    option = step.option if d.variant.has_close_options else CloseOption.DEFAULT
    d.set(call="close", option=option, closed=True)
    if d.config.auto_commit and d.now.owned and d.now.coordinator:
        request = d.number()
        d.set(close_commit=request)
        d.outputs.append(Commit(request, max(d.now.epoch, 0) or -1, d.config.member_id, d.now.owned))
    else:
        close_committed(d)


def close_committed(d: ClientDraft) -> None:
    """After the last commit, call the listener from the application's thread, whatever the background had asked for,
    then ask for the leave."""
    d.set(close_commit=None, queue=(), batch=())
    gone, member = d.variant.given_up_at_close(d)
    if gone and d.config.listens:
        _call(d, Task("revoked" if member else "lost", gone, "close"))
    else:
        _leave(d)


def given_up_at_close(d: ClientDraft) -> tuple[frozenset[Partition], bool]:
    """Return the partitions that a close gives up, and whether as a member, else as lost."""
    return d.now.owned, d.now.epoch > 0


def _leave(d: ClientDraft, *, began: bool = False) -> None:
    """Drop subscription and partitions, and leave. ``began``: the leave began earlier, whatever has happened since."""
    if began or d.in_group or d.now.state == PREPARE_LEAVING:
        d.set(subscribed=False)  # before the release, so the application's thread does not learn of it
    else:
        d.set(app_owned=frozenset(), leaving=False)
    d.release()
    d.set(subscribed=False, changed=False, topics=frozenset(), regex=None)
    if d.in_group or d.now.state == FENCED:
        d.transition("leave")
    if d.now.state == PREPARE_LEAVING:
        d.set(leaving=True, expired=False)
        d.set(epoch=background.leave_epoch(d), known_member=True)
        d.transition("released")


def settle(d: ClientDraft) -> None:
    """End the application's call once no listener runs, and if it leaves, once the leave is over."""
    if d.now.call == "unsubscribe" and d.now.leaving and d.now.running is None and not d.ignored:
        _run_tasks(d)
    now = d.now
    if now.call == "unsubscribe" and now.thrown and now.running is None:
        d.rule("N-TR-07")  # N-TR-07: the error ends the call, and the leave continues
        d.outputs.append(Returns() if now.thrown == "REQUEST_TIMED_OUT" else Raise(now.thrown))
        d.set(call="", thrown="", drained=False)
        return
    waits = now.running is not None or now.batch or now.leaving or now.close_commit is not None
    if not now.call or (now.call == "poll" and (now.running is not None or now.batch)):
        return
    if now.call != "poll" and waits:
        return
    d.outputs.append(Raise(now.thrown) if now.thrown else Returns())
    if now.call == "unsubscribe":
        d.set(in_since=False)
    d.set(call="", thrown="", drained=False)
