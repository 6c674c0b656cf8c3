"""Subscription and assignment: exclusive modes, pauses, seeks (8.7)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from operator import attrgetter

from fencepost.protocol.partitions import TopicPartition
from fencepost_consumer import background, commits, committed
from fencepost_consumer.events import MembershipChanged, Refused, Seek
from fencepost_consumer.partition import Partition, Position
from fencepost_consumer.settings import Reset, ResetPolicy
from fencepost_consumer.state import Mode
from fencepost_consumer.turn import Turn

_EXCLUSIVE = "cannot mix subscribing to topics, to a pattern or regex, and manual assignment; unsubscribe first"


def choose(turn: Turn, mode: Mode, topics: frozenset[str] = frozenset()) -> None:
    """Subscribe in one mode. Raises ``Refused`` if another mode is in use (K-SUB-01)."""
    _take(turn, mode)
    turn.forget_failed_lookup()
    if turn.drops_records_early and mode is Mode.TOPICS:
        _drop_unwanted(turn, topics)
    more = not topics <= turn.reader.topics
    turn.reader = turn.reader._replace(topics=topics)
    if more:
        turn.want_metadata()


def _drop_unwanted(turn: Turn, topics: frozenset[str]) -> None:
    """Drop fetched records of dropped topics. Their partitions that were partly read move to the end of the fetch order
    (K-SUB-03, K-SUB-14)."""
    kept = [each for each in turn.reader.partitions if each.topic in topics]
    for each in sorted(turn.reader.buffer, key=attrgetter("in_line")):  # first those still in the queue
        if each.read and each.partition not in kept:
            turn.to_the_end(each.partition)
    _keep(turn, kept)


def _take(turn: Turn, mode: Mode) -> None:
    if turn.reader.mode not in (Mode.NONE, mode):
        raise Refused(_EXCLUSIVE, "IllegalStateException")
    turn.reader = turn.reader._replace(mode=mode)


def assign(turn: Turn, partitions: tuple[TopicPartition, ...]) -> None:
    """Read these partitions without membership. First commit positions that are due, before they go (K-OFF-04).

    Raises ``Refused`` if subscribed, for an empty list, or for an empty topic name."""
    if not partitions or not all(each.topic for each in partitions):
        raise Refused(
            "Assign needs at least one partition, each with a topic; use Unsubscribe to drop all",
            "IllegalArgumentException",
        )
    kept = partitions
    if turn.drops_records_early:  # also those of newly assigned partitions
        kept = tuple(each for each in partitions if each in turn.reader.partitions)
    _keep(turn, kept)  # even if the call is then rejected
    commits.maybe_auto_commit(turn)
    _take(turn, Mode.MANUAL)
    if set(partitions) != turn.reader.partitions.keys():  # the same set does not even change the order
        _own(turn, partitions)


def unsubscribe(turn: Turn) -> None:
    """Drop subscription and assignment, without a commit (K-LEAVE-04)."""
    turn.forget_failed_lookup()
    nothing = replace(turn.reader.membership, owned=())
    turn.reader = turn.reader._replace(mode=Mode.NONE, topics=frozenset(), membership=nothing)
    _keep(turn, ())
    _own(turn, ())


def apply_membership(turn: Turn, event: MembershipChanged) -> None:
    """Store the new membership (K-SUB-02). Only partitions that are taken away lose their position, whatever the
    member's state (N-CMT-05)."""
    before = turn.reader.membership.owned
    turn.reader = turn.reader._replace(membership=event.membership)
    if turn.reader.mode.automatic and event.membership.owned != before:
        _own(turn, event.membership.owned)  # K-SUB-02


def adopted(turn: Turn) -> None:
    """Apply the assignment again, even an equal one: the fetch order starts with its first partition (K-SUB-14)."""
    if turn.reader.mode.automatic:
        _own(turn, turn.reader.membership.owned)  # K-SUB-14


def by_topic(partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
    """Return the fetch order: topics by first occurrence, each with its partitions in the given order (K-SUB-14)."""
    topics: dict[str, list[TopicPartition]] = {}
    for each in partitions:
        topics.setdefault(each.topic, []).append(each)
    return [each for several in topics.values() for each in several]


def _own(turn: Turn, partitions: Iterable[TopicPartition]) -> None:
    """Set the assigned partitions, in the given order, topic by topic. Those kept keep their state and fetched records
    (K-CB-11); new ones start without state; those dropped lose both (K-SUB-02, K-SUB-05, K-SUB-14)."""
    before = turn.reader.partitions
    after = {each: before.get(each, Partition()) for each in by_topic(partitions)}
    if list(after) == list(before):
        return
    if drops_at_once(turn):
        _keep(turn, after)
    turn.reader = turn.reader._replace(partitions=after)
    if committed.forgets(turn):
        committed.forget(turn)
        background.forget(turn)
    turn.watch()
    if not all(each in turn.reader.leaders for each in after):
        turn.want_metadata()


def drops_at_once(turn: Turn) -> bool:
    """Return whether fetched records of a partition are dropped when it is taken away, and not when a poll reaches them
    (K-SUB-02, K-FETCH-01)."""
    return turn.rules.taken_records_dropped or not turn.in_background or not turn.reader.mode.automatic


def _keep(turn: Turn, partitions: Collection[TopicPartition]) -> None:
    """Drop fetched records of all other partitions (K-SUB-02)."""
    kept = tuple(each for each in turn.reader.buffer if each.partition in partitions)
    turn.reader = turn.reader._replace(buffer=kept)


def assigned(turn: Turn, partition: TopicPartition) -> Partition:
    """Return the state of an assigned partition. Raises ``Refused`` for any other."""
    state = turn.reader.partitions.get(partition)
    if state is None:
        raise Refused(
            f"{partition.topic}-{partition.partition} is not assigned to this consumer", "IllegalStateException"
        )
    return state


def pause(turn: Turn, partitions: tuple[TopicPartition, ...], *, paused: bool) -> None:
    """Hold back records, or stop doing so; nothing else changes (K-SUB-05). Raises ``Refused`` unless all are
    assigned."""
    states = {each: assigned(turn, each) for each in partitions}
    for each, state in states.items():
        turn.change(each, replace(state, paused=paused))  # K-SUB-05


def seek(turn: Turn, event: Seek) -> None:
    """Set the position immediately, whatever is being looked up for it; one with an epoch is validated first
    (K-POS-05).

    Raises ``Refused`` for a negative offset or a partition that is not assigned."""
    if event.offset < 0:
        raise Refused(f"Seek.offset must be >= 0 (got {event.offset})", "IllegalArgumentException")
    assigned(turn, event.partition)
    leader = turn.leader(event.partition)  # the leader known before this epoch was seen
    turn.saw_epoch(event.partition, event.leader_epoch)
    if turn.seek_forgets_old_leader:
        leader = turn.leader(event.partition)
    turn.place(event.partition, Position(event.offset, event.leader_epoch, leader))


def seek_to_end(turn: Turn, partitions: tuple[TopicPartition, ...], to: Reset) -> None:
    """Look up the position again, with this policy instead of the configured one (K-POS-03)."""
    if to not in (Reset.EARLIEST, Reset.LATEST):
        raise Refused(f"SeekToEnd.to must be EARLIEST or LATEST (got {to.name})", "IllegalArgumentException")
    chosen = partitions or tuple(turn.reader.partitions)
    states = {each: assigned(turn, each) for each in chosen}
    for each, state in states.items():
        turn.change(each, state.await_reset(ResetPolicy(to)))  # K-POS-03
