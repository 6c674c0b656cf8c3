"""The guards of members, log and transaction coordinator for offsets, one function each; ``mutants`` removes each alone
to show its purpose. The guards of the group coordinator are those of the model."""

from __future__ import annotations

from ...offsets.state import Offsets
from .state import Decision, Endpoint, Lease, Log, Producer, Reply, Request


def is_in_transaction(request: Request, producer: Producer) -> bool:
    """Return whether the log accepts offsets of that transaction: it is the producer's last, and open (O-TXN-11)."""
    return producer.state == "open" and producer.number == request.number


def sent_at_once(answers: frozenset[tuple[int, Reply]]) -> frozenset[tuple[int, Reply]]:
    """Return the answers to a write that do not wait for its replication: none (F-RT-04)."""
    return frozenset()


def marker_is_in_flight(holder: int, log: Log, *, quiet: bool) -> bool:
    """Return whether the holder's marker is written and not yet answered, so it is not written again. Whether a fault
    has happened (``quiet``: none) does not matter."""
    return any(batch.ends == holder for batch in log.open)


def kept_partitions(lease: Lease, decision: Decision, granted: frozenset[str]) -> frozenset[str]:
    """Return the partitions whose positions a member keeps: only if it missed no decision (N-TR-06)."""
    return lease.resources & granted if lease.epoch + 1 == decision.epoch else frozenset()


def new_lease(lease: Lease, granted: frozenset[str]) -> frozenset[str]:
    """Return what a member has after it learned of a decision: exactly what it is granted."""
    return granted


def loaded(log: Log, survivors: int) -> Offsets:
    """Return what a new coordinator loads if so many open batches survive (F-LOAD-01)."""
    return log.open[survivors - 1].store if survivors else log.stable


def is_abandoned(endpoint: Endpoint) -> bool:
    """Return whether only the transaction coordinator can still end the producer's transaction."""
    return endpoint.producer.state == "open" and endpoint.member.begun == "none"
