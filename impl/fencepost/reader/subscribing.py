"""What the application asks for and what is assigned: modes that exclude each other, pauses, seeks (8.7)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from operator import attrgetter

from fencepost.protocol.partitions import TopicPartition
from fencepost.quirks import varies

from . import background, commits, committed
from .events import MembershipChanged, Refused, Seek
from .partition import Partition, Position
from .settings import Client, Reset, ResetPolicy
from .state import Mode
from .turn import Turn

_EXCLUSIVE = "subscription to topics, to a pattern and assignment of partitions exclude each other; unsubscribe first"


def choose(turn: Turn, mode: Mode, topics: frozenset[str] = frozenset()) -> None:
    """Subscribe in one of the ways. Raises ``Refused`` if another is in use (K-SUB-01)."""
    _take(turn, mode)
    if turn.client is Client.CONSUMER:  # what the look-up of the coordinator has met is thrown by the member
        turn.reader = turn.reader._replace(coordinator=replace(turn.reader.coordinator, problem=None))
    if turn.client is Client.CONSUMER and mode is Mode.TOPICS:
        _drop_unwanted(turn, topics)
    more = not topics <= turn.reader.topics
    turn.reader = turn.reader._replace(topics=topics)
    if more:
        turn.want_metadata()


def _drop_unwanted(turn: Turn, topics: frozenset[str]) -> None:
    """What was fetched of dropped topics goes at once; partitions of which some was read go to the end of the queue
    (K-SUB-03, K-SUB-14)."""
    kept = [each for each in turn.reader.partitions if each.topic in topics]
    for each in sorted(turn.reader.buffer, key=attrgetter("in_line")):  # what is in the queue first
        if each.read and each.partition not in kept:
            turn.to_the_end(each.partition)
    _keep(turn, kept)


def _take(turn: Turn, mode: Mode) -> None:
    if turn.reader.mode not in (Mode.NONE, mode):
        raise Refused(_EXCLUSIVE, "IllegalStateException")
    turn.reader = turn.reader._replace(mode=mode)


def assign(turn: Turn, partitions: tuple[TopicPartition, ...]) -> None:
    """Read these without membership; positions that were due for a commit are committed before they go (K-OFF-04).

    Raises ``Refused`` if subscribed, or for an empty list or name."""
    if not partitions or not all(each.topic for each in partitions):
        raise Refused("no partition, or one without a topic; unsubscribe instead", "IllegalArgumentException")
    kept = partitions
    if turn.client is Client.CONSUMER:  # what was fetched of others that were assigned before too
        kept = tuple(each for each in partitions if each in turn.reader.partitions)
    _keep(turn, kept)  # also if the rest is refused
    commits.maybe_auto_commit(turn)
    _take(turn, Mode.MANUAL)
    if set(partitions) != turn.reader.partitions.keys():  # the same ones are not even put in another order
        _own(turn, partitions)


def unsubscribe(turn: Turn) -> None:
    """Nothing is read any more; nothing is committed either (K-LEAVE-04)."""
    if turn.client is Client.CONSUMER:  # N-TR-07: it overlooks what the look-up of the coordinator has met
        turn.reader = turn.reader._replace(coordinator=replace(turn.reader.coordinator, problem=None))
    nothing = replace(turn.reader.membership, owned=())
    turn.reader = turn.reader._replace(mode=Mode.NONE, topics=frozenset(), membership=nothing)
    _keep(turn, ())
    _own(turn, ())


def told(turn: Turn, event: MembershipChanged) -> None:
    """What membership says from now on (K-SUB-02). Only what is taken away loses its position, whatever the member has
    become (N-CMT-05)."""
    before = turn.reader.membership.owned
    turn.reader = turn.reader._replace(membership=event.membership)
    if turn.reader.mode.automatic and event.membership.owned != before:
        _own(turn, event.membership.owned)  # K-SUB-02


def adopted(turn: Turn) -> None:
    """What is assigned is assigned anew, be it the same: fetches begin with the first of it (K-SUB-14)."""
    if turn.reader.mode.automatic:
        _own(turn, turn.reader.membership.owned)  # K-SUB-14


def by_topic(partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
    """In the order of fetches: topics as they are met first, each with its partitions as they are met (K-SUB-14)."""
    topics: dict[str, list[TopicPartition]] = {}
    for each in partitions:
        topics.setdefault(each.topic, []).append(each)
    return [each for several in topics.values() for each in several]


def _own(turn: Turn, partitions: Iterable[TopicPartition]) -> None:
    """What stays keeps its state and what was fetched of it (K-CB-11), what is new has none, what goes is forgotten
    with all that; in the order given, topic by topic (K-SUB-02, K-SUB-05, K-SUB-14)."""
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


@varies
def drops_at_once(turn: Turn) -> bool:
    """Whether what was fetched of a partition that is taken away is dropped with it, and not when its turn comes
    (K-SUB-02, K-FETCH-01)."""
    return True


def _keep(turn: Turn, partitions: Collection[TopicPartition]) -> None:
    """What was fetched of others is dropped (K-SUB-02)."""
    kept = tuple(each for each in turn.reader.buffer if each.partition in partitions)
    turn.reader = turn.reader._replace(buffer=kept)


def assigned(turn: Turn, partition: TopicPartition) -> Partition:
    """The state of a partition that is assigned. Raises ``Refused`` for any other."""
    state = turn.reader.partitions.get(partition)
    if state is None:
        raise Refused(f"{partition.topic}-{partition.partition} is not assigned", "IllegalStateException")
    return state


def pause(turn: Turn, partitions: tuple[TopicPartition, ...], *, paused: bool) -> None:
    """Only records are held back, nothing else (K-SUB-05). Raises ``Refused`` unless all are assigned."""
    states = {each: assigned(turn, each) for each in partitions}
    for each, state in states.items():
        turn.change(each, replace(state, paused=paused))  # K-SUB-05


def seek(turn: Turn, event: Seek) -> None:
    """The position is this at once, whatever was looked up for it; with an epoch it is checked first (K-POS-05).

    Raises ``Refused`` for a negative offset or a partition that is not assigned."""
    if event.offset < 0:
        raise Refused(f"{event.offset} is no offset", "IllegalArgumentException")
    assigned(turn, event.partition)
    leader = turn.leader(event.partition)  # as it was known before this epoch was heard of
    turn.saw_epoch(event.partition, event.leader_epoch)
    if turn.client is Client.CONSUMER:  # as it is known since
        leader = turn.leader(event.partition)
    turn.place(event.partition, Position(event.offset, event.leader_epoch, leader))


def seek_to_end(turn: Turn, partitions: tuple[TopicPartition, ...], to: Reset) -> None:
    """The position is looked up anew, by this policy instead of the configured one (K-POS-03)."""
    if to not in (Reset.EARLIEST, Reset.LATEST):
        raise Refused(f"a log has two ends, {to.value} is none of them", "IllegalArgumentException")
    chosen = partitions or tuple(turn.reader.partitions)
    states = {each: assigned(turn, each) for each in chosen}
    for each, state in states.items():
        turn.change(each, state.await_reset(ResetPolicy(to)))  # K-POS-03
