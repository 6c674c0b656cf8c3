"""The closed system of offsets with one guard removed at a time, under the names of ``spec/MCOffsetMutants.tla``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ...offsets import clean, commit, fetch, state
from ...offsets.checks import Checked
from ...offsets.state import Offsets, Place, Stored
from . import machine, rules
from .state import Decision, Lease, Log

Patches = list[tuple[Any, str, Any]]


def _instead_of(owner: Any, name: str, replacement: Callable[..., Any]) -> Callable[[], Patches]:
    return lambda: [(owner, name, replacement)]


def _any_request_is_current() -> Patches:
    """No epoch is checked (O-COMMIT-32, O-TXN-05, O-FETCH-05)."""

    def passes(*_: object) -> Checked:
        return Checked(None, ())

    return [(commit, "may_commit", passes), (fetch, "may_fetch", passes)]


def _last_written(offsets: Offsets, place: Place) -> Stored | None:
    """Return the last written offset, committed or pending."""
    found = [kept for where, kept in offsets.committed if where == place]
    found += [kept for where, _, kept in offsets.pending if where == place]
    return max(found, key=lambda kept: kept.at, default=None)


def _ends(*, counts: bool, first: bool) -> Callable[[], Patches]:
    """Change how a transaction ends. ``counts``: it commits, whatever the marker says. ``first``: its offsets count,
    even if a later one is committed."""

    def patches() -> Patches:
        original = state._ended

        def ended(offsets: Offsets, producer: int, committed: bool) -> Offsets:
            committed = committed or counts
            if committed and first:
                places = {place for place, owner, _ in offsets.pending if owner == producer}
                left = tuple(row for row in offsets.committed if row[0] not in places)
                offsets = offsets._replace(committed=left)
            return original(offsets, producer, committed)

        return [(state, "_ended", ended)]

    return patches


def _always_may_expire() -> Patches:
    """A pending offset expires too (O-EXP-11)."""

    def expire(group_id: str, group: Any, topics: Any, offsets: Offsets, **options: Any) -> clean.Expired:
        return clean.expire(group_id, group, topics, offsets._replace(pending=()), **options)

    return [(machine, "expire", expire)]


def _marker_is_not_retried(holder: int, log: Log, *, quiet: bool) -> bool:
    return not quiet or any(batch.ends == holder for batch in log.open)


def _keeps_granted_partitions(lease: Lease, decision: Decision, granted: frozenset[str]) -> frozenset[str]:
    return lease.resources & granted


def _keeps_old_lease(lease: Lease, granted: frozenset[str]) -> frozenset[str]:
    return lease.resources | granted


def _loads_only_open_batches(log: Log, survivors: int) -> Offsets:
    return log.open[survivors - 1].store if survivors else Offsets()


#: "operator <- replacement" of the specification → the patches
OFFSET_MUTANTS: Final[dict[str, Callable[[], Patches]]] = {
    "IsCurrent <- AnyRequestIsCurrent": _any_request_is_current,
    "IsInTransaction <- AnyRequestIsInTransaction": _instead_of(
        rules, "is_in_transaction", lambda request, producer: True
    ),
    "Visible <- LastWritten": _instead_of(Offsets, "get", _last_written),
    "Unstable <- NeverUnstable": _instead_of(Offsets, "is_pending", lambda self, place: False),
    "AfterAbortMarker <- AbortMarkerCommits": _ends(counts=True, first=False),
    "Overtaken <- NeverOvertaken": _ends(counts=False, first=True),
    "MayExpire <- AlwaysMayExpire": _always_may_expire,
    "SentAtOnce <- AnsweredBeforeReplication": _instead_of(rules, "sent_at_once", lambda answers: answers),
    "MarkerIsInFlight <- MarkerIsNotRetried": _instead_of(rules, "marker_is_in_flight", _marker_is_not_retried),
    "KeptPartitions <- KeepsGrantedPartitions": _instead_of(rules, "kept_partitions", _keeps_granted_partitions),
    "NewLease <- KeepsOldLease": _instead_of(rules, "new_lease", _keeps_old_lease),
    "Loaded <- LoadsOnlyOpenBatches": _instead_of(rules, "loaded", _loads_only_open_batches),
    "IsAbandoned <- NeverAbandoned": _instead_of(rules, "is_abandoned", lambda endpoint: False),
}
