"""The log determines the state: the log of a random trace, read in any way, loads to the live state.

Under ``intended`` this always holds. Kafka's faults break it; each loss is explained by one of them.
"""

from __future__ import annotations

from collections import Counter
from itertools import takewhile
from pathlib import Path
from random import Random

import pytest

from fencepost import coordinator
from fencepost.coordinator import initial_state, step, views
from fencepost.protocol.consumer_records import (
    ConsumerGroupMetadataValue,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from fencepost.protocol.events import AppendFailed, Load, Unload
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED, KAFKA_4_0, KAFKA_4_3, KAFKA_4_4
from fencepost.protocol.records import GroupMetadataKey, GroupMetadataValue, Record
from fencepost_conformance.generate.cleaner import Log, Reading, readings, while_read
from fencepost_conformance.generate.generator import Generated, generate
from fencepost_conformance.generate.plan import GroupProtocol
from fencepost_conformance.judge.compaction.core import Checked, check, differences, fault, moments
from fencepost_conformance.targets.core import Core
from fencepost_conformance.targets.ids import MemberIds
from fencepost_conformance.targets.java_order import JavaOrder
from fencepost_conformance.traces.files import EventTrace, read_traces

EACH = pytest.mark.parametrize("protocol", GroupProtocol)
SEEDS = range(25)
STEPS = 60


def checked(profile: Profile, protocol: GroupProtocol, seeds: range) -> Checked:
    total = Checked()
    for seed in seeds:
        total += check(seed, profile, protocol)
    return total


@EACH
def test_every_reading_of_the_log_gives_the_live_groups(protocol: GroupProtocol) -> None:
    """INV-REPLAY-01, INV-REPLAY-02, F-CONS-03, F-SURV-02, 03, 04, F-REPLAY-14, 18."""
    found = checked(INTENDED, protocol, SEEDS)
    assert not found.complaints
    assert not found.named
    assert set(found.loads) == set(Reading)
    assert found.loads.total() > 300
    assert found.groups > 300


@EACH
@pytest.mark.parametrize("profile", [KAFKA_4_4, KAFKA_4_3, KAFKA_4_0], ids=lambda profile: profile.name)
def test_losses_of_kafka_have_a_name(profile: Profile, protocol: GroupProtocol) -> None:
    found = checked(profile, protocol, range(200, 208))
    assert not found.complaints
    assert found.loads.total() > 100


#: Traces of docs/findings, and the fault that makes memory and log differ in each, after some event.
LOSSES = (
    ("replacements-undone", "fault_timeout_undoes_memory"),
    ("timer-outlives-group", "fault_timers_outlive_reverted_group"),
    ("leader-sends-two-assignments", "fault_every_leader_sync_appends"),
    ("consumer/former-instance-id-stays-taken", "fault_relabelled_instance_stays"),
    ("consumer/dropped-group", "fault_empty_group_dropped_from_memory"),
)
FINDINGS = Path(__file__).parents[2] / "docs" / "findings"


def recorded(path: str) -> Generated:
    """Return a finding up to the loss of the partition, as the core repeats it under Kafka's profile."""
    (trace,) = read_traces(FINDINGS / f"{path}.jsonl")
    assert isinstance(trace, EventTrace)
    events = tuple(takewhile(lambda event: not isinstance(event, Unload), trace.events))
    observed = Core().run(trace.settings, KAFKA_4_3, events)
    return Generated(0, trace.settings, KAFKA_4_3, events, tuple(observed))


@pytest.mark.parametrize(("path", "name"), LOSSES)
def test_faults_that_part_memory_and_log_are_found(path: str, name: str) -> None:
    """C-STATIC-06, C-TMR-12, C-SYNC-19, M-STATIC-13, C-JOIN-15."""
    trace = recorded(path)
    reasons = {
        fault(trace, moment, records)
        for moment in moments(trace, KAFKA_4_3)
        for records in readings(moment.log, Random(0)).values()
        if differences(moment, records)
    }
    assert reasons == {name}


def test_a_log_that_is_compacted_while_it_is_read_is_found() -> None:
    """F-REPLAY-18."""
    (trace,) = read_traces(FINDINGS / "consumer" / "converted-while-read.jsonl")
    assert isinstance(trace, EventTrace)
    recording = recorded("consumer/converted-while-read")
    moment = list(moments(recording, KAFKA_4_3))[-1]
    (found,) = [event.records for event in trace.events if isinstance(event, Load) and event.records]
    assert found in [while_read(moment.log.records, place, len(moment.log.records)) for place in moment.log.ends]
    assert differences(moment, found) == ["the load fails"]
    assert fault(recording, moment, found) == "fault_superseded_records_loaded"


#: fields of a group that no record contains (F-REPLAY-11)
SAYS_NOTHING = (ConsumerGroupMetadataValue(1), ConsumerGroupTargetAssignmentMetadataValue(1))


@EACH
def test_a_record_that_is_gone_is_missed(protocol: GroupProtocol) -> None:
    """The comparison notices every record that counts: without it, the state differs from the live one, or the load
    fails."""
    kinds: Counter[str] = Counter()
    for seed in range(16):
        trace = generate(seed, INTENDED, STEPS, protocol)
        moment = list(moments(trace, INTENDED))[-1]
        log = moment.log.records
        last = {record.key: place for place, record in enumerate(log)}
        for place in sorted(last.values()):
            gone = log[place]
            if gone.value is None or gone.value in SAYS_NOTHING or gone.key.group in moment.unwritten:
                continue
            left = tuple(record for record in log if record.key != gone.key)
            kinds[type(gone.key).__name__] += 1
            assert differences(moment, left), gone
    assert sum(kinds.values()) > 10
    if protocol is not GroupProtocol.CLASSIC:
        assert len(kinds) > 4


def test_a_difference_without_a_reason_has_no_name() -> None:
    """An error in the records is not explained by a fault that happens to be present."""
    trace = recorded("consumer/target-never-computed")
    moment = list(moments(trace, KAFKA_4_3))[-1]
    assert differences(moment, ())
    assert fault(trace, moment, ()) is None


def test_readers_find_whole_batches_and_the_last_record_of_each_key() -> None:
    """After any cleaning, the last record of each key is present, or was a tombstone."""
    trace = generate(5, INTENDED, STEPS, GroupProtocol.CONSUMER)
    moment = list(moments(trace, INTENDED))[-1]
    rng = Random(0)
    for _ in range(50):
        for reading, records in readings(moment.log, rng).items():
            positions = [next(n for n, each in enumerate(moment.log.records) if each is record) for record in records]
            assert positions == sorted(positions)
            found = {record.key: record for record in records}
            for record in {record.key: record for record in moment.log.records}.values():
                assert found.get(record.key) is record or record.value is None, reading
    assert len({*moment.log.batches}) + 1 == len(moment.log.ends)


def test_a_reader_behind_the_cleaner_finds_old_records_and_no_later_ones() -> None:
    log = _log("a1", "b1", "a2", "b2", "a3")
    assert _names(while_read(log.records, 2, 5)) == ["a1", "b1", "b2", "a3"]
    assert _names(while_read(log.records, 2, 4)) == ["a1", "b1", "a2", "b2", "a3"]


def _log(*names: str) -> Log:
    """Return the records of groups, by group and generation."""
    records = [
        Record(
            GroupMetadataKey(name[0]),
            GroupMetadataValue("", generation=int(name[1]), protocol=None, leader=None, current_state_timestamp=0),
        )
        for name in names
    ]
    return Log(tuple(records), tuple(range(len(records))), len(records))


def _names(records: tuple[Record, ...]) -> list[str]:
    return [f"{record.key.group}{value.generation}" for record in records if (value := record.group_metadata)]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_failed_append_leaves_the_state_of_the_log(seed: int) -> None:
    """After a failed append, a group whose creation failed is removed, no generation is taken back, and no offset is
    used up (INV-ATOM-01)."""
    trace = generate(seed, INTENDED, 2 * STEPS)
    state, choices = initial_state(trace.settings, trace.profile), JavaOrder(MemberIds())
    before = state
    for event in trace.events:
        previous, state = state, step(state, event, choices)[0]
        if isinstance(event, AppendFailed):
            for name, view in views(state).items():
                held = coordinator.view(before, name)
                assert held is not None, "a group whose creation failed is gone again (C-JOIN-16)"
                assert view.generation_id >= held.generation_id  # a generation is used up, and never taken back
            assert state.end == before.end
        before = previous
