"""Differences of Kafka's consumers from the intended protocol when they commit."""

from __future__ import annotations

from operator import attrgetter

from fencepost.quirks import Next, quirk
from fencepost_consumer import commits
from fencepost_consumer.state import Cause, Commit
from fencepost_consumer.turn import Turn


@quirk("fault_callbacks_overtake", of=commits.callbacks_due)
def as_they_end(_: Next[tuple[Commit, ...]], turn: Turn) -> tuple[Commit, ...]:
    """Run callbacks in the order in which commits end. A commit that fails without a request ends before those that
    wait for a response (K-OFF-18)."""
    ended = (each for each in turn.reader.commits if each.cause is Cause.ASYNC and each.outcome is not None)
    return tuple(sorted(ended, key=attrgetter("ended")))


@quirk("fault_close_keeps_callbacks", of=commits.last_callbacks)
def skip_last_callbacks(_: Next[None], turn: Turn) -> None:
    """Run no callbacks at the end of a close. The classic consumer waits there for the responses to its asynchronous
    commits, but never runs their callbacks. Nor does the new one, if it has already waited for the last of them, as in
    the commit of its close (K-LEAVE-04, N-CLOSE-01)."""
    if turn.in_background and turn.reader.last_async >= 0:
        commits.run_callbacks(turn, throw=False)
