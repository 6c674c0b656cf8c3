"""A load applies many plain commits in one step, as records and as bytes. The state equals that of ``replay``, which
applies them one by one."""

from __future__ import annotations

import pickle
from random import Random, SystemRandom

import pytest

from fencepost.codec import Codec, RecordBytes
from fencepost.coordinator import initial_state, offsets_view, replay, step
from fencepost.coordinator.kernel.errors import InternalError
from fencepost.coordinator.kernel.state import CoordinatorState, Status
from fencepost.protocol.events import Load
from fencepost.protocol.logged import Logged
from fencepost.protocol.offset_records import ControlKey, OffsetCommitKey, OffsetCommitValue, Producer
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED, KAFKA_4_0, KAFKA_4_4
from fencepost.protocol.records import Record
from fencepost.protocol.settings import Settings
from fencepost_conformance.generate.generator import generate
from fencepost_conformance.generate.plan import GroupProtocol

from .scene import FirstOf

MARKER = (b"\x00\x00\x00\x01", b"\x00\x00\x00\x00\x00\x05")
CODEC = Codec()


def in_bytes(rows: list[tuple[RecordBytes, Producer | None, bool]]) -> tuple[Logged, tuple[Record, ...]]:
    """Return the log of these rows, each with the producer of its transaction and whether it ends one; and its
    records."""
    loading, records = CODEC.loading(), []
    plain: list[RecordBytes] = []
    for (key, value), producer, control in rows:
        record = CODEC.loaded(key, value, producer, control=control)
        if producer is None:
            plain.append((key, value))
        else:
            loading.take(plain)
            plain = []
            assert record is not None
            loading.add(record)
        if record is not None:
            records.append(record)
    loading.take(plain)
    return loading.done(), tuple(records)


def same(profile: Profile, log: Logged, records: tuple[Record, ...], committed: int | None = None) -> CoordinatorState:
    """Load the log in bytes, and check that the state equals that of its records."""
    empty = initial_state(Settings(), profile)
    found = [
        step(empty, Load(0, leader_epoch=1, records=each, committed=committed), FirstOf()) for each in (log, records)
    ]
    (state, outcome), (other, _) = found
    assert found[0] == found[1]
    assert list(state.groups) == list(other.groups)
    assert list(state.offsets.groups) == list(other.offsets.groups)
    for name, group in state.offsets.groups.items():
        assert list(group.committed.items()) == list(other.offsets.groups[name].committed.items())
    assert hash(outcome) == hash(found[1][1])
    return state


@pytest.mark.parametrize("profile", [INTENDED, KAFKA_4_4], ids=lambda profile: profile.name)
@pytest.mark.parametrize("protocol", list(GroupProtocol))
def test_loading_at_once_equals_loading_record_by_record(profile: Profile, protocol: GroupProtocol) -> None:
    """The states agree on groups and their numbers, offsets, and pending offsets (F-REPLAY-01 to F-REPLAY-05)."""
    committed = pending = 0
    for seed in range(12):
        trace = generate(seed, profile, 120, protocol, offsets=0.7)
        records = tuple(record for seen in trace.observations for record in seen.records)
        empty = initial_state(trace.settings, profile)
        loaded, _ = step(empty, Load(0, leader_epoch=1, records=records), FirstOf())
        try:
            one_by_one = replay(empty, records)
        except InternalError:  # some records of a trace were lost with a failed append
            assert loaded.status is Status.FAILED
            continue
        assert loaded.offsets == one_by_one.offsets
        assert list(loaded.groups) == list(one_by_one.groups)
        assert loaded.incarnations == one_by_one.incarnations
        assert loaded.end == one_by_one.end == len(records)
        view = offsets_view(loaded)
        committed, pending = committed + len(view.committed), pending + len(view.pending)
    assert committed
    assert pending


@pytest.mark.parametrize("profile", [INTENDED, KAFKA_4_4], ids=lambda profile: profile.name)
@pytest.mark.parametrize("protocol", list(GroupProtocol))
def test_loading_bytes_equals_loading_their_records(profile: Profile, protocol: GroupProtocol) -> None:
    """Logs of groups, members, commits and transactions (F-REPLAY-01 to F-REPLAY-05, F-LOAD-02)."""
    for seed in range(6):
        trace = generate(seed, profile, 120, protocol, offsets=0.7)
        written = [record for seen in trace.observations for record in seen.records]
        rows = [(CODEC.encode(each), each.producer, isinstance(each.key, ControlKey)) for each in written]
        log, records = in_bytes(rows)
        assert len(log) == len(records) == len(written)
        assert log == records
        same(profile, log, records)


def row(rng: Random) -> tuple[RecordBytes, Producer | None, bool]:
    """Return a record: mostly a commit of one of few groups; sometimes a tombstone, the end of a transaction, or an
    unusual record."""
    group, topic, partition = rng.choice(("g", "gruppe-ä", "h" * 300)), rng.choice("tu"), rng.randrange(3)
    value = OffsetCommitValue(
        rng.randrange(2**40),
        leader_epoch=rng.randrange(-1, 5),
        commit_timestamp=rng.randrange(2**41),
        metadata=rng.choice(("",) * 9 + ("m",)),
        topic_id=rng.choice((bytes(16), b"0123456789abcdef")),
    )
    key, packed = CODEC.encode(Record(OffsetCommitKey(group, topic, partition), value))
    producer, kind = Producer(rng.randrange(2), 0), rng.random()
    if kind < 0.8:
        return (key, packed), None, False
    if kind < 0.86:
        return (key, None), None, False
    if kind < 0.92:
        return (key, packed), producer, False
    if kind < 0.95:
        return (MARKER[0][:3] + bytes((rng.randrange(2),)), MARKER[1]), producer, True
    if kind < 0.97:
        return (b"\x00\x63", packed), None, False  # of an unknown type
    if kind < 0.98:
        legacy = CODEC.encode(Record(OffsetCommitKey(group, topic, partition), value), 0)[1]
        return (b"\x00\x00" + key[2:], legacy), None, False
    return (key + b"\x00", packed), None, False  # with bytes behind it


@pytest.mark.parametrize("profile", [INTENDED, KAFKA_4_0, KAFKA_4_4], ids=lambda profile: profile.name)
def test_loading_any_bytes_equals_loading_their_records(profile: Profile) -> None:
    """Runs of commits between all other records; also a tail that is not replicated (F-LOAD-01)."""
    first, pending, tails = SystemRandom().randrange(10**12), 0, 0
    for seed in range(first, first + 60):
        rng = Random(seed)
        log, records = in_bytes([row(rng) for _ in range(rng.choice((1, 5, 40, 160)))])
        committed = rng.choice((None, None, rng.randint(0, len(records))))
        state = same(profile, log, records, committed)
        assert log == records, f"seed {seed}"
        assert pickle.loads(pickle.dumps(state)) == state
        again, _ = step(initial_state(Settings(), profile), Load(0, leader_epoch=1, records=log), FirstOf())
        whole, _ = step(initial_state(Settings(), profile), Load(0, leader_epoch=1, records=records), FirstOf())
        assert again == whole, "a log that was loaded is another"
        pending += len(offsets_view(state).pending)
        tails += committed is not None
    assert pending
    assert tails
