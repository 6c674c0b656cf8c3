"""Differences of Kafka's consumers from the intended protocol when they commit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import attrgetter

from fencepost.protocol.partitions import TopicPartition
from fencepost.quirks import Next, quirk
from fencepost_consumer import commits
from fencepost_consumer.state import Cause, Commit
from fencepost_consumer.turn import Turn, ids_of


@quirk("fault_callbacks_overtake", of=commits.callbacks_due)
def as_they_end(_: Next[tuple[Commit, ...]], turn: Turn) -> tuple[Commit, ...]:
    """Run callbacks in the order in which commits end. A commit that fails without a request ends before those that
    wait for a response (K-OFF-18)."""
    ended = (each for each in turn.reader.commits if each.cause is Cause.ASYNC and each.outcome is not None)
    return tuple(sorted(ended, key=attrgetter("ended")))


@quirk("fault_close_keeps_callbacks", of=commits.last_callbacks)
def untold(_: Next[None], turn: Turn) -> None:
    """Run no callbacks at the end of a close. The classic consumer waits there for the responses to its asynchronous
    commits, but never runs their callbacks. Nor does the new one, if it has already waited for the last of them, as in
    the commit of its close (K-LEAVE-04, N-CLOSE-01)."""
    if turn.in_background and turn.reader.last_async >= 0:
        commits.run_callbacks(turn, throw=False)


@quirk("old_offsets_by_name", of=ids_of)
def names_always(_: Next[Mapping[bytes, str]], turn: Turn, partitions: Iterable[TopicPartition]) -> Mapping[bytes, str]:
    """Up to 4.1, offset requests contain topic names (V-99)."""
    return {}


@quirk("old_unknown_topic_id_is_final", of=commits.topic_id_passes)
def never_passes(_: Next[bool], turn: Turn) -> bool:
    """Up to 4.1, a synchronous commit does not retry UNKNOWN_TOPIC_ID (V-101)."""
    return False


@quirk("old_close_waits_for_coordinator", of=commits.give_up_unsent)
def waits(_: Next[None], turn: Turn) -> None:
    """Up to 4.1, a close waits until its timeout for commits without a coordinator (V-103)."""
