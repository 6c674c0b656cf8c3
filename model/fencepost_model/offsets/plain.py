"""Offsets as a pure transition system: state and request in, state and answer out. For explorers and tests.

There is no clock, no waiting and no failing append here: a step's records are applied at once. A caller that wants a
log keeps ``Done.records`` and replays any prefix of it with ``state.replay``. Groups belong to the caller: a classic
``Group``, a ``ConsumerGroup``, or None. ``OffsetsModel`` uses the same rules as the whole coordinator.
"""

from __future__ import annotations

from typing import NamedTuple

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.offset_messages import (
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponseGroup,
    TxnOffsetCommitRequest,
)
from fencepost.protocol.offset_records import ControlKey, ControlValue, Producer
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED
from fencepost.protocol.records import Record
from fencepost.protocol.settings import Settings

from ..consumer.state import Image
from .checks import AnyGroup, may_delete
from .clean import delete, expire
from .commit import commit
from .fetch import fetch, question
from .rows import Row
from .state import Offsets, Place, replay
from .topics import sifted


class Ledger(NamedTuple):
    """All offsets, and the end offset of the log."""

    offsets: Offsets = Offsets()
    end: int = 0


class Done(NamedTuple):
    """The result of a step: the ledger after it, the rows of its answer or its error, its records, and the rules that
    decided.

    ``creates_group``: a simple group is created (O-COMMIT-20). ``deletes_group``: nothing keeps the group any more.
    """

    ledger: Ledger
    rows: tuple[Row, ...] = ()
    error: ErrorCode = ErrorCode.NONE
    records: tuple[Record, ...] = ()
    rules: tuple[str, ...] = ()
    creates_group: bool = False
    deletes_group: bool = False


class OffsetsModel:
    """Commits, transactions, reads, deletion and expiry under settings and a profile. ``image``: the topics."""

    def __init__(self, image: Image, settings: Settings | None = None, profile: Profile = INTENDED) -> None:
        self.image = image
        self.settings = settings or Settings()
        self.profile = profile
        from ..switches import variant_of  # noqa: PLC0415  its rules are in packages that import this module

        self.variant = variant_of(profile)

    def commit(
        self,
        ledger: Ledger,
        group: AnyGroup | None,
        body: OffsetCommitRequest | TxnOffsetCommitRequest,
        *,
        version: int,
        now: int = 0,
    ) -> Done:
        """Commit, with or without a transaction."""
        sift = sifted(self.image, body, version, frozenset())
        if not sift.asked:
            return Done(ledger, sift.refused, rules=("O-COMMIT-04",))
        done = commit(self.settings, self.variant, group, body, sift.asked, version=version, now=now)
        if done.error is not None:
            return Done(ledger, error=done.error, rules=done.rules)
        makes = group is None and (bool(done.records) or not self.variant.offsets.group_needs_record)
        rows = (*sift.refused, *done.rows)
        return Done(_applied(ledger, done.records), rows, records=done.records, rules=done.rules, creates_group=makes)

    def end(self, ledger: Ledger, producer: Producer, *, committed: bool) -> Done:
        """End a transaction (O-TXN-08)."""
        records = (Record(ControlKey(committed), ControlValue(0), producer),)
        return Done(_applied(ledger, records), records=records, rules=("O-TXN-08",))

    def fetch(
        self, ledger: Ledger, group: AnyGroup | None, asked: OffsetFetchRequestGroup, *, version: int, stable: bool
    ) -> OffsetFetchResponseGroup:
        """Return what a read sees of this ledger: the newest for a ``stable`` read, else the replicated one
        (O-FETCH-07)."""
        what = question(self.image, asked, frozenset(), version)
        return fetch(self.variant, self.image, group, ledger.offsets, what, stable=stable).entry.body

    def delete(
        self, ledger: Ledger, group: AnyGroup | None, body: OffsetDeleteRequest, topics: frozenset[str] | None = None
    ) -> Done:
        """Delete offsets for an operator. ``topics``: those that a classic group has read from its members."""
        checked = may_delete(group)
        if group is None or checked.error is not None:
            return Done(ledger, error=checked.error or ErrorCode.GROUP_ID_NOT_FOUND, rules=checked.rules)
        sift = sifted(self.image, body, 0, frozenset())
        places = [(each.row, Place(body.group_id, each.name, each.row.partition)) for each in sift.asked]
        rows, records = delete(group, topics, ledger.offsets, places)
        return Done(_applied(ledger, records), (*sift.refused, *rows), records=records, rules=checked.rules)

    def expire(
        self, ledger: Ledger, group_id: str, group: AnyGroup, topics: frozenset[str] | None = None, *, now: int
    ) -> Done:
        """Expire the offsets of one group."""
        retention = self.settings.offsets_retention_ms
        done = expire(group_id, group, topics, ledger.offsets, now=now, retention=retention)
        return Done(_applied(ledger, done.records), records=done.records, deletes_group=done.deletes_group)


def _applied(ledger: Ledger, records: tuple[Record, ...]) -> Ledger:
    offsets = ledger.offsets
    for at, record in enumerate(records, ledger.end):
        offsets = replay(offsets, record, at)
    return Ledger(offsets, ledger.end + len(records))
