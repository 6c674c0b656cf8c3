"""Fetch sessions (KIP-227): a consumer names its partitions once, and then only those that it changes.

Without sessions a consumer of a thousand partitions would send a thousand rows with each Fetch, and get a thousand rows
back, most of them without records. With a session both sides remember the last row about each partition:

- A request names a partition when its row has changed, for example its offset, or when it joins the session. Partitions
  that leave it are in ``forgotten_topics_data``. The request means all partitions of the session.
- An answer leaves out the partitions of which nothing is new: no records, no error, the same high watermark and the
  same first offset (``_Cached.takes``). A partition with records goes to the end of the session, so that the byte limit
  of an answer does not starve the others.

*Epochs.* A full request has epoch 0 and begins a session, if there is room. The requests after it have epochs 1, 2 and
so on. The session expects exactly one epoch, so it rejects a request that arrives twice or too late. The consumer then
sends a full request with epoch 0 again. Epoch -1 is a full request that ends the session.

*Two phases.* ``context`` takes a request and raises the epoch. Then the fetch may wait for records. ``answered``
filters the answer; if another request has continued the session meanwhile, it raises instead.

*Room.* A session belongs to no connection: any may continue it. A node keeps at most ``slots`` sessions. A new one
replaces the session that was unused for longest, but only after ``STALE_S`` seconds without use. If there is no room,
the answer has session id 0, and the consumer keeps sending full requests.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import randrange
from typing import Final, Protocol, TypeAlias, TypedDict

from kio.schema.errors import ErrorCode as Code

from fencepost_server.data.producers import Refused

#: Kafka's default ``max.incremental.fetch.session.cache.slots``
SLOTS: Final = 1_000
#: a session that was not used for so long may be replaced by another
STALE_S: Final = 120.0
NO_SESSION: Final = 0
_NEW, _LAST = 0, -1
_MAX_INT: Final = 2**31 - 1
_UNKNOWN: Final = -1

#: topic id or name, and the partition
Key: TypeAlias = tuple[bytes | str, int]


class AskedPartition(Protocol):
    """The row of a request about a partition."""

    partition: int
    fetch_offset: int
    partition_max_bytes: int


class Diverging(TypedDict):
    """Where the log and the records of a reader diverge (KIP-595)."""

    epoch: int
    end_offset: int


class AbortedProducer(TypedDict):
    """An aborted transaction in the records of an answer."""

    producer_id: int
    first_offset: int


class FetchedRow(TypedDict, total=False):
    """The row of an answer about a partition. ``records``, ``error_code`` and ``high_watermark`` are always there."""

    partition_index: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    error_code: Code
    records: bytes
    aborted_transactions: Sequence[AbortedProducer]
    diverging_epoch: Diverging


@dataclass(slots=True)
class _Cached:
    """``row``: of the last request that named the partition. ``name``: of its topic, as soon as a request with the
    partition has found it. ``high`` and ``start``: high watermark and first offset of the last answer that did."""

    row: AskedPartition
    name: str | None = None
    high: int = _UNKNOWN
    start: int = _UNKNOWN

    def takes(self, answer: FetchedRow) -> bool:
        """Note what is answered about the partition; whether something of it is new."""
        failed = answer["error_code"] is not Code.none
        high, start = answer["high_watermark"], answer.get("log_start_offset", _UNKNOWN)
        shown = bool(answer["records"]) or "diverging_epoch" in answer
        new = shown or failed or (high, start) != (self.high, self.start)
        self.high, self.start = (_UNKNOWN if failed else high), start
        return new


@dataclass(slots=True, eq=False)
class FetchSession:
    """``by_id``: its topics are named by their ids. ``used_at``: seconds on the caller's clock."""

    number: int
    by_id: bool
    used_at: float
    epoch: int = 1
    partitions: dict[Key, _Cached] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FetchContext:
    """The partitions of one request. ``session``: None if the request has none. ``begins``: a session is wanted.
    ``epoch``: of the session, once the request is taken."""

    partitions: Mapping[Key, AskedPartition]
    session: FetchSession | None = None
    begins: bool = False
    epoch: int = 0

    def sees(self, names: Mapping[bytes | str, str]) -> None:
        """Note the names of the topics that are there when the request comes, for partitions that have none yet."""
        for (topic, _), cached in self.session.partitions.items() if self.session else ():
            if cached.name is None:
                cached.name = names.get(topic)

    def name(self, key: Key) -> str | None:
        """The name that the topic of a partition had when the session saw it. As in Kafka, partitions that join the
        session after the topic is gone have none."""
        known = None if self.session is None else self.session.partitions.get(key)
        return None if known is None else known.name


