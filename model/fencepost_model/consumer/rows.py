"""Partitions in the shapes of messages, records and views: rows of topics by id, with ascending numbers."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import groupby
from operator import itemgetter

from fencepost.protocol.consumer_messages import TopicPartitions
from fencepost.protocol.consumer_records import AssignedPartitions

from .state import Held, Partition, Target

_topic = itemgetter(0)


@lru_cache(maxsize=1 << 14)
def target_rows(target: Target) -> tuple[TopicPartitions, ...]:
    return tuple(TopicPartitions(topic, tuple([p for _, p in rows])) for topic, rows in groupby(target, _topic))


@lru_cache(maxsize=1 << 14)
def held_rows(held: Held, with_epochs: bool) -> tuple[AssignedPartitions, ...]:
    found = []
    for topic, rows in groupby(held, _topic):
        listed = list(rows)
        epochs = tuple([epoch for _, _, epoch in listed]) if with_epochs else None
        found.append(AssignedPartitions(topic, tuple([number for _, number, _ in listed]), assignment_epochs=epochs))
    return tuple(found)


@lru_cache(maxsize=1 << 14)
def without_epochs(held: Held) -> Target:
    return tuple([(topic, number) for topic, number, _ in held])


def to_target(rows: Iterable[TopicPartitions]) -> Target:
    return tuple(sorted([(row.topic_id, number) for row in rows for number in row.partitions]))


def to_held(rows: Iterable[AssignedPartitions], epoch: int, with_epochs: bool) -> Held:
    """Return the rows as held partitions. ``epoch``: that of the member, for partitions without an assignment epoch
    (F-REC-08)."""
    found = []
    for row in rows:
        epochs = row.assignment_epochs
        if epochs is None or len(epochs) != len(row.partitions):
            epochs = (max(epoch, 0),) * len(row.partitions)
        found += [(row.topic_id, n, e if with_epochs else 0) for n, e in zip(row.partitions, epochs, strict=True)]
    return tuple(sorted(found))


def owned_set(rows: Iterable[TopicPartitions] | None) -> frozenset[Partition] | None:
    """Return O of the rule book: the partitions that the request lists as owned, or None if it has no list."""
    return None if rows is None else frozenset([(row.topic_id, number) for row in rows for number in row.partitions])
