"""Core and model agree along random traces with offsets, promises hold, and false observations are refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import pytest

from fencepost.functions import KafkaFunctions
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Event
from fencepost.protocol.messages import ResponseBody
from fencepost.protocol.offset_messages import (
    OffsetCommitResponse,
    OffsetDeleteResponse,
    OffsetFetchResponse,
    TxnOffsetCommitResponse,
    WriteTxnMarkerResponse,
)
from fencepost.protocol.offset_records import ControlKey, OffsetCommitValue
from fencepost.protocol.offset_view import OffsetsView
from fencepost.protocol.profiles import PROFILES
from fencepost.protocol.records import Record
from fencepost.protocol.settings import Settings
from fencepost_conformance.generate.generator import Generated, core_session, generate
from fencepost_conformance.generate.plan import GroupProtocol
from fencepost_conformance.traces.observation import Observation
from fencepost_model.classic import work as classic_work
from fencepost_model.classic.coordinator_state import CoordinatorState, Step
from fencepost_model.classic.load import load_offsets
from fencepost_model.consumer.observe import ObservedValues
from fencepost_model.offsets import checks, clean, commit, fetch, state
from fencepost_model.offsets.promises import Broken, Promises, compacted
from fencepost_model.offsets.state import Offsets, Place, replay
from fencepost_model.switches import variant_of
from fencepost_model.trace import Follower, Verdict, fresh_id

_MATCHER = KafkaFunctions().matcher
SEEDS = range(4_100, 4_103)


def _trace(profile: str, protocol: GroupProtocol, seed: int, steps: int = 110) -> Generated:
    def soon(settings: Settings) -> Settings:
        """Return settings that let offsets expire while members are present, for every other trace."""
        if not seed % 2:
            return settings
        return replace(settings, offsets_retention_ms=4_000, offsets_retention_check_interval_ms=3_000)

    made = generate(
        seed,
        PROFILES[profile],
        steps,
        protocol,
        session=lambda settings, profile: core_session(soon(settings), profile),
        offsets=0.5,
    )
    made = replace(made, settings=soon(made.settings))
    assert made.failure is None, made.failure
    return made


@dataclass
class Way:
    """One step of a trace, as the model explains it."""

    event: Event
    seen: Observation
    before: CoordinatorState
    verdict: Verdict


def _follow(made: Generated) -> Iterator[Way]:
    follower = Follower(made.settings, made.profile, _MATCHER)
    for event, seen in zip(made.events, made.observations, strict=True):
        before = follower.candidates[0].state
        yield Way(event, seen, before, follower.feed(event, seen))


@pytest.mark.parametrize("protocol", list(GroupProtocol))
@pytest.mark.parametrize("profile", list(PROFILES))
def test_core_and_model_agree(profile: str, protocol: GroupProtocol) -> None:
    for seed in SEEDS:
        for way in _follow(_trace(profile, protocol, seed)):
            assert way.verdict.ok, f"seed {seed}: {way.verdict}"


# ---- falsehoods ---------------------------------------------------------------------------------------------------


def _topics(body: Any, change: Callable[[Any], Any]) -> Any:
    """Return the answer with its first partition changed, or None if it has no partition."""
    if not body.topics or not body.topics[0].partitions:
        return None
    first = body.topics[0]
    changed = replace(first, partitions=(change(first.partitions[0]), *first.partitions[1:]))
    return replace(body, topics=(changed, *body.topics[1:]))


def _another_error(row: Any) -> Any:
    error = ErrorCode.UNKNOWN_MEMBER_ID if row.error_code is ErrorCode.NONE else ErrorCode.NONE
    return replace(row, error_code=error)


def _false_reply(body: ResponseBody, rng: Random) -> ResponseBody | None:
    if isinstance(body, OffsetCommitResponse | TxnOffsetCommitResponse):
        found: ResponseBody | None = _topics(body, _another_error)
        return found
    if isinstance(body, OffsetDeleteResponse):
        if body.topics and rng.random() < 0.5:
            deleted: ResponseBody | None = _topics(body, _another_error)
            return deleted
        return OffsetDeleteResponse(ErrorCode.NON_EMPTY_GROUP if body.error_code is ErrorCode.NONE else ErrorCode.NONE)
    if isinstance(body, WriteTxnMarkerResponse):
        return WriteTxnMarkerResponse(
            ErrorCode.INVALID_PRODUCER_EPOCH if body.error_code is ErrorCode.NONE else ErrorCode.NONE
        )
    if isinstance(body, OffsetFetchResponse):
        at = rng.randrange(len(body.groups))
        group = body.groups[at]
        change: Callable[[Any], Any] = rng.choice(
            (
                lambda row: replace(row, committed_offset=row.committed_offset + 1),
                lambda row: replace(row, metadata=f"{row.metadata}?"),
                lambda row: replace(row, committed_leader_epoch=row.committed_leader_epoch + 1),
                _another_error,
            )
        )
        lied = _topics(group, change)
        if lied is None:
            error = ErrorCode.NONE if group.error_code is not ErrorCode.NONE else ErrorCode.STALE_MEMBER_EPOCH
            lied = replace(group, error_code=error)
        return OffsetFetchResponse((*body.groups[:at], lied, *body.groups[at + 1 :]))
    return None


def _false_record(record: Record, rng: Random) -> Record | None:
    value = record.value
    if isinstance(record.key, ControlKey):
        return replace(record, key=ControlKey(not record.key.committed))
    if not isinstance(value, OffsetCommitValue):
        return None
    lie: dict[str, Any] = rng.choice(
        (
            {"offset": value.offset + 1},
            {"leader_epoch": value.leader_epoch + 1},
            {"metadata": value.metadata + "?"},
            {"commit_timestamp": value.commit_timestamp + 1},
            {"expire_timestamp": value.expire_timestamp + 1},
            {"topic_id": b"?" * 16},
        )
    )
    return replace(record, value=replace(value, **lie))


def _false_view(view: OffsetsView, rng: Random) -> OffsetsView | None:
    part = rng.choice(("committed", "pending", "open_transactions"))
    rows = getattr(view, part)
    return replace(view, **{part: rows[1:]}) if rows else None


def _falsehoods(seen: Observation, rng: Random) -> Iterator[Observation]:
    for at, reply in enumerate(seen.replies):
        body = _false_reply(reply.body, rng)
        if body is not None:
            yield replace(seen, replies=(*seen.replies[:at], replace(reply, body=body), *seen.replies[at + 1 :]))
            yield replace(seen, replies=(*seen.replies[:at], *seen.replies[at + 1 :]))
    for at, record in enumerate(seen.records):
        lied = _false_record(record, rng)
        if lied is not None:
            yield replace(seen, records=(*seen.records[:at], lied, *seen.records[at + 1 :]))
            yield replace(seen, records=(*seen.records[:at], *seen.records[at + 1 :]))
    view = None if seen.offsets is None else _false_view(seen.offsets, rng)
    if view is not None:
        yield replace(seen, offsets=view)


@pytest.mark.parametrize("protocol", list(GroupProtocol))
def test_false_observations_are_rejected(protocol: GroupProtocol) -> None:
    rng = Random(7)
    refused = 0
    made = _trace("kafka-4.4", protocol, 4_200)
    follower = Follower(made.settings, made.profile, _MATCHER)
    for event, seen in zip(made.events, made.observations, strict=True):
        for lie in _falsehoods(seen, rng):
            verdict, _ = follower.accepts(event, lie)
            assert not verdict.ok, f"{event}\n{lie}"
            refused += 1
        assert follower.feed(event, seen).ok
    assert refused > 60


# ---- promises -----------------------------------------------------------------------------------------------------


def _broken(made: Generated) -> set[str]:
    """Return the ids of the promises that a trace breaks, up to the first step that breaks any."""
    promises = Promises(made.settings)
    for way in _follow(made):
        if not way.verdict.ok:
            return {"refused"}
        broken: list[Broken] = []
        for step in way.verdict.taken[:1]:
            broken = promises.feed(way.event, way.before, step)
        if broken:
            return {each.promise for each in broken}
    return set()


@pytest.mark.parametrize("protocol", list(GroupProtocol))
@pytest.mark.parametrize("profile", ["kafka-4.4", "kafka-4.0", "intended"])
def test_promises_hold(profile: str, protocol: GroupProtocol) -> None:
    for seed in SEEDS:
        assert _broken(_trace(profile, protocol, seed)) == set(), seed


class Followed:
    """A follower that takes the model's first step, whatever was observed."""

    def __init__(self, made: Generated) -> None:
        self.made = made

    def broken(self) -> set[str]:
        promises, found = Promises(self.made.settings), set()
        follower = Follower(self.made.settings, self.made.profile, _MATCHER)
        at = follower.model.initial()
        for event, seen in zip(self.made.events, self.made.observations, strict=True):
            shown = ObservedValues(seen.records, seen.consumer_groups, _MATCHER)
            try:
                step: Step = follower.model.successors(at, event, fresh_id(event, seen, at), shown)[0]
            except TypeError:
                raise  # the planted fault itself is wrong
            except Exception:
                break  # a planted fault may lead where a correct coordinator never goes
            found |= {each.promise for each in promises.feed(event, at, step)}
            at = step.state
        return found


