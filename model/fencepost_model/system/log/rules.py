"""The guards of a log as functions; ``mutants`` removes each alone to show its purpose."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .state import Broker, Cluster, Contents, Copy, Row, below


def replicated_to_all(own: int, others: Iterable[int]) -> int:
    """Return the high watermark that a leader may set, from the end of its copy and of others that count (F-RT-04)."""
    return min((own, *others))


def may_replicate(number: int, broker: Broker, cluster: Cluster) -> bool:
    """Return whether other copies follow this leader: only the last one elected, not one that was replaced
    (F-CONS-07)."""
    return broker.known_epoch == cluster.epoch and cluster.leader == number


def caught_up(end: int, leader_high_watermark: int, start: int) -> bool:
    """Return whether a copy with this end may count again: it reaches the leader's high watermark and the place where
    that leader began, as its high watermark may be behind (KAFKA-7128)."""
    return end >= max(leader_high_watermark, start)


def divergence_offset(broker: Broker, cluster: Cluster) -> int:
    """Return where the broker's copy diverges from those of leaders that it does not know yet; everything after that is
    truncated."""
    missed = cluster.elections[broker.known_epoch :]
    return min([broker.copy.end, *(each.start for each in missed)])


def superseded(copy: Copy, row: Row) -> bool:
    """Return whether a later record of the key is replicated, so that the cleaner may drop this one."""
    return any(each.key == row.key and each.offset > row.offset for each in below(copy.rows, copy.high_watermark))


def has_no_older_records(copy: Copy, row: Row) -> bool:
    """Return whether no record of the tombstone's key is left before it (F-REPLAY-14)."""
    return all(each.key != row.key for each in below(copy.rows, row.offset))


def every_broker_has_seen(row: Row, upto: Sequence[tuple[int, int]], epoch: int, loading: int | None) -> bool:
    """Return whether every broker has seen the tombstone; delete.retention.ms ensures that. ``upto``: for each broker
    the election that it knows and the end of its copy. ``loading``: where the broker's own coordinator reads, if there
    is one (F-REPLAY-18)."""
    followed = all(known_epoch == epoch and end > row.offset for known_epoch, end in upto)
    return followed and (loading is None or loading > row.offset)


def after_time_out(broker: Broker, offset: int) -> Contents:
    """Return the contents after the write at the offset timed out: unchanged, since the record stays in the log
    (F-RT-09)."""
    return broker.memory.contents


def has_loaded(broker: Broker) -> bool:
    """Return whether the coordinator has read its log to the end, not only to the high watermark (F-LOAD-01)."""
    return broker.memory.upto == broker.copy.end
