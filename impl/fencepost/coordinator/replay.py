"""What the log says (11.5): the same groups for the same records, whoever reads them.

Records of consumer groups are applied to the live coordinator too, by the same functions; those of classic groups only
on loading, with the exception of tombstones (C-SYNC-31).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from fencepost.protocol.misuse import expect
from fencepost.protocol.records import GroupMetadataKey, Record, RecordKey
from fencepost.quirks import HasQuirks, varies

from .classic import replay as classic
from .consumer import replay as consumer
from .kernel.replay import Appliers, Replay
from .kernel.state import CoordinatorState

#: What each record does, by the type of its key.
APPLIERS: Final[Appliers] = {GroupMetadataKey: classic.apply, **dict.fromkeys(consumer.KEYS, consumer.apply)}


def replay(state: CoordinatorState, records: Iterable[Record]) -> CoordinatorState:
    """Apply records to the groups of a state, as loading does. They count as replicated.

    Raises ``InternalError`` for records that no coordinator writes, ``WrongType`` for what is no state or record."""
    expect(CoordinatorState, state, "state", "records are applied to what initial_state, step or replay returned")
    work = Replay(state.groups, state.quirks, state.incarnations, APPLIERS)
    log = tuple(records)
    for record in log:
        expect(Record, record, "a record", "a log holds what outcomes had in their records")
    end = state.end + len(log)
    for record in to_apply(state, log):
        work.apply(record)
    return state._replace(groups=work.groups(), end=end, committed=end, base=end, incarnations=work.incarnations)


@varies
def to_apply(work: HasQuirks, log: Sequence[Record]) -> Sequence[Record]:
    """What of a log to apply: of each key the last record alone, in log order.

    A log that is compacted while it is read shows early records as they were and has lost later ones. The last of each
    key it always shows, and they are the state (F-REPLAY-18)."""
    last: dict[RecordKey, int] = {record.key: place for place, record in enumerate(log)}
    return log if len(last) == len(log) else [log[place] for place in sorted(last.values())]