def _takes_any(*_: Any) -> checks.Checked:
    return checks.Checked(None, ())


def _keeps_pending(offsets: Offsets, producer: int, committed: bool) -> Offsets:
    return offsets


def _newest_end_wins(offsets: Offsets, producer: int, committed: bool) -> Offsets:
    rows = dict(offsets.committed)
    rows |= {place: entry for place, owner, entry in offsets.pending if owner == producer and committed}
    return Offsets(tuple(sorted(rows.items())), tuple(row for row in offsets.pending if row[1] != producer))


def _aborts_commit(offsets: Offsets, producer: int, committed: bool) -> Offsets:
    return _newest_end_wins(offsets, producer, True)


def _shows_pending(offsets: Offsets, place: Place, topic_id: bytes, *, held: bool) -> Any:
    shown = dict(offsets.committed) | {each: entry for each, _, entry in offsets.pending}
    return _ONE(Offsets(tuple(sorted(shown.items()))), place, topic_id, held=False)


_ONE = fetch._one
_PLANTED: list[tuple[str, object, str, Callable[..., Any]]] = [
    ("INV-COMMIT-01", commit, "may_commit", _takes_any),
    ("INV-TXN-01", state, "_ended", _keeps_pending),
    ("INV-REPLAY-01", state, "_ended", _newest_end_wins),
    ("INV-REPLAY-01", state, "_ended", _aborts_commit),
    ("INV-TXN-01", fetch, "_one", _shows_pending),
    ("INV-COMMIT-02", CoordinatorState, "replicated", lambda each: each.offsets),
    ("INV-COMMIT-04", clean, "_too_old", lambda *_: True),
    ("INV-COMMIT-04", clean, "subscribes", lambda *_: False),
]


