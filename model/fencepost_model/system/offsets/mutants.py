"""The closed system of offsets with one guard taken away at a time, under the names of ``spec/MCOffsetMutants.tla``."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

from . import rules, store
from .state import Decision, Lease, Log
from .store import EMPTY, MISSING, Entry, Slot, Store, in_order, told

Patches = list[tuple[Any, str, Any]]


def _instead_of(module: ModuleType, name: str, replacement: Callable[..., Any]) -> Callable[[], Patches]:
    return lambda: [(module, name, replacement)]


def _last_written(slot: Slot) -> Entry:
    written = in_order(slot)
    return told(written[-1], pending=written[-1] != slot.main) if written else MISSING


def _not_asked_for_again(holder: int, log: Log, *, quiet: bool) -> bool:
    return not quiet or any(batch.ends == holder for batch in log.open)


def _keeps_what_it_is_granted(lease: Lease, decision: Decision, granted: frozenset[str]) -> frozenset[str]:
    return lease.things & granted


def _keeps_the_old_too(lease: Lease, granted: frozenset[str]) -> frozenset[str]:
    return lease.things | granted


def _loads_open_batches_only(log: Log, survivors: int, nothing: Store) -> Store:
    return log.open[survivors - 1].store if survivors else (EMPTY,) * len(nothing)


#: "operator <- replacement" of the specification → the patches
OFFSET_MUTANTS: Final[dict[str, Callable[[], Patches]]] = {
    "IsCurrent <- WhateverItsEpoch": _instead_of(rules, "is_current", lambda request, epoch: True),
    "IsInTransaction <- WhateverItsTransaction": _instead_of(
        rules, "is_in_transaction", lambda request, producer: True
    ),
    "Visible <- LastWritten": _instead_of(store, "visible", _last_written),
    "Unstable <- NeverUnstable": _instead_of(store, "unstable", lambda slot: False),
    "AfterAbortMarker <- AfterAnyMarker": _instead_of(store, "dropped", store.counted),
    "Overtaken <- NeverOvertaken": _instead_of(store, "overtaken", lambda own, main: False),
    "MayExpire <- ExpiresAnyway": _instead_of(store, "may_expire", lambda slot: True),
    "AtOnce <- BeforeReplication": _instead_of(rules, "at_once", lambda answers: answers),
    "MarkerIsOut <- NotAskedForAgain": _instead_of(rules, "marker_is_out", _not_asked_for_again),
    "Keeps <- KeepsWhatItIsGranted": _instead_of(rules, "keeps", _keeps_what_it_is_granted),
    "Newly <- KeepsTheOldToo": _instead_of(rules, "taken", _keeps_the_old_too),
    "Loaded <- LoadsOpenBatchesOnly": _instead_of(rules, "loaded", _loads_open_batches_only),
    "IsAbandoned <- NeverAbandoned": _instead_of(rules, "is_abandoned", lambda lane: False),
}
