"""What members, the log and the coordinator of transactions must heed about offsets, guard by guard; each can be taken
away alone to see what it is for (``mutants``). The guards of the group's coordinator are those of the model."""

from __future__ import annotations

from ...offsets.state import Offsets
from .state import Decision, Lane, Lease, Log, Producer, Reply, Request


def is_in_transaction(request: Request, producer: Producer) -> bool:
    """Whether the log takes offsets of that transaction: it is the producer's last, and open (O-TXN-11)."""
    return producer.state == "open" and producer.number == request.number


def at_once(answers: frozenset[tuple[int, Reply]]) -> frozenset[tuple[int, Reply]]:
    """Those answers to what was written that do not wait for its replication: none (F-RT-04)."""
    return frozenset()


def marker_is_out(holder: int, log: Log, *, quiet: bool) -> bool:
    """Whether the holder's marker is written and not yet answered, so that nobody writes it once more; whether a fault
    has happened (``quiet``: none) does not matter."""
    return any(batch.ends == holder for batch in log.open)


def keeps(lease: Lease, decision: Decision, granted: frozenset[str]) -> frozenset[str]:
    """Of which partitions a member keeps its positions: it must have missed no decision (N-TR-06)."""
    return lease.things & granted if lease.epoch + 1 == decision.epoch else frozenset()


def taken(lease: Lease, granted: frozenset[str]) -> frozenset[str]:
    """What a member has after it heard of a decision: what it is granted, and no more."""
    return granted


def loaded(log: Log, survivors: int) -> Offsets:
    """What another coordinator loads where so many open batches survive (F-LOAD-01)."""
    return log.open[survivors - 1].store if survivors else log.stable


def is_abandoned(lane: Lane) -> bool:
    """Whether nobody will ever end the producer's transaction, but for its coordinator."""
    return lane.producer.state == "open" and lane.member.begun == "none"