@pytest.mark.parametrize("at", range(len(_PLANTED)))
def test_a_planted_fault_breaks_its_promise(at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    promise, module, name, fault = _PLANTED[at]
    monkeypatch.setattr(module, name, fault)
    found: set[str] = set()
    for seed in range(4_300, 4_340):
        protocol = list(GroupProtocol)[seed % 3]
        found |= Followed(_trace("intended", protocol, seed)).broken()
        if promise in found:
            return
    raise AssertionError(f"{promise} held")


def test_an_answer_that_does_not_wait_breaks_a_promise(monkeypatch: pytest.MonkeyPatch) -> None:
    def at_once(work: Any, operation: Any, records: list[Record]) -> None:
        before = len(work.operations)
        _SUBMIT(work, operation, records)
        if len(work.operations) > before:
            work._finished(work.operations.pop())

    monkeypatch.setattr(classic_work.Work, "submit", at_once)
    assert any("INV-COMMIT-03" in Followed(_trace("intended", GroupProtocol.CLASSIC, s)).broken() for s in SEEDS)


_SUBMIT = classic_work.Work.submit


@pytest.mark.parametrize("profile", ["kafka-4.4", "intended"])
def test_a_compacted_log_says_the_same(profile: str) -> None:
    said = 0
    for seed in range(4_400, 4_406):
        log: list[Record] = []
        for seen in _trace(profile, GroupProtocol.CLASSIC, seed).observations:
            log.extend(seen.records)  # records that were not appended count as well: any log will do
        for end in range(0, len(log) + 1, 7):
            whole = load_offsets(variant_of(PROFILES[profile]), log[:end])
            short = Offsets()
            for place, record in compacted(log[:end]):
                short = replay(short, record, place)
            assert short == whole
            said += len(whole.committed)
    assert said > 100
