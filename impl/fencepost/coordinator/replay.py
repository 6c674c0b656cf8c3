"""The groups and offsets that the records of a log define (11.5): the same records give the same groups.

Records of consumer groups are applied to the live coordinator too, by the same functions. Records of classic groups are
applied only on loading, except tombstones (C-SYNC-31).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import Final

from fencepost.protocol.errors import WrongState
from fencepost.protocol.misuse import expect
from fencepost.protocol.records import GroupMetadataKey, Record, RecordKey

from .classic import records as classic
from .consumer import consumer_appliers as consumer
from .kernel.replay_context import Appliers, Replay
from .kernel.rules import Rules
from .kernel.state import CoordinatorState, Group, Status
from .kernel.stored_offsets import OffsetStore
from .offsets import offset_appliers as offsets

#: The function that applies each record, by the type of its key.
APPLIERS: Final[Appliers] = {
    GroupMetadataKey: classic.apply,
    **dict.fromkeys(consumer.KEYS, consumer.apply),
    **dict.fromkeys(offsets.KEYS, offsets.apply),
}
#: Keys of which every record counts, not only the last one.
_ALL_COUNT: Final = frozenset(offsets.KEYS)


def replay(state: CoordinatorState, records: Iterable[Record]) -> CoordinatorState:
    """Apply records to the groups and offsets of a state, as loading does. They count as replicated.

    The state must not serve its partition, since the log of a serving coordinator grows only by its steps. Its open
    writes would stay open, reads would return to the time before them, and no timer would watch the members in the
    records (F-RT-11, F-LOAD-04). To make a coordinator serve these records, deliver them with ``Load``.

    Raises ``WrongState`` for a state that serves, ``InternalError`` for records that no coordinator writes,
    ``WrongType`` for a wrong state or record.
    """
    expect(CoordinatorState, state, "state", "pass what initial_state or replay returned")
    if state.status is Status.ACTIVE:
        raise WrongState(
            "replay needs a state that does not serve its partition, but this one does "
            f"(its log ends at {state.end}, replicated up to {state.committed}); start with initial_state(), "
            "or have a coordinator load the records with Load(records=...)"
        )
    replayed = Replay(state.groups, state.rules, state.incarnations, APPLIERS, state.offsets)
    log = tuple(records)
    for record in log:
        expect(Record, record, "a record", "pass the records of outcomes")
    end = state.end + len(log)
    skipped = superseded(state.rules, log)
    for place, record in enumerate(log):
        if place not in skipped:
            replayed.place = state.end + place
            replayed.apply(record)
    groups, stored = outcome(replayed)
    return state._replace(
        groups=groups, end=end, committed=end, base=end, incarnations=replayed.incarnations, offsets=stored
    )


def outcome(replayed: Replay) -> tuple[dict[str, Group], OffsetStore]:
    """The groups and offsets after the records; ends the replay."""
    stored = offsets.settled(replayed)
    return replayed.groups(), stored


def superseded(rules: Rules, log: Sequence[Record]) -> Container[int]:
    """The records of a log that need not be applied, by their places: for each key of a group all except the last.

    A log that is compacted while it is read shows early records as they were, and has lost later ones. It always shows
    the last record of each key, and these define the state (F-REPLAY-18). Offsets do not depend on records of other
    keys, and the pending offsets of a transaction depend on the order of all records of a partition. So every record of
    offsets is applied.
    """
    if not rules.superseded_records_skipped:
        return ()
    last: dict[RecordKey, int] = {}
    skipped = set()
    for place, record in enumerate(log):
        key = record.key
        if type(key) in _ALL_COUNT:
            continue
        before = last.get(key)
        if before is not None:
            skipped.add(before)
        last[key] = place
    return skipped
