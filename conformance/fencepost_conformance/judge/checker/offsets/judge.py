"""Judge the offsets of a trace: fill registers from its commits, and compare every fetch with them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Final

from fencepost.protocol.errors import ErrorCode as E
from fencepost.protocol.settings import Settings

from ....traces.files import WireTrace
from ..search import Limits
from ..verdict import Refusal
from . import reading
from .expiry import Times, times
from .places import Names, Place, names_of
from .reading import Committed, Exchange
from .register import NEVER, NOTHING, Pending, Read, Register, Write
from .words import of_offset

#: The default interval at which a transaction coordinator looks for transactions that have timed out.
_ABORTS_EVERY_MS: Final = 10_000

#: Errors after which a commit may still take effect: it was appended, and only the wait for it failed (F-RT-09).
_PERHAPS: Final = frozenset(
    {
        E.COORDINATOR_NOT_AVAILABLE,
        E.NOT_COORDINATOR,
        E.COORDINATOR_LOAD_IN_PROGRESS,
        E.REQUEST_TIMED_OUT,
        E.NETWORK_EXCEPTION,
        E.UNKNOWN_SERVER_ERROR,
        E.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    }
)


@dataclass(frozen=True, slots=True)
class _Ended:
    """The end of a transaction, for its pending offsets. ``begin``: as ``Pending.ends_from``. ``by``: the line by which
    it has ended. ``committed``: None if that is not known."""

    begin: int
    by: int
    committed: bool | None


def wrong_offsets(
    trace: WireTrace,
    groups: Collection[str],
    settings: Settings,
    limits: Limits | None = None,
    *,
    scala: bool = False,
) -> Iterator[Refusal]:
    """For each of these groups, the refusal of the first fetch that returned an impossible offset.

    Args:
        groups: the groups to judge.
        settings: the broker's settings; the retention and its check interval matter.
        limits: how late timers and other events without a request may be.
        scala: the coordinator is that of Kafka up to 3.9.
    """
    limits = limits or Limits()
    ledger = _Ledger(
        reading.exchanges(trace),
        names_of(trace),
        times(trace, settings, limits.slack_ms, limits.tolerance_ms),
        scala=scala,
    )
    refused: set[str] = set()
    missing = reading.missing(trace)
    for each in sorted((each for each in ledger.every if each.api == reading.OFFSET_FETCH), key=lambda each: each.end):
        if each.answer is None:
            continue
        for asked in reading.fetched(each, ledger.names):
            if asked.group_id not in groups or asked.group_id in refused or asked.error:
                continue
            times_missing = missing.get(asked.group_id, ())
            if asked.empty and any(begin < each.end and each.begin < end for begin, end in times_missing):
                continue  # the group may be missing although offsets are committed for it (O-FETCH-03)
            found = ledger.judge(each, asked)
            if found is not None:
                refused.add(asked.group_id)
                yield found


def open_transactions(trace: WireTrace, settings: Settings, limits: Limits) -> dict[str, tuple[tuple[int, int], ...]]:
    """By group, the first and last line of each time in which a transaction with a commit for it is certainly open."""
    every = reading.exchanges(trace)
    if all(each.api != reading.TXN_OFFSET_COMMIT for each in every):
        return {}
    bounds = times(trace, settings, limits.slack_ms, limits.tolerance_ms)
    return _Ledger(every, names_of(trace), bounds, scala=False).open_transactions()


class _Ledger:
    """The registers of a trace, filled from its commits, deletions and transactions."""

    def __init__(self, every: list[Exchange], names: Names, bounds: Times, *, scala: bool) -> None:
        self.every = every
        self._scala = scala
        self.names = names
        self._times = bounds
        self._registers: dict[str, dict[Place, Register]] = {}  #: by group
        self._additions: dict[Any, list[Exchange]] = {}  #: of groups to transactions, by the transaction's id
        self._ends: dict[Any, list[Exchange]] = {}  #: what may end a transaction, by its id
        for each in every:
            if each.api == reading.ADD_OFFSETS_TO_TXN:
                self._additions.setdefault(each.ask.get("transactional_id"), []).append(each)
            if each.api in (reading.END_TXN, reading.INIT_PRODUCER_ID):
                self._ends.setdefault(each.ask.get("transactional_id"), []).append(each)
        for each in every:
            if each.api in (reading.OFFSET_COMMIT, reading.TXN_OFFSET_COMMIT):
                self._commit(each)
        for each in every:  # deletions come after all commits, since they change their registers
            self._delete(each)

    def _register(self, group_id: str, place: Place) -> Register:
        of_group = self._registers.setdefault(group_id, {})
        if place not in of_group:
            # a topic that was created in the trace had no offset before it; other topics may have had one
            value = NOTHING if place[0] in self.names.created else None
            before = Write(value, 0, 0, 0, 0, old_from=0)
            of_group[place] = Register([before], [], several=self.names.several_ids(place[0]))
        return of_group[place]

    def open_transactions(self) -> dict[str, tuple[tuple[int, int], ...]]:
        """By group, the lines from the answer to an accepted commit until its transaction may end."""
        found = {}
        for group_id, registers in self._registers.items():
            held = {each for register in registers.values() for each in register.pending if each.taken}
            found[group_id] = tuple(sorted({(each.end, each.ends_from) for each in held if each.end < each.ends_from}))
        return found

    # ---- reads ------------------------------------------------------------------------------------------------------

    def judge(self, each: Exchange, asked: reading.Asked) -> Refusal | None:
        """The refusal of the first impossible row of an answer."""
        stable = bool(each.ask.get("require_stable"))
        others = list(self._registers.get(asked.group_id, ()))
        places = asked.places
        if places is None:
            places = tuple(dict.fromkeys([*asked.rows, *others]))
        for place in places:
            value, code = asked.rows.get(place, (NOTHING, 0))
            if asked.places is not None and place not in asked.rows:
                continue  # ``wrong_rows`` refuses an answer without a row for each partition of its request
            if code not in (E.NONE, E.UNSTABLE_OFFSET_COMMIT):
                continue
            if any(self.names.may_be_one(place, at) for at in (*others, *asked.rows) if at != place):
                continue  # an id and a name may be the same topic, so the offset may be kept under the other
            if self._scala and stable and code == E.UNSTABLE_OFFSET_COMMIT and self._staged(each, asked, place):
                continue
            register = self._register(asked.group_id, place)
            observed = None if code == E.UNSTABLE_OFFSET_COMMIT else value
            listed, topic_id = asked.places is not None, asked.topic_ids.get(place)
            wrong = register.take(Read(each.begin, each.end, observed, stable, listed, topic_id))
            if wrong is not None:
                what = "UNSTABLE_OFFSET_COMMIT" if observed is None else f"offset {observed}"
                seen = f"the {'stable ' if stable else ''}fetch of {place[0]}-{place[1]} was answered with {what}"
                difference = of_offset(each, asked.group_id, place, observed, wrong)
                return Refusal(
                    asked.group_id, each.end, each.end_ms, seen, wrong.allowed, wrong.rules, difference=difference
                )
        return None

    def _staged(self, fetch: Exchange, asked: reading.Asked, place: Place) -> bool:
        """Whether a plain commit of the place may not have been replicated at the time of the fetch (D-09)."""
        for each in self.every:
            if each.api != reading.OFFSET_COMMIT or each.ask["group_id"] != asked.group_id:
                continue
            last = each.end if each.answer is not None else self._times.written_by(each.over_ms)
            overlaps = each.begin < fetch.end and fetch.begin < last
            if overlaps and any(row.place == place for row in reading.committed(each, self.names)):
                return True
        return False

    # ---- writes -----------------------------------------------------------------------------------------------------

    def _commit(self, each: Exchange) -> None:
        codes = reading.codes(each, self.names)
        group_id = each.ask["group_id"]
        for row in reading.committed(each, self.names):
            register = self._register(group_id, row.place)
            code = codes.get(row.place)
            if code is not None and code != E.NONE and code not in _PERHAPS:
                continue
            if each.api == reading.OFFSET_COMMIT:
                register.writes.append(self._write(each, row, done=code == E.NONE))
            else:
                self._hold(register, each, row, done=code == E.NONE)

    def _write(self, each: Exchange, row: Committed, *, done: bool) -> Write:
        group_id, asked_ms = each.ask["group_id"], each.ask.get("retention_time_ms")
        end = each.end if done else NEVER
        latest = NEVER if done else self._times.written_by(each.over_ms)
        old_from = self._times.old_from(group_id, each.begin_ms, asked_ms)
        gone_by = self._times.gone_by(group_id, each.end_ms if done else NEVER, asked_ms)
        return Write(
            row.value, each.begin, end, each.begin, end,
            latest=latest, topic_id=row.topic_id, old_from=old_from, gone_by=gone_by,
        )  # fmt: skip

    def _hold(self, register: Register, each: Exchange, row: Committed, *, done: bool) -> None:
        ended = self._end_of(each)
        end = each.end if done else NEVER
        kept = ended.committed is True and done
        pending = Pending(row.value, each.begin, end, done, ended.begin, kept, gone_by=ended.by)
        register.pending.append(pending)
        if ended.committed is not False:
            # with v5 and earlier the broker keeps no topic id (O-TXN-12), or that of the name (O-TXN-16)
            old_from = self._times.old_from(each.ask["group_id"], each.begin_ms, None)
            register.writes.append(
                Write(
                    row.value, each.begin, end, ended.begin, ended.by if kept else NEVER, pending,
                    latest=NEVER if kept else ended.by, topic_id=row.topic_id, old_from=old_from,
                )
            )  # fmt: skip

    def _end_of(self, commit: Exchange) -> _Ended:
        """How the transaction of a commit ended: by the first later request that may end it.

        A request that overlaps the commit may have ended this transaction, or the previous one.
        """
        ends = self._ends.get(commit.ask["transactional_id"], [])
        earlier = [each for each in ends if each.begin < commit.begin]
        timeout_ms = next(
            (each.ask["transaction_timeout_ms"] for each in reversed(earlier) if each.api == reading.INIT_PRODUCER_ID),
            None,
        )
        # the transaction began after the end of the previous one, and not later than the commit
        begun_ms = earlier[-1].begin_ms if earlier else 0
        begin = self._times.line_at(begun_ms + (timeout_ms or 0) - self._times.tolerance_ms)
        by = NEVER
        if timeout_ms is not None and commit.over_ms != NEVER:
            by = self._times.known_by(commit.over_ms + timeout_ms + _ABORTS_EVERY_MS)
        wanted = False
        for each in ends:
            if each.end < commit.begin:
                if self._ends_late(each, commit):
                    return _Ended(commit.begin, NEVER, None)
                continue
            if each.begin < commit.begin:
                return _Ended(min(begin, each.begin), NEVER, None)
            code = None if each.answer is None else each.answer["error_code"]
            if each.api == reading.END_TXN and each.ask["producer_epoch"] == commit.ask["producer_epoch"]:
                begin = min(begin, each.begin)
                if code == E.NONE:
                    return _Ended(begin, min(by, self._times.known_by(each.end_ms)), bool(each.ask["committed"]))
                wanted = wanted or bool(each.ask["committed"])
            elif each.api == reading.INIT_PRODUCER_ID:
                begin = min(begin, each.begin)
                if code == E.NONE:
                    by = min(by, self._times.known_by(each.end_ms))
                    return _Ended(begin, by, None if wanted else False)
        return _Ended(begin, by, None if wanted else False)

    def _ends_late(self, end: Exchange, commit: Exchange) -> bool:
        """Whether the marker of an answered EndTxn may come after this commit, and so decide its offset, too.

        It cannot if the transaction coordinator let the producer begin another transaction in between.
        """
        if end.api != reading.END_TXN or end.ask["producer_epoch"] != commit.ask["producer_epoch"]:
            return False
        begun = any(
            end.end < each.begin and each.end < commit.begin
            for each in self._additions.get(commit.ask["transactional_id"], ())
            if each.answer is not None and each.answer["error_code"] == E.NONE
        )
        return not begun and commit.begin <= self._times.known_by(end.end_ms)

    # ---- deletions --------------------------------------------------------------------------------------------------

    def _delete(self, each: Exchange) -> None:
        """Remove deleted offsets, and the pending ones of transactions, from the registers (O-DEL-06, O-DEL-09)."""
        if each.api == reading.OFFSET_DELETE:
            codes = reading.codes(each, self.names)
            for topic in each.ask.get("topics") or ():
                for row in topic.get("partitions") or ():
                    place = self.names.place(topic, row["partition_index"])
                    register = self._registers.get(each.ask["group_id"], {}).get(place)
                    if register is not None and (each.answer is None or codes.get(place) in (E.NONE, *_PERHAPS)):
                        self._erase(register, each, by=each.end if codes.get(place) == E.NONE else NEVER)
        elif each.api == reading.DELETE_GROUPS:
            group_codes = {row["group_id"]: row["error_code"] for row in (each.answer or {}).get("results") or ()}
            for group in dict.fromkeys(each.ask["groups_names"]):
                if group_codes.get(group) in (None, E.NONE, *_PERHAPS):
                    for register in self._registers.get(group, {}).values():
                        self._erase(register, each, by=each.end if group_codes.get(group) == E.NONE else NEVER)
        elif each.api == reading.DELETE_TOPICS:
            rows = (each.answer or {}).get("responses") or ()
            codes_by_topic = {self.names.topic(row): row["error_code"] for row in rows}
            gone = {self.names.topic(row) for row in each.ask.get("topics") or ()}
            gone |= {*(each.ask.get("topic_names") or ()), *codes_by_topic}
            of_topics = [
                (place[0], register)
                for registers in self._registers.values()
                for place, register in registers.items()
                if place[0] in gone
            ]
            for topic, register in of_topics:
                code = codes_by_topic.get(topic)
                if code is None or code == E.NONE or code in _PERHAPS:
                    # the coordinator deletes these offsets later (O-EXP-23)
                    self._erase(register, each, by=self._times.known_by(each.end_ms) if code == E.NONE else NEVER)

    def _erase(self, register: Register, each: Exchange, by: int) -> None:
        latest = NEVER if by != NEVER else self._times.written_by(each.over_ms)
        register.writes.append(Write(NOTHING, each.begin, by, each.begin, by, latest=latest))
        for held in register.pending:
            if held.begin < each.end:  # the transaction may hold it no longer
                held.ends_from = min(held.ends_from, each.begin)
                held.kept = False