class FetchSessions:
    """The sessions of a node. ``slots``: the most that it keeps."""

    def __init__(self, slots: int = SLOTS) -> None:
        self._slots = slots
        self._known: dict[int, FetchSession] = {}  #: the one that was not used for longest comes first

    def context(
        self,
        number: int,
        epoch: int,
        named: Mapping[Key, AskedPartition],
        forgotten: Iterable[Key],
        *,
        by_id: bool,
        now: float,
    ) -> FetchContext:
        """Take a request.

        Args:
            number: the session's id; ``NO_SESSION`` for none.
            epoch: 0 begins a session, -1 ends one; others continue one.
            named: the partitions of the request, with its rows.
            forgotten: the partitions that leave the session.
            now: seconds, on a clock that the caller chooses.

        Raises ``Refused`` for a session that is not there, or has another epoch.
        """
        if epoch in (_NEW, _LAST):
            self._known.pop(number, None)
            return FetchContext(named, begins=epoch == _NEW)
        session = self._known.get(number)
        if session is None:
            raise Refused(Code.fetch_session_id_not_found, f"there is no fetch session {number}")
        if session.epoch != epoch:
            words = f"fetch session {number} expects epoch {session.epoch} (got {epoch})"
            raise Refused(Code.invalid_fetch_session_epoch, words)
        if session.by_id is not by_id:
            raise Refused(Code.fetch_session_topic_id_error, "the fetch session names topics in another way")
        for key, row in named.items():
            known = session.partitions.setdefault(key, _Cached(row))
            known.row = row
        for key in forgotten:
            session.partitions.pop(key, None)
        if not session.partitions:
            del self._known[number]
            return FetchContext(named)
        session.epoch = _next(epoch)
        session.used_at = now
        self._known[number] = self._known.pop(number)
        rows = {key: cached.row for key, cached in session.partitions.items()}
        return FetchContext(rows, session, epoch=session.epoch)

    def answered(
        self,
        context: FetchContext,
        answers: Sequence[tuple[Key, FetchedRow]],
        names: Mapping[bytes | str, str],
        *,
        by_id: bool,
        now: float,
    ) -> tuple[int, Sequence[tuple[Key, FetchedRow]]]:
        """Return the session's id, and the answers without the partitions of which nothing is new. A new session has
        its partitions in the order of ``answers``. ``names``: of the topics that are there. Raises ``Refused`` if
        another request has continued the session meanwhile."""
        session = context.session
        if session is not None:
            if session.epoch != context.epoch:
                raise Refused(Code.invalid_fetch_session_epoch, "another request has continued the fetch session")
            return session.number, list(_new(session, answers))
        if not context.begins or not self._has_room(now):
            return NO_SESSION, answers
        made = FetchSession(self._free(), by_id, now)
        for key, answer in answers:
            made.partitions[key] = cached = _Cached(context.partitions[key], names.get(key[0]))
            cached.high, cached.start = answer["high_watermark"], answer.get("log_start_offset", _UNKNOWN)
        self._known[made.number] = made
        return made.number, answers

    def _has_room(self, now: float) -> bool:
        if len(self._known) < self._slots:
            return True
        oldest = next(iter(self._known.values()))
        if now - oldest.used_at <= STALE_S:
            return False
        del self._known[oldest.number]
        return True

    def _free(self) -> int:
        while (number := randrange(1, _MAX_INT)) in self._known:
            pass
        return number


def _new(session: FetchSession, answers: Sequence[tuple[Key, FetchedRow]]) -> Iterator[tuple[Key, FetchedRow]]:
    """The partitions of which something is new. Those with records go to the end, so that each is first in turn."""
    for key, answer in answers:
        known = session.partitions.get(key)
        if known is None or known.takes(answer):
            yield key, answer
            if known is not None and answer["records"]:
                session.partitions[key] = session.partitions.pop(key)


def _next(epoch: int) -> int:
    return 1 if epoch == _MAX_INT else epoch + 1
